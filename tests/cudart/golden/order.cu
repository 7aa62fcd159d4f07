// Whose output comes first?  Kernel printf is shown when the host next waits for the device.
#include <cstdio>

#include <cuda_runtime.h>

__global__ void say(int n) { printf("kernel %d thread %d\n", n, threadIdx.x); }

int main(int argc, char**) {
  int *d, v;
  cudaStream_t s;
  cudaEvent_t e;
  cudaMalloc(&d, 4);
  cudaStreamCreate(&s);
  cudaEventCreate(&e);
  say<<<1, 2>>>(1);
  printf("host: launched 1\n");
  cudaDeviceSynchronize();
  printf("host: synchronised 1\n");
  say<<<1, 1>>>(2);
  printf("host: launched 2\n");
  say<<<1, 1>>>(3);
  printf("host: launched 3\n");
  cudaStreamSynchronize(0);
  printf("host: synchronised 3\n");
  say<<<1, 1>>>(4);
  printf("host: launched 4\n");
  cudaMemcpy(&v, d, 4, cudaMemcpyDeviceToHost);
  printf("host: copied\n");
  say<<<1, 1>>>(5);
  cudaEventRecord(e);
  printf("host: launched 5\n");
  cudaEventSynchronize(e);
  printf("host: event\n");
  say<<<1, 1>>>(6);
  printf("host: launched 6\n");
  cudaFree(d);
  printf("host: freed\n");
  cudaDeviceSynchronize();
  say<<<1, 1, 0, s>>>(7);
  printf("host: launched 7\n");
  cudaStreamDestroy(s);
  printf("host: stream destroyed\n");
  cudaDeviceSynchronize();
  say<<<1, 1>>>(8);
  printf("host: launched 8\n");
  if (argc > 1) cudaDeviceReset();
  printf("host: end\n");
}
