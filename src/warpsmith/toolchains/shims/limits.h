// NVRTC has no C library; this stands in for <limits.h>.
#pragma once
#include <cuda/std/climits>
