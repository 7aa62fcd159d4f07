// Course work: 2-D convolution with the mask in constant memory and a tile with its halo in shared memory.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MASK_WIDTH 5
#define RADIUS (MASK_WIDTH / 2)
#define O_TILE 12
#define BLOCK (O_TILE + MASK_WIDTH - 1)

__constant__ float M[MASK_WIDTH][MASK_WIDTH];

__global__ void convolve(const float *in, float *out, int height, int width)
{
    __shared__ float Ns[BLOCK][BLOCK];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row_o = blockIdx.y * O_TILE + ty, col_o = blockIdx.x * O_TILE + tx;
    int row_i = row_o - RADIUS, col_i = col_o - RADIUS;

    if (row_i >= 0 && row_i < height && col_i >= 0 && col_i < width)
        Ns[ty][tx] = in[row_i * width + col_i];
    else
        Ns[ty][tx] = 0.0f;
    __syncthreads();

    if (ty < O_TILE && tx < O_TILE && row_o < height && col_o < width) {
        float acc = 0.0f;
        for (int i = 0; i < MASK_WIDTH; i++)
            for (int j = 0; j < MASK_WIDTH; j++)
                acc += M[i][j] * Ns[ty + i][tx + j];
        out[row_o * width + col_o] = acc;
    }
}

static void reference(const float *in, float mask[MASK_WIDTH][MASK_WIDTH], double *out, int height, int width)
{
    for (int r = 0; r < height; r++)
        for (int c = 0; c < width; c++) {
            double acc = 0;
            for (int i = -RADIUS; i <= RADIUS; i++)
                for (int j = -RADIUS; j <= RADIUS; j++)
                    if (r + i >= 0 && r + i < height && c + j >= 0 && c + j < width)
                        acc += (double)mask[i + RADIUS][j + RADIUS] * in[(r + i) * width + c + j];
            out[r * width + c] = acc;
        }
}

int main(void)
{
    const int height = 61, width = 103, n = height * width;
    float mask[MASK_WIDTH][MASK_WIDTH], *in = (float *)malloc(n * sizeof(float)), *out = (float *)malloc(n * sizeof(float));
    double *want = (double *)malloc(n * sizeof(double));
    for (int i = 0; i < MASK_WIDTH; i++)
        for (int j = 0; j < MASK_WIDTH; j++)
            mask[i][j] = expf(-0.3f * ((i - RADIUS) * (i - RADIUS) + (j - RADIUS) * (j - RADIUS)));
    srand(17);
    for (int i = 0; i < n; i++) in[i] = rand() / (float)RAND_MAX;
    reference(in, mask, want, height, width);

    float *d_in, *d_out;
    cudaMalloc(&d_in, n * sizeof(float));
    cudaMalloc(&d_out, n * sizeof(float));
    cudaMemcpy(d_in, in, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(M, mask, sizeof(mask));
    dim3 block(BLOCK, BLOCK), grid((width - 1) / O_TILE + 1, (height - 1) / O_TILE + 1);
    convolve<<<grid, block>>>(d_in, d_out, height, width);
    cudaMemcpy(out, d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) { printf("FAIL: CUDA error\n"); return 1; }

    double worst = 0;
    for (int i = 0; i < n; i++) worst = fmax(worst, fabs(out[i] - want[i]) / (fabs(want[i]) + 1e-3));
    printf("%s: largest relative error below 1e-5 %s\n", worst < 1e-5 ? "PASS" : "FAIL", worst < 1e-5 ? "yes" : "no");
    return worst < 1e-5 ? 0 : 1;
}
