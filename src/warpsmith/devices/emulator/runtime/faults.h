// Signals: crashes of compiled code become reports, Ctrl-C ends a launch.
#pragma once

namespace ws {

void prepare_thread();          // an alternate signal stack for the calling thread
void install_fault_handlers();  // before every launch: somebody else may have replaced them

// Ctrl-C interrupts the launch while this lives (only on the main thread).
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();

 private:
  bool installed_ = false;
};

}  // namespace ws
