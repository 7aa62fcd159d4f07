// Sorting 2^20 keys with CUB and Thrust, and with std::sort on the host; prints "name seconds" a line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cub/device/device_radix_sort.cuh>
#include <random>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <vector>

template <class F>
double seconds(F f) {
  auto start = std::chrono::steady_clock::now();
  f();
  cudaDeviceSynchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int main() {
  const int n = 1 << 20;
  std::mt19937 rng(1);
  std::vector<unsigned> keys(n), sorted, out(n);
  for (auto& k : keys) k = rng();
  sorted = keys;
  double host = seconds([&] { std::sort(sorted.begin(), sorted.end()); });

  unsigned *a, *b;
  void* temporary = nullptr;
  size_t bytes = 0;
  cudaMalloc(&a, n * sizeof(unsigned));
  cudaMalloc(&b, n * sizeof(unsigned));
  cudaMemcpy(a, keys.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
  cub::DeviceRadixSort::SortKeys(temporary, bytes, a, b, n);
  cudaMalloc(&temporary, bytes);
  cub::DeviceRadixSort::SortKeys(temporary, bytes, a, b, n);  // compiles the kernels
  double cub = seconds([&] { cub::DeviceRadixSort::SortKeys(temporary, bytes, a, b, n); });
  cudaMemcpy(out.data(), b, n * sizeof(unsigned), cudaMemcpyDeviceToHost);
  if (out != sorted) return printf("FAIL: cub\n"), 1;

  thrust::device_vector<unsigned> v(keys.begin(), keys.end());
  thrust::sort(v.begin(), v.end());
  v.assign(keys.begin(), keys.end());
  double thrust = seconds([&] { thrust::sort(v.begin(), v.end()); });
  cudaMemcpy(out.data(), thrust::raw_pointer_cast(v.data()), n * sizeof(unsigned), cudaMemcpyDeviceToHost);
  if (out != sorted) return printf("FAIL: thrust\n"), 1;
  printf("std::sort %f\ncub::DeviceRadixSort %f\nthrust::sort %f\n", host, cub, thrust);
  return 0;
}
