// Arrays, texture objects and surface objects.
#include <algorithm>

#include "runtime.h"

namespace cudart {
namespace {

using ull = unsigned long long;

// Channels of a format and bytes of each; false if there is no such format.
bool channels(const cudaChannelFormatDesc& f, uint32_t& count, uint32_t& bytes) {
  const int bits[] = {f.x, f.y, f.z, f.w};
  count = 0;
  while (count < 4 && bits[count]) ++count;
  for (uint32_t i = 0; i < 4; ++i)
    if (bits[i] != (i < count ? bits[0] : 0)) return false;
  bytes = static_cast<uint32_t>(bits[0]) / 8;
  bool size = bits[0] == 32 || bits[0] == 16 || (bits[0] == 8 && f.f != cudaChannelFormatKindFloat);
  return (count == 1 || count == 2 || count == 4) && size && f.f >= cudaChannelFormatKindSigned && f.f <= cudaChannelFormatKindFloat;
}

cudaError_t make_array(State& s, cudaArray_t* out, const cudaChannelFormatDesc* format, cudaExtent e, unsigned flags) {
  TRY(capture_forbids_unsafe(s));
  if (!out || !format || flags > 15) return cudaErrorInvalidValue;
  uint32_t count, bytes;
  if (!channels(*format, count, bytes)) return cudaErrorInvalidChannelDescriptor;
  bool layered = flags & kArrayLayered;
  if (!e.width || (e.depth && !e.height && !layered) || (layered && !e.depth)) return cudaErrorInvalidValue;
  if (flags & kArrayCubemap) {
    complain("texture", "cube maps are not supported yet");
    return cudaErrorNotSupported;
  }
  auto a = std::make_unique<Array>();
  a->format = *format;
  a->extent = e;
  a->flags = flags;
  a->element = count * bytes;
  a->pitch = (a->width() + 31) / 32 * 32;
  a->plane = a->pitch * a->height();
  a->address = ws_malloc(a->plane * a->depth(), "cudaMallocArray");
  if (!a->address) {
    complain("note", cudart::format("an array of %llu bytes cannot be had: %s", ull(a->plane * a->depth()), ws_last_message()));
    return cudaErrorMemoryAllocation;
  }
  *out = a.release();
  s.arrays.insert(*out);
  return cudaSuccess;
}

template <class F> cudaError_t on_array(const Array* array, F f) {
  return on_device([&](State& s) { return s.arrays.count(const_cast<Array*>(array)) ? f(s) : cudaErrorInvalidResourceHandle; });
}

// `width` bytes and `height` rows at a place of an array.
cudaError_t part(State& s, const Array* a, size_t x, size_t y, size_t width, size_t height, Box& out) {
  if (!s.arrays.count(const_cast<Array*>(a))) return cudaErrorInvalidResourceHandle;
  if (x > a->width() || width > a->width() - x || y > a->height() || height > a->height() - y) return cudaErrorInvalidValue;
  out = box_of(*a, x, y, 0);
  return cudaSuccess;
}

Box memory(const void* p, size_t pitch, size_t height) { return {static_cast<char*>(const_cast<void*>(p)), pitch, pitch * height}; }

cudaError_t to_array(State& s, Array* to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  if (width > pitch && height > 1) return cudaErrorInvalidPitchValue;
  Box box;
  TRY(part(s, to, x, y, width, height, box));
  return copy_box("cudaMemcpy2DToArray", box, memory(from, pitch, height), {width, height, 1}, kind);
}

cudaError_t from_array(State& s, void* to, size_t pitch, const Array* from, size_t x, size_t y, size_t width, size_t height,
                       cudaMemcpyKind kind) {
  if (width > pitch && height > 1) return cudaErrorInvalidPitchValue;
  Box box;
  TRY(part(s, from, x, y, width, height, box));
  return copy_box("cudaMemcpy2DFromArray", memory(to, pitch, height), box, {width, height, 1}, kind);
}

// Calls f(offset, x, y, bytes) for the pieces of `count` bytes that run on from row to row.
template <class F> cudaError_t run_on(State& s, const Array* a, size_t x, size_t y, size_t count, F f) {
  if (!s.arrays.count(const_cast<Array*>(a))) return cudaErrorInvalidResourceHandle;
  for (size_t done = 0; done < count;) {
    if (x >= a->width()) return cudaErrorInvalidValue;
    size_t bytes = std::min(count - done, a->width() - x);
    TRY(f(done, x, y, bytes));
    done += bytes;
    x = 0;
    ++y;
  }
  return cudaSuccess;
}

// ---- objects -----------------------------------------------------------------------------------------------
cudaError_t describe_array(State& s, const Array* a, ws_texture& t, cudaChannelFormatDesc& format) {
  if (!s.arrays.count(const_cast<Array*>(a))) return cudaErrorInvalidResourceHandle;
  format = a->format;
  t.address = a->address;
  t.pitch = a->pitch;
  t.plane = a->plane;
  t.width = a->extent.width;
  t.height = a->height();
  t.depth = a->depth();
  if (a->flags & kArrayLayered) t.layers = t.depth;
  t.dimensions = a->extent.depth && !t.layers ? 3 : a->extent.height ? 2 : 1;
  return cudaSuccess;
}

// Memory that a texture may read: `bytes` of it, aligned as on a GPU, where every allocation is.
cudaError_t in_use(State& s, const void* p, size_t bytes) {
  uint64_t base, size, at = reinterpret_cast<uint64_t>(p);
  if (!p || !ws_find(at, &base, &size) || (at - base) % s.attributes[14]) return cudaErrorInvalidValue;
  if (bytes <= base + size - at) return cudaSuccess;
  complain("texture", cudart::format("a texture of %llu bytes does not fit its memory: %llu bytes are left there (%s)", ull(bytes),
                                     ull(base + size - at), describe(p).c_str()));
  return cudaErrorInvalidValue;
}

// What a resource is made of.
cudaError_t describe_resource(State& s, const cudaResourceDesc& r, ws_texture& t) {
  cudaChannelFormatDesc format{};
  t.height = t.depth = 1;
  uint32_t count, bytes;
  switch (r.resType) {
    case cudaResourceTypeArray:
      TRY(describe_array(s, r.res.array.array, t, format));
      break;
    case cudaResourceTypeLinear: {
      format = r.res.linear.desc;
      if (!channels(format, count, bytes)) return cudaErrorInvalidChannelDescriptor;
      TRY(in_use(s, r.res.linear.devPtr, r.res.linear.sizeInBytes));
      t.address = reinterpret_cast<uint64_t>(r.res.linear.devPtr);
      size_t n = r.res.linear.sizeInBytes / (count * bytes);
      if (n > size_t(s.attributes[69])) return cudaErrorInvalidValue;
      t.width = n;
      t.dimensions = 1;
      t.linear = 1;
      break;
    }
    case cudaResourceTypePitch2D: {
      format = r.res.pitch2D.desc;
      const auto& p = r.res.pitch2D;
      if (!channels(format, count, bytes)) return cudaErrorInvalidChannelDescriptor;
      if (!p.width || !p.height || p.pitchInBytes % s.attributes[51] || p.width * count * bytes > p.pitchInBytes) return cudaErrorInvalidValue;
      TRY(in_use(s, p.devPtr, (p.height - 1) * p.pitchInBytes + p.width * count * bytes));
      t.address = reinterpret_cast<uint64_t>(p.devPtr);
      t.width = p.width;
      t.height = p.height;
      t.pitch = p.pitchInBytes;
      t.dimensions = 2;
      break;
    }
    case cudaResourceTypeMipmappedArray:
      complain("texture", "mipmapped arrays are not supported yet");
      return cudaErrorNotSupported;
    default: return cudaErrorInvalidValue;
  }
  if (!channels(format, t.channels, t.bytes)) return cudaErrorInvalidChannelDescriptor;
  t.kind = format.f;
  return cudaSuccess;
}

cudaError_t describe_reading(const cudaTextureDesc& d, ws_texture& t) {
  for (int i = 0; i < 3; ++i) {
    if (d.addressMode[i] < 0 || d.addressMode[i] > cudaAddressModeBorder) return cudaErrorInvalidValue;
    t.address_mode[i] = d.addressMode[i];
  }
  if (d.sRGB) {
    complain("texture", "textures in the sRGB colour space are not supported yet");
    return cudaErrorNotSupported;
  }
  t.filter = d.filterMode == cudaFilterModeLinear && !t.linear;
  t.normalized_result = d.readMode == cudaReadModeNormalizedFloat && t.kind != cudaChannelFormatKindFloat;
  t.normalized_coordinates = d.normalizedCoords != 0 && !t.linear;
  std::copy(d.borderColor, d.borderColor + 4, t.border);
  if (t.normalized_result && t.bytes == 4) return cudaErrorInvalidNormSetting;
  if (t.filter && t.kind != cudaChannelFormatKindFloat && !t.normalized_result) return cudaErrorInvalidFilterSetting;
  return cudaSuccess;
}

cudaError_t create(uint64_t* out, const ws_texture& t) {
  *out = ws_texture_create(&t);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

}  // namespace

Box box_of(const Array& a, size_t x, size_t y, size_t z) {
  return {reinterpret_cast<char*>(a.address) + z * a.plane + y * a.pitch + x, a.pitch, a.plane};
}

bool fits(const Array& a, const cudaPos& at, const cudaExtent& e) {
  return at.x + e.width <= a.extent.width && at.y + e.height <= a.height() && at.z + e.depth <= a.depth();
}

void destroy_arrays(State& s) {
  for (auto* objects : {&s.textures, &s.surfaces}) {
    for (auto& o : *objects) ws_texture_destroy(o.first);
    objects->clear();
  }
  for (Array* a : s.arrays) {
    ws_free(a->address);
    delete a;
  }
  s.arrays.clear();
}

}  // namespace cudart

using namespace cudart;

// ---- arrays ------------------------------------------------------------------------------------------------
CUDA_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) { return {x, y, z, w, f}; }

CUDA_API cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height, unsigned flags) {
  return on_device([&](State& s) { return make_array(s, array, format, {width, height, 0}, flags); });
}

CUDA_API cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent, unsigned flags) {
  return on_device([&](State& s) { return make_array(s, array, format, extent, flags); });
}

CUDA_API cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return waiting([](State&) { return cudaSuccess; });
  return on_array(array, [&](State& s) {
    TRY(capture_forbids_unsafe(s));
    flush_output();
    ws_free(array->address);
    s.arrays.erase(array);
    delete array;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t array) {
  return on_array(array, [&](State&) {
    if (format) *format = array->format;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, const Array* array) {
  return on_array(array, [&](State&) { return format ? (*format = array->format, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* elements, const cudaChannelFormatDesc*, int device) {
  return on_host([&](State& s) {
    if (device) return cudaErrorInvalidDevice;
    return elements ? (*elements = s.attributes[69], cudaSuccess) : cudaErrorInvalidValue;
  });
}

CUDA_API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                                         cudaMemcpyKind kind) {
  return legacy([&](State& s) { return to_array(s, to, x, y, from, pitch, width, height, kind); });
}
CUDA_ALIAS(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray);

CUDA_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                                              cudaMemcpyKind kind, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy, [=](State& t) { return to_array(t, to, x, y, from, pitch, width, height, kind); });
  });
}
CUDA_ALIAS(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync);

CUDA_API cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, const Array* from, size_t x, size_t y, size_t width, size_t height,
                                           cudaMemcpyKind kind) {
  return legacy([&](State& s) { return from_array(s, to, pitch, from, x, y, width, height, kind); });
}
CUDA_ALIAS(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray);

CUDA_API cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, const Array* from, size_t x, size_t y, size_t width, size_t height,
                                                cudaMemcpyKind kind, cudaStream_t stream) {
  return on_device([&](State& s) {
    return enqueue(s, stream, cudaGraphNodeTypeMemcpy, [=](State& t) { return from_array(t, to, pitch, from, x, y, width, height, kind); });
  });
}
CUDA_ALIAS(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync);

CUDA_API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, const Array* from, size_t from_x, size_t from_y,
                                              size_t width, size_t height, cudaMemcpyKind kind) {
  return legacy([&](State& s) {
    Box a, b;
    TRY(part(s, to, to_x, to_y, width, height, a));
    TRY(part(s, from, from_x, from_y, width, height, b));
    return copy_box("cudaMemcpy2DArrayToArray", a, b, {width, height, 1}, kind);
  });
}
CUDA_ALIAS(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray);

CUDA_API cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t count, cudaMemcpyKind kind) {
  return legacy([&](State& s) {
    return run_on(s, to, x, y, count, [&](size_t done, size_t at_x, size_t at_y, size_t bytes) {
      return to_array(s, to, at_x, at_y, static_cast<const char*>(from) + done, bytes, bytes, 1, kind);
    });
  });
}
CUDA_ALIAS(cudaMemcpyToArray_ptds, cudaMemcpyToArray);

CUDA_API cudaError_t cudaMemcpyFromArray(void* to, const Array* from, size_t x, size_t y, size_t count, cudaMemcpyKind kind) {
  return legacy([&](State& s) {
    return run_on(s, from, x, y, count, [&](size_t done, size_t at_x, size_t at_y, size_t bytes) {
      return from_array(s, static_cast<char*>(to) + done, bytes, from, at_x, at_y, bytes, 1, kind);
    });
  });
}
CUDA_ALIAS(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray);

CUDA_API cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToArray(to, x, y, from, count, kind);
}
CUDA_ALIAS(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync);

CUDA_API cudaError_t cudaMemcpyFromArrayAsync(void* to, const Array* from, size_t x, size_t y, size_t count, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyFromArray(to, from, x, y, count, kind);
}
CUDA_ALIAS(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync);

// ---- texture objects ---------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaCreateTextureObject(uint64_t* out, const cudaResourceDesc* resource, const cudaTextureDesc* reading, const void* view) {
  return on_device([&](State& s) {
    if (!out || !resource || !reading) return cudaErrorInvalidValue;
    if (view) {
      complain("texture", "views of a texture's resource in another format are not supported yet");
      return cudaErrorNotSupported;
    }
    ws_texture t{};
    TRY(describe_resource(s, *resource, t));
    TRY(describe_reading(*reading, t));
    TRY(create(out, t));
    s.textures[*out] = {*resource, *reading};
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDestroyTextureObject(uint64_t object) {
  return on_device([&](State& s) {
    // What is no object is let pass, as on a GPU.
    if (s.textures.erase(object)) ws_texture_destroy(object);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, uint64_t object) {
  return on_device([&](State& s) {
    if (!resource || !s.textures.count(object)) return cudaErrorInvalidValue;
    *resource = s.textures[object].first;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* reading, uint64_t object) {
  return on_device([&](State& s) {
    if (!reading || !s.textures.count(object)) return cudaErrorInvalidValue;
    *reading = s.textures[object].second;
    return cudaSuccess;
  });
}

// ---- surface objects ---------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaCreateSurfaceObject(uint64_t* out, const cudaResourceDesc* resource) {
  return on_device([&](State& s) {
    if (!out || !resource || resource->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
    ws_texture t{};
    TRY(describe_resource(s, *resource, t));
    if (!(resource->res.array.array->flags & kArraySurfaceLoadStore))
      complain("note", "a surface object of an array that was made without cudaArraySurfaceLoadStore: other GPUs may refuse it");
    t.writable = 1;
    TRY(create(out, t));
    s.surfaces[*out] = {*resource, {}};
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaDestroySurfaceObject(uint64_t object) {
  return on_device([&](State& s) {
    if (s.surfaces.erase(object)) ws_texture_destroy(object);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, uint64_t object) {
  return on_device([&](State& s) {
    if (!resource || !s.surfaces.count(object)) return cudaErrorInvalidValue;
    *resource = s.surfaces[object].first;
    return cudaSuccess;
  });
}
