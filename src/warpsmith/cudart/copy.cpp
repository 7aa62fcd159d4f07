// Copying and filling memory.
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

namespace cudart {
namespace {

using ull = unsigned long long;

uint64_t address_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

struct Range {
  bool device = false;          // kernels can use it
  uint64_t room = 0;            // bytes from here to the end of the allocation
};

Range range_at(const void* p) {
  Range r;
  uint64_t base = 0, size = 0;
  if (ws_find(address_of(p), &base, &size)) r = {true, base + size - address_of(p)};
  return r;
}

// Whether host memory is there at all: a copy from a wild pointer should be an error, not a crash.
bool mapped(const void* p, size_t size) {
  uint64_t page = sysconf(_SC_PAGESIZE), from = address_of(p) / page * page;
  return msync(reinterpret_cast<void*>(from), address_of(p) + size - from, MS_ASYNC) == 0;
}

std::string allocated_text(const void* p) {
  std::string where = where_allocated(state(), address_of(p));
  return where.empty() ? where : "; it was allocated" + where;
}

// `span` bytes at p, which `role` ("source", "destination") says what they are for.
cudaError_t check_range(const char* call, const char* role, const void* p, size_t span, const Range& r) {
  if (r.device ? span <= r.room : mapped(p, span)) return cudaSuccess;
  if (r.device)
    complain("memory", format("%s was refused: it needs %llu bytes at the %s, but the memory there ends after %llu (%s)%s", call, ull(span),
                              role, ull(r.room), describe(p).c_str(), allocated_text(p).c_str()));
  else
    complain("memory", format("%s was refused: the %s %p is not memory that is in use: %s", call, role, p, describe(p).c_str()));
  return cudaErrorInvalidValue;
}

constexpr bool wants_device(cudaMemcpyKind kind, bool destination) {
  return kind == cudaMemcpyDeviceToDevice || kind == (destination ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

cudaError_t check_side(const char* call, const char* role, const void* p, const Range& r, cudaMemcpyKind kind, bool destination) {
  if (!wants_device(kind, destination) || r.device) return cudaSuccess;
  complain("memory", format("%s was refused: the %s %p is not device memory, as its kind says: %s", call, role, p, describe(p).c_str()));
  return cudaErrorInvalidValue;
}

void move(void* to, const Range& t, const void* from, const Range& f, size_t bytes) {
  if (t.device && f.device) ws_copy(address_of(to), address_of(from), bytes);
  else if (t.device) ws_copy_in(address_of(to), from, bytes);
  else if (f.device) ws_copy_out(to, address_of(from), bytes);
  else memmove(to, from, bytes);
}

size_t span(const Box& b, cudaExtent e) { return (e.depth - 1) * b.plane + (e.height - 1) * b.pitch + e.width; }

}  // namespace

cudaError_t copy_box(const char* call, Box to, Box from, cudaExtent e, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (!e.width || !e.height || !e.depth) return cudaSuccess;
  if (!to.at || !from.at) return cudaErrorInvalidValue;
  Range t = range_at(to.at), f = range_at(from.at);
  TRY(check_side(call, "destination", to.at, t, kind, true));
  TRY(check_side(call, "source", from.at, f, kind, false));
  TRY(check_range(call, "destination", to.at, span(to, e), t));
  TRY(check_range(call, "source", from.at, span(from, e), f));
  if (to.pitch == e.width && from.pitch == e.width && to.plane == from.plane && to.plane == e.width * e.height) {
    move(to.at, t, from.at, f, span(to, e));
    return cudaSuccess;
  }
  for (size_t z = 0; z < e.depth; ++z)
    for (size_t y = 0; y < e.height; ++y)
      move(to.at + z * to.plane + y * to.pitch, t, from.at + z * from.plane + y * from.pitch, f, e.width);
  return cudaSuccess;
}

namespace {

Box line(const void* p, size_t bytes) { return {static_cast<char*>(const_cast<void*>(p)), bytes, bytes}; }
Box rows(const void* p, size_t pitch, size_t height) { return {static_cast<char*>(const_cast<void*>(p)), pitch, pitch * height}; }

cudaError_t fill_box(const char* call, Box to, int value, cudaExtent e) {
  if (!e.width || !e.height || !e.depth) return cudaSuccess;
  Range t = range_at(to.at);
  if (!t.device) {
    complain("memory", format("%s was refused: %p is not device memory: %s", call, static_cast<void*>(to.at), describe(to.at).c_str()));
    return cudaErrorInvalidValue;
  }
  TRY(check_range(call, "destination", to.at, span(to, e), t));
  for (size_t z = 0; z < e.depth; ++z) {
    if (to.pitch == e.width) {
      ws_fill(address_of(to.at + z * to.plane), static_cast<uint8_t>(value), e.width * e.height);
      continue;
    }
    for (size_t y = 0; y < e.height; ++y) ws_fill(address_of(to.at + z * to.plane + y * to.pitch), static_cast<uint8_t>(value), e.width);
  }
  return cudaSuccess;
}

// One side of a three-dimensional copy.  With an array on any side extents and array positions count elements.
cudaError_t side(State& s, const Array* array, const cudaPitchedPtr& memory, const cudaPos& pos, const cudaExtent& e, size_t bytes,
                 Box& out) {
  if (array) {
    if (!s.arrays.count(const_cast<Array*>(array)) || memory.ptr || !fits(*array, pos, e)) return cudaErrorInvalidValue;
    out = box_of(*array, pos.x * array->element, pos.y, pos.z);
    return cudaSuccess;
  }
  if (!memory.ptr) return cudaErrorInvalidValue;
  if ((e.height > 1 || e.depth > 1) && memory.pitch < pos.x + bytes) return cudaErrorInvalidPitchValue;
  size_t plane = memory.pitch * (memory.ysize ? memory.ysize : e.height);
  out = {static_cast<char*>(memory.ptr) + pos.z * plane + pos.y * memory.pitch + pos.x, memory.pitch, plane};
  return cudaSuccess;
}

cudaError_t copy_3d(State& s, const cudaMemcpy3DParms* p) {
  if (!p) return cudaErrorInvalidValue;
  cudaExtent e = p->extent;
  if (!e.width || !e.height || !e.depth) return cudaSuccess;
  const Array* array = p->srcArray ? p->srcArray : p->dstArray;
  if (array && !s.arrays.count(const_cast<Array*>(array))) return cudaErrorInvalidValue;
  size_t bytes = e.width * (array ? array->element : 1);
  Box to, from;
  TRY(side(s, p->dstArray, p->dstPtr, p->dstPos, e, bytes, to));
  TRY(side(s, p->srcArray, p->srcPtr, p->srcPos, e, bytes, from));
  return copy_box("cudaMemcpy3D", to, from, {bytes, e.height, e.depth}, p->kind);
}

cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  if (!width || !height) return cudaSuccess;
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  return copy_box("cudaMemcpy2D", rows(to, to_pitch, height), rows(from, from_pitch, height), {width, height, 1}, kind);
}

cudaError_t symbol_range(State& s, const void* symbol, size_t count, size_t offset, void** at) {
  Global g;
  TRY(find_symbol(s, symbol, g));
  if (offset > g.size || count > g.size - offset) {
    complain("memory", format("a copy of %zu bytes at offset %zu does not fit a variable of %llu bytes", count, offset, ull(g.size)));
    return cudaErrorInvalidValue;
  }
  *at = reinterpret_cast<void*>(g.address + offset);
  return cudaSuccess;
}

}  // namespace

cudaError_t copy_box(const cudaMemcpy3DParms& p) { return copy_3d(state(), &p); }

cudaError_t copy_bytes(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  return copy_box("cudaMemcpyAsync", line(to, count), line(from, count), {count, 1, 1}, kind);
}

cudaError_t fill_elements(const cudaMemsetParams& p) {
  size_t n = p.elementSize;
  if ((n != 1 && n != 2 && n != 4) || !p.width || !p.height) return cudaErrorInvalidValue;
  size_t pitch = p.height > 1 ? p.pitch : p.width * n;
  Box to = rows(p.dst, pitch, p.height);
  cudaExtent e{p.width * n, p.height, 1};
  if (n == 1) return fill_box("a memset of a graph", to, static_cast<int>(p.value), e);
  std::string row;
  for (size_t i = 0; i < p.width; ++i) row.append(reinterpret_cast<const char*>(&p.value), n);
  Box from{&row[0], 0, 0};
  return copy_box("a memset of a graph", to, from, e, cudaMemcpyHostToDevice);
}

}  // namespace cudart

using namespace cudart;

CUDA_API cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  return legacy([&](State&) { return copy_box("cudaMemcpy", line(to, count), line(from, count), {count, 1, 1}, kind); });
}
CUDA_ALIAS(cudaMemcpy_ptds, cudaMemcpy);

CUDA_API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy, [=](State&) { return copy_bytes(to, from, count, kind); });
  });
}
CUDA_ALIAS(cudaMemcpyAsync_ptsz, cudaMemcpyAsync);

CUDA_API cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t count) {
  if (to_device || from_device) return answer(cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, count, cudaMemcpyDeviceToDevice);
}
CUDA_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t count, cudaStream_t stream) {
  if (to_device || from_device) return answer(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, stream);
}

CUDA_API cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                  cudaMemcpyKind kind) {
  return legacy([&](State&) { return copy_2d(to, to_pitch, from, from_pitch, width, height, kind); });
}
CUDA_ALIAS(cudaMemcpy2D_ptds, cudaMemcpy2D);

CUDA_API cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy,
                   [=](State&) { return copy_2d(to, to_pitch, from, from_pitch, width, height, kind); });
  });
}
CUDA_ALIAS(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync);

CUDA_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return legacy([&](State& s) { return copy_3d(s, p); });
}
CUDA_ALIAS(cudaMemcpy3D_ptds, cudaMemcpy3D);

CUDA_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return on_device([&](State& s) {
    if (!p) return cudaErrorInvalidValue;
    cudaMemcpy3DParms copy = *p;
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy, [=](State& t) { return copy_3d(t, &copy); });
  });
}
CUDA_ALIAS(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);

// ---- symbols ---------------------------------------------------------------------------------------------
static cudaError_t to_symbol(State& s, const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  void* to;
  TRY(symbol_range(s, symbol, count, offset, &to));
  return copy_box("cudaMemcpyToSymbol", line(to, count), line(from, count), {count, 1, 1}, kind);
}

static cudaError_t from_symbol(State& s, void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  void* from;
  TRY(symbol_range(s, symbol, count, offset, &from));
  return copy_box("cudaMemcpyFromSymbol", line(to, count), line(from, count), {count, 1, 1}, kind);
}

CUDA_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind) {
  return legacy([&](State& s) { return to_symbol(s, symbol, from, count, offset, kind); });
}
CUDA_ALIAS(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);

CUDA_API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind,
                                             cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy, [=](State& t) { return to_symbol(t, symbol, from, count, offset, kind); });
  });
}
CUDA_ALIAS(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);

CUDA_API cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  return legacy([&](State& s) { return from_symbol(s, to, symbol, count, offset, kind); });
}
CUDA_ALIAS(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);

CUDA_API cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                               cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy, [=](State& t) { return from_symbol(t, to, symbol, count, offset, kind); });
  });
}
CUDA_ALIAS(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);

// ---- filling -----------------------------------------------------------------------------------------------
template <class F> static cudaError_t filling(F f) {
  return on_device([&](State& s) {
    TRY(capture_forbids_legacy(s));
    return f(s);
  });
}

CUDA_API cudaError_t cudaMemset(void* to, int value, size_t count) {
  return filling([&](State&) { return fill_box("cudaMemset", line(to, count), value, {count, 1, 1}); });
}
CUDA_ALIAS(cudaMemset_ptds, cudaMemset);

CUDA_API cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemset,
                   [=](State&) { return fill_box("cudaMemsetAsync", line(to, count), value, {count, 1, 1}); });
  });
}
CUDA_ALIAS(cudaMemsetAsync_ptsz, cudaMemsetAsync);

static cudaError_t fill_2d(void* to, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch && height > 1) return cudaErrorInvalidValue;
  return fill_box("cudaMemset2D", rows(to, pitch, height), value, {width, height, 1});
}

CUDA_API cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return filling([&](State&) { return fill_2d(to, pitch, value, width, height); });
}
CUDA_ALIAS(cudaMemset2D_ptds, cudaMemset2D);

CUDA_API cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemset, [=](State&) { return fill_2d(to, pitch, value, width, height); });
  });
}
CUDA_ALIAS(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);

static cudaError_t fill_3d(const cudaPitchedPtr& to, int value, cudaExtent e) {
  if (e.width > to.pitch && (e.height > 1 || e.depth > 1)) return cudaErrorInvalidValue;
  return fill_box("cudaMemset3D", rows(to.ptr, to.pitch, to.ysize ? to.ysize : e.height), value, e);
}

CUDA_API cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent e) {
  return filling([&](State&) { return fill_3d(to, value, e); });
}
CUDA_ALIAS(cudaMemset3D_ptds, cudaMemset3D);

CUDA_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent e, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemset, [=](State&) { return fill_3d(to, value, e); });
  });
}
CUDA_ALIAS(cudaMemset3DAsync_ptsz, cudaMemset3DAsync);
