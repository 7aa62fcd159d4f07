#include "matrix.cuh"

static __device__ int counter = 7;
__device__ float scale = 2;
__device__ int calls;

__device__ float scaled(float x) {
  atomicAdd(&calls, 1);
  return x * scale + counter;
}

__global__ void fill_kernel(float* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = squared(float(i % 3));
}

void fill(float* data, int n) { fill_kernel<<<(n + 31) / 32, 32>>>(data, n); }

int total_calls() {
  int n = 0;
  cudaMemcpyFromSymbol(&n, calls, sizeof n);
  return n;
}
