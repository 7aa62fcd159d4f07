// Stream capture and graphs, as the real runtime answers; capture.h200.txt is an H200's answer.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define T(expr) printf("  %s -> %s\n", #expr, cudaGetErrorName(expr))
#define LAST() printf("    last %s\n", cudaGetErrorName(cudaGetLastError()))
#define V(expr) printf("  %s = %lld\n", #expr, (long long)(expr))

__global__ void add(int* p, int v) { *p += v; }
static void host(void* p) { *(int*)p += 100; }

int main() {
  int *d, v = 0, called = 0;
  cudaStream_t s, other;
  cudaEvent_t e;
  cudaGraph_t g = nullptr;
  cudaGraphExec_t x = nullptr;
  cudaMalloc(&d, 4);
  cudaMemset(d, 0, 4);
  cudaStreamCreate(&s);
  cudaStreamCreate(&other);
  cudaEventCreate(&e);
  T(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal)); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST();
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); LAST();
  cudaStreamCaptureStatus st;
  T(cudaStreamIsCapturing(s, &st)); V(st);
  T(cudaStreamIsCapturing(other, &st)); V(st);
  T(cudaStreamIsCapturing(0, &st)); LAST();
  add<<<1, 1, 0, s>>>(d, 1); LAST();
  T(cudaMemcpyAsync(&v, d, 4, cudaMemcpyDeviceToHost, s));
  T(cudaLaunchHostFunc(s, host, &called));
  T(cudaEventRecord(e, s));
  T(cudaStreamWaitEvent(other, e, 0));
  add<<<1, 1, 0, other>>>(d, 10); LAST();
  T(cudaEventRecord(e, other));
  T(cudaStreamWaitEvent(s, e, 0));
  T(cudaStreamEndCapture(s, &g));
  V(v); V(called);
  size_t n = 0;
  T(cudaGraphGetNodes(g, nullptr, &n)); V(n);
  T(cudaGraphInstantiate(&x, g, 0));
  T(cudaGraphLaunch(x, s)); T(cudaGraphLaunch(x, s));
  T(cudaStreamSynchronize(s));
  V(v); V(called);
  T(cudaMemcpy(&v, d, 4, cudaMemcpyDeviceToHost)); V(v);
  T(cudaGraphExecDestroy(x));
  T(cudaGraphDestroy(g));
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  T(cudaStreamSynchronize(s)); LAST();
  T(cudaStreamQuery(s)); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  T(cudaDeviceSynchronize()); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  int* q;
  T(cudaMalloc(&q, 4)); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  T(cudaMemcpy(&v, d, 4, cudaMemcpyDeviceToHost)); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  T(cudaMalloc(&q, 4)); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add<<<1, 1>>>(d, 1); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
  T(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  T(cudaEventRecord(e, s));
  T(cudaStreamWaitEvent(other, e, 0));
  T(cudaEventSynchronize(e)); LAST();
  T(cudaEventQuery(e)); LAST();
  T(cudaStreamEndCapture(other, &g)); LAST();
  T(cudaStreamEndCapture(s, &g)); LAST(); V(g != nullptr);
}
