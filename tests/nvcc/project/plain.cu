#include <cstdio>
__global__ void hello(int* p) { p[threadIdx.x] = threadIdx.x; }
int main() {
  int* p;
  cudaMallocManaged(&p, 128);
  hello<<<1, 32>>>(p);
  cudaDeviceSynchronize();
  std::printf("plain %d\n", p[31]);
}
