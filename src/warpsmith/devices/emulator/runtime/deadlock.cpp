#include "deadlock.h"

#include <algorithm>

#include "groups.h"
#include "scheduler.h"

namespace ws {

namespace {

unsigned long long ull(uint64_t v) { return v; }

uint32_t threads_in(uint32_t lanes) { return uint32_t(__builtin_popcount(lanes)); }

// How many threads of the block have come to the barrier, and which have not.
void count_threads(const Block& b, uint32_t barrier, DeadlockReport::Place& p) {
  const Barrier& r = b.barriers[barrier];
  const bool all = r.count < 0;
  uint32_t live = 0;
  for (uint32_t i = 0; i < b.warp_count; ++i) {
    const Warp& w = b.warps[i];
    live += threads_in(w.live);
    if (r.full >> i & 1) {
      p.arrived += threads_in(w.live);
      continue;
    }
    p.arrived += threads_in(w.arrived[barrier]);
    if (!w.live && all) continue;
    const uint32_t elsewhere = w.live & ~w.arrived[barrier];
    if (!p.missing.empty()) p.missing += ", ";
    if (!w.live) p.missing += format("warp %u (exited)", i);
    else if (elsewhere == w.lanes) p.missing += format("warp %u", i);
    else p.missing += format("lanes %s of warp %u", lane_list(elsewhere).c_str(), i);
  }
  p.count = all ? live : uint32_t(r.count);
}

}  // namespace

void stuck(Block& b) {
  Launch& l = *b.launch;
  if (l.failed.exchange(true)) b.worker->abandon();
  {
    std::lock_guard<std::mutex> lock(l.mutex);
    l.deadlock.pending = true;
    l.deadlock.only = &b;
  }
  g_stop = true;
  b.worker->abandon();
}

void DeadlockReport::collect(const Worker& k) {
  for (const auto& owned : k.blocks()) {
    const Block& b = *owned;
    if (!b.resident || (only && only != &b)) continue;
    ++resident;
    for (uint32_t i = 0; i < b.warp_count; ++i) {
      const Warp& w = b.warps[i];
      if (w.state == State::done || w.state == State::fresh) continue;
      Place& p = place_of(b, w);
      p.threads += uint64_t(__builtin_popcount(w.mask));
      if (p.last_block != &b) ++p.blocks;
      p.last_block = &b;
    }
  }
}

// The entry for what this warp waits for; it describes the block of the smallest number.
DeadlockReport::Place& DeadlockReport::place_of(const Block& b, const Warp& w) {
  const bool spins = w.state != State::waiting;
  const uint32_t barrier = spins ? kNone : w.barrier;
  const uint64_t number = b.index[0] + b.launch->config->grid[0] * (b.index[1] + uint64_t(b.launch->config->grid[1]) * b.index[2]);
  auto p = std::find_if(places.begin(), places.end(), [&](const Place& x) {
    return x.site == w.site && x.barrier == barrier && x.spins == spins;
  });
  if (p != places.end() && p->number <= number) return *p;
  if (p == places.end()) p = places.insert(p, Place{});
  Place& n = *p;
  n.number = number;
  n.site = w.site;
  n.barrier = barrier;
  n.spins = spins;
  n.lanes = w.mask;
  n.arrived = 0;
  n.missing.clear();
  const int lane = w.mask ? __builtin_ctz(w.mask) : 0;
  for (int d = 0; d < 3; ++d) {
    n.block[d] = b.index[d];
    n.thread[d] = w.tid[d][lane];
  }
  if (!spins) count_threads(b, barrier, n);
  return n;
}

std::string DeadlockReport::text(const Launch& l) const {
  std::string out = "deadlock in kernel " + std::string(l.info->name) + ": ";
  out += only ? "no thread of block " + position(only->index) + " can go on" : "no thread can go on";
  size_t shown = 0;
  for (const Place& p : places) {
    if (++shown > 8) {
      out += format("\n  ... and %zu more places", places.size() - 8);
      break;
    }
    out += "\n  " + plural(p.threads, "thread");
    if (!only) out += p.blocks > 1 ? format(" of %llu blocks", ull(p.blocks)) : " of block " + position(p.block);
    if (p.spins) {
      out += (p.threads == 1 ? " spins at " : " spin at ") + describe_site(l.info, p.site) + ": what it reads never changes";
      if (p.blocks > 1) out += "; the first is thread " + position(p.thread) + " of block " + position(p.block);
      continue;
    }
    out += format(" wait%s at barrier %u, ", p.threads == 1 ? "s" : "", p.barrier) + describe_site(l.info, p.site);
    out += format(": %u of %u threads have come", p.arrived, p.count);
    if (!p.missing.empty()) {
      std::string missing = p.missing;
      if (missing.size() > 160) missing = missing.substr(0, 160) + "...";
      out += (p.blocks > 1 ? "; not there in block " + position(p.block) + ": " : "; not there: ") + missing;
    }
  }
  if (!only && not_started)
    out += format("\n  %s of the grid could not be started beside the %llu that wait", plural(not_started, "block").c_str(), ull(resident));
  return out;
}

}  // namespace ws
