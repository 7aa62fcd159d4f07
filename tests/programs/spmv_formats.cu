// Sparse matrix times vector in four formats: CSR by a thread and by a warp a row, ELL, and COO with atomics.
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

namespace sparse {

struct Csr { int rows; const int *offsets, *columns; const double* values; };
struct Ell { int rows, width; const int* columns; const double* values; };  // column-major, -1: no entry
struct Coo { int entries; const int *rows, *columns; const double* values; };

__global__ void csr_scalar(Csr a, const double* x, double* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  double sum = 0;
  for (int e = a.offsets[row]; e < a.offsets[row + 1]; ++e) sum += a.values[e] * x[a.columns[e]];
  y[row] = sum;
}

__global__ void csr_vector(Csr a, const double* x, double* y) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= a.rows) return;
  double sum = 0;
  for (int e = a.offsets[row] + lane; e < a.offsets[row + 1]; e += 32) sum += a.values[e] * x[a.columns[e]];
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (lane == 0) y[row] = sum;
}

__global__ void ell(Ell a, const double* x, double* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  double sum = 0;
  for (int k = 0; k < a.width; ++k) {
    int column = a.columns[k * a.rows + row];
    if (column >= 0) sum += a.values[k * a.rows + row] * __ldg(&x[column]);
  }
  y[row] = sum;
}

__global__ void coo(Coo a, const double* x, double* y) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e < a.entries) atomicAdd(&y[a.rows[e]], a.values[e] * x[a.columns[e]]);
}

}  // namespace sparse

template <class T>
T* upload(const std::vector<T>& v) {
  T* p;
  if (cudaMalloc(&p, v.size() * sizeof(T)) || cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice)) exit(2);
  return p;
}

int main() {
  const int n = 500;
  std::mt19937_64 random(11);
  std::vector<std::map<int, double>> matrix(n);
  for (int row = 0; row < n; ++row) {
    int entries = row == 77 ? 200 : row % 9;  // one long row, some empty ones
    while (static_cast<int>(matrix[row].size()) < entries) matrix[row][random() % n] = static_cast<int>(random() % 2001) / 64.0 - 15;
  }
  std::vector<double> x(n), want(n, 0.0);
  for (double& v : x) v = static_cast<int>(random() % 201) / 8.0 - 12;  // all sums are exact

  std::vector<int> offsets{0}, columns, rows, ell_columns(n * 200, -1);
  std::vector<double> values, ell_values(n * 200, std::nan(""));
  for (int row = 0; row < n; ++row) {
    int k = 0;
    for (auto [column, value] : matrix[row]) {
      rows.push_back(row), columns.push_back(column), values.push_back(value);
      ell_columns[k * n + row] = column, ell_values[k * n + row] = value, ++k;
      want[row] += value * x[column];
    }
    offsets.push_back(static_cast<int>(columns.size()));
  }
  const int entries = offsets.back();
  sparse::Csr csr{n, upload(offsets), upload(columns), upload(values)};
  sparse::Ell ell{n, 200, upload(ell_columns), upload(ell_values)};
  sparse::Coo coo{entries, upload(rows), csr.columns, csr.values};
  double *dx = upload(x), *dy = upload(want);

  for (int format = 0; format < 4; ++format) {
    cudaMemset(dy, 0, n * sizeof(double));
    switch (format) {
      case 0: sparse::csr_scalar<<<(n + 63) / 64, 64>>>(csr, dx, dy); break;
      case 1: sparse::csr_vector<<<(n + 3) / 4, 128>>>(csr, dx, dy); break;
      case 2: sparse::ell<<<(n + 63) / 64, 64>>>(ell, dx, dy); break;
      case 3: sparse::coo<<<(entries + 255) / 256, 256>>>(coo, dx, dy); break;
    }
    std::vector<double> got(n);
    if (auto e = cudaMemcpy(got.data(), dy, n * sizeof(double), cudaMemcpyDeviceToHost)) return std::puts(cudaGetErrorString(e)), 2;
    if (got != want) return std::printf("FAIL: format %d\n", format), 1;
  }
  std::printf("PASS: %d entries in 4 formats\n", entries);
}
