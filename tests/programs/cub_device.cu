// options: -std=c++17
// CUB over whole arrays: sum and smallest, scans by look-back, radix sort of pairs, selection, a histogram.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#define CHECK(x) do { if (cudaError_t e_ = (x)) { std::printf("FAIL: line %d: %s\n", __LINE__, cudaGetErrorString(e_)); std::exit(1); } } while (0)

// Calls twice: how much room, and then for good.
template <class F> void with_storage(F f) {
  void* storage = nullptr;
  size_t bytes = 0;
  CHECK(f(storage, bytes));
  CHECK(cudaMalloc(&storage, bytes));
  CHECK(f(storage, bytes));
  CHECK(cudaFree(storage));
}
template <class T> std::vector<T> download(const T* p, int n) {
  std::vector<T> v(n);
  CHECK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
  return v;
}

struct IsEven {
  __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};

int main() {
  const int n = 30001;
  std::vector<int> h(n), values(n);
  for (int i = 0; i < n; ++i) h[i] = static_cast<int>(i * 2654435761u >> 12) - 500000, values[i] = i;
  int *in, *out, *v_in, *v_out, *one;
  CHECK(cudaMalloc(&in, n * 4));
  CHECK(cudaMalloc(&out, n * 4));
  CHECK(cudaMalloc(&v_in, n * 4));
  CHECK(cudaMalloc(&v_out, n * 4));
  CHECK(cudaMalloc(&one, 4));
  CHECK(cudaMemcpy(in, h.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(v_in, values.data(), n * 4, cudaMemcpyHostToDevice));

  with_storage([&](void* s, size_t& b) { return cub::DeviceReduce::Sum(s, b, in, one, n); });
  if (download(one, 1)[0] != std::accumulate(h.begin(), h.end(), 0)) return std::puts("FAIL: sum"), 1;

  with_storage([&](void* s, size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, in, out, n); });
  std::vector<int> want(n);
  std::exclusive_scan(h.begin(), h.end(), want.begin(), 0);
  if (download(out, n) != want) return std::puts("FAIL: scan"), 1;

  with_storage([&](void* s, size_t& b) { return cub::DeviceRadixSort::SortPairs(s, b, in, out, v_in, v_out, n); });
  std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return h[a] < h[b]; });
  if (download(v_out, n) != values) return std::puts("FAIL: sort"), 1;

  with_storage([&](void* s, size_t& b) { return cub::DeviceSelect::If(s, b, in, out, one, n, IsEven()); });
  std::vector<int> even;
  std::copy_if(h.begin(), h.end(), std::back_inserter(even), IsEven());
  if (download(one, 1)[0] != static_cast<int>(even.size()) || download(out, static_cast<int>(even.size())) != even) return std::puts("FAIL: select"), 1;

  const int bins = 10;
  with_storage([&](void* s, size_t& b) { return cub::DeviceHistogram::HistogramEven(s, b, in, out, bins + 1, -500000, 500000, n); });
  std::vector<int> counts(bins);
  for (int x : h)
    if (x >= -500000 && x < 500000) counts[(x + 500000) / 100000]++;
  if (download(out, bins) != counts) return std::puts("FAIL: histogram"), 1;
  std::puts("PASS");
}
