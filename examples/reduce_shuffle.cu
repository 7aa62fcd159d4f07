// reduce_shuffle: the sum of a vector, with warp shuffles.
//
//   ./ws run examples/reduce_shuffle.cu              2^20 + 17 numbers
//   ./ws run examples/reduce_shuffle.cu -- 1000
//
// The 32 threads of a warp can read each other's registers.  In five steps, 16, 8, 4, 2 and 1 lanes apart, each
// adds what its neighbour has, and lane 0 ends up with the sum of all 32: no shared memory, no barrier.  The
// warps of a block then meet once in shared memory, and the blocks once in an atomic addition.

#include "check.h"

constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ long long warp_sum(long long value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(ALL_LANES, value, distance);
  return value;  // of the whole warp in lane 0, of less in the others
}

__global__ void sum(int n, const int* values, unsigned long long* total) {
  __shared__ long long of_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  // First every thread adds up its share alone: cheap, and it may be any length.
  long long mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += values[i];

  mine = warp_sum(mine);
  if (lane == 0) of_warp[warp] = mine;
  __syncthreads();
  if (warp == 0) {
    const int warps = blockDim.x / 32;
    mine = warp_sum(lane < warps ? of_warp[lane] : 0);
    // Two's complement makes the unsigned addition right for negative numbers too.
    if (lane == 0) atomicAdd(total, static_cast<unsigned long long>(mine));
  }
}

int main(int argc, char** argv) {
  const int n = argument(argc, argv, 1, (1 << 20) + 17);
  std::vector<int> values(n);
  long long expected = 0;
  for (int i = 0; i < n; i++) {
    values[i] = static_cast<int>(scramble(i) % 20001) - 10000;
    expected += values[i];
  }
  DeviceArray<int> device_values(values);
  DeviceArray<unsigned long long> device_total(1);
  device_total.clear();

  sum<<<std::min(256, blocks_for(n, 256)), 256>>>(n, device_values.data(), device_total.data());
  CHECK_KERNEL();

  const long long total = static_cast<long long>(device_total.to_host()[0]);
  if (total != expected) {
    std::printf("FAIL: the sum is %lld, not %lld\n", total, expected);
    return 1;
  }
  std::printf("PASS: the sum of %d numbers is %lld\n", n, total);
  return 0;
}
