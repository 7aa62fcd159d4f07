// refused: 2
// Variables of the device: constants, arrays, structures with pointers to each other, static ones in two name spaces,
// templates; reading and writing them by symbol, with offsets, and by address.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define OK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("FAIL: line %d: %s\n", __LINE__, cudaGetErrorName(e_)); exit(1); } } while (0)
#define EXPECT(x) do { if (!(x)) { printf("FAIL: line %d: %s\n", __LINE__, #x); exit(1); } } while (0)

struct Parameters {
  int size;
  double factor;
  char name[12];
};

__constant__ Parameters parameters = {3, 1.5, "first"};
__constant__ float polynomial[8];
__device__ int counter = 100;
__device__ unsigned char bytes[64] = {1, 2, 3};
__device__ int* pointer_to_counter = &counter;
__device__ const char* const greeting = "hello";

namespace one { static __device__ int hidden = 11; }
namespace two { static __device__ int hidden = 22; }
template <class T> __device__ T remembered = T(7);

__global__ void evaluate(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float value = 0;
  for (int k = 7; k >= 0; --k) value = value * x[i] + polynomial[k];
  y[i] = value * static_cast<float>(parameters.factor) * parameters.size;
}

__global__ void touch(int* out) {
  atomicAdd(pointer_to_counter, static_cast<int>(threadIdx.x));
  bytes[threadIdx.x + 10] += threadIdx.x;
  if (threadIdx.x == 0) {
    out[0] = one::hidden++, out[1] = two::hidden--;
    out[2] = greeting[4];
    remembered<int> *= 2;
    remembered<float> /= 2;
    out[3] = static_cast<int>(remembered<float> * 100);
    static __device__ int calls;  // a static of the function
    out[4] = ++calls;
  }
}

int main() {
  Parameters p;
  OK(cudaMemcpyFromSymbol(&p, parameters, sizeof p));
  EXPECT(p.size == 3 && p.factor == 1.5 && !strcmp(p.name, "first"));
  p.size = 2, p.factor = 0.25;
  OK(cudaMemcpyToSymbol(parameters, &p, sizeof p));
  const float coefficients[8] = {1, 0, 2, 0, 0, 0, 0, 1};
  OK(cudaMemcpyToSymbol(polynomial, coefficients, sizeof coefficients));
  const float three = 3;
  OK(cudaMemcpyToSymbol(polynomial, &three, sizeof three, 1 * sizeof(float)));  // the coefficient of x

  float x[4] = {0, 1, -1, 2}, y[4], *dx, *dy;
  OK(cudaMalloc(&dx, sizeof x));
  OK(cudaMalloc(&dy, sizeof y));
  OK(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  evaluate<<<1, 32>>>(dx, dy, 4);
  OK(cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost));
  EXPECT(y[0] == 0.5f && y[1] == 3.5f && y[2] == -0.5f && y[3] == 0.5f * (1 + 6 + 8 + 128));

  int *d_out, out[5], value = 1000;
  OK(cudaMalloc(&d_out, sizeof out));
  OK(cudaMemcpyToSymbol(counter, &value, sizeof value));
  touch<<<1, 16>>>(d_out);
  touch<<<1, 16>>>(d_out);
  OK(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
  EXPECT(out[0] == 12 && out[1] == 21 && out[2] == 'o' && out[3] == 175 && out[4] == 2);
  OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  EXPECT(value == 1000 + 2 * 120);
  unsigned char part[5];
  OK(cudaMemcpyFromSymbol(part, bytes, sizeof part, 20));
  EXPECT(part[0] == 20 && part[4] == 28);
  OK(cudaMemcpyFromSymbol(&value, remembered<int>, sizeof value));
  EXPECT(value == 28);

  void* address = nullptr;
  size_t size = 0;
  OK(cudaGetSymbolAddress(&address, bytes));
  OK(cudaGetSymbolSize(&size, bytes));
  EXPECT(size == 64);
  OK(cudaMemset(address, 9, size));
  OK(cudaMemcpyFromSymbol(part, bytes, sizeof part, size - sizeof part));
  EXPECT(part[0] == 9 && part[4] == 9);
  int* there;
  OK(cudaGetSymbolAddress((void**)&address, counter));
  OK(cudaMemcpyFromSymbol(&there, pointer_to_counter, sizeof there));
  EXPECT(there == address);
  OK(cudaMemcpyToSymbolAsync(counter, &three, 4, 0, cudaMemcpyHostToDevice, 0));

  // What is too long is refused.
  EXPECT(cudaMemcpyToSymbol(counter, coefficients, 8) == cudaErrorInvalidValue);
  EXPECT(cudaMemcpyFromSymbol(part, bytes, 5, 60) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  int local = 0;
  EXPECT(cudaMemcpyToSymbol(&local, &value, sizeof value) == cudaErrorInvalidSymbol);
  cudaGetLastError();
  puts("PASS");
}
