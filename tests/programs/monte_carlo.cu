// Monte Carlo: pi and a European option, with a counter-based random generator of our own (Philox 4x32) that gives the
// same numbers on the host.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct Philox {
  uint32_t key[2], counter[4];
  __host__ __device__ Philox(uint64_t seed, uint64_t stream) {
    key[0] = static_cast<uint32_t>(seed), key[1] = static_cast<uint32_t>(seed >> 32);
    counter[0] = counter[1] = 0;
    counter[2] = static_cast<uint32_t>(stream), counter[3] = static_cast<uint32_t>(stream >> 32);
  }
  __host__ __device__ uint4 next() {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      uint64_t a = uint64_t{0xD2511F53} * c0, b = uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(b);
      c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(a);
      k0 += 0x9E3779B9, k1 += 0xBB67AE85;
    }
    if (++counter[0] == 0) ++counter[1];
    uint4 out;
    out.x = c0, out.y = c1, out.z = c2, out.w = c3;
    return out;
  }
};

__global__ void first_numbers(uint4* out) { *out = Philox(0, 0).next(); }

__global__ void count_inside(int samples, unsigned long long* inside) {
  Philox random(42, blockIdx.x * blockDim.x + threadIdx.x);
  unsigned mine = 0;
  for (int i = 0; i < samples; ++i) {
    uint4 r = random.next();
    uint64_t x = r.x >> 1, y = r.y >> 1, z = r.z >> 1, w = r.w >> 1;
    mine += x * x + y * y < (1ull << 62);
    mine += z * z + w * w < (1ull << 62);
  }
  atomicAdd(inside, static_cast<unsigned long long>(mine));
}

__global__ void option(int paths, double spot, double strike, double rate, double sigma, double years, double* sums) {
  Philox random(7, blockIdx.x * blockDim.x + threadIdx.x);
  double payoff = 0, square = 0;
  for (int i = 0; i < paths; ++i) {
    uint4 r = random.next();
    double u = (r.x + 0.5) / 4294967296.0, v = r.y / 4294967296.0;
    double radius = sqrt(-2 * log(u)), s, c;
    sincospi(2 * v, &s, &c);
    for (double z : {radius * c, radius * s}) {
      double p = fmax(0.0, spot * exp((rate - sigma * sigma / 2) * years + sigma * sqrt(years) * z) - strike);
      payoff += p, square += p * p;
    }
  }
  atomicAdd(&sums[0], payoff);
  atomicAdd(&sums[1], square);
}

int main() {
  const int threads = 128, blocks = 16, samples = 40;
  uint4* d_first;
  unsigned long long* d_inside;
  double* d_sums;
  cudaMalloc(&d_first, sizeof(uint4));
  cudaMalloc(&d_inside, sizeof *d_inside);
  cudaMalloc(&d_sums, 2 * sizeof(double));
  cudaMemset(d_inside, 0, sizeof *d_inside);
  cudaMemset(d_sums, 0, 2 * sizeof(double));

  first_numbers<<<1, 1>>>(d_first);
  uint4 first;
  cudaMemcpy(&first, d_first, sizeof first, cudaMemcpyDeviceToHost);
  // The published answer for key 0 and counter 0.
  if (first.x != 0x6627e8d5 || first.y != 0xe169c58d || first.z != 0xbc57ac4c || first.w != 0x9b00dbd8) {
    std::printf("FAIL: %08x %08x %08x %08x\n", first.x, first.y, first.z, first.w);
    return 1;
  }

  count_inside<<<blocks, threads>>>(samples, d_inside);
  unsigned long long inside, want = 0;
  cudaMemcpy(&inside, d_inside, sizeof inside, cudaMemcpyDeviceToHost);
  for (int t = 0; t < blocks * threads; ++t) {
    Philox random(42, t);
    for (int i = 0; i < samples; ++i) {
      uint4 r = random.next();
      uint64_t x = r.x >> 1, y = r.y >> 1, z = r.z >> 1, w = r.w >> 1;
      want += (x * x + y * y < (1ull << 62)) + (z * z + w * w < (1ull << 62));
    }
  }
  double pi = 4.0 * inside / (2.0 * samples * blocks * threads);
  if (inside != want || std::fabs(pi - M_PI) > 0.02) return std::printf("FAIL: %llu, not %llu\n", inside, want), 1;

  const double spot = 100, strike = 105, rate = 0.03, sigma = 0.2, years = 1.5;
  option<<<blocks, threads>>>(samples, spot, strike, rate, sigma, years, d_sums);
  double sums[2], n = 2.0 * samples * blocks * threads;
  if (cudaMemcpy(sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost)) return 2;
  double price = exp(-rate * years) * sums[0] / n;
  double error = exp(-rate * years) * sqrt((sums[1] / n - sums[0] / n * (sums[0] / n)) / n);
  auto normal = [](double x) { return erfc(-x / sqrt(2.0)) / 2; };
  double d1 = (log(spot / strike) + (rate + sigma * sigma / 2) * years) / (sigma * sqrt(years)), d2 = d1 - sigma * sqrt(years);
  double exact = spot * normal(d1) - strike * exp(-rate * years) * normal(d2);
  bool good = std::fabs(price - exact) < 4 * error && error < 0.1;
  std::printf("%s: pi is about %.3f, the option costs about %.1f\n", good ? "PASS" : "FAIL", pi, price);
  return !good;
}
