// One host thread a stream: each has its own last error, all share the device; and a queue of work between them.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

__global__ void collatz(const unsigned* from, unsigned* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = from[i];
  unsigned k = 0;
  for (; v > 1; ++k) v = v & 1 ? 3 * v + 1 : v / 2;
  steps[i] = k;
}

int main() {
  const int jobs = 24, size = 500, workers = 5;
  std::vector<unsigned> totals(jobs);
  std::atomic<int> next{0}, failures{0};
  std::mutex printing;
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      auto check = [&](cudaError_t e) {
        if (e == cudaSuccess) return;
        failures++;
        std::lock_guard<std::mutex> lock(printing);
        std::printf("FAIL: worker %d: %s\n", w, cudaGetErrorString(e));
      };
      check(cudaSetDevice(0));
      if (w == 2) cudaEventQuery(nullptr);  // an error of this thread alone
      cudaStream_t stream;
      check(cudaStreamCreate(&stream));
      unsigned *from, *steps;
      check(cudaMalloc(&from, size * sizeof(unsigned)));
      check(cudaMalloc(&steps, size * sizeof(unsigned)));
      std::vector<unsigned> host(size);
      for (int job; (job = next++) < jobs;) {
        std::iota(host.begin(), host.end(), job * size + 1);
        check(cudaMemcpyAsync(from, host.data(), size * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
        collatz<<<(size + 63) / 64, 64, 0, stream>>>(from, steps, size);
        check(cudaMemcpyAsync(host.data(), steps, size * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        totals[job] = std::accumulate(host.begin(), host.end(), 0u);
      }
      if ((cudaGetLastError() != cudaSuccess) != (w == 2)) failures++;
      check(cudaFree(from));
      check(cudaFree(steps));
      check(cudaStreamDestroy(stream));
    });
  for (std::thread& t : threads) t.join();
  for (int job = 0; job < jobs; ++job) {
    unsigned want = 0;
    for (unsigned v = job * size + 1; v <= unsigned(job + 1) * size; ++v)
      for (unsigned long long x = v; x > 1; ++want) x = x & 1 ? 3 * x + 1 : x / 2;
    if (totals[job] != want) failures++;
  }
  std::printf("%s\n", failures ? "FAIL" : "PASS");
  return failures != 0;
}
