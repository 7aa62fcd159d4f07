// cp.async and cp.async.bulk (PTX ISA 9.7.9.25).
#include "async.h"

#include <algorithm>
#include <cstring>

#include "check.h"
#include "scheduler.h"

namespace ws {

namespace {

constexpr uint32_t kAll = ~0u;

Traffic& traffic_of(Warp& w) {
  if (!w.traffic) {
    w.traffic = std::make_unique<Traffic>();
    std::memset(w.traffic->own, 0, sizeof w.traffic->own);
    std::memset(w.traffic->bulk_groups, 0, sizeof w.traffic->bulk_groups);
  }
  block_of(&w).traffic = true;
  return *w.traffic;
}

// ---- marks -------------------------------------------------------------------------------------------

void set_marks(Block& b, uint32_t at, uint32_t bytes, Mark m) { std::memset(&b.marks.mark[at / 4], m, (bytes + 3) / 4); }

void in_flight(Block& b, int change) {
  b.marks.flights += uint32_t(change);
  const uint32_t some = b.marks.flights != 0;
  if (b.warps[0].in_flight == some) return;
  for (uint32_t i = 0; i < b.warp_count; ++i) b.warps[i].in_flight = some;
}

bool marking(Block& b) {
  if (!b.launch->check) return false;
  if (b.marks.mark.size() * 4 < b.launch->shared_size) b.marks.mark.assign(b.launch->shared_size / 4 + 1, kFree);
  return true;
}

bool overlap(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

// A copy that has to do with these bytes.
struct Found {
  const Warp* warp = nullptr;
  uint32_t site = kNone, lane = 0;
  bool bulk = false, source = false;
  const uint8_t* from = nullptr;
};

Found find_flight(Block& b, uint32_t at, uint32_t bytes) {
  for (uint32_t i = 0; i < b.warp_count; ++i) {
    Warp& w = b.warps[i];
    if (!w.traffic) continue;
    Traffic& t = *w.traffic;
    for (uint32_t n = t.count; n--;) {
      const Flight& f = t.at(n);
      if (f.kind != Flight::copy) continue;
      for (uint32_t m = f.lanes; m; m &= m - 1) {
        const uint32_t lane = uint32_t(__builtin_ctz(m));
        if (overlap(f.to[lane], f.bytes, at, bytes)) return {&w, f.site, lane, false, false, f.from[lane]};
      }
    }
    for (const Bulk& x : t.bulks)
      if (!x.taken && overlap(x.shared, x.bytes, at, bytes)) return {&w, x.site, x.lane, true, x.kind == Bulk::store, x.global};
  }
  return {};
}

std::string describe(const Block& b, const Found& f) {
  return format("%s by thread (%u,%u,%u)", describe_site(b.launch->info, f.site).c_str(), f.warp->tid[0][f.lane], f.warp->tid[1][f.lane],
                f.warp->tid[2][f.lane]);
}

[[noreturn]] void fail_flight(Warp& w, uint32_t site, uint32_t kind, uint32_t bytes, uint32_t at, uint32_t lanes, const Found& f) {
  const Block& b = block_of(&w);
  std::string text = format("%s of %s at 0x%x in shared memory, ", access_name(kind), plural(bytes, "byte").c_str(), at);
  if (f.source) {
    text += "which the asynchronous copy " + describe(b, f) + " may still be reading: wait for it first (cp.async.bulk.wait_group.read)";
  } else {
    text += "into which the asynchronous copy " + describe(b, f) + " may still be writing: ";
    if (f.bulk) text += "wait for its mbarrier first";
    else text += "that thread must wait for it first (cp.async.wait_group, or an mbarrier)";
    if (!f.bulk && (f.warp != &w || !(lanes >> f.lane & 1))) text += ", and other threads need a barrier after that";
  }
  fail(w, Failure{WS_E_ASYNC, site, lanes, text});
}

// New copies to (or from) bytes of shared memory: no other may be under way to them.
void mark_new(Warp& w, uint32_t site, uint32_t lane, uint32_t at, uint32_t bytes, Mark m, const uint8_t* from) {
  Block& b = block_of(&w);
  const uint8_t* first = &b.marks.mark[at / 4];
  const uint8_t* end = first + (bytes + 3) / 4;
  const bool clash = m == kDestination ? std::any_of(first, end, [](uint8_t x) { return x != kFree; })
                                       : std::any_of(first, end, [](uint8_t x) { return x == kDestination; });
  if (clash) {
    const Found f = find_flight(b, at, bytes);
    // The same copy by several threads is pointless, but harmless.
    if (f.warp && (f.from != from || f.source || m == kSource))
      fail_flight(w, site, m == kDestination ? WS_STORE : WS_LOAD, bytes, at, 1u << lane, f);
  }
  set_marks(b, at, bytes, m);
}

// ---- cp.async ----------------------------------------------------------------------------------------

template <uint32_t kBytes>
void copy_lanes(const Flight& f, uint32_t lanes, uint8_t* shared) {
  for (; lanes; lanes &= lanes - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(lanes));
    uint8_t* to = shared + f.to[lane];
    if (f.valid[lane] == kBytes) {
      std::memcpy(to, f.from[lane], kBytes);
      continue;
    }
    std::memset(to, 0, kBytes);
    std::memcpy(to, f.from[lane], f.valid[lane]);
  }
}

void copy(Warp& w, Flight& f, uint32_t lanes) {
  if (f.bytes == 16) copy_lanes<16>(f, lanes, w.shared);
  else if (f.bytes == 8) copy_lanes<8>(f, lanes, w.shared);
  else copy_lanes<4>(f, lanes, w.shared);
  f.lanes &= ~lanes;
  Block& b = block_of(&w);
  if (!b.launch->check) return;
  for (uint32_t m = lanes; m; m &= m - 1) set_marks(b, f.to[__builtin_ctz(m)], f.bytes, kFree);
  if (!f.lanes) in_flight(b, -1);
}

// Arrivals of lanes whose copies are all done.
void arrive(Warp& w, Flight& f, uint32_t lanes) {
  f.lanes &= ~lanes;
  while (lanes) {
    const uint32_t barrier = f.to[__builtin_ctz(lanes)];
    uint32_t same = 0;
    for (uint32_t m = lanes; m; m &= m - 1)
      if (f.to[__builtin_ctz(m)] == barrier) same |= 1u << __builtin_ctz(m);
    arrive_at(w, f.site, barrier, same, uint32_t(__builtin_popcount(same)));
    lanes &= ~same;
  }
}

// What is done, for lanes of the mask, up to record n: copies of groups before limit[lane], and the arrivals after them.
void land(Warp& w, uint32_t lanes, const uint32_t* limit, uint32_t n) {
  Traffic& t = *w.traffic;
  uint32_t pending = 0;  // lanes with earlier copies that are not done
  for (uint32_t i = 0; i < n; ++i) {
    Flight& f = t.at(i);
    const uint32_t mine = f.lanes & lanes;
    if (f.kind == Flight::arrive) {
      if (mine & ~pending) arrive(w, f, mine & ~pending);
      continue;
    }
    uint32_t go = mine;
    if (limit)
      for (uint32_t m = mine; m; m &= m - 1)
        if (f.group >= limit[__builtin_ctz(m)]) go &= ~(1u << __builtin_ctz(m));
    if (go) copy(w, f, go);
    pending |= f.lanes;
  }
  t.drop_finished();
}

void force_warp(Warp& w, uint32_t barrier) {
  Traffic& t = *w.traffic;
  // Lanes with an arrival at this mbarrier behind a record: their copies up to there must be done.
  uint32_t last = 0, lanes = 0;
  for (uint32_t i = 0; i < t.count; ++i) {
    const Flight& f = t.at(i);
    if (f.kind != Flight::arrive) continue;
    for (uint32_t m = f.lanes; m; m &= m - 1)
      if (f.to[__builtin_ctz(m)] == barrier) {
        lanes |= 1u << __builtin_ctz(m);
        last = i + 1;
      }
  }
  if (lanes) land(w, lanes, nullptr, last);
}

// ---- cp.async.bulk -----------------------------------------------------------------------------------

void bulk_load(Warp& w, Bulk& x) {
  Block& b = block_of(&w);
  std::memcpy(w.shared + x.shared, x.global, x.bytes);
  if (b.launch->check) {
    set_marks(b, x.shared, x.bytes, kFree);
    in_flight(b, -1);
  }
  complete_bytes(w, x.site, x.barrier, 1u << x.lane, x.bytes);
}

void take_source(Warp& w, Bulk& x) {
  if (x.taken) return;
  Block& b = block_of(&w);
  x.data.assign(w.shared + x.shared, w.shared + x.shared + x.bytes);
  x.taken = true;
  if (!b.launch->check) return;
  set_marks(b, x.shared, x.bytes, kFree);
  in_flight(b, -1);
}

void bulk_store(Warp& w, Bulk& x) {
  take_source(w, x);
  std::memcpy(x.global, x.data.data(), x.bytes);
}

// Both ends must be inside and multiples of 16, and so must the size.
void check_bulk(Warp& w, uint32_t site, uint32_t lane, uint32_t shared, uint64_t global, uint32_t bytes, uint32_t shared_kind, uint32_t global_kind) {
  if (bytes % 16) fail(w, Failure{WS_E_ASYNC, site, 1u << lane, format("a bulk copy of %u bytes; the size must be a multiple of 16", bytes)});
  uint64_t addr[WS_LANES];
  addr[lane] = shared;
  check_access(w, site, WS_SHARED, shared_kind, bytes, 16, addr, 1u << lane, false);
  addr[lane] = global;
  check_access(w, site, WS_GLOBAL, global_kind, bytes, 16, addr, 1u << lane, false);
}

template <class Test, class Act>
void take_bulks(Warp& w, Test test, Act act) {
  std::vector<Bulk>& all = w.traffic->bulks;
  for (Bulk& x : all)
    if (test(x)) act(x);
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Bulk& x) { return test(x); }), all.end());
}

}  // namespace

Flight& Traffic::add() {
  if (count == ring.size()) {
    std::vector<Flight> more(std::max<size_t>(16, 2 * ring.size()));
    for (uint32_t i = 0; i < count; ++i) more[i] = at(i);
    ring.swap(more);
    head = 0;
  }
  return at(count++);
}

void Traffic::drop_finished() {
  while (count && !ring[head].lanes) {
    head = (head + 1) & uint32_t(ring.size() - 1);
    --count;
  }
}

void Traffic::commit(uint32_t lanes, uint32_t live) {
  if (even && lanes == live) {
    ++common;
    return;
  }
  if (even) std::fill(own, own + WS_LANES, common);
  even = false;
  for (uint32_t m = lanes; m; m &= m - 1) ++own[__builtin_ctz(m)];
}

void finish_traffic(Block& b) {
  for (uint32_t i = 0; i < b.warp_count; ++i) {
    Warp& w = b.warps[i];
    if (w.traffic) take_bulks(w, [](const Bulk& x) { return x.kind == Bulk::store; }, [&](Bulk& x) { bulk_store(w, x); });
  }
}

void reset_traffic(Block& b) {
  for (Warp& w : b.warps) {
    w.in_flight = 0;
    if (!w.traffic) continue;
    w.traffic->count = 0;
    w.traffic->even = true;
    w.traffic->common = 0;
    w.traffic->bulks.clear();
  }
  if (b.marks.flights) std::fill(b.marks.mark.begin(), b.marks.mark.end(), kFree);
  b.marks.flights = 0;
  b.traffic = false;
}

void force(Block& b, uint32_t barrier) {
  if (!b.traffic) return;
  for (uint32_t i = 0; i < b.warp_count; ++i) {
    Warp& w = b.warps[i];
    if (!w.traffic) continue;
    if (w.traffic->count) force_warp(w, barrier);
    if (w.traffic->bulks.empty()) continue;
    take_bulks(w, [&](const Bulk& x) { return x.kind == Bulk::load && x.barrier == barrier; }, [&](Bulk& x) { bulk_load(w, x); });
  }
}

void check_flights(Warp& w, uint32_t site, uint32_t kind, uint32_t bytes, const uint32_t* offset, uint32_t mask) {
  Block& b = block_of(&w);
  const uint8_t* mark = b.marks.mark.data();
  uint32_t bad = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m)), first = offset[lane] / 4, end = (offset[lane] + bytes - 1) / 4 + 1;
    uint32_t four = 0;
    if (end - first <= 4) std::memcpy(&four, mark + first, end - first);
    if (end - first <= 4 && !four) continue;
    for (uint32_t at = first; at < end; ++at)
      if (mark[at] == kDestination || (mark[at] == kSource && kind != WS_LOAD)) bad |= 1u << lane;
  }
  if (!bad) return;
  const uint32_t at = offset[__builtin_ctz(bad)];
  const Found f = find_flight(b, at, bytes);
  if (f.warp) fail_flight(w, site, kind, bytes, at, bad, f);
}

void check_flights(Warp& w, uint32_t site, uint32_t space, uint32_t kind, uint32_t bytes, const uint64_t* addr, uint32_t mask) {
  uint32_t offset[WS_LANES], inside = 0;
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
    offset[lane] = uint32_t(addr[lane]);
    if (space == WS_SHARED || (space == WS_GENERIC && addr[lane] - WS_SHARED_WINDOW < WS_WINDOW_SIZE)) inside |= 1u << lane;
  }
  check_flights(w, site, kind, bytes, offset, mask & inside);
}

}  // namespace ws

using namespace ws;

void ws_in_flight(ws_warp* w, uint32_t site, uint32_t kind, uint32_t bytes, const uint32_t* offset, uint32_t mask) {
  check_flights(warp_of(w), site, kind, bytes, offset, mask);
}

void ws_cp_async(ws_warp* warp, uint32_t site, uint32_t bytes, const uint32_t* to, const uint64_t* from, const uint32_t* valid, uint32_t mask) {
  if (!mask) return;
  Warp& w = warp_of(warp);
  Block& b = block_of(warp);
  uint32_t bad = w.shared_size < bytes, read = 0;
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
    if (!(mask >> lane & 1)) continue;
    bad |= (to[lane] & (bytes - 1)) | uint32_t(to[lane] > w.shared_size - bytes);
    if (!valid || valid[lane]) read |= 1u << lane;
    if (valid && valid[lane] > bytes)
      fail(w, Failure{WS_E_ASYNC, site, 1u << lane, format("the source of a copy of %u bytes is given %u bytes", bytes, valid[lane])});
  }
  if (bad) {
    uint64_t wide[WS_LANES];
    std::copy(to, to + WS_LANES, wide);
    check_access(w, site, WS_SHARED, WS_STORE, bytes, bytes, wide, mask, false);
  }
  const ws_range range = w.cache[site];
  uint32_t unknown = 0;
  for (uint32_t m = read; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    if (from[lane] - range.base >= range.limit || (from[lane] & (bytes - 1))) unknown |= 1u << lane;
  }
  if (unknown) {
    uint32_t whole = unknown;
    for (uint32_t m = unknown; valid && m; m &= m - 1) {
      const uint32_t lane = uint32_t(__builtin_ctz(m));
      if (valid[lane] == bytes) continue;
      whole &= ~(1u << lane);
      check_access(w, site, WS_GLOBAL, WS_LOAD, valid[lane], bytes, from, 1u << lane, false);
    }
    check_access(w, site, WS_GLOBAL, WS_LOAD, bytes, bytes, from, whole);
  }
  const bool mark = marking(b);
  Traffic& t = traffic_of(w);
  // Lanes that have committed different numbers of groups go in records of their own.
  for (uint32_t left = mask; left;) {
    const uint32_t group = t.committed(uint32_t(__builtin_ctz(left)));
    uint32_t lanes = left;
    if (!t.even)
      for (uint32_t m = left; m; m &= m - 1)
        if (t.committed(uint32_t(__builtin_ctz(m))) != group) lanes &= ~(1u << __builtin_ctz(m));
    left &= ~lanes;
    if (mark) {
      for (uint32_t m = lanes; m; m &= m - 1) {
        const uint32_t lane = uint32_t(__builtin_ctz(m));
        mark_new(w, site, lane, to[lane], bytes, kDestination, memory::host(from[lane]));
      }
      in_flight(b, 1);
    }
    Flight& f = t.add();
    f.site = site;
    f.lanes = lanes;
    f.group = group;
    f.kind = Flight::copy;
    f.bytes = uint8_t(bytes);
    std::memcpy(f.to, to, sizeof f.to);
    const uint64_t delta = uint64_t(memory::delta());
    for (uint32_t lane = 0; lane < WS_LANES; ++lane) f.from[lane] = reinterpret_cast<const uint8_t*>(from[lane] + delta);
    if (!valid) std::memset(f.valid, int(bytes), sizeof f.valid);
    else for (uint32_t lane = 0; lane < WS_LANES; ++lane) f.valid[lane] = uint8_t(valid[lane]);
  }
}

void ws_cp_async_commit(ws_warp* w, uint32_t mask) {
  if (mask) traffic_of(warp_of(w)).commit(mask, w->live);
}

void ws_cp_async_wait(ws_warp* warp, uint32_t allowed, uint32_t mask) {
  Warp& w = warp_of(warp);
  if (!w.traffic || !w.traffic->count || !mask) return;
  Traffic& t = *w.traffic;
  if (allowed == kAll) return land(w, mask, nullptr, t.count);
  uint32_t limit[WS_LANES];
  for (uint32_t lane = 0; lane < WS_LANES; ++lane) limit[lane] = std::max(t.committed(lane), allowed) - allowed;
  land(w, mask, limit, t.count);
}

void ws_cp_async_arrive(ws_warp* warp, uint32_t site, const uint32_t* barrier, uint32_t counted, uint32_t mask) {
  if (!mask) return;
  Warp& w = warp_of(warp);
  Traffic& t = traffic_of(w);
  if (!counted) ws_mbarrier_raise(warp, site, barrier, mask);
  Flight& f = t.add();
  f.site = site;
  f.lanes = mask;
  f.group = 0;
  f.kind = Flight::arrive;
  f.bytes = 0;
  std::memcpy(f.to, barrier, sizeof f.to);
  // Lanes without copies under way arrive at once.
  uint32_t busy = 0;
  for (uint32_t i = 0; i + 1 < t.count; ++i)
    if (t.at(i).kind == Flight::copy) busy |= t.at(i).lanes;
  if (mask & ~busy) {
    arrive(w, f, mask & ~busy);
    t.drop_finished();
  }
}

void ws_bulk_load(ws_warp* warp, uint32_t site, const uint32_t* to, const uint64_t* from, const uint32_t* bytes, const uint32_t* barrier, uint32_t mask) {
  Warp& w = warp_of(warp);
  Block& b = block_of(warp);
  const bool mark = marking(b);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m)), n = bytes[lane];
    if (!n) continue;
    check_bulk(w, site, lane, to[lane], from[lane], n, WS_STORE, WS_LOAD);
    if (mark) {
      mark_new(w, site, lane, to[lane], n, kDestination, memory::host(from[lane]));
      in_flight(b, 1);
    }
    traffic_of(w).bulks.push_back(Bulk{site, lane, 0, Bulk::load, false, to[lane], n, barrier[lane], memory::host(from[lane]), {}});
  }
}

void ws_bulk_store(ws_warp* warp, uint32_t site, const uint64_t* to, const uint32_t* from, const uint32_t* bytes, uint32_t mask) {
  Warp& w = warp_of(warp);
  Block& b = block_of(warp);
  const bool mark = marking(b);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m)), n = bytes[lane];
    if (!n) continue;
    check_bulk(w, site, lane, from[lane], to[lane], n, WS_LOAD, WS_STORE);
    if (mark) {
      mark_new(w, site, lane, from[lane], n, kSource, memory::host(to[lane]));
      in_flight(b, 1);
    }
    Traffic& t = traffic_of(w);
    t.bulks.push_back(Bulk{site, lane, t.bulk_groups[lane], Bulk::store, false, from[lane], n, 0, memory::host(to[lane]), {}});
  }
}

void ws_bulk_commit(ws_warp* w, uint32_t mask) {
  if (!mask) return;
  Traffic& t = traffic_of(warp_of(w));
  for (uint32_t m = mask; m; m &= m - 1) ++t.bulk_groups[__builtin_ctz(m)];
}

void ws_bulk_wait(ws_warp* warp, uint32_t allowed, uint32_t read, uint32_t mask) {
  Warp& w = warp_of(warp);
  if (!w.traffic || w.traffic->bulks.empty()) return;
  Traffic& t = *w.traffic;
  auto due = [&](const Bulk& x) {
    return x.kind == Bulk::store && (mask >> x.lane & 1) && x.group < std::max(t.bulk_groups[x.lane], allowed) - allowed;
  };
  if (!read) return take_bulks(w, due, [&](Bulk& x) { bulk_store(w, x); });
  for (Bulk& x : t.bulks)
    if (due(x)) take_source(w, x);
}
