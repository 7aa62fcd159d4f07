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

// The lanes that those of a parked group wait for.
uint32_t missing_lanes(const Warp& w, const ws_groups& g, uint32_t parked) {
  const auto& mine = g.park[parked];
  uint32_t here = mine.mask;
  for (uint32_t i = 0; mine.kind == kParkSyncwarp && i < g.parked; ++i)
    if (g.park[i].kind == kParkSyncwarp && g.park[i].id == mine.id) here |= g.park[i].mask;
  return mine.id & w.live & ~here;
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
      const bool spins = w.state != State::waiting;
      add(b, w, Wait{spins && w.vain ? w.vain_site : w.site, spins ? kNone : w.barrier, w.mask, spins}, "");
      // Other lanes of the warp: parked at instructions that wait for lanes or, while some spin, at barriers.
      for (uint32_t j = 0; w.groups && j < w.groups->parked; ++j) {
        const auto& park = w.groups->park[j];
        if (park.kind != kParkBarrier) add(b, w, Wait{park.site, kNone, park.mask, false}, lane_list(missing_lanes(w, *w.groups, j)));
        else if (spins) add(b, w, Wait{park.site, park.id, park.mask, false}, "");
      }
    }
  }
}

// Lanes of the warp that wait; missing: for which other lanes, if for those.
void DeadlockReport::add(const Block& b, const Warp& w, const Wait& wait, const std::string& missing) {
  Place& p = place_of(b, w, wait);
  p.threads += threads_in(wait.lanes);
  if (p.last_block != &b) ++p.blocks;
  p.last_block = &b;
  if (p.missing.empty()) p.missing = missing;
}

// The entry for what these lanes wait for; it describes the block of the smallest number.
DeadlockReport::Place& DeadlockReport::place_of(const Block& b, const Warp& w, const Wait& wait) {
  const uint64_t number = b.index[0] + b.launch->config->grid[0] * (b.index[1] + uint64_t(b.launch->config->grid[1]) * b.index[2]);
  auto p = std::find_if(places.begin(), places.end(), [&](const Place& x) {
    return x.site == wait.site && x.barrier == wait.barrier && x.spins == wait.spins;
  });
  if (p != places.end() && p->number <= number) return *p;
  if (p == places.end()) p = places.insert(p, Place{});
  Place& n = *p;
  n.number = number;
  n.site = wait.site;
  n.barrier = wait.barrier;
  n.spins = wait.spins;
  n.lanes = wait.lanes;
  n.arrived = 0;
  n.missing.clear();
  n.mbarrier = wait.spins && w.vain ? describe_mbarrier(w, w.vain_at) : "";
  const int lane = wait.lanes ? __builtin_ctz(wait.lanes) : 0;
  for (int d = 0; d < 3; ++d) {
    n.block[d] = b.index[d];
    n.thread[d] = w.tid[d][lane];
  }
  if (wait.barrier != kNone) count_threads(b, wait.barrier, n);
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
      out += (p.threads == 1 ? " spins at " : " spin at ") + describe_site(l.info, p.site) + ": ";
      out += p.mbarrier.empty() ? "what it reads never changes" : p.mbarrier;
      if (p.blocks > 1) out += "; the first is thread " + position(p.thread) + " of block " + position(p.block);
      continue;
    }
    if (p.barrier == kNone) {
      out += (p.threads == 1 ? " waits at " : " wait at ") + describe_site(l.info, p.site) + " for lanes " + p.missing +
             " of the same warp, which never come";
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
