// A worker: one host thread that runs the warps of its resident blocks, each on a fiber, one at a time.
//
// A fiber is a carrier: it runs a warp to its end and takes the next one, so a warp that never waits costs no switch.
// A warp that waits switches straight to the next one that can run.  Only when a worker's warps have all
// had their turn does the thread's own stack (Worker::run) look at the whole.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "fiber.h"
#include "launch.h"
#include "state.h"

namespace ws {

// What a signal handler knows of a crash inside compiled code.
struct Fault {
  int signal = 0;               // 0: none
  uintptr_t address = 0;
  bool stack = false;
};

struct alignas(64) Worker {
  Launch* launch = nullptr;
  uint32_t number = 0;
  void* main_sp = nullptr;
  Warp* current = nullptr;
  Fault fault;
  ws_range* cache = nullptr;    // [sites], see ws_warp::cache
  bool spinning = false;        // some warp has spun in this launch

  // --- for fibers ---
  // The current warp (already queued somewhere, or waiting) gives the thread away; comes back when it is its turn.
  void suspend(Warp& w);
  // The current warp can go on, but the others get a turn first.
  void yield(Warp& w);
  // A waiting warp can go on.
  void wake(Warp& w);
  // Drops the calling fiber: the launch is over.
  [[noreturn]] void abandon();
  // Runs f(argument) on the thread's own stack.
  void on_main(void (*f)(void*), void* argument);
  // Something happened that others may be waiting for.
  void advance() { ++progress_; }

  // --- for the launch ---
  void begin(Launch& l, uint32_t number);
  void run();
  void end();
  uint64_t instructions() const;
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }

  // --- for deadlock detection, read by other workers ---
  std::atomic<uint64_t> shown_progress{0};
  std::atomic<uint64_t> still_rounds{0};
  std::atomic<bool> idle{false};

 private:
  friend void carrier(Fiber*);
  Warp* pick();
  Warp* next_fresh();
  void enter(Warp& w, void** save);
  void execute(Fiber& f, Warp& w);
  void finish(Warp& w);
  bool open_block();
  bool admit();
  Block* fresh_block();
  void set_up(Block& b);
  void end_of_round();
  void watch_for_deadlock();

  Queue ready_;
  Queue yielded_;               // last in, first out: see end_of_round
  Block* opening_ = nullptr;    // blocks with warps to start, first in first out
  Block* opening_last_ = nullptr;
  Block* free_blocks_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;
  FiberPool fibers_;
  std::vector<ws_range> cache_;
  uint64_t next_ = 0, end_ = 0; // numbers of blocks taken from the launch and not started
  uint32_t resident_ = 0, max_resident_ = 1;
  uint64_t progress_ = 0, seen_progress_ = 0;
  uint64_t rounds_ = 0;         // in a row without progress
  uint64_t retired_at_ = 0;     // time of the last end of a block, if rounds were needed since
  uint32_t grow_ = 1;           // blocks to start when the next stagnation is found
  void (*request_)(void*) = nullptr;
  void* request_argument_ = nullptr;
};

// Body of every fiber.
void carrier(Fiber* f);
// The worker whose fiber the calling thread runs, or null.
Worker*& this_worker();

// barrier.cpp
void reset_barriers(Block& b);
void lanes_left(Warp& w);       // w.live has shrunk: barriers may be complete now
// groups.cpp
uint32_t first_grant(const Worker& k);

}  // namespace ws
