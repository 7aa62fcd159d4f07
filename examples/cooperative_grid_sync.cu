// cooperative_grid_sync: a barrier for the whole grid, in one launch.
//
//   ./ws run examples/cooperative_grid_sync.cu
//
// Heat spreads along a rod: each point becomes the average of its neighbours, step after step, and a step may
// begin only when all of the grid has finished the one before.  Usually that means a launch for every step.  A
// cooperative launch has a barrier for all blocks; in exchange all of them must fit on the GPU at the same
// time, because a block that waits does not make room.  How many fit, the runtime can tell.

#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void diffuse(int n, int steps, float* now, float* next) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < steps; step++) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
      const float left = now[i > 0 ? i - 1 : 0], right = now[i < n - 1 ? i + 1 : n - 1];
      next[i] = 0.25f * left + 0.5f * now[i] + 0.25f * right;
    }
    grid.sync();
    float* swap = now;
    now = next;
    next = swap;
  }
}

int main() {
  int n = 5000, steps = 50;
  const int threads = 128;

  cudaDeviceProp gpu;
  CHECK(cudaGetDeviceProperties(&gpu, 0));
  if (!gpu.cooperativeLaunch) {
    std::printf("FAIL: %s has no cooperative launches\n", gpu.name);
    return 1;
  }
  int per_sm = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, diffuse, threads, 0));
  const int blocks = std::min(per_sm * gpu.multiProcessorCount, blocks_for(n, threads));

  std::vector<float> rod(n, 0.0f);
  for (int i = n / 3; i < n / 2; i++) rod[i] = 100.0f;
  DeviceArray<float> device_now(rod), device_next(n);
  float *now = device_now.data(), *next = device_next.data();
  void* arguments[] = {&n, &steps, &now, &next};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(diffuse), dim3(blocks), dim3(threads), arguments, 0, 0));
  CHECK(cudaDeviceSynchronize());

  // After an even number of steps the result is back where it began.
  const std::vector<float> result = device_now.to_host();
  std::vector<float> old = rod, fresh(n);
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < n; i++) {
      const float left = old[i > 0 ? i - 1 : 0], right = old[i < n - 1 ? i + 1 : n - 1];
      // Multiplications by powers of two are exact, so the result is the same wherever the GPU fuses them.
      fresh[i] = 0.25f * left + 0.5f * old[i] + 0.25f * right;
    }
    old.swap(fresh);
  }
  for (int i = 0; i < n; i++) {
    if (result[i] != old[i]) {
      std::printf("FAIL: point %d is %g, not %g\n", i, result[i], old[i]);
      return 1;
    }
  }
  std::printf("PASS: %d steps of %d points with %d blocks that wait for each other\n", steps, n, blocks);
  return 0;
}
