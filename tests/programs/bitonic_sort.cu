// Course work: bitonic sort of (key, value) pairs: long strides through global memory, short ones in shared memory.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARED_SIZE 512

typedef unsigned int uint;

__device__ inline void compare(uint &keyA, uint &valA, uint &keyB, uint &valB, bool dir)
{
    if ((keyA > keyB) == dir) {
        uint t;
        t = keyA; keyA = keyB; keyB = t;
        t = valA; valA = valB; valB = t;
    }
}

__global__ void sortShared(uint *keys, uint *vals)
{
    __shared__ uint s_key[SHARED_SIZE], s_val[SHARED_SIZE];
    keys += blockIdx.x * SHARED_SIZE + threadIdx.x;
    vals += blockIdx.x * SHARED_SIZE + threadIdx.x;
    s_key[threadIdx.x] = keys[0];
    s_val[threadIdx.x] = vals[0];
    s_key[threadIdx.x + SHARED_SIZE / 2] = keys[SHARED_SIZE / 2];
    s_val[threadIdx.x + SHARED_SIZE / 2] = vals[SHARED_SIZE / 2];
    for (uint size = 2; size < SHARED_SIZE; size <<= 1) {
        bool dir = (threadIdx.x & (size / 2)) != 0;
        for (uint stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            compare(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride], dir);
        }
    }
    // Odd blocks sort downwards.
    bool dir = blockIdx.x & 1;
    for (uint stride = SHARED_SIZE / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        compare(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride], !dir);
    }
    __syncthreads();
    keys[0] = s_key[threadIdx.x];
    vals[0] = s_val[threadIdx.x];
    keys[SHARED_SIZE / 2] = s_key[threadIdx.x + SHARED_SIZE / 2];
    vals[SHARED_SIZE / 2] = s_val[threadIdx.x + SHARED_SIZE / 2];
}

__global__ void mergeGlobal(uint *keys, uint *vals, uint n, uint size, uint stride)
{
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    uint comparator = i & (n / 2 - 1);
    bool dir = !(comparator & (size / 2));
    uint pos = 2 * i - (i & (stride - 1));
    uint ka = keys[pos], va = vals[pos], kb = keys[pos + stride], vb = vals[pos + stride];
    compare(ka, va, kb, vb, dir);
    keys[pos] = ka; vals[pos] = va; keys[pos + stride] = kb; vals[pos + stride] = vb;
}

__global__ void mergeShared(uint *keys, uint *vals, uint n, uint size)
{
    __shared__ uint s_key[SHARED_SIZE], s_val[SHARED_SIZE];
    uint base = blockIdx.x * SHARED_SIZE + threadIdx.x;
    for (int h = 0; h < 2; h++) {
        s_key[threadIdx.x + h * SHARED_SIZE / 2] = keys[base + h * SHARED_SIZE / 2];
        s_val[threadIdx.x + h * SHARED_SIZE / 2] = vals[base + h * SHARED_SIZE / 2];
    }
    uint comparator = (blockIdx.x * blockDim.x + threadIdx.x) & (n / 2 - 1);
    bool dir = !(comparator & (size / 2));
    for (uint stride = SHARED_SIZE / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        compare(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride], dir);
    }
    __syncthreads();
    for (int h = 0; h < 2; h++) {
        keys[base + h * SHARED_SIZE / 2] = s_key[threadIdx.x + h * SHARED_SIZE / 2];
        vals[base + h * SHARED_SIZE / 2] = s_val[threadIdx.x + h * SHARED_SIZE / 2];
    }
}

int main(void)
{
    const uint n = 1 << 14;
    uint *keys = (uint *)malloc(n * 4), *vals = (uint *)malloc(n * 4), *orig = (uint *)malloc(n * 4);
    uint64_t seed = 88172645463325252ull;
    for (uint i = 0; i < n; i++) {
        seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
        orig[i] = keys[i] = (uint)seed % 50000;
        vals[i] = i;
    }
    uint *d_keys, *d_vals;
    cudaMalloc(&d_keys, n * 4);
    cudaMalloc(&d_vals, n * 4);
    cudaMemcpy(d_keys, keys, n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(d_vals, vals, n * 4, cudaMemcpyHostToDevice);

    sortShared<<<n / SHARED_SIZE, SHARED_SIZE / 2>>>(d_keys, d_vals);
    for (uint size = 2 * SHARED_SIZE; size <= n; size <<= 1)
        for (uint stride = size / 2; stride > 0; stride >>= 1) {
            if (stride >= SHARED_SIZE) {
                mergeGlobal<<<n / 512, 256>>>(d_keys, d_vals, n, size, stride);
            } else {
                mergeShared<<<n / SHARED_SIZE, SHARED_SIZE / 2>>>(d_keys, d_vals, n, size);
                break;
            }
        }
    cudaDeviceSynchronize();
    cudaMemcpy(keys, d_keys, n * 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(vals, d_vals, n * 4, cudaMemcpyDeviceToHost);

    char *seen = (char *)calloc(n, 1);
    for (uint i = 0; i < n; i++) {
        bool bad = vals[i] >= n || seen[vals[i]]++ || orig[vals[i]] != keys[i] || (i && keys[i - 1] > keys[i]);
        if (bad) { printf("FAIL at %u\n", i); return 1; }
    }
    printf("PASS: %u pairs\n", n);
    free(keys); free(vals); free(orig); free(seen);
    cudaFree(d_keys); cudaFree(d_vals);
    return 0;
}
