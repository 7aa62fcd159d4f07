// Answers questions about occupancy with NVIDIA's own header, for comparison.
// A line in: major minor warps blocks shared_per_sm shared_optin reserved | threads registers shared
#define __OCC_INLINE inline
#include <cuda_occupancy.h>

#include <cstdio>

int main() {
  int major, minor, warps, blocks, threads, registers;
  long per_sm, optin, reserved, shared;
  while (std::scanf("%d %d %d %d %ld %ld %ld %d %d %ld", &major, &minor, &warps, &blocks, &per_sm, &optin, &reserved,
                    &threads, &registers, &shared) == 10) {
    cudaOccDeviceProp chip = {};
    chip.computeMajor = major;
    chip.computeMinor = minor;
    chip.maxThreadsPerBlock = 1024;
    chip.maxThreadsPerMultiprocessor = 32 * warps;
    chip.regsPerBlock = chip.regsPerMultiprocessor = 65536;
    chip.warpSize = 32;
    chip.sharedMemPerBlock = 49152;
    chip.sharedMemPerMultiprocessor = per_sm;
    chip.numSms = 1;
    chip.sharedMemPerBlockOptin = optin;
    chip.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel = {};
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = optin;
    cudaOccDeviceState state = {};
    cudaOccResult result = {};
    const cudaOccError error =
        cudaOccMaxActiveBlocksPerMultiprocessor(&result, &chip, &kernel, &state, threads, shared);
    std::printf("%d\n", error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
  }
}
