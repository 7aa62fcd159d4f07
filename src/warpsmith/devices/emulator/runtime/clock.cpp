// Clocks and the grid's environment registers.
#include "launch.h"
#include "memory.h"
#include "state.h"

using namespace ws;

// Time that really passes, at a plausible rate: loops that wait for a number of cycles end, and a
// difference of two readings is never zero.
uint64_t ws_clock(ws_warp*) { return now_ns() * 7 / 4; }

uint64_t ws_globaltimer(ws_warp*) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// Cooperative groups take %envreg1 (high) and %envreg2 (low) as the address of the grid's barrier; null elsewhere.
uint64_t ws_envreg(ws_warp* w, uint32_t index) {
  const uint64_t workspace = w->block->launch->workspace;
  if (index == 1) return workspace >> 32;
  if (index == 2) return workspace & 0xffffffffu;
  return 0;
}
