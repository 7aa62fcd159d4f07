// AES-128: encryption with four lookup tables in shared memory, in counter mode over a long text; decryption step by
// step with the inverse S-box in constant memory.  The tables are computed, not typed in.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <vector>

__constant__ uint32_t d_t0[256];
__constant__ uint8_t d_sbox[256], d_inverse[256];
__constant__ uint32_t d_keys[44];

static uint8_t sbox[256], inverse[256];
static uint32_t t0[256];

static __host__ __device__ uint8_t xtime(uint8_t x) { return (uint8_t)((x << 1) ^ ((x >> 7) * 0x1b)); }

static __host__ __device__ uint8_t mul(uint8_t a, uint8_t b)
{
    uint8_t r = 0;
    for (; b; b >>= 1, a = xtime(a))
        if (b & 1) r ^= a;
    return r;
}

static void make_tables()
{
    uint8_t p = 1, q = 1;
    do {
        p = (uint8_t)(p ^ xtime(p));                          // times 3
        q ^= q << 1; q ^= q << 2; q ^= q << 4; if (q & 0x80) q ^= 0x09;  // divided by 3
        uint8_t x = (uint8_t)(q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4));
        sbox[p] = x ^ 0x63;
    } while (p != 1);
    sbox[0] = 0x63;
    for (int i = 0; i < 256; i++) {
        inverse[sbox[i]] = (uint8_t)i;
        t0[i] = (uint32_t)xtime(sbox[i]) << 24 | sbox[i] << 16 | sbox[i] << 8 | (uint8_t)(xtime(sbox[i]) ^ sbox[i]);
    }
}

static void expand_key(const uint8_t key[16], uint32_t w[44])
{
    uint8_t rcon = 1;
    for (int i = 0; i < 4; i++) w[i] = key[4 * i] << 24 | key[4 * i + 1] << 16 | key[4 * i + 2] << 8 | key[4 * i + 3];
    for (int i = 4; i < 44; i++) {
        uint32_t t = w[i - 1];
        if (i % 4 == 0) {
            t = t << 8 | t >> 24;
            t = (uint32_t)sbox[t >> 24] << 24 | sbox[t >> 16 & 255] << 16 | sbox[t >> 8 & 255] << 8 | sbox[t & 255];
            t ^= (uint32_t)rcon << 24;
            rcon = xtime(rcon);
        }
        w[i] = w[i - 4] ^ t;
    }
}

__device__ uint4 encrypt(uint4 s, const uint32_t *T)
{
    s.x ^= d_keys[0]; s.y ^= d_keys[1]; s.z ^= d_keys[2]; s.w ^= d_keys[3];
#define COLUMN(a, b, c, d) (T[(a) >> 24] ^ __byte_perm(T[(b) >> 16 & 255], 0, 0x0321) ^ __byte_perm(T[(c) >> 8 & 255], 0, 0x1032) ^ __byte_perm(T[(d) & 255], 0, 0x2103))
    for (int round = 1; round < 10; round++) {
        uint4 n;
        n.x = COLUMN(s.x, s.y, s.z, s.w) ^ d_keys[4 * round];
        n.y = COLUMN(s.y, s.z, s.w, s.x) ^ d_keys[4 * round + 1];
        n.z = COLUMN(s.z, s.w, s.x, s.y) ^ d_keys[4 * round + 2];
        n.w = COLUMN(s.w, s.x, s.y, s.z) ^ d_keys[4 * round + 3];
        s = n;
    }
#define LAST(a, b, c, d) ((uint32_t)d_sbox[(a) >> 24] << 24 | d_sbox[(b) >> 16 & 255] << 16 | d_sbox[(c) >> 8 & 255] << 8 | d_sbox[(d) & 255])
    return make_uint4(LAST(s.x, s.y, s.z, s.w) ^ d_keys[40], LAST(s.y, s.z, s.w, s.x) ^ d_keys[41],
                      LAST(s.z, s.w, s.x, s.y) ^ d_keys[42], LAST(s.w, s.x, s.y, s.z) ^ d_keys[43]);
}

__global__ void encryptBlocks(uint4 *blocks, int n)
{
    __shared__ uint32_t T[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) T[i] = d_t0[i];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) blocks[i] = encrypt(blocks[i], T);
}

__global__ void counterMode(uint4 *text, int n, uint4 nonce)
{
    __shared__ uint32_t T[256];
    T[threadIdx.x] = d_t0[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    nonce.w += i;
    uint4 k = encrypt(nonce, T);
    text[i].x ^= k.x; text[i].y ^= k.y; text[i].z ^= k.z; text[i].w ^= k.w;
}

__global__ void decryptBlock(const uint8_t *in, uint8_t *out)
{
    uint8_t s[16], t[16];
    for (int i = 0; i < 16; i++) s[i] = in[blockIdx.x * 16 + i] ^ (uint8_t)(d_keys[40 + i / 4] >> (24 - i % 4 * 8));
    for (int round = 9; round >= 0; round--) {
        for (int i = 0; i < 16; i++) t[(i + 4 * (i % 4)) % 16] = s[i];
        for (int i = 0; i < 16; i++) s[i] = d_inverse[t[i]] ^ (uint8_t)(d_keys[4 * round + i / 4] >> (24 - i % 4 * 8));
        if (round == 0) break;
        for (int c = 0; c < 16; c += 4) {
            uint8_t a = s[c], b = s[c + 1], d = s[c + 2], e = s[c + 3];
            s[c] = mul(a, 14) ^ mul(b, 11) ^ mul(d, 13) ^ mul(e, 9);
            s[c + 1] = mul(a, 9) ^ mul(b, 14) ^ mul(d, 11) ^ mul(e, 13);
            s[c + 2] = mul(a, 13) ^ mul(b, 9) ^ mul(d, 14) ^ mul(e, 11);
            s[c + 3] = mul(a, 11) ^ mul(b, 13) ^ mul(d, 9) ^ mul(e, 14);
        }
    }
    for (int i = 0; i < 16; i++) out[blockIdx.x * 16 + i] = s[i];
}

int main()
{
    make_tables();
    uint8_t key[16], plain[16];
    for (int i = 0; i < 16; i++) key[i] = (uint8_t)i, plain[i] = (uint8_t)(i * 0x11);
    uint32_t w[44];
    expand_key(key, w);
    cudaMemcpyToSymbol(d_t0, t0, sizeof(t0));
    cudaMemcpyToSymbol(d_sbox, sbox, sizeof(sbox));
    cudaMemcpyToSymbol(d_inverse, inverse, sizeof(inverse));
    cudaMemcpyToSymbol(d_keys, w, sizeof(w));

    uint32_t words[4], result[4];
    for (int i = 0; i < 4; i++) words[i] = plain[4 * i] << 24 | plain[4 * i + 1] << 16 | plain[4 * i + 2] << 8 | plain[4 * i + 3];
    uint4 *d;
    cudaMalloc(&d, 16);
    cudaMemcpy(d, words, 16, cudaMemcpyHostToDevice);
    encryptBlocks<<<1, 32>>>(d, 1);
    cudaMemcpy(result, d, 16, cudaMemcpyDeviceToHost);
    printf("cipher %08x%08x%08x%08x\n", result[0], result[1], result[2], result[3]);

    uint8_t cipher[16], again[16], *d_in, *d_out;
    for (int i = 0; i < 16; i++) cipher[i] = (uint8_t)(result[i / 4] >> (24 - i % 4 * 8));
    cudaMalloc(&d_in, 16);
    cudaMalloc(&d_out, 16);
    cudaMemcpy(d_in, cipher, 16, cudaMemcpyHostToDevice);
    decryptBlock<<<1, 1>>>(d_in, d_out);
    cudaMemcpy(again, d_out, 16, cudaMemcpyDeviceToHost);
    printf("plain  ");
    for (int i = 0; i < 16; i++) printf("%02x", again[i]);
    printf("\n");

    const int n = 1000;
    std::vector<uint4> text(n), other(n);
    for (int i = 0; i < n; i++) text[i] = make_uint4(i, i * i, ~i, i << 7);
    uint4 *d_text, nonce = make_uint4(1, 2, 3, 0xfffffff0u);
    cudaMalloc(&d_text, n * sizeof(uint4));
    cudaMemcpy(d_text, text.data(), n * sizeof(uint4), cudaMemcpyHostToDevice);
    counterMode<<<4, 256>>>(d_text, n, nonce);
    cudaMemcpy(other.data(), d_text, n * sizeof(uint4), cudaMemcpyDeviceToHost);
    bool changed = memcmp(text.data(), other.data(), n * sizeof(uint4)) != 0;
    counterMode<<<4, 256>>>(d_text, n, nonce);
    cudaMemcpy(other.data(), d_text, n * sizeof(uint4), cudaMemcpyDeviceToHost);
    printf("counter mode %s\n", changed && !memcmp(text.data(), other.data(), n * sizeof(uint4)) ? "works" : "FAIL");
    return cudaGetLastError();
}
