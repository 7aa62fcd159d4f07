// Functions by address: tables, virtual functions, lambdas, recursion.
#include "check.h"

typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ Operation operations[] = {plus, times};
__device__ Operation chosen = times;

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float a;
  __device__ Square(float a) : a(a) {}
  __device__ float area() const override { return a * a; }
};
struct Circle : Shape {
  float r;
  __device__ Circle(float r) : r(r) {}
  __device__ float area() const override { return 3 * r * r; }
};

__global__ void table(int* out) {
  int i = threadIdx.x;
  out[i] = operations[i % 2](i, 10) + chosen(2, 3);
}
__global__ void get_pointer(Operation* p) { *p = plus; }
__global__ void use_pointer(Operation p, int* out) { *out = p(40, 2); }
__global__ void shapes(float* out) {
  Shape* s = threadIdx.x % 2 ? (Shape*)new Circle(threadIdx.x) : (Shape*)new Square(threadIdx.x);
  out[threadIdx.x] = s->area();
  delete s;
}
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursive(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
template <class F> __global__ void apply(F f, int* out) { out[threadIdx.x] = f(threadIdx.x); }

int main() {
  int *d, h[40];
  float *f, hf[8];
  Operation *p, op;
  CHECK(cudaMalloc(&d, 160));
  CHECK(cudaMalloc(&f, 32));
  CHECK(cudaMalloc(&p, 8));
  table<<<1, 4>>>(d);
  CHECK(cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost));
  printf("%d %d %d %d\n", h[0], h[1], h[2], h[3]);
  get_pointer<<<1, 1>>>(p);
  CHECK(cudaMemcpy(&op, p, 8, cudaMemcpyDeviceToHost));
  use_pointer<<<1, 1>>>(op, d);
  CHECK(cudaMemcpyFromSymbol(&op, chosen, 8));
  use_pointer<<<1, 1>>>(op, d + 1);
  CHECK(cudaMemcpy(h, d, 8, cudaMemcpyDeviceToHost));
  printf("%d %d\n", h[0], h[1]);
  shapes<<<1, 8>>>(f);
  CHECK(cudaMemcpy(hf, f, 32, cudaMemcpyDeviceToHost));
  for (float a : hf) printf("%g ", a);
  puts("");
  recursive<<<1, 16>>>(d);
  CHECK(cudaMemcpy(h, d, 64, cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", h[1], h[10], h[15]);
  int base = 5;
  apply<<<1, 4>>>([=] __device__(int i) { return base + i; }, d);
  CHECK(cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost));
  printf("%d %d\n", h[0], h[3]);
}
// output:
// 16 16 18 36
// 42 80
// 0 3 4 27 16 75 36 147 
// 1 55 610
// 5 8
