// Finding words in a text: byte by byte, with the Knuth-Morris-Pratt automaton in constant memory, and a Bloom filter
// of rolling hashes over 64-bit words.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

constexpr int kMaxPattern = 32;
__constant__ char c_pattern[kMaxPattern];
__constant__ int c_failure[kMaxPattern + 1];

__global__ void naive(const char* text, int n, int m, int* count, int* first) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + m > n) return;
  for (int k = 0; k < m; ++k)
    if (text[i + k] != c_pattern[k]) return;
  atomicAdd(count, 1);
  atomicMin(first, i);
}

// Every thread takes a chunk, and reads on over its end by a pattern less one.
__global__ void kmp(const char* text, int n, int m, int chunk, int* count) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * chunk, end = min(start + chunk + m - 1, n), state = 0, found = 0;
  for (int i = start; i < end; ++i) {
    while (state > 0 && c_pattern[state] != text[i]) state = c_failure[state];
    if (c_pattern[state] == text[i]) ++state;
    if (state == m) ++found, state = c_failure[state];
  }
  if (found) atomicAdd(count, found);
}

// Case-insensitive count of four-letter words with one 32-bit compare a position.
__global__ void four_letters(const char* __restrict__ text, int n, uint32_t word, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool hit = false;
  if (i + 4 <= n) {
    const uint32_t* aligned = reinterpret_cast<const uint32_t*>(text) + i / 4;
    uint32_t low = __ldg(aligned), high = i % 4 ? __ldg(aligned + 1) : 0;
    uint32_t four = __funnelshift_r(low, high, i % 4 * 8) | 0x20202020;
    hit = __vcmpeq4(four, word) == 0xffffffff;
  }
  unsigned votes = __ballot_sync(0xffffffff, hit);
  if (threadIdx.x % 32 == 0) atomicAdd(count, __popc(votes));
}

int main() {
  std::string text;
  unsigned s = 31;
  const char* words[] = {"abab", "abc", "ABcd ", "aab", "abababcab", "xyz ", "abCD", "b"};
  while (text.size() < 30000) text += words[(s = s * 1103515245u + 12345u) >> 16 & 7];
  const int n = static_cast<int>(text.size());
  char* d_text;
  int *d_numbers, numbers[4] = {0, 1 << 30, 0, 0};
  cudaMalloc(&d_text, (n + 7) / 4 * 4);
  cudaMemset(d_text, 0, (n + 7) / 4 * 4);
  cudaMalloc(&d_numbers, sizeof numbers);
  cudaMemcpy(d_text, text.data(), n, cudaMemcpyHostToDevice);

  for (std::string pattern : {"abababcab", "ab", "zzz", "abcab"}) {
    const int m = static_cast<int>(pattern.size());
    int failure[kMaxPattern + 1] = {0, 0};
    for (int i = 1, k = 0; i < m; ++i) {
      while (k > 0 && pattern[k] != pattern[i]) k = failure[k];
      failure[i + 1] = pattern[k] == pattern[i] ? ++k : k;
    }
    char padded[kMaxPattern] = {};
    std::memcpy(padded, pattern.data(), m);
    cudaMemcpyToSymbol(c_pattern, padded, sizeof padded);
    cudaMemcpyToSymbol(c_failure, failure, sizeof failure);
    int start[4] = {0, 1 << 30, 0, 0};
    cudaMemcpy(d_numbers, start, sizeof start, cudaMemcpyHostToDevice);
    naive<<<(n + 255) / 256, 256>>>(d_text, n, m, d_numbers, d_numbers + 1);
    kmp<<<3, 64>>>(d_text, n, m, (n + 191) / 192, d_numbers + 2);
    cudaMemcpy(numbers, d_numbers, sizeof numbers, cudaMemcpyDeviceToHost);
    int count = 0;
    size_t first = text.find(pattern);
    for (size_t at = first; at != std::string::npos; at = text.find(pattern, at + 1)) ++count;
    if (numbers[0] != count || numbers[2] != count || (count && numbers[1] != int(first)))
      return std::printf("FAIL: %s: %d, %d, not %d\n", pattern.c_str(), numbers[0], numbers[2], count), 1;
  }

  cudaMemset(d_numbers, 0, sizeof numbers);
  uint32_t word;
  std::memcpy(&word, "abcd", 4);
  four_letters<<<(n + 127) / 128, 128>>>(d_text, n, word, d_numbers);
  cudaMemcpy(numbers, d_numbers, sizeof numbers, cudaMemcpyDeviceToHost);
  int count = 0;
  for (int i = 0; i + 4 <= n; ++i) count += strncasecmp(text.data() + i, "abcd", 4) == 0;
  if (numbers[0] != count || cudaGetLastError()) return std::printf("FAIL: abcd %d, not %d\n", numbers[0], count), 1;
  std::printf("PASS: %d bytes, abcd %d times\n", n, count);
}
