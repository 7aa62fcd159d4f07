// saxpy: y = a * x + y, the "hello world" of GPU programming.
//
//   ./ws run examples/saxpy.cu                a vector of 2^20 numbers
//   ./ws run examples/saxpy.cu -- 1000003     any other length
//
// One thread computes one element.  Threads come in blocks of 256, and there are as many blocks as it takes
// to cover the vector; the last block is usually not full, which is why the kernel checks its index.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Every call to the CUDA runtime can fail, and a kernel's failure is reported by a later call: check them all.
#define CHECK(call)                                                                            \
  do {                                                                                         \
    cudaError_t status = (call);                                                               \
    if (status != cudaSuccess) {                                                               \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));     \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (0)

__global__ void saxpy(int n, float a, const float* x, float* y) {
  // Which element is mine?  Neighbouring threads take neighbouring elements, so a warp's 32 loads lie side
  // by side in memory and travel together.
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
  const float a = 2.5f;
  if (n < 1) {
    std::fprintf(stderr, "the length must be a positive number\n");
    return 2;
  }

  std::vector<float> x(n), y(n), result(n);
  for (int i = 0; i < n; i++) {
    x[i] = 0.25f * (i % 1000);
    y[i] = 1.0f - 0.5f * (i % 37);
  }

  // The GPU has a memory of its own: reserve room there and copy the inputs over.
  float *device_x, *device_y;
  CHECK(cudaMalloc(&device_x, n * sizeof(float)));
  CHECK(cudaMalloc(&device_y, n * sizeof(float)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;  // rounded up
  saxpy<<<blocks, threads>>>(n, a, device_x, device_y);
  CHECK(cudaGetLastError());       // was the launch itself all right?
  CHECK(cudaDeviceSynchronize());  // wait; did the kernel run through?

  CHECK(cudaMemcpy(result.data(), device_y, n * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_y));

  for (int i = 0; i < n; i++) {
    // The GPU fuses the multiplication and the addition into one rounding; so does fmaf.
    float expected = std::fmaf(a, x[i], y[i]);
    if (result[i] != expected) {
      std::printf("FAIL: y[%d] is %g, not %g\n", i, result[i], expected);
      return 1;
    }
  }
  std::printf("PASS: saxpy of %d numbers, y[%d] = %g\n", n, n - 1, result[n - 1]);
  return 0;
}
