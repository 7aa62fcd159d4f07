// matmul_tiled: C = A B with tiles in shared memory.
//
//   ./ws run examples/matmul_tiled.cu               250 x 250, not a multiple of the tile on purpose
//   ./ws run examples/matmul_tiled.cu -- 256
//
// Computed naively, every element of A and B is read from global memory n times.  A block of 16 x 16 threads
// that computes a 16 x 16 tile of C can share what it reads: it goes along the row of A and the column of B
// tile by tile; each thread loads one element of each tile into shared memory, and then all 256 use all of it.
// Global memory is read 16 times less.
//
// Two barriers keep that honest: nobody may compute before all have loaded, and nobody may load the next tile
// before all have computed.  Remove either and the result is wrong on some machine some day.

#include "check.h"

constexpr int TILE = 16;

__global__ void matmul(int n, const float* a, const float* b, float* c) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;

  float sum = 0.0f;
  for (int k = 0; k < n; k += TILE) {
    // Outside of the matrices there are zeros: they add nothing, and every thread reaches the barriers.
    tile_a[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0.0f;
    tile_b[y][x] = k + y < n && column < n ? b[(k + y) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

int main(int argc, char** argv) {
  const int n = argument(argc, argv, 1, 250);
  // Small whole numbers: every product and sum is exact, so the result must be right to the last bit.
  std::vector<float> a(n * n), b(n * n);
  for (int i = 0; i < n * n; i++) {
    a[i] = static_cast<float>(scramble(i) % 9) - 4.0f;
    b[i] = static_cast<float>(scramble(i + n * n) % 7) - 3.0f;
  }
  DeviceArray<float> device_a(a), device_b(b), device_c(n * n);

  const dim3 block(TILE, TILE), grid(blocks_for(n, TILE), blocks_for(n, TILE));
  matmul<<<grid, block>>>(n, device_a.data(), device_b.data(), device_c.data());
  CHECK_KERNEL();

  std::vector<float> c = device_c.to_host();
  std::vector<float> row(n);
  for (int i = 0; i < n; i++) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) row[j] += a[i * n + k] * b[k * n + j];
    for (int j = 0; j < n; j++) {
      if (c[i * n + j] != row[j]) {
        std::printf("FAIL: C[%d][%d] is %g, not %g\n", i, j, c[i * n + j], row[j]);
        return 1;
      }
    }
  }
  std::printf("PASS: %d x %d matrices in tiles of %d x %d\n", n, n, TILE, TILE);
  return 0;
}
