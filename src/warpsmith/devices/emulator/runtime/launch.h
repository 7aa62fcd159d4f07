// One launch: what its workers share.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "deadlock.h"
#include "report.h"
#include "state.h"

namespace ws {

struct Launch {
  uint64_t id = 0;
  const ws_kernel_info* info = nullptr;
  const ws_launch_config* config = nullptr;
  uint8_t* params = nullptr;
  const uint64_t* vars = nullptr;
  uint64_t workspace = 0;       // device address of the grid barrier's words, 0 unless cooperative
  uint32_t sm_count = 1;
  uint32_t shared_size = 0;
  uint32_t threads_per_block = 0, warps_per_block = 0;
  uint64_t blocks = 0;
  bool check = false;
  uint8_t poison = 0;
  uint64_t patience_ns = 0;
  int64_t delta = 0;

  // Blocks are handed out by number; order turns a number into a place in the grid.
  uint64_t chunk = 1;
  uint32_t order = 0, seed = 0;
  std::atomic<uint64_t> next{0};
  // No more blocks wait for each other than the chip can hold: what spins for a block that no SM has room for never
  // ends there, either.  Each worker's first block is not counted, so that kernels that do not wait share no counter.
  std::atomic<uint64_t> waiting_blocks{0}, most_waiting_blocks{0};

  uint32_t worker_count = 1;    // wanted; those that really take part are in `joined`
  bool single = false;          // no other thread touches memory: atomics may be plain
  std::mutex mutex;             // guards what follows
  std::vector<Worker*> joined;
  uint64_t quiet_sum = 0, quiet_since = 0;  // deadlock detection: no progress anywhere since
  DeadlockReport deadlock;

  std::atomic<bool> failed{false};
  ws_error error{};

  // The grid position of the n-th block to start.
  uint64_t place(uint64_t n) const;
};

// Set when the running launch must end: an error, a deadlock, an interrupt.
extern std::atomic<bool> g_stop;
// Set by ws_interrupt, looked at and cleared by ws_launch.
extern std::atomic<bool> g_interrupted;

inline bool stopping() { return g_stop.load(std::memory_order_relaxed); }

const ws_chip& chip();
const ws_options& options();
uint64_t now_ns();

// Held while a launch runs.
std::mutex& launch_mutex();

// Sets what ws_last_message returns to this thread, and returns code.
int fail_call(int code, const std::string& message);

}  // namespace ws
