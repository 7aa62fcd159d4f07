// Mistakes with shared, local and constant memory, the device's heap and stack, and pointers to functions.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void shift_left(const int* in, int* out, int last) {
  __shared__ int s[64];
  int i = threadIdx.x;
  s[i] = in[i];
  __syncthreads();
  if (i < last) out[i] = s[i + 1];
}

__global__ void reversed_by_one(int* out, int n) {
  __shared__ int s[64];
  s[n - threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void reverse(float* data, int n) {
  extern __shared__ float buffer[];
  int i = threadIdx.x;
  buffer[i] = data[i];
  __syncthreads();
  data[i] = buffer[n - 1 - i];
}

__global__ void pairs_of_floats(float* out, int offset) {
  __shared__ float s[66];
  s[threadIdx.x] = s[threadIdx.x + 32] = threadIdx.x;
  __syncthreads();
  float2 v = *reinterpret_cast<float2*>(&s[2 * threadIdx.x + offset]);
  out[threadIdx.x] = v.x + v.y;
}

__global__ void digits(const unsigned* numbers, char* out) {
  char text[8];
  unsigned n = numbers[threadIdx.x];
  int k = 0;
  do {
    text[k++] = '0' + n % 10;
    n /= 10;
  } while (n);
  for (int i = 0; i < k; ++i) out[threadIdx.x * 12 + i] = text[k - 1 - i];
}

__constant__ float weights[9];
__global__ void blur(const float* in, float* out, int n, int radius) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < radius || i >= n - radius) return;
  float sum = 0;
  for (int k = -radius; k <= radius; ++k) sum += weights[k + radius] * in[i + k];
  out[i] = sum;
}

__global__ void heap_row(int* out, int length) {
  int* row = new int[16];
  for (int i = 0; i < length; ++i) row[i] = i * threadIdx.x;
  out[threadIdx.x] = row[15];
  delete[] row;
}

__global__ void heap_after_free(int* out, bool early) {
  int* p = static_cast<int*>(malloc(64));
  p[3] = threadIdx.x;
  if (early) free(p);
  out[threadIdx.x] = p[3];
  if (!early) free(p);
}

__global__ void heap_free_twice(int* out, bool twice) {
  int* p = new int(threadIdx.x);
  out[threadIdx.x] = *p;
  delete p;
  if (twice && threadIdx.x == 9) delete p;
}

__global__ void heap_exhausted(char* out, size_t bytes) {
  char* p = static_cast<char*>(malloc(bytes));
  p[0] = 'x';
  *out = p[0];
  free(p);
}

__device__ int depth_of(const int* next, int at) {
  int spare[16];
  spare[at % 16] = at;
  return next[at] < 0 ? spare[at % 16] : depth_of(next, next[at]) + spare[at % 16] % 2;
}
__global__ void walk(const int* next, int* out) { *out = depth_of(next, 0); }

typedef int (*Operation)(int);
__device__ int increment(int x) { return x + 1; }
__device__ Operation table[2] = {increment, nullptr};
__global__ void call_table(int which, int* out) { *out = table[which](41); }

__global__ void check_sorted(const int* v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) assert(v[i] <= v[i + 1]);
}

__global__ void unreachable_case(const int* kind, int* out) {
  switch (kind[threadIdx.x]) {
    case 0: out[threadIdx.x] = 1; break;
    case 1: out[threadIdx.x] = 2; break;
    default: __trap();
  }
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
  if (is("shared_read")) {
    shift_left<<<2, 64>>>(device<int>(64), device<int>(64), right ? 63 : 64);
  } else if (is("shared_write")) {
    reversed_by_one<<<1, 64>>>(device<int>(64), right ? 63 : 64);
  } else if (is("shared_too_small")) {
    reverse<<<1, 256, right ? 256 * sizeof(float) : 256>>>(device<float>(256), 256);
  } else if (is("shared_forgotten")) {
    if (right) reverse<<<1, 32, 32 * sizeof(float)>>>(device<float>(32), 32);
    else reverse<<<1, 32>>>(device<float>(32), 32);
  } else if (is("shared_misaligned")) {
    pairs_of_floats<<<1, 32>>>(device<float>(32), right ? 0 : 1);
  } else if (is("local_array")) {
    unsigned h[32] = {}, *numbers = device<unsigned>(32);
    for (int i = 0; i < 32; ++i) h[i] = i * 1000;
    h[21] = right ? 99999999u : 123456789u;
    cudaMemcpy(numbers, h, sizeof h, cudaMemcpyHostToDevice);
    digits<<<1, 32>>>(numbers, device<char>(32 * 12));
  } else if (is("constant_array")) {
    blur<<<1, 64>>>(device<float>(64), device<float>(64), 64, right ? 4 : 5);
  } else if (is("heap_bounds")) {
    heap_row<<<1, 8>>>(device<int>(8), right ? 16 : 17);
  } else if (is("heap_after_free")) {
    heap_after_free<<<1, 4>>>(device<int>(4), !right);
  } else if (is("heap_free_twice")) {
    heap_free_twice<<<1, 16>>>(device<int>(16), !right);
  } else if (is("heap_exhausted")) {
    heap_exhausted<<<1, 1>>>(device<char>(1), right ? 1 << 10 : 1 << 30);
  } else if (is("endless_recursion")) {
    int h[20], *next = device<int>(20);
    for (int i = 0; i < 20; ++i) h[i] = i + 1;
    h[19] = right ? -1 : 5;  // a circle
    cudaMemcpy(next, h, sizeof h, cudaMemcpyHostToDevice);
    walk<<<1, 1>>>(next, device<int>(1));
  } else if (is("null_function")) {
    call_table<<<1, 1>>>(right ? 0 : 1, device<int>(1));
  } else if (is("assertion")) {
    int h[200], *v = device<int>(200);
    for (int i = 0; i < 200; ++i) h[i] = i;
    if (!right) h[150] = 1000;
    cudaMemcpy(v, h, sizeof h, cudaMemcpyHostToDevice);
    check_sorted<<<2, 128>>>(v, 200);
  } else if (is("trap")) {
    int h[40] = {}, *kinds = device<int>(40);
    h[35] = right ? 1 : 2;
    cudaMemcpy(kinds, h, sizeof h, cudaMemcpyHostToDevice);
    unreachable_case<<<1, 40>>>(kinds, device<int>(40));
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
