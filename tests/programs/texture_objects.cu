// Texture and surface objects: an image scaled and turned with linear filtering, addressing at the edges, normalised
// coordinates and reads, linear memory and pitched memory as textures, volumes, layers, and a surface written by a kernel.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { std::printf("FAIL: line %d: %s\n", __LINE__, cudaGetErrorName(e_)); std::exit(1); } } while (0)
#define EXPECT(x) do { if (!(x)) { std::printf("FAIL: line %d: %s\n", __LINE__, #x); std::exit(1); } } while (0)

__global__ void resample(cudaTextureObject_t image, float* out, int width, int height, float sin_a, float cos_a, float zoom) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float u = (x + 0.5f - width / 2) / zoom, v = (y + 0.5f - height / 2) / zoom;
  out[y * width + x] = tex2D<float>(image, cos_a * u - sin_a * v + width / 2, sin_a * u + cos_a * v + height / 2);
}

__global__ void along(cudaTextureObject_t line, float* out, int n, float start, float step) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex1D<float>(line, start + i * step);
}

__global__ void fetch(cudaTextureObject_t linear, cudaTextureObject_t pitched, const int* index, int4* out) {
  int i = threadIdx.x;
  int2 pair = tex1Dfetch<int2>(linear, index[i]);
  uchar4 bytes = tex2D<uchar4>(pitched, i % 5, i / 5);
  out[i] = make_int4(pair.x, pair.y, bytes.x + bytes.y, bytes.z * 1000 + bytes.w);
}

__global__ void normalised(cudaTextureObject_t bytes, float4* out) {
  out[threadIdx.x] = tex2D<float4>(bytes, (threadIdx.x + 0.5f) / 4, 0.25f);
}

__global__ void volume(cudaTextureObject_t cube, cudaTextureObject_t layers, float* out) {
  int i = threadIdx.x;
  out[i] = tex3D<float>(cube, i + 0.5f, i + 0.5f, i + 1.0f);
  out[8 + i] = tex2DLayered<float>(layers, i + 0.5f, 0.5f, i % 3);
}

__global__ void paint(cudaSurfaceObject_t surface, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  short before;
  surf2Dread(&before, surface, x * sizeof(short), y);
  surf2Dwrite(static_cast<short>(before + x * y), surface, x * sizeof(short), y);
}

cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureAddressMode address, cudaTextureFilterMode filter, bool normalised = false) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc texture = {};
  for (auto& mode : texture.addressMode) mode = address;
  texture.filterMode = filter;
  texture.readMode = cudaReadModeElementType;
  texture.normalizedCoords = normalised;
  cudaTextureObject_t object = 0;
  OK(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
  return object;
}

int main() {
  float* d_out;
  OK(cudaMalloc(&d_out, 1 << 16));
  {  // A plane: linear filtering of it is exact, wherever one looks.
    const int width = 40, height = 28;
    std::vector<float> image(width * height), out(width * height);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) image[y * width + x] = 3 * x - 2 * y;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    OK(cudaMallocArray(&array, &format, width, height));
    OK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice));
    cudaTextureObject_t object = texture_of(array, cudaAddressModeClamp, cudaFilterModeLinear);
    const float angle = 0.5f, zoom = 1.25f;
    resample<<<dim3(3, 4), dim3(16, 8)>>>(object, d_out, width, height, sinf(angle), cosf(angle), zoom);
    OK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        double u = (x + 0.5 - width / 2) / zoom, v = (y + 0.5 - height / 2) / zoom;
        double px = cos(angle) * u - sin(angle) * v + width / 2 - 0.5, py = sin(angle) * u + cos(angle) * v + height / 2 - 0.5;
        px = fmin(fmax(px, 0.0), width - 1.0), py = fmin(fmax(py, 0.0), height - 1.0);
        EXPECT(fabs(out[y * width + x] - (3 * px - 2 * py)) < 5.0 / 256 + 1e-4);  // weights have eight bits
      }
    OK(cudaDestroyTextureObject(object));
    OK(cudaFreeArray(array));
  }
  {  // What lies beyond the ends: four rules.
    const float values[4] = {10, 20, 30, 40};
    float out[12];
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    OK(cudaMallocArray(&array, &format, 4));
    OK(cudaMemcpy2DToArray(array, 0, 0, values, sizeof values, sizeof values, 1, cudaMemcpyHostToDevice));
    const struct { cudaTextureAddressMode mode; bool normalised; float want[12]; } rules[] = {
        {cudaAddressModeClamp, false, {10, 10, 10, 10, 10, 20, 30, 40, 40, 40, 40, 40}},
        {cudaAddressModeBorder, false, {0, 0, 0, 0, 10, 20, 30, 40, 0, 0, 0, 0}},
        {cudaAddressModeWrap, true, {10, 20, 30, 40, 10, 20, 30, 40, 10, 20, 30, 40}},
        {cudaAddressModeMirror, true, {40, 30, 20, 10, 10, 20, 30, 40, 40, 30, 20, 10}},
    };
    for (auto& rule : rules) {
      cudaTextureObject_t object = texture_of(array, rule.mode, cudaFilterModePoint, rule.normalised);
      const float unit = rule.normalised ? 0.25f : 1.0f;
      along<<<1, 32>>>(object, d_out, 12, -3.5f * unit, unit);
      OK(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
      for (int i = 0; i < 12; ++i) EXPECT(out[i] == rule.want[i]);
      OK(cudaDestroyTextureObject(object));
    }
    OK(cudaFreeArray(array));
  }
  {  // Ordinary memory as textures.
    int2 pairs[100];
    uchar4 bytes[5 * 6];
    int index[30];
    for (int i = 0; i < 100; ++i) pairs[i] = make_int2(i * i, -i);
    for (int i = 0; i < 30; ++i) bytes[i] = make_uchar4(i, 2 * i, 3 * i, 255 - i), index[i] = i * 37 % 100;
    int2* d_pairs;
    uchar4* d_bytes;
    int* d_index;
    int4 *d_got, got[30];
    size_t pitch;
    OK(cudaMalloc(&d_pairs, sizeof pairs));
    OK(cudaMallocPitch(&d_bytes, &pitch, 5 * sizeof(uchar4), 6));
    OK(cudaMalloc(&d_index, sizeof index));
    OK(cudaMalloc(&d_got, sizeof got));
    OK(cudaMemcpy(d_pairs, pairs, sizeof pairs, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(d_bytes, pitch, bytes, 5 * sizeof(uchar4), 5 * sizeof(uchar4), 6, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(d_index, index, sizeof index, cudaMemcpyHostToDevice));
    cudaResourceDesc linear = {}, pitched = {};
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = d_pairs;
    linear.res.linear.desc = cudaCreateChannelDesc<int2>();
    linear.res.linear.sizeInBytes = sizeof pairs;
    pitched.resType = cudaResourceTypePitch2D;
    pitched.res.pitch2D = {d_bytes, cudaCreateChannelDesc<uchar4>(), 5, 6, pitch};
    cudaTextureDesc plain = {};
    plain.addressMode[0] = plain.addressMode[1] = cudaAddressModeClamp;
    plain.readMode = cudaReadModeElementType;
    cudaTextureObject_t t_linear, t_pitched, t_normalised;
    OK(cudaCreateTextureObject(&t_linear, &linear, &plain, nullptr));
    OK(cudaCreateTextureObject(&t_pitched, &pitched, &plain, nullptr));
    fetch<<<1, 30>>>(t_linear, t_pitched, d_index, d_got);
    OK(cudaMemcpy(got, d_got, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 30; ++i) {
      EXPECT(got[i].x == index[i] * index[i] && got[i].y == -index[i]);
      EXPECT(got[i].z == 3 * i && got[i].w == 3 * i * 1000 + 255 - i);
    }
    // Bytes read as numbers from 0 to 1.
    plain.readMode = cudaReadModeNormalizedFloat;
    plain.normalizedCoords = 1;
    pitched.res.pitch2D.width = 4;
    OK(cudaCreateTextureObject(&t_normalised, &pitched, &plain, nullptr));
    float4 *d_numbers = reinterpret_cast<float4*>(d_out), numbers[4];
    normalised<<<1, 4>>>(t_normalised, d_numbers);
    OK(cudaMemcpy(numbers, d_numbers, sizeof numbers, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) {
      const uchar4 b = bytes[5 + i];  // 0.25 of six rows is in the second
      EXPECT(numbers[i].x == b.x / 255.0f && numbers[i].y == b.y / 255.0f && numbers[i].w == b.w / 255.0f);
    }
    for (cudaTextureObject_t t : {t_linear, t_pitched, t_normalised}) OK(cudaDestroyTextureObject(t));
    OK(cudaFree(d_pairs));
    OK(cudaFree(d_bytes));
    OK(cudaFree(d_index));
    OK(cudaFree(d_got));
  }
  {  // A volume and layers.
    const int n = 8;
    std::vector<float> cube(n * n * n), layers(n * 2 * 3);
    for (int i = 0; i < n * n * n; ++i) cube[i] = i % n + 10 * (i / n % n) + 100 * (i / (n * n));
    for (size_t i = 0; i < layers.size(); ++i) layers[i] = i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array, layered;
    OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(n, n, n)));
    OK(cudaMalloc3DArray(&layered, &format, make_cudaExtent(n, 2, 3), cudaArrayLayered));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(cube.data(), n * sizeof(float), n, n);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(n, n, n);
    copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&copy));
    copy.srcPtr = make_cudaPitchedPtr(layers.data(), n * sizeof(float), n, 2);
    copy.dstArray = layered;
    copy.extent = make_cudaExtent(n, 2, 3);
    OK(cudaMemcpy3D(&copy));
    cudaTextureObject_t t_cube = texture_of(array, cudaAddressModeClamp, cudaFilterModeLinear);
    cudaTextureObject_t t_layers = texture_of(layered, cudaAddressModeClamp, cudaFilterModePoint);
    volume<<<1, n>>>(t_cube, t_layers, d_out);
    float out[2 * n];
    OK(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) {
      EXPECT(out[i] == (i < n - 1 ? 111 * i + 50 : 777));  // half-way to the next slice
      EXPECT(out[n + i] == i % 3 * 2 * n + i);
    }
    OK(cudaDestroyTextureObject(t_cube));
    OK(cudaDestroyTextureObject(t_layers));
    OK(cudaFreeArray(array));
    OK(cudaFreeArray(layered));
  }
  {  // A surface.
    const int width = 30, height = 9;
    std::vector<short> image(width * height), out(width * height);
    for (int i = 0; i < width * height; ++i) image[i] = 7 * i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<short>();
    cudaArray_t array;
    OK(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
    OK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * 2, width * 2, height, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    OK(cudaCreateSurfaceObject(&surface, &resource));
    paint<<<dim3(2, 3), dim3(16, 4)>>>(surface, width, height);
    OK(cudaMemcpy2DFromArray(out.data(), width * 2, array, 0, 0, width * 2, height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) EXPECT(out[y * width + x] == image[y * width + x] + x * y);
    OK(cudaDestroySurfaceObject(surface));
    OK(cudaFreeArray(array));
  }
  OK(cudaFree(d_out));
  std::puts("PASS");
}
