// NVRTC has no C library; this stands in for <stdint.h>.
#pragma once
// The same types as CUDA's own headers use, which may be included as well.
#include <cuda/std/cstdint>
