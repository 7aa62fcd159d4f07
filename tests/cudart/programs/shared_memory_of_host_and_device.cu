// Memory that both sides use: managed, pinned, registered, and __managed__ variables.
#include <cstring>

#include "check.h"

__managed__ int counter = 5;
__managed__ float table[4] = {1, 2, 3};
__device__ __managed__ int* pointer;

__global__ void bump(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += i;
  if (i == 0) {
    counter += 1;
    table[3] = table[0] + table[1] + table[2];
    if (pointer) *pointer += 7;
  }
}

int main() {
  printf("before any call: %d %g\n", counter, table[2]);
  counter = 10;
  int *managed, *pinned, *mapped, *device;
  CHECK(cudaMallocManaged(&managed, 400));
  CHECK(cudaMallocHost(&pinned, 400));
  CHECK(cudaHostAlloc((void**)&mapped, 400, cudaHostAllocMapped));
  for (int i = 0; i < 100; ++i) managed[i] = pinned[i] = mapped[i] = 1;
  pointer = managed + 50;
  cudaMemLocation here{cudaMemLocationTypeDevice, 0};
  CHECK(cudaMemAdvise(managed, 400, cudaMemAdviseSetReadMostly, here));
  CHECK(cudaMemPrefetchAsync(managed, 400, here, 0));
  bump<<<1, 128>>>(managed, 100);
  bump<<<1, 128>>>(pinned, 100);
  CHECK(cudaHostGetDevicePointer((void**)&device, mapped, 0));
  bump<<<1, 128>>>(device, 100);
  CHECK(cudaDeviceSynchronize());
  printf("managed %d %d pinned %d mapped %d\n", managed[99], managed[50], pinned[99], mapped[99]);
  printf("variables %d %g\n", counter, table[3]);

  // Any host memory can be made known, at any alignment; its neighbours on the same pages stay what they are.
  char* block = (char*)malloc(20000);
  memset(block, 3, 20000);
  int* registered = (int*)(block + 1028);
  CHECK(cudaHostRegister(registered, 8000, cudaHostRegisterMapped));
  for (int i = 0; i < 2000; ++i) registered[i] = 2;
  CHECK(cudaHostGetDevicePointer((void**)&device, registered, 0));
  bump<<<8, 256>>>(device, 2000);
  CHECK(cudaDeviceSynchronize());
  int d[2];
  CHECK(cudaMemcpy(d, registered + 1998, 8, cudaMemcpyDefault));
  printf("registered %d %d, neighbours %d %d\n", d[0], registered[1999], block[1027], block[19999]);
  CHECK(cudaHostUnregister(registered));
  printf("still there: %d\n", registered[1999]);
  free(block);

  cudaPointerAttributes a;
  CHECK(cudaPointerGetAttributes(&a, managed + 3));
  printf("type %d\n", a.type);
  int got = 0;
  CHECK(cudaMemcpyFromSymbol(&got, counter, 4));
  printf("by symbol %d\n", got);
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFreeHost(mapped));
}
// output:
// before any call: 5 3
// managed 100 72 pinned 100 mapped 100
// variables 13 6
// registered 2000 2001, neighbours 3 3
// still there: 2001
// type 3
// by symbol 14
