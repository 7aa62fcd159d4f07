// fork: a process that starts the device itself works; one that inherits it does not, as with CUDA.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void set(int* p, int v) { *p = v; }

static void work(int v) {
  int *d, h = 0;
  CHECK(cudaMalloc(&d, 4));
  set<<<1, 1>>>(d, v);
  CHECK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
  printf("%d\n", h);
  fflush(stdout);
}

int main() {
  for (int i = 1; i <= 2; ++i) {
    if (fork() == 0) {
      work(i);
      exit(0);
    }
    wait(nullptr);
  }
  work(3);
  if (fork() == 0) {
    printf("inherited: %s\n", cudaGetErrorName(cudaFree(nullptr)));
    exit(0);
  }
  wait(nullptr);
  work(4);
}
// output:
// 1
// 2
// 3
// inherited: cudaErrorInitializationError
// 4
