// All shortest paths of a dense graph, in tiles of 16 x 16: the tile on the diagonal, its row and column, the rest.
#include <algorithm>
#include <iostream>
#include <limits>
#include <vector>

using Weight = int;
constexpr int B = 16;
constexpr Weight kFar = std::numeric_limits<Weight>::max() / 2;

__device__ void relax(Weight (&c)[B][B], const Weight (&a)[B][B], const Weight (&b)[B][B]) {
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = 0; k < B; ++k) {
    Weight through = a[y][k] + b[k][x];
    __syncthreads();  // c may be a or b
    c[y][x] = min(c[y][x], through);
    __syncthreads();
  }
}

__global__ void diagonal(Weight* d, int n, int round) {
  __shared__ Weight t[B][B];
  Weight* mine = &d[(round * B + threadIdx.y) * n + round * B + threadIdx.x];
  t[threadIdx.y][threadIdx.x] = *mine;
  __syncthreads();
  relax(t, t, t);
  *mine = t[threadIdx.y][threadIdx.x];
}

__global__ void cross(Weight* d, int n, int round) {
  __shared__ Weight pivot[B][B], t[B][B];
  const int other = blockIdx.x + (blockIdx.x >= round);
  const bool column = blockIdx.y;
  const int row = column ? other : round, col = column ? round : other;
  pivot[threadIdx.y][threadIdx.x] = d[(round * B + threadIdx.y) * n + round * B + threadIdx.x];
  Weight* mine = &d[(row * B + threadIdx.y) * n + col * B + threadIdx.x];
  t[threadIdx.y][threadIdx.x] = *mine;
  __syncthreads();
  if (column) relax(t, t, pivot);
  else relax(t, pivot, t);
  *mine = t[threadIdx.y][threadIdx.x];
}

__global__ void rest(Weight* d, int n, int round) {
  if (blockIdx.x == round || blockIdx.y == round) return;
  __shared__ Weight left[B][B], top[B][B];
  const int row = blockIdx.y * B + threadIdx.y, col = blockIdx.x * B + threadIdx.x;
  left[threadIdx.y][threadIdx.x] = d[row * n + round * B + threadIdx.x];
  top[threadIdx.y][threadIdx.x] = d[(round * B + threadIdx.y) * n + col];
  __syncthreads();
  Weight best = d[row * n + col];
#pragma unroll
  for (int k = 0; k < B; ++k) best = min(best, left[threadIdx.y][k] + top[k][threadIdx.x]);
  d[row * n + col] = best;
}

int main() {
  const int n = 112, tiles = n / B;
  std::vector<Weight> dist(n * n, kFar);
  unsigned s = 99;
  auto random = [&] { return (s = s * 1664525u + 1013904223u) >> 8; };
  for (int i = 0; i < n; ++i) {
    dist[i * n + i] = 0;
    for (int k = 0; k < 5; ++k) dist[i * n + random() % (n - 6)] = 1 + random() % 100;  // nothing leads to the last six
    dist[i * n + i] = 0;
  }
  std::vector<Weight> want = dist, got(n * n);
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) want[i * n + j] = std::min(want[i * n + j], want[i * n + k] + want[k * n + j]);

  Weight* d = nullptr;
  cudaMalloc(&d, n * n * sizeof(Weight));
  cudaMemcpy(d, dist.data(), n * n * sizeof(Weight), cudaMemcpyDefault);
  for (int round = 0; round < tiles; ++round) {
    diagonal<<<1, dim3(B, B)>>>(d, n, round);
    cross<<<dim3(tiles - 1, 2), dim3(B, B)>>>(d, n, round);
    rest<<<dim3(tiles, tiles), dim3(B, B)>>>(d, n, round);
  }
  cudaMemcpy(got.data(), d, n * n * sizeof(Weight), cudaMemcpyDefault);
  cudaFree(d);
  const long far = std::count(want.begin(), want.end(), kFar);
  if (cudaPeekAtLastError() != cudaSuccess || got != want || far == 0) {
    std::cout << "FAIL " << cudaGetErrorName(cudaPeekAtLastError()) << std::endl;
    return EXIT_FAILURE;
  }
  std::cout << "PASS: " << n << " vertices, " << far << " pairs without a path" << std::endl;
}
