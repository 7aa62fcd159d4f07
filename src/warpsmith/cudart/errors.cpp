// Errors: names, texts, and the last one of each host thread.
#include "runtime.h"

namespace cudart {
namespace {

thread_local cudaError_t last = cudaSuccess;

constexpr const char* kUnrecognized = "unrecognized error code";

}  // namespace

thread_local bool in_callback = false;

cudaError_t answer(cudaError_t e) {
  // "Not ready" is an answer, not an error.
  if (e != cudaSuccess && e != cudaErrorNotReady) last = e;
  return e;
}

}  // namespace cudart

CUDA_API cudaError_t cudaGetLastError() {
  cudaError_t e = cudart::last;
  cudart::last = cudaSuccess;
  return e;
}

CUDA_API cudaError_t cudaPeekAtLastError() { return cudart::last; }

CUDA_API const char* cudaGetErrorName(cudaError_t e) {
#define WARPSMITH_NAME(number, name, text) case number: return #name;
  switch (static_cast<int>(e)) { WARPSMITH_CUDA_ERRORS(WARPSMITH_NAME) }
#undef WARPSMITH_NAME
  return cudart::kUnrecognized;
}

CUDA_API const char* cudaGetErrorString(cudaError_t e) {
#define WARPSMITH_TEXT(number, name, text) case number: return text;
  switch (static_cast<int>(e)) { WARPSMITH_CUDA_ERRORS(WARPSMITH_TEXT) }
#undef WARPSMITH_TEXT
  return cudart::kUnrecognized;
}
