// Mistakes of the host: memory of the other side, sizes and directions of copies, freeing, launches that cannot be.
#include <cooperative_groups.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void fill(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = i;
}
__global__ void __launch_bounds__(128) bounded(int* p) { p[threadIdx.x] = 1; }
__global__ void with_shared(int* p) {
  extern __shared__ int s[];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x];
}
__global__ void meet(int* p) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) p[0] = 1;
}

int run_case(const char* argument) {
  char name[64] = "";
  strncpy(name, argument, sizeof name - 1);
  char* end = strstr(name, "_right");
  const bool right = end != nullptr;
  if (right) *end = 0;
  auto is = [&](const char* what) { return !strcmp(name, what); };
  const int n = 100;
  int host[n] = {}, *d = nullptr, *e = nullptr;
  cudaError_t got = cudaSuccess;
  cudaMalloc(&d, n * sizeof(int));
  cudaMalloc(&e, n * sizeof(int));
  fill<<<1, 128>>>(d, n);
  if (is("host_reads_device")) {
    if (right) cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
    const int* from = right ? host : d;
    std::printf("%d\n", from[7]);
  } else if (is("host_writes_device")) {
    int* managed;
    cudaMallocManaged(&managed, 4);
    cudaDeviceSynchronize();
    int* to = right ? managed : d;
    *to = 1;
  } else if (is("copy_too_long")) {
    int more[2 * n];
    got = cudaMemcpy(more, d, right ? n * sizeof(int) : sizeof more, cudaMemcpyDeviceToHost);
  } else if (is("copy_backwards")) {
    got = right ? cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost) : cudaMemcpy(d, host, sizeof host, cudaMemcpyDeviceToHost);
  } else if (is("copy_from_freed")) {
    if (!right) cudaFree(d);
    got = cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
  } else if (is("fill_too_long")) {
    got = cudaMemset(d, 0, right ? n * sizeof(int) : n * sizeof(int) + 1);
  } else if (is("double_free")) {
    cudaFree(d);
    got = cudaFree(right ? e : d);
  } else if (is("free_inside")) {
    got = cudaFree(right ? d : d + 1);
  } else if (is("free_pinned")) {
    int* pinned;
    cudaMallocHost(&pinned, 64);
    got = right ? cudaFreeHost(pinned) : cudaFree(pinned);
  } else if (is("threads_a_block")) {
    fill<<<1, right ? 1024 : 1056>>>(d, n);
  } else if (is("empty_grid")) {
    fill<<<right ? 1 : n / 128, 128>>>(d, n);
  } else if (is("launch_bounds")) {
    bounded<<<1, right ? 100 : 160>>>(d);
  } else if (is("dynamic_shared")) {
    if (right) cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000);
    with_shared<<<1, 32, 60000>>>(d);
  } else if (is("cooperative")) {
    void* args[] = {&d};
    got = cudaLaunchCooperativeKernel(meet, right ? 8 : 100000, 1024, args);
  } else {
    std::fprintf(stderr, "no such case: %s\n", name);
    return 2;
  }
  cudaError_t launch = cudaGetLastError(), run = cudaDeviceSynchronize();
  std::puts(cudaGetErrorName(got ? got : launch ? launch : run));
  return right && (got || launch || run);
}

int main(int argc, char** argv) {
  int worst = 0;
  for (int i = 1; i < argc; ++i)
    if (int status = run_case(argv[i])) worst = status;
  return worst;
}
