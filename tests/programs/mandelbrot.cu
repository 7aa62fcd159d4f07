// Course work: the Mandelbrot set as text.  Products and sums are rounded one by one, so that the picture is the same
// on every machine; the host computes it again to compare.
#include <cstdio>
#include <vector>

struct View { double x0, y0, dx, dy; int width, height, limit; };

__host__ __device__ inline double times(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  volatile double r = a * b;
  return r;
#endif
}

__host__ __device__ int escape_time(const View& v, int px, int py) {
  double cx = v.x0 + times(v.dx, px), cy = v.y0 + times(v.dy, py), x = 0, y = 0;
  for (int i = 0; i < v.limit; ++i) {
    double xx = times(x, x), yy = times(y, y);
    if (xx + yy > 4) return i;
    y = times(2 * x, y) + cy;
    x = xx - yy + cx;
  }
  return v.limit;
}

__global__ void mandelbrot(View v, int* out) {
  for (int p = blockIdx.x * blockDim.x + threadIdx.x; p < v.width * v.height; p += gridDim.x * blockDim.x)
    out[p] = escape_time(v, p % v.width, p / v.width);
}

int main() {
  View v{-2.2, -1.2, 3.2 / 78, 2.4 / 30, 78, 31, 300};
  std::vector<int> counts(v.width * v.height);
  int* d;
  cudaMalloc(&d, counts.size() * sizeof(int));
  mandelbrot<<<7, 96>>>(v, d);
  if (cudaMemcpy(counts.data(), d, counts.size() * sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  int wrong = 0;
  for (int y = 0; y < v.height; ++y) {
    for (int x = 0; x < v.width; ++x) {
      int n = counts[y * v.width + x];
      wrong += n != escape_time(v, x, y);
      std::putchar(n == v.limit ? '@' : " .:-=+*%#"[n % 9]);
    }
    std::putchar('\n');
  }
  cudaFree(d);
  if (wrong) std::printf("FAIL: %d pixels differ\n", wrong);
  return wrong != 0;
}
