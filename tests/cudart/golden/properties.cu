// Every field of cudaDeviceProp and every attribute of device 0; properties.h200.txt is an H200's answer.
#include <cstdio>

#include <cuda_runtime.h>

#define P(f) printf("prop %s %lld\n", #f, (long long)p.f)
#define A(f, n) for (int i = 0; i < n; ++i) printf("prop %s[%d] %lld\n", #f, i, (long long)p.f[i])

int main() {
  cudaDeviceProp p;
  if (cudaError_t e = cudaGetDeviceProperties(&p, 0)) return printf("%s\n", cudaGetErrorName(e)), 1;
  printf("prop name %s\n", p.name);
  P(luidDeviceNodeMask);
  P(totalGlobalMem);
  P(sharedMemPerBlock);
  P(regsPerBlock);
  P(warpSize);
  P(memPitch);
  P(maxThreadsPerBlock);
  A(maxThreadsDim, 3);
  A(maxGridSize, 3);
  P(totalConstMem);
  P(major);
  P(minor);
  P(textureAlignment);
  P(texturePitchAlignment);
  P(multiProcessorCount);
  P(integrated);
  P(canMapHostMemory);
  P(maxTexture1D);
  P(maxTexture1DMipmap);
  A(maxTexture2D, 2);
  A(maxTexture2DMipmap, 2);
  A(maxTexture2DLinear, 3);
  A(maxTexture2DGather, 2);
  A(maxTexture3D, 3);
  A(maxTexture3DAlt, 3);
  P(maxTextureCubemap);
  A(maxTexture1DLayered, 2);
  A(maxTexture2DLayered, 3);
  A(maxTextureCubemapLayered, 2);
  P(maxSurface1D);
  A(maxSurface2D, 2);
  A(maxSurface3D, 3);
  A(maxSurface1DLayered, 2);
  A(maxSurface2DLayered, 3);
  P(maxSurfaceCubemap);
  A(maxSurfaceCubemapLayered, 2);
  P(surfaceAlignment);
  P(concurrentKernels);
  P(ECCEnabled);
  P(pciBusID);
  P(pciDeviceID);
  P(pciDomainID);
  P(tccDriver);
  P(asyncEngineCount);
  P(unifiedAddressing);
  P(memoryBusWidth);
  P(l2CacheSize);
  P(persistingL2CacheMaxSize);
  P(maxThreadsPerMultiProcessor);
  P(streamPrioritiesSupported);
  P(globalL1CacheSupported);
  P(localL1CacheSupported);
  P(sharedMemPerMultiprocessor);
  P(regsPerMultiprocessor);
  P(managedMemory);
  P(isMultiGpuBoard);
  P(multiGpuBoardGroupID);
  P(hostNativeAtomicSupported);
  P(pageableMemoryAccess);
  P(concurrentManagedAccess);
  P(computePreemptionSupported);
  P(canUseHostPointerForRegisteredMem);
  P(cooperativeLaunch);
  P(sharedMemPerBlockOptin);
  P(pageableMemoryAccessUsesHostPageTables);
  P(directManagedMemAccessFromHost);
  P(maxBlocksPerMultiProcessor);
  P(accessPolicyMaxWindowSize);
  P(reservedSharedMemPerBlock);
  P(hostRegisterSupported);
  P(sparseCudaArraySupported);
  P(hostRegisterReadOnlySupported);
  P(timelineSemaphoreInteropSupported);
  P(memoryPoolsSupported);
  P(gpuDirectRDMASupported);
  P(gpuDirectRDMAFlushWritesOptions);
  P(gpuDirectRDMAWritesOrdering);
  P(memoryPoolSupportedHandleTypes);
  P(deferredMappingCudaArraySupported);
  P(ipcEventSupported);
  P(clusterLaunch);
  P(unifiedFunctionPointers);
  P(deviceNumaConfig);
  P(deviceNumaId);
  P(mpsEnabled);
  P(hostNumaId);
  P(gpuPciDeviceID);
  P(gpuPciSubsystemID);
  P(hostNumaMultinodeIpcSupported);
  for (int a = 1; a < 150; ++a) {
    int v = 0;
    cudaError_t e = cudaDeviceGetAttribute(&v, (cudaDeviceAttr)a, 0);
    if (e) printf("attribute %d %s\n", a, cudaGetErrorName(e));
    else printf("attribute %d %d\n", a, v);
  }
}
