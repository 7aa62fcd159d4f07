// NVRTC has no C library; this stands in for <cuda.h>.
#pragma once
// The driver interface belongs to the host; kernels need only this.
struct alignas(64) CUtensorMap {
  unsigned long long opaque[16];
};
