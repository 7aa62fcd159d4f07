// A separable Gaussian blur of an image with three bytes a pixel, without and with shared memory, bit for bit.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

struct Rgb { uint8_t r, g, b; };  // 3 bytes, no padding
static_assert(sizeof(Rgb) == 3, "packed");

constexpr int kRadius = 3;
__constant__ int weights[2 * kRadius + 1];  // their sum is 256

__host__ __device__ inline int clampi(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

template <bool kHorizontal>
__global__ void blur(const Rgb* in, Rgb* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int r = 128, g = 128, b = 128;
  for (int k = -kRadius; k <= kRadius; ++k) {
    int sx = kHorizontal ? clampi(x + k, 0, width - 1) : x, sy = kHorizontal ? y : clampi(y + k, 0, height - 1);
    const Rgb p = in[sy * width + sx];
    r += weights[k + kRadius] * p.r, g += weights[k + kRadius] * p.g, b += weights[k + kRadius] * p.b;
  }
  out[y * width + x] = Rgb{uint8_t(r >> 8), uint8_t(g >> 8), uint8_t(b >> 8)};
}

// A row of a tile by bytes: neighbouring threads read neighbouring bytes.
__global__ void blur_rows_shared(const uint8_t* in, uint8_t* out, int width, int height) {
  extern __shared__ uint8_t row[];
  const int y = blockIdx.y, bytes = width * 3, start = blockIdx.x * blockDim.x, halo = 3 * kRadius;
  for (int i = threadIdx.x; i < blockDim.x + 2 * halo; i += blockDim.x) {
    int at = start + i - halo, channel = ((at % 3) + 3) % 3;
    int pixel = clampi((at - channel) / 3, 0, width - 1);
    row[i] = in[y * bytes + pixel * 3 + channel];
  }
  __syncthreads();
  int i = start + threadIdx.x;
  if (i >= bytes) return;
  int sum = 128;
#pragma unroll
  for (int k = -kRadius; k <= kRadius; ++k) sum += weights[k + kRadius] * row[threadIdx.x + halo + 3 * k];
  out[y * bytes + i] = uint8_t(sum >> 8);
}

int main() {
  const int width = 101, height = 57, n = width * height;
  const int w[2 * kRadius + 1] = {4, 28, 60, 72, 60, 28, 4};
  std::vector<Rgb> image(n), across(n), want(n), got(n);
  for (int i = 0; i < n; ++i) image[i] = {uint8_t(i * 7), uint8_t(i / width * 4), uint8_t((i * i) >> 5)};
  for (int pass = 0; pass < 2; ++pass)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        int sum[3] = {128, 128, 128};
        for (int k = -kRadius; k <= kRadius; ++k) {
          const Rgb p = pass == 0 ? image[y * width + clampi(x + k, 0, width - 1)] : across[clampi(y + k, 0, height - 1) * width + x];
          sum[0] += w[k + kRadius] * p.r, sum[1] += w[k + kRadius] * p.g, sum[2] += w[k + kRadius] * p.b;
        }
        (pass == 0 ? across : want)[y * width + x] = {uint8_t(sum[0] >> 8), uint8_t(sum[1] >> 8), uint8_t(sum[2] >> 8)};
      }

  Rgb *a, *b, *c;
  cudaMalloc(&a, n * sizeof(Rgb));
  cudaMalloc(&b, n * sizeof(Rgb));
  cudaMalloc(&c, n * sizeof(Rgb));
  cudaMemcpyToSymbol(weights, w, sizeof w);
  cudaMemcpy(a, image.data(), n * sizeof(Rgb), cudaMemcpyHostToDevice);
  dim3 block(32, 4), grid((width + 31) / 32, (height + 3) / 4);
  for (int version = 0; version < 2; ++version) {
    cudaMemset(b, 0, n * sizeof(Rgb));
    if (version == 0) blur<true><<<grid, block>>>(a, b, width, height);
    else
      blur_rows_shared<<<dim3((width * 3 + 127) / 128, height), 128, 128 + 6 * kRadius>>>(
          reinterpret_cast<const uint8_t*>(a), reinterpret_cast<uint8_t*>(b), width, height);
    blur<false><<<grid, block>>>(b, c, width, height);
    if (cudaError_t e = cudaMemcpy(got.data(), c, n * sizeof(Rgb), cudaMemcpyDeviceToHost)) return std::puts(cudaGetErrorString(e)), 1;
    if (std::memcmp(got.data(), want.data(), n * sizeof(Rgb))) return std::printf("FAIL: version %d\n", version), 1;
  }
  std::puts("PASS");
}
