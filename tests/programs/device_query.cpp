// A plain C++ program: no kernel, only questions about the device.
#include <cuda_runtime_api.h>

#include <cstring>
#include <iostream>
#include <string>

#define REQUIRE(x) do { if (!(x)) { std::cout << "FAIL: " #x << std::endl; return 1; } } while (0)

int main() {
  int devices = 0, driver = 0, runtime = 0;
  REQUIRE(cudaGetDeviceCount(&devices) == cudaSuccess && devices >= 1);
  REQUIRE(cudaDriverGetVersion(&driver) == cudaSuccess && cudaRuntimeGetVersion(&runtime) == cudaSuccess);
  REQUIRE(driver >= runtime && runtime == CUDART_VERSION);
  for (int i = 0; i < devices; ++i) {
    cudaDeviceProp p;
    REQUIRE(cudaGetDeviceProperties(&p, i) == cudaSuccess);
    REQUIRE(std::strlen(p.name) > 0);
    REQUIRE(p.totalGlobalMem > (size_t{1} << 30) && p.warpSize == 32 && p.maxThreadsPerBlock == 1024);
    REQUIRE(p.maxThreadsDim[0] == 1024 && p.maxThreadsDim[1] == 1024 && p.maxThreadsDim[2] == 64);
    REQUIRE(p.maxGridSize[0] == 2147483647 && p.maxGridSize[1] == 65535 && p.maxGridSize[2] == 65535);
    REQUIRE(p.regsPerBlock == 65536 && p.totalConstMem == 65536 && p.unifiedAddressing && p.managedMemory && p.concurrentKernels);
    REQUIRE(p.maxThreadsPerMultiProcessor % p.warpSize == 0 && p.maxBlocksPerMultiProcessor >= 16);
    REQUIRE(p.sharedMemPerMultiprocessor >= p.sharedMemPerBlockOptin && p.l2CacheSize > 0 && p.memoryBusWidth > 0);
    for (auto [attribute, value] : {std::pair{cudaDevAttrWarpSize, p.warpSize},
                                    {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
                                    {cudaDevAttrComputeCapabilityMajor, p.major},
                                    {cudaDevAttrComputeCapabilityMinor, p.minor},
                                    {cudaDevAttrL2CacheSize, p.l2CacheSize},
                                    {cudaDevAttrMaxGridDimX, p.maxGridSize[0]}}) {
      int got = -1;
      REQUIRE(cudaDeviceGetAttribute(&got, attribute, i) == cudaSuccess && got == value);
    }
    char bus[32];
    int again = -1;
    REQUIRE(cudaDeviceGetPCIBusId(bus, sizeof bus, i) == cudaSuccess && cudaDeviceGetByPCIBusId(&again, bus) == cudaSuccess && again == i);
    int low = 0, high = 0;
    REQUIRE(cudaDeviceGetStreamPriorityRange(&low, &high) == cudaSuccess && high <= low);
    size_t stack = 0, heap = 0;
    REQUIRE(cudaDeviceGetLimit(&stack, cudaLimitStackSize) == cudaSuccess && cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize) == cudaSuccess);
    REQUIRE(stack == 1024 && heap == 8 << 20);
    REQUIRE(cudaDeviceSetLimit(cudaLimitStackSize, 4096) == cudaSuccess);
    REQUIRE(cudaDeviceGetLimit(&stack, cudaLimitStackSize) == cudaSuccess && stack >= 4096);
    int chosen = -1;
    cudaDeviceProp wish = {};
    wish.major = p.major;
    REQUIRE(cudaChooseDevice(&chosen, &wish) == cudaSuccess && chosen >= 0);
  }
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  std::cout << "PASS" << std::endl;
}
