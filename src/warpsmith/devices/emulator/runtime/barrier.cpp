// Barriers of a block (PTX ISA 9.7.13.1): 16, counted by warps.  A warp counts when all its live lanes have come;
// lanes that leave the kernel lower what is waited for, but not a number of threads that is written out (an H200
// then waits for ever, even if that number is the whole block's).
#include <algorithm>

#include "groups.h"
#include "scheduler.h"

namespace ws {

namespace {

enum : uint32_t { kSync, kArrive, kPopc, kAnd, kOr };

uint32_t block_threads(const Block& b) { return b.warp_count * WS_LANES; }

// How many threads to wait for, in whole warps, or -1 for all that have not left.
int32_t check_count(Warp& w, uint32_t id, int32_t count, uint32_t mask, uint32_t site) {
  const Block& b = block_of(&w);
  if (id >= kBarriers) fail(w, Failure{WS_E_BARRIER, site, mask, format("barrier %u does not exist: a block has barriers 0 to 15", id)});
  if (count == -1) return -1;
  if (uint32_t(count) == b.launch->threads_per_block) return int32_t(block_threads(b));
  if (count <= 0 || count % WS_LANES)
    fail(w, Failure{WS_E_BARRIER, site, mask, format("barrier %u is given %d threads; the number must be a multiple of 32", id, count)});
  if (uint32_t(count) > block_threads(b))
    fail(w, Failure{WS_E_BARRIER, site, mask, format("barrier %u waits for %d threads, but the block has only %u", id, count, b.launch->threads_per_block)});
  return count;
}

void accumulate(Barrier& r, uint32_t kind, uint32_t mask, uint32_t value) {
  if (kind == kPopc) r.reduction += uint32_t(__builtin_popcount(value & mask));
  if (kind == kAnd && (value & mask) != mask) r.reduction = 0;
  if (kind == kOr && (value & mask)) r.reduction = 1;
}

// Lets everybody go if all have come.
bool complete(Block& b, uint32_t id) {
  Barrier& r = b.barriers[id];
  if (!r.count) return false;
  const bool all = r.count < 0 ? r.full && (r.full & b.live) == b.live : r.threads >= uint32_t(r.count);
  if (!all) return false;
  ++r.phase;
  r.result = r.reduction;
  r.full = r.threads = 0;
  r.count = 0;
  // No progress in the sense of deadlock detection: threads may go round and round a loop with a barrier in it.
  for (uint32_t i = 0; i < b.warp_count; ++i) {
    Warp& w = b.warps[i];
    if (w.state != State::waiting || !(w.wait_bits >> id & 1)) continue;
    w.reduction = r.result;
    b.worker->wake(w);
  }
  return true;
}

// Counts the warp if all its live lanes have come.
void count_warp(Block& b, Warp& w, uint32_t id) {
  if (!w.arrived[id] || (w.live & ~w.arrived[id])) return;
  w.arrived[id] = 0;
  b.barriers[id].full |= 1u << index_of(w);
  b.barriers[id].threads += WS_LANES;
}

// True if the barrier is complete by this.
bool arrive(Warp& w, uint32_t kind, uint32_t id, int32_t count, uint32_t mask, uint32_t value, uint32_t site) {
  Block& b = block_of(&w);
  Barrier& r = b.barriers[id];
  if (!r.count) {
    r.count = count;
    r.kind = kind;
    r.site = site;
    r.reduction = kind == kAnd;
    b.barriers_used |= 1u << id;
  } else if (std::max(r.count, count) == int32_t(block_threads(b)) && std::min(r.count, count) < 0) {
    r.count = std::max(r.count, count);  // the same number, once written out and once not
  } else if (r.count != count) {
    auto words = [&](int32_t n) { return n < 0 ? std::string("all threads of the block") : format("%d threads", n); };
    fail(w, Failure{WS_E_BARRIER, site, mask, format("barrier %u is used with %s here, but with %s at %s", id, words(count).c_str(),
                    words(r.count).c_str(), describe_site(b.launch->info, r.site).c_str())});
  } else if ((r.kind >= kPopc || kind >= kPopc) && r.kind != kind) {
    fail(w, Failure{WS_E_BARRIER, site, mask, format("barrier %u is used with different operations here and at %s", id,
                    describe_site(b.launch->info, r.site).c_str())});
  }
  accumulate(r, kind, mask, value);
  w.arrived[id] |= mask;
  count_warp(b, w, id);
  return complete(b, id);
}

}  // namespace

void reset_barriers(Block& b) {
  for (uint32_t id = 0; id < kBarriers; ++id) {
    if (!(b.barriers_used >> id & 1)) continue;
    b.barriers[id] = Barrier{};
    for (uint32_t i = 0; i < b.warp_count; ++i) b.warps[i].arrived[id] = 0;
  }
  b.barriers_used = 0;
}

void lanes_left(Warp& w) {
  Block& b = block_of(&w);
  if (!w.live) b.live &= ~(1u << index_of(w));
  for (uint32_t bits = b.barriers_used; bits; bits &= bits - 1) {
    const uint32_t id = uint32_t(__builtin_ctz(bits));
    if (w.live) count_warp(b, w, id);
    complete(b, id);
  }
}

void wait_for_barriers(Warp& w, ws_groups* g, uint32_t wait_bits, uint32_t site, uint32_t mask) {
  Block& b = block_of(&w);
  w.state = State::waiting;
  w.wait_bits = wait_bits;
  w.groups = g;
  w.site = site;
  w.mask = mask;
  w.barrier = uint32_t(__builtin_ctz(wait_bits));
  if (--b.active == 0) stuck(b);
  b.worker->suspend(w);
}

}  // namespace ws

using namespace ws;

uint32_t ws_barrier(ws_warp* warp, ws_groups* g, uint32_t kind, uint32_t id, int32_t count, uint32_t mask, uint32_t value, uint32_t site) {
  Warp& w = warp_of(warp);
  count = check_count(w, id, count, mask, site);
  Barrier& r = block_of(warp).barriers[id];
  if (arrive(w, kind, id, count, mask, value, site)) return r.result;
  if (kind == kArrive) return 0;
  if (w.arrived[id]) {
    const uint32_t missing = w.live & ~w.arrived[id];
    const bool inside = g->waiting != 0;
    fail(w, Failure{WS_E_BARRIER, site, mask,
                    "a barrier is reached by lanes " + lane_list(mask) + " of a warp while lanes " + lane_list(missing) +
                        (inside ? " are elsewhere in this function; a barrier with a reduction needs all lanes of the warp together"
                                : " are outside of this function, waiting for its return; a barrier in a function must be reached by all lanes that have not exited")});
  }
  wait_for_barriers(w, g, 1u << id, site, mask);
  return w.reduction;
}

uint32_t ws_barrier_parted(ws_warp* warp, ws_groups* g, uint32_t id, int32_t count, uint32_t mask, uint32_t next, uint32_t site) {
  Warp& w = warp_of(warp);
  count = check_count(w, id, count, mask, site);
  const uint64_t ticket = block_of(warp).barriers[id].phase;
  if (arrive(w, kSync, id, count, mask, 0, site)) queue_group(*g, next, mask);
  else park_group(*g, kParkBarrier, next, mask, id, site, ticket);
  return next_group(w, *g);
}

void ws_exit(ws_warp* w, uint32_t mask) {
  w->live &= ~mask;
  lanes_left(warp_of(w));
}
