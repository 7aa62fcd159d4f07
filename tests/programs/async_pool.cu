// Memory from pools in the order of a stream: cudaMallocAsync, cudaFreeAsync, pool attributes, registered host memory,
// zero-copy, and what cudaPointerGetAttributes says of each kind of pointer.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("FAIL: line %d: %s: %s\n", __LINE__, #x, cudaGetErrorName(e_)); exit(1); } } while (0)
#define EXPECT(x) do { if (!(x)) { printf("FAIL: line %d: %s\n", __LINE__, #x); exit(1); } } while (0)

__global__ void squares(unsigned* out, unsigned n, unsigned seed) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (i + seed) * (i + seed);
}
__global__ void sum_up(const unsigned* in, unsigned n, unsigned long long* out) {
  unsigned long long sum = 0;
  for (unsigned i = threadIdx.x; i < n; i += 32) sum += in[i];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) *out = sum;
}

cudaMemoryType type_of(const void* p) {
  cudaPointerAttributes a;
  OK(cudaPointerGetAttributes(&a, p));
  return a.type;
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  cudaMemPool_t pool;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = ~0ull, used = 0, high = 0;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));

  unsigned long long* totals;  // pinned: the kernel writes it directly
  OK(cudaHostAlloc(&totals, 10 * sizeof *totals, cudaHostAllocMapped));
  unsigned long long* device_view;
  OK(cudaHostGetDevicePointer(&device_view, totals, 0));
  for (unsigned round = 0; round < 10; ++round) {
    const unsigned n = 1000 + 700 * round;
    unsigned* temporary;
    OK(cudaMallocAsync(&temporary, n * sizeof(unsigned), stream));
    squares<<<(n + 127) / 128, 128, 0, stream>>>(temporary, n, round);
    sum_up<<<1, 32, 0, stream>>>(temporary, n, device_view + round);
    OK(cudaFreeAsync(temporary, stream));
  }
  OK(cudaStreamSynchronize(stream));
  for (unsigned long long round = 0; round < 10; ++round) {
    unsigned long long want = 0;
    for (unsigned i = 0; i < 1000 + 700 * round; ++i) want += static_cast<unsigned>((i + round) * (i + round));
    if (totals[round] != want) return printf("FAIL: round %llu: %llu, not %llu\n", round, totals[round], want), 1;
  }
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
  EXPECT(used == 0 && high >= 7300 * sizeof(unsigned));
  OK(cudaMemPoolTrimTo(pool, 0));

  std::vector<unsigned> ordinary(256, 1);
  EXPECT(type_of(ordinary.data()) == cudaMemoryTypeUnregistered);
  OK(cudaHostRegister(ordinary.data(), 256 * sizeof(unsigned), cudaHostRegisterDefault));
  EXPECT(type_of(ordinary.data()) == cudaMemoryTypeHost);
  squares<<<1, 256, 0, stream>>>(ordinary.data(), 256, 3);  // unified addresses: the host's own pointer will do
  OK(cudaStreamSynchronize(stream));
  EXPECT(ordinary[0] == 9 && ordinary[255] == 258 * 258);
  OK(cudaHostUnregister(ordinary.data()));
  EXPECT(cudaHostUnregister(ordinary.data()) == cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();

  void *device, *managed;
  OK(cudaMalloc(&device, 100));
  OK(cudaMallocManaged(&managed, 100));
  EXPECT(type_of(device) == cudaMemoryTypeDevice && type_of(static_cast<char*>(device) + 99) == cudaMemoryTypeDevice);
  EXPECT(type_of(managed) == cudaMemoryTypeManaged && type_of(totals) == cudaMemoryTypeHost);
  OK(cudaFree(device));
  OK(cudaFree(managed));
  OK(cudaFreeHost(totals));
  OK(cudaStreamDestroy(stream));
  puts("PASS");
}
