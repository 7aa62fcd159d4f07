// Surfaces: bytes of arrays, read and written by kernels; textures of the same arrays see them.
#include <cstdio>

#include <cuda_runtime.h>

#include "check.h"

__global__ void checker(cudaSurfaceObject_t s, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) surf2Dwrite(make_uchar4(x, y, x ^ y, 255), s, x * 4, y);
}
__global__ void flip(cudaTextureObject_t t, cudaSurfaceObject_t to, int w, int h) {
  int x = threadIdx.x, y = blockIdx.x;
  uchar4 v = tex2D<uchar4>(t, w - 1 - x + 0.5f, y + 0.5f);
  surf2Dwrite(v, to, x * 4, y);
}
__global__ void modes(cudaSurfaceObject_t s, uchar4* out) {
  out[0] = surf2Dread<uchar4>(s, -4, 1, cudaBoundaryModeClamp);
  out[1] = surf2Dread<uchar4>(s, 400, 100, cudaBoundaryModeClamp);
  out[2] = surf2Dread<uchar4>(s, -4, 1, cudaBoundaryModeZero);
  surf2Dwrite(make_uchar4(1, 1, 1, 1), s, 400, 0, cudaBoundaryModeZero);
}
__global__ void volume(cudaSurfaceObject_t s, cudaSurfaceObject_t layers) {
  int i = threadIdx.x;
  float v = i * 1.5f;
  surf3Dwrite(v, s, (i % 2) * 4, i / 2 % 2, i / 4);
  double2 pair = make_double2(i, -i);
  (void)pair;
  surf2DLayeredwrite(make_float4(v, v + 1, v + 2, v + 3), layers, 0, i % 2, i / 2 % 3);
}

static cudaSurfaceObject_t surface(cudaArray_t a) {
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  cudaSurfaceObject_t s;
  CHECK(cudaCreateSurfaceObject(&s, &r));
  return s;
}

int main() {
  const int w = 13, h = 7;
  cudaChannelFormatDesc f = cudaCreateChannelDesc<uchar4>();
  cudaArray_t a, b;
  CHECK(cudaMallocArray(&a, &f, w, h, cudaArraySurfaceLoadStore));
  CHECK(cudaMallocArray(&b, &f, w, h, cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t sa = surface(a), sb = surface(b);
  checker<<<dim3(2, 2), dim3(8, 4)>>>(sa, w, h);
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  cudaTextureDesc d = {};
  cudaTextureObject_t t;
  CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  flip<<<h, w>>>(t, sb, w, h);
  uchar4 back[h][w];
  CHECK(cudaMemcpy2DFromArray(back, sizeof back[0], b, 0, 0, sizeof back[0], h, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) wrong += back[y][x].x != w - 1 - x || back[y][x].y != y || back[y][x].z != ((w - 1 - x) ^ y);
  printf("flipped: %d wrong\n", wrong);
  uchar4* out;
  CHECK(cudaMallocManaged(&out, 12));
  modes<<<1, 1>>>(sa, out);
  CHECK(cudaDeviceSynchronize());
  printf("modes: %d,%d %d,%d %d,%d\n", out[0].x, out[0].y, out[1].x, out[1].y, out[2].x, out[2].w);
  // A part of an array to another, and one that goes on in the next row.
  CHECK(cudaMemcpy2DArrayToArray(b, 8, 1, a, 0, 0, 12, 2, cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpyFromArray(back, b, 44, 1, 16, cudaMemcpyDeviceToHost));
  printf("run on: %d,%d %d,%d %d,%d\n", back[0][0].x, back[0][0].y, back[0][2].x, back[0][2].y, back[0][3].x, back[0][3].y);
  cudaArray_t v, l;
  cudaChannelFormatDesc one = cudaCreateChannelDesc<float>(), four = cudaCreateChannelDesc<float4>();
  CHECK(cudaMalloc3DArray(&v, &one, make_cudaExtent(2, 2, 2), cudaArraySurfaceLoadStore));
  CHECK(cudaMalloc3DArray(&l, &four, make_cudaExtent(1, 2, 3), cudaArrayLayered | cudaArraySurfaceLoadStore));
  volume<<<1, 8>>>(surface(v), surface(l));
  float cube[8], layers[3][2][4];
  cudaMemcpy3DParms p = {};
  p.srcArray = v;
  p.dstPtr = make_cudaPitchedPtr(cube, 8, 2, 2);
  p.extent = make_cudaExtent(2, 2, 2);
  p.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&p));
  p.srcArray = l;
  p.dstPtr = make_cudaPitchedPtr(layers, 16, 1, 2);
  p.extent = make_cudaExtent(1, 2, 3);
  CHECK(cudaMemcpy3D(&p));
  printf("volume: %g %g %g, layers: %g %g\n", cube[1], cube[2], cube[7], layers[2][1][3], layers[1][0][1]);
  CHECK(cudaDestroyTextureObject(t));
  CHECK(cudaDestroySurfaceObject(sa));
  CHECK(cudaFreeArray(a));
  printf("gone: %s\n", cudaGetErrorName(cudaFreeArray(a)));
}
// output:
// flipped: 0 wrong
// modes: 0,1 12,6 0,0
// run on: 1,1 12,2 11,2
// volume: 1.5 3 10.5, layers: 10.5 4
// gone: cudaErrorInvalidResourceHandle
