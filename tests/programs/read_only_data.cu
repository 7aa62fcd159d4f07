// Hints that must not change results: restrict and __ldg, cache operators on loads and stores, launch bounds, unrolled and
// vectorised accesses, forced inlining, assumptions and branch weights, prefetching, volatile.
#include <cstdio>
#include <cstdlib>
#include <vector>

template <class T> __device__ __forceinline__ T streamed(const T* p) { return __ldcs(p); }

__global__ void __launch_bounds__(128, 4) gather(const float* __restrict__ table, const int* __restrict__ index, float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (__builtin_expect(i < n, 1)) out[i] = __ldg(table + __ldg(index + i));
}

__global__ void __launch_bounds__(64) vectorised(const float4* __restrict__ in, float4* __restrict__ out, int quads) {
  const int stride = gridDim.x * blockDim.x;
#pragma unroll 4
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += stride) {
    float4 v = __ldg(in + i);
    v.x += 1, v.y *= 2, v.z = -v.z, v.w = v.w * v.w;
    __stcs(out + i, v);
  }
}

__global__ void cache_operators(const double2* a, const int4* b, const uchar4* c, double* out) {
  int i = threadIdx.x;
  double2 d = __ldca(a + i);
  int4 q = __ldcg(b + i);
  uchar4 u = __ldlu(c + i);
  double2 e = streamed(a + i);
  int4 r = __ldcv(b + i);
  __stwb(out + i, d.x + q.w + u.z);
  __stcg(out + 64 + i, e.y + r.x + u.w);
  __stwt(out + 128 + i, double(__ldg(reinterpret_cast<const unsigned char*>(c) + 4 * i)));
}

__global__ void strided(const short2* in, int* out, int n, int stride) {
  // Every thread its own stretch, two at a time.
  int start = threadIdx.x * stride, sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < stride && start + k < n) {
      short2 v = in[start + k];
      sum += v.x * v.y;
    }
  out[threadIdx.x] = sum;
}

__device__ __noinline__ int far_away(int x) {
  __builtin_assume(x >= 0);
  return x % 8 + x / 8;
}
__global__ void hints(const int* in, int* out, volatile int* flags) {
  int i = threadIdx.x;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(in + i));
  flags[i] = i;
  int first = flags[i];
  flags[i] = first + 1;
  int second = flags[i];
  if (i & 1) [[likely]] out[i] = far_away(in[i]) + first + second;
  else out[i] = in[i] >> 1;
}

#define EXPECT(x) do { if (!(x)) return std::printf("FAIL: line %d: %s\n", __LINE__, #x), 1; } while (0)

int main() {
  const int n = 1000;
  std::vector<float> table(n), out(4 * n);
  std::vector<int> index(n);
  for (int i = 0; i < n; ++i) table[i] = i * 0.5f, index[i] = i * 617 % n;
  float *d_table, *d_out;
  int* d_index;
  cudaMalloc(&d_table, 4 * n * sizeof(float));
  cudaMalloc(&d_out, 4 * n * sizeof(float));
  cudaMalloc(&d_index, n * sizeof(int));
  cudaMemcpy(d_table, table.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_index, index.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  gather<<<(n + 127) / 128, 128>>>(d_table, d_index, d_out, n);
  cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) EXPECT(out[i] == table[index[i]]);

  vectorised<<<3, 64>>>(reinterpret_cast<float4*>(d_table), reinterpret_cast<float4*>(d_out), n / 4);
  cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i += 4) {
    EXPECT(out[i] == table[i] + 1 && out[i + 1] == table[i + 1] * 2);
    EXPECT(out[i + 2] == -table[i + 2] && out[i + 3] == table[i + 3] * table[i + 3]);
  }

  struct { double2 a[64]; int4 b[64]; uchar4 c[64]; double out[192]; } h;
  for (int i = 0; i < 64; ++i) h.a[i] = make_double2(i, -i), h.b[i] = make_int4(i, 2 * i, 3 * i, 4 * i), h.c[i] = make_uchar4(i, 255 - i, 7, i * 4);
  char* d;
  cudaMalloc(&d, sizeof h);
  cudaMemcpy(d, &h, sizeof h, cudaMemcpyHostToDevice);
  auto* dh = reinterpret_cast<decltype(h)*>(d);
  cache_operators<<<1, 64>>>(dh->a, dh->b, dh->c, dh->out);
  cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i) EXPECT(h.out[i] == i + 4 * i + 7 && h.out[64 + i] == -i + i + i * 4 && h.out[128 + i] == i);

  short2 pairs[100];
  int sums[64];
  for (int i = 0; i < 100; ++i) pairs[i] = make_short2(i - 50, 300 - i);
  cudaMemcpy(d, pairs, sizeof pairs, cudaMemcpyHostToDevice);
  for (int stride : {1, 3, 8}) {
    strided<<<1, 33>>>(reinterpret_cast<short2*>(d), d_index, 100, stride);
    cudaMemcpy(sums, d_index, sizeof sums, cudaMemcpyDeviceToHost);
    for (int t = 0; t < 33; ++t) {
      int want = 0;
      for (int i = t * stride; i < (t + 1) * stride && i < 100; ++i) want += pairs[i].x * pairs[i].y;
      EXPECT(sums[t] == want);
    }
  }

  int in[64];
  for (int i = 0; i < 64; ++i) in[i] = i * i;
  int *d_in = reinterpret_cast<int*>(d), *d_flags = d_in + 64;
  cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice);
  hints<<<1, 64>>>(d_in, d_index, d_flags);
  cudaMemcpy(sums, d_index, sizeof sums, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i) EXPECT(sums[i] == (i & 1 ? in[i] % 8 + in[i] / 8 + 2 * i + 1 : in[i] / 2));
  EXPECT(cudaGetLastError() == cudaSuccess);
  std::puts("PASS");
}
