// Jacobi iteration for a diagonally dominant system; the largest change is found with an atomic maximum on the bits of
// a float, and read by the host through managed memory.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 192

__device__ float atomicMaxPositive(float *address, float value)
{
    return __int_as_float(atomicMax((int *)address, __float_as_int(value)));
}

__global__ void sweep(const double *A, const double *b, const double *x, double *next, float *change)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    double sum = 0;
    for (int col = threadIdx.x; col < N; col += warpSize)
        if (col != row)
            sum += A[row * N + col] * x[col];
    for (int d = 16; d > 0; d >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (threadIdx.x == 0) {
        double value = (b[row] - sum) / A[row * N + row];
        atomicMaxPositive(change, (float)fabs(value - x[row]));
        next[row] = value;
    }
}

int main()
{
    double *A, *b, *x, *y;
    float *change;
    cudaMallocManaged(&A, N * N * sizeof(double));
    cudaMallocManaged(&b, N * sizeof(double));
    cudaMallocManaged(&x, N * sizeof(double));
    cudaMallocManaged(&y, N * sizeof(double));
    cudaMallocManaged(&change, sizeof(float));
    double exact[N];
    for (int i = 0; i < N; i++) {
        exact[i] = cos(0.1 * i);
        double row = 0;
        for (int j = 0; j < N; j++) {
            A[i * N + j] = i == j ? 0 : 1.1 + sin(1.0 + i * 3 + j * 7);
            row += fabs(A[i * N + j]);
        }
        A[i * N + i] = 1.5 * row;
        x[i] = 0;
    }
    for (int i = 0; i < N; i++) {
        b[i] = 0;
        for (int j = 0; j < N; j++)
            b[i] += A[i * N + j] * exact[j];
    }
    int iterations = 0;
    do {
        *change = 0;
        sweep<<<N / 8, dim3(32, 8)>>>(A, b, x, y, change);
        if (cudaDeviceSynchronize() != cudaSuccess) {
            printf("FAIL: %s\n", cudaGetErrorString(cudaGetLastError()));
            return 1;
        }
        double *t = x; x = y; y = t;
        iterations++;
    } while (*change > 1e-12f && iterations < 500);
    for (int i = 0; i < N; i++)
        if (fabs(x[i] - exact[i]) > 1e-10) {
            printf("FAIL: x[%d] = %.15f, not %.15f\n", i, x[i], exact[i]);
            return 1;
        }
    printf("%s\n", iterations > 10 && iterations < 100 ? "PASS" : "FAIL");
    cudaFree(A); cudaFree(b); cudaFree(x); cudaFree(y); cudaFree(change);
    return iterations >= 100;
}
