// All ways to launch a kernel: <<<>>>, cudaLaunchKernel with an array of pointers to arguments, cudaLaunchKernelEx,
// through a pointer to a kernel, of a template, in a loop over a table; arguments of many types and sizes.
#include <cstdio>
#include <cstring>

struct Big { double m[40]; char tag; };
struct alignas(16) Vec4 { float x, y, z, w; };
union Mixed { int i; float f; };
enum class Mode : unsigned char { add = 1, multiply };

__global__ void many(char c, double d, short s, Big big, bool flag, Vec4 v, const int* p, Mixed u, Mode mode, long long l, double* out) {
  out[0] = c, out[1] = d, out[2] = s, out[3] = big.m[39] + big.tag, out[4] = flag;
  out[5] = v.x + v.y * 10 + v.z * 100 + v.w * 1000, out[6] = *p, out[7] = u.f;
  out[8] = static_cast<int>(mode), out[9] = static_cast<double>(l);
}

template <class T, int N> __global__ void fill(T* out, T value) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) out[i] = value + static_cast<T>(i);
}

__global__ void where(int* out) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

__global__ void plus_one(int* x) { *x += 1; }
__global__ void times_two(int* x) { *x *= 2; }

#define EXPECT(x) do { if (!(x)) return printf("FAIL: line %d: %s (%s)\n", __LINE__, #x, cudaGetErrorName(cudaPeekAtLastError())), 1; } while (0)

int main() {
  double* d_out;
  int *d_p, seven = 7;
  cudaMalloc(&d_out, 10 * sizeof(double));
  cudaMalloc(&d_p, 4096 * sizeof(int));
  cudaMemcpy(d_p, &seven, sizeof seven, cudaMemcpyHostToDevice);

  char c = -3;
  double d = 2.25;
  short s = -300;
  Big big = {};
  big.m[39] = 39.5, big.tag = 'x';
  bool flag = true;
  Vec4 v = {1, 2, 3, 4};
  Mixed u;
  u.f = 0.5f;
  Mode mode = Mode::multiply;
  long long l = -(1ll << 40);
  const double want[10] = {-3, 2.25, -300, 39.5 + 'x', 1, 4321, 7, 0.5, 2, -1099511627776.0};
  double got[10];
  for (int form = 0; form < 4; form++) {
    cudaMemset(d_out, 0, sizeof got);
    void* arguments[] = {&c, &d, &s, &big, &flag, &v, &d_p, &u, &mode, &l, &d_out};
    if (form == 0) {
      many<<<1, 1>>>(c, d, s, big, flag, v, d_p, u, mode, l, d_out);
    } else if (form == 1) {
      EXPECT(cudaLaunchKernel((const void*)many, dim3(1), dim3(1), arguments, 0, 0) == cudaSuccess);
    } else {
      cudaLaunchConfig_t config = {};
      config.gridDim = config.blockDim = dim3(1);
      cudaLaunchAttribute priority;
      priority.id = cudaLaunchAttributePriority;
      priority.val.priority = 0;
      config.attrs = &priority;
      config.numAttrs = 1;
      if (form == 2) EXPECT(cudaLaunchKernelEx(&config, many, c, d, s, big, flag, v, (const int*)d_p, u, mode, l, d_out) == cudaSuccess);
      else EXPECT(cudaLaunchKernelExC(&config, (const void*)many, arguments) == cudaSuccess);
    }
    EXPECT(cudaMemcpy(got, d_out, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess);
    EXPECT(memcmp(got, want, sizeof got) == 0);
  }

  float* d_f;
  float f[5];
  cudaMalloc(&d_f, sizeof f);
  void (*kernel)(float*, float) = fill<float, 5>;
  kernel<<<1, 3>>>(d_f, 0.5f);
  EXPECT(cudaMemcpy(f, d_f, sizeof f, cudaMemcpyDeviceToHost) == cudaSuccess && f[4] == 4.5f);

  int host[2 * 3 * 2 * 24];
  where<<<dim3(2, 3, 2), dim3(4, 3, 2)>>>(d_p);
  EXPECT(cudaMemcpy(host, d_p, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (int i = 0; i < 12 * 24; i++) EXPECT(host[i] == i / 24 * 1000 + i % 24);

  void (*steps[])(int*) = {plus_one, times_two, plus_one, times_two, times_two};
  int x = 3;
  cudaMemcpy(d_p, &x, sizeof x, cudaMemcpyHostToDevice);
  for (auto step : steps) step<<<1, 1>>>(d_p);
  cudaMemcpy(&x, d_p, sizeof x, cudaMemcpyDeviceToHost);
  EXPECT(x == ((3 + 1) * 2 + 1) * 4);
  const char* name = nullptr;
  EXPECT(cudaFuncGetName(&name, (const void*)plus_one) == cudaSuccess && strstr(name, "plus_one"));
  puts("PASS");
}
