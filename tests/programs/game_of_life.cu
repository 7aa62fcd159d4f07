// Course work: Conway's game of life on a torus, one byte a cell; a glider and a blinker, printed.
#include <iostream>
#include <string>
#include <vector>

typedef unsigned char Cell;
const int W = 20, H = 12;

__global__ void step(const Cell* now, Cell* next) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= W || y >= H) return;
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx != 0 || dy != 0) alive += now[((y + dy + H) % H) * W + (x + dx + W) % W];
  next[y * W + x] = alive == 3 || (alive == 2 && now[y * W + x]);
}

void show(const std::vector<Cell>& board, int generation) {
  std::cout << "generation " << generation << "\n";
  for (int y = 0; y < H; ++y) {
    std::string line;
    for (int x = 0; x < W; ++x) line += board[y * W + x] ? '#' : '.';
    std::cout << line << "\n";
  }
}

int main() {
  std::vector<Cell> board(W * H, 0);
  const int glider[5][2] = {{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}};
  for (auto& p : glider) board[p[1] * W + p[0]] = 1;
  for (int x = 13; x < 16; ++x) board[5 * W + x] = 1;
  show(board, 0);

  Cell *a, *b;
  cudaMalloc(&a, board.size());
  cudaMalloc(&b, board.size());
  cudaMemcpy(a, board.data(), board.size(), cudaMemcpyHostToDevice);
  dim3 block(8, 4), grid((W + 7) / 8, (H + 3) / 4);
  for (int generation = 1; generation <= 40; ++generation) {
    step<<<grid, block>>>(a, b);
    std::swap(a, b);
    if (generation == 1 || generation == 8 || generation == 40) {
      cudaMemcpy(board.data(), a, board.size(), cudaMemcpyDeviceToHost);
      show(board, generation);
    }
  }
  cudaFree(a);
  cudaFree(b);
  return cudaGetLastError();
}
