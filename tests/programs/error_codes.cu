// refused: 9
// What goes wrong, and how a program learns of it: errors of calls, errors of launches, errors that stay after a kernel's
// fault, and what is still possible then.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void fine(int* x) { *x = 1; }
__global__ void heavy(int* x) {
  __shared__ int s[12288];  // all of the 48 KiB
  s[threadIdx.x] = *x;
  *x = s[0];
}
__global__ void fault(int* x, int far) { x[far] = 1; }

static void show(const char* what, cudaError_t e) { std::printf("%s: %s (%d)\n", what, cudaGetErrorName(e), e); }
#define SHOW(call) show(#call, call)

int main() {
  int *d = nullptr, h = 0;
  std::puts(cudaGetErrorString(cudaSuccess));
  std::puts(cudaGetErrorString(cudaErrorMemoryAllocation));
  std::puts(cudaGetErrorString(static_cast<cudaError_t>(12345)));
  SHOW(cudaMalloc(&d, sizeof(int)));
  SHOW(cudaMalloc(nullptr, 4));
  void* huge;
  SHOW(cudaMalloc(&huge, size_t{1} << 50));
  SHOW(cudaGetLastError());
  SHOW(cudaGetLastError());
  SHOW(cudaSetDevice(99));
  SHOW(cudaMemcpy(d, &h, sizeof h, static_cast<cudaMemcpyKind>(77)));
  SHOW(cudaMemcpy(d, nullptr, 4, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(d, nullptr, 0, cudaMemcpyHostToDevice));
  SHOW(cudaFree(nullptr));
  SHOW(cudaFree(&h));
  SHOW(cudaFreeHost(&h));
  SHOW(cudaEventQuery(nullptr));
  SHOW(cudaPeekAtLastError());
  SHOW(cudaPeekAtLastError());
  cudaGetLastError();

  fine<<<1, 1025>>>(d);
  SHOW(cudaGetLastError());
  fine<<<0, 32>>>(d);
  SHOW(cudaGetLastError());
  fine<<<dim3(1, 70000), 32>>>(d);
  SHOW(cudaGetLastError());
  fine<<<1, dim3(1, 1, 65)>>>(d);
  SHOW(cudaGetLastError());
  fine<<<1, 32, 1 << 20>>>(d);
  SHOW(cudaGetLastError());
  heavy<<<1, 32, 16>>>(d);
  SHOW(cudaGetLastError());
  SHOW(cudaLaunchKernel(reinterpret_cast<const void*>(&show), dim3(1), dim3(1), nullptr, 0, nullptr));
  SHOW(cudaGetLastError());
  SHOW(cudaDeviceSynchronize());  // none of these stays

  fine<<<1, 32>>>(d);
  SHOW(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
  std::printf("the device works: %d\n", h);
  fault<<<1, 1>>>(d, 1 << 28);
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaGetLastError());
  SHOW(cudaGetLastError());  // taken away, and yet...
  SHOW(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
  SHOW(cudaMalloc(&huge, 16));
  fine<<<1, 32>>>(d);
  SHOW(cudaPeekAtLastError());
  SHOW(cudaStreamSynchronize(nullptr));
  int count = 0;
  SHOW(cudaGetDeviceCount(&count));
  return 0;
}
