// Course work: the same sum written six times, from interleaved addressing to one atomic a warp.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA(call) do { cudaError_t e = (call); if (e) { std::printf("%s: %s\n", #call, cudaGetErrorString(e)); std::exit(1); } } while (0)

__global__ void interleaved(const int *in, int *out, int n) {
  extern __shared__ int data[];
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  data[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) data[tid] += data[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = data[0];
}

__global__ void sequential(const int *in, int *out, int n) {
  extern __shared__ int data[];
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  data[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) data[tid] += data[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = data[0];
}

__global__ void first_add_during_load(const int *in, int *out, int n) {
  extern __shared__ int data[];
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + tid;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  data[tid] = sum;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) data[tid] = sum = sum + data[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = sum;
}

template <unsigned blockSize>
__device__ void warp_reduce(volatile int *data, unsigned tid) {
  int v = data[tid];
  if (blockSize >= 64) { v += data[tid + 32]; __syncwarp(); data[tid] = v; __syncwarp(); }
  if (blockSize >= 32) { v += data[tid + 16]; __syncwarp(); data[tid] = v; __syncwarp(); }
  if (blockSize >= 16) { v += data[tid + 8]; __syncwarp(); data[tid] = v; __syncwarp(); }
  if (blockSize >= 8) { v += data[tid + 4]; __syncwarp(); data[tid] = v; __syncwarp(); }
  if (blockSize >= 4) { v += data[tid + 2]; __syncwarp(); data[tid] = v; __syncwarp(); }
  if (blockSize >= 2) { v += data[tid + 1]; __syncwarp(); data[tid] = v; __syncwarp(); }
}

template <unsigned blockSize>
__global__ void unrolled(const int *in, int *out, int n) {
  __shared__ int data[blockSize < 64 ? 64 : blockSize];
  unsigned tid = threadIdx.x;
  int sum = 0;
  for (unsigned i = blockIdx.x * blockSize + tid; i < n; i += blockSize * gridDim.x) sum += in[i];
  data[tid] = sum;
  __syncthreads();
  if (blockSize >= 512) { if (tid < 256) data[tid] += data[tid + 256]; __syncthreads(); }
  if (blockSize >= 256) { if (tid < 128) data[tid] += data[tid + 128]; __syncthreads(); }
  if (blockSize >= 128) { if (tid < 64) data[tid] += data[tid + 64]; __syncthreads(); }
  if (tid < 32) warp_reduce<blockSize>(data, tid);
  if (tid == 0) out[blockIdx.x] = data[0];
}

__global__ void shuffles(const int *in, int *out, int n) {
  __shared__ int partial[32];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += in[i];
  for (int d = warpSize / 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
  if (threadIdx.x % warpSize == 0) partial[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x < warpSize) {
    sum = threadIdx.x < blockDim.x / warpSize ? partial[threadIdx.x] : 0;
    for (int d = warpSize / 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}

__global__ void one_atomic_a_warp(const int4 *in, int *out, int quads) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += blockDim.x * gridDim.x) {
    int4 v = in[i];
    sum += v.x + v.y + v.z + v.w;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, sum);
}

int main() {
  const int n = 100000;  // a multiple of 4, not of anything larger
  std::vector<int> h(n);
  long long want = 0;
  for (int i = 0; i < n; i++) want += h[i] = (i * 2654435761u >> 20) - 2048;
  int *in, *out;
  CUDA(cudaMalloc(&in, n * sizeof(int)));
  CUDA(cudaMalloc(&out, 1024 * sizeof(int)));
  CUDA(cudaMemcpy(in, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  auto check = [&](const char *name, int blocks) {
    CUDA(cudaGetLastError());
    std::vector<int> parts(blocks);
    CUDA(cudaMemcpy(parts.data(), out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
    long long sum = 0;
    for (int p : parts) sum += p;
    if (sum != want) {
      std::printf("FAIL %s: %lld, not %lld\n", name, sum, want);
      std::exit(1);
    }
  };
  interleaved<<<391, 256, 256 * sizeof(int)>>>(in, out, n);
  check("interleaved", 391);
  sequential<<<782, 128, 128 * sizeof(int)>>>(in, out, n);
  check("sequential", 782);
  first_add_during_load<<<98, 512, 512 * sizeof(int)>>>(in, out, n);
  check("first_add_during_load", 98);
  unrolled<512><<<16, 512>>>(in, out, n);
  check("unrolled<512>", 16);
  unrolled<64><<<40, 64>>>(in, out, n);
  check("unrolled<64>", 40);
  unrolled<32><<<7, 32>>>(in, out, n);
  check("unrolled<32>", 7);
  shuffles<<<10, 1024>>>(in, out, n);
  check("shuffles", 10);
  CUDA(cudaMemset(out, 0, sizeof(int)));
  one_atomic_a_warp<<<20, 192>>>(reinterpret_cast<const int4 *>(in), out, n / 4);
  check("one_atomic_a_warp", 1);
  CUDA(cudaFree(in));
  CUDA(cudaFree(out));
  std::printf("PASS: six sums of %lld\n", want);
}
