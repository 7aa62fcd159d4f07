// The host threads that run launches.  The thread that launches is the first worker; the others sleep in between.
#pragma once
#include "launch.h"

namespace ws {

// Runs the launch on l.worker_count threads (fewer if some come too late) and returns when all have left it.
void run_on_workers(Launch& l);
uint32_t available_cores();

}  // namespace ws
