// A small neural network trained by gradient descent: matrix products with and without transposition, activation and loss
// kernels, column sums, a fixed random start; it must learn to tell a point's quadrant.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define CHECK_CUDA(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(e)); exit(EXIT_FAILURE); } } while (0)

struct Matrix {
  int rows, cols;
  std::shared_ptr<float> data;
  Matrix(int rows, int cols) : rows(rows), cols(cols) {
    float* p;
    CHECK_CUDA(cudaMalloc(&p, rows * cols * sizeof(float)));
    data.reset(p, [](float* q) { cudaFree(q); });
  }
  float* get() const { return data.get(); }
  void set(const std::vector<float>& v) { CHECK_CUDA(cudaMemcpy(get(), v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice)); }
  std::vector<float> host() const {
    std::vector<float> v(rows * cols);
    CHECK_CUDA(cudaMemcpy(v.data(), get(), v.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return v;
  }
};

template <bool kTransposeA, bool kTransposeB>
__global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[16][17], tb[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int start = 0; start < k; start += 16) {
    const int ka = start + tx, kb = start + ty;
    ta[ty][tx] = row < m && ka < k ? a[kTransposeA ? ka * m + row : row * k + ka] : 0;
    tb[ty][tx] = col < n && kb < k ? b[kTransposeB ? col * k + kb : kb * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) sum = fmaf(ta[ty][i], tb[i][tx], sum);
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
template <bool kTa, bool kTb> void multiply(const Matrix& a, const Matrix& b, Matrix& c) {
  const int k = kTa ? a.rows : a.cols;
  gemm<kTa, kTb><<<dim3((c.cols + 15) / 16, (c.rows + 15) / 16), dim3(16, 16)>>>(a.get(), b.get(), c.get(), c.rows, c.cols, k);
}

__global__ void bias_relu(float* x, const float* bias, int rows, int cols, bool relu) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  float v = x[i] + bias[i % cols];
  x[i] = relu ? fmaxf(v, 0.0f) : v;
}

// A warp a row: softmax, its gradient, and the loss.
__global__ void softmax_loss(const float* logits, const int* labels, float* gradient, float* loss, int rows, int cols) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float v = lane < cols ? logits[row * cols + lane] : -INFINITY, most = v;
  for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  float e = lane < cols ? __expf(v - most) : 0, sum = e;
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane < cols) {
    const bool hit = lane == labels[row];
    gradient[row * cols + lane] = (e / sum - hit) / rows;
    if (hit) atomicAdd(loss, (logf(sum) - (v - most)) / rows);
  }
}

__global__ void relu_backward(float* gradient, const float* activation, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && activation[i] <= 0) gradient[i] = 0;
}
__global__ void column_sums(const float* x, float* sums, int rows, int cols) {
  __shared__ float s[8][32];
  int col = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (col < cols)
    for (int r = threadIdx.y; r < rows; r += 8) sum += x[r * cols + col];
  s[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && col < cols) {
    for (int k = 1; k < 8; ++k) sum += s[k][threadIdx.x];
    sums[col] = sum;
  }
}
__global__ void descend(float* x, const float* gradient, float rate, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] -= rate * gradient[i];
}

int main() {
  const int samples = 200, hidden = 24, classes = 4;
  unsigned s = 5;
  auto uniform = [&] { return ((s = s * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1; };
  std::vector<float> points(samples * 2), start1(2 * hidden), start2(hidden * classes);
  std::vector<int> labels(samples);
  for (int i = 0; i < samples; ++i) {
    float x = uniform(), y = uniform();
    points[2 * i] = x, points[2 * i + 1] = y;
    labels[i] = (x > 0) + 2 * (y > 0);
  }
  for (float& w : start1) w = uniform();
  for (float& w : start2) w = 0.4f * uniform();
  Matrix x(samples, 2), w1(2, hidden), b1(1, hidden), w2(hidden, classes), b2(1, classes), h(samples, hidden), o(samples, classes);
  Matrix go(samples, classes), gh(samples, hidden), gw1(2, hidden), gb1(1, hidden), gw2(hidden, classes), gb2(1, classes), loss(1, 1);
  x.set(points), w1.set(start1), w2.set(start2), b1.set(std::vector<float>(hidden, 0.1f)), b2.set(std::vector<float>(classes));
  int* d_labels;
  CHECK_CUDA(cudaMalloc(&d_labels, samples * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(d_labels, labels.data(), samples * sizeof(int), cudaMemcpyHostToDevice));
  auto blocks = [](int n) { return (n + 127) / 128; };
  float first = 0, last = 0;
  for (int epoch = 0; epoch < 150; ++epoch) {
    multiply<false, false>(x, w1, h);
    bias_relu<<<blocks(samples * hidden), 128>>>(h.get(), b1.get(), samples, hidden, true);
    multiply<false, false>(h, w2, o);
    bias_relu<<<blocks(samples * classes), 128>>>(o.get(), b2.get(), samples, classes, false);
    CHECK_CUDA(cudaMemset(loss.get(), 0, sizeof(float)));
    softmax_loss<<<(samples + 3) / 4, 128>>>(o.get(), d_labels, go.get(), loss.get(), samples, classes);
    multiply<true, false>(h, go, gw2);
    multiply<false, true>(go, w2, gh);
    relu_backward<<<blocks(samples * hidden), 128>>>(gh.get(), h.get(), samples * hidden);
    multiply<true, false>(x, gh, gw1);
    column_sums<<<1, dim3(32, 8)>>>(go.get(), gb2.get(), samples, classes);
    column_sums<<<1, dim3(32, 8)>>>(gh.get(), gb1.get(), samples, hidden);
    for (auto [p, g] : {std::pair{&w1, &gw1}, {&b1, &gb1}, {&w2, &gw2}, {&b2, &gb2}})
      descend<<<blocks(p->rows * p->cols), 128>>>(p->get(), g->get(), 1.0f, p->rows * p->cols);
    CHECK_CUDA(cudaGetLastError());
    if (epoch == 0) first = loss.host()[0];
  }
  last = loss.host()[0];
  std::vector<float> out = o.host();
  int right = 0;
  for (int i = 0; i < samples; ++i) {
    int best = 0;
    for (int c = 1; c < classes; ++c) best = out[i * classes + c] > out[i * classes + best] ? c : best;
    right += best == labels[i];
  }
  bool good = std::fabs(first - 1.5f) < 0.5f && last < 0.25f && right > 0.95 * samples;
  if (!good) std::printf("loss %g to %g, %d of %d right\n", first, last, right, samples);
  std::puts(good ? "PASS" : "FAIL");
  return !good;
}
