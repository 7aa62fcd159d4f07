// refused: 2
// Asking about kernels: attributes, occupancy, launch configurations, and more than 48 KiB of dynamic shared memory.
// The numbers must fit together on every chip.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("FAIL: line %d: %s\n", __LINE__, cudaGetErrorName(e_)); exit(1); } } while (0)
#define EXPECT(x) do { if (!(x)) { printf("FAIL: line %d: %s\n", __LINE__, #x); exit(1); } } while (0)

__constant__ int table[100];

__global__ void __launch_bounds__(256, 2) bounded(int* out) {
  __shared__ int s[512];
  s[threadIdx.x] = table[threadIdx.x % 100];
  __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

// Reverses as many ints as fit.
__global__ void reverse(int* data, int n) {
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = s[n - 1 - i];
}

struct SixteenInts {
  __host__ __device__ size_t operator()(int threads) const { return threads * sizeof(int) * 16; }
};

int main() {
  int device = -1, count = 0;
  OK(cudaGetDeviceCount(&count));
  OK(cudaSetDevice(0));
  OK(cudaGetDevice(&device));
  EXPECT(count >= 1 && device == 0);
  cudaDeviceProp prop;
  OK(cudaGetDeviceProperties(&prop, device));
  EXPECT(prop.warpSize == 32 && prop.maxThreadsPerBlock == 1024 && prop.multiProcessorCount > 0 && prop.major >= 7);
  EXPECT(prop.sharedMemPerBlock == 49152 && prop.sharedMemPerBlockOptin > prop.sharedMemPerBlock);
  int attribute = 0;
  OK(cudaDeviceGetAttribute(&attribute, cudaDevAttrMultiProcessorCount, device));
  EXPECT(attribute == prop.multiProcessorCount);
  OK(cudaDeviceGetAttribute(&attribute, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  EXPECT(attribute == (int)prop.sharedMemPerBlockOptin);
  size_t available = 0, total = 0;
  OK(cudaMemGetInfo(&available, &total));
  EXPECT(available > 0 && available <= total);

  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, bounded));
  EXPECT(attributes.sharedSizeBytes == 2048 && attributes.maxThreadsPerBlock == 256 && attributes.localSizeBytes == 0);
  EXPECT(attributes.numRegs > 0 && attributes.numRegs <= 255 && attributes.constSizeBytes >= 400);
  OK(cudaFuncGetAttributes(&attributes, reverse));
  EXPECT(attributes.sharedSizeBytes == 0 && attributes.maxThreadsPerBlock == 1024);

  int blocks = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 0));
  EXPECT(blocks >= 2 && blocks * 256 <= prop.maxThreadsPerMultiProcessor);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 32, 40000));
  EXPECT(blocks == (int)(prop.sharedMemPerMultiprocessor / (40000 + prop.reservedSharedMemPerBlock)));
  int grid = 0, block = 0;
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
  EXPECT(block > 0 && block <= 256 && block % 32 == 0 && grid % prop.multiProcessorCount == 0);
  OK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, reverse, SixteenInts()));
  EXPECT(block > 0 && block * 64 <= (int)prop.sharedMemPerMultiprocessor);

  // 48 KiB are for everybody; more must be asked for, once for each kernel.
  const int n = (int)prop.sharedMemPerBlockOptin / (int)sizeof(int);
  std::vector<int> host(n), want(n);
  for (int i = 0; i < n; i++) host[i] = want[n - 1 - i] = i * 3;
  int* d;
  OK(cudaMalloc(&d, n * sizeof(int)));
  OK(cudaMemcpy(d, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse<<<1, 512, n * sizeof(int)>>>(d, n);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4 + 4) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, n * sizeof(int)));
  OK(cudaFuncGetAttributes(&attributes, reverse));
  EXPECT(attributes.maxDynamicSharedSizeBytes == n * (int)sizeof(int));
  reverse<<<1, 512, n * sizeof(int)>>>(d, n);
  OK(cudaGetLastError());
  OK(cudaMemcpy(host.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(host == want);
  OK(cudaFuncSetAttribute(reverse, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  OK(cudaFuncSetCacheConfig(reverse, cudaFuncCachePreferShared));

  bounded<<<1, 257>>>(d);  // more than its launch bounds
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
  bounded<<<1, 256>>>(d);
  OK(cudaDeviceSynchronize());
  OK(cudaFree(d));
  puts("PASS");
}
