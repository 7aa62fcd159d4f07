// Streams, events, host functions: everything happens in the order asked for.
#include <cstring>

#include "check.h"

__global__ void append(char* text, char c) {
  int n = 0;
  while (text[n]) ++n;
  text[n] = c;
}
static void note(void* text) { strcat((char*)text, "h"); }
static void old_style(cudaStream_t, cudaError_t e, void* text) { strcat((char*)text, e ? "?" : "c"); }

int main() {
  char *text, copy[64] = "", host[64] = "";
  cudaStream_t a, b, quick;
  cudaEvent_t start, middle, end;
  CHECK(cudaMalloc(&text, 64));
  CHECK(cudaMemset(text, 0, 64));
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  int least, greatest, priority;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamCreateWithPriority(&quick, cudaStreamDefault, greatest));
  CHECK(cudaStreamGetPriority(quick, &priority));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming));
  CHECK(cudaEventRecord(start, a));
  append<<<1, 1, 0, a>>>(text, '1');
  CHECK(cudaLaunchHostFunc(a, note, host));
  append<<<1, 1, 0, a>>>(text, '2');
  CHECK(cudaEventRecord(middle, a));
  CHECK(cudaStreamWaitEvent(b, middle, 0));
  append<<<1, 1, 0, b>>>(text, '3');
  CHECK(cudaStreamAddCallback(b, old_style, host, 0));
  CHECK(cudaMemcpyAsync(copy, text, 64, cudaMemcpyDeviceToHost, b));
  CHECK(cudaEventRecord(end, b));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaStreamSynchronize(b));
  CHECK(cudaStreamQuery(a));
  CHECK(cudaEventQuery(end));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, start, end));
  printf("%s %s priority %s, took %s\n", copy, host, priority == greatest ? "kept" : "lost", ms > 0 ? "time" : "no time");
  unsigned long long id_a, id_b;
  CHECK(cudaStreamGetId(a, &id_a));
  CHECK(cudaStreamGetId(b, &id_b));
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(a, &status));
  printf("ids %s, capturing %d\n", id_a == id_b ? "same" : "differ", status);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaStreamDestroy(quick));
  for (cudaEvent_t e : {start, middle, end}) CHECK(cudaEventDestroy(e));
  append<<<1, 1, 0, cudaStreamPerThread>>>(text, '4');
  append<<<1, 1, 0, cudaStreamLegacy>>>(text, '5');
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(copy, text, 64, cudaMemcpyDeviceToHost));
  puts(copy);
}
// output:
// 123 hc priority kept, took time
// ids differ, capturing 0
// 12345
