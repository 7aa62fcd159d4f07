// The runtime's own structures: a launch has workers (host threads), a worker has resident blocks, a block has warps.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api.h"
#include "async.h"

namespace ws {

struct Fiber;
struct Launch;
struct Worker;
struct Warp;

constexpr uint32_t kBarriers = 16;
constexpr uint32_t kMaxWarps = 32;  // 1024 threads a block on every chip
constexpr uint32_t kNone = ~0u;

enum class State : uint8_t {
  fresh,    // not started yet
  running,  // on its fiber now
  ready,    // waits for its turn only
  waiting,  // for barriers (wait_bits) or for nothing that can still come
  done
};

// Hashes of what a warp's registers held when it last gave way.  A warp that keeps coming back with states seen
// before is spinning: the same code on the same registers, so only somebody else's write to memory can end it.
class SeenStates {
 public:
  void clear() { count_ = 0; }
  // True if the state is new (and remembers it).
  bool add(uint64_t hash) {
    for (uint32_t i = 0; i < count_; ++i)
      if (hashes_[i] == hash) return false;
    if (count_ == kSize) count_ = 0;
    hashes_[count_++] = hash;
    return true;
  }

 private:
  static constexpr uint32_t kSize = 64;
  uint32_t count_ = 0;
  uint64_t hashes_[kSize];
};

struct Warp : ws_warp {
  Warp* link = nullptr;         // next in one of the worker's lists
  Fiber* fiber = nullptr;
  void* sp = nullptr;           // where its fiber goes on, while it does not run
  ws_groups* groups = nullptr;  // activation in which it gave way last
  State state = State::done;
  uint32_t lanes = 0;           // lanes that exist (the last warp of a block may be short)
  uint32_t wait_bits = 0;       // barriers whose completion makes it ready
  uint32_t reduction = 0;       // result of the barrier.red that let it go
  // Where it gave way last, for reports.
  uint32_t site = kNone, mask = 0, barrier = kNone;
  // Fairness and spinning.
  uint32_t grant = 0;           // back-edges granted for the present slice
  uint32_t slice = 0;           // back-edges used since it last gave way to other warps
  uint32_t stale = 0;           // yields in a row with a state seen before
  uint32_t arrived[kBarriers];  // lanes that came to a barrier in its present phase while others had not
  SeenStates seen;
  std::unique_ptr<Traffic> traffic;  // asynchronous copies, once there has been one
  // Waiting for an mbarrier in vain: how often so far, which one, where, its state then; looks at the warp since.
  uint32_t vain = 0, vain_at = 0, vain_site = kNone, vain_looks = 0;
  uint64_t vain_state = 0;
};

struct Barrier {
  uint64_t phase = 0;           // completions so far: a waiter's ticket is the phase in which it came
  uint32_t full = 0;            // warps all of whose live lanes have come
  uint32_t threads = 0;         // threads that have come, counted by warps
  int32_t count = 0;            // threads to wait for, -1: all; 0: nobody has come yet
  uint32_t kind = 0, reduction = 0;
  uint32_t result = 0;          // of the last completed reduction
  uint32_t site = kNone;        // of the first arrival in this phase
};

}  // namespace ws

struct ws_block {
  ws::Worker* worker = nullptr;
  ws::Launch* launch = nullptr;
  ws_block* link = nullptr;     // next with warps to start, or next free
  uint64_t launch_id = 0;       // launch that its warps are set up for
  uint32_t shape[3] = {0, 0, 0};  // block dimensions that tid is filled for
  uint32_t index[3] = {0, 0, 0};
  uint32_t smid = 0;
  uint32_t warp_count = 0;
  uint32_t started = 0;         // warps started
  uint32_t unfinished = 0;
  uint32_t active = 0;          // unfinished and not waiting
  uint32_t live = 0;            // bit mask: warps with live lanes
  uint32_t barriers_used = 0;   // bit mask
  bool resident = false;
  bool traffic = false;         // there has been an asynchronous copy
  ws::Marks marks;
  uint8_t* shared = nullptr;
  size_t shared_capacity = 0;
  ws::Barrier barriers[ws::kBarriers];
  std::vector<ws::Warp> warps;
};

namespace ws {

using Block = ws_block;

inline Block& block_of(ws_warp* w) { return *w->block; }
inline Warp& warp_of(ws_warp* w) { return static_cast<Warp&>(*w); }
inline uint32_t index_of(const Warp& w) { return w.warp_id; }

// A list of warps that are taken from its front.
class Queue {
 public:
  bool empty() const { return head_ == nullptr; }
  void push(Warp* w) {
    w->link = nullptr;
    if (head_) tail_->link = w; else head_ = w;
    tail_ = w;
  }
  void push_front(Warp* w) {
    w->link = head_;
    if (!head_) tail_ = w;
    head_ = w;
  }
  Warp* pop() {
    Warp* w = head_;
    if (!w) return nullptr;
    head_ = w->link;
    // Thousands of warps may take turns: what the next ones need comes from far, and better early.
    if (head_) {
      for (int i = 0; i < 4; ++i) __builtin_prefetch(static_cast<const char*>(head_->sp) + 64 * i);
      if (const Warp* after = head_->link) {
        __builtin_prefetch(&after->live);
        __builtin_prefetch(&after->link);
        __builtin_prefetch(&after->seen);
      }
    }
    return w;
  }
  void clear() { head_ = tail_ = nullptr; }
  void swap(Queue& o) { std::swap(head_, o.head_); std::swap(tail_, o.tail_); }

 private:
  Warp* head_ = nullptr;
  Warp* tail_ = nullptr;
};

}  // namespace ws
