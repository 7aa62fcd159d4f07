// Which lanes of a warp run next.
//
// The group at the smallest rank ("thread frontiers"), so lanes meet again as early as the control flow allows.  Only a
// group that stands in a loop polling what others write is passed over: when it has used up its budget of
// back-edges without getting into a new state, the others come first, until they too wait, spin, or leave.  The
// analyses of the PTX (ptx/divergence.py) count on exactly this order.
#include "groups.h"

#include <cstring>

#include "scheduler.h"

namespace ws {

namespace {

// Back-edges of a polling loop before the next look at its state, which costs about as much as a hundred instructions.
constexpr uint32_t kFirstBudget = 256;    // of a warp, as long as nobody was found spinning in this launch
constexpr uint32_t kSpinBudget = 4;       // then, of a group for which others wait, and of a warp that is spinning
constexpr uint32_t kDoublings = 9;        // budgets in a row, each twice the last, before other groups get a turn
constexpr uint32_t kSlice = 4096;         // back-edges before other warps get a turn
constexpr uint32_t kVain = 256;           // waits for an mbarrier in vain that make a warp count as spinning
constexpr uint32_t kVainLooks = 64;       // looks at its state without another one that make it not

uint32_t first_waiting(const ws_groups& g, uint32_t from, uint32_t lanes) {
  for (uint32_t r = from; r < g.ranks; ++r)
    if (g.wait[r] & lanes) return r;
  return ~0u;
}

uint32_t take(ws_groups& g, uint32_t rank) {
  g.mask = g.wait[rank];
  g.wait[rank] = 0;
  g.passed &= ~g.mask;
  if (--g.waiting == g.parked) g.frontier = ~0u;
  else if (rank == g.frontier) g.frontier = first_waiting(g, rank + 1, ~0u);
  return rank;
}

void unpark(ws_groups& g, uint32_t i) {
  const auto p = g.park[i];
  g.park[i] = g.park[--g.parked];
  --g.waiting;
  queue_group(g, p.rank, p.mask);
}

// All lanes that named each other in bar.warp.sync have come, perhaps to different ones.
uint32_t syncwarp_lanes(const ws_groups& g, uint32_t members) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < g.parked; ++i)
    if (g.park[i].kind == kParkSyncwarp && g.park[i].id == members) mask |= g.park[i].mask;
  return mask;
}

bool ready(const Warp& w, const ws_groups& g, uint32_t i) {
  const auto& p = g.park[i];
  if (p.kind == kParkBarrier) return w.block->barriers[p.id].phase != p.ticket;
  const uint32_t here = p.kind == kParkMeeting ? p.mask : syncwarp_lanes(g, p.id);
  return (p.id & w.live & ~here) == 0;
}

void unpark_ready(const Warp& w, ws_groups& g) {
  uint32_t go = 0;  // decided for all first: lanes at different bar.warp.sync let each other go
  for (uint32_t i = 0; i < g.parked; ++i)
    if (ready(w, g, i)) go |= 1u << i;
  for (uint32_t i = g.parked; i--;)
    if (go >> i & 1) unpark(g, i);
}

[[noreturn]] void fail_meeting(Warp& w, const ws_groups& g) {
  const ws_kernel_info* info = w.block->launch->info;
  const auto& p = g.park[0];
  uint32_t here = p.kind == kParkMeeting ? p.mask : syncwarp_lanes(g, p.id);
  uint32_t missing = p.id & w.live & ~here;
  std::string what = "lanes " + lane_list(here) + " of a warp wait for lanes " + lane_list(missing) +
                     ", which their member mask " + format("0x%x", p.id) + " names, but those never come";
  for (uint32_t i = 1; i < g.parked; ++i) {
    if (!(g.park[i].mask & missing)) continue;
    what += "; lanes " + lane_list(g.park[i].mask & missing) + " wait at " + describe_site(info, g.park[i].site);
    missing &= ~g.park[i].mask;
  }
  if (missing) what += "; lanes " + lane_list(missing) + " are outside of this function, waiting for its return";
  fail(w, Failure{WS_E_SYNC, p.site, here, what});
}

// Nothing can run before a barrier completes.
void wait_parked(Warp& w, ws_groups& g) {
  uint32_t bits = 0, mask = 0, site = g.park[0].site;
  for (uint32_t i = 0; i < g.parked; ++i)
    if (g.park[i].kind == kParkBarrier) {
      bits |= 1u << g.park[i].id;
      mask |= g.park[i].mask;
      site = g.park[i].site;
    }
  if (!bits) fail_meeting(w, g);
  wait_for_barriers(w, &g, bits, site, mask);
}

// Lanes have parted in a kernel in which somebody spins: should it be those that run, they must soon notice.
void clamp_budget(Warp& w, ws_groups& g) {
  g.streak = 0;
  if (w.budget <= kSpinBudget || !block_of(&w).worker->spinning) return;
  w.slice += w.grant - w.budget;
  w.grant = w.budget = kSpinBudget;
}

uint64_t hash_bytes(uint64_t h, const uint8_t* p, uint32_t size) {
  constexpr uint64_t m = 0x9e3779b97f4a7c15ull;
  uint64_t a[4] = {h, h ^ m, h + m, ~h};
  uint32_t i = 0;
  for (; i + 32 <= size; i += 32) {
    uint64_t x[4];
    std::memcpy(x, p + i, 32);
    for (int k = 0; k < 4; ++k) a[k] = (a[k] ^ x[k]) * m, a[k] ^= a[k] >> 29;
  }
  for (; i < size; ++i) a[i & 3] = (a[i & 3] ^ p[i]) * m;
  return (a[0] ^ (a[1] >> 17)) * m + (a[2] ^ (a[3] << 13)) * (m | 2);
}

// Code position and registers of the lanes that run, and of the functions that called this one.
uint64_t hash_state(const Warp& w, const ws_groups& g, uint32_t rank, uint32_t mask) {
  uint64_t h = (uint64_t(rank) << 32 | mask) * 0xff51afd7ed558ccdull ^ w.live;
  h = hash_bytes(h, g.state, g.state_size);
  if (w.top == &g)
    for (const ws_groups* o = g.outer; o; o = o->outer) h = hash_bytes(h ^ o->mask, o->state, o->state_size);
  return h;
}

// True if the warp is in a state in which it has not given way before.
bool observe(Warp& w, ws_groups& g, uint32_t rank, uint32_t mask, uint32_t site) {
  w.site = site;
  w.mask = mask;
  w.barrier = kNone;
  w.groups = &g;
  bool fresh = w.seen.add(hash_state(w, g, rank, mask));
  // A loop around a wait for an mbarrier may look at the clock, as cuda::barrier's does, and get nowhere all the same.
  if (w.vain && ++w.vain_looks > kVainLooks) w.vain = 0;
  if (w.vain > kVain) fresh = false;
  if (fresh) {
    block_of(&w).worker->advance();
    w.stale = 0;
  } else {
    ++w.stale;
    block_of(&w).worker->spinning = true;
  }
  return fresh;
}

}  // namespace

uint32_t first_grant(const Worker& k) { return k.spinning ? kSpinBudget : kFirstBudget; }

void queue_group(ws_groups& g, uint32_t rank, uint32_t mask) {
  if (g.wait[rank]) g.passed &= ~g.wait[rank];  // with the newcomers it is worth another try
  else ++g.waiting;
  g.wait[rank] |= mask;
  if (rank < g.frontier) g.frontier = rank;
}

void park_group(ws_groups& g, uint32_t kind, uint32_t rank, uint32_t mask, uint32_t what, uint32_t site, uint64_t ticket) {
  for (uint32_t i = 0; i < g.parked; ++i) {
    auto& p = g.park[i];
    if (p.kind == kind && p.rank == rank && p.id == what && p.ticket == ticket) {
      p.mask |= mask;
      return;
    }
  }
  auto& p = g.park[g.parked++];
  p.rank = rank;
  p.mask = mask;
  p.kind = kind;
  p.id = what;
  p.site = site;
  p.ticket = ticket;
  ++g.waiting;
}

uint32_t next_group(Warp& w, ws_groups& g) {
  for (;;) {
    if (g.parked) unpark_ready(w, g);
    if (g.waiting > g.parked) {
      if (g.passed) {
        const uint32_t r = first_waiting(g, g.frontier, ~g.passed);
        if (r != ~0u) return take(g, r);
        g.passed = 0;  // all of them spin: from the start
      }
      return take(g, g.frontier);
    }
    if (!g.parked) return WS_DONE;
    wait_parked(w, g);
  }
}

}  // namespace ws

using namespace ws;

uint32_t ws_dispatch(ws_warp* w, ws_groups* g, uint32_t rank, uint32_t mask) {
  queue_group(*g, rank, mask);
  return next_group(warp_of(w), *g);
}

uint32_t ws_diverge(ws_warp* w, ws_groups* g, uint32_t a, uint32_t mask_a, uint32_t b, uint32_t mask_b) {
  if (!g->waiting) clamp_budget(warp_of(w), *g);
  if (g->passed | g->parked) {
    queue_group(*g, a, mask_a);
    queue_group(*g, b, mask_b);
    return next_group(warp_of(w), *g);
  }
  if (b < a) {
    std::swap(a, b);
    std::swap(mask_a, mask_b);
  }
  queue_group(*g, b, mask_b);
  if (a < g->frontier) {
    g->mask = mask_a;
    return a;
  }
  queue_group(*g, a, mask_a);
  return take(*g, g->frontier);
}

uint32_t ws_next(ws_warp* w, ws_groups* g) { return next_group(warp_of(w), *g); }

uint32_t ws_yield(ws_warp* warp, ws_groups* g, uint32_t rank, uint32_t mask, uint32_t site) {
  Warp& w = warp_of(warp);
  Worker& k = *block_of(warp).worker;
  if (stopping()) k.abandon();
  const bool fresh = observe(w, *g, rank, mask, site);
  const bool parted = g->waiting != 0;
  uint32_t groups = 1;
  uint32_t grant;
  if (parted) {
    groups += g->waiting;
    queue_group(*g, rank, mask);
    unpark_ready(w, *g);
    if (fresh && g->streak < kDoublings) {
      grant = kSpinBudget << ++g->streak;
    } else {
      if (g->wait[rank] == mask) g->passed |= mask;
      g->streak = 0;
      grant = kSpinBudget;
    }
  } else {
    grant = fresh ? (w.grant * 2 > kSlice ? kSlice : w.grant * 2) : kSpinBudget;
  }
  w.slice += w.grant;
  if (w.slice >= kSlice || (!fresh && w.stale >= groups)) {
    w.slice = 0;
    k.yield(w);
  }
  w.budget = w.grant = grant;
  if (parted) return next_group(w, *g);
  g->mask = mask;
  return rank;
}

void ws_rest(ws_warp* warp, ws_groups* g, uint32_t rank, uint32_t mask, uint32_t site) {
  Warp& w = warp_of(warp);
  Worker& k = *block_of(warp).worker;
  if (stopping()) k.abandon();
  w.slice += w.grant;
  if (w.slice >= kSlice) {
    const bool whole = !(site >> 31);  // the registers are all that decides about the loop
    if (!observe(w, *g, rank, mask, site & 0x7fffffff) && !whole) {
      k.advance();
      w.stale = 0;
    }
    w.slice = 0;
    k.yield(w);
  }
  w.budget = w.grant = kSlice;
}

void ws_pause(ws_warp* warp, ws_groups* g, uint32_t, uint32_t site) {
  Warp& w = warp_of(warp);
  Worker& k = *block_of(warp).worker;
  if (stopping()) k.abandon();
  observe(w, *g, site, g->mask, site);
  w.slice = 0;
  k.yield(w);
  w.budget = w.grant = 1;  // groups of the same warp come in at the next back-edge
  g->streak = kDoublings;
}

uint32_t ws_rendezvous(ws_warp* w, ws_groups* g, uint32_t members, uint32_t mask, uint32_t rank, uint32_t site) {
  park_group(*g, kParkMeeting, rank, mask, members, site, 0);
  return next_group(warp_of(w), *g);
}

uint32_t ws_syncwarp(ws_warp* w, ws_groups* g, uint32_t members, uint32_t mask, uint32_t next, uint32_t site) {
  park_group(*g, kParkSyncwarp, next, mask, members, site, 0);
  return next_group(warp_of(w), *g);
}
