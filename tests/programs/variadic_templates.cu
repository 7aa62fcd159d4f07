// options: -std=c++17 -expt-relaxed-constexpr
// Templates of many kinds in device code: packs and folds, if constexpr, a tuple, an expression-template vector, a
// compile-time table, CRTP, policies, concepts by SFINAE, static polymorphism over a list of kernels.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

template <class... T> __host__ __device__ constexpr auto sum(T... t) { return (t + ... + 0); }
template <class... T> __host__ __device__ constexpr bool all(T... t) { return (t && ...); }

// A tuple by inheritance.
template <size_t I, class T> struct Leaf { T value; };
template <class Indices, class... T> struct TupleBase;
template <size_t... I, class... T> struct TupleBase<std::index_sequence<I...>, T...> : Leaf<I, T>... {
  __host__ __device__ constexpr TupleBase(T... t) : Leaf<I, T>{t}... {}
};
template <class... T> struct Tuple : TupleBase<std::index_sequence_for<T...>, T...> {
  using TupleBase<std::index_sequence_for<T...>, T...>::TupleBase;
};
template <class... T> Tuple(T...) -> Tuple<T...>;
template <size_t I, class T> __host__ __device__ constexpr T& get(Leaf<I, T>& leaf) { return leaf.value; }
template <class F, class... T, size_t... I> __device__ auto apply_impl(F f, Tuple<T...>& t, std::index_sequence<I...>) { return f(get<I>(t)...); }
template <class F, class... T> __device__ auto apply(F f, Tuple<T...> t) { return apply_impl(f, t, std::index_sequence_for<T...>()); }

// Tables that the compiler makes.
__constant__ constexpr std::array<int, 64> squares = [] {
  std::array<int, 64> t{};
  for (int i = 0; i < 64; ++i) t[i] = i * i;
  return t;
}();
template <int N> struct Binomials {
  int row[N + 1];
  constexpr Binomials() : row() {
    row[0] = 1;
    for (int n = 1; n <= N; ++n)
      for (int k = n; k > 0; --k) row[k] += row[k - 1];
  }
};
__constant__ constexpr Binomials<10> binomials;

// Expression templates: a * x + b in one loop.
template <class E> struct Expression {
  __host__ __device__ const E& self() const { return static_cast<const E&>(*this); }
};
template <int N> struct Vec : Expression<Vec<N>> {
  float v[N];
  __device__ float operator[](int i) const { return v[i]; }
  template <class E> __device__ Vec& operator=(const Expression<E>& e) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = e.self()[i];
    return *this;
  }
};
template <class A, class B> struct Sum : Expression<Sum<A, B>> {
  A a;
  B b;
  __device__ Sum(A a, B b) : a(a), b(b) {}
  __device__ float operator[](int i) const { return a[i] + b[i]; }
};
template <class A> struct Scaled : Expression<Scaled<A>> {
  A a;
  float s;
  __device__ Scaled(A a, float s) : a(a), s(s) {}
  __device__ float operator[](int i) const { return s * a[i]; }
};
template <class A, class B> __device__ Sum<A, B> operator+(const Expression<A>& a, const Expression<B>& b) { return {a.self(), b.self()}; }
template <class A> __device__ Scaled<A> operator*(float s, const Expression<A>& a) { return {a.self(), s}; }

// CRTP.
template <class Derived> struct Counter {
  __device__ int count() { return static_cast<Derived*>(this)->step() + static_cast<Derived*>(this)->step(); }
};
struct Twos : Counter<Twos> {
  int n = 0;
  __device__ int step() { return n += 2; }
};

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> __device__ int kind(T) { return 1; }
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0> __device__ int kind(T) { return 2; }
template <class T> __device__ int kind(T*) { return 3; }
template <class T> __device__ int size_class() {
  if constexpr (sizeof(T) == 8) return 64;
  else if constexpr (std::is_same_v<T, short>) return 16;
  else return 0;
}

template <class... Ints> __global__ void everything(int* out, Ints... ints) {
  int i = threadIdx.x, k = 0;
  auto put = [&](int v) { out[16 * i + k++] = v; };
  put(sum(ints...) + i);
  put(all(ints > 0 ...));
  put(sizeof...(Ints));
  put(apply([](int a, double b, char c) { return static_cast<int>(a * b) + c; }, Tuple(i, 2.5, 'a')));
  put(squares[i]);
  put(binomials.row[i % 11]);
  Vec<4> x, y, z;
  for (int j = 0; j < 4; ++j) x.v[j] = i + j, y.v[j] = j;
  z = 2.0f * x + y + 0.5f * (x + y);
  put(static_cast<int>(z[3] * 10));
  put(Twos().count());
  put(kind(i) * 1000 + kind(1.0f) * 100 + kind(out) * 10 + kind('c'));
  put(size_class<double>() + size_class<short>() + size_class<char>());
  auto [a, b] = std::pair{i * 2, i * 3};
  put(a + b);
  static_assert(sum(1, 2, 3) == 6 && sum() == 0);
}

template <int N> __global__ void power_of(int* out) { out[N] = 1 << N; }
template <int... N> void launch_all(int* out, std::integer_sequence<int, N...>) { (power_of<N><<<1, 1>>>(out), ...); }

int main() {
  const int threads = 20;
  int *d, h[16 * threads];
  cudaMalloc(&d, sizeof h);
  everything<<<1, threads>>>(d, 5, 10L, short(20), 'A');
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  const int choose[11] = {1, 10, 45, 120, 210, 252, 210, 120, 45, 10, 1};
  for (int i = 0; i < threads; ++i) {
    const int want[] = {100 + i, 1, 4, static_cast<int>(i * 2.5) + 97, i * i, choose[i % 11], static_cast<int>((2 * (i + 3) + 3 + 0.5f * (i + 6)) * 10), 6, 1231, 80, 5 * i};
    for (int k = 0; k < 11; ++k)
      if (h[16 * i + k] != want[k]) return std::printf("FAIL: thread %d, value %d: %d, not %d\n", i, k, h[16 * i + k], want[k]), 1;
  }
  launch_all(d, std::make_integer_sequence<int, 8>());
  cudaMemcpy(h, d, 8 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 8; ++i)
    if (h[i] != 1 << i) return std::printf("FAIL: power %d\n", i), 1;
  if (cudaGetLastError()) return 1;
  std::puts("PASS");
}
