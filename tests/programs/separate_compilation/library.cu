// options: -rdc=true
#include "library.cuh"

__device__ unsigned long long calls;
__constant__ double tolerance = 1e-9;

__device__ double Polynomial::operator()(double x) const {
  atomicAdd(&calls, 1ull);
  return ((c[3] * x + c[2]) * x + c[1]) * x + c[0];
}

__device__ double integrate(double (*f)(double), double from, double to, int steps) {  // Simpson
  double h = (to - from) / steps, sum = f(from) + f(to);
  for (int i = 1; i < steps; ++i) sum += (i % 2 ? 4 : 2) * f(from + i * h);
  return sum * h / 3;
}

__global__ void set_result(double* out, double value) { *out = value + tolerance; }
