// vector_add: c = a + b with a grid-stride loop.
//
//   ./ws run examples/vector_add.cu              2^20 elements
//   ./ws run examples/vector_add.cu -- 12345
//
// saxpy.cu starts one thread for every element.  Here the number of threads is chosen for the GPU instead, and
// every thread walks through the vector in steps of the whole grid.  It works for any length with any launch,
// neighbouring threads still touch neighbouring elements, and what a thread sets up once (an index, a table)
// serves many elements.

#include "check.h"

__global__ void add(int n, const float* a, const float* b, float* c) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  const int n = argument(argc, argv, 1, 1 << 20);
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; i++) {
    a[i] = static_cast<float>(i % 4096);
    b[i] = 0.5f * static_cast<float>(i % 1001);
  }
  DeviceArray<float> device_a(a), device_b(b), device_c(n);

  // Two blocks for every multiprocessor are enough to keep it busy; more would only queue.
  cudaDeviceProp gpu;
  CHECK(cudaGetDeviceProperties(&gpu, 0));
  const int blocks = std::min(2 * gpu.multiProcessorCount, blocks_for(n, 256));
  add<<<blocks, 256>>>(n, device_a.data(), device_b.data(), device_c.data());
  CHECK_KERNEL();

  std::vector<float> c = device_c.to_host();
  for (int i = 0; i < n; i++) {
    if (c[i] != a[i] + b[i]) {
      std::printf("FAIL: c[%d] is %g, not %g\n", i, c[i], a[i] + b[i]);
      return 1;
    }
  }
  std::printf("PASS: %d sums with %d blocks on %s\n", n, blocks, gpu.name);
  return 0;
}
