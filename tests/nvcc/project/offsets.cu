// In the static library; nothing but device code asks for it.
#include "matrix.cuh"

__constant__ int offsets[4] = {1000, 2000, 3000, 4000};
__device__ int offset_of(int i) { return offsets[i % 4]; }
