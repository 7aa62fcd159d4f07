// NVRTC has no C library; this stands in for <time.h>.
#pragma once
#include <stddef.h>
// clock and clock64 are built in.
