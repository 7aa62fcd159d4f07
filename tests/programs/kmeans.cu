// k-means in two dimensions: labels, then sums by atomics on doubles, until no label changes.
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <vector>

struct Point { float x, y; };
struct Sum { double x, y; unsigned long long count; };

__global__ void assign(const Point* points, int n, const Point* centres, int k, int* labels, int* changed) {
  extern __shared__ Point cached[];
  for (int c = threadIdx.x; c < k; c += blockDim.x) cached[c] = centres[c];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool moved = false;
  if (i < n) {
    float best = FLT_MAX;
    int label = -1;
    for (int c = 0; c < k; ++c) {
      float dx = points[i].x - cached[c].x, dy = points[i].y - cached[c].y, d = dx * dx + dy * dy;
      if (d < best) best = d, label = c;
    }
    moved = labels[i] != label;
    labels[i] = label;
  }
  int total = __syncthreads_count(moved);
  if (threadIdx.x == 0 && total) atomicAdd(changed, total);
}

__global__ void accumulate(const Point* points, int n, const int* labels, Sum* sums) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Sum* s = &sums[labels[i]];
  atomicAdd(&s->x, static_cast<double>(points[i].x));
  atomicAdd(&s->y, static_cast<double>(points[i].y));
  atomicAdd(&s->count, 1ull);
}

__global__ void move_centres(const Sum* sums, Point* centres, int k) {
  int c = threadIdx.x;
  if (c < k && sums[c].count) centres[c] = {float(sums[c].x / sums[c].count), float(sums[c].y / sums[c].count)};
}

int main() {
  const int k = 5, per = 400, n = k * per;
  const Point truth[k] = {{-8, -8}, {8, -7}, {0, 1}, {-7, 9}, {9, 8}};
  std::vector<Point> points(n);
  unsigned s = 1;
  auto noise = [&] {
    float sum = 0;
    for (int j = 0; j < 6; ++j) sum += ((s = s * 1103515245u + 12345u) >> 16 & 0x7fff) / 32768.0f - 0.5f;
    return sum;
  };
  for (int i = 0; i < n; ++i) points[i] = {truth[i % k].x + noise(), truth[i % k].y + noise()};

  Point *d_points, *d_centres;
  int *d_labels, *d_changed;
  Sum* d_sums;
  cudaMalloc(&d_points, n * sizeof(Point));
  cudaMalloc(&d_centres, k * sizeof(Point));
  cudaMalloc(&d_labels, n * sizeof(int));
  cudaMalloc(&d_changed, sizeof(int));
  cudaMalloc(&d_sums, k * sizeof(Sum));
  cudaMemcpy(d_points, points.data(), n * sizeof(Point), cudaMemcpyHostToDevice);
  cudaMemcpy(d_centres, points.data(), k * sizeof(Point), cudaMemcpyHostToDevice);  // one of each cluster
  cudaMemset(d_labels, 0xff, n * sizeof(int));

  int changed = 1, rounds = 0;
  for (; changed && rounds < 50; ++rounds) {
    cudaMemset(d_changed, 0, sizeof(int));
    cudaMemset(d_sums, 0, k * sizeof(Sum));
    assign<<<(n + 255) / 256, 256, k * sizeof(Point)>>>(d_points, n, d_centres, k, d_labels, d_changed);
    accumulate<<<(n + 255) / 256, 256>>>(d_points, n, d_labels, d_sums);
    move_centres<<<1, 32>>>(d_sums, d_centres, k);
    if (cudaMemcpy(&changed, d_changed, sizeof(int), cudaMemcpyDeviceToHost)) return 2;
  }
  std::vector<int> labels(n);
  std::vector<Point> centres(k);
  cudaMemcpy(labels.data(), d_labels, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(centres.data(), d_centres, k * sizeof(Point), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    if (labels[i] != i % k) return std::printf("FAIL: point %d is in cluster %d\n", i, labels[i]), 1;
  for (int c = 0; c < k; ++c) {
    double x = 0, y = 0;
    for (int i = c; i < n; i += k) x += points[i].x, y += points[i].y;
    if (std::fabs(centres[c].x - x / per) > 1e-5 || std::fabs(centres[c].y - y / per) > 1e-5)
      return std::printf("FAIL: centre %d\n", c), 1;
  }
  std::printf("PASS: %d clusters found in %s rounds\n", k, rounds < 10 ? "a few" : "many");
}
