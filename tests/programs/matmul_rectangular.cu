// Course work: C = A x B for sizes that no tile divides, once without and once with shared memory.
#include <stdio.h>
#include <stdlib.h>

#define TILE 16
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

__global__ void matmulNaive(const float *A, const float *B, float *C, int M, int K, int N)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++)
            sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}

__global__ void matmulTiled(const float *A, const float *B, float *C, int M, int K, int N)
{
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; t++) {
        As[ty][tx] = (row < M && t * TILE + tx < K) ? A[row * K + t * TILE + tx] : 0.0f;
        Bs[ty][tx] = (col < N && t * TILE + ty < K) ? B[(t * TILE + ty) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}

int main()
{
    const int M = 93, K = 121, N = 77;
    float *h_A = (float *)malloc(M * K * sizeof(float));
    float *h_B = (float *)malloc(K * N * sizeof(float));
    float *h_C = (float *)malloc(M * N * sizeof(float));
    float *h_R = (float *)malloc(M * N * sizeof(float));
    // Small whole numbers: every sum is exact in float, so results can be compared with ==.
    for (int i = 0; i < M * K; i++) h_A[i] = (float)((i * 7) % 19 - 9);
    for (int i = 0; i < K * N; i++) h_B[i] = (float)((i * 5) % 23 - 11);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float s = 0;
            for (int k = 0; k < K; k++) s += h_A[i * K + k] * h_B[k * N + j];
            h_R[i * N + j] = s;
        }

    float *d_A, *d_B, *d_C;
    gpuErrchk(cudaMalloc((void **)&d_A, M * K * sizeof(float)));
    gpuErrchk(cudaMalloc((void **)&d_B, K * N * sizeof(float)));
    gpuErrchk(cudaMalloc((void **)&d_C, M * N * sizeof(float)));
    gpuErrchk(cudaMemcpy(d_A, h_A, M * K * sizeof(float), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d_B, h_B, K * N * sizeof(float), cudaMemcpyHostToDevice));

    dim3 threads(TILE, TILE);
    dim3 blocks((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    for (int version = 0; version < 2; version++) {
        gpuErrchk(cudaMemset(d_C, 0xff, M * N * sizeof(float)));
        if (version == 0)
            matmulNaive<<<blocks, threads>>>(d_A, d_B, d_C, M, K, N);
        else
            matmulTiled<<<blocks, threads>>>(d_A, d_B, d_C, M, K, N);
        gpuErrchk(cudaPeekAtLastError());
        gpuErrchk(cudaDeviceSynchronize());
        gpuErrchk(cudaMemcpy(h_C, d_C, M * N * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < M * N; i++)
            if (h_C[i] != h_R[i]) {
                printf("FAIL version %d at (%d, %d): %f instead of %f\n", version, i / N, i % N, h_C[i], h_R[i]);
                return 1;
            }
    }
    cudaFree(d_A); cudaFree(d_B); cudaFree(d_C);
    free(h_A); free(h_B); free(h_C); free(h_R);
    printf("PASS: %d x %d x %d, both versions\n", M, K, N);
    return 0;
}
