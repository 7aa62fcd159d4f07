// Course work: exclusive prefix sum, work-efficient, of any length by recursion over block sums.
#include <assert.h>
#include <stdio.h>
#include <vector>

#define BLOCK 128
#define ELEMENTS (2 * BLOCK)
#define LOG_BANKS 5
#define CONFLICT_FREE(n) ((n) + ((n) >> LOG_BANKS))

__global__ void scanBlocks(const unsigned *in, unsigned *out, unsigned *sums, int n)
{
    __shared__ unsigned temp[CONFLICT_FREE(ELEMENTS)];
    int tid = threadIdx.x, base = blockIdx.x * ELEMENTS;
    int a = tid, b = tid + BLOCK;
    temp[CONFLICT_FREE(a)] = base + a < n ? in[base + a] : 0;
    temp[CONFLICT_FREE(b)] = base + b < n ? in[base + b] : 0;

    int offset = 1;
    for (int d = ELEMENTS >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (tid < d) {
            int i = CONFLICT_FREE(offset * (2 * tid + 1) - 1), j = CONFLICT_FREE(offset * (2 * tid + 2) - 1);
            temp[j] += temp[i];
        }
        offset *= 2;
    }
    if (tid == 0) {
        if (sums) sums[blockIdx.x] = temp[CONFLICT_FREE(ELEMENTS - 1)];
        temp[CONFLICT_FREE(ELEMENTS - 1)] = 0;
    }
    for (int d = 1; d < ELEMENTS; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (tid < d) {
            int i = CONFLICT_FREE(offset * (2 * tid + 1) - 1), j = CONFLICT_FREE(offset * (2 * tid + 2) - 1);
            unsigned t = temp[i];
            temp[i] = temp[j];
            temp[j] += t;
        }
    }
    __syncthreads();
    if (base + a < n) out[base + a] = temp[CONFLICT_FREE(a)];
    if (base + b < n) out[base + b] = temp[CONFLICT_FREE(b)];
}

__global__ void addOffsets(unsigned *data, const unsigned *offsets, int n)
{
    int i = blockIdx.x * ELEMENTS + threadIdx.x;
    unsigned o = offsets[blockIdx.x];
    if (i < n) data[i] += o;
    if (i + BLOCK < n) data[i + BLOCK] += o;
}

void scan(const unsigned *in, unsigned *out, int n)
{
    int blocks = (n + ELEMENTS - 1) / ELEMENTS;
    if (blocks == 1) {
        scanBlocks<<<1, BLOCK>>>(in, out, NULL, n);
        return;
    }
    unsigned *sums, *offsets;
    cudaMalloc(&sums, blocks * sizeof(unsigned));
    cudaMalloc(&offsets, blocks * sizeof(unsigned));
    scanBlocks<<<blocks, BLOCK>>>(in, out, sums, n);
    scan(sums, offsets, blocks);
    addOffsets<<<blocks, BLOCK>>>(out, offsets, n);
    cudaFree(sums);
    cudaFree(offsets);
}

int main()
{
    const int sizes[] = {1, 2, 255, 256, 257, 70001};  // the last needs three levels
    for (int n : sizes) {
        std::vector<unsigned> h(n), got(n);
        for (int i = 0; i < n; i++) h[i] = (i * 1103515245u + 12345u) >> 16;
        unsigned *in, *out;
        cudaMalloc(&in, n * sizeof(unsigned));
        cudaMalloc(&out, n * sizeof(unsigned));
        cudaMemcpy(in, h.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
        scan(in, out, n);
        assert(cudaMemcpy(got.data(), out, n * sizeof(unsigned), cudaMemcpyDeviceToHost) == cudaSuccess);
        unsigned sum = 0;
        for (int i = 0; i < n; i++) {
            if (got[i] != sum) { printf("FAIL: n = %d, element %d is %u, not %u\n", n, i, got[i], sum); return 1; }
            sum += h[i];
        }
        cudaFree(in);
        cudaFree(out);
    }
    puts("PASS");
    return 0;
}
