// The bug: the host reads device memory through the pointer that cudaMalloc gave it.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void fill(int* x) { x[threadIdx.x] = threadIdx.x * 10; }

int main() {
  int* x;
  cudaMalloc(&x, 32 * sizeof(int));
  fill<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  printf("x[3] = %d\n", x[3]);
  return 0;
}
