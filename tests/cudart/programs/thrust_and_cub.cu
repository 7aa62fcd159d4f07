// Programs of the CUDA C++ core libraries.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <cub/cub.cuh>

#include "check.h"

template <int N> __global__ void block_sum(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, N>;
  __shared__ typename Reduce::TempStorage storage;
  int s = Reduce(storage).Sum(in[blockIdx.x * N + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = s;
}

int main() {
  const int n = 20000;
  thrust::host_vector<int> h(n);
  for (int i = 0; i < n; ++i) h[i] = (i * 7919) % n;
  thrust::device_vector<int> d = h;
  thrust::sort(d.begin(), d.end());
  printf("sorted %d\n", (int)thrust::is_sorted(d.begin(), d.end()));
  printf("sum %d\n", thrust::reduce(d.begin(), d.end()));
  thrust::inclusive_scan(d.begin(), d.end(), d.begin());
  printf("scan %d %d\n", (int)d[99], (int)d[n - 1]);

  thrust::device_vector<int> keys = h, sorted(n);
  size_t bytes = 0;
  CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys.data().get(), sorted.data().get(), n));
  thrust::device_vector<char> room(bytes);
  CHECK(cub::DeviceRadixSort::SortKeys(room.data().get(), bytes, keys.data().get(), sorted.data().get(), n));
  printf("radix %d %d\n", (int)sorted[0], (int)sorted[n - 1]);
  thrust::device_vector<int> sums(4);
  block_sum<128><<<4, 128>>>(sorted.data().get(), sums.data().get());
  printf("blocks %d %d\n", (int)sums[0], (int)sums[3]);
}
// output:
// sorted 1
// sum 199990000
// scan 4950 199990000
// radix 0 19999
// blocks 8128 57280
