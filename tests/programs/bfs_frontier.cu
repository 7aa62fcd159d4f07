// Breadth-first search over a graph in CSR form: a queue of vertices a level, filled with atomics.
#include <cstdio>
#include <queue>
#include <vector>

struct Graph {
  std::vector<int> offsets, edges;
};

// A ring with pseudo-random chords, and a few vertices that nothing reaches.
Graph make_graph(int vertices, int unreachable) {
  std::vector<std::vector<int>> next(vertices);
  int live = vertices - unreachable;
  unsigned long long state = 12345;
  for (int v = 0; v < live; v++) {
    next[v].push_back((v + 1) % live);
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    for (int k = state >> 61; k > 0; k--) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      next[v].push_back(static_cast<int>((state >> 33) % live));
    }
  }
  for (int v = live; v < vertices; v++) next[v].push_back(v % live);
  Graph g;
  g.offsets.push_back(0);
  for (auto& list : next) {
    g.edges.insert(g.edges.end(), list.begin(), list.end());
    g.offsets.push_back(static_cast<int>(g.edges.size()));
  }
  return g;
}

__global__ void expand(const int* offsets, const int* edges, const int* frontier, int count, int* next, int* next_count,
                       int* level, int depth) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int v = frontier[i];
  for (int e = offsets[v]; e < offsets[v + 1]; e++) {
    int w = edges[e];
    if (atomicCAS(&level[w], -1, depth) == -1) next[atomicAdd(next_count, 1)] = w;
  }
}

int main() {
  const int n = 20000, source = 17;
  Graph g = make_graph(n, 25);
  std::vector<int> want(n, -1);
  std::queue<int> queue;
  want[source] = 0;
  for (queue.push(source); !queue.empty(); queue.pop())
    for (int e = g.offsets[queue.front()]; e < g.offsets[queue.front() + 1]; e++)
      if (want[g.edges[e]] < 0) {
        want[g.edges[e]] = want[queue.front()] + 1;
        queue.push(g.edges[e]);
      }

  int *offsets, *edges, *level, *frontier[2], *count;
  cudaMalloc(&offsets, g.offsets.size() * sizeof(int));
  cudaMalloc(&edges, g.edges.size() * sizeof(int));
  cudaMalloc(&level, n * sizeof(int));
  for (int*& f : frontier) cudaMalloc(&f, n * sizeof(int));
  cudaMalloc(&count, sizeof(int));
  cudaMemcpy(offsets, g.offsets.data(), g.offsets.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(edges, g.edges.data(), g.edges.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(level, -1, n * sizeof(int));
  cudaMemset(level + source, 0, sizeof(int));
  cudaMemcpy(frontier[0], &source, sizeof(int), cudaMemcpyHostToDevice);

  int size = 1, depth = 0;
  while (size > 0) {
    cudaMemset(count, 0, sizeof(int));
    ++depth;
    expand<<<(size + 127) / 128, 128>>>(offsets, edges, frontier[(depth + 1) % 2], size, frontier[depth % 2], count, level, depth);
    if (cudaMemcpy(&size, count, sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) {
      std::printf("FAIL: %s\n", cudaGetErrorString(cudaGetLastError()));
      return 1;
    }
  }
  std::vector<int> got(n);
  cudaMemcpy(got.data(), level, n * sizeof(int), cudaMemcpyDeviceToHost);
  if (got != want) return std::puts("FAIL: levels differ"), 1;
  std::printf("PASS: %d levels, %zu edges\n", depth - 1, g.edges.size());
}
