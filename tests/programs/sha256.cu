// SHA-256: many messages at once, and a small proof-of-work search that stops when a nonce is found.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#define K_LIST                                                                                                        \
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,         \
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,         \
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,         \
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,         \
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,         \
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,         \
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2

__constant__ uint32_t k_device[64] = {K_LIST};
#ifndef __CUDA_ARCH__
static const uint32_t k_host[64] = {K_LIST};
#endif

__host__ __device__ inline uint32_t rotate(uint32_t x, int n) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(x, x, n);
#else
  return x >> n | x << (32 - n);
#endif
}

__host__ __device__ void compress(uint32_t h[8], const uint8_t block[64]) {
#ifdef __CUDA_ARCH__
  const uint32_t* k = k_device;
#else
  const uint32_t* k = k_host;
#endif
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(block[4 * i]) << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], hh = h[7];
  for (int i = 0; i < 64; ++i) {
    uint32_t t1 = hh + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    hh = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += hh;
}

struct Digest { uint32_t h[8]; };

__host__ __device__ Digest sha256(const uint8_t* message, uint32_t length) {
  Digest d = {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
  uint8_t block[64];
  for (uint32_t at = 0, done = 0; !done; at += 64) {
    for (uint32_t i = 0; i < 64; ++i) {
      uint32_t p = at + i;
      block[i] = p < length ? message[p] : p == length ? 0x80 : 0;
    }
    if (at + 56 > length) {
      for (int i = 0; i < 8; ++i) block[56 + i] = i < 4 ? 0 : uint8_t(uint64_t{length} * 8 >> (56 - 8 * i));
      done = 1;
    }
    compress(d.h, block);
  }
  return d;
}

__global__ void hash_all(const uint8_t* bytes, const uint32_t* offsets, int n, Digest* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sha256(bytes + offsets[i], offsets[i + 1] - offsets[i]);
}

__global__ void mine(const uint8_t* prefix, int length, int zero_bits, unsigned tries, unsigned* winner) {
  uint8_t message[40];
  for (int i = 0; i < length; ++i) message[i] = prefix[i];
  for (unsigned nonce = blockIdx.x * blockDim.x + threadIdx.x; nonce < tries; nonce += gridDim.x * blockDim.x) {
    if (*static_cast<volatile unsigned*>(winner) < nonce) return;  // a smaller one is known
    for (int i = 0; i < 4; ++i) message[length + i] = nonce >> (8 * i);
    if (__clz(sha256(message, length + 4).h[0]) >= zero_bits) {
      atomicMin(winner, nonce);
      return;
    }
  }
}

int main() {
  std::vector<std::string> messages{"", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
  for (int i = 0; i < 100; ++i) messages.push_back(std::string(i * 3, char('a' + i % 26)));
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets{0};
  for (auto& m : messages) bytes.insert(bytes.end(), m.begin(), m.end()), offsets.push_back(bytes.size());
  const int n = messages.size();
  uint8_t* d_bytes;
  uint32_t* d_offsets;
  Digest* d_out;
  cudaMalloc(&d_bytes, bytes.size());
  cudaMalloc(&d_offsets, offsets.size() * 4);
  cudaMalloc(&d_out, n * sizeof(Digest));
  cudaMemcpy(d_bytes, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
  cudaMemcpy(d_offsets, offsets.data(), offsets.size() * 4, cudaMemcpyHostToDevice);
  hash_all<<<2, 64>>>(d_bytes, d_offsets, n, d_out);
  std::vector<Digest> out(n);
  if (cudaMemcpy(out.data(), d_out, n * sizeof(Digest), cudaMemcpyDeviceToHost)) return 1;
  for (int i = 0; i < 3; ++i) {
    for (uint32_t word : out[i].h) std::printf("%08x", word);
    std::puts("");
  }
  for (int i = 0; i < n; ++i) {
    Digest d = sha256(reinterpret_cast<const uint8_t*>(messages[i].data()), messages[i].size());
    if (std::memcmp(&d, &out[i], sizeof d)) return std::printf("FAIL: message %d\n", i), 1;
  }

  const char* prefix = "warp and weft ";
  unsigned *d_winner, winner = ~0u, want = 0;
  cudaMalloc(&d_winner, 4);
  cudaMemcpy(d_winner, &winner, 4, cudaMemcpyHostToDevice);
  cudaMemcpy(d_bytes, prefix, 14, cudaMemcpyHostToDevice);
  mine<<<4, 64>>>(d_bytes, 14, 9, 100000, d_winner);
  cudaMemcpy(&winner, d_winner, 4, cudaMemcpyDeviceToHost);
  for (;; ++want) {
    uint8_t m[18];
    std::memcpy(m, prefix, 14);
    for (int i = 0; i < 4; ++i) m[14 + i] = want >> (8 * i);
    if (sha256(m, 18).h[0] >> 23 == 0) break;
  }
  std::puts(winner == want ? "the smallest nonce was found" : "FAIL: nonce");
  return cudaGetLastError();
}
