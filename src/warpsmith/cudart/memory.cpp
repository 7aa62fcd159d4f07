// Allocations of every kind: device, pinned, managed, pooled, registered host memory.
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include "runtime.h"

namespace cudart {
namespace {

uint64_t address_of(const void* p) { return reinterpret_cast<uint64_t>(p); }
void* pointer(uint64_t a) { return reinterpret_cast<void*>(a); }

const char* call_of(Memory kind) {
  switch (kind) {
    case Memory::device: return "cudaMalloc";
    case Memory::pinned: return "cudaMallocHost";
    case Memory::managed: return "cudaMallocManaged";
    default: return "cudaMallocAsync";
  }
}

cudaError_t allocate(State& s, Memory kind, size_t size, void** out, unsigned flags = 0, Pool* pool = nullptr) {
  *out = nullptr;
  if (kind != Memory::pooled) TRY(capture_forbids_unsafe(s));
  if (size == 0) return cudaSuccess;
  Allocation a;
  a.size = size;
  a.kind = kind;
  a.flags = flags;
  a.number = ++s.allocation_count;
  a.pool = pool;
  void* frames[6] = {};
  int n = backtrace(frames, 6);
  for (int i = 2; i < n; ++i) a.site[i - 2] = frames[i];
  bool host = kind == Memory::pinned || kind == Memory::managed;
  std::string label = format("%s call %u", call_of(kind), a.number);
  uint64_t at = host ? ws_malloc_managed(size, label.c_str()) : ws_malloc(size, label.c_str());
  if (!at) {
    // Not the program's mistake, and its own message will not say whether the chip or this machine is too small.
    complain("note", format("%s of %zu bytes failed: %s", call_of(kind), size, ws_last_message()));
    return cudaErrorMemoryAllocation;
  }
  if (pool) {
    pool->used += size;
    pool->used_high = std::max(pool->used_high, pool->used);
  }
  s.allocations[at] = a;
  *out = pointer(at);
  return cudaSuccess;
}

cudaError_t release(State& s, const char* call, void* p, bool host) {
  if (!p) return cudaSuccess;
  auto found = s.allocations.find(address_of(p));
  if (found == s.allocations.end()) {
    complain("memory", format("%s(%p) was refused, it is not the start of memory in use: %s", call, p, describe(p).c_str()));
    return cudaErrorInvalidValue;
  }
  Allocation& a = found->second;
  if ((a.kind == Memory::pinned) != host) {
    complain("memory", format("%s(%p) was refused: the memory is from %s, which is given back with %s", call, p, call_of(a.kind),
                              host ? "cudaFree" : "cudaFreeHost"));
    return cudaErrorInvalidValue;
  }
  if (a.pool) a.pool->used -= a.size;
  s.allocations.erase(found);
  ws_free(address_of(p));
  return cudaSuccess;
}

const Allocation* allocation_at(State& s, const void* p, uint64_t* base = nullptr) {
  auto after = s.allocations.upper_bound(address_of(p));
  if (after == s.allocations.begin()) return nullptr;
  auto& a = *std::prev(after);
  if (base) *base = a.first;
  return address_of(p) - a.first < a.second.size ? &a.second : nullptr;
}

const Registration* registration_at(State& s, const void* p, uint64_t* base = nullptr) {
  auto after = s.registrations.upper_bound(address_of(p));
  if (after == s.registrations.begin()) return nullptr;
  auto& r = *std::prev(after);
  if (base) *base = r.first;
  return address_of(p) - r.first < r.second.size ? &r.second : nullptr;
}

cudaError_t allocate_pitched(State& s, void** p, size_t* pitch, size_t width, size_t rows) {
  size_t unit = s.attributes[14];  // alignment of textures: rows start there
  *pitch = (width + unit - 1) / unit * unit;
  return allocate(s, Memory::device, *pitch * rows, p);
}

}  // namespace

void free_all(State& s) {
  for (auto& a : s.allocations) ws_free(a.first);
  s.allocations.clear();
  for (auto& r : s.registrations) ws_unregister_host(pointer(r.first));
  s.registrations.clear();
  s.default_pool = Pool();
}

std::string describe(const void* p) {
  std::string text = ws_describe(address_of(p));
  const char *zero = "lies 0 bytes into", *start = "is the start of";
  size_t at = text.find(zero);
  return at == std::string::npos ? text : text.replace(at, strlen(zero), start);
}

std::string where_allocated(State& s, uint64_t address) {
  uint64_t base = 0;
  const Allocation* a = allocation_at(s, pointer(address), &base);
  if (!a) return {};
  Writer question;
  uint32_t count = std::count_if(a->site, a->site + 4, [](void* p) { return p != nullptr; });
  question.put(count);
  for (uint32_t i = 0; i < count; ++i) {
    Dl_info info{};
    dladdr(a->site[i], &info);
    // A return address lies behind the call.  Files that are linked to a fixed place count from zero.
    bool fixed = info.dli_fbase && static_cast<const ElfW(Ehdr)*>(info.dli_fbase)->e_type == ET_EXEC;
    uint64_t offset = address_of(a->site[i]) - (fixed ? 0 : address_of(info.dli_fbase)) - 1;
    question.text(info.dli_fname ? info.dli_fname : "").put(offset);
  }
  Reader r;
  std::string error;
  if (!s.service.ask(Ask::locate, question, r, error)) return {};
  std::string place = r.text();
  return place.empty() ? "" : " " + place;
}

void report_leaks(State& s) {
  const char* wanted = getenv("WARPSMITH_LEAKS");
  if (!wanted || !*wanted || strcmp(wanted, "0") == 0) return;
  struct Sum { uint64_t count = 0, bytes = 0; };
  std::map<std::string, Sum> sums;
  for (auto& a : s.allocations) {
    Sum& sum = sums[std::string(call_of(a.second.kind)) + "\n" + where_allocated(s, a.first)];
    ++sum.count;
    sum.bytes += a.second.size;
  }
  for (Array* a : s.arrays) {
    Sum& sum = sums["cudaMallocArray\n"];
    ++sum.count;
    sum.bytes += a->plane * a->depth();
  }
  for (auto& entry : sums) {
    size_t cut = entry.first.find('\n');
    const Sum& sum = entry.second;
    std::string where = entry.first.substr(cut + 1), what = sum.count == 1 ? "1 allocation" : format("%llu allocations", static_cast<unsigned long long>(sum.count));
    complain("leak", format("%s from %s, %llu bytes in all, %s never freed%s", what.c_str(), entry.first.substr(0, cut).c_str(),
                            static_cast<unsigned long long>(sum.bytes), sum.count == 1 ? "was" : "were", where.empty() ? "" : (": allocated" + where).c_str()));
  }
}

}  // namespace cudart

using namespace cudart;

CUDA_API cudaError_t cudaMalloc(void** p, size_t size) {
  return on_device([&](State& s) { return p ? allocate(s, Memory::device, size, p) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaFree(void* p) {
  return waiting([&](State& s) {
    TRY(capture_forbids_unsafe(s));
    return release(s, "cudaFree", p, false);
  });
}

CUDA_API cudaError_t cudaMallocHost(void** p, size_t size) {
  return on_device([&](State& s) {
    return p ? allocate(s, Memory::pinned, size, p, kHostAllocPortable | kHostAllocMapped) : cudaErrorInvalidValue;
  });
}

CUDA_API cudaError_t cudaHostAlloc(void** p, size_t size, unsigned flags) {
  return on_device([&](State& s) {
    if (!p || flags > (kHostAllocPortable | kHostAllocMapped | kHostAllocWriteCombined)) return cudaErrorInvalidValue;
    return allocate(s, Memory::pinned, size, p, flags);
  });
}

CUDA_API cudaError_t cudaFreeHost(void* p) {
  return waiting([&](State& s) {
    TRY(capture_forbids_unsafe(s));
    return release(s, "cudaFreeHost", p, true);
  });
}

CUDA_API cudaError_t cudaMallocManaged(void** p, size_t size, unsigned flags) {
  return on_device([&](State& s) {
    if (!p || (flags != kMemAttachGlobal && flags != kMemAttachHost)) return cudaErrorInvalidValue;
    return allocate(s, Memory::managed, size, p, flags);
  });
}

CUDA_API cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
  return on_device([&](State& s) { return p && pitch ? allocate_pitched(s, p, pitch, width, height) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaMalloc3D(cudaPitchedPtr* p, cudaExtent extent) {
  return on_device([&](State& s) {
    if (!p) return cudaErrorInvalidValue;
    p->xsize = extent.width;
    p->ysize = extent.height;
    return allocate_pitched(s, &p->ptr, &p->pitch, extent.width, extent.height * extent.depth);
  });
}

CUDA_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return on_device([&](State& s) {
    if (free) *free = std::min<uint64_t>(ws_available(), s.chip.global_memory);
    if (total) *total = s.chip.global_memory;
    return cudaSuccess;
  });
}

// ---- pools ---------------------------------------------------------------------------------------------
static cudaError_t allocate_async(void** p, size_t size, Pool* pool, cudaStream_t stream) {
  return on_device([&](State& s) {
    if (!p) return cudaErrorInvalidValue;
    if (!known(s, stream)) return cudaErrorInvalidResourceHandle;
    Pool* from = pool ? pool : s.current_pool;
    if (from != &s.default_pool && !s.pools.count(from)) return cudaErrorInvalidValue;
    TRY(allocate(s, Memory::pooled, size, p, 0, from));
    // In a graph the memory is there from now on, at the address that its other nodes use.
    return enqueue(s, stream, cudaGraphNodeTypeMemAlloc, [](State&) { return cudaSuccess; });
  });
}

CUDA_API cudaError_t cudaMallocAsync(void** p, size_t size, cudaStream_t stream) { return allocate_async(p, size, nullptr, stream); }
CUDA_ALIAS(cudaMallocAsync_ptsz, cudaMallocAsync);

CUDA_API cudaError_t cudaMallocFromPoolAsync(void** p, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return pool ? allocate_async(p, size, pool, stream) : answer(cudaErrorInvalidValue);
}
CUDA_ALIAS(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);

CUDA_API cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return on_device([&](State& s) {
    // A graph may be launched again, so its memory stays.
    if (capturing(s, stream)) return enqueue(s, stream, cudaGraphNodeTypeMemFree, [](State&) { return cudaSuccess; });
    return enqueue(s, stream, cudaGraphNodeTypeMemFree, [=](State& t) { return release(t, "cudaFreeAsync", p, false); });
  });
}
CUDA_ALIAS(cudaFreeAsync_ptsz, cudaFreeAsync);

CUDA_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return on_host([&](State& s) {
    if (device) return cudaErrorInvalidDevice;
    if (!pool) return cudaErrorInvalidValue;
    *pool = &s.default_pool;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return on_host([&](State& s) {
    if (device) return cudaErrorInvalidDevice;
    if (!pool) return cudaErrorInvalidValue;
    *pool = s.current_pool;
    return cudaSuccess;
  });
}

template <class F> static cudaError_t with_pool(Pool* pool, F f) {
  return on_device([&](State& s) { return pool == &s.default_pool || s.pools.count(pool) ? f(s, *pool) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (device) return answer(cudaErrorInvalidDevice);
  return with_pool(pool, [](State& s, Pool& p) { return s.current_pool = &p, cudaSuccess; });
}

CUDA_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return on_device([&](State& s) {
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
    if (properties->location.type != cudaMemLocationTypeDevice || properties->location.id) return cudaErrorInvalidDevice;
    *pool = new Pool;
    s.pools.insert(*pool);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return with_pool(pool, [](State& s, Pool& p) {
    if (&p == &s.default_pool) return cudaErrorInvalidValue;
    if (s.current_pool == &p) s.current_pool = &s.default_pool;
    for (auto& a : s.allocations)
      if (a.second.pool == &p) a.second.pool = nullptr;
    s.pools.erase(&p);
    delete &p;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return with_pool(pool, [](State&, Pool&) { return cudaSuccess; });
}

CUDA_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_pool(pool, [&](State&, Pool& p) {
    uint64_t* wide = static_cast<uint64_t*>(value);
    if (!value || attribute < 1 || attribute > cudaMemPoolAttrUsedMemHigh) return cudaErrorInvalidValue;
    if (attribute <= cudaMemPoolReuseAllowInternalDependencies) *static_cast<int*>(value) = p.reuse[attribute];
    else if (attribute == cudaMemPoolAttrReleaseThreshold) *wide = p.threshold;
    // Nothing is reserved ahead of its use here.
    else *wide = attribute == cudaMemPoolAttrUsedMemCurrent || attribute == cudaMemPoolAttrReservedMemCurrent ? p.used : p.used_high;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_pool(pool, [&](State&, Pool& p) {
    if (!value || attribute < 1) return cudaErrorInvalidValue;
    if (attribute <= cudaMemPoolReuseAllowInternalDependencies) p.reuse[attribute] = *static_cast<int*>(value);
    else if (attribute == cudaMemPoolAttrReleaseThreshold) p.threshold = *static_cast<uint64_t*>(value);
    else if (attribute == cudaMemPoolAttrUsedMemHigh || attribute == cudaMemPoolAttrReservedMemHigh) p.used_high = p.used;
    else return cudaErrorInvalidValue;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  return with_pool(pool, [&](State&, Pool&) { return list || !count ? cudaSuccess : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return with_pool(pool, [&](State&, Pool&) {
    if (!flags || !location) return cudaErrorInvalidValue;
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
  });
}

// ---- host memory that kernels may use ----------------------------------------------------------------------
CUDA_API cudaError_t cudaHostRegister(void* p, size_t size, unsigned flags) {
  return on_device([&](State& s) {
    if (!p || !size || flags > kHostRegisterAll) return cudaErrorInvalidValue;
    for (auto& r : s.registrations)
      if (r.first < address_of(p) + size && address_of(p) < r.first + r.second.size) return cudaErrorHostMemoryAlreadyRegistered;
    if (allocation_at(s, p)) return cudaErrorHostMemoryAlreadyRegistered;
    if (ws_register_host(p, size)) {
      complain("memory", format("cudaHostRegister of %zu bytes at %p was refused: %s", size, p, ws_last_message()));
      return cudaErrorInvalidValue;
    }
    s.registrations[address_of(p)] = {size, flags};
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaHostUnregister(void* p) {
  return on_device([&](State& s) {
    if (!p) return cudaErrorInvalidValue;
    if (!s.registrations.erase(address_of(p))) return cudaErrorHostMemoryNotRegistered;
    ws_unregister_host(p);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return on_device([&](State& s) {
    const Allocation* a = allocation_at(s, host);
    if (!device || flags || !((a && a->kind == Memory::pinned) || registration_at(s, host))) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return on_device([&](State& s) {
    const Allocation* a = allocation_at(s, host);
    const Registration* r = registration_at(s, host);
    if (!flags || !((a && a->kind == Memory::pinned) || r)) return cudaErrorInvalidValue;
    *flags = r ? r->flags | kHostAllocMapped : a->flags;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
  return on_host([&](State& s) {
    if (!out) return cudaErrorInvalidValue;
    *out = {};
    void* same = const_cast<void*>(p);
    uint64_t base, size;
    if (const Allocation* a = allocation_at(s, p)) {
      bool host = a->kind == Memory::pinned || a->kind == Memory::managed;
      out->type = a->kind == Memory::pinned ? cudaMemoryTypeHost : a->kind == Memory::managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
      out->devicePointer = same;
      out->hostPointer = host ? same : nullptr;
    } else if (registration_at(s, p)) {
      out->type = cudaMemoryTypeHost;
      out->devicePointer = out->hostPointer = same;
    } else if (ws_find(address_of(p), &base, &size)) {
      out->type = cudaMemoryTypeDevice;
      out->devicePointer = same;
    } else {
      out->type = cudaMemoryTypeUnregistered;
      out->device = -2;
      out->hostPointer = same;
    }
    return cudaSuccess;
  });
}

// ---- hints: nothing moves, so there is nothing to do but to check -----------------------------------------------
static cudaError_t managed_range(const void* p, size_t size) {
  return on_device([&](State& s) {
    uint64_t base = 0;
    const Allocation* a = allocation_at(s, p, &base);
    if (a) return address_of(p) + size <= base + a->size && a->kind == Memory::managed ? cudaSuccess : cudaErrorInvalidValue;
    for (auto& v : s.variables)
      if (v->managed && *v->managed == p) return cudaSuccess;
    return cudaErrorInvalidValue;
  });
}

CUDA_API cudaError_t cudaMemPrefetchAsync(const void* p, size_t size, cudaMemLocation, unsigned flags, cudaStream_t) {
  return flags ? answer(cudaErrorInvalidValue) : managed_range(p, size);
}
CUDA_ALIAS(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync);

CUDA_API cudaError_t cudaMemAdvise(const void* p, size_t size, cudaMemoryAdvise advice, cudaMemLocation) {
  if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy) return answer(cudaErrorInvalidValue);
  return managed_range(p, size);
}

CUDA_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* p, size_t, unsigned) {
  return on_device([&](State& s) {
    if (!known(s, stream)) return cudaErrorInvalidResourceHandle;
    const Allocation* a = allocation_at(s, p);
    return a && a->kind == Memory::managed ? cudaSuccess : cudaErrorInvalidValue;
  });
}
CUDA_ALIAS(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync);
