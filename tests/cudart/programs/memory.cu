// Copies and fills in all shapes, between all kinds of memory.
#include <cstring>
#include <vector>

#include "check.h"

__global__ void add(int* p, int n, int v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += v;
}
__global__ void sum_rows(const char* p, size_t pitch, int width, int height, int* out) {
  int s = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) s += ((const unsigned char*)(p + y * pitch))[x];
  *out = s;
}

int main() {
  std::vector<int> h(1000), g(1000, -1);
  for (int i = 0; i < 1000; ++i) h[i] = i;
  int *a, *b, *one;
  CHECK(cudaMalloc(&a, 4000));
  CHECK(cudaMalloc(&b, 4000));
  CHECK(cudaMalloc(&one, 4));
  CHECK(cudaMemcpy(a, h.data(), 4000, cudaMemcpyHostToDevice));
  add<<<4, 256>>>(a, 1000, 5);
  CHECK(cudaMemcpy(b + 500, a, 2000, cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy(b, a + 500, 2000, cudaMemcpyDefault));
  CHECK(cudaMemcpy(g.data(), b, 4000, cudaMemcpyDeviceToHost));
  printf("%d %d %d %d\n", g[0], g[499], g[500], g[999]);
  CHECK(cudaMemset((char*)a + 4, 0x11, 8));
  CHECK(cudaMemcpy(g.data(), a, 16, cudaMemcpyDefault));
  printf("%d %x %x %d\n", g[0], g[1], g[2], g[3]);

  char *pitched, *rows = (char*)malloc(300);
  size_t pitch;
  CHECK(cudaMallocPitch(&pitched, &pitch, 30, 10));
  CHECK(cudaMemset2D(pitched, pitch, 1, 30, 10));
  for (int i = 0; i < 300; ++i) rows[i] = i % 7;
  CHECK(cudaMemcpy2D(pitched + pitch + 3, pitch, rows, 30, 20, 5, cudaMemcpyHostToDevice));
  sum_rows<<<1, 1>>>(pitched, pitch, 30, 10, one);
  int s, expected = 200;
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 20; ++x) expected += rows[30 * y + x];
  CHECK(cudaMemcpy(&s, one, 4, cudaMemcpyDeviceToHost));
  printf("2D %s\n", s == expected ? "right" : "wrong");

  cudaPitchedPtr box;
  CHECK(cudaMalloc3D(&box, make_cudaExtent(12, 5, 4)));
  CHECK(cudaMemset3D(box, 2, make_cudaExtent(12, 5, 4)));
  std::vector<char> whole(12 * 5 * 4);
  cudaMemcpy3DParms p{};
  p.srcPtr = box;
  p.dstPtr = make_cudaPitchedPtr(whole.data(), 12, 12, 5);
  p.extent = make_cudaExtent(12, 5, 4);
  p.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&p));
  int total = 0;
  for (char c : whole) total += c;
  printf("3D %d\n", total);

  size_t free, all;
  CHECK(cudaMemGetInfo(&free, &all));
  printf("memory %s\n", free > 0 && free < all ? "in use" : "?");
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(one));
  CHECK(cudaFree(pitched));
  CHECK(cudaFree(box.ptr));
}
// output:
// 505 1004 5 504
// 5 11111111 11111111 8
// 2D right
// 3D 480
// memory in use
