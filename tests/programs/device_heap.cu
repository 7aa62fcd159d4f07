// Memory that kernels allocate: malloc and free, new and delete, one array a block, linked lists that live from one launch
// to the next, a matrix of rows of different length, and an allocation that fails.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Item {
  int value;
  Item* next;
};

__global__ void build(Item** heads, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  Item* head = nullptr;
  for (int i = 0; i < t % 5 + 1; ++i) head = new Item{t * 10 + i, head};
  heads[t] = head;
}

__global__ void reverse(Item** heads, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  Item *done = nullptr, *rest = heads[t];
  while (rest) {
    Item* next = rest->next;
    rest->next = done, done = rest, rest = next;
  }
  heads[t] = done;
}

__global__ void sum_and_free(Item** heads, int* sums, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int sum = 0, position = 0;
  for (Item* i = heads[t]; i;) {
    sum += i->value * ++position;
    Item* next = i->next;
    delete i;
    i = next;
  }
  sums[t] = sum;
}

__global__ void one_array_a_block(int* out) {
  __shared__ int* data;
  if (threadIdx.x == 0) {
    data = static_cast<int*>(malloc(blockDim.x * sizeof(int)));
    if (data) memset(data, 0, blockDim.x * sizeof(int));
  }
  __syncthreads();
  if (!data) return;
  data[threadIdx.x] += threadIdx.x * blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < blockDim.x; ++i) sum += data[i];
    out[blockIdx.x] = sum;
    free(data);
  }
}

class Row {
 public:
  __device__ explicit Row(int n) : n_(n), data_(new double[n]) {
    for (int i = 0; i < n; ++i) data_[i] = i;
  }
  __device__ ~Row() { delete[] data_; }
  __device__ double total() const {
    double t = 0;
    for (int i = 0; i < n_; ++i) t += data_[i];
    return t;
  }

 private:
  int n_;
  double* data_;
};

__global__ void rows(double* out) {
  Row a(threadIdx.x), *b = new Row(2 * threadIdx.x);
  out[threadIdx.x] = a.total() + b->total();
  delete b;
}

__global__ void too_much(int* failures, size_t bytes) {
  void* p = malloc(bytes);
  if (!p) atomicAdd(failures, 1);
  free(p);
  free(nullptr);
}

__global__ void reuse(int* failures) {  // in all 64 times the heap
  for (int i = 0; i < 64; ++i) {
    char* p = static_cast<char*>(malloc(1 << 18));
    if (!p) atomicAdd(failures, 1);
    else p[i] = 1;
    free(p);
  }
}

int main() {
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20);
  const int n = 200;
  Item** heads;
  int *d, h[n];
  double *dd, hd[50];
  cudaMalloc(&heads, n * sizeof(Item*));
  cudaMalloc(&d, n * sizeof(int));
  cudaMalloc(&dd, sizeof hd);
  build<<<2, 128>>>(heads, n);
  reverse<<<2, 128>>>(heads, n);
  sum_and_free<<<2, 128>>>(heads, d, n);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  for (int t = 0; t < n; ++t) {
    int want = 0;
    for (int i = 0; i < t % 5 + 1; ++i) want += (t * 10 + i) * (i + 1);
    if (h[t] != want) return printf("FAIL: list %d: %d, not %d\n", t, h[t], want), 1;
  }
  one_array_a_block<<<20, 64>>>(d);
  cudaMemcpy(h, d, 20 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int b = 0; b < 20; ++b)
    if (h[b] != 2016 * b) return printf("FAIL: block %d\n", b), 1;
  rows<<<1, 50>>>(dd);
  cudaMemcpy(hd, dd, sizeof hd, cudaMemcpyDeviceToHost);
  for (int t = 0; t < 50; ++t)
    if (hd[t] != t * (t - 1) / 2 + t * (2 * t - 1)) return printf("FAIL: row %d\n", t), 1;
  cudaMemset(d, 0, 2 * sizeof(int));
  too_much<<<1, 3>>>(d, size_t{1} << 33);
  reuse<<<1, 1>>>(d + 1);
  cudaMemcpy(h, d, 2 * sizeof(int), cudaMemcpyDeviceToHost);
  if (h[0] != 3 || h[1] != 0) return printf("FAIL: %d and %d allocations failed\n", h[0], h[1]), 1;
  size_t limit = 0;
  cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  if (limit != 16 << 20 || cudaGetLastError()) return printf("FAIL\n"), 1;
  printf("PASS\n");
}
