// The bug: a named barrier counts 128 threads, but only the 64 of the first two warps ever come to it.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void produce_consume(int* out) {
  __shared__ int box[64];
  if (threadIdx.x < 64) {
    box[threadIdx.x] = threadIdx.x;
    asm volatile("bar.sync 1, 128;");
  } else {
    out[threadIdx.x - 64] = box[threadIdx.x - 64];
    __syncthreads();
  }
}

int main() {
  int* out;
  cudaMalloc(&out, 64 * sizeof(int));
  produce_consume<<<1, 128>>>(out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
