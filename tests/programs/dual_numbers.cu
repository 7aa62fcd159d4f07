// Classes with overloaded operators: dual numbers for derivatives (Newton's method with exact slopes), quaternions that
// turn vectors, rational numbers kept in lowest terms.
#include <cmath>
#include <cstdio>
#include <cstdlib>

struct Dual {
  double value, slope;
  __host__ __device__ Dual(double value = 0, double slope = 0) : value(value), slope(slope) {}
  __host__ __device__ Dual& operator+=(const Dual& o) { return *this = *this + o; }
  __host__ __device__ friend Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.slope + b.slope}; }
  __host__ __device__ friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.slope - b.slope}; }
  __host__ __device__ friend Dual operator*(const Dual& a, const Dual& b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  __host__ __device__ friend Dual operator/(const Dual& a, const Dual& b) {
    return {a.value / b.value, (a.slope * b.value - a.value * b.slope) / (b.value * b.value)};
  }
  __host__ __device__ friend Dual sin(const Dual& a) { return {::sin(a.value), a.slope * ::cos(a.value)}; }
  __host__ __device__ friend Dual exp(const Dual& a) { return {::exp(a.value), a.slope * ::exp(a.value)}; }
  __host__ __device__ friend Dual log(const Dual& a) { return {::log(a.value), a.slope / a.value}; }
};

template <class T> __host__ __device__ T f(const T& x) { return exp(sin(x)) * x / (x * x + 1.0) - log(x + 2.0); }

__global__ void derivatives(const double* x, double* slopes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) slopes[i] = f(Dual(x[i], 1)).slope;
}

__global__ void cube_roots(double* out) {  // Newton
  double a = threadIdx.x + 1;
  Dual x(a, 1);
  for (int k = 0; k < 60; ++k) {
    Dual y = x * x * x - a;
    x = Dual(x.value - y.value / y.slope, 1);
  }
  out[threadIdx.x] = x.value;
}

struct Quaternion {
  double w, x, y, z;
  __device__ Quaternion operator*(const Quaternion& o) const {
    return {w * o.w - x * o.x - y * o.y - z * o.z, w * o.x + x * o.w + y * o.z - z * o.y, w * o.y - x * o.z + y * o.w + z * o.x, w * o.z + x * o.y - y * o.x + z * o.w};
  }
  __device__ Quaternion operator~() const { return {w, -x, -y, -z}; }
  __device__ double& operator[](int i) { return (&w)[i]; }
};

__global__ void turn(double* out) {  // (1, 2, 3) about the z axis, thread by thread a little further
  double half = threadIdx.x * 3.14159265358979323846 / 32;
  Quaternion q{cos(half), 0, 0, sin(half)}, v{0, 1, 2, 3}, r = q * v * ~q;
  for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = r[k];
}

class Rational {
 public:
  __device__ Rational(long long n = 0, long long d = 1) : n_(n), d_(d) {
    long long a = n < 0 ? -n : n, b = d;
    while (b) {
      long long t = a % b;
      a = b, b = t;
    }
    n_ /= a, d_ /= a;
  }
  __device__ Rational operator+(Rational o) const { return {n_ * o.d_ + o.n_ * d_, d_ * o.d_}; }
  __device__ Rational operator*(Rational o) const { return {n_ * o.n_, d_ * o.d_}; }
  __device__ explicit operator double() const { return double(n_) / d_; }
  __device__ bool operator==(Rational o) const { return n_ == o.n_ && d_ == o.d_; }
  __device__ long long numerator() const { return n_; }
  __device__ long long denominator() const { return d_; }

 private:
  long long n_, d_;
};

__global__ void harmonic(long long* out) {
  Rational sum;
  for (int k = 1; k <= threadIdx.x + 1; ++k) sum = sum + Rational(1, k);
  out[2 * threadIdx.x] = sum.numerator();
  out[2 * threadIdx.x + 1] = sum == Rational(2) * sum * Rational(1, 2) ? sum.denominator() : -1;
}

int main() {
  const int n = 200;
  double x[n], got[n], *d_x, *d_out;
  for (int i = 0; i < n; ++i) x[i] = -1.5 + 0.05 * i;
  cudaMalloc(&d_x, sizeof x);
  cudaMalloc(&d_out, sizeof x);
  cudaMemcpy(d_x, x, sizeof x, cudaMemcpyHostToDevice);
  derivatives<<<2, 128>>>(d_x, d_out, n);
  cudaMemcpy(got, d_out, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    if (std::fabs(got[i] - f(Dual(x[i], 1)).slope) > 1e-13 || std::fabs(got[i] - (f(x[i] + 1e-6) - f(x[i] - 1e-6)) / 2e-6) > 1e-8)
      return std::printf("FAIL: slope at %g is %g\n", x[i], got[i]), 1;
  cube_roots<<<1, 100>>>(d_out);
  cudaMemcpy(got, d_out, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 100; ++i)
    if (std::fabs(got[i] - std::cbrt(i + 1.0)) > 1e-14) return std::printf("FAIL: root of %d\n", i + 1), 1;
  turn<<<1, 32>>>(d_out);
  cudaMemcpy(got, d_out, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) {
    double a = i * M_PI / 16, want[4] = {0, std::cos(a) - 2 * std::sin(a), std::sin(a) + 2 * std::cos(a), 3};
    for (int k = 0; k < 4; ++k)
      if (std::fabs(got[4 * i + k] - want[k]) > 1e-14) return std::printf("FAIL: turn %d\n", i), 1;
  }
  long long h[40], *d_h;
  cudaMalloc(&d_h, sizeof h);
  harmonic<<<1, 20>>>(d_h);
  cudaMemcpy(h, d_h, sizeof h, cudaMemcpyDeviceToHost);
  // H(20) = 55835135 / 15519504
  if (h[38] != 55835135 || h[39] != 15519504 || h[2] != 3 || h[3] != 2) return std::printf("FAIL: %lld / %lld\n", h[38], h[39]), 1;
  if (cudaGetLastError()) return 1;
  std::puts("PASS");
}
