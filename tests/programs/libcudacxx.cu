// options: -std=c++17
// The C++ library for the device: cuda::std array, span, tuple, optional, complex, bit; atomics with scopes and
// orders, references to atomics, a semaphore, a latch, a spin lock by atomic_flag.
#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/atomic>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/utility>

#include <cstdio>
#include <cstdlib>

#define FAIL(...) do { std::printf("FAIL: " __VA_ARGS__); std::puts(""); std::exit(1); } while (0)

__device__ cuda::std::optional<int> find(cuda::std::span<const int> in, int what) {
  for (int i = 0; i < static_cast<int>(in.size()); ++i)
    if (in[i] == what) return i;
  return cuda::std::nullopt;
}

__global__ void values(const int* data, int n, int* out) {
  cuda::std::span<const int> all(data, n);
  cuda::std::array<int, 4> a{1, 2, 3, static_cast<int>(threadIdx.x)};
  auto [low, high] = cuda::std::make_tuple(a[0], a[3]);
  cuda::std::complex<float> z(1, threadIdx.x);
  z = z * cuda::std::conj(z);
  int* o = out + 6 * threadIdx.x;
  o[0] = find(all, threadIdx.x * 10).value_or(-1);
  o[1] = low + high + a.size();
  o[2] = static_cast<int>(z.real());
  o[3] = cuda::std::popcount(threadIdx.x) + cuda::std::countl_zero(1u);
  o[4] = cuda::std::numeric_limits<short>::max();
  int sum = 0;
  for (int x : all.subspan(2, 3)) sum += x;
  o[5] = sum;
}

struct Shared {
  cuda::atomic<int, cuda::thread_scope_device> count;
  cuda::std::atomic<long long> total;
  int plain, under_lock;
  cuda::std::atomic_flag lock;
  double most;
};

__global__ void atomics(Shared* s) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  s->count.fetch_add(1, cuda::memory_order_relaxed);
  s->total += i;
  cuda::atomic_ref<int, cuda::thread_scope_device> plain(s->plain);
  plain.fetch_max(i, cuda::memory_order_relaxed);
  cuda::atomic_ref<double, cuda::thread_scope_device> most(s->most);
  double now = most.load(cuda::memory_order_relaxed), mine = 100 - (i - 50.5) * (i - 50.5);
  while (now < mine && !most.compare_exchange_weak(now, mine)) {
  }
  while (s->lock.test_and_set(cuda::std::memory_order_acquire)) {
  }
  s->under_lock = s->under_lock + 2;
  s->lock.clear(cuda::std::memory_order_release);
}

// One block writes, another waits for the flag.
__global__ void message(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 1) {
    data[threadIdx.x] = threadIdx.x * 3;
    __syncthreads();
    if (threadIdx.x == 0) {
      ready.store(1, cuda::memory_order_release);
      ready.notify_all();
    }
  } else {
    if (threadIdx.x == 0) ready.wait(0, cuda::memory_order_acquire);
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x] + 1;
  }
}

__global__ void block_wide(int* out) {
  __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 3> semaphore;
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) unsigned char room[sizeof(Latch)];  // a latch has no default constructor
  Latch& latch = *reinterpret_cast<Latch*>(room);
  __shared__ int inside, most;
  if (threadIdx.x == 0) {
    new (&semaphore) cuda::counting_semaphore<cuda::thread_scope_block, 3>(3);
    new (room) Latch(blockDim.x);
    inside = most = 0;
  }
  __syncthreads();
  semaphore.acquire();
  atomicMax(&most, atomicAdd(&inside, 1) + 1);
  atomicSub(&inside, 1);
  semaphore.release();
  latch.arrive_and_wait();
  if (threadIdx.x == 0) out[0] = most >= 1 && most <= 3, out[1] = inside;
}

int main() {
  int h[300], *d;
  for (int i = 0; i < 20; ++i) h[i] = i * 5;
  cudaMalloc(&d, 2 * sizeof h);
  cudaMemcpy(d, h, 20 * sizeof(int), cudaMemcpyHostToDevice);
  values<<<1, 40>>>(d, 20, d + 300);
  cudaMemcpy(h, d + 300, 240 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int t = 0; t < 40; ++t) {
    const int want[6] = {t < 10 ? 2 * t : -1, 1 + t + 4, 1 + t * t, __builtin_popcount(t) + 31, 32767, 10 + 15 + 20};
    for (int k = 0; k < 6; ++k)
      if (h[6 * t + k] != want[k]) FAIL("thread %d, value %d: %d, not %d", t, k, h[6 * t + k], want[k]);
  }

  Shared* s;
  cudaMallocManaged(&s, sizeof *s);
  new (s) Shared{};
  s->most = -1e300;
  atomics<<<4, 48>>>(s);
  if (cudaError_t e = cudaDeviceSynchronize()) FAIL("%s", cudaGetErrorString(e));
  if (s->count != 192 || s->total.load() != 191 * 96 || s->plain != 191 || s->under_lock != 384 || s->most != 99.75) FAIL("atomics %d %f", s->count.load(), s->most);

  cudaMemset(d, 0, 600 * sizeof(int));
  message<<<2, 64>>>(d, d + 100, d + 200);
  cudaMemcpy(h, d + 200, 64 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; ++i)
    if (h[i] != 3 * i + 1) FAIL("message %d", i);
  block_wide<<<1, 96>>>(d);
  cudaMemcpy(h, d, 2 * sizeof(int), cudaMemcpyDeviceToHost);
  if (h[0] != 1 || h[1] != 0) FAIL("semaphore %d %d", h[0], h[1]);
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  std::puts("PASS");
}
