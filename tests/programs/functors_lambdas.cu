// options: -std=c++17 -extended-lambda
// Functors and lambdas passed to kernels: captures by value, generic and mutable lambdas, composition, a small map/filter/
// reduce of our own.
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#define CUDA(x) do { if (cudaError_t e = (x)) { std::printf("FAIL: %s in line %d\n", cudaGetErrorString(e), __LINE__); std::exit(1); } } while (0)

template <class T> class Array {
 public:
  explicit Array(int n) : n_(n) { CUDA(cudaMalloc(&p_, n * sizeof(T))); }
  ~Array() { cudaFree(p_); }
  Array(const Array&) = delete;
  T* begin() const { return p_; }
  int size() const { return n_; }
  std::vector<T> host() const {
    std::vector<T> v(n_);
    CUDA(cudaMemcpy(v.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  T* p_ = nullptr;
  int n_;
};

template <class F> __global__ void for_each_kernel(int n, F f) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) f(i);
}
template <class F> void parallel_for(int n, F f) {
  for_each_kernel<<<(n + 127) / 128, 128>>>(n, f);
  CUDA(cudaGetLastError());
}

template <class T, class F> __global__ void reduce_kernel(const T* in, int n, T start, F f, T* out) {
  __shared__ T s[256];
  T mine = start;
  for (int i = threadIdx.x; i < n; i += 256) mine = f(mine, in[i]);
  s[threadIdx.x] = mine;
  for (int d = 128; d; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) s[threadIdx.x] = f(s[threadIdx.x], s[threadIdx.x + d]);
  }
  if (threadIdx.x == 0) *out = s[0];
}
template <class T, class F> T reduce(const Array<T>& a, T start, F f) {
  Array<T> out(1);
  reduce_kernel<<<1, 256>>>(a.begin(), a.size(), start, f, out.begin());
  return out.host()[0];
}

template <class F, class G> struct Composed {
  F f;
  G g;
  template <class... A> __host__ __device__ auto operator()(A... a) const { return f(g(a...)); }
};
template <class F, class G> Composed<F, G> compose(F f, G g) { return {f, g}; }

struct Affine {
  int a, b;
  __host__ __device__ int operator()(int x) const { return a * x + b; }
};

class Accumulator {
 public:
  explicit Accumulator(int* total) : total_(total) {}
  void run(int n) {
    int* total = total_;
    const int weight = weight_;
    parallel_for(n, [=] __device__(int i) { atomicAdd(total, i * weight); });
  }

 private:
  int* total_;
  int weight_ = 3;
};

int main() {
  const int n = 1000;
  Array<int> a(n), b(n), counts(4);
  parallel_for(n, [p = a.begin()] __device__(int i) { p[i] = i * 7 % 1000; });

  auto f = compose(Affine{3, 1}, Affine{-1, 5});  // 3 (5 - x) + 1
  parallel_for(n, [=, from = a.begin(), to = b.begin()] __device__(int i) { to[i] = f(from[i]); });
  auto hb = b.host();
  for (int i = 0; i < n; ++i)
    if (hb[i] != 16 - 3 * (i * 7 % 1000) || hb[i] != f(i * 7 % 1000)) return std::printf("FAIL: element %d\n", i), 1;

  int sum = reduce(a, 0, [] __device__(int x, int y) { return x + y; });
  int largest = reduce(a, -1, [] __device__(int x, int y) { return x > y ? x : y; });
  if (sum != 999 * 500 || largest != 999) return std::printf("FAIL: sum %d, largest %d\n", sum, largest), 1;

  // A generic lambda, used for two types; the same lambda on the host and the device.
  auto square = [] __host__ __device__(double x) { return x * x; };
  Array<double> d(n);
  Array<float> e(n);
  parallel_for(n, [=, d = d.begin(), e = e.begin()] __device__(int i) {
    auto half = [](auto x) {
      if constexpr (std::is_same_v<decltype(x), float>) return x * 0.5f;
      else return x / 2;
    };
    d[i] = half(square(i)), e[i] = half(float(i));
  });
  if (d.host()[31] != square(31) / 2 || e.host()[31] != 15.5f) return std::puts("FAIL: generic lambda"), 1;

  // Filter: positions from an atomic counter.
  CUDA(cudaMemset(counts.begin(), 0, 4 * sizeof(int)));
  const int limit = 250;
  parallel_for(n, [=, in = a.begin(), out = b.begin(), count = counts.begin()] __device__(int i) {
    if (in[i] < limit) out[atomicAdd(count, 1)] = in[i];
  });
  if (counts.host()[0] != limit) return std::puts("FAIL: filter"), 1;
  Accumulator(counts.begin() + 1).run(100);
  if (counts.host()[1] != 3 * 4950) return std::puts("FAIL: member"), 1;
  std::puts("PASS");
}
