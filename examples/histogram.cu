// histogram: how often does each byte occur?
//
//   ./ws run examples/histogram.cu               2^20 bytes
//   ./ws run examples/histogram.cu -- 100000
//
// If all threads of the grid incremented the same 256 counters in global memory, they would queue there.  So
// each block counts for itself in shared memory, where atomic operations are fast, and adds its counts to the
// result once at the end.

#include "check.h"

constexpr int BINS = 256;

__global__ void histogram(int n, const unsigned char* data, unsigned* counts) {
  __shared__ unsigned local[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) local[bin] = 0;  // fresh memory holds anything
  __syncthreads();

  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();

  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
    if (local[bin] > 0) atomicAdd(&counts[bin], local[bin]);
}

int main(int argc, char** argv) {
  const int n = argument(argc, argv, 1, 1 << 20);
  std::vector<unsigned char> data(n);
  std::vector<unsigned> expected(BINS, 0);
  for (int i = 0; i < n; i++) {
    // Far from even: the product of two bytes makes small values common, so many threads meet in one bin.
    const unsigned random = scramble(i);
    data[i] = static_cast<unsigned char>((random & 255u) * (random >> 8 & 255u) >> 8);
    expected[data[i]]++;
  }
  DeviceArray<unsigned char> device_data(data);
  DeviceArray<unsigned> device_counts(BINS);
  device_counts.clear();

  histogram<<<std::min(128, blocks_for(n, 256)), 256>>>(n, device_data.data(), device_counts.data());
  CHECK_KERNEL();

  const std::vector<unsigned> counts = device_counts.to_host();
  for (int bin = 0; bin < BINS; bin++) {
    if (counts[bin] != expected[bin]) {
      std::printf("FAIL: byte %d was counted %u times, it occurs %u times\n", bin, counts[bin], expected[bin]);
      return 1;
    }
  }
  std::printf("PASS: %d bytes counted, 0 occurs %u times\n", n, counts[0]);
  return 0;
}
