// Shared memory by hand: several arrays in one dynamic block, structures with alignment, a template that needs another type
// for each instance, static and dynamic together, a ring of two buffers, unions, all of one vector type.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define FAIL(...) do { std::printf("FAIL: " __VA_ARGS__); std::puts(""); std::exit(1); } while (0)

extern __shared__ __align__(16) unsigned char raw[];

struct __align__(16) Particle {
  double mass;
  float position[3];
  short charge;
  char tag;
};
static_assert(sizeof(Particle) == 32, "padded");

__global__ void three_arrays(int n, double* out) {
  double* d = reinterpret_cast<double*>(raw);
  float* f = reinterpret_cast<float*>(d + n);
  short* s = reinterpret_cast<short*>(f + n);
  int i = threadIdx.x;
  d[i] = i * 0.5, f[i] = i * 2, s[i] = -i;
  __syncthreads();
  int j = n - 1 - i;
  out[i] = d[j] + f[(i + 1) % n] + s[(i + 2) % n];
}

__global__ void structures(const Particle* in, Particle* out, int n) {
  __shared__ Particle still[32];
  Particle* moving = reinterpret_cast<Particle*>(raw);
  int i = threadIdx.x;
  still[i] = in[i];
  moving[i] = in[i];
  moving[i].position[1] += 1;
  __syncthreads();
  Particle p = moving[(i + 1) % n];
  p.mass += still[(i + 31) % n].mass;
  out[i] = p;
}

// The same name with different types would clash: a function that casts.
template <class T> __device__ T* shared_as() { return reinterpret_cast<T*>(raw); }
template <class T> __global__ void rotate_left(T* data) {
  T* s = shared_as<T>();
  s[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = s[(threadIdx.x + 1) % blockDim.x];
}

template <int kTile> __global__ void double_buffer(const int* in, int n, long long* out) {
  __shared__ int buffer[2][kTile];
  long long sum = 0;
  int now = 0;
  buffer[0][threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int start = 0; start < n; start += kTile, now ^= 1) {
    int next = start + kTile + threadIdx.x;
    if (start + kTile < n) buffer[now ^ 1][threadIdx.x] = next < n ? in[next] : 0;
    for (int k = 0; k < kTile; ++k) sum += buffer[now][k] * static_cast<int>(threadIdx.x + 1);
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

__global__ void two_views(unsigned* out) {
  __shared__ union {
    float f[64];
    unsigned u[64];
    uint8_t b[256];
  } view;
  view.f[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = view.u[threadIdx.x] ^ view.b[4 * threadIdx.x + 3];
}

__global__ void vectors(const float4* in, float* out, int n) {
  __shared__ float4 s[16];
  if (threadIdx.x < n) s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float* flat = reinterpret_cast<const float*>(s);
  float2 pair = reinterpret_cast<const float2*>(s)[threadIdx.x % (2 * n)];
  out[threadIdx.x] = flat[threadIdx.x % (4 * n)] + pair.x * pair.y;
}

int main() {
  void* d;
  cudaMalloc(&d, 1 << 16);
  double out[64];
  three_arrays<<<1, 33, 33 * (sizeof(double) + sizeof(float) + sizeof(short))>>>(33, static_cast<double*>(d));
  cudaMemcpy(out, d, 33 * sizeof(double), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 33; ++i)
    if (out[i] != (32 - i) * 0.5 + (i + 1) % 33 * 2 - (i + 2) % 33) FAIL("three arrays, %d", i);

  Particle p[32], q[32], *dp = static_cast<Particle*>(d);
  for (int i = 0; i < 32; ++i) p[i] = {i * 1.0, {i + 0.f, i + 1.f, i + 2.f}, short(i - 16), char('a' + i % 26)};
  cudaMemcpy(dp, p, sizeof p, cudaMemcpyHostToDevice);
  structures<<<1, 32, 32 * sizeof(Particle)>>>(dp, dp + 32, 32);
  cudaMemcpy(q, dp + 32, sizeof q, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) {
    const Particle& w = p[(i + 1) % 32];
    bool moved = q[i].mass == w.mass + p[(i + 31) % 32].mass && q[i].position[1] == w.position[1] + 1;
    if (!moved || q[i].position[2] != w.position[2] || q[i].charge != w.charge || q[i].tag != w.tag) FAIL("structure %d", i);
  }

  auto rotation = [&](auto sample, const char* name) {
    using T = decltype(sample);
    T h[50];
    for (int i = 0; i < 50; ++i) h[i] = T(i * 5);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    rotate_left<T><<<1, 50, sizeof h>>>(static_cast<T*>(d));
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 50; ++i)
      if (h[i] != T((i + 1) % 50 * 5)) FAIL("rotation of %s", name);
  };
  rotation(char(), "char"), rotation(0.0f, "float"), rotation(0LL, "long long"), rotation(short(), "short"), rotation(0.0, "double");

  int in[300];
  long long sums[64], total = 0;
  for (int i = 0; i < 300; ++i) total += in[i] = i * 3 - 100;
  cudaMemcpy(d, in, sizeof in, cudaMemcpyHostToDevice);
  long long* d_sums = reinterpret_cast<long long*>(static_cast<char*>(d) + 4096);
  double_buffer<64><<<1, 64>>>(static_cast<int*>(d), 300, d_sums);
  cudaMemcpy(sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i)
    if (sums[i] != total * (i + 1)) FAIL("double buffer %d: %lld", i, sums[i]);

  unsigned u[64];
  two_views<<<1, 64>>>(static_cast<unsigned*>(d));
  cudaMemcpy(u, d, sizeof u, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i) {
    union { float f; unsigned u; } v;
    v.f = i;
    if (u[i] != (v.u ^ v.u >> 24)) FAIL("two views %d", i);
  }

  float f[64], g[64];
  for (int i = 0; i < 64; ++i) f[i] = i % 9;
  cudaMemcpy(d, f, sizeof f, cudaMemcpyHostToDevice);
  vectors<<<1, 64>>>(static_cast<float4*>(d), static_cast<float*>(d) + 1024, 12);
  cudaMemcpy(g, static_cast<float*>(d) + 1024, sizeof g, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i)
    if (g[i] != f[i % 48] + f[2 * (i % 24)] * f[2 * (i % 24) + 1]) FAIL("vectors %d", i);
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  std::puts("PASS");
}
