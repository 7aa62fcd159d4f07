// Heat diffusion in one, two and three dimensions, in double precision, checked against an exact solution.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CUDA_CHECK(expr)                                                                   \
  if (cudaError_t status = (expr); status != cudaSuccess) {                                \
    fprintf(stderr, "%s:%d %s failed: %s\n", __FILE__, __LINE__, #expr, cudaGetErrorString(status)); \
    exit(EXIT_FAILURE);                                                                    \
  }

constexpr double kPi = 3.14159265358979323846;

// A grid point and one on each side; fixed zero ends.
__global__ void step1(const double* u, double* next, int n, double c) {
  extern __shared__ double s[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
  if (i < n) {
    s[t] = u[i];
    if (threadIdx.x == 0) s[0] = i > 0 ? u[i - 1] : 0;
    if (threadIdx.x == blockDim.x - 1 || i == n - 1) s[t + 1] = i < n - 1 ? u[i + 1] : 0;
  }
  __syncthreads();
  if (i < n) next[i] = s[t] + c * (s[t - 1] - 2 * s[t] + s[t + 1]);
}

__global__ void step2(const double* u, double* next, int n, double c) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  auto at = [=](int ax, int ay) { return ax < 0 || ay < 0 || ax >= n || ay >= n ? 0.0 : u[ay * n + ax]; };
  next[y * n + x] = at(x, y) + c * (at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1) - 4 * at(x, y));
}

// 2.5-D blocking: a block walks along z and keeps the neighbours in registers.
template <int BX, int BY>
__global__ void step3(const double* __restrict__ u, double* __restrict__ next, int n, double c) {
  __shared__ double plane[BY + 2][BX + 2];
  const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
  const bool inside = x < n && y < n;
  const size_t stride = static_cast<size_t>(n) * n;
  const double* p = u + static_cast<size_t>(y) * n + x;
  double below = 0, here = inside ? p[0] : 0;
  for (int z = 0; z < n; ++z) {
    const double above = inside && z + 1 < n ? p[(z + 1) * stride] : 0;
    plane[threadIdx.y + 1][threadIdx.x + 1] = here;
    if (threadIdx.x == 0) plane[threadIdx.y + 1][0] = x > 0 && y < n ? p[z * stride - 1] : 0;
    if (threadIdx.x == BX - 1) plane[threadIdx.y + 1][BX + 1] = x + 1 < n && y < n ? p[z * stride + 1] : 0;
    if (threadIdx.y == 0) plane[0][threadIdx.x + 1] = y > 0 && x < n ? p[z * stride - n] : 0;
    if (threadIdx.y == BY - 1) plane[BY + 1][threadIdx.x + 1] = y + 1 < n && x < n ? p[z * stride + n] : 0;
    __syncthreads();
    if (inside) {
      const double sides = plane[threadIdx.y + 1][threadIdx.x] + plane[threadIdx.y + 1][threadIdx.x + 2] +
                           plane[threadIdx.y][threadIdx.x + 1] + plane[threadIdx.y + 2][threadIdx.x + 1];
      next[z * stride + static_cast<size_t>(y) * n + x] = here + c * (sides + below + above - 6 * here);
    }
    __syncthreads();
    below = here, here = above;
  }
}

template <class Launch>
void check(int dimensions, int n, int steps, double c, Launch launch) {
  size_t total = 1;
  for (int d = 0; d < dimensions; ++d) total *= n;
  std::vector<double> u(total), got(total);
  for (size_t i = 0; i < total; ++i) {
    double v = 1;
    size_t rest = i;
    for (int d = 0; d < dimensions; ++d, rest /= n) v *= sin(kPi * (rest % n + 1) / (n + 1));
    u[i] = v;
  }
  double *a, *b;
  CUDA_CHECK(cudaMalloc(&a, total * sizeof(double)));
  CUDA_CHECK(cudaMalloc(&b, total * sizeof(double)));
  CUDA_CHECK(cudaMemcpy(a, u.data(), total * sizeof(double), cudaMemcpyHostToDevice));
  for (int s = 0; s < steps; ++s) {
    launch(a, b);
    CUDA_CHECK(cudaGetLastError());
    std::swap(a, b);
  }
  CUDA_CHECK(cudaMemcpy(got.data(), a, total * sizeof(double), cudaMemcpyDeviceToHost));
  // The lowest mode is an eigenvector of the step.
  const double factor = pow(1 - 4 * dimensions * c * pow(sin(kPi / (2 * (n + 1))), 2), steps);
  for (size_t i = 0; i < total; ++i)
    if (fabs(got[i] - factor * u[i]) > 1e-13) {
      printf("FAIL: %d-D, point %zu: %.17g, not %.17g\n", dimensions, i, got[i], factor * u[i]);
      exit(1);
    }
  CUDA_CHECK(cudaFree(a));
  CUDA_CHECK(cudaFree(b));
}

int main() {
  int n = 1000;
  check(1, n, 100, 0.3, [=](double* a, double* b) { step1<<<(n + 127) / 128, 128, 130 * sizeof(double)>>>(a, b, n, 0.3); });
  n = 75;
  check(2, n, 40, 0.2, [=](double* a, double* b) { step2<<<dim3(5, 10), dim3(16, 8)>>>(a, b, n, 0.2); });
  n = 27;
  check(3, n, 12, 0.15, [=](double* a, double* b) { step3<16, 8><<<dim3(2, 4), dim3(16, 8)>>>(a, b, n, 0.15); });
  puts("PASS");
}
