// Recursion and pointers to functions on the device: quicksort, towers of Hanoi, mutual recursion, a parser of arithmetic,
// Ackermann; every thread another depth.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <vector>

__device__ void quicksort(int* v, int low, int high) {
  if (low >= high) return;
  int pivot = v[(low + high) / 2], i = low, j = high;
  while (i <= j) {
    while (v[i] < pivot) ++i;
    while (v[j] > pivot) --j;
    if (i <= j) {
      int t = v[i];
      v[i++] = v[j], v[j--] = t;
    }
  }
  quicksort(v, low, j);
  quicksort(v, i, high);
}

__device__ int hanoi(int n, int from, int to, int via) { return n == 0 ? 0 : hanoi(n - 1, from, via, to) + 1 + hanoi(n - 1, via, to, from); }

__device__ bool is_odd(unsigned n);
__device__ __noinline__ bool is_even(unsigned n) { return n == 0 || is_odd(n - 1); }
__device__ __noinline__ bool is_odd(unsigned n) { return n != 0 && is_even(n - 1); }

__device__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

// expression := term (('+' | '-') term)*; term := factor (('*' | '/') factor)*; factor := number | '(' expression ')' | '-' factor
class Parser {
 public:
  __device__ explicit Parser(const char* s) : s_(s) {}
  __device__ double expression() {
    double v = term();
    while (*s_ == '+' || *s_ == '-') v = *s_++ == '+' ? v + term() : v - term();
    return v;
  }

 private:
  __device__ double term() {
    double v = factor();
    while (*s_ == '*' || *s_ == '/') v = *s_++ == '*' ? v * factor() : v / factor();
    return v;
  }
  __device__ double factor() {
    if (*s_ == '-') return ++s_, -factor();
    if (*s_ == '(') {
      ++s_;
      double v = expression();
      ++s_;
      return v;
    }
    double v = 0;
    for (; *s_ >= '0' && *s_ <= '9'; ++s_) v = 10 * v + (*s_ - '0');
    return v;
  }
  const char* s_;
};

typedef double (*Rule)(double (*)(double), double, double, int);
__device__ double midpoint(double (*f)(double), double a, double b, int n) {
  double h = (b - a) / n, sum = 0;
  for (int i = 0; i < n; ++i) sum += f(a + (i + 0.5) * h);
  return sum * h;
}
__device__ double adaptive(double (*f)(double), double a, double b, int depth) {
  double m = (a + b) / 2, whole = (b - a) / 6 * (f(a) + 4 * f(m) + f(b));
  if (depth == 0) return whole;
  return adaptive(f, a, m, depth - 1) + adaptive(f, m, b, depth - 1);
}
__device__ double cube(double x) { return x * x * x; }
__device__ double inverse(double x) { return 1 / x; }
__device__ Rule rules[] = {midpoint, adaptive};
__device__ double (*functions[])(double) = {cube, inverse, sqrt};

__global__ void sort_rows(int* data, int n) { quicksort(data + threadIdx.x * n, 0, n - 1); }
__global__ void count(int* out) {
  int t = threadIdx.x;
  out[4 * t] = hanoi(t % 9, 0, 1, 2);
  out[4 * t + 1] = is_even(t * 3);
  out[4 * t + 2] = ackermann(t % 3, t % 4);
  out[4 * t + 3] = 0;
}
__global__ void parse(const char* text, double* out) { out[threadIdx.x] = Parser(text + 32 * threadIdx.x).expression(); }
__global__ void integrate(double* out) { out[threadIdx.x] = rules[threadIdx.x & 1](functions[threadIdx.x % 3], 1, 2, threadIdx.x & 1 ? 6 : 2000); }

#define FAIL(...) return printf("FAIL: " __VA_ARGS__), puts(""), 1

int main() {
  cudaDeviceSetLimit(cudaLimitStackSize, 16 * 1024);
  const int threads = 40, n = 33;
  std::vector<int> data(threads * n), sorted(threads * n);
  for (size_t i = 0; i < data.size(); ++i) data[i] = (i * 7919 + i / 7) % 1000;
  int* d;
  cudaMalloc(&d, data.size() * sizeof(int));
  cudaMemcpy(d, data.data(), data.size() * sizeof(int), cudaMemcpyHostToDevice);
  sort_rows<<<1, threads>>>(d, n);
  cudaMemcpy(sorted.data(), d, data.size() * sizeof(int), cudaMemcpyDeviceToHost);
  for (int t = 0; t < threads; ++t) std::sort(&data[t * n], &data[t * n] + n);
  if (sorted != data) FAIL("quicksort (%s)", cudaGetErrorString(cudaGetLastError()));

  int counts[4 * threads];
  count<<<1, threads>>>(d);
  cudaMemcpy(counts, d, sizeof counts, cudaMemcpyDeviceToHost);
  for (int t = 0; t < threads; ++t) {
    const int n4 = t % 4, a[3] = {n4 + 1, n4 + 2, 2 * n4 + 3};
    if (counts[4 * t] != (1 << t % 9) - 1) FAIL("hanoi of thread %d", t);
    if (counts[4 * t + 1] != (t % 2 == 0)) FAIL("parity of thread %d", t);
    if (counts[4 * t + 2] != a[t % 3]) FAIL("ackermann of thread %d", t);
  }

  const char* texts[] = {"1+2*3", "(1+2)*3", "-(4-6)*(7+1)/2", "((((5))))", "100/8/5-1", "2*-3", "0", "1-(2-(3-(4-5)))"};
  const double values[] = {7, 9, 8, 5, 1.5, -6, 0, 3};
  char flat[8][32] = {}, *d_text;
  double *d_values, got[8];
  for (int i = 0; i < 8; ++i) strcpy(flat[i], texts[i]);
  cudaMalloc(&d_text, sizeof flat);
  cudaMalloc(&d_values, sizeof got);
  cudaMemcpy(d_text, flat, sizeof flat, cudaMemcpyHostToDevice);
  parse<<<1, 8>>>(d_text, d_values);
  cudaMemcpy(got, d_values, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 8; ++i)
    if (got[i] != values[i]) FAIL("%s is %g", texts[i], got[i]);

  integrate<<<1, 6>>>(d_values);
  cudaMemcpy(got, d_values, sizeof got, cudaMemcpyDeviceToHost);
  const double exact[3] = {3.75, 0.69314718055994531, 1.2189514164974602};
  for (int i = 0; i < 6; ++i)
    if (got[i] - exact[i % 3] > 1e-6 || exact[i % 3] - got[i] > 1e-6) FAIL("integral %d is %.12f", i, got[i]);
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  puts("PASS");
}
