// options: -std=c++17
// Cooperative groups: tiles of all sizes, groups within groups, coalesced threads, partitions by label, reductions and scans,
// a function that works for any group, barriers with arrive and wait, and the whole grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

#define FAIL(...) do { std::printf("FAIL: " __VA_ARGS__); std::puts(""); std::exit(1); } while (0)

// Course work: the sum over a group with memory of its own.
template <class Group> __device__ int reduce_sum(Group g, int* temp, int value) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    temp[lane] = value;
    g.sync();
    if (lane < i) value += temp[lane + i];
    g.sync();
  }
  return value;
}

template <int kSize> __device__ void tiles(int* out) {
  auto tile = cg::tiled_partition<kSize>(cg::this_thread_block());
  int v = threadIdx.x;
  int sum = cg::reduce(tile, v, cg::plus<int>());
  int before = cg::exclusive_scan(tile, v, cg::plus<int>());
  int most = cg::reduce(tile, v * 7 % 31, cg::greater<int>());
  if (tile.meta_group_size() * kSize != blockDim.x || tile.meta_group_rank() != threadIdx.x / kSize || tile.thread_rank() != threadIdx.x % kSize) sum = -1;
  out[threadIdx.x] = sum + 10000 * most + 1000000 * (before + v == cg::inclusive_scan(tile, v));
  if (tile.any(threadIdx.x == 5) != (threadIdx.x / kSize == 5 / kSize)) out[threadIdx.x] = -2;
}

__global__ void tile_sizes(int* out) {
  tiles<1>(out), tiles<2>(out + 128), tiles<4>(out + 256), tiles<8>(out + 384), tiles<16>(out + 512), tiles<32>(out + 640);
}

__global__ void any_group(int* out) {
  extern __shared__ int temp[];
  cg::thread_block block = cg::this_thread_block();
  int sum = reduce_sum(block, temp, threadIdx.x);
  if (block.thread_rank() == 0) out[0] = sum;
  block.sync();
  auto warp = cg::tiled_partition<32>(block);
  sum = reduce_sum(warp, temp + 32 * warp.meta_group_rank(), threadIdx.x);
  if (warp.thread_rank() == 0) out[1 + warp.meta_group_rank()] = sum;
  auto four = cg::tiled_partition<4>(warp);
  sum = four.shfl(four.thread_rank(), 2) + four.shfl_xor(threadIdx.x, 1);
  out[8 + threadIdx.x] = sum;
}

__global__ void coalesced(int* counters, int* ranks, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (i % 3 == 0) {
      // One atomic for all threads that happen to be here together.
      cg::coalesced_group active = cg::coalesced_threads();
      int first = 0;
      if (active.thread_rank() == 0) first = atomicAdd(&counters[0], active.size());
      ranks[i / 3] = active.shfl(first, 0) + active.thread_rank();
    }
  }
  if (threadIdx.x < 5) {
    auto five = cg::coalesced_threads();
    counters[1] = five.size();
    if (five.thread_rank() == 4) counters[2] = five.num_threads() + 100;
  }
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(warp, threadIdx.x % 3);
  atomicAdd(&counters[3 + threadIdx.x % 3], same.thread_rank() == 0 ? (int)same.size() : 0);
  auto odd = cg::binary_partition(warp, threadIdx.x & 1);
  int weight = cg::reduce(odd, 1, cg::plus<int>());
  if (threadIdx.x == 1) counters[6] = weight;
  cg::invoke_one(warp, [&] { atomicAdd(&counters[7], 1); });
}

__global__ void phases(int* data) {
  __shared__ int s[64];
  auto block = cg::this_thread_block();
  for (int round = 0; round < 4; ++round) {
    s[threadIdx.x] = data[threadIdx.x];
    auto token = block.barrier_arrive();
    int independent = round * 2;
    block.barrier_wait(std::move(token));
    int v = s[(threadIdx.x + 1) % 64] + independent;
    block.sync();
    data[threadIdx.x] = v;
  }
}

__global__ void pointer_jumping(int* next, int* distance, int* buffer, int n) {
  // List ranking over the whole grid.
  auto grid = cg::this_grid();
  int *new_next = buffer, *new_distance = buffer + n;
  for (int step = 1; step < n; step *= 2) {
    for (int i = grid.thread_rank(); i < n; i += grid.num_threads()) {
      int j = next[i];
      new_next[i] = next[j], new_distance[i] = j == i ? distance[i] : distance[i] + distance[j];
    }
    grid.sync();
    for (int i = grid.thread_rank(); i < n; i += grid.num_threads()) next[i] = new_next[i], distance[i] = new_distance[i];
    grid.sync();
  }
}

int main() {
  int *d, h[768];
  cudaMalloc(&d, 40000);
  tile_sizes<<<1, 128>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  for (int k = 0; k < 6; ++k)
    for (int t = 0; t < 128; ++t) {
      int size = 1 << k, sum = 0, most = 0;
      for (int i = t / size * size; i < (t / size + 1) * size; ++i) sum += i, most = i * 7 % 31 > most ? i * 7 % 31 : most;
      if (h[128 * k + t] != sum + 10000 * most + 1000000) FAIL("tile of %d, thread %d: %d", size, t, h[128 * k + t]);
    }

  any_group<<<1, 64, 64 * sizeof(int)>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  if (h[0] != 2016 || h[1] != 496 || h[2] != 1520) FAIL("sums %d %d %d", h[0], h[1], h[2]);
  for (int t = 0; t < 64; ++t)
    if (h[8 + t] != 2 + (t ^ 1)) FAIL("tile in a tile");

  const int n = 1000;
  cudaMemset(d, 0, 8 * sizeof(int));
  coalesced<<<1, 128>>>(d, d + 8, n);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  bool seen[334] = {};
  for (int i = 0; i < 334; ++i) {
    int r = h[8 + i];
    if (r < 0 || r >= 334 || seen[r]) FAIL("rank %d of %d", r, i);
    seen[r] = true;
  }
  if (h[0] != 334 || h[1] != 5 || h[2] != 105 || h[3] + h[4] + h[5] != 128 || h[3] != 43 || h[6] != 16 || h[7] != 4) FAIL("coalesced");

  for (int i = 0; i < 64; ++i) h[i] = i * 10;
  cudaMemcpy(d, h, 64 * sizeof(int), cudaMemcpyHostToDevice);
  phases<<<1, 64>>>(d);
  cudaMemcpy(h, d, 64 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i)
    if (h[i] != (i + 4) % 64 * 10 + 12) FAIL("phases %d", i);

  int* buffer = d + 2 * n;
  static int next[n], distance[n];
  for (int i = 0; i < n; ++i) next[i * 77 % n] = (i + 1 < n ? i + 1 : i) * 77 % n;
  const int last = (n - 1) * 77 % n;
  for (int i = 0; i < n; ++i) distance[i] = i != last;
  cudaMemcpy(d, next, sizeof next, cudaMemcpyHostToDevice);
  cudaMemcpy(d + n, distance, sizeof distance, cudaMemcpyHostToDevice);
  int* d_distance = d + n;
  int count = n;
  void* args[] = {&d, &d_distance, &buffer, &count};
  if (cudaError_t e = cudaLaunchCooperativeKernel(pointer_jumping, 5, 64, args)) FAIL("%s", cudaGetErrorString(e));
  cudaMemcpy(distance, d_distance, sizeof distance, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    if (distance[i * 77 % n] != n - 1 - i) FAIL("list: %d is %d", i, distance[i * 77 % n]);
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  std::puts("PASS");
}
