// Whole numbers of many words: multiplication with carries, powers modulo n by Montgomery, Fibonacci numbers of 4096 bits by
// one block, and unsigned __int128.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define FAIL(...) do { std::printf("FAIL: " __VA_ARGS__); std::puts(""); std::exit(1); } while (0)

typedef unsigned __int128 u128;

__host__ __device__ uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1 % modulus;
  for (base %= modulus; exponent; exponent >>= 1) {
    if (exponent & 1) result = static_cast<uint64_t>(u128(result) * base % modulus);
    base = static_cast<uint64_t>(u128(base) * base % modulus);
  }
  return result;
}

// The same with Montgomery's reduction, without any division.
struct Montgomery {
  uint64_t n, inverse, square;  // -1/n modulo 2^64; 2^128 modulo n
  __host__ __device__ explicit Montgomery(uint64_t n) : n(n) {
    uint64_t x = 1;
    for (int i = 0; i < 6; ++i) x *= 2 - n * x;
    inverse = -x;
    uint64_t r = 1 % n;
    for (int i = 0; i < 128; ++i) r = r >= n - r ? r - (n - r) : 2 * r;
    square = r;
  }
  __device__ uint64_t multiply(uint64_t a, uint64_t b) const {
    uint64_t low = a * b, high = __umul64hi(a, b), m = low * inverse, t = __umul64hi(m, n);
    uint64_t sum = high + t, carry = sum < high;
    if (low) {
      ++sum;
      if (sum == 0) carry = 1;
    }
    return carry || sum >= n ? sum - n : sum;
  }
  __device__ uint64_t power(uint64_t base, uint64_t exponent) const {
    uint64_t b = multiply(base % n, square), r = multiply(1, square);
    for (; exponent; exponent >>= 1) {
      if (exponent & 1) r = multiply(r, b);
      b = multiply(b, b);
    }
    return multiply(r, 1);
  }
};

__global__ void is_prime(const uint64_t* numbers, bool* plain, bool* fast, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint64_t n = numbers[i], d = (n - 1) >> (__ffsll(n - 1) - 1);
  Montgomery m(n);
  bool prime[2] = {true, true};
  for (uint64_t witness : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37})
    for (int method = 0; method < 2; ++method) {
      uint64_t x = method ? m.power(witness, d) : power(witness, d, n);
      bool composite = x != 1;
      for (uint64_t e = d; composite && e < n - 1; e *= 2) {
        if (x == n - 1) composite = false;
        x = static_cast<uint64_t>(u128(x) * x % n);
      }
      if (composite && witness % n) prime[method] = false;
    }
  plain[i] = prime[0], fast[i] = prime[1];
}

// Thread i owns word i; carries travel by ballots: a word that is full passes on what comes in.
constexpr int kWords = 128;
__global__ void fibonacci(uint32_t* out, int n) {
  __shared__ unsigned generates[kWords / 32], propagates[kWords / 32], carry_in[kWords / 32];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  uint32_t a = 0, b = t == 0;
  for (int i = 0; i < n; ++i) {
    uint32_t s = a + b;
    unsigned g = __ballot_sync(~0u, s < a), p = __ballot_sync(~0u, s == ~0u);
    if (lane == 0) generates[warp] = g, propagates[warp] = p;
    __syncthreads();
    if (t == 0) {
      unsigned carry = 0;
      for (int w = 0; w < kWords / 32; ++w) {
        // Adding the masks as numbers lets the carries run.
        uint64_t sum = uint64_t(generates[w] | propagates[w]) + generates[w] + carry;
        carry_in[w] = static_cast<uint32_t>(sum ^ (generates[w] | propagates[w]) ^ generates[w]);
        carry = sum >> 32;
      }
    }
    __syncthreads();
    s += carry_in[warp] >> lane & 1;
    a = b, b = s;
    __syncthreads();
  }
  out[t] = a;
}

__global__ void multiply(const uint32_t* a, const uint32_t* b, uint32_t* product, int words) {  // one thread, schoolbook
  for (int i = 0; i < 2 * words; ++i) product[i] = 0;
  for (int i = 0; i < words; ++i) {
    uint32_t carry = 0;
    for (int j = 0; j < words; ++j) {
      uint64_t t = uint64_t(a[i]) * b[j] + product[i + j] + carry;
      product[i + j] = static_cast<uint32_t>(t);
      carry = t >> 32;
    }
    product[i + words] = carry;
  }
}

std::string decimal(std::vector<uint32_t> n) {
  std::string digits;
  while (!n.empty()) {
    uint64_t rest = 0;
    for (size_t i = n.size(); i--;) {
      rest = rest << 32 | n[i];
      n[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
    digits.insert(digits.begin(), char('0' + rest));
    while (!n.empty() && n.back() == 0) n.pop_back();
  }
  return digits;
}

const char* const kThousandth =
    "43466557686937456435688527675040625802564660517371780402481729089536555417949051890403879840079255169295922593080322"
    "634775209689623239873322471161642996440906533187938298969649928516003704476137795166849228875";

int main() {
  std::vector<uint64_t> numbers;
  std::vector<char> truth;
  for (uint64_t n = 3; n < 400; n += 2) {
    bool prime = true;
    for (uint64_t d = 3; d * d <= n; d += 2) prime &= n % d != 0;
    numbers.push_back(n), truth.push_back(prime);
  }
  numbers.push_back(18446744073709551557ull), truth.push_back(true);  // the largest below 2^64
  numbers.push_back(18446744073709551533ull), truth.push_back(true);
  numbers.push_back(18446744073709551555ull), truth.push_back(false);
  numbers.push_back(4294967291ull * 4294967279ull), truth.push_back(false);
  numbers.push_back(3215031751ull), truth.push_back(false);  // passes for 2, 3, 5 and 7
  const int count = numbers.size();
  uint64_t* d_numbers;
  bool* d_prime;
  std::vector<char> got(2 * count);
  cudaMalloc(&d_numbers, count * 8);
  cudaMalloc(&d_prime, 2 * count);
  cudaMemcpy(d_numbers, numbers.data(), count * 8, cudaMemcpyHostToDevice);
  is_prime<<<(count + 63) / 64, 64>>>(d_numbers, d_prime, d_prime + count, count);
  cudaMemcpy(got.data(), d_prime, 2 * count, cudaMemcpyDeviceToHost);
  for (int i = 0; i < count; ++i)
    if (got[i] != truth[i] || got[count + i] != truth[i]) FAIL("%llu: %d %d", (unsigned long long)numbers[i], got[i], got[count + i]);

  uint32_t* d_words;
  std::vector<uint32_t> f(kWords), g(kWords), product(2 * kWords);
  cudaMalloc(&d_words, 4 * kWords * 4);
  fibonacci<<<1, kWords>>>(d_words, 1000);
  fibonacci<<<1, kWords>>>(d_words + kWords, 999);
  cudaMemcpy(f.data(), d_words, kWords * 4, cudaMemcpyDeviceToHost);
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  auto trimmed = [](std::vector<uint32_t> v) {
    while (!v.empty() && v.back() == 0) v.pop_back();
    return v;
  };
  std::string shown = decimal(trimmed(f));
  if (shown != kThousandth) FAIL("F(1000) = %s", shown.c_str());
  // F(1999) = F(1000)^2 + F(999)^2
  cudaMemcpy(g.data(), d_words + kWords, kWords * 4, cudaMemcpyDeviceToHost);
  std::vector<uint32_t> sum(2 * kWords);
  uint64_t carry = 0;
  for (int k = 0; k < 2; ++k) {
    multiply<<<1, 1>>>(d_words + k * kWords, d_words + k * kWords, d_words + 2 * kWords, kWords);
    cudaMemcpy(product.data(), d_words + 2 * kWords, 2 * kWords * 4, cudaMemcpyDeviceToHost);
    carry = 0;
    for (int i = 0; i < 2 * kWords; ++i) {
      carry += uint64_t(sum[i]) + product[i];
      sum[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  fibonacci<<<1, kWords>>>(d_words, 1999);
  cudaMemcpy(f.data(), d_words, kWords * 4, cudaMemcpyDeviceToHost);
  if (trimmed(f) != trimmed(sum)) FAIL("F(1999)");
  std::puts("PASS");
}
