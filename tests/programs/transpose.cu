// Course work: matrix transpose, 32 x 8 threads moving 32 x 32 tiles; the padding column avoids bank conflicts.
#include <algorithm>
#include <cstdio>
#include <vector>

constexpr int TILE_DIM = 32;
constexpr int BLOCK_ROWS = 8;

#define checkCuda(x) if ((x) != cudaSuccess) { std::fprintf(stderr, "CUDA error in line %d\n", __LINE__); return 1; }

template <typename T>
__global__ void copyShared(T* odata, const T* idata, int width, int height) {
  __shared__ T tile[TILE_DIM * TILE_DIM];
  int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < width && y + j < height) tile[(threadIdx.y + j) * TILE_DIM + threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < width && y + j < height) odata[(y + j) * width + x] = tile[(threadIdx.y + j) * TILE_DIM + threadIdx.x];
}

template <typename T, int PADDING>
__global__ void transpose(T* odata, const T* idata, int width, int height) {
  __shared__ T tile[TILE_DIM][TILE_DIM + PADDING];
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
#pragma unroll
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
#pragma unroll
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < height && y + j < width) odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

template <typename T>
int run(int width, int height) {
  const size_t bytes = sizeof(T) * width * height;
  std::vector<T> in(width * height), out(width * height);
  for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<T>(i * 31 + 7);
  T *d_in, *d_out;
  checkCuda(cudaMalloc(&d_in, bytes));
  checkCuda(cudaMalloc(&d_out, bytes));
  checkCuda(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
  dim3 grid((width + TILE_DIM - 1) / TILE_DIM, (height + TILE_DIM - 1) / TILE_DIM), block(TILE_DIM, BLOCK_ROWS);

  copyShared<T><<<grid, block>>>(d_out, d_in, width, height);
  checkCuda(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
  if (out != in) { std::puts("FAIL: copy"); return 1; }

  for (int padded = 0; padded < 2; padded++) {
    checkCuda(cudaMemset(d_out, 0, bytes));
    if (padded) transpose<T, 1><<<grid, block>>>(d_out, d_in, width, height);
    else transpose<T, 0><<<grid, block>>>(d_out, d_in, width, height);
    checkCuda(cudaGetLastError());
    checkCuda(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++)
        if (out[x * height + y] != in[y * width + x]) {
          std::printf("FAIL: %d x %d of %zu bytes at (%d, %d)\n", width, height, sizeof(T), x, y);
          return 1;
        }
  }
  cudaFree(d_in);
  cudaFree(d_out);
  return 0;
}

int main() {
  if (run<float>(256, 96) || run<double>(100, 130) || run<unsigned char>(77, 45) || run<short>(1, 200)) return 1;
  std::puts("PASS");
  return 0;
}
