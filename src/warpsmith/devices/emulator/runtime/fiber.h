// Native stacks and the switch between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "state.h"

// Saves the callee-saved registers on the present stack, stores its pointer in *save and goes on where `to` left.
extern "C" void ws_fiber_switch(void** save, void* to);
// The second half of the switch: where a signal handler sends a thread that must drop its fiber.
extern "C" void ws_fiber_resume(void* unused, void* to);

namespace ws {

// A stack that runs one warp after the other.
struct Fiber {
  void* sp = nullptr;           // where to go on, while no warp is assigned
  Worker* worker = nullptr;
  Warp* assigned = nullptr;     // warp to start when it is switched to
  uint8_t* mapping = nullptr;   // guard, then stack
  size_t mapping_size = 0;
  uint8_t* local = nullptr;     // local memory of the warp that runs here
  size_t local_capacity = 0;

  bool in_guard(uintptr_t address) const;
  void reset();                 // back to the start of the carrier loop
};

// Frames of compiled kernels are large and do not probe the stack, so the guard is larger than any frame.
constexpr size_t kGuard = size_t(1) << 20;

class FiberPool {
 public:
  ~FiberPool();
  // Called before a launch: what every fiber must offer.
  void configure(Worker* worker, size_t stack, size_t local, uint8_t poison);
  Fiber* take();                // null: out of memory
  void give(Fiber* f) { free_.push_back(f); }
  void reset();                 // every fiber is free again, wherever it was
  void trim(size_t keep);       // returns memory beyond `keep` fibers to the system
  size_t count() const { return all_.size(); }

 private:
  Fiber* make();
  static void destroy(Fiber* f);

  Worker* worker_ = nullptr;
  size_t stack_ = 0, local_ = 0;
  uint8_t poison_ = 0;
  std::vector<Fiber*> all_, free_;
};

}  // namespace ws
