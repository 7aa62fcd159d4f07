// scan_lookback: running totals of a vector (inclusive prefix sum) in a single pass.
//
//   ./ws run examples/scan_lookback.cu                 2^18 + 5 numbers
//   ./ws run examples/scan_lookback.cu -- 5000
//
// Every block needs the sum of all blocks before it, which run at the same time.  In the "decoupled look-back"
// (Merrill and Garland, 2016) a block publishes its own sum at once, and later the total up to its end.  A block
// that needs what came before looks back from neighbour to neighbour: over those that have published only
// their own sum it adds and goes on; at the first that has its total it stops.
//
// Three things make it correct.  Blocks take their number from a counter when they start, so whom a block waits
// for has started already, in whatever order the GPU starts blocks.  State and value are written as one 64-bit
// word, so nobody sees one without the other.  And a block that waits only spins: it relies on the others
// making progress meanwhile.

#include "check.h"

constexpr int THREADS = 256;

enum State : unsigned { NOTHING = 0, SUM = 1, TOTAL = 2 };

__device__ unsigned long long pack(State state, unsigned value) {
  return static_cast<unsigned long long>(state) << 32 | value;
}

__device__ unsigned inclusive_scan_of_block(unsigned value, unsigned* of_warp) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += before;
  }
  if (lane == 31) of_warp[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; w++) value += of_warp[w];
  return value;
}

__global__ void scan(int n, const unsigned* in, unsigned* out, unsigned* counter, volatile unsigned long long* states) {
  __shared__ unsigned number, before, of_warp[THREADS / 32];
  if (threadIdx.x == 0) number = atomicAdd(counter, 1u);
  __syncthreads();
  const unsigned block = number;
  const int i = block * THREADS + threadIdx.x;

  const unsigned mine = inclusive_scan_of_block(i < n ? in[i] : 0u, of_warp);

  if (threadIdx.x == THREADS - 1) {  // it holds the block's sum
    unsigned exclusive = 0;
    if (block > 0) {
      states[block] = pack(SUM, mine);
      for (unsigned other = block - 1;; other--) {
        unsigned long long seen;
        do {
          seen = states[other];
        } while (seen >> 32 == NOTHING);
        exclusive += static_cast<unsigned>(seen);
        if (seen >> 32 == TOTAL) break;
      }
    }
    states[block] = pack(TOTAL, exclusive + mine);
    before = exclusive;
  }
  __syncthreads();
  if (i < n) out[i] = before + mine;
}

int main(int argc, char** argv) {
  const int n = argument(argc, argv, 1, (1 << 18) + 5);
  std::vector<unsigned> values(n);
  for (int i = 0; i < n; i++) values[i] = scramble(i) % 1000u;

  const int blocks = blocks_for(n, THREADS);
  DeviceArray<unsigned> device_in(values), device_out(n), device_counter(1);
  DeviceArray<unsigned long long> device_states(blocks);
  device_counter.clear();
  device_states.clear();
  scan<<<blocks, THREADS>>>(n, device_in.data(), device_out.data(), device_counter.data(), device_states.data());
  CHECK_KERNEL();

  const std::vector<unsigned> out = device_out.to_host();
  unsigned expected = 0;
  for (int i = 0; i < n; i++) {
    expected += values[i];
    if (out[i] != expected) {
      std::printf("FAIL: the total up to %d is %u, not %u\n", i, out[i], expected);
      return 1;
    }
  }
  std::printf("PASS: running totals of %d numbers in %d blocks, the last is %u\n", n, blocks, expected);
  return 0;
}
