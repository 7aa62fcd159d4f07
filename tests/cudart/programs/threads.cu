// Several host threads use the device at once; errors are each thread's own.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

__global__ void add(int* p, int v) { atomicAdd(p, v); }

int main() {
  int *shared, total = 0;
  CHECK(cudaMalloc(&shared, 4));
  CHECK(cudaMemset(shared, 0, 4));
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([=, &errors] {
      cudaStream_t s;
      CHECK(cudaStreamCreate(&s));
      for (int i = 0; i < 50; ++i) {
        int* own;
        int back = 0;
        CHECK(cudaMalloc(&own, 4));
        CHECK(cudaMemsetAsync(own, 0, 4, s));
        add<<<2, 64, 0, s>>>(own, t);
        add<<<1, 32, 0, s>>>(shared, 1);
        CHECK(cudaMemcpyAsync(&back, own, 4, cudaMemcpyDeviceToHost, s));
        CHECK(cudaStreamSynchronize(s));
        if (back != 128 * t) ++errors;
        CHECK(cudaFree(own));
      }
      if (t == 1) {
        cudaSetDevice(99);
        if (cudaPeekAtLastError() != cudaErrorInvalidDevice) ++errors;
      } else if (cudaPeekAtLastError() != cudaSuccess) {
        ++errors;
      }
      CHECK(cudaStreamDestroy(s));
    });
  for (auto& t : threads) t.join();
  CHECK(cudaMemcpy(&total, shared, 4, cudaMemcpyDeviceToHost));
  printf("%d, errors %d, last %s\n", total, errors.load(), cudaGetErrorName(cudaGetLastError()));
}
// output:
// 6400, errors 0, last cudaSuccess
