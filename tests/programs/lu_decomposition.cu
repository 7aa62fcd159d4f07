// LU decomposition with partial pivoting in double precision, and triangular solves; batches of small matrices by one
// block each, and one larger matrix column by column.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define CHECK(x) do { cudaError_t err__ = (x); if (err__ != cudaSuccess) { printf("FAIL: line %d: %s\n", __LINE__, cudaGetErrorName(err__)); exit(1); } } while (0)

template <int N>
__global__ void batched_solve(double *matrices, double *vectors, int *singular)
{
    __shared__ double a[N][N + 1];  // the right-hand side is the last column
    __shared__ int pivot;
    const int row = threadIdx.x;
    double *A = matrices + blockIdx.x * N * N, *b = vectors + blockIdx.x * N;
    for (int i = threadIdx.x; i < N * N; i += N) a[i / N][i % N] = A[i];
    a[row][N] = b[row];
    for (int k = 0; k < N; k++) {
        __syncthreads();
        if (row == 0) {
            pivot = k;
            for (int i = k + 1; i < N; i++)
                if (fabs(a[i][k]) > fabs(a[pivot][k])) pivot = i;
        }
        __syncthreads();
        if (a[pivot][k] == 0.0) {  // the same for all threads
            if (row == 0) singular[blockIdx.x] = 1;
            return;
        }
        if (pivot != k) {
            // Each thread swaps one column.
            for (int j = row; j <= N; j += N) { double t = a[k][j]; a[k][j] = a[pivot][j]; a[pivot][j] = t; }
        }
        __syncthreads();
        if (row != k) {
            double factor = a[row][k] / a[k][k];
            for (int j = k; j <= N; j++) a[row][j] -= factor * a[k][j];
        }
    }
    __syncthreads();
    b[row] = a[row][N] / a[row][row];
}

__global__ void find_pivot(const double *A, int n, int k, int *pivots)
{
    __shared__ double best[128];
    __shared__ int where[128];
    double mine = -1;
    int row = k;
    for (int i = k + threadIdx.x; i < n; i += blockDim.x)
        if (fabs(A[i * n + k]) > mine) { mine = fabs(A[i * n + k]); row = i; }
    best[threadIdx.x] = mine;
    where[threadIdx.x] = row;
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        __syncthreads();
        if (threadIdx.x < d && best[threadIdx.x + d] > best[threadIdx.x]) {
            best[threadIdx.x] = best[threadIdx.x + d];
            where[threadIdx.x] = where[threadIdx.x + d];
        }
    }
    if (threadIdx.x == 0) pivots[k] = where[0];
}

__global__ void swap_rows(double *A, int n, int k, const int *pivots)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, p = pivots[k];
    if (j < n && p != k) { double t = A[k * n + j]; A[k * n + j] = A[p * n + j]; A[p * n + j] = t; }
}

__global__ void scale(double *A, int n, int k)
{
    int i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) A[i * n + k] /= A[k * n + k];
}

__global__ void update(double *A, int n, int k)
{
    int j = k + 1 + blockIdx.x * blockDim.x + threadIdx.x, i = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) A[i * n + j] -= A[i * n + k] * A[k * n + j];
}

static double uniform() { return rand() / (double)RAND_MAX * 2 - 1; }

int main()
{
    srand(3);
    {
        const int N = 16, batch = 20, broken = 13;
        std::vector<double> A(N * N * batch), x(N * batch), b(N * batch, 0.0), got(N * batch);
        for (double &v : A) v = uniform();
        for (double &v : x) v = uniform();
        for (int i = 0; i < N; i++) A[broken * N * N + i * N + 4] = 0;
        for (int m = 0; m < batch; m++)
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++) b[m * N + i] += A[m * N * N + i * N + j] * x[m * N + j];
        double *dA, *db;
        int *dsingular, singular[batch];
        CHECK(cudaMalloc(&dA, A.size() * sizeof(double)));
        CHECK(cudaMalloc(&db, b.size() * sizeof(double)));
        CHECK(cudaMalloc(&dsingular, sizeof(singular)));
        CHECK(cudaMemcpy(dA, A.data(), A.size() * sizeof(double), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof(double), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(dsingular, 0, sizeof(singular)));
        batched_solve<N><<<batch, N>>>(dA, db, dsingular);
        CHECK(cudaMemcpy(got.data(), db, got.size() * sizeof(double), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(singular, dsingular, sizeof(singular), cudaMemcpyDeviceToHost));
        for (int m = 0; m < batch; m++) {
            if (singular[m] != (m == broken)) { printf("FAIL: matrix %d\n", m); return 1; }
            for (int i = 0; i < N && m != broken; i++)
                if (fabs(got[m * N + i] - x[m * N + i]) > 1e-10) { printf("FAIL: x[%d] of matrix %d\n", i, m); return 1; }
        }
        CHECK(cudaFree(dA)); CHECK(cudaFree(db)); CHECK(cudaFree(dsingular));
    }
    const int n = 60;
    std::vector<double> A(n * n), LU(n * n);
    std::vector<int> pivots(n);
    for (double &v : A) v = uniform();
    double *dA;
    int *dp;
    CHECK(cudaMalloc(&dA, n * n * sizeof(double)));
    CHECK(cudaMalloc(&dp, n * sizeof(int)));
    CHECK(cudaMemcpy(dA, A.data(), n * n * sizeof(double), cudaMemcpyHostToDevice));
    for (int k = 0; k < n; k++) {
        find_pivot<<<1, 128>>>(dA, n, k, dp);
        swap_rows<<<1, 64>>>(dA, n, k, dp);
        if (k + 1 < n) {
            scale<<<(n - k + 30) / 32, 32>>>(dA, n, k);
            update<<<dim3((n - k + 14) / 16, (n - k + 14) / 16), dim3(16, 16)>>>(dA, n, k);
        }
    }
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(LU.data(), dA, n * n * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(pivots.data(), dp, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++) { double t = A[k * n + j]; A[k * n + j] = A[pivots[k] * n + j]; A[pivots[k] * n + j] = t; }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k <= i && k <= j; k++) sum += (k == i ? 1.0 : LU[i * n + k]) * LU[k * n + j];
            if (fabs(sum - A[i * n + j]) > 1e-12) { printf("FAIL: PA - LU at (%d, %d)\n", i, j); return 1; }
            if (i > j && fabs(LU[i * n + j]) > 1 + 1e-15) { printf("FAIL: no pivoting at (%d, %d)\n", i, j); return 1; }
        }
    puts("PASS");
    return 0;
}
