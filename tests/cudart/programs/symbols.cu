// Variables of the device: initial values, addresses in initial values, access from the host.
#include "check.h"

struct Node { int value; const Node* next; };
__device__ int plain = 42;
__device__ int zeros[100];
__constant__ double coefficients[4] = {0.5, 0.25};
__device__ Node third = {3, nullptr};
__device__ Node second = {2, &third};
__device__ Node first = {1, &second};
__device__ int* inside = &zeros[10];
static __device__ const char* name = "from the device";
__device__ short odd[3] = {1, -2, 3};

namespace scope {
__device__ unsigned long long big = 0xfedcba9876543210ull;
}
template <int N> __device__ int data[N] = {N, N + 1};

__global__ void walk() {
  int sum = 0;
  for (const Node* n = &first; n; n = n->next) sum = 10 * sum + n->value;
  *inside = sum;
  plain += odd[1] + zeros[99] + data<5>[1];
  printf("%s: %d %.3f %llx %d\n", name, sum, coefficients[0] + coefficients[1], scope::big, data<3>[0]);
}

int main() {
  double c[4];
  int v = 7, all[100];
  void* where;
  size_t size;
  CHECK(cudaMemcpyFromSymbol(c, coefficients, sizeof c));
  printf("%g %g %g\n", c[0], c[1], c[3]);
  walk<<<1, 1>>>();
  CHECK(cudaMemcpyFromSymbol(&v, plain, 4));
  CHECK(cudaMemcpyFromSymbol(all, zeros, sizeof all));
  printf("%d %d %d\n", v, all[10], all[11]);
  c[1] = 8;
  CHECK(cudaMemcpyToSymbol(coefficients, &c[1], 8, 8));
  CHECK(cudaGetSymbolAddress(&where, plain));
  v = 100;
  CHECK(cudaMemcpy(where, &v, 4, cudaMemcpyHostToDevice));
  CHECK(cudaGetSymbolSize(&size, zeros));
  CHECK(cudaMemcpyToSymbolAsync(odd, "\1\0\1\0", 4, 2, cudaMemcpyHostToDevice, 0));
  walk<<<1, 1>>>();
  CHECK(cudaMemcpyFromSymbol(&v, plain, 4));
  printf("%d, %zu bytes\n", v, size);
}
// output:
// 0.5 0.25 0
// from the device: 123 0.750 fedcba9876543210 3
// 46 123 0
// from the device: 123 8.500 fedcba9876543210 3
// 107, 400 bytes
