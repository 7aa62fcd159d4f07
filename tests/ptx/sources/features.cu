#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdio>
struct Shape { __device__ virtual float area(float) const = 0; __device__ virtual ~Shape() {} };
struct Sq : Shape { float s; __device__ Sq(float x):s(x){} __device__ float area(float k) const override { return s*s*k; } };
struct Ci : Shape { float r; __device__ Ci(float x):r(x){} __device__ float area(float k) const override { return 3.14f*r*r*k; } };
__device__ __noinline__ float f1(float a, int b) { return a*b; }
__device__ __noinline__ float f2(float a, int b) { return a-b; }
typedef float (*fp)(float,int);
__device__ fp table[2] = { f1, f2 };
__constant__ float cf[4] = {1.f, 2.5f, -3.f, 1e30f};
__device__ double dd[2] = {1.0, -0.1};
__device__ const char* msgs[] = {"hello", "w\"orld\n"};
struct Packed { char c; const void* p; short s; } __attribute__((packed));
__device__ int target;
__device__ Packed pk = {1, &target, 3};
__managed__ int mg = 7;
__device__ long long ll[2][3] = {{1,2,3},{4,5,-6}};
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n-1) + fib(n-2); }
template<class T> __device__ __forceinline__ T inl(T a) { return a * a + T(1); }
__device__ __forceinline__ float inl2(float a) { return inl(a) + inl(a + 1); }
extern "C" __global__ void k(float* out, int n, int sel, fp* user) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  float x = out[i];
  switch (sel) {
    case 0: x += 1; break; case 1: x *= 3; break; case 2: x = sinf(x); break; case 3: x = sqrtf(x); break;
    case 4: x = f1(x, 2); out[i+1] = x; break; case 5: x = f2(x, 4); break; case 6: x = logf(x); break; case 7: x = x/3; break;
    case 8: printf("%s %f %d\n", msgs[i&1], x, i); break;
  }
  x += table[i & 1](x, i);
  if (user) x += user[i](x, 1);
  Sq s(x); Ci c(x); const Shape* p = (i & 1) ? (const Shape*)&s : (const Shape*)&c;
  x += p->area(2.f);
  x += fib(i & 7) + inl2(x);
  half h = __float2half(x); half2 h2 = __halves2half2(h, h); h2 = __hfma2(h2, h2, h2);
  __nv_bfloat16 b = __float2bfloat16(x); b = __hmul(b, b);
  x += __low2float(h2) + __bfloat162float(b) + cf[i & 3] + (float)dd[i&1] + mg + pk.s + ll[1][i%3];
  out[i] = x;
}
__global__ void __launch_bounds__(128, 2) tex(cudaTextureObject_t t, cudaSurfaceObject_t s, float4* o) {
  o[threadIdx.x] = tex2D<float4>(t, threadIdx.x, 0.5f);
  surf2Dwrite(1.0f, s, 4*threadIdx.x, 0);
  __shared__ float sm[2][32]; sm[1][threadIdx.x & 31] = o[0].x; __syncthreads(); o[1].y = sm[1][0];
}
