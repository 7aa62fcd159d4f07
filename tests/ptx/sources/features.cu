// A little of everything in CUDA C++ that shows in the form of PTX.
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Shape {
  __device__ virtual float area(float scale) const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area(float scale) const override { return side * side * scale; }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float area(float scale) const override { return 3.14f * radius * radius * scale; }
};

__device__ __noinline__ float times(float a, int b) { return a * b; }
__device__ __noinline__ float minus(float a, int b) { return a - b; }
typedef float (*Operation)(float, int);
__device__ Operation operations[2] = {times, minus};

__constant__ float coefficients[4] = {1.f, 2.5f, -3.f, 1e30f};
__device__ double doubles[2] = {1.0, -0.1};
__device__ const char* messages[] = {"hello", "w\"orld\n"};
__device__ int target;
struct __attribute__((packed)) Packed {
  char c;
  const void* p;
  short s;
};
__device__ Packed packed_value = {1, &target, 3};
__managed__ int managed_value = 7;
__device__ long long table[2][3] = {{1, 2, 3}, {4, 5, -6}};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

template <class T>
__device__ __forceinline__ T squared_plus_one(T a) {
  return a * a + T(1);
}
__device__ __forceinline__ float twice(float a) {
  return squared_plus_one(a) + squared_plus_one(a + 2);
}

extern "C" __global__ void everything(float* out, int n, int choice, Operation* given) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  float x = out[i];
  switch (choice) {
    case 0: x += 1; break;
    case 1: x *= 3; break;
    case 2: x = sinf(x); break;
    case 3: x = sqrtf(x); break;
    case 4: x = times(x, 2); out[i + 1] = x; break;
    case 5: x = minus(x, 4); break;
    case 6: x = logf(x); break;
    case 7: x = x / 3; break;
    case 8: printf("%s %f %d\n", messages[i & 1], x, i); break;
  }
  x += operations[i & 1](x, i);
  if (given) x += given[i](x, 1);
  Square square(x);
  Circle circle(x);
  const Shape* shape = (i & 1) ? (const Shape*)&square : (const Shape*)&circle;
  x += shape->area(2.f);
  x += fibonacci(i & 7);
  x += twice(x);
  half h = __float2half(x);
  half2 h2 = __hfma2(__halves2half2(h, h), __halves2half2(h, h), __halves2half2(h, h));
  __nv_bfloat16 b = __float2bfloat16(x);
  b = __hmul(b, b);
  x += __low2float(h2) + __bfloat162float(b) + coefficients[i & 3] + (float)doubles[i & 1];
  out[i] = x + managed_value + packed_value.s + table[1][i % 3];
}

extern "C" __global__ void __launch_bounds__(128, 2) textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float4* out) {
  __shared__ float tile[2][32];
  out[threadIdx.x] = tex2D<float4>(t, threadIdx.x, 0.5f);
  surf2Dwrite(1.0f, s, 4 * threadIdx.x, 0);
  tile[1][threadIdx.x & 31] = out[0].x;
  __syncthreads();
  out[1].y = tile[1][0];
}
