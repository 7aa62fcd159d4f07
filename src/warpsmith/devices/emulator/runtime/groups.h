// Groups of lanes that have parted, and what a warp does when it gives way.
#pragma once
#include "state.h"

namespace ws {

// Kinds of park[] entries.
enum : uint32_t { kParkBarrier = 0, kParkMeeting = 1, kParkSyncwarp = 2 };

// Lanes of `mask` wait to run at `rank`.
void queue_group(ws_groups& g, uint32_t rank, uint32_t mask);
// The group that runs next, or WS_DONE; the warp waits if all its groups are parked.
uint32_t next_group(Warp& w, ws_groups& g);
// Lanes of `mask` wait for something, then continue at `rank`.  what: barrier id or member mask.
void park_group(ws_groups& g, uint32_t kind, uint32_t rank, uint32_t mask, uint32_t what, uint32_t site, uint64_t ticket);

// Suspends the warp until one of the barriers of wait_bits completes.
void wait_for_barriers(Warp& w, ws_groups* g, uint32_t wait_bits, uint32_t site, uint32_t mask);
// No warp of the block can go on: ends the launch.
void stuck(Block& b);
// A crash in compiled code has been caught.
void report_fault(Worker& k);

}  // namespace ws
