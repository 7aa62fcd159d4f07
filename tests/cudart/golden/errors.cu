// What the CUDA runtime answers to right and wrong calls.  The same program ran on an H200 (driver 580,
// CUDA 13.0); its output is errors.h200.txt, and our runtime must print the same.
//
// Each case runs in a process of its own, because some errors last as long as the process.  What a GPU does
// not notice (a use after free, say) or does by chance is not in here.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

static const char* name(cudaError_t e) { return cudaGetErrorName(e); }
#define T(expr) printf("  %s -> %s\n", #expr, name(expr))
#define LAST() printf("    last %s\n", name(cudaGetLastError()))
#define V(expr) printf("  %s = %lld\n", #expr, (long long)(expr))

__device__ int counter;
__device__ int table[16];
__constant__ float weights[8];
static int host_variable;

__global__ void empty() {}
__global__ void add_one(int* p) { *p += 1; }
__global__ void static_shared(int* p) {
  __shared__ int s[1024];
  s[threadIdx.x] = *p;
  __syncthreads();
  *p = s[(threadIdx.x + 1) % blockDim.x];
}
__global__ void dynamic_shared(int* p) {
  extern __shared__ int s[];
  s[threadIdx.x] = *p;
  __syncthreads();
  *p = s[0];
}
__global__ void __launch_bounds__(128) bounded(int* p) { *p = 1; }
__global__ void store_at(uint64_t a) { *(volatile int*)a = 1; }
__global__ void trap() { asm volatile("trap;"); }
__global__ void asserts(int x) { assert(x == 3); }
__global__ void grid_sync(int* p) {
  cooperative_groups::this_grid().sync();
  *p = 1;
}
__global__ void spin(long long cycles) {
  long long t = clock64();
  while (clock64() - t < cycles) {}
}
__global__ void shared_far(int i) {
  __shared__ int s[4];
  ((volatile int*)s)[i] = i;
}
__global__ void shared_misaligned(int i) {
  __shared__ int s[64];
  *(volatile int*)((char*)s + i) = i;
}
__global__ void store_constant(int i) { ((volatile float*)weights)[i] = 1; }
__device__ int deep(int n, volatile int* p) {
  volatile int a[2000];
  a[n % 2000] = *p;
  return n == 0 ? a[0] : deep(n - 1, p) + a[n % 2000];
}
__global__ void recurse(int n, int* p) { *p = deep(n, p); }
static void not_a_kernel() {}

static void fresh() {
  LAST();
  T(cudaPeekAtLastError());
  int n = -1, d = -1;
  T(cudaGetDeviceCount(&n));
  V(n);
  T(cudaGetDevice(&d));
  V(d);
  T(cudaDeviceSynchronize());
  puts(cudaGetErrorName((cudaError_t)12345));
  puts(cudaGetErrorString((cudaError_t)12345));
  puts(cudaGetErrorString(cudaErrorIllegalAddress));
}
static void devices() {
  int v = -7;
  cudaDeviceProp prop;
  T(cudaSetDevice(1)); LAST(); LAST();
  T(cudaSetDevice(-1)); LAST();
  T(cudaSetDevice(0)); LAST();
  T(cudaGetDevice(nullptr)); LAST();
  T(cudaGetDeviceCount(nullptr)); LAST();
  T(cudaGetDeviceProperties(&prop, 5)); LAST();
  T(cudaGetDeviceProperties(nullptr, 0)); LAST();
  T(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)9999, 0)); LAST();
  T(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 3)); LAST();
  T(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0)); LAST();
  T(cudaDeviceCanAccessPeer(&v, 0, 0)); V(v); LAST();
  T(cudaDeviceCanAccessPeer(&v, 0, 1)); LAST();
  T(cudaDeviceEnablePeerAccess(0, 0)); LAST();
  T(cudaDeviceDisablePeerAccess(0)); LAST();
  T(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync)); LAST();
  T(cudaSetDeviceFlags(0xfff)); LAST();
  T(cudaFuncSetCacheConfig(empty, cudaFuncCachePreferL1)); LAST();
  T(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared)); LAST();
  int least = 9, greatest = 9;
  T(cudaDeviceGetStreamPriorityRange(&least, &greatest)); V(least); V(greatest);
  char bus[32];
  T(cudaDeviceGetPCIBusId(bus, 2, 0)); LAST();
  T(cudaDriverGetVersion(nullptr)); LAST();
  T(cudaRuntimeGetVersion(&v)); V(v);
}
static void allocation() {
  void *p = (void*)8, *q = nullptr;
  T(cudaMalloc(&p, 0)); V(p != nullptr); LAST();
  T(cudaMalloc(nullptr, 16)); LAST();
  p = (void*)8;
  T(cudaMalloc(&p, (size_t)1 << 60)); V((uintptr_t)p); T(cudaPeekAtLastError());
  T(cudaMalloc(&q, 1000));
  LAST(); LAST();
  V((uintptr_t)q % 256);
  T(cudaFree(nullptr));
  T(cudaFree((char*)q + 4)); LAST();
  T(cudaFree(q)); LAST();
  T(cudaFree(q)); LAST();
  T(cudaFree(&host_variable)); LAST();
  T(cudaMallocHost(&p, 100)); memset(p, 1, 100);
  T(cudaFree(p)); LAST();
  T(cudaFreeHost(p)); LAST();
  T(cudaFreeHost(nullptr)); LAST();
  T(cudaMalloc(&q, 64));
  T(cudaFreeHost(q)); LAST();
  T(cudaFreeHost(malloc(8))); LAST();
  T(cudaMallocHost(&p, 0)); V(p != nullptr); LAST();
  T(cudaMallocHost((void**)nullptr, 8)); LAST();
  T(cudaHostAlloc(&p, 64, 0x80)); LAST();
  T(cudaMallocManaged(&p, 0)); LAST();
  T(cudaMallocManaged(&p, 64, 9)); LAST();
  T(cudaMallocManaged((void**)nullptr, 64)); LAST();
  size_t pitch = 0;
  T(cudaMallocPitch(&p, &pitch, 100, 3)); V(pitch);
  T(cudaMallocPitch(&p, &pitch, 0, 3)); V(pitch); LAST();
  T(cudaMallocPitch(&p, &pitch, 513, 3)); V(pitch);
  T(cudaMallocPitch(&p, nullptr, 513, 3)); LAST();
  cudaPitchedPtr pp;
  T(cudaMalloc3D(&pp, make_cudaExtent(10, 4, 5))); V(pp.pitch); V(pp.xsize); V(pp.ysize);
  size_t a = 0, b = 0;
  T(cudaMemGetInfo(&a, &b)); V(a <= b); V(a > 0);
  T(cudaMemGetInfo(nullptr, nullptr)); LAST();
}
static void registration() {
  char* h = (char*)aligned_alloc(4096, 8192);
  char* other = (char*)aligned_alloc(4096, 8192);
  void* d = nullptr;
  unsigned flags = 99;
  T(cudaHostRegister(nullptr, 8, 0)); LAST();
  T(cudaHostRegister(h, 0, 0)); LAST();
  T(cudaHostRegister(h, 4096, 0x40)); LAST();
  T(cudaHostUnregister(h)); LAST();
  T(cudaHostGetDevicePointer(&d, h, 0)); LAST();
  T(cudaHostRegister(h, 8192, cudaHostRegisterMapped)); LAST();
  T(cudaHostRegister(h, 8192, 0)); LAST();
  T(cudaHostGetDevicePointer(&d, h, 0)); V(d != nullptr);
  T(cudaHostGetDevicePointer(&d, h, 5)); LAST();
  T(cudaHostGetFlags(&flags, h)); V(flags);
  T(cudaHostGetFlags(&flags, other)); LAST();
  h[0] = 41;
  T(cudaHostGetDevicePointer(&d, h, 0));
  *(int*)h = 41;
  add_one<<<1, 1>>>((int*)d);
  T(cudaDeviceSynchronize());
  V(*(int*)h);
  T(cudaFreeHost(h)); LAST();
  T(cudaHostUnregister(h)); LAST();
  T(cudaHostUnregister(h)); LAST();
  T(cudaHostAlloc((void**)&h, 64, cudaHostAllocMapped | cudaHostAllocPortable | cudaHostAllocWriteCombined));
  T(cudaHostGetFlags(&flags, h)); V(flags);
  T(cudaHostGetDevicePointer(&d, h, 0)); V(d == h);
  *(int*)h = 1;
  add_one<<<1, 1>>>((int*)h);
  T(cudaDeviceSynchronize());
  V(*(int*)h);
}
static void show(const void* p) {
  cudaPointerAttributes a;
  memset(&a, 0x55, sizeof a);
  cudaError_t e = cudaPointerGetAttributes(&a, p);
  printf("  %s type %d device %d device pointer %s host pointer %s\n", name(e), a.type, a.device,
         a.devicePointer == p ? "same" : a.devicePointer ? "other" : "null", a.hostPointer == p ? "same" : a.hostPointer ? "other" : "null");
  LAST();
}
static void pointers() {
  void *d, *m, *h, *r = aligned_alloc(4096, 4096);
  cudaMalloc(&d, 100);
  cudaMallocHost(&h, 100);
  cudaMallocManaged(&m, 100);
  cudaHostRegister(r, 4096, cudaHostRegisterMapped);
  show(&host_variable);
  show(nullptr);
  show(d);
  show((char*)d + 50);
  show(h);
  show(m);
  show(r);
  cudaGetSymbolAddress(&d, counter);
  show(d);
  show((void*)16);
  T(cudaPointerGetAttributes(nullptr, h)); LAST();
}
static void configuration() {
  int* p;
  cudaMalloc(&p, 4096 * 4);
  void* args[] = {&p};
#define L(...) do { add_one<<<__VA_ARGS__>>>(p); printf("  add_one<<<%s>>>\n", #__VA_ARGS__); LAST(); LAST(); } while (0)
  L(1, 1);
  L(0, 1);
  L(1, 0);
  L(1, 1024);
  L(1, 1025);
  L(1, 2048);
  L(1, dim3(1, 1024));
  L(1, dim3(1, 1025));
  L(1, dim3(1, 1, 64));
  L(1, dim3(1, 1, 65));
  L(1, dim3(32, 32, 2));
  L(dim3(1, 65535), 1);
  L(dim3(1, 65536), 1);
  L(dim3(1, 1, 65536), 1);
  L(dim3(2147483648u), 1);
  L(dim3(4294967295u), 1);
  L(1, 1, 48 * 1024);
  L(1, 1, 48 * 1024 + 1);
  L(1, 1, 300 * 1024);
  L(1, 1, (size_t)1 << 40);
  L(1, 1, 0, (cudaStream_t)1);
  L(1, 1, 0, (cudaStream_t)2);
  T(cudaDeviceSynchronize());
  T(cudaLaunchKernel(add_one, dim3(1), dim3(2048), args, 0, 0)); T(cudaPeekAtLastError()); LAST(); LAST();
  T(cudaLaunchKernel((const void*)nullptr, dim3(1), dim3(1), args, 0, 0)); LAST();
  T(cudaLaunchKernel((const void*)not_a_kernel, dim3(1), dim3(1), args, 0, 0)); LAST();
  T(cudaLaunchKernel((const void*)&host_variable, dim3(1), dim3(1), args, 0, 0)); LAST();
  T(cudaLaunchKernel(static_shared, dim3(1), dim3(32), args, 44 * 1024, 0)); LAST();
  T(cudaLaunchKernel(static_shared, dim3(1), dim3(32), args, 44 * 1024 + 1, 0)); LAST();
  T(cudaLaunchKernel(bounded, dim3(1), dim3(128), args, 0, 0)); LAST();
  T(cudaLaunchKernel(bounded, dim3(1), dim3(129), args, 0, 0)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000)); LAST();
  T(cudaLaunchKernel(dynamic_shared, dim3(1), dim3(32), args, 100000, 0)); LAST();
  T(cudaLaunchKernel(dynamic_shared, dim3(1), dim3(32), args, 100001, 0)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024)); LAST();
  T(cudaLaunchKernel(dynamic_shared, dim3(1), dim3(32), args, 227 * 1024, 0)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1)); LAST();
  T(cudaFuncSetAttribute(static_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 223 * 1024)); LAST();
  T(cudaFuncSetAttribute(static_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 223 * 1024 + 1)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, -1)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64)); LAST();
  T(cudaLaunchKernel(dynamic_shared, dim3(1), dim3(32), args, 1000, 0)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 50)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributePreferredSharedMemoryCarveout, -2)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, (cudaFuncAttribute)77, 1)); LAST();
  T(cudaFuncSetAttribute((const void*)not_a_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1)); LAST();
  T(cudaDeviceSynchronize());
}
static void launch_ex() {
  int* p;
  cudaMalloc(&p, 4096);
  cudaLaunchConfig_t c{};
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  c.gridDim = dim3(4); c.blockDim = dim3(32);
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  cudaLaunchAttribute a[2]{};
  c.attrs = a;
  c.numAttrs = 1;
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim.x = 3; a[0].val.clusterDim.y = 1; a[0].val.clusterDim.z = 1;
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  a[0].val.clusterDim.x = 16;
  c.gridDim = dim3(16);
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  a[0].id = cudaLaunchAttributeCooperative;
  a[0].val.cooperative = 1;
  T(cudaLaunchKernelEx(&c, grid_sync, p)); LAST();
  a[0].id = cudaLaunchAttributeIgnore;
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  a[0].id = (cudaLaunchAttributeID)200;
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  a[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a[0].val.programmaticStreamSerializationAllowed = 1;
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  a[0].id = cudaLaunchAttributePriority;
  a[0].val.priority = 1;
  T(cudaLaunchKernelEx(&c, add_one, p)); LAST();
  T(cudaDeviceSynchronize());
  void* args[] = {&p};
  T(cudaLaunchCooperativeKernel(grid_sync, dim3(8), dim3(64), args, 0, 0)); LAST();
  T(cudaLaunchCooperativeKernel(grid_sync, dim3(1000000), dim3(64), args, 0, 0)); LAST();
  T(cudaLaunchCooperativeKernel(grid_sync, dim3(1), dim3(2000), args, 0, 0)); LAST();
  T(cudaDeviceSynchronize());
}
static void after_fault() {
  int *p = nullptr, v = 0;
  cudaDeviceProp prop;
  cudaStream_t s;
  cudaEvent_t e;
  T(cudaDeviceSynchronize()); LAST(); LAST();
  T(cudaPeekAtLastError());
  T(cudaMalloc(&p, 4)); LAST();
  T(cudaMemcpy(&v, &host_variable, 4, cudaMemcpyHostToHost)); LAST();
  T(cudaFree(nullptr)); LAST();
  T(cudaGetDevice(&v)); LAST();
  T(cudaGetDeviceCount(&v)); LAST();
  T(cudaGetDeviceProperties(&prop, 0)); LAST();
  T(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 0)); LAST();
  T(cudaDriverGetVersion(&v)); LAST();
  T(cudaRuntimeGetVersion(&v)); LAST();
  T(cudaSetDevice(0)); LAST();
  T(cudaStreamCreate(&s)); LAST();
  T(cudaEventCreate(&e)); LAST();
  T(cudaStreamQuery(0)); LAST();
  T(cudaStreamSynchronize(0)); LAST();
  T(cudaMallocHost((void**)&p, 4)); LAST();
  T(cudaFreeHost(nullptr)); LAST();
  empty<<<1, 1>>>(); LAST();
  empty<<<1, 5000>>>(); LAST();
  cudaFuncAttributes fa;
  T(cudaFuncGetAttributes(&fa, empty)); LAST();
  T(cudaGetSymbolSize((size_t*)&prop, counter)); LAST();
  T(cudaMemGetInfo((size_t*)&prop, (size_t*)&prop)); LAST();
  T(cudaDeviceGetLimit((size_t*)&prop, cudaLimitStackSize)); LAST();
  T(cudaSetDevice(7)); LAST();
  T(cudaDeviceReset()); LAST();
  T(cudaMalloc(&p, 4)); LAST();
  add_one<<<1, 1>>>(p); LAST();
  T(cudaDeviceSynchronize()); LAST();
}
static void illegal_address() { store_at<<<1, 1>>>(0); LAST(); after_fault(); }
static void illegal_far() { store_at<<<1, 1>>>(0x123456789000ull); LAST(); after_fault(); }
static void without_sync() {
  store_at<<<1, 1>>>(0);
  usleep(300000);
  T(cudaPeekAtLastError());
  LAST();
  int v;
  T(cudaGetDevice(&v));
  LAST();
  T(cudaFree(nullptr));
  LAST();
}
static void by_memcpy() {
  int *p, v;
  cudaMalloc(&p, 4);
  store_at<<<1, 1>>>(0);
  T(cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost)); LAST(); LAST();
}
static void by_query() {
  cudaEvent_t e;
  cudaEventCreate(&e);
  store_at<<<1, 1>>>(0);
  cudaEventRecord(e);
  usleep(300000);
  T(cudaEventQuery(e)); LAST();
  T(cudaEventSynchronize(e)); LAST();
  T(cudaEventDestroy(e)); LAST();
}
static void by_free() {
  int* p;
  cudaMalloc(&p, 4);
  store_at<<<1, 1>>>(0);
  T(cudaFree(p)); LAST();
}
static void by_launch() {
  store_at<<<1, 1>>>(0);
  usleep(300000);
  empty<<<1, 1>>>();
  LAST(); LAST();
}
static void misaligned() {
  char* p;
  cudaMalloc(&p, 64);
  store_at<<<1, 1>>>((uint64_t)(p + 1)); LAST();
  T(cudaDeviceSynchronize()); LAST(); LAST();
}
static void trapped() { trap<<<1, 1>>>(); LAST(); T(cudaDeviceSynchronize()); LAST(); T(cudaFree(nullptr)); LAST(); }
static void asserted() { asserts<<<1, 1>>>(2); LAST(); T(cudaDeviceSynchronize()); LAST(); T(cudaFree(nullptr)); LAST(); }
static void in_callback(void* out) { *(cudaError_t*)out = cudaFree(nullptr); }
static void fault(const char* what) {
  printf("  %s\n", what);
  LAST();
  T(cudaDeviceSynchronize()); LAST(); LAST();
}
static void shared_out_of_bounds() { shared_far<<<1, 1>>>(1 << 24); fault("1 << 26 bytes past a shared array"); }
static void shared_unaligned() { shared_misaligned<<<1, 1>>>(2); fault("shared int at 2 bytes"); }
static void host_pointer() {
  int* p = (int*)malloc(4096);
  add_one<<<1, 1>>>(p);
  fault("host memory that no call made known");
}
static void stack_overflow() {
  int* p;
  cudaMalloc(&p, 4);
  cudaMemset(p, 0, 4);
  recurse<<<1, 1>>>(1000, p);
  fault("8 MB of stack");
}
static void fault_then_event() {
  cudaEvent_t a, b;
  float ms;
  cudaEventCreate(&a);
  cudaEventCreate(&b);
  cudaEventRecord(a);
  store_at<<<1, 1>>>(0);
  usleep(300000);
  T(cudaEventRecord(b)); LAST();
  T(cudaEventElapsedTime(&ms, a, b)); LAST();
  T(cudaStreamWaitEvent(0, a, 0)); LAST();
}
static void fault_then_async() {
  int *d, h;
  cudaMalloc(&d, 4);
  store_at<<<1, 1>>>(0);
  usleep(300000);
  T(cudaMemcpyAsync(&h, d, 4, cudaMemcpyDeviceToHost, 0)); LAST();
  T(cudaMemsetAsync(d, 0, 4, 0)); LAST();
  T(cudaPointerGetAttributes((cudaPointerAttributes*)malloc(256), d)); LAST();
  T(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000)); LAST();
  T(cudaLaunchHostFunc(0, in_callback, &h)); LAST();
  T(cudaMallocManaged(&d, 4)); LAST();
  T(cudaMallocAsync((void**)&d, 4, 0)); LAST();
  T(cudaHostRegister(malloc(4096), 4096, 0)); LAST();
  T(cudaMemcpyToSymbol(counter, &h, 4)); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&h, empty, 128, 0)); LAST();
  T(cudaFuncGetName((const char**)&d, (const void*)empty)); LAST();
  T(cudaDeviceSetLimit(cudaLimitStackSize, 2048)); LAST();
  T(cudaGetErrorName(cudaSuccess) ? cudaSuccess : cudaErrorUnknown); LAST();
}
static void copies() {
  int h[64] = {}, g[64] = {}, *d, *e, *freed;
  cudaMalloc(&d, 256);
  cudaMalloc(&e, 256);
  cudaMalloc(&freed, 64 << 20);
  cudaFree(freed);
  T(cudaMemcpy(d, h, 256, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(d, h, 0, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(nullptr, h, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(d, nullptr, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(d, h, 4, (cudaMemcpyKind)7)); LAST();
  T(cudaMemcpy(d, h, 4, cudaMemcpyDefault)); LAST();
  T(cudaMemcpy(h, d, 4, cudaMemcpyDefault)); LAST();
  T(cudaMemcpy(h, g, 4, cudaMemcpyDefault)); LAST();
  T(cudaMemcpy(d, e, 4, cudaMemcpyDefault)); LAST();
  T(cudaMemcpy(h, g, 4, cudaMemcpyHostToHost)); LAST();
  T(cudaMemcpy(d, h, 4, cudaMemcpyHostToHost)); LAST();
  T(cudaMemcpy(h, d, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(d, h, 4, cudaMemcpyDeviceToHost)); LAST();
  T(cudaMemcpy(d, h, 4, cudaMemcpyDeviceToDevice)); LAST();
  T(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToDevice)); LAST();
  T(cudaMemcpy(d, e, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(d, e, 4, cudaMemcpyDeviceToHost)); LAST();
  T(cudaMemcpy(h, g, 4, cudaMemcpyDeviceToDevice)); LAST();
  T(cudaMemcpy(h, g, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy(h, g, 4, cudaMemcpyDeviceToHost)); LAST();
  T(cudaMemcpyAsync(d, h, 4, cudaMemcpyDeviceToHost, 0)); LAST();
  T(cudaMemcpyAsync(d, h, 4, cudaMemcpyHostToDevice, 0)); LAST();
  T(cudaMemcpyAsync(nullptr, h, 4, cudaMemcpyHostToDevice, 0)); LAST();
  T(cudaMemcpy(freed, h, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemset(d, 1, 256)); LAST();
  T(cudaMemset(nullptr, 1, 0)); LAST();
  T(cudaMemset(nullptr, 1, 4)); LAST();
  T(cudaMemset(h, 1, 4)); LAST();
  T(cudaMemset(freed, 1, 4)); LAST();
  T(cudaMemset2D(d, 16, 0, 17, 2)); LAST();
  T(cudaMemset2D(d, 16, 0, 16, 0)); LAST();
  T(cudaMemset2D(d, 16, 0, 16, 16)); LAST();
  T(cudaMemcpy2D(d, 16, h, 32, 16, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy2D(d, 15, h, 32, 16, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy2D(d, 16, h, 15, 16, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy2D(d, 16, h, 32, 0, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpy2D(nullptr, 16, h, 32, 16, 4, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemcpyPeer(d, 0, e, 0, 16)); LAST();
  T(cudaMemcpyPeer(d, 0, e, 1, 16)); LAST();
  cudaMemcpy3DParms m{};
  T(cudaMemcpy3D(&m)); LAST();
  m.srcPtr = make_cudaPitchedPtr(h, 16, 16, 4);
  m.dstPtr = make_cudaPitchedPtr(d, 16, 16, 4);
  m.extent = make_cudaExtent(16, 4, 1);
  m.kind = cudaMemcpyHostToDevice;
  T(cudaMemcpy3D(&m)); LAST();
  m.extent = make_cudaExtent(17, 4, 1);
  T(cudaMemcpy3D(&m)); LAST();
}
static void past_the_end() {
  size_t n = 64 << 20;
  char *d, *h = (char*)calloc(1, 4 * n);
  cudaMalloc(&d, n);
  T(cudaMemcpy(d, h, 3 * n, cudaMemcpyHostToDevice)); LAST();
  T(cudaMemset(d, 0, 3 * n)); LAST();
}
static void symbols() {
  int h[64] = {};
  void* p = nullptr;
  size_t n = 0;
  T(cudaMemcpyToSymbol(table, h, 64)); LAST();
  T(cudaMemcpyToSymbol(table, h, 68)); LAST();
  T(cudaMemcpyToSymbol(table, h, 4, 64)); LAST();
  T(cudaMemcpyToSymbol(table, h, 4, 60)); LAST();
  T(cudaMemcpyToSymbol(table, h, 4, 0, cudaMemcpyDeviceToHost)); LAST();
  T(cudaMemcpyToSymbol(table, nullptr, 4)); LAST();
  T(cudaMemcpyToSymbol(host_variable, h, 4)); LAST();
  T(cudaMemcpyToSymbol(weights, h, 32)); LAST();
  T(cudaMemcpyFromSymbol(h, weights, 32)); LAST();
  T(cudaMemcpyFromSymbol(h, weights, 33)); LAST();
  T(cudaMemcpyFromSymbol(h, weights, 4, 0, cudaMemcpyHostToDevice)); LAST();
  T(cudaGetSymbolAddress(&p, table)); V(p != nullptr);
  T(cudaGetSymbolSize(&n, table)); V(n);
  T(cudaGetSymbolAddress(&p, weights)); LAST();
  T(cudaGetSymbolSize(&n, weights)); V(n);
  T(cudaGetSymbolAddress(&p, host_variable)); LAST();
  T(cudaGetSymbolSize(&n, host_variable)); LAST();
  T(cudaGetSymbolAddress(&p, (const void*)nullptr)); LAST();
  T(cudaGetSymbolAddress(&p, (const void*)"table")); LAST();
}
static void streams() {
  cudaStream_t s = nullptr;
  unsigned flags = 9;
  int priority = 99;
  T(cudaStreamCreate(nullptr)); LAST();
  T(cudaStreamCreateWithFlags(&s, 99)); LAST();
  T(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); V(s != nullptr);
  T(cudaStreamGetFlags(s, &flags)); V(flags);
  T(cudaStreamCreateWithPriority(&s, cudaStreamDefault, -3));
  T(cudaStreamGetPriority(s, &priority)); V(priority);
  T(cudaStreamCreateWithPriority(&s, cudaStreamDefault, 77));
  T(cudaStreamGetPriority(s, &priority)); V(priority);
  T(cudaStreamGetFlags(0, &flags)); V(flags);
  T(cudaStreamQuery(s)); LAST();
  spin<<<1, 1, 0, s>>>(1000);
  T(cudaStreamSynchronize(s)); LAST();
  T(cudaStreamDestroy(s)); LAST();
  T(cudaStreamDestroy(0)); LAST();
  T(cudaStreamDestroy(cudaStreamLegacy)); LAST();
  T(cudaStreamWaitEvent(0, nullptr, 0)); LAST();
  T(cudaStreamSynchronize(cudaStreamPerThread)); LAST();
  T(cudaStreamSynchronize(cudaStreamLegacy)); LAST();
  T(cudaLaunchHostFunc(0, nullptr, nullptr)); LAST();
}
static void events() {
  cudaEvent_t a, b, c;
  float ms = -1;
  T(cudaEventCreate(nullptr)); LAST();
  T(cudaEventCreateWithFlags(&a, 0x99)); LAST();
  T(cudaEventCreateWithFlags(&a, cudaEventInterprocess)); LAST();
  T(cudaEventCreate(&a));
  T(cudaEventCreate(&b));
  T(cudaEventCreateWithFlags(&c, cudaEventDisableTiming | cudaEventBlockingSync));
  T(cudaEventQuery(a)); LAST();
  T(cudaEventSynchronize(a)); LAST();
  T(cudaEventElapsedTime(&ms, a, b)); LAST();
  T(cudaEventRecord(a, 0)); LAST();
  T(cudaEventElapsedTime(&ms, a, b)); LAST();
  T(cudaEventRecord(b, 0)); LAST();
  T(cudaEventRecord(c, 0)); LAST();
  T(cudaEventSynchronize(b)); LAST();
  T(cudaEventElapsedTime(&ms, a, b)); V(ms >= 0); LAST();
  T(cudaEventElapsedTime(&ms, a, c)); LAST();
  T(cudaEventElapsedTime(nullptr, a, b)); LAST();
  T(cudaEventElapsedTime(&ms, nullptr, b)); LAST();
  T(cudaEventRecord(nullptr, 0)); LAST();
  T(cudaEventSynchronize(nullptr)); LAST();
  T(cudaEventQuery(nullptr)); LAST();
  T(cudaEventDestroy(nullptr)); LAST();
  T(cudaEventDestroy(a)); LAST();
  T(cudaStreamWaitEvent(0, b, 0)); LAST();
  T(cudaStreamWaitEvent(0, b, 7)); LAST();
  T(cudaEventRecordWithFlags(b, 0, 9)); LAST();
}
static void callbacks() {
  cudaError_t e = cudaSuccess;
  T(cudaLaunchHostFunc(0, in_callback, &e));
  T(cudaDeviceSynchronize());
  printf("  in the callback: %s\n", name(e));
  LAST();
}
static void functions() {
  cudaFuncAttributes a{};
  T(cudaFuncGetAttributes(nullptr, empty)); LAST();
  T(cudaFuncGetAttributes(&a, (const void*)not_a_kernel)); LAST();
  T(cudaFuncGetAttributes(&a, (const void*)nullptr)); LAST();
  T(cudaFuncGetAttributes(&a, static_shared));
  V(a.sharedSizeBytes); V(a.constSizeBytes); V(a.localSizeBytes); V(a.maxThreadsPerBlock);
  V(a.maxDynamicSharedSizeBytes); V(a.preferredShmemCarveout); V(a.cacheModeCA); V(a.clusterDimMustBeSet);
  V(a.requiredClusterWidth); V(a.clusterSchedulingPolicyPreference); V(a.nonPortableClusterSizeAllowed);
  T(cudaFuncGetAttributes(&a, bounded));
  V(a.maxThreadsPerBlock); V(a.constSizeBytes);
  T(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 70000));
  T(cudaFuncGetAttributes(&a, bounded));
  V(a.maxDynamicSharedSizeBytes);
  const char* s = nullptr;
  T(cudaFuncGetName(&s, (const void*)add_one)); puts(s ? s : "null");
  size_t offset = 9, size = 9;
  T(cudaFuncGetParamInfo((const void*)add_one, 0, &offset, &size)); V(offset); V(size);
  T(cudaFuncGetParamInfo((const void*)add_one, 1, &offset, &size)); LAST();
  int n = -1;
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, empty, 0, 0)); V(n); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, empty, -1, 0)); V(n); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, empty, 1025, 0)); V(n); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, bounded, 256, 0)); V(n); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, empty, 128, 60000)); V(n); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, empty, 128, 1 << 20)); V(n); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, empty, 128, 0)); LAST();
  T(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (const void*)not_a_kernel, 128, 0)); LAST();
  for (int block : {1, 32, 33, 64, 128, 192, 256, 384, 512, 768, 1024}) {
    int e = -1, s2 = -1, d = -1;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&e, empty, block, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&s2, static_shared, block, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&d, dynamic_shared, block, 20000);
    printf("  occupancy at %d threads: %d %d %d\n", block, e, s2, d);
  }
  int grid = 0, block = 0;
  T(cudaOccupancyMaxPotentialBlockSize(&grid, &block, empty)); V(grid); V(block);
  T(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded)); V(grid); V(block);
  size_t room = 0;
  T(cudaOccupancyAvailableDynamicSMemPerBlock(&room, empty, 2, 128)); V(room);
  T(cudaOccupancyAvailableDynamicSMemPerBlock(&room, static_shared, 4, 128)); V(room);
}
static void limits() {
  size_t v = 0;
  for (int i = 0; i < 8; ++i) {
    cudaError_t e = cudaDeviceGetLimit(&v, (cudaLimit)i);
    printf("  limit %d: %s %zu\n", i, name(e), e ? 0 : v);
    LAST();
  }
  T(cudaDeviceSetLimit(cudaLimitStackSize, 4096)); T(cudaDeviceGetLimit(&v, cudaLimitStackSize)); V(v);
  T(cudaDeviceSetLimit(cudaLimitStackSize, 5001)); T(cudaDeviceGetLimit(&v, cudaLimitStackSize)); V(v);
  T(cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40)); LAST();
  T(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 5 << 20)); T(cudaDeviceGetLimit(&v, cudaLimitPrintfFifoSize)); V(v);
  T(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20)); T(cudaDeviceGetLimit(&v, cudaLimitMallocHeapSize)); V(v);
  T(cudaDeviceSetLimit((cudaLimit)55, 1)); LAST();
  T(cudaDeviceGetLimit(nullptr, cudaLimitStackSize)); LAST();
  T(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 4)); LAST();
  T(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 64)); T(cudaDeviceGetLimit(&v, cudaLimitMaxL2FetchGranularity)); V(v);
}
static void pools() {
  int *p = nullptr, v = 0;
  cudaMemPool_t pool = nullptr, mine = nullptr;
  uint64_t x = 99;
  T(cudaMallocAsync((void**)&p, 400, 0)); V(p != nullptr);
  T(cudaMemsetAsync(p, 0, 400, 0));
  add_one<<<1, 1>>>(p);
  T(cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost)); V(v);
  T(cudaFreeAsync(p, 0)); LAST();
  T(cudaDeviceSynchronize());
  T(cudaFreeAsync(nullptr, 0)); LAST();
  T(cudaMallocAsync((void**)&p, 0, 0)); V(p != nullptr); LAST();
  T(cudaMallocAsync((void**)&p, 64, 0));
  T(cudaFree(p)); LAST();
  T(cudaMalloc(&p, 64));
  T(cudaFreeAsync(p, 0)); LAST();
  T(cudaMallocAsync((void**)&p, (size_t)1 << 50, 0)); LAST();
  T(cudaDeviceGetDefaultMemPool(&pool, 0)); V(pool != nullptr);
  T(cudaDeviceGetMemPool(&mine, 0)); V(mine == pool);
  T(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &x)); V(x);
  x = 1 << 20;
  T(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &x));
  x = 0;
  T(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &x)); V(x);
  T(cudaMemPoolTrimTo(pool, 0)); LAST();
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  T(cudaMemPoolCreate(&mine, &props)); LAST();
  T(cudaMallocFromPoolAsync((void**)&p, 256, mine, 0)); V(p != nullptr);
  T(cudaFreeAsync(p, 0));
  T(cudaDeviceSetMemPool(0, mine)); LAST();
  T(cudaMemPoolDestroy(mine)); LAST();
  T(cudaMemPoolDestroy(pool)); LAST();
}
static void reset() {
  int *p, v = 5;
  cudaMalloc(&p, 4);
  T(cudaMemcpyToSymbol(counter, &v, 4));
  T(cudaDeviceReset()); LAST();
  v = 1;
  T(cudaMemcpyFromSymbol(&v, counter, 4)); V(v);
  T(cudaMalloc(&p, 4)); LAST();
}
static void last_error() {
  void* p;
  T(cudaSetDevice(9));
  T(cudaMalloc(&p, 16));
  T(cudaPeekAtLastError());
  T(cudaFree(&host_variable));
  T(cudaPeekAtLastError());
  T(cudaDeviceSynchronize());
  LAST(); LAST();
}

#define CASE(f) {#f, f}
static const struct { const char* name; void (*run)(); } CASES[] = {
  CASE(fresh), CASE(devices), CASE(allocation), CASE(registration), CASE(pointers), CASE(configuration), CASE(launch_ex),
  CASE(illegal_address), CASE(illegal_far), CASE(without_sync), CASE(by_memcpy), CASE(by_query), CASE(by_free), CASE(by_launch),
  CASE(misaligned), CASE(trapped), CASE(asserted), CASE(shared_out_of_bounds), CASE(shared_unaligned), 
  CASE(host_pointer), CASE(stack_overflow), CASE(fault_then_event), CASE(fault_then_async), CASE(copies), CASE(past_the_end), CASE(symbols), CASE(streams), CASE(events),
  CASE(callbacks), CASE(functions), CASE(limits), CASE(pools), CASE(reset), CASE(last_error),
};

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (auto& c : CASES) {
    if (argc > 1 && strcmp(argv[1], c.name)) continue;
    printf("%s\n", c.name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      c.run();
      fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status) printf("  ended with status %d\n", status);
  }
}
