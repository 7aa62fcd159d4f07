// Mistakes with global memory.  Each argument names a mistake, or with "_right" behind it the same without it.
// What a case must report stands in cases.toml.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void twice(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

__global__ void no_guard(int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = i;
}

__global__ void one_too_many(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = i;
}

__global__ void differences(const float* in, float* out, int n, bool ends) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || (ends && i == n - 1)) return;
  float right = in[i + 1];
  out[i] = right - in[i];
}

__global__ void average(const short* in, short* out, int n, bool ends) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || (ends && i == 0)) return;
  short left = in[i - 1];
  out[i] = (left + in[i]) / 2;
}

__global__ void fill_matrix(double* m, int rows, int cols, int x, int y) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < y && col < x) m[row * cols + col] = row + col;
}

__global__ void load_fours(const float* in, float* out, int offset) {
  const float4* fours = reinterpret_cast<const float4*>(in + offset);
  float4 v = fours[threadIdx.x];
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

__global__ void squares(int* out, int n, bool wide) {
  int i = n - 1 - threadIdx.x;
  if (wide) {
    out[static_cast<long long>(i) * i % n] = i;
  } else {
    int at = i * i % n;  // the product does not fit
    out[at] = i;
  }
}

struct List {
  int size;
  int* data;
};
__global__ void sum_list(const List* list, int* out) {
  int sum = 0;
  for (int k = 0; k < list->size; ++k) sum += list->data[k];
  *out = sum;
}

__device__ int histogram_bins[10];
__global__ void histogram(const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&histogram_bins[in[i]], 1);
}

template <class T> T* device(int n) {
  T* p;
  cudaMalloc(&p, n * sizeof(T));
  cudaMemset(p, 0, n * sizeof(T));
  return p;
}

int run_case(const char* argument) {
  char name[64] = "";
  strncpy(name, argument, sizeof name - 1);
  char* end = strstr(name, "_right");
  const bool right = end != nullptr;
  if (right) *end = 0;
  auto is = [&](const char* what) { return !strcmp(name, what); };
  const int n = 1000;
  if (is("no_guard")) {
    int* out = device<int>(right ? 1024 : n);
    no_guard<<<4, 256>>>(out);
  } else if (is("one_too_many")) {
    int* out = device<int>(n);
    one_too_many<<<4, 256>>>(out, right ? n - 1 : n);
  } else if (is("read_past_end")) {
    float *in = device<float>(n), *out = device<float>(n);
    differences<<<4, 256>>>(in, out, n, right);
  } else if (is("read_before_start")) {
    short *in = device<short>(n), *out = device<short>(n);
    average<<<4, 256>>>(in, out, n, right);
  } else if (is("bytes_for_elements")) {
    int *in = device<int>(n), *out;
    cudaMalloc(&out, right ? n * sizeof(int) : n);
    twice<<<1, 256>>>(in, out, 256);
  } else if (is("rows_for_columns")) {
    double* m = device<double>(20 * 30);
    fill_matrix<<<dim3(2, 2), dim3(16, 16)>>>(m, 20, 30, right ? 30 : 20, right ? 20 : 30);
  } else if (is("null_pointer")) {
    int *in = device<int>(n), *out = nullptr;
    if (right) out = device<int>(n);
    twice<<<4, 256>>>(in, out, n);
  } else if (is("never_allocated")) {
    int *in = device<int>(n), *out = reinterpret_cast<int*>(0x7eadbeef0000);  // as if it had never been set
    if (right) out = device<int>(n);
    twice<<<4, 256>>>(in, out, n);
  } else if (is("freed_pointer")) {
    int *in = device<int>(n), *out = device<int>(n);
    if (!right) cudaFree(in);
    twice<<<4, 256>>>(in, out, n);
    if (right) cudaFree(in);
  } else if (is("host_pointer")) {
    int *in = static_cast<int*>(calloc(n, sizeof(int))), *out = device<int>(n), *there = device<int>(n);
    cudaMemcpy(there, in, n * sizeof(int), cudaMemcpyHostToDevice);
    twice<<<4, 256>>>(right ? there : in, out, n);
  } else if (is("shallow_copy")) {
    List host{3, static_cast<int*>(malloc(3 * sizeof(int)))}, *list = device<List>(1);
    if (right) host.data = device<int>(3);
    cudaMemcpy(list, &host, sizeof host, cudaMemcpyHostToDevice);
    sum_list<<<1, 1>>>(list, device<int>(1));
  } else if (is("misaligned_vector")) {
    load_fours<<<1, 32>>>(device<float>(n), device<float>(n), right ? 4 : 3);
  } else if (is("index_overflows")) {
    squares<<<1, 32>>>(device<int>(46400), 46400, right);
  } else if (is("device_variable")) {
    int h[100], *in = device<int>(100);
    for (int i = 0; i < 100; ++i) h[i] = i % 10;
    if (!right) h[77] = 10;
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    histogram<<<2, 64>>>(in, 100);
  } else {
    std::fprintf(stderr, "no such case: %s\n", name);
    return 2;
  }
  cudaError_t launch = cudaGetLastError(), run = cudaDeviceSynchronize();
  std::puts(cudaGetErrorName(launch ? launch : run));
  return right && (launch || run);
}

int main(int argc, char** argv) {
  int worst = 0;
  for (int i = 1; i < argc; ++i)
    if (int status = run_case(argv[i])) worst = status;
  return worst;
}
