// options: -std=c++17
// CUB inside kernels: blocked loads and stores, block-wide and warp-wide reductions, scans and sorts, with a functor of our own.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Pair {
  int value, index;
};
struct Smaller {
  __device__ Pair operator()(const Pair& a, const Pair& b) const { return b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a; }
};

template <int kThreads, int kItems>
__global__ void sort_and_scan(const int* in, int* sorted, int* scanned, int* sums, Pair* smallest) {
  using Load = cub::BlockLoad<int, kThreads, kItems, cub::BLOCK_LOAD_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<int, kThreads, kItems>;
  using Scan = cub::BlockScan<int, kThreads>;
  using Reduce = cub::BlockReduce<int, kThreads>;
  using Least = cub::BlockReduce<Pair, kThreads, cub::BLOCK_REDUCE_RAKING>;
  using Store = cub::BlockStore<int, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
    typename Least::TempStorage least;
    typename Store::TempStorage store;
  } storage;
  const int start = blockIdx.x * kThreads * kItems;
  int items[kItems], running[kItems];
  Load(storage.load).Load(in + start, items);
  __syncthreads();
  Pair mine{items[0], int(threadIdx.x) * kItems};
  for (int k = 1; k < kItems; ++k) mine = Smaller()(mine, Pair{items[k], int(threadIdx.x) * kItems + k});
  mine = Least(storage.least).Reduce(mine, Smaller());
  if (threadIdx.x == 0) smallest[blockIdx.x] = mine;
  __syncthreads();
  int total;
  Scan(storage.scan).ExclusiveSum(items, running, total);
  __syncthreads();
  Store(storage.store).Store(scanned + start, running);
  __syncthreads();
  int sum = Reduce(storage.reduce).Sum(items);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum == total ? sum : -1;
  __syncthreads();
  Sort(storage.sort).Sort(items);
  __syncthreads();
  Store(storage.store).Store(sorted + start, items);
}

__global__ void warps(const int* in, int* out) {
  using Reduce = cub::WarpReduce<int, 8>;
  using Scan = cub::WarpScan<int>;
  __shared__ typename Reduce::TempStorage reduce[16];
  __shared__ typename Scan::TempStorage scan[4];
  int v = in[threadIdx.x];
  int most = Reduce(reduce[threadIdx.x / 8]).Reduce(v, [](int a, int b) { return a > b ? a : b; });
  int before;
  Scan(scan[threadIdx.x / 32]).InclusiveSum(v, before);
  out[threadIdx.x] = before;
  if (threadIdx.x % 8 == 0) out[128 + threadIdx.x / 8] = most;
}

int main() {
  constexpr int threads = 128, items = 4, blocks = 3, n = threads * items * blocks;
  std::vector<int> h(n), sorted(n), scanned(n), sums(blocks);
  std::vector<Pair> smallest(blocks);
  for (int i = 0; i < n; ++i) h[i] = (i * 7919 + 13) % 2003 - 700;
  int* d;
  Pair* d_smallest;
  cudaMalloc(&d, (3 * n + blocks) * sizeof(int));
  cudaMalloc(&d_smallest, blocks * sizeof(Pair));
  cudaMemcpy(d, h.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  sort_and_scan<threads, items><<<blocks, threads>>>(d, d + n, d + 2 * n, d + 3 * n, d_smallest);
  cudaMemcpy(sorted.data(), d + n, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(scanned.data(), d + 2 * n, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(sums.data(), d + 3 * n, blocks * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(smallest.data(), d_smallest, blocks * sizeof(Pair), cudaMemcpyDeviceToHost);
  for (int b = 0; b < blocks; ++b) {
    auto first = h.begin() + b * threads * items, last = first + threads * items;
    int sum = 0, at = std::min_element(first, last) - first;
    for (int i = 0; i < threads * items; ++i) {
      if (scanned[b * threads * items + i] != sum) return std::printf("FAIL: scan %d of block %d\n", i, b), 1;
      sum += first[i];
    }
    if (sums[b] != sum || smallest[b].value != first[at] || smallest[b].index != at) return std::printf("FAIL: reductions of block %d\n", b), 1;
    std::sort(first, last);
  }
  if (sorted != h) return std::puts("FAIL: sort"), 1;

  int w[144], in[128];
  for (int i = 0; i < 128; ++i) in[i] = i * 37 % 101 - 40;
  cudaMemcpy(d, in, sizeof in, cudaMemcpyHostToDevice);
  warps<<<1, 128>>>(d, d + 128);
  cudaMemcpy(w, d + 128, sizeof w, cudaMemcpyDeviceToHost);
  for (int i = 0, sum = 0; i < 128; ++i) {
    sum = (i % 32 ? sum : 0) + in[i];
    if (w[i] != sum || (i % 8 == 0 && w[128 + i / 8] != *std::max_element(in + i, in + i + 8))) return std::printf("FAIL: warp %d\n", i), 1;
  }
  if (cudaGetLastError()) return 1;
  std::puts("PASS");
}
