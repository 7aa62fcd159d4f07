// Tridiagonal systems: Thomas' algorithm with a thread a system (interleaved in memory), and parallel cyclic reduction with a
// block a system; natural cubic splines as the use of it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

template <int N>
__global__ void thomas(const double *a, const double *b, const double *c, double *d, int systems)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    double cp[N];  // local memory
    double beta = b[s];
    cp[0] = c[s] / beta;
    d[s] /= beta;
    for (int i = 1; i < N; i++) {
        int k = i * systems + s;
        beta = b[k] - a[k] * cp[i - 1];
        cp[i] = c[k] / beta;
        d[k] = (d[k] - a[k] * d[k - systems]) / beta;
    }
    for (int i = N - 2; i >= 0; i--) d[i * systems + s] -= cp[i] * d[(i + 1) * systems + s];
}

__global__ void cyclicReduction(const double *a, const double *b, const double *c, double *d, int n, int systems)
{
    extern __shared__ double shared[];
    double *A = shared, *B = A + n, *C = B + n, *D = C + n;
    int i = threadIdx.x, k = i * systems + blockIdx.x;
    A[i] = a[k], B[i] = b[k], C[i] = c[k], D[i] = d[k];
    __syncthreads();
    for (int step = 1; step < n; step *= 2) {
        double newA = 0, newB = B[i], newC = 0, newD = D[i];
        if (i >= step) {
            double alpha = -A[i] / B[i - step];
            newA = alpha * A[i - step];
            newB += alpha * C[i - step];
            newD += alpha * D[i - step];
        }
        if (i + step < n) {
            double gamma = -C[i] / B[i + step];
            newC = gamma * C[i + step];
            newB += gamma * A[i + step];
            newD += gamma * D[i + step];
        }
        __syncthreads();
        A[i] = newA, B[i] = newB, C[i] = newC, D[i] = newD;
        __syncthreads();
    }
    d[k] = D[i] / B[i];
}

int main()
{
    const int N = 50, systems = 70, total = N * systems;
    std::vector<double> a(total), b(total), c(total), d(total), x(total);
    srand(9);
    for (int s = 0; s < systems; s++)
        for (int i = 0; i < N; i++) {
            int k = i * systems + s;
            a[k] = i ? rand() / (double)RAND_MAX - 0.5 : 0;
            c[k] = i < N - 1 ? rand() / (double)RAND_MAX - 0.5 : 0;
            b[k] = 1.5 + rand() / (double)RAND_MAX;
            x[k] = sin(0.1 * k);
        }
    for (int s = 0; s < systems; s++)
        for (int i = 0; i < N; i++) {
            int k = i * systems + s;
            d[k] = b[k] * x[k] + (i ? a[k] * x[k - systems] : 0) + (i < N - 1 ? c[k] * x[k + systems] : 0);
        }
    double *da, *db, *dc, *dd;
    size_t bytes = total * sizeof(double);
    cudaMalloc(&da, bytes); cudaMalloc(&db, bytes); cudaMalloc(&dc, bytes); cudaMalloc(&dd, bytes);
    cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(dc, c.data(), bytes, cudaMemcpyHostToDevice);
    for (int method = 0; method < 2; method++) {
        cudaMemcpy(dd, d.data(), bytes, cudaMemcpyHostToDevice);
        if (method == 0) thomas<N><<<(systems + 31) / 32, 32>>>(da, db, dc, dd, systems);
        else cyclicReduction<<<systems, N, 4 * N * sizeof(double)>>>(da, db, dc, dd, N, systems);
        std::vector<double> got(total);
        if (cudaMemcpy(got.data(), dd, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) { puts(cudaGetErrorString(cudaGetLastError())); return 1; }
        for (int k = 0; k < total; k++)
            if (fabs(got[k] - x[k]) > 1e-13) { printf("FAIL: method %d, unknown %d of system %d\n", method, k / systems, k % systems); return 1; }
    }

    // The second derivatives of the natural spline through cos at N points, one system.
    const double h = 0.1;
    std::vector<double> lower(N, 1), middle(N, 4), upper(N, 1), right(N);
    lower[0] = lower[N - 1] = upper[0] = upper[N - 1] = 0, middle[0] = middle[N - 1] = 1;
    for (int i = 1; i < N - 1; i++) right[i] = 6 / (h * h) * (cos((i - 1) * h) - 2 * cos(i * h) + cos((i + 1) * h));
    cudaMemcpy(da, lower.data(), N * sizeof(double), cudaMemcpyHostToDevice);
    cudaMemcpy(db, middle.data(), N * sizeof(double), cudaMemcpyHostToDevice);
    cudaMemcpy(dc, upper.data(), N * sizeof(double), cudaMemcpyHostToDevice);
    cudaMemcpy(dd, right.data(), N * sizeof(double), cudaMemcpyHostToDevice);
    thomas<N><<<1, 1>>>(da, db, dc, dd, 1);
    cudaMemcpy(right.data(), dd, N * sizeof(double), cudaMemcpyDeviceToHost);
    for (int i = 10; i < N - 10; i++)
        if (fabs(right[i] + cos(i * h)) > 2e-3) { printf("FAIL: spline at %d: %g, not %g\n", i, right[i], -cos(i * h)); return 1; }
    if (cudaGetLastError() != cudaSuccess) return 1;
    puts("PASS");
    return 0;
}
