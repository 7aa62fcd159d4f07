// What the examples share: checking calls, device arrays that free themselves, reporting.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Every call to the CUDA runtime can fail, and a kernel's failure is reported by a later call: check them all.
#define CHECK(call)                                                                        \
  do {                                                                                     \
    cudaError_t status_ = (call);                                                          \
    if (status_ != cudaSuccess) {                                                          \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

// After a launch: was the launch itself all right, and did the kernel run through?
#define CHECK_KERNEL()              \
  do {                              \
    CHECK(cudaGetLastError());      \
    CHECK(cudaDeviceSynchronize()); \
  } while (0)

// An array in the GPU's memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) { CHECK(cudaMalloc(&data_, size * sizeof(T))); }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    CHECK(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  void clear() { CHECK(cudaMemset(data_, 0, size_ * sizeof(T))); }
  std::vector<T> to_host() const {
    std::vector<T> host(size_);
    CHECK(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// The n-th argument of the program as a positive number, or what to take without it.
inline int argument(int argc, char** argv, int n, int otherwise) {
  if (argc <= n) return otherwise;
  int value = std::atoi(argv[n]);
  if (value < 1) {
    std::fprintf(stderr, "argument %d must be a positive number, not %s\n", n, argv[n]);
    std::exit(2);
  }
  return value;
}

// How many blocks of `size` cover `n` elements.
inline int blocks_for(int n, int size) { return (n + size - 1) / size; }

// Numbers that look random and are the same everywhere.
inline unsigned scramble(unsigned i) {
  i = (i ^ 61u) ^ (i >> 16);
  i *= 9u;
  i ^= i >> 4;
  i *= 0x27d4eb2du;
  return i ^ (i >> 15);
}
