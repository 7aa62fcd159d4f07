// Course work: merge sort from the bottom up; every thread finds its own part of a merge by binary search.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

// How many of the first `diagonal` outputs of merge(a, b) come from a.
__device__ int mergePath(const int* a, int na, const int* b, int nb, int diagonal) {
  int low = max(0, diagonal - nb), high = min(diagonal, na);
  while (low < high) {
    int mid = (low + high) / 2;
    if (a[mid] <= b[diagonal - 1 - mid]) low = mid + 1;
    else high = mid;
  }
  return low;
}

constexpr int kPerThread = 8;

__global__ void mergePass(const int* in, int* out, int n, int width) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * kPerThread;
  if (start >= n) return;
  int pair = start / (2 * width) * 2 * width;
  int middle = min(pair + width, n), end = min(pair + 2 * width, n);
  const int *a = in + pair, *b = in + middle;
  int na = middle - pair, nb = end - middle;
  int diagonal = start - pair;
  int i = mergePath(a, na, b, nb, diagonal), j = diagonal - i;
  for (int k = start; k < min(start + kPerThread, end); k++) out[k] = j >= nb || (i < na && a[i] <= b[j]) ? a[i++] : b[j++];
}

__global__ void insertionSort(int* data, int n) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * kPerThread, end = min(start + kPerThread, n);
  for (int i = start + 1; i < end; i++) {
    int value = data[i], j = i;
    for (; j > start && data[j - 1] > value; j--) data[j] = data[j - 1];
    data[j] = value;
  }
}

int main() {
  std::mt19937 random(5);
  for (int n : {1, 7, 8, 9, 1000, 40961}) {
    std::vector<int> v(n);
    for (int& x : v) x = static_cast<int>(random());
    int *a, *b;
    cudaMalloc(&a, n * sizeof(int));
    cudaMalloc(&b, n * sizeof(int));
    cudaMemcpy(a, v.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    int threads = 128, blocks = (n + threads * kPerThread - 1) / (threads * kPerThread);
    insertionSort<<<blocks, threads>>>(a, n);
    for (int width = kPerThread; width < n; width *= 2) {
      mergePass<<<blocks, threads>>>(a, b, n, width);
      std::swap(a, b);
    }
    std::vector<int> sorted(n);
    cudaError_t e = cudaMemcpy(sorted.data(), a, n * sizeof(int), cudaMemcpyDeviceToHost);
    std::sort(v.begin(), v.end());
    if (e != cudaSuccess || sorted != v) {
      std::printf("FAIL: n = %d (%s)\n", n, cudaGetErrorString(e));
      return 1;
    }
    cudaFree(a);
    cudaFree(b);
  }
  std::printf("PASS\n");
  return 0;
}
