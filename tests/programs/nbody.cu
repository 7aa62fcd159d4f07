// N-body: all pairs through shared tiles, leapfrog steps; energy and momentum must be kept, forces agree with the host.
#include <cmath>
#include <cstdio>
#include <vector>

constexpr int kTile = 64;
constexpr float kSoft2 = 0.01f;

__device__ float3 interact(float4 me, float4 other, float3 a) {
  float3 d = make_float3(other.x - me.x, other.y - me.y, other.z - me.z);
  float r2 = d.x * d.x + d.y * d.y + d.z * d.z + kSoft2;
  float inverse = rsqrtf(r2);
  float s = other.w * inverse * inverse * inverse;
  a.x += d.x * s, a.y += d.y * s, a.z += d.z * s;
  return a;
}

__global__ void __launch_bounds__(kTile) accelerate(const float4* bodies, float3* out, int n) {
  __shared__ float4 tile[kTile];
  int i = blockIdx.x * kTile + threadIdx.x;
  float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float3 a = make_float3(0, 0, 0);
  for (int base = 0; base < n; base += kTile) {
    int j = base + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) a = interact(me, tile[k], a);
    __syncthreads();
  }
  if (i < n) out[i] = a;
}

__global__ void kick_drift(float4* bodies, float3* velocity, const float3* a, float kick, float drift, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float3 v = velocity[i];
  v.x += kick * a[i].x, v.y += kick * a[i].y, v.z += kick * a[i].z;
  velocity[i] = v;
  bodies[i].x += drift * v.x, bodies[i].y += drift * v.y, bodies[i].z += drift * v.z;
}

double energy(const std::vector<float4>& p, const std::vector<float3>& v) {
  double e = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    e += 0.5 * p[i].w * (double(v[i].x) * v[i].x + double(v[i].y) * v[i].y + double(v[i].z) * v[i].z);
    for (size_t j = 0; j < i; ++j)
      e -= p[i].w * p[j].w / std::sqrt(std::pow(p[i].x - p[j].x, 2) + std::pow(p[i].y - p[j].y, 2) + std::pow(p[i].z - p[j].z, 2) + kSoft2);
  }
  return e;
}

int main() {
  const int n = 150;
  std::vector<float4> p(n);
  std::vector<float3> v(n), a(n);
  unsigned s = 4711;
  auto uniform = [&] { return ((s = s * 1664525u + 1013904223u) >> 8) / 16777216.0f * 2 - 1; };
  for (int i = 0; i < n; ++i) p[i] = make_float4(uniform(), uniform(), uniform(), 1.0f / n), v[i] = make_float3(0.1f * uniform(), 0.1f * uniform(), 0);
  float4* dp;
  float3 *dv, *da;
  cudaMalloc(&dp, n * sizeof(float4));
  cudaMalloc(&dv, n * sizeof(float3));
  cudaMalloc(&da, n * sizeof(float3));
  cudaMemcpy(dp, p.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemcpy(dv, v.data(), n * sizeof(float3), cudaMemcpyHostToDevice);
  const int blocks = (n + kTile - 1) / kTile;
  accelerate<<<blocks, kTile>>>(dp, da, n);
  cudaMemcpy(a.data(), da, n * sizeof(float3), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) {
    double x = 0;
    for (int j = 0; j < n; ++j) {
      double dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
      x += p[j].w * dx / std::pow(dx * dx + dy * dy + dz * dz + kSoft2, 1.5);
    }
    if (std::fabs(a[i].x - x) > 1e-4 * (1 + std::fabs(x))) return std::printf("FAIL: force on %d: %g, not %g\n", i, a[i].x, x), 1;
  }
  const double before = energy(p, v);
  const float dt = 0.005f;
  for (int step = 0; step < 40; ++step) {
    kick_drift<<<2, 128>>>(dp, dv, da, dt / 2, dt, n);
    accelerate<<<blocks, kTile>>>(dp, da, n);
    kick_drift<<<2, 128>>>(dp, dv, da, dt / 2, 0, n);
  }
  cudaMemcpy(p.data(), dp, n * sizeof(float4), cudaMemcpyDeviceToHost);
  cudaMemcpy(v.data(), dv, n * sizeof(float3), cudaMemcpyDeviceToHost);
  if (cudaError_t e = cudaGetLastError()) return std::printf("FAIL: %s\n", cudaGetErrorString(e)), 1;
  const double drift = std::fabs(energy(p, v) - before) / std::fabs(before);
  std::printf("%s: the energy is kept within 0.1 %%\n", drift < 1e-3 ? "PASS" : "FAIL");
  return drift >= 1e-3;
}
