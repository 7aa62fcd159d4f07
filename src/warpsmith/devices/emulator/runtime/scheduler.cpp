#include "scheduler.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "groups.h"
#include "heap.h"
#include "memory.h"

namespace ws {

namespace {

constexpr uint64_t kMaxFibers = 16384;            // of all workers: each costs two mappings of the 65530 that Linux allows
constexpr uint64_t kMaxBytes = uint64_t(1) << 30; // stacks, local and shared memory of blocks that wait
constexpr uint64_t kKeptBytes = uint64_t(256) << 20;  // of the same, kept for the next launch
constexpr uint64_t kSlowBlock = 20'000'000;       // ns without an end of a block after which another one is started

}  // namespace

Worker*& this_worker() {
  static thread_local Worker* worker = nullptr;
  return worker;
}

// ---- on fibers -------------------------------------------------------------------------------------

// A block that is being started goes on; then those that are ready; then the next block: few blocks at a time stay in
// the processor's caches.
Warp* Worker::pick() {
  Block* b = opening_;
  if (!b || (b->started == 0 && !ready_.empty())) return ready_.pop();
  Warp* w = &b->warps[b->started++];
  if (b->started == b->warp_count) opening_ = b->link;
  return w;
}

void Worker::enter(Warp& w, void** save) {
  if (w.state != State::fresh) {
    ws_fiber_switch(save, w.sp);
  } else if (Fiber* f = fibers_.take()) {
    f->assigned = &w;
    ws_fiber_switch(save, f->sp);
  } else {
    record(w, Failure{WS_E_MEMORY, kNone, w.lanes, "out of host memory for the stacks of waiting warps"}, nullptr);
    if (save != &main_sp) ws_fiber_switch(save, main_sp);
  }
}

void Worker::suspend(Warp& w) {
  void** save = &w.sp;
  Warp* next = stopping() ? nullptr : pick();
  if (next == &w) {
    // Nobody else can run.
  } else if (next) {
    enter(*next, save);
  } else {
    ws_fiber_switch(save, main_sp);
  }
  current = &w;
  w.state = State::running;
  if (stopping()) abandon();
}

void Worker::yield(Warp& w) {
  w.state = State::ready;
  yielded_.push_front(&w);
  suspend(w);
}

void Worker::wake(Warp& w) {
  w.state = State::ready;
  w.wait_bits = 0;
  ++block_of(&w).active;
  ready_.push(&w);
}

void Worker::abandon() {
  void* dropped;
  ws_fiber_switch(&dropped, main_sp);
  __builtin_unreachable();
}

void Worker::on_main(void (*f)(void*), void* argument) {
  request_ = f;
  request_argument_ = argument;
  ws_fiber_switch(&current->sp, main_sp);
}

void carrier(Fiber* f) {
  Worker& k = *f->worker;
  for (;;) {
    for (Warp* w = f->assigned; w; w = k.next_fresh()) k.execute(*f, *w);
    f->assigned = nullptr;
    k.fibers_.give(f);
    Warp* next = stopping() ? nullptr : k.ready_.pop();
    ws_fiber_switch(&f->sp, next ? next->sp : k.main_sp);
  }
}

// The next warp that a carrier can start without giving way to somebody.
Warp* Worker::next_fresh() {
  if (stopping()) return nullptr;
  if (opening_ ? opening_->started == 0 && !ready_.empty() : resident_ || !open_block()) return nullptr;
  return pick();
}

void Worker::execute(Fiber& f, Warp& w) {
  Block& b = block_of(&w);
  w.fiber = &f;
  w.local = f.local;
  w.state = State::running;
  w.live = w.lanes;
  std::memcpy(w.ctaid, b.index, sizeof w.ctaid);
  w.smid = b.smid;
  w.top = nullptr;
  w.slice = w.stale = w.vain = 0;
  w.seen.clear();
  w.budget = w.grant = first_grant(*this);
  current = &w;
  launch->info->entry(&w);
  finish(w);
}

void Worker::finish(Warp& w) {
  Block& b = block_of(&w);
  if (w.live) ws_exit(&w, w.live);
  w.state = State::done;
  --b.active;
  advance();
  if (--b.unfinished == 0) {
    if (b.traffic) finish_traffic(b);
    b.resident = false;
    b.link = free_blocks_;
    free_blocks_ = &b;
    if (--resident_) launch->waiting_blocks.fetch_sub(1, std::memory_order_relaxed);
    retired_at_ = 0;
    grow_ = 1;
  } else if (b.active == 0) {
    stuck(b);
  }
}

// ---- blocks ----------------------------------------------------------------------------------------

bool Worker::open_block() {
  if (next_ == end_) {
    const uint64_t total = launch->blocks;
    if (launch->next.load(std::memory_order_relaxed) >= total) return false;
    next_ = launch->next.fetch_add(launch->chunk, std::memory_order_relaxed);
    end_ = std::min(next_ + launch->chunk, total);
    if (next_ >= total) {
      next_ = end_ = 0;
      return false;
    }
  }
  Block* b = fresh_block();
  if (!b) return false;
  const uint64_t place = launch->place(next_++);
  const auto& grid = launch->config->grid;
  b->index[0] = uint32_t(place % grid[0]);
  b->index[1] = uint32_t(place / grid[0] % grid[1]);
  b->index[2] = uint32_t(place / grid[0] / grid[1]);
  b->smid = uint32_t(place % launch->sm_count);
  b->started = 0;
  b->unfinished = b->active = b->warp_count;
  b->live = b->warp_count == 32 ? ~0u : (1u << b->warp_count) - 1;
  b->resident = true;
  if (b->barriers_used) reset_barriers(*b);
  if (b->traffic) reset_traffic(*b);
  if (launch->check && launch->shared_size) std::memset(b->shared, launch->poison, launch->shared_size);
  for (uint32_t i = 0; i < b->warp_count; ++i) b->warps[i].state = State::fresh;
  b->link = nullptr;
  if (opening_) opening_last_->link = b; else opening_ = b;
  opening_last_ = b;
  ++resident_;
  advance();
  return true;
}

// Starts a block beside those that wait, if the chip had room for it.
bool Worker::admit() {
  std::atomic<uint64_t>& waiting = launch->waiting_blocks;
  if (waiting.fetch_add(1, std::memory_order_relaxed) < launch->most_waiting_blocks && open_block()) return true;
  waiting.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

Block* Worker::fresh_block() {
  if (!free_blocks_) {
    auto b = std::make_unique<Block>();
    b->worker = this;
    b->link = nullptr;
    free_blocks_ = b.get();
    blocks_.push_back(std::move(b));
  }
  Block* b = free_blocks_;
  if (b->launch_id != launch->id) set_up(*b);
  if (launch->shared_size && !b->shared) {
    record(b->warps[0], Failure{WS_E_MEMORY, kNone, 0, "out of host memory for the shared memory of a block"}, nullptr);
    return nullptr;
  }
  free_blocks_ = b->link;
  return b;
}

// Everything that stays the same for all blocks of the launch.
void Worker::set_up(Block& b) {
  const Launch& l = *launch;
  const auto& dim = l.config->block;
  b.launch = launch;
  b.launch_id = l.id;
  b.warp_count = l.warps_per_block;
  if (b.warps.size() < l.warps_per_block) {
    b.warps = std::vector<Warp>(l.warps_per_block);
    b.shape[0] = 0;
  }
  if (l.shared_size > b.shared_capacity) {
    if (b.shared) munmap(b.shared, b.shared_capacity);
    b.shared_capacity = (size_t(l.shared_size) + 4095) / 4096 * 4096;
    void* p = mmap(nullptr, b.shared_capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b.shared = p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
    if (!b.shared) b.shared_capacity = 0;
  }
  const bool same_shape = std::equal(b.shape, b.shape + 3, dim);
  std::copy(dim, dim + 3, b.shape);
  uint32_t x = 0, y = 0, z = 0;
  for (uint32_t i = 0; i < l.warps_per_block; ++i) {
    Warp& w = b.warps[i];
    w.block = &b;
    w.warp_id = i;
    w.params = l.params;
    w.shared = b.shared;
    w.shared_size = l.shared_size;
    w.local_size = l.info->local_bytes;
    w.vars = l.vars;
    w.delta = l.delta;
    w.instructions = 0;
    w.cache = cache;
    std::copy(dim, dim + 3, w.ntid);
    std::copy(l.config->grid, l.config->grid + 3, w.nctaid);
    w.dynamic_shared = l.config->dynamic_shared;
    w.nsmid = l.sm_count;
    w.gridid = l.id;
    if (same_shape) continue;
    std::memset(w.arrived, 0, sizeof w.arrived);
    w.lanes = 0;
    for (uint32_t lane = 0; lane < WS_LANES; ++lane) {
      w.tid[0][lane] = x;
      w.tid[1][lane] = y;
      w.tid[2][lane] = z;
      if (i * WS_LANES + lane < l.threads_per_block) w.lanes |= 1u << lane;
      if (++x == dim[0]) {
        x = 0;
        if (++y == dim[1]) {
          y = 0;
          ++z;
        }
      }
    }
  }
}

// ---- on the thread's own stack -----------------------------------------------------------------------

void Worker::begin(Launch& l, uint32_t n) {
  launch = &l;
  number = n;
  fault = Fault{};
  const auto* info = l.info;
  cache_.assign(std::max<size_t>(info->site_count, 1), ws_range{0, 0});
  cache = cache_.data();
  heap::watch(cache, cache_.size());
  fibers_.configure(this, size_t(info->stack_bytes) + 65536, size_t(info->local_bytes) * WS_LANES, l.poison);
  const uint64_t per_warp = 32768 + info->stack_bytes / 2 + uint64_t(info->local_bytes) * WS_LANES;
  const uint64_t per_block = l.shared_size + per_warp * l.warps_per_block;
  const uint64_t fit = std::min(kMaxFibers / l.warps_per_block, kMaxBytes / per_block) / l.worker_count;
  max_resident_ = l.config->cooperative ? kNone : uint32_t(std::max<uint64_t>(fit, 1));
  const uint64_t chip = uint64_t(ws_resident_blocks(info, l.config)) * l.sm_count, workers = l.joined.size() + 1;
  l.most_waiting_blocks = l.config->cooperative ? ~uint64_t(0) : chip - std::min(chip, workers);
  ready_.clear();
  yielded_.clear();
  opening_ = nullptr;
  resident_ = 0;
  next_ = end_ = 0;
  progress_ = seen_progress_ = rounds_ = retired_at_ = 0;
  grow_ = 1;
  request_ = nullptr;
  spinning = false;
  shown_progress = 0;
  still_rounds = 0;
  idle = false;
}

void Worker::run() {
  this_worker() = this;
  if (launch->config->cooperative && open_block())
    for (uint64_t i = 1; i < launch->chunk && admit(); ++i) {}
  while (!stopping()) {
    if (Warp* w = pick()) {
      enter(*w, &main_sp);
    } else if (!yielded_.empty()) {
      end_of_round();
    } else if (resident_ || !open_block()) {
      break;  // resident blocks that cannot go on have been reported by stuck()
    }
    while (request_) {
      auto* f = request_;
      request_ = nullptr;
      this_worker() = nullptr;  // a crash in there is not the kernel's
      f(request_argument_);
      this_worker() = this;
      ws_fiber_switch(&main_sp, current->sp);
    }
    if (fault.signal) {
      report_fault(*this);
      break;
    }
  }
  this_worker() = nullptr;
  idle = true;
  std::lock_guard<std::mutex> lock(launch->mutex);
  if (launch->deadlock.pending) launch->deadlock.collect(*this);
}

void Worker::end() {
  if (resident_) {
    fibers_.reset();
    free_blocks_ = nullptr;
    for (auto& b : blocks_) {
      b->resident = false;
      b->link = free_blocks_;
      free_blocks_ = b.get();
      for (uint32_t i = 0; i < b->warp_count; ++i) b->warps[i].state = State::done;
    }
    resident_ = 0;
  }
  const uint64_t keep = kKeptBytes / launch->worker_count;
  fibers_.trim(keep / (8192 + launch->info->stack_bytes + uint64_t(launch->info->local_bytes) * WS_LANES));
  if (blocks_.size() > keep / (sizeof(Warp) * launch->warps_per_block + launch->shared_size)) {
    for (auto& b : blocks_)
      if (b->shared) munmap(b->shared, b->shared_capacity);
    blocks_.clear();
    free_blocks_ = nullptr;
  }
}

uint64_t Worker::instructions() const {
  uint64_t sum = 0;
  for (auto& b : blocks_)
    if (b->launch_id == launch->id)
      for (uint32_t i = 0; i < b->warp_count; ++i) sum += b->warps[i].instructions;
  return sum;
}

// Every warp that can run has had its turn.  Those that gave way come again, in the opposite order: a chain of
// warps each waiting for its neighbour is then walked in one or two rounds, whichever way it points.
void Worker::end_of_round() {
  const bool still = progress_ == seen_progress_;
  seen_progress_ = progress_;
  shown_progress.store(progress_, std::memory_order_relaxed);
  rounds_ = still ? rounds_ + 1 : 0;
  still_rounds.store(rounds_, std::memory_order_relaxed);
  // Perhaps they wait for a block that has not been started.
  bool open = still;
  if (!still) {
    const uint64_t now = now_ns();
    if (!retired_at_) retired_at_ = now;
    if (now - retired_at_ > kSlowBlock) {
      open = true;
      retired_at_ = now;
    }
  }
  if (open) {
    uint32_t opened = 0;
    while (opened < grow_ && resident_ < max_resident_ && admit()) ++opened;
    if (opened) {
      grow_ = std::min<uint32_t>(grow_ * 2, 4096);
      return;  // they come first
    }
  }
  ready_.swap(yielded_);
  if (still) {
    sched_yield();
    if (rounds_ % 64 == 0) watch_for_deadlock();
  }
}

void Worker::watch_for_deadlock() {
  Launch& l = *launch;
  std::lock_guard<std::mutex> lock(l.mutex);
  uint64_t sum = 0;
  bool all_still = true;
  for (const Worker* k : l.joined) {
    sum += k->shown_progress.load(std::memory_order_relaxed);
    if (!k->idle && k->still_rounds.load(std::memory_order_relaxed) < 200) all_still = false;
  }
  const uint64_t now = now_ns();
  if (!all_still || sum != l.quiet_sum || !l.quiet_since) {
    l.quiet_sum = sum;
    l.quiet_since = now;
    return;
  }
  if (now - l.quiet_since < l.patience_ns) return;
  if (l.failed.exchange(true)) return;
  l.deadlock.pending = true;
  g_stop = true;
}

}  // namespace ws
