// printf in kernels: every kind of argument and format, many of them, long lines, in the order of one thread.
#include <cstdio>

__global__ void formats(const char* from_host_side, int* p) {
  printf("integers: %d %i %u %x %X %o %c|%5d|%-5d|%05d|%+d|% d|%#x\n", -1, 2, 4000000000u, 255, 255, 8, 'c', 42, 42, 42, 42, 42, 255);
  printf("sizes: %hd %hu %ld %lld %llu %lu %lx\n", (short)-3, (unsigned short)65533, -5L, 1LL << 40, ~0ULL, 1UL << 33, 1UL << 36);
  printf("floats: %f %.2f %10.3f|%-10.1f|%e %.3E %g %G %g %g\n", 1.5f, 3.14159, 2.71828, 9.99, 12345.678, 0.00012, 1e-10, 1e20, 0.1, 100.0);
  printf("special: %f %f %g %g %%\n", 1.0 / 0.0, -1.0 / 0.0, -0.0, 0.0);
  printf("hexadecimal: %a\n", 1.0);
  printf("strings: %s|%10s|%-10s|%.3s|%s\n", "abc", "right", "left", "cut off", "");
  printf("star: %*d|%-*d|\n", 6, 7, 6, 7);
  printf("pointer: %d %d\n", p == nullptr, from_host_side == nullptr);
  printf("no arguments\n");
  printf("parts of ");
  printf("a line ");
  printf("%d\n", printf("<>"));
}

__global__ void blocks_in_turn(int* turn) {
  // One thread of each block speaks, when it is its turn.
  if (threadIdx.x == 0) {
    while (atomicAdd(turn, 0) != blockIdx.x) {
    }
    printf("block %d of %d, %d threads\n", blockIdx.x, gridDim.x, blockDim.x);
    __threadfence();
    atomicAdd(turn, 1);
  }
}

template <class T> __device__ void show(const char* name, T value);
template <> __device__ void show(const char* name, int value) { printf("%s = %d\n", name, value); }
template <> __device__ void show(const char* name, double value) { printf("%s = %.3f\n", name, value); }

__global__ void from_functions() {
  show("answer", 42);
  show("pi", 3.14159);
  for (int i = 0; i < 3; i++)
    if (i != 1) printf("%d%s", i, i == 2 ? "\n" : ", ");
}

int main() {
  int* turn;
  cudaMalloc(&turn, sizeof(int));
  cudaMemset(turn, 0, sizeof(int));
  formats<<<1, 1>>>(nullptr, turn);
  cudaDeviceSynchronize();
  printf("the host comes between\n");
  blocks_in_turn<<<4, 64>>>(turn);
  cudaDeviceSynchronize();
  from_functions<<<1, 1>>>();
  cudaDeviceSynchronize();
  size_t size = 0;
  cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize);
  printf("buffer: %s\n", size >= 1 << 20 ? "1 MiB or more" : "small");
  return cudaGetLastError();
}
