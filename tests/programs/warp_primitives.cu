// Warp-level code: shuffles of all kinds and types, votes, match, reduce, masks, a warp scan, a compaction, a sort of 32
// numbers in registers, partly filled warps.
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <vector>

#define ALL 0xffffffffu

__device__ int inclusive_scan(int v) {
  const int lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up_sync(ALL, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

__global__ void scans(int* data) { data[threadIdx.x] = inclusive_scan(data[threadIdx.x]); }

__device__ float sort_step(float v, int stride, bool upwards) {
  float other = __shfl_xor_sync(ALL, v, stride);
  bool low = (threadIdx.x & stride) == 0;
  return low == upwards ? fminf(v, other) : fmaxf(v, other);
}
__global__ void sort32(float* data) {
  float v = data[blockIdx.x * 32 + threadIdx.x];
  for (int size = 2; size <= 32; size *= 2)
    for (int stride = size / 2; stride; stride /= 2) v = sort_step(v, stride, size == 32 || (threadIdx.x & size) == 0);
  data[blockIdx.x * 32 + threadIdx.x] = v;
}

// Keeps what is odd, in order, without shared memory.
__global__ void compact(const int* in, int n, int* out, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  int v = i < n ? in[i] : 0;
  unsigned keep = __ballot_sync(ALL, v & 1);
  int start = 0;
  if (lane == 0 && keep) start = atomicAdd(count, __popc(keep));
  start = __shfl_sync(ALL, start, 0);
  if (v & 1) out[start + __popc(keep & ((1u << lane) - 1))] = v;
}

__global__ void votes(unsigned* out) {
  const int lane = threadIdx.x;
  unsigned* o = out + 16 * lane;
  o[0] = __all_sync(ALL, lane < 32);
  o[1] = __any_sync(ALL, lane == 17);
  o[2] = __uni_sync(ALL, lane / 32);
  o[3] = __match_any_sync(ALL, lane % 5);
  int same;
  o[4] = __match_all_sync(ALL, 42, &same) + same;
  o[5] = __match_all_sync(ALL, lane / 31, &same) + same;
  o[6] = __reduce_add_sync(ALL, lane), o[7] = __reduce_max_sync(ALL, -lane + 3), o[8] = __reduce_xor_sync(ALL, 1u << lane / 3);
  o[9] = __shfl_sync(ALL, lane, lane + 9), o[10] = __shfl_down_sync(ALL, lane * 2, 3, 8), o[11] = __shfl_xor_sync(ALL, lane, 5, 4);
  double d = __shfl_up_sync(ALL, lane * 0.5, 2);
  long long l = __shfl_sync(ALL, (long long)lane << 40, 31 - lane);
  o[12] = unsigned(d * 10), o[13] = unsigned(l >> 40);
  if (lane < 7) {
    o[14] = __activemask() & 0x7f;
    o[15] = __reduce_add_sync(0x7f, lane + 1) + __popc(__ballot_sync(0x7f, lane & 1));
  } else {
    o[14] = __match_any_sync(~0x7fu, lane > 20);
    o[15] = __any_sync(~0x7fu, lane < 7);
  }
}

int main() {
  int h[64], *d_int;
  unsigned votes_out[32 * 16], *d_votes;
  cudaMalloc(&d_int, 5000 * sizeof(int));
  cudaMalloc(&d_votes, sizeof votes_out);
  for (int i = 0; i < 64; i++) h[i] = i * i % 23;
  cudaMemcpy(d_int, h, sizeof h, cudaMemcpyHostToDevice);
  scans<<<1, 64>>>(d_int);
  int got[64];
  cudaMemcpy(got, d_int, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0, sum = 0; i < 64; i++) {
    sum = (i % 32 ? sum : 0) + h[i];
    if (got[i] != sum) return printf("FAIL: scan %d\n", i), 1;
  }

  std::vector<float> f(32 * 10), sorted;
  for (size_t i = 0; i < f.size(); i++) f[i] = float((i * 7919) % 1009) - 500;
  float* d_f;
  cudaMalloc(&d_f, f.size() * 4);
  cudaMemcpy(d_f, f.data(), f.size() * 4, cudaMemcpyHostToDevice);
  sort32<<<10, 32>>>(d_f);
  sorted = f;
  cudaMemcpy(f.data(), d_f, f.size() * 4, cudaMemcpyDeviceToHost);
  for (int k = 0; k < 10; k++) std::sort(&sorted[32 * k], &sorted[32 * k] + 32);
  if (f != sorted) return puts("FAIL: sort"), 1;

  const int n = 1500;
  std::vector<int> in(n), out(n), odd;
  for (int i = 0; i < n; i++) in[i] = i * 3 / 2;
  int *d_out, *d_count, count = 0;
  cudaMalloc(&d_out, n * 4);
  cudaMalloc(&d_count, 4);
  cudaMemcpy(d_int, in.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemset(d_count, 0, 4);
  compact<<<6, 256>>>(d_int, n, d_out, d_count);
  cudaMemcpy(&count, d_count, 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(out.data(), d_out, n * 4, cudaMemcpyDeviceToHost);
  std::copy_if(in.begin(), in.end(), std::back_inserter(odd), [](int v) { return v & 1; });
  std::sort(odd.begin(), odd.end());
  out.resize(count);
  std::sort(out.begin(), out.end());  // warps come in any order
  if (out != odd) return printf("FAIL: compact %d\n", count), 1;

  votes<<<1, 32>>>(d_votes);
  cudaMemcpy(votes_out, d_votes, sizeof votes_out, cudaMemcpyDeviceToHost);
  for (int lane = 0; lane < 32; lane++) {
    unsigned match = 0;
    for (int k = lane % 5; k < 32; k += 5) match |= 1u << k;
    // A shuffle by xor within four lanes also reads earlier groups, never later ones.
    const int crossed = (lane ^ 5) / 4 > lane / 4 ? lane : lane ^ 5;
    const unsigned all_and_flag = 0xffffffffu + 1u, odd_bits = 0x3ffu;  // ten bits three times, the last one twice
    const unsigned want[16] = {1, 1, 1, match, all_and_flag, 0, 496, 3, odd_bits, unsigned(lane + 9) % 32,
                               unsigned((lane % 8 + 3 < 8 ? lane + 3 : lane) * 2), unsigned(crossed),
                               unsigned((lane < 2 ? lane : lane - 2) * 5), unsigned(31 - lane),
                               lane < 7 ? 0x7fu : lane > 20 ? 0xffe00000u : 0x001fff80u, lane < 7 ? 31u : 0u};
    for (int k = 0; k < 16; k++) {
      if (votes_out[16 * lane + k] != want[k]) return printf("FAIL: lane %d, vote %d: %x, not %x\n", lane, k, votes_out[16 * lane + k], want[k]), 1;
    }
  }
  if (cudaGetLastError()) return 1;
  puts("PASS");
}
