// A graph made by capturing streams: fork and join through events, copies and host functions as nodes, many launches of one
// instance, and what capturing forbids.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { std::printf("FAIL: line %d: %s: %s\n", __LINE__, #x, cudaGetErrorName(e_)); std::exit(1); } } while (0)
#define EXPECT(x) do { if (!(x)) { std::printf("FAIL: line %d: %s\n", __LINE__, #x); std::exit(1); } } while (0)

__global__ void add(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}
__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
__global__ void combine(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] - b[i];
}

void CUDART_CB count(void* p) { ++*static_cast<int*>(p); }

int main() {
  const int n = 1000, blocks = (n + 127) / 128;
  float *host, *result, *a, *b, *c;
  OK(cudaMallocHost(&host, n * sizeof(float)));
  OK(cudaMallocHost(&result, n * sizeof(float)));
  OK(cudaMalloc(&a, n * sizeof(float)));
  OK(cudaMalloc(&b, n * sizeof(float)));
  OK(cudaMalloc(&c, n * sizeof(float)));
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaStream_t stream, side;
  cudaEvent_t fork, join;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamCreate(&side));
  OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  int runs = 0;

  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaStreamCaptureStatus status;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMemcpyAsync(a, host, n * sizeof(float), cudaMemcpyHostToDevice, stream));
  OK(cudaEventRecord(fork, stream));
  OK(cudaStreamWaitEvent(side, fork, 0));
  add<<<blocks, 128, 0, stream>>>(a, 1, n);
  OK(cudaMemsetAsync(b, 0, n * sizeof(float), side));
  add<<<blocks, 128, 0, side>>>(b, 7, n);
  OK(cudaEventRecord(join, side));
  scale<<<blocks, 128, 0, stream>>>(a, 3, n);
  OK(cudaStreamWaitEvent(stream, join, 0));
  combine<<<blocks, 128, 0, stream>>>(a, b, c, n);
  OK(cudaMemcpyAsync(result, c, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  OK(cudaLaunchHostFunc(stream, count, &runs));
  OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusNone && runs == 0);  // nothing has run yet

  size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 8);
  OK(cudaGraphInstantiate(&instance, graph, 0));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < n; ++i) host[i] = i + round, result[i] = -1;
    OK(cudaGraphLaunch(instance, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; ++i) EXPECT(result[i] == 3 * (i + round + 1) - 7);
  }
  EXPECT(runs == 5);
  OK(cudaGraphExecDestroy(instance));
  OK(cudaGraphDestroy(graph));

  // Waiting for a stream that captures spoils the capture.
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add<<<blocks, 128, 0, stream>>>(a, 1, n);
  EXPECT(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);
  cudaGetLastError();
  add<<<blocks, 128, 0, stream>>>(a, 1, n);  // and the stream works again
  OK(cudaStreamSynchronize(stream));

  for (float* p : {a, b, c}) OK(cudaFree(p));
  OK(cudaFreeHost(host));
  OK(cudaFreeHost(result));
  OK(cudaEventDestroy(fork));
  OK(cudaEventDestroy(join));
  OK(cudaStreamDestroy(side));
  OK(cudaStreamDestroy(stream));
  std::puts("PASS");
}
