// Atomics of all kinds and types on global and shared memory, and those that one builds with compare-and-swap: maximum of
// doubles, product of floats, minimum with its index, one byte of a word.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FAIL(...) do { printf("FAIL: " __VA_ARGS__); puts(""); exit(1); } while (0)

__device__ double atomicMaxDouble(double *address, double value)
{
    unsigned long long *bits = (unsigned long long *)address, old = *bits, assumed;
    do {
        assumed = old;
        if (__longlong_as_double(assumed) >= value) break;
        old = atomicCAS(bits, assumed, __double_as_longlong(value));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ float atomicMultiply(float *address, float value)
{
    int *bits = (int *)address, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(value * __int_as_float(assumed)));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ void atomicMinWithIndex(unsigned long long *where, float value, int index)
{
    // For positive floats the order of the bits is the order of the numbers.
    atomicMin(where, (unsigned long long)__float_as_uint(value) << 32 | (unsigned)index);
}

__device__ void atomicIncrementByte(unsigned char *p)
{
    unsigned *word = (unsigned *)((size_t)p & ~(size_t)3), shift = ((size_t)p & 3) * 8, old = *word, assumed;
    do {
        assumed = old;
        unsigned byte = (assumed >> shift) + 1 & 0xff;
        old = atomicCAS(word, assumed, (assumed & ~(0xffu << shift)) | byte << shift);
    } while (assumed != old);
}

struct Results {
    int add, sub, exchange_sum, min, max, dec_zero;
    unsigned inc, umin, umax, uand, uor, uxor, wraps;
    long long lmin, lmax;
    unsigned long long ladd, lor, land, lxor, lexch, best, lcas;
    float fadd, product, fshared;
    double dadd, dmax, dshared;
    unsigned short half_cas;
    unsigned char bytes[8];
    int order[1024];
};

__global__ void everything(Results *r, int *sink, int n)
{
    __shared__ int counts[16];
    __shared__ float fsum;
    __shared__ double dsum;
    if (threadIdx.x < 16) counts[threadIdx.x] = 0;
    if (threadIdx.x == 0) fsum = 0, dsum = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&r->add, i);
        atomicSub(&r->sub, 2);
        atomicAdd(sink, atomicExch(&r->exchange_sum, i));
        atomicMin(&r->min, (i * 37 % 1001) - 500);
        atomicMax(&r->max, (i * 37 % 1001) - 500);
        atomicMin(&r->umin, 5000u - i);
        atomicMax(&r->umax, 0x80000000u + i);
        if (atomicInc(&r->inc, 6) == 6) atomicAdd(&r->wraps, 1u);
        if (atomicDec((unsigned *)&r->dec_zero, 9) == 0) atomicAdd(&counts[15], 1);
        atomicAnd(&r->uand, ~(1u << i % 7));
        atomicOr(&r->uor, 1u << i % 9);
        atomicXor(&r->uxor, 1u << i % 32);
        atomicMin(&r->lmin, -(long long)i << 33);
        atomicMax(&r->lmax, (long long)i << 33);
        atomicAdd(&r->ladd, (1ull << 32) + 1);
        atomicOr(&r->lor, 1ull << i % 61);
        atomicAnd(&r->land, ~(1ull << (i % 4 + 40)));
        atomicXor(&r->lxor, (unsigned long long)i << 20);
        atomicExch(&r->lexch, 0xabcdef0123456789ull);
        atomicCAS(&r->lcas, 0ull, 77ull);
        atomicAdd(&r->fadd, 0.25f);
        atomicAdd(&r->dadd, 0.125 * (i % 2 ? 1 : 3));
        atomicMaxDouble(&r->dmax, 1000.0 - (i - 333.25) * (i - 333.25));
        if (i % 100 == 0) atomicMultiply(&r->product, 2.0f);
        atomicMinWithIndex(&r->best, 1.0f + (float)((i * 389) % 997), i);
        atomicIncrementByte(&r->bytes[i % 8]);
        atomicAdd(&counts[i % 8], 1);
        atomicAdd(&fsum, 0.5f);
        atomicAdd(&dsum, 2.0);
        if (i < 1024) r->order[i] = atomicAdd(&counts[14], 1);
        if (i == 1) atomicCAS(&r->half_cas, (unsigned short)5, (unsigned short)9);
        atomicAdd_system(&counts[13], 1);
        atomicAdd_block(&counts[12], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&r->fshared, fsum);
        atomicAdd(&r->dshared, dsum);
        atomicAdd(&sink[1], counts[3]);
        atomicAdd(&sink[2], counts[15]);
        atomicAdd(&sink[3], counts[12] + counts[13]);
    }
}

int main()
{
    const int n = 1000, threads = 128, blocks = 8;
    static Results h, *d;
    int *sink, hs[4];
    memset(&h, 0, sizeof h);
    h.min = 1 << 30, h.max = -(1 << 30), h.umin = ~0u, h.uand = ~0u, h.land = ~0ull, h.best = ~0ull, h.product = 1, h.dmax = -1e300, h.half_cas = 5;
    cudaMalloc(&d, sizeof h);
    cudaMalloc(&sink, sizeof hs);
    cudaMemset(sink, 0, sizeof hs);
    cudaMemcpy(d, &h, sizeof h, cudaMemcpyHostToDevice);
    everything<<<blocks, threads>>>(d, sink, n);
    cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost);
    cudaMemcpy(hs, sink, sizeof hs, cudaMemcpyDeviceToHost);
    if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));

    unsigned uxor = 0;
    unsigned long long lxor = 0;
    float best = 1e9f;
    int best_at = 0, min = 1000, max = -1000;
    for (int i = 0; i < n; i++) {
        uxor ^= 1u << i % 32, lxor ^= (unsigned long long)i << 20;
        int v = i * 37 % 1001 - 500;
        min = v < min ? v : min, max = v > max ? v : max;
        if (1.0f + (float)((i * 389) % 997) < best) best = 1.0f + (float)((i * 389) % 997), best_at = i;
    }
    float best_got;
    unsigned bits = (unsigned)(h.best >> 32);
    memcpy(&best_got, &bits, 4);
#define SAME(name, value) if (h.name != (value)) FAIL(#name)
    SAME(add, n * (n - 1) / 2); SAME(sub, -2 * n); SAME(min, min); SAME(max, max); SAME(umin, 5000u - (n - 1)); SAME(umax, 0x80000000u + n - 1);
    if (hs[0] + h.exchange_sum != n * (n - 1) / 2) FAIL("exchange");
    SAME(inc, n % 7u); SAME(wraps, n / 7u); SAME(uand, ~0x7fu); SAME(uor, 0x1ffu); SAME(uxor, uxor);
    SAME(lmin, -(999ll << 33)); SAME(lmax, 999ll << 33); SAME(ladd, n * ((1ull << 32) + 1)); SAME(lor, (1ull << 61) - 1); SAME(land, ~(15ull << 40));
    SAME(lxor, lxor); SAME(lexch, 0xabcdef0123456789ull); SAME(lcas, 77); SAME(fadd, n * 0.25f); SAME(dadd, n * 0.25); SAME(dmax, 1000.0 - 0.0625);
    SAME(product, 1024.0f); SAME(fshared, n * 0.5f); SAME(dshared, n * 2.0); SAME(half_cas, 9);
    if (best_got != best || (int)(unsigned)h.best != best_at) FAIL("minimum with index: %g at %d", best_got, (int)(unsigned)h.best);
    for (int k = 0; k < 8; k++) if (h.bytes[k] != n / 8) FAIL("byte %d", k);
    if (hs[1] != n / 8 || hs[2] != n / 10 || hs[3] != 2 * n) FAIL("shared counts %d %d %d", hs[1], hs[2], hs[3]);
    for (int b = 0; b < blocks - 1; b++) {  // each block counted its threads, each number once
        char seen[threads] = {};
        for (int t = 0; t < threads; t++) {
            int o = h.order[b * threads + t];
            if (o < 0 || o >= threads || seen[o]++) FAIL("order of block %d", b);
        }
    }
    puts("PASS");
    return 0;
}
