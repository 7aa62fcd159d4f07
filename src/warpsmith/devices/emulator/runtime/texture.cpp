// Texture and surface objects: what the CUDA programming guide says of fetches (appendix "Texture Fetching").
// What the guide leaves open (how weights are rounded, in what precision each format is filtered, the border of
// integers) is as an H200 does it, bit by bit: tests/cudart/golden/textures.cu.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>

#include "check.h"
#include "memory.h"
#include "report.h"

namespace ws {
namespace {

constexpr uint32_t kMost = 1 << 16;
std::atomic<const ws_texture*> table[kMost];
std::mutex table_mutex;

const ws_texture* find(uint64_t handle) { return handle && handle < kMost ? table[handle].load(std::memory_order_acquire) : nullptr; }

float as_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
uint32_t as_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

float from_half(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
  if (e == 31) return as_float(sign | 0x7f800000 | m << 13);
  if (e) return as_float(sign | (e + 112) << 23 | m << 13);
  float tiny = std::ldexp(static_cast<float>(m), -24);
  return sign ? -tiny : tiny;
}

struct Texel { uint32_t bits[4]; };

bool gives_floats(const ws_texture& t) { return t.kind == 2 || t.normalized_result; }

// One channel as a fetch gives it: bits of a float, or a sign- or zero-extended integer.
uint32_t channel(const ws_texture& t, const uint8_t* at) {
  if (t.kind == 2) {
    if (t.bytes == 2) {
      uint16_t h;
      memcpy(&h, at, 2);
      return as_bits(from_half(h));
    }
    uint32_t bits;
    memcpy(&bits, at, 4);
    return bits;
  }
  uint32_t raw = 0;
  memcpy(&raw, at, t.bytes);
  int shift = 32 - 8 * t.bytes;
  int32_t value = static_cast<int32_t>(raw << shift) >> shift;
  if (!t.normalized_result) return t.kind == 0 ? value : raw;
  float most = t.kind == 0 ? float((1u << (8 * t.bytes - 1)) - 1) : float((1ull << 8 * t.bytes) - 1);
  return as_bits(t.kind == 0 ? std::max(float(value) / most, -1.0f) : float(raw) / most);
}

// Integers have the bits of the border's colour, fractions are cut off where theirs end.
Texel border(const ws_texture& t) {
  Texel out{};
  for (uint32_t c = 0; c < t.channels; ++c) {
    float v = t.border[c];
    if (t.kind == 2) {
      out.bits[c] = as_bits(v);
    } else if (t.normalized_result) {
      out.bits[c] = as_bits(std::min(std::max(v, t.kind == 0 ? -1.0f : 0.0f), 1.0f));
    } else {
      int shift = 32 - 8 * t.bytes;
      uint32_t raw = as_bits(v) << shift;
      out.bits[c] = t.kind == 0 ? static_cast<uint32_t>(static_cast<int32_t>(raw) >> shift) : raw >> shift;
    }
  }
  return out;
}

// A texel's index after the address mode; -1: outside, where the border is.
int64_t place(const ws_texture& t, int axis, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  uint32_t mode = t.address_mode[axis];
  if (!t.normalized_coordinates && mode < WS_BORDER) mode = WS_CLAMP;
  switch (mode) {
    case WS_WRAP: return (i % n + n) % n;
    case WS_MIRROR: {
      int64_t m = (i % (2 * n) + 2 * n) % (2 * n);
      return m < n ? m : 2 * n - 1 - m;
    }
    case WS_CLAMP: return i < 0 ? 0 : n - 1;
    default: return -1;
  }
}

Texel texel(const ws_texture& t, int64_t x, int64_t y, int64_t z, int64_t layer) {
  x = place(t, 0, x, t.width);
  y = t.dimensions > 1 ? place(t, 1, y, t.height) : 0;
  z = t.dimensions > 2 ? place(t, 2, z, t.depth) : layer;
  if (x < 0 || y < 0 || z < 0) return border(t);
  const uint8_t* at = memory::host(t.address) + z * t.plane + y * t.pitch + x * t.channels * t.bytes;
  Texel out{};
  for (uint32_t c = 0; c < t.channels; ++c) out.bits[c] = channel(t, at + c * t.bytes);
  return out;
}

// In texels.  A normalised coordinate has 21 bits of fraction; what is far outside only has to stay there.
double position(const ws_texture& t, float c, uint32_t n) {
  double x = c;
  if (std::isnan(x)) return 0;
  if (t.normalized_coordinates) x = std::floor(x * 0x1p21) * 0x1p-21 * n;
  return std::min(std::max(x, -1e15), 1e15);
}

struct Weighted { int64_t at; int upper; };  // between `at` and the next one, so many 256ths of the latter

Weighted between(double x) {
  double steps = std::floor((x - 0.5) * 256 + 0.5), whole = std::floor(steps / 256);
  return {static_cast<int64_t>(whole), static_cast<int>(steps - 256 * whole)};
}

// Weights of the corners in 256ths: the whole is split along z, the parts along x, and theirs along y.  A part is
// rounded (the lower x's downwards from the middle) and the other is what remains, so that the sum is always 256.
void weights(const Weighted w[3], int out[8]) {
  for (int z = 0; z < 2; ++z) {
    const int slice = z ? w[2].upper : 256 - w[2].upper, right = (slice * w[0].upper + 128) / 256;
    for (int x = 0; x < 2; ++x) {
      const int column = x ? right : slice - right, top = (column * w[1].upper + 127 + x) / 256;
      out[4 * z + x] = column - top;
      out[4 * z + 2 + x] = top;
    }
  }
}

// The value of one channel in the arithmetic in which its format is filtered: fractions in 16-bit integers.
double scale_of(const ws_texture& t) { return t.kind == 2 ? 1 : t.kind == 0 ? 32767 : 65535; }

float to_half_and_back(double v) {
  if (v == 0 || !std::isfinite(v)) return static_cast<float>(v);
  int e;
  std::frexp(v, &e);
  double unit = std::ldexp(1.0, std::max(e - 11, -24));
  return static_cast<float>(std::nearbyint(v / unit) * unit);
}

Texel interpolate(const ws_texture& t, const double c[3], int64_t layer) {
  Weighted w[3]{};
  for (uint32_t d = 0; d < t.dimensions; ++d) w[d] = between(c[d]);
  // A single row lies at height 0: with a border around it, it is always half in it.
  bool half = t.dimensions == 1 && !t.layers && t.address_mode[1] == WS_BORDER;
  if (half) w[1] = {-1, 128};
  int weight[8];
  weights(w, weight);
  double sum[4] = {}, scale = scale_of(t);
  for (uint32_t corner = 0; corner < 8; ++corner) {
    if (weight[corner] == 0) continue;
    int64_t at[3];
    for (int d = 0; d < 3; ++d) at[d] = w[d].at + (corner >> d & 1);
    Texel v = half && at[1] != 0 ? border(t) : texel(t, at[0], at[1], at[2], layer);
    for (uint32_t k = 0; k < t.channels; ++k) {
      double x = as_float(v.bits[k]);
      if (t.kind != 2) x = std::nearbyint(x * scale);
      sum[k] += weight[corner] * x;
    }
  }
  Texel out{};
  for (uint32_t k = 0; k < t.channels; ++k) {
    double x = sum[k] / 256;
    float v = t.kind != 2 ? static_cast<float>(std::floor(x + 0.5)) / static_cast<float>(scale) : t.bytes == 2 ? to_half_and_back(x) : static_cast<float>(x);
    out.bits[k] = as_bits(v);
  }
  return out;
}

Texel gather(const ws_texture& t, const double c[3], int64_t layer, uint32_t component) {
  int64_t x = between(c[0]).at, y = between(c[1]).at;
  const int64_t dx[] = {0, 1, 1, 0}, dy[] = {1, 1, 0, 0};
  Texel out{};
  for (int k = 0; k < 4; ++k) out.bits[k] = texel(t, x + dx[k], y + dy[k], 0, layer).bits[component];
  return out;
}

[[noreturn]] void refuse(ws_warp* w, uint32_t site, uint32_t lane, uint32_t code, const std::string& why) {
  ws_fail(w, site, 1u << lane, code, why.c_str());
  __builtin_unreachable();
}

std::string shape(uint32_t dimensions, bool layered) { return std::to_string(dimensions) + "-dimensional" + (layered ? " layered" : ""); }

// The object behind a handle, when an instruction of this shape may use it.
const ws_texture& object(ws_warp* w, uint32_t site, uint32_t lane, uint64_t handle, uint32_t dimensions, bool layered, bool surface) {
  const char* what = surface ? "surface" : "texture";
  const ws_texture* t = find(handle);
  if (!t || bool(t->writable) != surface)
    refuse(w, site, lane, WS_E_NULL, std::string("uses ") + std::to_string(handle) + ", which is not a " + what + " object" +
           (handle ? " (or no longer one)" : ""));
  bool plain = t->linear && dimensions <= t->dimensions;
  if (!plain && (t->dimensions != dimensions || bool(t->layers) != layered))
    refuse(w, site, lane, WS_E_UNSUPPORTED, std::string("reads a ") + shape(t->dimensions, t->layers) + " " + what + " as a " +
           shape(dimensions, layered) + " one");
  uint64_t base = 0, size = 0;
  if (!ws_find(t->address, &base, &size))
    refuse(w, site, lane, WS_E_MEMORY, std::string("uses a ") + what + " of memory that has been freed");
  return *t;
}

Texel fetch(const ws_texture& t, uint32_t flags, const uint32_t c[3], int64_t layer) {
  uint32_t n[] = {t.width, t.height, t.depth};
  if (flags & WS_TEX_INTEGER) {
    int64_t i[3];
    for (int d = 0; d < 3; ++d) i[d] = static_cast<int32_t>(c[d]);
    if (t.linear && (i[0] < 0 || i[0] >= t.width)) return {};
    return texel(t, i[0], i[1], i[2], layer);
  }
  double p[3];
  for (int d = 0; d < 3; ++d) p[d] = position(t, as_float(c[d]), n[d]);
  if (flags & WS_TEX_GATHER) return gather(t, p, layer, flags >> 4 & 3);
  if (t.filter && gives_floats(t)) return interpolate(t, p, layer);
  return texel(t, static_cast<int64_t>(std::floor(p[0])), static_cast<int64_t>(std::floor(p[1])), static_cast<int64_t>(std::floor(p[2])),
               layer);
}

}  // namespace
}  // namespace ws

using namespace ws;

uint64_t ws_texture_create(const ws_texture* t) {
  std::lock_guard<std::mutex> lock(table_mutex);
  for (uint32_t i = 1; i < kMost; ++i) {
    if (table[i].load(std::memory_order_relaxed)) continue;
    table[i].store(new ws_texture(*t), std::memory_order_release);
    return i;
  }
  return 0;
}

int ws_texture_destroy(uint64_t handle) {
  std::lock_guard<std::mutex> lock(table_mutex);
  const ws_texture* t = find(handle);
  if (!t) return WS_E_MEMORY;
  // A kernel of another host thread may be reading it right now, so its few bytes stay.
  table[handle].store(nullptr, std::memory_order_release);
  return 0;
}

void ws_texture_fetch(ws_warp* w, uint32_t site, uint32_t flags, uint32_t dimensions, const uint64_t* handle, const uint32_t* x,
                      const uint32_t* y, const uint32_t* z, const uint32_t* layer, uint32_t* out, uint32_t mask) {
  const ws_texture* t = nullptr;
  uint64_t last = 0;
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
    if (!(mask >> lane & 1)) continue;
    if (!t || handle[lane] != last) t = &object(w, site, lane, last = handle[lane], dimensions, layer != nullptr, false);
    const uint32_t c[] = {x[lane], y ? y[lane] : 0, z ? z[lane] : 0};
    int64_t l = layer ? std::min(layer[lane], t->layers - 1) : 0;  // a negative one is a very large one
    Texel v = fetch(*t, flags, c, l);
    for (int k = 0; k < 4; ++k) out[k * WS_LANES + lane] = v.bits[k];
  }
}

namespace ws {
namespace {

// Where a lane's access begins in its surface; null: outside of it, where nothing happens.
uint8_t* surface_place(ws_warp* w, uint32_t site, uint32_t lane, const ws_texture& t, const char* verb, uint32_t outside, int64_t at[3],
                       uint32_t bytes) {
  int64_t row = int64_t(t.width) * t.channels * t.bytes;
  const int64_t end[] = {row - bytes + 1, t.height, t.layers ? t.layers : t.depth};
  if (at[0] % bytes)
    refuse(w, site, lane, WS_E_MISALIGNED, std::string(verb) + " a surface at byte " + std::to_string(at[0]) +
           " of a row, not a multiple of the " + std::to_string(bytes) + " bytes of the access (x counts bytes)");
  for (int d = 0; d < 3; ++d) {
    if (at[d] >= 0 && at[d] < end[d]) continue;
    if (outside == 2) return nullptr;
    if (outside == 0)
      refuse(w, site, lane, WS_E_OOB, std::string(verb) + " outside of a surface: " + "xyz"[d] + " is " + std::to_string(at[d]) + " and the surface has " +
             std::to_string(d ? end[d] : row) + (d ? "" : " bytes a row (x counts bytes)"));
    at[d] = at[d] < 0 ? 0 : d ? end[d] - 1 : row - bytes;
  }
  return memory::host(t.address) + at[2] * t.plane + at[1] * t.pitch + at[0];
}

}  // namespace
}  // namespace ws

void ws_surface_access(ws_warp* w, uint32_t site, uint32_t store, uint32_t outside, uint32_t dimensions, uint32_t items, uint32_t width,
                       const uint64_t* handle, const int32_t* x, const int32_t* y, const int32_t* z, const int32_t* layer, void* data,
                       uint32_t mask) {
  const size_t stride = std::max<size_t>(128, 32 * width);
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
    if (!(mask >> lane & 1)) continue;
    const ws_texture& t = object(w, site, lane, handle[lane], dimensions, layer != nullptr, true);
    int64_t at[] = {x[lane], y ? y[lane] : 0, layer ? layer[lane] : z ? z[lane] : 0};
    uint8_t* there = surface_place(w, site, lane, t, store ? "writes" : "reads", outside, at, items * width);
    for (uint32_t i = 0; i < items; ++i) {
      uint8_t* own = static_cast<uint8_t*>(data) + i * stride + size_t(lane) * width;
      if (!there) {
        if (!store) memset(own, 0, width);
      } else if (store) {
        memcpy(there + i * width, own, width);
      } else {
        memcpy(own, there + i * width, width);
      }
    }
  }
}
