// All ways to launch, and all kinds of parameters.
#include <cooperative_groups.h>

#include "check.h"

struct Odd { char c; double d; short s; };
struct __align__(16) Wide { int v[4]; };
struct Large { int v[900]; };

__global__ void mixed(char a, short b, Odd o, Wide w, bool yes, double* out, float f) {
  *out = a + b + o.c + o.d + o.s + w.v[0] + w.v[3] + yes + f;
}
__global__ void large(Large l, int* out) {
  int s = 0;
  for (int v : l.v) s += v;
  *out = s;
}
template <class T, int N> __global__ void templated(T* out) { *out = N; }
__global__ void shape(int* out) {
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0 && blockIdx.x + blockIdx.y + blockIdx.z == 0) {
    int v[] = {(int)gridDim.x, (int)gridDim.y, (int)gridDim.z, (int)blockDim.x, (int)blockDim.y, (int)blockDim.z};
    for (int i = 0; i < 6; ++i) out[i] = v[i];
  }
  atomicAdd(out + 6, 1);
}
__global__ void dynamic(int* out, int n) {
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = s[n - 1];
}
__global__ void together(int* p, int* out) {
  atomicAdd(p, 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0 && blockIdx.x == 3) *out = *p;
}
__global__ void nothing() {}
static __global__ void same_name(int* out) { *out = 11; }
void call_other(int* out);

int main() {
  int *d, h[8];
  double *dd, hd;
  CHECK(cudaMalloc(&d, 64));
  CHECK(cudaMalloc(&dd, 8));
  mixed<<<1, 1>>>(1, -2, Odd{3, 0.5, 4}, Wide{{10, 0, 0, 20}}, true, dd, 0.25f);
  CHECK(cudaMemcpy(&hd, dd, 8, cudaMemcpyDeviceToHost));
  printf("mixed %g\n", hd);
  Large l;
  for (int i = 0; i < 900; ++i) l.v[i] = i;
  large<<<1, 1>>>(l, d);
  CHECK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost));
  printf("large %d\n", h[0]);
  templated<long long, 77><<<1, 1>>>((long long*)dd);
  long long ll;
  CHECK(cudaMemcpy(&ll, dd, 8, cudaMemcpyDeviceToHost));
  printf("templated %lld\n", ll);
  CHECK(cudaMemset(d, 0, 64));
  shape<<<dim3(2, 3, 4), dim3(5, 6, 7)>>>(d);
  CHECK(cudaMemcpy(h, d, 28, cudaMemcpyDeviceToHost));
  printf("shape %d %d %d, %d %d %d, %d threads\n", h[0], h[1], h[2], h[3], h[4], h[5], h[6]);

  int n = 50000;
  void* args[] = {&d, &n};
  CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4));
  CHECK(cudaLaunchKernel(dynamic, dim3(1), dim3(256), args, n * 4, 0));
  CHECK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost));
  printf("dynamic %d\n", h[0]);
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(1);
  c.blockDim = dim3(64);
  c.dynamicSmemBytes = 1024;
  CHECK(cudaLaunchKernelEx(&c, dynamic, d, 200));
  CHECK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost));
  printf("ex %d\n", h[0]);
  CHECK(cudaMemset(d, 0, 64));
  int* out = d + 1;
  void* both[] = {&d, &out};
  CHECK(cudaLaunchCooperativeKernel(together, dim3(40), dim3(96), both));
  CHECK(cudaMemcpy(h, d, 8, cudaMemcpyDeviceToHost));
  printf("together %d %d\n", h[0], h[1]);
  nothing<<<1000, 1>>>();
  same_name<<<1, 1>>>(d);
  CHECK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost));
  call_other(d);
  CHECK(cudaMemcpy(h + 1, d, 4, cudaMemcpyDeviceToHost));
  printf("two files %d %d\n", h[0], h[1]);
  CHECK(cudaDeviceSynchronize());
}
// output:
// mixed 37.75
// large 404550
// templated 77
// shape 2 3 4, 5 6 7, 5040 threads
// dynamic 49999
// ex 199
// together 3840 3840
// two files 11 22
