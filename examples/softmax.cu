// softmax: exp(x - max) / sum(exp(x - max)) for every row of a matrix, in one pass over the data.
//
//   ./ws run examples/softmax.cu                  100 rows of 1000
//   ./ws run examples/softmax.cu -- 16 4096       rows, columns
//
// Without subtracting the row's maximum, exp overflows.  Finding the maximum first costs a pass of its own.
// The trick ("online softmax"): keep a maximum and a sum while reading; when a larger maximum turns up, scale
// the sum that was made with the old one.  Two such pairs merge by the same rule, so the lanes of a warp can
// combine theirs with shuffles.  Attention kernels rest on this.

#include "check.h"

constexpr unsigned ALL_LANES = 0xffffffffu;

// The largest element so far, and the sum of exp(element - largest).
struct Running {
  float largest, sum;
};

__device__ Running merge(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return a;  // both empty; -inf - -inf would not be a number
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ Running merge_warp(Running mine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const Running other = {__shfl_xor_sync(ALL_LANES, mine.largest, distance),
                           __shfl_xor_sync(ALL_LANES, mine.sum, distance)};
    mine = merge(mine, other);
  }
  return mine;  // the same in all lanes: with xor, every lane hears from every other
}

// One block a row.
__global__ void softmax(int columns, const float* in, float* out) {
  __shared__ Running of_warp[32];
  const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
  float* result = out + static_cast<size_t>(blockIdx.x) * columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

  Running mine = {-INFINITY, 0.0f};
  for (int i = threadIdx.x; i < columns; i += blockDim.x) mine = merge(mine, {row[i], 1.0f});
  mine = merge_warp(mine);
  if (lane == 0) of_warp[warp] = mine;
  __syncthreads();
  mine = merge_warp(lane < warps ? of_warp[lane] : Running{-INFINITY, 0.0f});  // every warp does it for itself

  for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] = expf(row[i] - mine.largest) / mine.sum;
}

int main(int argc, char** argv) {
  const int rows = argument(argc, argv, 1, 100), columns = argument(argc, argv, 2, 1000);
  std::vector<float> x(static_cast<size_t>(rows) * columns);
  // Around 200: exp(200) is far beyond a float.
  for (size_t i = 0; i < x.size(); i++) x[i] = 200.0f + static_cast<float>(scramble(i) % 2000) / 100.0f;
  DeviceArray<float> device_x(x), device_y(x.size());

  softmax<<<rows, 256>>>(columns, device_x.data(), device_y.data());
  CHECK_KERNEL();

  const std::vector<float> y = device_y.to_host();
  double worst = 0.0;
  for (int r = 0; r < rows; r++) {
    const float* row = &x[static_cast<size_t>(r) * columns];
    double largest = row[0], sum = 0.0;
    for (int i = 1; i < columns; i++) largest = std::fmax(largest, row[i]);
    for (int i = 0; i < columns; i++) sum += std::exp(row[i] - largest);
    for (int i = 0; i < columns; i++) {
      const double expected = std::exp(row[i] - largest) / sum;
      const double error = std::fabs(y[static_cast<size_t>(r) * columns + i] - expected) / expected;
      if (!(error < 1e-5)) {
        std::printf("FAIL: row %d, column %d is %g, not %g\n", r, i, y[static_cast<size_t>(r) * columns + i], expected);
        return 1;
      }
      worst = std::fmax(worst, error);
    }
  }
  std::printf("PASS: softmax of %d rows of %d, largest relative error below 1e-5\n", rows, columns);
  return worst < 1e-5 ? 0 : 1;
}
