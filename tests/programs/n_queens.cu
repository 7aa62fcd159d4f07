// N queens by backtracking on bit masks: the host places the first two rows, each thread searches on with its own stack.
#include <cstdio>
#include <vector>

struct Start { unsigned columns, left, right; };

template <int N>
__global__ void solve(const Start* starts, int count, unsigned long long* solutions) {
  const unsigned all = (1u << N) - 1;
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long found = 0;
  if (id < count) {
    unsigned columns[N], left[N], right[N], open[N];
    int row = 0;
    columns[0] = starts[id].columns, left[0] = starts[id].left, right[0] = starts[id].right;
    open[0] = all & ~(columns[0] | left[0] | right[0]);
    while (row >= 0) {
      if (!open[row]) {
        --row;
        continue;
      }
      unsigned bit = open[row] & -open[row];
      open[row] ^= bit;
      unsigned c = columns[row] | bit;
      if (c == all) {
        ++found;
        continue;
      }
      ++row;
      columns[row] = c, left[row] = (left[row - 1] | bit) << 1, right[row] = (right[row - 1] | bit) >> 1;
      open[row] = all & ~(c | left[row] | right[row]);
    }
  }
  for (int d = 16; d; d >>= 1) found += __shfl_down_sync(~0u, found, d);
  if (threadIdx.x % 32 == 0 && found) atomicAdd(solutions, found);
}

template <int N>
unsigned long long queens() {
  std::vector<Start> starts;
  const unsigned all = (1u << N) - 1;
  for (unsigned a = 1; a <= all; a <<= 1)
    for (unsigned b = 1; b <= all; b <<= 1)
      if (!(b & (a | a << 1 | a >> 1))) starts.push_back({a | b, (a << 2) | (b << 1), (a >> 2) | (b >> 1)});
  Start* d_starts;
  unsigned long long *d_solutions, solutions = 0;
  cudaMalloc(&d_starts, starts.size() * sizeof(Start));
  cudaMalloc(&d_solutions, sizeof solutions);
  cudaMemcpy(d_starts, starts.data(), starts.size() * sizeof(Start), cudaMemcpyHostToDevice);
  cudaMemcpy(d_solutions, &solutions, sizeof solutions, cudaMemcpyHostToDevice);
  solve<N><<<(starts.size() + 63) / 64, 64>>>(d_starts, static_cast<int>(starts.size()), d_solutions);
  cudaMemcpy(&solutions, d_solutions, sizeof solutions, cudaMemcpyDeviceToHost);
  cudaFree(d_starts);
  cudaFree(d_solutions);
  return solutions;
}

int main() {
  std::printf("6 queens: %llu\n", queens<6>());
  std::printf("8 queens: %llu\n", queens<8>());
  std::printf("10 queens: %llu\n", queens<10>());
  return cudaGetLastError() != cudaSuccess;
}
