#include <cstdio>
#include <cuda_runtime.h>
int main() {
  int count = 0;
  cudaGetDeviceCount(&count);
  std::printf("devices %d\n", count);
}
