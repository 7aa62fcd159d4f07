// Matrices between memory and the registers of a warp: ldmatrix, stmatrix, movmatrix, wmma.load, wmma.store.
#include <algorithm>
#include <cstring>

#include "check.h"
#include "report.h"
#include "scheduler.h"

namespace ws {

namespace {

typedef uint16_t Row __attribute__((vector_size(16), may_alias));
constexpr uint32_t kRow = 16;  // bytes

#ifdef __clang__
#define WS_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define WS_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (Row){__VA_ARGS__})
#endif

Row low(const Row& a, const Row& b) { return WS_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
Row high(const Row& a, const Row& b) { return WS_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

// Interleaving rows n and n + 4 three times moves every element to its place.
void transpose(Row m[8]) {
  for (int round = 0; round < 3; ++round) {
    Row next[8];
    for (int n = 0; n < 4; ++n) {
      next[2 * n] = low(m[n], m[n + 4]);
      next[2 * n + 1] = high(m[n], m[n + 4]);
    }
    std::memcpy(m, next, sizeof next);
  }
}

// Rows of matrices must be whole, aligned and in shared memory.
void check_rows(ws_warp* w, uint32_t site, uint32_t kind, uint32_t rows, const uint32_t* addr) {
  uint32_t bad = w->shared_size < kRow;
  const uint32_t last = w->shared_size - kRow;
  for (uint32_t i = 0; i < rows; ++i) bad |= (addr[i] & (kRow - 1)) | uint32_t(addr[i] > last);
  if (!bad && !w->in_flight) return;
  const uint32_t lanes = rows == WS_LANES ? ~0u : (1u << rows) - 1;
  uint64_t wide[WS_LANES];
  for (uint32_t i = 0; i < WS_LANES; ++i) wide[i] = addr[i];
  if (bad) check_access(warp_of(w), site, WS_SHARED, kind, kRow, kRow, wide, lanes);
  if (w->in_flight) check_flights(warp_of(w), site, kind, kRow, addr, lanes);
}

// ---- wmma --------------------------------------------------------------------------------------------

// Calls visit(offset of a run of `bytes` bytes in memory, byte in the fragment) for all of the fragment: runs are
// whole registers where their elements follow each other in memory, else elements; less than a byte never stands alone.
template <class Visit>
void each_run(const ws_tile& t, uint64_t stride, bool by_rows, uint32_t* bytes, Visit visit) {
  const uint32_t word = std::max(t.bits, 32u) / 8;
  const bool together = by_rows == (t.along != 0) || t.per == 1;
  *bytes = together ? word : t.bits / 8;
  for (uint32_t r = 0; r < t.registers; ++r)
    for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
      const uint64_t row = t.place[r * WS_LANES + lane].row, column = t.place[r * WS_LANES + lane].column;
      const uint32_t at = (r * WS_LANES + lane) * word;
      if (together) {
        visit((by_rows ? row * stride + column : column * stride + row) * t.bits / 8, at);
        continue;
      }
      for (uint32_t i = 0; i < t.per; ++i) {
        const uint64_t y = row + (t.along ? 0 : i), x = column + (t.along ? i : 0);
        visit((by_rows ? y * stride + x : x * stride + y) * t.bits / 8, at + i * t.bits / 8);
      }
    }
}

// The host address of the matrix after a check of all that is accessed.
uint8_t* checked(ws_warp* w, uint32_t site, uint32_t space, uint32_t kind, const ws_tile& t, uint64_t addr, uint64_t stride, bool by_rows) {
  uint32_t bytes;
  uint64_t end = 0;
  each_run(t, stride, by_rows, &bytes, [&](uint64_t offset, uint32_t) { end = std::max(end, offset); });
  const uint32_t align = std::max(bytes, 1u);
  const ws_range& range = w->cache[site];
  const bool inside = space == WS_SHARED ? addr + end + bytes <= w->shared_size : addr - range.base < range.limit && addr + end - range.base < range.limit;
  if (!inside || addr % align || w->in_flight) {
    uint64_t lanes[WS_LANES];
    uint32_t n = 0;
    each_run(t, stride, by_rows, &bytes, [&](uint64_t offset, uint32_t) {
      lanes[n++ % WS_LANES] = addr + offset;
      if (n % WS_LANES) return;
      check_access(warp_of(w), site, space, kind, bytes, align, lanes, ~0u);
      if (w->in_flight) check_flights(warp_of(w), site, space, kind, bytes, lanes, ~0u);
    });
  }
  return host_address(*w, space, addr, 0);
}

}  // namespace

}  // namespace ws

using namespace ws;

void ws_whole_warp(ws_warp* w, uint32_t site, uint32_t mask) {
  if (!mask) return;
  fail(warp_of(w), Failure{WS_E_SYNC, site, mask, "this instruction needs all 32 lanes of the warp, but only lanes " + lane_list(mask) + " execute it"});
}

void ws_shared_offsets(ws_warp* w, uint32_t site, const uint64_t* addr, uint32_t* offset, uint32_t mask) {
  uint32_t bad = 0;
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
    offset[lane] = uint32_t(addr[lane] - WS_SHARED_WINDOW);
    if (addr[lane] - WS_SHARED_WINDOW >= WS_WINDOW_SIZE && (mask >> lane & 1)) bad |= 1u << lane;
  }
  if (!bad) return;
  fail(warp_of(w), Failure{WS_E_OOB, site, bad, format("this instruction works in shared memory, but 0x%llx is not an address in it",
                                                       static_cast<unsigned long long>(addr[__builtin_ctz(bad)]))});
}

void ws_ldmatrix(ws_warp* w, uint32_t site, uint32_t count, uint32_t transposed, const uint32_t* addr, uint32_t* out) {
  check_rows(w, site, WS_LOAD, 8 * count, addr);
  Row* to = reinterpret_cast<Row*>(out);
  for (uint32_t i = 0; i < 8 * count; ++i) std::memcpy(to + i, w->shared + addr[i], kRow);
  if (!transposed) return;
  for (uint32_t i = 0; i < count; ++i) transpose(to + 8 * i);
}

void ws_stmatrix(ws_warp* w, uint32_t site, uint32_t count, uint32_t transposed, const uint32_t* addr, const uint32_t* in) {
  check_rows(w, site, WS_STORE, 8 * count, addr);
  const Row* from = reinterpret_cast<const Row*>(in);
  for (uint32_t i = 0; i < count; ++i) {
    Row m[8];
    std::memcpy(m, from + 8 * i, sizeof m);
    if (transposed) transpose(m);
    for (uint32_t r = 0; r < 8; ++r) std::memcpy(w->shared + addr[8 * i + r], m + r, kRow);
  }
}

void ws_movmatrix(const uint32_t* in, uint32_t* out) {
  Row m[8];
  std::memcpy(m, in, sizeof m);
  transpose(m);
  std::memcpy(out, m, sizeof m);
}

void ws_tile_load(ws_warp* w, uint32_t site, uint32_t space, const ws_tile* t, uint64_t addr, uint32_t stride, uint32_t by_rows, void* out) {
  const uint8_t* from = checked(w, site, space, WS_LOAD, *t, addr, stride, by_rows);
  uint8_t* to = static_cast<uint8_t*>(out);
  uint32_t bytes;
  each_run(*t, stride, by_rows, &bytes, [&](uint64_t offset, uint32_t at) {
    if (bytes == 4) std::memcpy(to + at, from + offset, 4);
    else std::memcpy(to + at, from + offset, bytes);
  });
}

void ws_tile_store(ws_warp* w, uint32_t site, uint32_t space, const ws_tile* t, uint64_t addr, uint32_t stride, uint32_t by_rows, const void* in) {
  uint8_t* to = checked(w, site, space, WS_STORE, *t, addr, stride, by_rows);
  const uint8_t* from = static_cast<const uint8_t*>(in);
  uint32_t bytes;
  each_run(*t, stride, by_rows, &bytes, [&](uint64_t offset, uint32_t at) { std::memcpy(to + offset, from + at, bytes); });
}
