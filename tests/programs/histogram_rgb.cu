// Course work: three 64-bin histograms of an RGBA image, privatised in shared memory, and the cumulative
// distribution that equalises the image.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

constexpr int kBins = 64, kChannels = 3;

__global__ void histogram(const uchar4* __restrict__ image, int pixels, unsigned* __restrict__ bins) {
  __shared__ unsigned local[kChannels][kBins];
  for (int i = threadIdx.x; i < kChannels * kBins; i += blockDim.x) (&local[0][0])[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x) {
    const uchar4 p = image[i];
    atomicAdd(&local[0][p.x / 4], 1u);
    atomicAdd(&local[1][p.y / 4], 1u);
    atomicAdd(&local[2][p.z / 4], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kChannels * kBins; i += blockDim.x)
    if (unsigned count = (&local[0][0])[i]) atomicAdd(&bins[i], count);
}

__global__ void equalise(uchar4* image, int pixels, const unsigned* cumulative) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pixels) return;
  uchar4 p = image[i];
  p.x = uint64_t{cumulative[p.x / 4]} * 255 / pixels;
  p.y = uint64_t{cumulative[kBins + p.y / 4]} * 255 / pixels;
  p.z = uint64_t{cumulative[2 * kBins + p.z / 4]} * 255 / pixels;
  image[i] = p;
}

#define OK(call) if (cudaError_t e_ = (call)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)), 1

int main() {
  const int pixels = 200 * 151;
  std::vector<uchar4> image(pixels);
  uint32_t state = 2463534242u;
  for (uchar4& p : image) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    p = make_uchar4((state & 255) * (state >> 8 & 255) / 255, state >> 16 & 127, state >> 24 | 128, 255);
  }
  std::vector<unsigned> want(kChannels * kBins), got(want.size());
  for (const uchar4& p : image) want[p.x / 4]++, want[kBins + p.y / 4]++, want[2 * kBins + p.z / 4]++;

  uchar4* d_image;
  unsigned* d_bins;
  OK(cudaMalloc(&d_image, pixels * sizeof(uchar4)));
  OK(cudaMalloc(&d_bins, want.size() * sizeof(unsigned)));
  OK(cudaMemcpy(d_image, image.data(), pixels * sizeof(uchar4), cudaMemcpyHostToDevice));
  OK(cudaMemset(d_bins, 0, want.size() * sizeof(unsigned)));
  histogram<<<12, 160>>>(d_image, pixels, d_bins);
  OK(cudaGetLastError());
  OK(cudaMemcpy(got.data(), d_bins, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  if (got != want) return std::puts("FAIL: histogram"), 1;

  for (int c = 0; c < kChannels; c++) std::partial_sum(&got[c * kBins], &got[c * kBins] + kBins, &got[c * kBins]);
  OK(cudaMemcpy(d_bins, got.data(), got.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  equalise<<<(pixels + 255) / 256, 256>>>(d_image, pixels, d_bins);
  std::vector<uchar4> result(pixels);
  OK(cudaMemcpy(result.data(), d_image, pixels * sizeof(uchar4), cudaMemcpyDeviceToHost));
  for (int i = 0; i < pixels; i++) {
    const uchar4 a = image[i], b = result[i];
    bool same = b.w == 255 && b.x == uint64_t{got[a.x / 4]} * 255 / pixels &&
                b.y == uint64_t{got[kBins + a.y / 4]} * 255 / pixels && b.z == uint64_t{got[2 * kBins + a.z / 4]} * 255 / pixels;
    if (!same) return std::printf("FAIL: pixel %d\n", i), 1;
  }
  OK(cudaFree(d_image));
  OK(cudaFree(d_bins));
  std::puts("PASS");
}
