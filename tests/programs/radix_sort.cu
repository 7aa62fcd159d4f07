// A radix sort of our own: four bits a pass, histograms by block, a scan, a stable scatter; signed integers, floats by
// flipping their bits, and 64-bit keys with values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

constexpr int kThreads = 128, kItems = 4, kTile = kThreads * kItems, kDigits = 16;

template <class T> struct Bits;
template <> struct Bits<int> {
  using Type = uint32_t;
  static __host__ __device__ Type encode(int v) { return static_cast<Type>(v) ^ 0x80000000u; }
};
template <> struct Bits<float> {
  using Type = uint32_t;
  static __device__ Type encode(float v) {
    uint32_t u = __float_as_uint(v);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
  }
};
template <> struct Bits<uint64_t> {
  using Type = uint64_t;
  static __host__ __device__ Type encode(uint64_t v) { return v; }
};

template <class K> __device__ int digit(K key, int shift) { return static_cast<int>(Bits<K>::encode(key) >> shift & (kDigits - 1)); }

template <class K> __global__ void count(const K* keys, int n, int shift, unsigned* counts) {
  __shared__ unsigned bins[kDigits];
  if (threadIdx.x < kDigits) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < kItems; ++k) {
    int i = blockIdx.x * kTile + k * kThreads + threadIdx.x;
    if (i < n) atomicAdd(&bins[digit(keys[i], shift)], 1u);
  }
  __syncthreads();
  if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];  // all blocks' zeros first
}

__global__ void scan(unsigned* counts, int n) {  // one block
  __shared__ unsigned warps[32], total;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) total = 0;
  for (int start = 0; start < n; start += blockDim.x) {
    __syncthreads();
    int i = start + threadIdx.x;
    unsigned own = i < n ? counts[i] : 0, v = own;
    for (int d = 1; d < 32; d *= 2) {
      unsigned o = __shfl_up_sync(~0u, v, d);
      if (lane >= d) v += o;
    }
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    if (warp == 0) {
      unsigned w = lane < blockDim.x / 32 ? warps[lane] : 0;
      for (int d = 1; d < 32; d *= 2) {
        unsigned o = __shfl_up_sync(~0u, w, d);
        if (lane >= d) w += o;
      }
      warps[lane] = w;
    }
    __syncthreads();
    unsigned before = total + (warp ? warps[warp - 1] : 0) + v - own;
    if (i < n) counts[i] = before;
    __syncthreads();
    if (threadIdx.x == 0) total += warps[blockDim.x / 32 - 1];
  }
}

template <class K> __global__ void scatter(const K* keys, const uint32_t* values, K* out_keys, uint32_t* out_values, int n, int shift, const unsigned* starts) {
  __shared__ unsigned next[kDigits], before[kThreads / 32][kDigits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < kDigits) next[threadIdx.x] = starts[threadIdx.x * gridDim.x + blockIdx.x];
  for (int k = 0; k < kItems; ++k) {
    int i = blockIdx.x * kTile + k * kThreads + threadIdx.x;
    bool here = i < n;
    int mine = here ? digit(keys[i], shift) : kDigits;
    unsigned same = __match_any_sync(~0u, mine);
    if (lane < kDigits) before[warp][lane] = 0;
    __syncwarp();
    if (here && lane == __ffs(same) - 1) before[warp][mine] = __popc(same);
    __syncthreads();
    if (threadIdx.x < kDigits) {
      unsigned at = next[threadIdx.x];
      for (int w = 0; w < kThreads / 32; ++w) {
        unsigned c = before[w][threadIdx.x];
        before[w][threadIdx.x] = at;
        at += c;
      }
      next[threadIdx.x] = at;
    }
    __syncthreads();
    if (here) {
      unsigned to = before[warp][mine] + __popc(same & ((1u << lane) - 1));
      out_keys[to] = keys[i];
      if (values) out_values[to] = values[i];
    }
    __syncthreads();
  }
}

template <class K> void sort(std::vector<K>& keys, std::vector<uint32_t>* values) {
  const int n = keys.size(), blocks = (n + kTile - 1) / kTile;
  K* k[2];
  uint32_t* v[2] = {nullptr, nullptr};
  unsigned* counts;
  for (K*& p : k) cudaMalloc(&p, n * sizeof(K));
  cudaMalloc(&counts, kDigits * blocks * sizeof(unsigned));
  cudaMemcpy(k[0], keys.data(), n * sizeof(K), cudaMemcpyHostToDevice);
  if (values) {
    for (uint32_t*& p : v) cudaMalloc(&p, n * sizeof(uint32_t));
    cudaMemcpy(v[0], values->data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice);
  }
  for (int shift = 0; shift < int(sizeof(K)) * 8; shift += 4) {
    count<<<blocks, kThreads>>>(k[0], n, shift, counts);
    scan<<<1, 256>>>(counts, kDigits * blocks);
    scatter<<<blocks, kThreads>>>(k[0], v[0], k[1], v[1], n, shift, counts);
    std::swap(k[0], k[1]);
    std::swap(v[0], v[1]);
  }
  cudaMemcpy(keys.data(), k[0], n * sizeof(K), cudaMemcpyDeviceToHost);
  if (values) cudaMemcpy(values->data(), v[0], n * sizeof(uint32_t), cudaMemcpyDeviceToHost);
  for (K* p : k) cudaFree(p);
  for (uint32_t* p : v) cudaFree(p);
  cudaFree(counts);
}

int main() {
  std::mt19937_64 random(2024);
  std::vector<int> ints(10000);
  for (int& i : ints) i = static_cast<int>(random());
  std::vector<int> want = ints;
  std::sort(want.begin(), want.end());
  sort(ints, nullptr);
  if (ints != want) return std::puts("FAIL: int"), 1;

  std::vector<float> floats(3001);
  for (float& f : floats) f = std::ldexp(static_cast<float>(static_cast<int>(random())), static_cast<int>(random() % 60) - 50);
  floats[5] = -INFINITY, floats[6] = 0.0f, floats[7] = 1e-42f;
  std::vector<float> wanted = floats;
  std::sort(wanted.begin(), wanted.end());
  sort(floats, nullptr);
  if (floats != wanted) return std::puts("FAIL: float"), 1;

  std::vector<uint64_t> keys(2500);
  for (uint64_t& k : keys) k = random() % 4 ? random() % 50 << 40 : random();
  std::vector<uint32_t> values(keys.size()), order(keys.size());
  std::iota(values.begin(), values.end(), 0);
  order = values;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  sort(keys, &values);
  if (values != order) return std::puts("FAIL: pairs are not in a stable order"), 1;
  if (cudaGetLastError()) return 1;
  std::puts("PASS");
}
