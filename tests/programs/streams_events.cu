// Systems: four streams over pinned memory, asynchronous copies, events that order streams and measure, callbacks.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CUDA(x) check((x), #x, __LINE__)
static void check(cudaError_t e, const char* what, int line) {
  if (e == cudaSuccess) return;
  std::printf("FAIL: line %d: %s: %s\n", line, what, cudaGetErrorName(e));
  std::exit(1);
}

__global__ void scale_add(const float* a, const float* b, float* c, int n, float factor) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = factor * a[i] + b[i];
}

__global__ void add_to(float* total, const float* part, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) total[i] += part[i];
}

struct Progress { int chunks = 0, callbacks = 0; };

void CUDART_CB chunk_done(void* p) { static_cast<Progress*>(p)->chunks++; }
void CUDART_CB stream_done(cudaStream_t, cudaError_t status, void* p) {
  if (status == cudaSuccess) static_cast<Progress*>(p)->callbacks++;
}

int main() {
  const int streams = 4, chunk = 5000, n = 10 * chunk;
  float *a, *b, *c;
  CUDA(cudaMallocHost(&a, n * sizeof(float)));
  CUDA(cudaHostAlloc(&b, n * sizeof(float), cudaHostAllocDefault));
  CUDA(cudaMallocHost(&c, n * sizeof(float)));
  for (int i = 0; i < n; ++i) a[i] = i % 100, b[i] = i % 7;

  cudaStream_t stream[streams];
  float *da[streams], *db[streams], *dc[streams];
  for (int s = 0; s < streams; ++s) {
    CUDA(cudaStreamCreateWithFlags(&stream[s], s % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    CUDA(cudaMalloc(&da[s], chunk * sizeof(float)));
    CUDA(cudaMalloc(&db[s], chunk * sizeof(float)));
    CUDA(cudaMalloc(&dc[s], chunk * sizeof(float)));
  }
  cudaEvent_t start, stop, ready;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&stop));
  CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));

  Progress progress;
  CUDA(cudaEventRecord(start));
  for (int k = 0; k * chunk < n; ++k) {
    const int s = k % streams, at = k * chunk;
    CUDA(cudaMemcpyAsync(da[s], a + at, chunk * sizeof(float), cudaMemcpyHostToDevice, stream[s]));
    CUDA(cudaMemcpyAsync(db[s], b + at, chunk * sizeof(float), cudaMemcpyHostToDevice, stream[s]));
    scale_add<<<8, 128, 0, stream[s]>>>(da[s], db[s], dc[s], chunk, 2.0f + k);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpyAsync(c + at, dc[s], chunk * sizeof(float), cudaMemcpyDeviceToHost, stream[s]));
    CUDA(cudaLaunchHostFunc(stream[s], chunk_done, &progress));
  }
  for (cudaStream_t s : stream) {
    CUDA(cudaStreamSynchronize(s));
    if (cudaStreamQuery(s) != cudaSuccess) return std::puts("FAIL: a synchronised stream is busy"), 1;
  }
  CUDA(cudaEventRecord(stop));
  CUDA(cudaEventSynchronize(stop));
  float ms = -1;
  CUDA(cudaEventElapsedTime(&ms, start, stop));
  if (!(ms > 0 && ms < 60000)) return std::printf("FAIL: %f ms\n", ms), 1;
  for (int i = 0; i < n; ++i)
    if (c[i] != (2.0f + i / chunk) * a[i] + b[i]) return std::printf("FAIL: c[%d]\n", i), 1;

  // One stream waits for what another has done.
  CUDA(cudaMemsetAsync(dc[1], 0, chunk * sizeof(float), stream[0]));
  scale_add<<<8, 128, 0, stream[0]>>>(da[0], db[0], dc[0], chunk, 1);
  CUDA(cudaEventRecord(ready, stream[0]));
  CUDA(cudaStreamWaitEvent(stream[1], ready, 0));
  for (int k = 0; k < 3; ++k) add_to<<<(chunk + 255) / 256, 256, 0, stream[1]>>>(dc[1], dc[0], chunk);
  CUDA(cudaStreamAddCallback(stream[1], stream_done, &progress, 0));
  CUDA(cudaMemcpyAsync(c, dc[1], chunk * sizeof(float), cudaMemcpyDeviceToHost, stream[1]));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaEventQuery(ready));
  for (int i = 0; i < chunk; ++i)
    if (c[i] != 3 * (a[i + 8 * chunk] + b[i + 8 * chunk])) return std::printf("FAIL: second part, c[%d] = %f\n", i, c[i]), 1;
  if (progress.chunks != 10 || progress.callbacks != 1) return std::printf("FAIL: %d chunks\n", progress.chunks), 1;
  if (cudaEventElapsedTime(&ms, start, ready) != cudaErrorInvalidResourceHandle) return std::puts("FAIL: time of an event without timing"), 1;
  cudaGetLastError();

  for (int s = 0; s < streams; ++s) {
    CUDA(cudaStreamDestroy(stream[s]));
    CUDA(cudaFree(da[s]));
    CUDA(cudaFree(db[s]));
    CUDA(cudaFree(dc[s]));
  }
  for (cudaEvent_t e : {start, stop, ready}) CUDA(cudaEventDestroy(e));
  for (float* p : {a, b, c}) CUDA(cudaFreeHost(p));
  CUDA(cudaGetLastError());
  std::printf("PASS: %d chunks in %d streams\n", progress.chunks, streams);
}
