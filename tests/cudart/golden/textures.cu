// What fetches of texture objects give, as bits; textures.h200.txt is an H200's answer.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

static void check(cudaError_t e, int line) {
  if (e) printf("line %d: %s\n", line, cudaGetErrorName(e)), exit(1);
}
#define CHECK(call) check(call, __LINE__)

enum { kPoints = 64 };

__device__ float coordinate(int i, int n, bool normalized) {
  // From outside on the left to outside on the right, some on the edges between texels, some near them.
  float x = (i - 10) * (n + 4.0f) / 40.0f + (i % 5) * 0.013f;
  if (i % 7 == 0) x = floorf(x);
  if (i % 11 == 0) x = floorf(x) + 0.5f;
  return normalized ? x / n : x;
}

__global__ void fetch1(cudaTextureObject_t t, int n, bool normalized, float* out) {
  out[threadIdx.x] = tex1D<float>(t, coordinate(threadIdx.x, n, normalized));
}
__global__ void fetch2(cudaTextureObject_t t, int w, int h, bool normalized, float* out) {
  int i = threadIdx.x;
  out[i] = tex2D<float>(t, coordinate(i, w, normalized), coordinate((i * 29 + 3) % kPoints, h, normalized));
}
__global__ void fetch3(cudaTextureObject_t t, int w, int h, int d, bool normalized, float* out) {
  int i = threadIdx.x;
  out[i] = tex3D<float>(t, coordinate(i, w, normalized), coordinate((i * 29 + 3) % kPoints, h, normalized),
                        coordinate((i * 13 + 5) % kPoints, d, normalized));
}
__global__ void fetch_layered(cudaTextureObject_t t, int w, int h, float* out) {
  int i = threadIdx.x;
  out[i] = tex2DLayered<float>(t, coordinate(i, w, false), coordinate((i * 29 + 3) % kPoints, h, false), i % 5 - 1);
}
template <class T> __global__ void fetch_vector(cudaTextureObject_t t, int w, int h, T* out) {
  int i = threadIdx.x;
  out[i] = tex2D<T>(t, coordinate(i, w, false), coordinate((i * 29 + 3) % kPoints, h, false));
}
__global__ void fetch_plain(cudaTextureObject_t t, float* out) { out[threadIdx.x] = tex1Dfetch<float>(t, int(threadIdx.x) - 8); }
__global__ void gather(cudaTextureObject_t t, int w, int h, bool normalized, float4* out) {
  int i = threadIdx.x;
  out[i] = tex2Dgather<float4>(t, coordinate(i, w, normalized), coordinate((i * 29 + 3) % kPoints, h, normalized), 0);
}
__global__ void grades(cudaTextureObject_t t, float* out) {
  // Weights in very small steps: where they are rounded.
  int i = threadIdx.x + blockIdx.x * 64;
  out[i] = tex1D<float>(t, 0.5f + i / 2048.0f);
}

static float* buffer;

static void show(const char* name, int words) {
  std::vector<unsigned> h(words);
  CHECK(cudaMemcpy(h.data(), buffer, words * 4, cudaMemcpyDeviceToHost));
  printf("%s", name);
  for (unsigned v : h) printf(" %x", v);
  printf("\n");
}

static cudaTextureObject_t make(const cudaResourceDesc& r, cudaTextureAddressMode mode, cudaTextureFilterMode filter, cudaTextureReadMode read,
                                bool normalized) {
  cudaTextureDesc d = {};
  for (auto& m : d.addressMode) m = mode;
  d.filterMode = filter;
  d.readMode = read;
  d.normalizedCoords = normalized;
  d.borderColor[0] = 7.5f;
  d.borderColor[1] = 2.5f;
  cudaTextureObject_t t;
  CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  return t;
}

template <class T> static cudaArray_t array(int w, int h, int d, unsigned flags, T (*value)(int)) {
  std::vector<T> data(size_t(w) * (h ? h : 1) * (d ? d : 1));
  for (size_t i = 0; i < data.size(); ++i) data[i] = value(int(i));
  cudaChannelFormatDesc f = std::is_same<T, __half>::value ? cudaCreateChannelDescHalf() : cudaCreateChannelDesc<T>();
  cudaArray_t a;
  CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(w, h, d), flags));
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(data.data(), w * sizeof(T), w, h ? h : 1);
  p.dstArray = a;
  p.extent = make_cudaExtent(w, h ? h : 1, d ? d : 1);
  p.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&p));
  return a;
}

static cudaResourceDesc of(cudaArray_t a) {
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  return r;
}

static float some(int i) { return float((i * 7919) % 101) / 8 - 5; }
static unsigned char byte_(int i) { return (unsigned char)(i * 37 + 11); }
static short2 shorts(int i) { return make_short2(short(i * 3001 - 20000), short(i * 77)); }
static signed char small(int i) { return (signed char)(i * 41 - 128); }
static uchar4 four(int i) { return make_uchar4(byte_(i), byte_(i + 1), byte_(i + 2), byte_(i + 3)); }
static __half half_(int i) { return __float2half(some(i) * 1.01f); }

static const char* error(const cudaResourceDesc& r, cudaTextureFilterMode filter, cudaTextureReadMode read) {
  cudaTextureDesc d = {};
  d.filterMode = filter;
  d.readMode = read;
  cudaTextureObject_t t;
  cudaError_t e = cudaCreateTextureObject(&t, &r, &d, nullptr);
  (void)cudaGetLastError();
  return cudaGetErrorName(e);
}

int main() {
  CHECK(cudaMalloc(&buffer, 1 << 16));
  const char* modes[] = {"wrap", "clamp", "mirror", "border"};
  cudaArray_t a1 = array(13, 0, 0, 0, some), a2 = array(11, 6, 0, cudaArrayTextureGather, some), a3 = array(5, 4, 3, 0, some);
  char name[80];
  for (int mode = 0; mode < 4; ++mode)
    for (int linear = 0; linear < 2; ++linear)
      for (int normalized = 0; normalized < 2; ++normalized) {
        auto m = cudaTextureAddressMode(mode);
        auto f = cudaTextureFilterMode(linear);
        auto e = cudaReadModeElementType;
        snprintf(name, sizeof name, "%s %s %s", modes[mode], linear ? "linear" : "point", normalized ? "normalized" : "texels");
        fetch1<<<1, kPoints>>>(make(of(a1), m, f, e, normalized), 13, normalized, buffer);
        show((std::string("1d ") + name).c_str(), kPoints);
        fetch2<<<1, kPoints>>>(make(of(a2), m, f, e, normalized), 11, 6, normalized, buffer);
        show((std::string("2d ") + name).c_str(), kPoints);
        fetch3<<<1, kPoints>>>(make(of(a3), m, f, e, normalized), 5, 4, 3, normalized, buffer);
        show((std::string("3d ") + name).c_str(), kPoints);
        if (!linear) {
          gather<<<1, kPoints>>>(make(of(a2), m, f, e, normalized), 11, 6, normalized, (float4*)buffer);
          show((std::string("gather ") + name).c_str(), 4 * kPoints);
        }
      }
  cudaArray_t al = array(6, 5, 3, cudaArrayLayered, some);
  fetch_layered<<<1, kPoints>>>(make(of(al), cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, false), 6, 5, buffer);
  show("layered", kPoints);
  cudaArray_t ramp = array<float>(9, 0, 0, 0, [](int i) { return float(i); });
  grades<<<16, 64>>>(make(of(ramp), cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, false), buffer);
  show("steps", 1024);
  auto norm = cudaReadModeNormalizedFloat;
  auto whole = cudaReadModeElementType;
  cudaArray_t b = array(9, 7, 0, 0, byte_), s = array(9, 7, 0, 0, shorts), c = array(9, 7, 0, 0, small), v = array(9, 7, 0, 0, four);
  cudaArray_t h = array(9, 7, 0, 0, half_);
  for (int linear = 0; linear < 2; ++linear) {
    auto f = cudaTextureFilterMode(linear);
    fetch2<<<1, kPoints>>>(make(of(b), cudaAddressModeBorder, f, norm, false), 9, 7, false, buffer);
    show("u8 normalized", kPoints);
    fetch_vector<float2><<<1, kPoints>>>(make(of(s), cudaAddressModeBorder, f, norm, false), 9, 7, (float2*)buffer);
    show("s16x2 normalized", 2 * kPoints);
    fetch2<<<1, kPoints>>>(make(of(c), cudaAddressModeClamp, f, norm, false), 9, 7, false, buffer);
    show("s8 normalized", kPoints);
    fetch_vector<float4><<<1, kPoints>>>(make(of(v), cudaAddressModeClamp, f, norm, false), 9, 7, (float4*)buffer);
    show("u8x4 normalized", 4 * kPoints);
    fetch2<<<1, kPoints>>>(make(of(h), cudaAddressModeClamp, f, whole, false), 9, 7, false, buffer);
    show("half", kPoints);
  }
  fetch_vector<uchar4><<<1, kPoints>>>(make(of(v), cudaAddressModeBorder, cudaFilterModePoint, whole, false), 9, 7, (uchar4*)buffer);
  show("u8x4", kPoints);
  fetch_vector<short2><<<1, kPoints>>>(make(of(s), cudaAddressModeBorder, cudaFilterModePoint, whole, false), 9, 7, (short2*)buffer);
  show("s16x2", kPoints);

  // Plain memory, and rows of plain memory.
  float* plain;
  size_t pitch;
  std::vector<float> data(40 * 6);
  for (int i = 0; i < 240; ++i) data[i] = some(i);
  CHECK(cudaMalloc(&plain, 160));
  CHECK(cudaMemcpy(plain, data.data(), 160, cudaMemcpyHostToDevice));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeLinear;
  r.res.linear.devPtr = plain;
  r.res.linear.desc = cudaCreateChannelDesc<float>();
  r.res.linear.sizeInBytes = 160;
  fetch_plain<<<1, kPoints>>>(make(r, cudaAddressModeClamp, cudaFilterModePoint, whole, false), buffer);
  show("plain", kPoints);
  CHECK(cudaMallocPitch(&plain, &pitch, 40 * 4, 6));
  CHECK(cudaMemcpy2D(plain, pitch, data.data(), 160, 160, 6, cudaMemcpyHostToDevice));
  cudaResourceDesc q = {};
  q.resType = cudaResourceTypePitch2D;
  q.res.pitch2D.devPtr = plain;
  q.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  q.res.pitch2D.width = 40;
  q.res.pitch2D.height = 6;
  q.res.pitch2D.pitchInBytes = pitch;
  for (int linear = 0; linear < 2; ++linear) {
    fetch2<<<1, kPoints>>>(make(q, cudaAddressModeClamp, cudaTextureFilterMode(linear), whole, true), 40, 6, true, buffer);
    show("rows", kPoints);
  }

  // What is refused.
  printf("integers linear: %s\n", error(of(b), cudaFilterModeLinear, whole));
  cudaArray_t wide = array<unsigned>(4, 4, 0, 0, [](int i) { return unsigned(i); });
  printf("32 bits normalized: %s\n", error(of(wide), cudaFilterModePoint, norm));
  r.res.linear.sizeInBytes = 0;
  printf("empty: %s\n", error(r, cudaFilterModePoint, whole));
  r.res.linear.sizeInBytes = 160;
  r.res.linear.devPtr = (char*)plain + 4;
  printf("crooked: %s\n", error(r, cudaFilterModePoint, whole));
  r.res.linear.devPtr = nullptr;
  printf("null: %s\n", error(r, cudaFilterModePoint, whole));
  q.res.pitch2D.pitchInBytes = 161;
  printf("pitch: %s\n", error(q, cudaFilterModePoint, whole));
  cudaChannelFormatDesc three = {8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t none;
  printf("three channels: %s\n", cudaGetErrorName(cudaMallocArray(&none, &three, 4, 4)));
  printf("no width: %s\n", cudaGetErrorName(cudaMallocArray(&none, &q.res.pitch2D.desc, 0, 4)));
  printf("too much: %s\n", cudaGetErrorName(cudaMemcpy2DToArray(b, 0, 0, data.data(), 9, 9, 8, cudaMemcpyHostToDevice)));
  printf("destroyed: %s\n", cudaGetErrorName(cudaDestroyTextureObject(12345)));
  cudaSurfaceObject_t surface;
  cudaResourceDesc br = of(b);
  printf("no surface: %s\n", cudaGetErrorName(cudaCreateSurfaceObject(&surface, &br)));
}
