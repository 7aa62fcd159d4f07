// mbarrier objects (PTX ISA 9.7.13.15): 8 bytes of shared memory that count arrivals and bytes.
//
// Ours: bits 0-19 arrivals that the phase still needs, 20-39 arrivals that a phase needs, 40-60 bytes that it still needs
// (two's complement), 61 the phase's parity, 62-63: 1 (anything else is not an mbarrier; fresh memory has all bits set).
#include <algorithm>
#include <cstring>

#include "async.h"
#include "check.h"
#include "scheduler.h"

namespace ws {

namespace {

constexpr uint32_t kMost = (1u << 20) - 1;

struct Object {
  uint32_t pending, expected;
  int32_t bytes;
  bool odd, valid;
};

Object decode(uint64_t x) {
  return {uint32_t(x & kMost), uint32_t(x >> 20 & kMost), int32_t(int64_t(x << 3) >> 43), (x >> 61 & 1) != 0, x >> 62 == 1};
}

uint64_t encode(const Object& o) {
  return uint64_t(o.pending) | uint64_t(o.expected) << 20 | uint64_t(uint32_t(o.bytes) & 0x1fffffu) << 40 | uint64_t(o.odd) << 61 |
         uint64_t(o.valid) << 62;
}

uint64_t load(const ws_warp& w, uint32_t at) {
  uint64_t x;
  std::memcpy(&x, w.shared + at, 8);
  return x;
}

void store(const ws_warp& w, uint32_t at, uint64_t x) { std::memcpy(w.shared + at, &x, 8); }

void check_place(Warp& w, uint32_t site, const uint32_t* at, uint32_t mask) {
  uint32_t bad = w.shared_size < 8;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t a = at[__builtin_ctz(m)];
    bad |= (a & 7) | uint32_t(a > w.shared_size - 8);
  }
  if (!bad) return;
  uint64_t wide[WS_LANES];
  std::copy(at, at + WS_LANES, wide);
  check_access(w, site, WS_SHARED, WS_ATOMIC, 8, 8, wide, mask, false);
}

std::string name_of(uint32_t at) { return format("the mbarrier at 0x%x in shared memory", at); }

Object open(Warp& w, uint32_t site, uint32_t at, uint32_t lanes) {
  const Object o = decode(load(w, at));
  if (o.valid) return o;
  fail(w, Failure{WS_E_ASYNC, site, lanes,
                  name_of(at) + " is used, but it has not been initialised (mbarrier.init, then a barrier before other threads use it), "
                                "or it has been invalidated or overwritten"});
}

// Saves the object, after completing its phase if nothing is missing.
void close(Warp& w, uint32_t at, Object o) {
  if (!o.pending && !o.bytes) {
    o.odd = !o.odd;
    o.pending = o.expected;
    block_of(&w).worker->advance();
  }
  store(w, at, encode(o));
}

void take_arrivals(Warp& w, uint32_t site, uint32_t at, uint32_t lanes, uint32_t n, Object& o) {
  if (n > o.pending)
    fail(w, Failure{WS_E_ASYNC, site, lanes, name_of(at) + format(" gets %u more arrival%s, but its phase waits for %u of %u", n, n > 1 ? "s" : "", o.pending, o.expected)});
  o.pending -= n;
}

void add_bytes(Warp& w, uint32_t site, uint32_t at, uint32_t lanes, int64_t n, Object& o) {
  const int64_t sum = o.bytes + n;
  if (sum < -int64_t(kMost) || sum > int64_t(kMost))
    fail(w, Failure{WS_E_ASYNC, site, lanes, name_of(at) + format(" would wait for %lld bytes; it can count to %u", static_cast<long long>(sum), kMost)});
  o.bytes = int32_t(sum);
}

// Calls act(lanes with the same mbarrier, its offset).
template <class Act>
void each(const uint32_t* at, uint32_t mask, Act act) {
  while (mask) {
    const uint32_t barrier = at[__builtin_ctz(mask)];
    uint32_t same = 0;
    for (uint32_t m = mask; m; m &= m - 1)
      if (at[__builtin_ctz(m)] == barrier) same |= 1u << __builtin_ctz(m);
    act(same, barrier);
    mask &= ~same;
  }
}

}  // namespace

void arrive_at(Warp& w, uint32_t site, uint32_t barrier, uint32_t lanes, uint32_t n) {
  Object o = open(w, site, barrier, lanes);
  take_arrivals(w, site, barrier, lanes, n, o);
  close(w, barrier, o);
}

void complete_bytes(Warp& w, uint32_t site, uint32_t barrier, uint32_t lanes, uint32_t bytes) {
  Object o = open(w, site, barrier, lanes);
  add_bytes(w, site, barrier, lanes, -int64_t(bytes), o);
  close(w, barrier, o);
}

std::string describe_mbarrier(const Warp& w, uint32_t at) {
  if (at > w.shared_size - 8) return "";
  const Object o = decode(load(w, at));
  if (!o.valid) return name_of(at) + " is not initialised";
  std::string out = name_of(at) + format(" waits for %u of %u arrivals", o.pending, o.expected);
  if (o.bytes > 0) out += format(" and %d more bytes", o.bytes);
  if (o.bytes < 0) out += format(", and got %d bytes more than it was told to expect", -o.bytes);
  return out;
}

}  // namespace ws

using namespace ws;

void ws_mbarrier_init(ws_warp* warp, uint32_t site, const uint32_t* at, const uint32_t* count, uint32_t mask) {
  Warp& w = warp_of(warp);
  check_place(w, site, at, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    if (!count[lane] || count[lane] > kMost)
      fail(w, Failure{WS_E_ASYNC, site, 1u << lane, format("an mbarrier is initialised for %u arrivals; it takes 1 to %u", count[lane], kMost)});
    store(w, at[lane], encode({count[lane], count[lane], 0, false, true}));
  }
}

void ws_mbarrier_inval(ws_warp* warp, uint32_t site, const uint32_t* at, uint32_t mask) {
  Warp& w = warp_of(warp);
  check_place(w, site, at, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    open(w, site, at[lane], 1u << lane);
    store(w, at[lane], 0);
  }
}

void ws_mbarrier_arrive(ws_warp* warp, uint32_t site, uint32_t how, const uint32_t* at, const uint32_t* count, const uint32_t* bytes,
                        uint64_t* state, uint32_t mask) {
  Warp& w = warp_of(warp);
  check_place(w, site, at, mask);
  if (!count && !bytes && !how && !state) {  // the most common one, all lanes at once
    each(at, mask, [&](uint32_t lanes, uint32_t barrier) { arrive_at(w, site, barrier, lanes, uint32_t(__builtin_popcount(lanes))); });
    return;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m)), one = 1u << lane, n = count ? count[lane] : 1;
    Object o = open(w, site, at[lane], one);
    if (state) state[lane] = encode(o);
    if (n == 0 || n > kMost) fail(w, Failure{WS_E_ASYNC, site, one, format("%u arrivals at once; it takes 1 to %u", n, kMost)});
    if (bytes) add_bytes(w, site, at[lane], one, bytes[lane], o);
    take_arrivals(w, site, at[lane], one, n, o);
    if (how & WS_ARRIVE_DROP) o.expected -= n;
    if ((how & WS_ARRIVE_STAY) && !o.pending)
      fail(w, Failure{WS_E_ASYNC, site, one, name_of(at[lane]) + " gets its last arrival by an instruction with .noComplete, which must not complete the phase"});
    close(w, at[lane], o);
  }
}

void ws_mbarrier_raise(ws_warp* warp, uint32_t site, const uint32_t* at, uint32_t mask) {
  Warp& w = warp_of(warp);
  check_place(w, site, at, mask);
  each(at, mask, [&](uint32_t lanes, uint32_t barrier) {
    Object o = open(w, site, barrier, lanes);
    o.pending = std::min(o.pending + uint32_t(__builtin_popcount(lanes)), kMost);
    store(w, barrier, encode(o));
  });
}

void ws_mbarrier_bytes(ws_warp* warp, uint32_t site, const uint32_t* at, const uint32_t* bytes, uint32_t complete, uint32_t mask) {
  Warp& w = warp_of(warp);
  check_place(w, site, at, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    Object o = open(w, site, at[lane], 1u << lane);
    add_bytes(w, site, at[lane], 1u << lane, complete ? -int64_t(bytes[lane]) : int64_t(bytes[lane]), o);
    if (complete) close(w, at[lane], o);
    else store(w, at[lane], encode(o));
  }
}

uint32_t ws_mbarrier_wait(ws_warp* warp, ws_groups* g, uint32_t site, const uint32_t* at, const uint64_t* state, const uint32_t* parity, uint32_t mask) {
  Warp& w = warp_of(warp);
  check_place(w, site, at, mask);
  auto done = [&] {
    uint32_t lanes = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
      const uint32_t lane = uint32_t(__builtin_ctz(m));
      const Object o = open(w, site, at[lane], 1u << lane);
      const bool phase = state ? decode(state[lane]).odd : (parity[lane] & 1) != 0;
      if (o.odd != phase) lanes |= 1u << lane;
    }
    return lanes;
  };
  uint32_t lanes = done();
  if (lanes == mask) return lanes;
  each(at, mask & ~lanes, [&](uint32_t, uint32_t barrier) { force(block_of(warp), barrier); });
  lanes = done();
  if (lanes == mask) return lanes;
  // Others must come first.  A warp that waits for the same thing again and again does not move, whatever its clock says.
  const uint32_t first = at[__builtin_ctz(mask & ~lanes)];
  const uint64_t now = load(w, first) ^ uint64_t(first) << 32;
  w.vain = w.vain && w.vain_state == now ? w.vain + 1 : 1;
  w.vain_state = now;
  w.vain_site = site;
  w.vain_looks = 0;
  w.vain_at = first;
  ws_pause(warp, g, 0, site);
  lanes = done();
  if (lanes == mask) w.vain = 0;
  return lanes;
}

void ws_mbarrier_pending(const uint64_t* state, uint32_t* count) {
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) count[lane] = decode(state[lane]).pending;
}
