// Graphs from captured streams and node by node: what they do, and when.
#include <cstdio>
#include <thread>

#include <cuda_runtime.h>

#include "check.h"

__global__ void add(int* p, int n, int v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += v;
}
__global__ void square(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= p[i];
}
__constant__ int offset;
__global__ void add_offset(int* p) { p[threadIdx.x] += offset; }

static void count(void* data) { ++*static_cast<int*>(data); }

static int first(const int* device) {
  int v;
  CHECK(cudaMemcpy(&v, device, sizeof v, cudaMemcpyDeviceToHost));
  return v;
}

static void captured() {
  const int n = 100;
  int *d, *temporary, h[n], calls = 0;
  cudaStream_t s;
  CHECK(cudaMalloc(&d, sizeof h));
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int i = 0; i < n; ++i) h[i] = i;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(d, h, sizeof h, cudaMemcpyHostToDevice, s));
  add<<<2, 64, 0, s>>>(d, n, 1);
  CHECK(cudaMallocAsync(&temporary, sizeof h, s));
  CHECK(cudaMemsetAsync(temporary, 0, sizeof h, s));
  CHECK(cudaFreeAsync(temporary, s));
  int three = 3;
  CHECK(cudaMemcpyToSymbolAsync(offset, &three, sizeof three, 0, cudaMemcpyHostToDevice, s));
  add_offset<<<1, n, 0, s>>>(d);
  CHECK(cudaLaunchHostFunc(s, count, &calls));
  CHECK(cudaMemcpyAsync(h, d, sizeof h, cudaMemcpyDeviceToHost, s));
  // A stream that does not wait for others, so the legacy one may be used; and another thread allocate.
  CHECK(cudaMemset(d, 0, sizeof h));
  std::thread([] {
    void* p;
    CHECK(cudaMalloc(&p, 16));
    CHECK(cudaFree(p));
  }).join();
  cudaGraph_t g;
  CHECK(cudaStreamEndCapture(s, &g));
  cudaGraphExec_t x;
  CHECK(cudaGraphInstantiate(&x, g, 0));
  size_t nodes = 0, roots = 0, edges = 0;
  CHECK(cudaGraphGetNodes(g, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(g, nullptr, &roots));
  CHECK(cudaGraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
  printf("captured: %zu nodes, %zu root, %zu edges; before %d %d\n", nodes, roots, edges, h[7], calls);
  for (int i = 0; i < 5; ++i) CHECK(cudaGraphLaunch(x, s));  // each starts with what the last one brought back
  CHECK(cudaStreamSynchronize(s));
  printf("captured: %d %d, %d calls\n", h[0], h[99], calls);
  CHECK(cudaGraphExecDestroy(x));
  CHECK(cudaGraphDestroy(g));
  CHECK(cudaStreamDestroy(s));
}

static void updated() {
  int* d;
  cudaStream_t s;
  CHECK(cudaMalloc(&d, 4));
  CHECK(cudaMemset(d, 0, 4));
  CHECK(cudaStreamCreate(&s));
  cudaGraphExec_t x = nullptr;
  for (int step = 1; step <= 3; ++step) {
    cudaGraph_t g;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, s>>>(d, 1, step);
    if (step < 3) square<<<1, 1, 0, s>>>(d, 1);
    CHECK(cudaStreamEndCapture(s, &g));
    cudaGraphExecUpdateResultInfo info;
    if (x) {
      cudaError_t e = cudaGraphExecUpdate(x, g, &info);
      printf("update: %s %d\n", cudaGetErrorName(e), info.result);
    } else {
      CHECK(cudaGraphInstantiate(&x, g, 0));
    }
    CHECK(cudaGraphLaunch(x, s));
    CHECK(cudaGraphDestroy(g));
  }
  CHECK(cudaStreamSynchronize(s));
  printf("updated: %d\n", first(d));  // 1, (1+2)^2, (9+2)^2
  (void)cudaGetLastError();
}

static void by_hand() {
  int *d, h[4] = {}, n = 4, v = 5, calls = 0;
  CHECK(cudaMalloc(&d, sizeof h));
  cudaGraph_t g, child, clone;
  CHECK(cudaGraphCreate(&g, 0));
  cudaGraphNode_t fill, plus, back, tell, sub, nothing;
  cudaMemsetParams m = {d, 0, 10, 4, 4, 1};
  CHECK(cudaGraphAddMemsetNode(&fill, g, nullptr, 0, &m));
  void* args[] = {&d, &n, &v};
  cudaKernelNodeParams k = {};
  k.func = (void*)add;
  k.gridDim = k.blockDim = dim3(4);
  k.kernelParams = args;
  // Added before what it depends on: only the edges count.
  CHECK(cudaGraphAddMemcpyNode1D(&back, g, nullptr, 0, h, d, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddKernelNode(&plus, g, &fill, 1, &k));
  v = 1000;  // the arguments were taken
  CHECK(cudaGraphCreate(&child, 0));
  k.func = (void*)square;
  cudaGraphNode_t inner;
  CHECK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &k));
  CHECK(cudaGraphAddChildGraphNode(&sub, g, &plus, 1, child));
  cudaHostNodeParams call = {count, &calls};
  CHECK(cudaGraphAddHostNode(&tell, g, &back, 1, &call));
  CHECK(cudaGraphAddEmptyNode(&nothing, g, &tell, 1));
  CHECK(cudaGraphAddDependencies(g, &sub, &back, nullptr, 1));
  CHECK(cudaGraphClone(&clone, g));
  cudaGraphExec_t x, y;
  CHECK(cudaGraphInstantiate(&x, g, 0));
  CHECK(cudaGraphLaunch(x, 0));
  CHECK(cudaDeviceSynchronize());
  printf("by hand: %d %d, %d call\n", h[0], h[3], calls);
  // In the executable graph alone.
  v = -9;
  k.func = (void*)add;
  CHECK(cudaGraphExecKernelNodeSetParams(x, plus, &k));
  CHECK(cudaGraphLaunch(x, 0));
  CHECK(cudaDeviceSynchronize());
  printf("other arguments: %d\n", h[2]);
  CHECK(cudaGraphNodeSetEnabled(x, plus, 0));
  CHECK(cudaGraphLaunch(x, 0));
  CHECK(cudaDeviceSynchronize());
  printf("without the sum: %d\n", h[2]);
  CHECK(cudaGraphInstantiate(&y, clone, 0));
  CHECK(cudaGraphLaunch(y, 0));
  CHECK(cudaDeviceSynchronize());
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(sub, &type));
  cudaKernelNodeParams got;
  CHECK(cudaGraphKernelNodeGetParams(plus, &got));
  printf("clone: %d, type %d, argument %d of %d threads\n", h[2], type, *(int*)got.kernelParams[2], got.blockDim.x);
  // A circle cannot be launched; nor are there nodes of nowhere.
  CHECK(cudaGraphAddDependencies(g, &tell, &fill, nullptr, 1));
  printf("circle: %s\n", cudaGetErrorName(cudaGraphInstantiate(&y, g, 0)));
  CHECK(cudaGraphDestroyNode(fill));
  printf("destroyed: %s\n", cudaGetErrorName(cudaGraphDestroyNode(fill)));
  (void)cudaGetLastError();
}

static void mistakes() {
  cudaStream_t a, b, c;
  cudaEvent_t e, before;
  int* d;
  CHECK(cudaMalloc(&d, 4));
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaStreamCreate(&c));
  CHECK(cudaEventCreate(&e));
  CHECK(cudaEventCreate(&before));
  CHECK(cudaEventRecord(before, c));
  cudaGraph_t g;
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(e, a));
  CHECK(cudaStreamWaitEvent(b, e));
  add<<<1, 1, 0, b>>>(d, 1, 1);
  printf("not joined: %s\n", cudaGetErrorName(cudaStreamEndCapture(a, &g)));
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  printf("from outside: %s\n", cudaGetErrorName(cudaStreamWaitEvent(a, before)));
  printf("then: %s\n", cudaGetErrorName(cudaStreamEndCapture(a, &g)));
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(e, a));
  printf("two at once: %s\n", cudaGetErrorName(cudaStreamWaitEvent(b, e)));
  (void)cudaStreamEndCapture(a, &g);
  (void)cudaStreamEndCapture(b, &g);
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  std::thread([&] { printf("other thread: %s\n", cudaGetErrorName(cudaStreamEndCapture(a, &g))); }).join();
  (void)cudaStreamEndCapture(a, &g);
  (void)cudaGetLastError();
  CHECK(cudaMemset(d, 0, 4));
  add<<<1, 1, 0, a>>>(d, 1, 7);
  printf("after all that: %d\n", first(d));
}

int main() {
  captured();
  updated();
  by_hand();
  mistakes();
}
// output:
// captured: 9 nodes, 1 root, 8 edges; before 7 0
// captured: 20 119, 5 calls
// update: cudaSuccess 0
// update: cudaErrorGraphExecUpdateFailure 2
// updated: 121
// by hand: 225 225, 1 call
// other arguments: 1
// without the sum: 100
// clone: 225, type 4, argument 5 of 4 threads
// circle: cudaErrorInvalidValue
// destroyed: cudaErrorInvalidValue
// not joined: cudaErrorStreamCaptureUnjoined
// from outside: cudaErrorStreamCaptureIsolation
// then: cudaErrorStreamCaptureInvalidated
// two at once: cudaErrorStreamCaptureMerge
// other thread: cudaErrorStreamCaptureWrongThread
// after all that: 7
