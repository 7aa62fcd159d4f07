// Half and bfloat16: a matrix product on half2 with float sums, axpy in bfloat16, conversions of all 65536 numbers, the
// functions on half, comparisons with NaN, atomics on half2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define FAIL(...) do { std::printf("FAIL: " __VA_ARGS__); std::puts(""); std::exit(1); } while (0)

// C = A B, K even, B given by columns.
__global__ void product(const __half2* a, const __half2* b, float* c, int m, int n, int k2) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0;
  __half2 run = __float2half2_rn(0.0f);
  for (int k = 0; k < k2; ++k) {
    run = __hfma2(a[row * k2 + k], b[col * k2 + k], run);
    if (k % 4 == 3) {  // not too long in half
      sum += __low2float(run) + __high2float(run);
      run = __half2half2(__float2half(0.0f));
    }
  }
  c[row * n + col] = sum + __low2float(run) + __high2float(run);
}

__global__ void axpy(__nv_bfloat16 a, const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma(a, x[i], y[i]);
}

__global__ void convert(const uint16_t* bits, float* from_half, float* from_bf16, uint16_t* back_half, uint16_t* back_bf16) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half h = __ushort_as_half(bits[i]);
  __nv_bfloat16 b = __ushort_as_bfloat16(bits[i]);
  from_half[i] = __half2float(h), from_bf16[i] = __bfloat162float(b);
  back_half[i] = __half_as_ushort(__float2half_rn(from_half[i]));
  back_bf16[i] = __bfloat16_as_ushort(__float2bfloat16_rn(from_bf16[i]));
}

__global__ void functions(float* out) {
  const __half x = __float2half(0.75f), y = __float2half(-2.5f), nan = __ushort_as_half(0x7e00);
  int k = 0;
  auto put = [&](float v) { out[k++] = v; };
  put(__half2float(hsqrt(x))), put(__half2float(hexp(x))), put(__half2float(hlog(x))), put(__half2float(hsin(x)));
  put(__half2float(hrcp(y))), put(__half2float(hfloor(y))), put(__half2float(hrint(y))), put(__half2float(__habs(y)));
  put(__half2float(x + y * x - x / y)), put(__half2float(-x)), put(x > y), put(__heq(nan, nan)), put(__hisnan(nan)), put(__hneu(nan, x));
  put(__half2float(__hmax(x, y))), put(__half2float(__hmax(nan, y))), put(__half2int_rn(y)), put(__half2uint_rz(__float2half(7.9f)));
  put(__half2float(__int2half_rn(2049))), put(__half2float(__float2half_rz(2049.5f))), put(__half2float(__float2half_ru(2049.0f)));
  put(__half2float(__hadd_sat(x, x))), put(__hisinf(__float2half(70000.0f))), put(__half2float(__double2half(1e-7)));
  __half2 v = __floats2half2_rn(1.5f, -3.0f), w = __lowhigh2highlow(v);
  put(__low2float(w)), put(__high2float(__hmul2(v, w))), put(__hbgt2(v, w)), put(__low2float(__hgt2(v, w))), put(__high2float(h2sqrt(__habs2(v))));
}

__global__ void sum_pairs(const __half2* in, __half2* out, int n) {
  __half2 mine = __float2half2_rn(0);
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine = mine + in[i];
  for (int d = 16; d; d /= 2) mine = mine + __shfl_xor_sync(~0u, mine, d);
  if (threadIdx.x % 32 == 0) atomicAdd(out, mine);
}

static float half_value(uint16_t bits) {
  int e = bits >> 10 & 31, m = bits & 1023;
  float v = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024.0f + m, e - 25) : std::ldexp(float(m), -24);
  return bits >> 15 ? -v : v;
}

int main() {
  const int m = 33, n = 20, k = 48;
  std::vector<__half> a(m * k), b(n * k);
  for (int i = 0; i < m * k; ++i) a[i] = __float2half((i * 5 % 17 - 8) / 4.0f);
  for (int i = 0; i < n * k; ++i) b[i] = __float2half((i * 3 % 13 - 6) / 8.0f);
  __half *da, *db;
  float *dc, c[m * n];
  cudaMalloc(&da, a.size() * 2);
  cudaMalloc(&db, b.size() * 2);
  cudaMalloc(&dc, sizeof c);
  cudaMemcpy(da, a.data(), a.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * 2, cudaMemcpyHostToDevice);
  product<<<dim3(2, 5), dim3(16, 8)>>>(reinterpret_cast<__half2*>(da), reinterpret_cast<__half2*>(db), dc, m, n, k / 2);
  cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int l = 0; l < k; ++l) want += __half2float(a[i * k + l]) * __half2float(b[j * k + l]);
      if (c[i * n + j] != want) FAIL("product (%d, %d): %g, not %g", i, j, c[i * n + j], want);
    }

  std::vector<__nv_bfloat16> x(300), y(300), got(300);
  for (int i = 0; i < 300; ++i) x[i] = __float2bfloat16(i * 0.37f), y[i] = __float2bfloat16(100.0f - i);
  __nv_bfloat16 *dx, *dy;
  cudaMalloc(&dx, 600);
  cudaMalloc(&dy, 600);
  cudaMemcpy(dx, x.data(), 600, cudaMemcpyHostToDevice);
  cudaMemcpy(dy, y.data(), 600, cudaMemcpyHostToDevice);
  axpy<<<3, 128>>>(__float2bfloat16(1.5f), dx, dy, 300);
  cudaMemcpy(got.data(), dy, 600, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 300; ++i)
    if (float want = __bfloat162float(__float2bfloat16(1.5f * __bfloat162float(x[i]) + __bfloat162float(y[i]))); __bfloat162float(got[i]) != want)
      FAIL("bfloat16 %d", i);

  std::vector<uint16_t> bits(65536), half(65536), bf16(65536);
  std::vector<float> fh(65536), fb(65536);
  for (int i = 0; i < 65536; ++i) bits[i] = i;
  uint16_t* du;
  float* df;
  cudaMalloc(&du, 3 * 65536 * 2);
  cudaMalloc(&df, 2 * 65536 * 4);
  cudaMemcpy(du, bits.data(), 65536 * 2, cudaMemcpyHostToDevice);
  convert<<<256, 256>>>(du, df, df + 65536, du + 65536, du + 2 * 65536);
  cudaMemcpy(fh.data(), df, 65536 * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(fb.data(), df + 65536, 65536 * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(half.data(), du + 65536, 65536 * 2, cudaMemcpyDeviceToHost);
  cudaMemcpy(bf16.data(), du + 2 * 65536, 65536 * 2, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 65536; ++i) {
    float h = half_value(i), b;
    uint32_t wide = uint32_t(i) << 16;
    std::memcpy(&b, &wide, 4);
    if (std::isnan(h) ? !std::isnan(fh[i]) : (fh[i] != h || half[i] != i)) FAIL("half %04x", i);
    if (std::isnan(b) ? !std::isnan(fb[i]) : (fb[i] != b || bf16[i] != i)) FAIL("bfloat16 %04x", i);
  }

  float out[29];
  const float want[29] = {0.866211f, 2.117188f, -0.287598f, 0.681641f, -0.399902f, -3, -2, 2.5f, -0.824707f, -0.75f,
                          1, 0, 1, 1, 0.75f, -2.5f, -2, 7, 2048, 2048, 2050, 1, 1, 1.19209e-7f, -3, -4.5f, 0, 1, 1.732422f};
  functions<<<1, 1>>>(df);
  cudaMemcpy(out, df, sizeof out, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 29; ++i)
    if (!(std::fabs(out[i] - want[i]) <= 1e-6f + (i < 5 || i == 8 ? 1e-3f * std::fabs(want[i]) : 0))) FAIL("function %d: %.7g, not %.7g", i, out[i], want[i]);

  std::vector<__half2> pairs(500);
  for (int i = 0; i < 500; ++i) pairs[i] = __floats2half2_rn(i % 4, -(i % 3));
  __half2 *dp, *dsum, total;
  cudaMalloc(&dp, 2000);
  cudaMalloc(&dsum, 4);
  cudaMemcpy(dp, pairs.data(), 2000, cudaMemcpyHostToDevice);
  cudaMemset(dsum, 0, 4);
  sum_pairs<<<1, 128>>>(dp, dsum, 500);
  cudaMemcpy(&total, dsum, 4, cudaMemcpyDeviceToHost);
  if (__low2float(total) != 750 || __high2float(total) != -499) FAIL("pairs %g %g", __low2float(total), __high2float(total));
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  std::puts("PASS");
}
