// Conjugate gradients for the five-point Laplacian, matrix-free, with fused kernels and dot products of two stages.
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

static void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e));
}

class Vector {
 public:
  explicit Vector(int n) : n_(n) { check(cudaMalloc(&data_, n * sizeof(double)), "cudaMalloc"); }
  explicit Vector(const std::vector<double>& v) : Vector(static_cast<int>(v.size())) {
    check(cudaMemcpy(data_, v.data(), n_ * sizeof(double), cudaMemcpyHostToDevice), "upload");
  }
  Vector(Vector&& other) noexcept : data_(other.data_), n_(other.n_) { other.data_ = nullptr; }
  Vector(const Vector&) = delete;
  ~Vector() { cudaFree(data_); }
  operator double*() { return data_; }
  int size() const { return n_; }
  std::vector<double> download() const {
    std::vector<double> v(n_);
    check(cudaMemcpy(v.data(), data_, n_ * sizeof(double), cudaMemcpyDeviceToHost), "download");
    return v;
  }

 private:
  double* data_ = nullptr;
  int n_;
};

__global__ void laplacian(const double* __restrict__ x, double* __restrict__ y, int side) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= side * side) return;
  int r = i / side, c = i % side;
  double v = 4 * x[i];
  if (r > 0) v -= x[i - side];
  if (r + 1 < side) v -= x[i + side];
  if (c > 0) v -= x[i - 1];
  if (c + 1 < side) v -= x[i + 1];
  y[i] = v;
}

__global__ void axpy(int n, double a, const double* x, double* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fma(a, x[i], y[i]);
}

__global__ void xpby(int n, const double* x, double b, double* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fma(b, y[i], x[i]);
}

__global__ void dot_partial(int n, const double* x, const double* y, double* partial) {
  __shared__ double s[128];
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i] * y[i];
  s[threadIdx.x] = sum;
  for (int d = 64; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = s[0];
}

class Dot {
 public:
  double operator()(Vector& x, Vector& y) {
    dot_partial<<<kBlocks, 128>>>(x.size(), x, y, partial_);
    check(cudaGetLastError(), "dot");
    double sum = 0;
    for (double p : partial_.download()) sum += p;
    return sum;
  }

 private:
  static constexpr int kBlocks = 24;
  Vector partial_{kBlocks};
};

int main() try {
  const int side = 40, n = side * side, blocks = (n + 127) / 128;
  std::vector<double> exact(n), zero(n, 0.0);
  for (int i = 0; i < n; ++i) exact[i] = std::sin(0.37 * i) + 0.001 * i;
  Vector truth(exact), b(n), x(zero), ap(n);
  laplacian<<<blocks, 128>>>(truth, b, side);
  Vector r(b.download()), p(b.download());
  Dot dot;
  double rr = dot(r, r), first = rr;
  int k = 0;
  for (; k < 400 && rr > 1e-24 * first; ++k) {
    laplacian<<<blocks, 128>>>(p, ap, side);
    double alpha = rr / dot(p, ap);
    axpy<<<blocks, 128>>>(n, alpha, p, x);
    axpy<<<blocks, 128>>>(n, -alpha, ap, r);
    double next = dot(r, r);
    xpby<<<blocks, 128>>>(n, r, next / rr, p);
    rr = next;
  }
  check(cudaDeviceSynchronize(), "solve");
  std::vector<double> got = x.download();
  for (int i = 0; i < n; ++i)
    if (std::fabs(got[i] - exact[i]) > 1e-9) return std::printf("FAIL: x[%d] = %.12f, not %.12f\n", i, got[i], exact[i]), 1;
  std::printf(k < 200 ? "PASS\n" : "FAIL: %d iterations\n", k);
  return k >= 200;
} catch (const std::exception& e) {
  std::printf("FAIL: %s\n", e.what());
  return 1;
}
