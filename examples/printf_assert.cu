// printf_assert: looking into a kernel while it runs.
//
//   ./ws run examples/printf_assert.cu              prints and passes
//   ./ws run examples/printf_assert.cu -- 5         an assertion fails, by source line, block and thread
//
// printf in a kernel writes into a buffer that reaches the screen when the host synchronises; lines of different
// threads come in any order, so print what tells them apart.  assert ends the launch when its condition is false
// (unless NDEBUG is defined), and every later call reports cudaErrorAssert.

#include <cassert>

#include "check.h"

__global__ void collatz(int n, int limit, int* steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long value = i + 1;
  int count = 0;
  while (value != 1) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    count++;
    assert(count <= limit && "the sequence is longer than expected");
  }
  steps[i] = count;
  // One warp's worth of lines is enough for a look.
  if (i < 8) printf("from %d to 1 in %d steps (block %d, thread %d)\n", i + 1, count, blockIdx.x, threadIdx.x);
}

int main(int argc, char** argv) {
  const int n = 1000, limit = argument(argc, argv, 1, 178);  // 871 takes the longest: 178 steps
  DeviceArray<int> device_steps(n);
  collatz<<<blocks_for(n, 128), 128>>>(n, limit, device_steps.data());
  CHECK(cudaGetLastError());
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) {
    std::printf("FAIL: the kernel ended with: %s\n", cudaGetErrorString(status));
    return 1;
  }

  const std::vector<int> steps = device_steps.to_host();
  for (int i = 0; i < n; i++) {
    int count = 0;
    for (long long value = i + 1; value != 1; count++) value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    if (steps[i] != count) {
      std::printf("FAIL: %d takes %d steps, not %d\n", i + 1, count, steps[i]);
      return 1;
    }
  }
  std::printf("PASS: all numbers up to %d reach 1, %d takes %d steps\n", n, 871, steps[870]);
  return 0;
}
