// Fast Fourier transforms of batches: Stockham's radix-2 steps in global memory, and whole transforms in shared memory.
#include <cmath>
#include <complex>
#include <cstdio>
#include <cuComplex.h>
#include <random>
#include <vector>

__global__ void stockham_step(const float2* in, float2* out, int n, int half, float sign) {
  // Batch in y.  Butterflies of this step are `half` wide.
  in += blockIdx.y * n, out += blockIdx.y * n;
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n / 2) return;
  int k = t & (half - 1);
  float s, c;
  sincospif(sign * k / half, &s, &c);
  float2 a = in[t], b = in[t + n / 2];
  float2 w = make_float2(c * b.x - s * b.y, c * b.y + s * b.x);
  int j = ((t - k) << 1) + k;
  out[j] = make_float2(a.x + w.x, a.y + w.y);
  out[j + half] = make_float2(a.x - w.x, a.y - w.y);
}

// One block, one transform, in double precision with cuComplex.
template <int N>
__global__ void shared_fft(cuDoubleComplex* data, double sign) {
  __shared__ cuDoubleComplex s[N];
  data += blockIdx.x * N;
  for (int i = threadIdx.x; i < N; i += blockDim.x) {
    int reversed = __brev(i) >> (32 - (__ffs(N) - 1));
    s[reversed] = data[i];
  }
  for (int half = 1; half < N; half *= 2) {
    __syncthreads();
    int k = threadIdx.x % half, i = threadIdx.x / half * 2 * half + k;
    cuDoubleComplex w = make_cuDoubleComplex(cospi(sign * k / half), sinpi(sign * k / half));
    cuDoubleComplex a = s[i], b = cuCmul(w, s[i + half]);
    s[i] = cuCadd(a, b);
    s[i + half] = cuCsub(a, b);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += blockDim.x) data[i] = s[i];
}

using Complex = std::complex<double>;

std::vector<Complex> dft(const std::vector<Complex>& x, double sign) {
  const size_t n = x.size();
  std::vector<Complex> y(n), w(n);
  for (size_t k = 0; k < n; ++k) w[k] = std::polar(1.0, sign * 2 * M_PI * k / n);
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j) y[k] += w[j * k % n] * x[j];
  return y;
}

int main() {
  const int n = 512, batch = 3;
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<std::vector<Complex>> signals(batch, std::vector<Complex>(n));
  std::vector<float2> h(n * batch), got(n * batch);
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < n; ++i) {
      signals[b][i] = {float(normal(random)), float(normal(random))};
      h[b * n + i] = make_float2(signals[b][i].real(), signals[b][i].imag());
    }
  float2 *a, *b;
  cudaMalloc(&a, h.size() * sizeof(float2));
  cudaMalloc(&b, h.size() * sizeof(float2));
  cudaMemcpy(a, h.data(), h.size() * sizeof(float2), cudaMemcpyHostToDevice);
  for (int half = 1; half < n; half *= 2) {
    stockham_step<<<dim3(n / 2 / 64, batch), 64>>>(a, b, n, half, -1);
    std::swap(a, b);
  }
  cudaMemcpy(got.data(), a, got.size() * sizeof(float2), cudaMemcpyDeviceToHost);
  for (int s = 0; s < batch; ++s) {
    auto want = dft(signals[s], -1);
    for (int i = 0; i < n; ++i)
      if (std::abs(Complex(got[s * n + i].x, got[s * n + i].y) - want[i]) > 1e-3) return std::printf("FAIL: float, %d of signal %d\n", i, s), 1;
  }

  std::vector<cuDoubleComplex> d(n * batch);
  for (int i = 0; i < n * batch; ++i) d[i] = make_cuDoubleComplex(h[i].x, h[i].y);
  cuDoubleComplex* dd;
  cudaMalloc(&dd, d.size() * sizeof d[0]);
  cudaMemcpy(dd, d.data(), d.size() * sizeof d[0], cudaMemcpyHostToDevice);
  shared_fft<n><<<batch, n / 2>>>(dd, -1);
  std::vector<cuDoubleComplex> spectrum(d.size()), back(d.size());
  cudaMemcpy(spectrum.data(), dd, d.size() * sizeof d[0], cudaMemcpyDeviceToHost);
  shared_fft<n><<<batch, n / 2>>>(dd, +1);
  cudaMemcpy(back.data(), dd, d.size() * sizeof d[0], cudaMemcpyDeviceToHost);
  auto want = dft(signals[1], -1);
  for (int i = 0; i < n; ++i)
    if (std::abs(Complex(spectrum[n + i].x, spectrum[n + i].y) - want[i]) > 1e-11) return std::printf("FAIL: double, %d\n", i), 1;
  for (int i = 0; i < n * batch; ++i)
    if (cuCabs(cuCsub(cuCdiv(back[i], make_cuDoubleComplex(n, 0)), d[i])) > 1e-13) return std::printf("FAIL: inverse, %d\n", i), 1;
  if (cudaError_t e = cudaGetLastError()) return std::printf("FAIL: %s\n", cudaGetErrorString(e)), 1;
  std::printf("PASS\n");
}
