// Device code that other files define: only separate compilation (-rdc=true) finds it.
#pragma once

struct Shape {
  __device__ virtual float area() const = 0;
};

extern __device__ float scale;
extern __constant__ int offsets[4];
extern __device__ int calls;
__device__ float scaled(float x);
__device__ int offset_of(int i);

template <class T> __device__ T squared(T x) {
  static __device__ int used;
  atomicAdd(&used, 1);
  return x * x;
}

void fill(float* data, int n);
int total_calls();
