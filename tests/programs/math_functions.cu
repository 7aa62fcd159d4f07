// The functions of the device's mathematical library against the host's, in double and single precision, over wide ranges
// and at the ends; the fast approximations within their promises; integer intrinsics.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#define COUNT 400

#define UNARY(X) \
    X(sin, -50, 50, 2) X(cos, -50, 50, 2) X(tan, -1.5, 1.5, 3) X(asin, -1, 1, 3) X(acos, -1, 1, 3) X(atan, -30, 30, 3) \
    X(sinh, -9, 9, 4) X(cosh, -9, 9, 3) X(tanh, -4, 4, 4) X(asinh, -100, 100, 4) X(acosh, 1, 100, 4) X(atanh, -0.99, 0.99, 5) \
    X(exp, -80, 80, 3) X(exp2, -80, 80, 3) X(exp10, -30, 30, 4) X(expm1, -3, 9, 4) X(log, 1e-6, 1e6, 3) X(log2, 1e-6, 1e6, 4) X(log10, 1e-6, 1e6, 4) \
    X(log1p, -0.9, 50, 4) X(sqrt, 0, 1e6, 1) X(cbrt, -1e4, 1e4, 4) X(erf, -3, 3, 5) X(erfc, -2, 3, 8) X(tgamma, 0.5, 12, 16) \
    X(lgamma, 3, 50, 8) X(j0, 0.1, 2, 30) X(floor, -9, 9, 0) X(ceil, -9, 9, 0) X(trunc, -9, 9, 0) X(round, -9, 9, 0) X(rint, -9, 9, 0) X(fabs, -9, 9, 0)
#define BINARY(X) X(pow, 0.1, 9, -4, 9, 4) X(fmod, -50, 50, 0.3, 7, 0) X(atan2, -5, 5, -5, 5, 4) X(hypot, -50, 50, -50, 50, 3) X(fmin, -5, 5, -5, 5, 0) \
    X(fmax, -5, 5, -5, 5, 0) X(copysign, -5, 5, -5, 5, 0) X(remainder, -50, 50, 0.3, 7, 0) X(nextafter, -5, 5, -5, 5, 0) X(fdim, -5, 5, -5, 5, 0)

__global__ void unary(int which, const double *x, double *y, float *yf)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
    if (i >= COUNT) return;
#define X(fn, low, high, ulp) if (which == k++) { y[i] = fn(x[i]); yf[i] = fn##f((float)x[i]); }
    UNARY(X)
#undef X
}

__global__ void binary(int which, const double *a, const double *b, double *y, float *yf)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
    if (i >= COUNT) return;
#define X(fn, al, ah, bl, bh, ulp) if (which == k++) { y[i] = fn(a[i], b[i]); yf[i] = fn##f((float)a[i], (float)b[i]); }
    BINARY(X)
#undef X
}

__global__ void special(double *out)
{
    int k = 0;
    double zero = out[0], one = out[1], huge = out[2];
    out[k++] = one / zero; out[k++] = log(zero); out[k++] = sqrt(-one); out[k++] = pow(zero, zero); out[k++] = exp(huge); out[k++] = atan2(zero, -one);
    out[k++] = isnan(zero / zero) + 2 * isinf(one / zero) + 4 * (signbit(-zero) != 0) + 8 * isfinite(huge);
    int e;
    out[k++] = frexp(48.0 * one, &e); out[k++] = e; out[k++] = ldexp(0.75 * one, 5); out[k++] = logb(40.0 * one); out[k++] = ilogb(0.3 * one);
    double whole;
    out[k++] = modf(-3.75 * one, &whole); out[k++] = whole;
    double s, c;
    sincos(one, &s, &c);
    out[k++] = s * s + c * c; out[k++] = sinpi(0.5 * one); out[k++] = cospi(one); out[k++] = normcdf(zero); out[k++] = rcbrt(8.0 * one); out[k++] = rhypot(3.0 * one, 4.0 * one);
    out[k++] = fma(1e16 * one, 1.0 + 1e-16, -1e16); out[k++] = llrint(2.5 * one); out[k++] = lround(-2.5 * one); out[k++] = __double2int_rz(-7.9 * one);
}

__global__ void fast(const float *x, float *y)
{
    int i = threadIdx.x;
    float v = x[i];
    y[i * 8 + 0] = __sinf(v); y[i * 8 + 1] = __cosf(v); y[i * 8 + 2] = __expf(v); y[i * 8 + 3] = __logf(v + 4); y[i * 8 + 4] = __fdividef(v, 3.7f);
    y[i * 8 + 5] = __powf(v + 4, 1.7f); y[i * 8 + 6] = rsqrtf(v + 4); y[i * 8 + 7] = __frcp_rn(v + 4);
}

__global__ void integers(uint64_t *out)
{
    unsigned t = threadIdx.x * 2654435761u + 12345u;
    uint64_t *o = out + 16 * threadIdx.x, l = (uint64_t)t << 17 ^ t;
    o[0] = __popc(t); o[1] = __popcll(l); o[2] = __clz(t); o[3] = __clzll(l); o[4] = __ffs(t); o[5] = __brev(t); o[6] = __brevll(l);
    o[7] = __umulhi(t, 0x87654321u); o[8] = __umul64hi(l, l); o[9] = (unsigned)__mulhi((int)t, -77777); o[10] = __usad(t, 99u, 5u);
    o[11] = __byte_perm(t, ~t, 0x6250); o[12] = __funnelshift_l(t, ~t, 13); o[13] = __uhadd(t, 0xffffffffu);
    o[14] = (unsigned)__vadd4(t, 0x01ff80ffu); o[15] = __dp4a((int)t, 0x01020304, 7);
}

static double random_in(double low, double high)
{
    static uint64_t s = 88172645463325252ull;
    s ^= s << 13; s ^= s >> 7; s ^= s << 17;
    return low + (high - low) * (s >> 11) / 9007199254740992.0;
}

static int failures;
static void compare(const char *name, double a, double b, double got, double want, double ulps, double epsilon)
{
    if (got == want || (isnan(got) && isnan(want))) return;
    double allowed = ulps * epsilon * fmax(fabs(want), 1e-300);
    if (!(fabs(got - want) <= allowed) && failures++ < 10)
        printf("%s(%.17g, %.17g) is %.17g, not %.17g (%.1f units)\n", name, a, b, got, want, fabs(got - want) / (epsilon * fabs(want)));
}

int main()
{
    static double a[COUNT], b[COUNT], y[COUNT];
    static float yf[COUNT];
    double *da, *db, *dy;
    float *dyf;
    cudaMalloc(&da, sizeof a); cudaMalloc(&db, sizeof b); cudaMalloc(&dy, sizeof y); cudaMalloc(&dyf, sizeof yf);
    int k = 0;
#define X(fn, low, high, ulp)                                                                                         \
    for (int i = 0; i < COUNT; i++) a[i] = (float)random_in(low, high);                                              \
    cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);                                                             \
    unary<<<(COUNT + 127) / 128, 128>>>(k++, da, dy, dyf);                                                           \
    cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);                                                             \
    cudaMemcpy(yf, dyf, sizeof yf, cudaMemcpyDeviceToHost);                                                          \
    for (int i = 0; i < COUNT; i++) {                                                                                \
        compare(#fn, a[i], 0, y[i], fn(a[i]), ulp, 2.3e-16);                                                           \
        compare(#fn "f", a[i], 0, yf[i], fn(a[i]), ulp + 1, 1.2e-7);                                                   \
    }
#define exp10(x) pow(10.0, x)
    UNARY(X)
#undef X
    k = 0;
#define X(fn, al, ah, bl, bh, ulp)                                                                                    \
    for (int i = 0; i < COUNT; i++) a[i] = (float)random_in(al, ah), b[i] = (float)random_in(bl, bh);                \
    cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);                                                             \
    cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice);                                                             \
    binary<<<(COUNT + 127) / 128, 128>>>(k++, da, db, dy, dyf);                                                      \
    cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);                                                             \
    cudaMemcpy(yf, dyf, sizeof yf, cudaMemcpyDeviceToHost);                                                          \
    for (int i = 0; i < COUNT; i++) {                                                                                \
        compare(#fn, a[i], b[i], y[i], fn(a[i], b[i]), ulp, 2.3e-16);                                                  \
        compare(#fn "f", a[i], b[i], yf[i], ulp ? fn(a[i], b[i]) : fn##f((float)a[i], (float)b[i]), ulp + 5, 1.2e-7);   \
    }
    BINARY(X)
#undef X

    double in[3] = {0, 1, 1e308}, got[24];
    const double want[24] = {INFINITY, -INFINITY, NAN, 1, INFINITY, M_PI, 15, 0.75, 6, 24, 5, -2, -0.75, -3, 1, 1, -1, 0.5, 0.5, 0.2, 0, 2, -3, -7};
    cudaMemcpy(dy, in, sizeof in, cudaMemcpyHostToDevice);
    special<<<1, 1>>>(dy);
    cudaMemcpy(got, dy, sizeof got, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 24; i++) compare("special", i, 0, got[i], want[i], 2, 2.3e-16);

    float x[64], *dx, fast_got[64 * 8];
    for (int i = 0; i < 64; i++) x[i] = (float)random_in(-3, 3);
    cudaMalloc(&dx, sizeof x); cudaFree(dyf); cudaMalloc(&dyf, sizeof fast_got);
    cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
    fast<<<1, 64>>>(dx, dyf);
    cudaMemcpy(fast_got, dyf, sizeof fast_got, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 64; i++) {
        double v = x[i];
        const double w[8] = {sin(v), cos(v), exp(v), log(v + 4), v / 3.7f, pow(v + 4, 1.7f), 1 / sqrt(v + 4), 1 / (v + 4)};
        for (int j = 0; j < 8; j++)
            if (fabs(fast_got[8 * i + j] - w[j]) > 4e-6 * (1 + fabs(w[j]))) failures++, printf("fast %d of %g: %g, not %g\n", j, v, fast_got[8 * i + j], w[j]);
    }

    uint64_t *dl, l[64 * 16];
    cudaMalloc(&dl, sizeof l);
    integers<<<1, 64>>>(dl);
    cudaMemcpy(l, dl, sizeof l, cudaMemcpyDeviceToHost);
    for (unsigned t = 0; t < 64; t++) {
        uint32_t v = t * 2654435761u + 12345u, r = 0, add4 = 0;
        uint64_t w = (uint64_t)v << 17 ^ v, rl = 0;
        for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
        for (int i = 0; i < 64; i++) rl |= (w >> i & 1) << (63 - i);
        int dot = 7;
        for (int i = 0; i < 4; i++) {
            add4 |= ((v >> 8 * i) + (0x01ff80ffu >> 8 * i) & 255) << 8 * i;
            dot += (int8_t)(v >> 8 * i) * (int8_t)(0x01020304 >> 8 * i);
        }
        const uint64_t wanted[16] = {
            (uint64_t)__builtin_popcount(v), (uint64_t)__builtin_popcountll(w), (uint64_t)__builtin_clz(v), (uint64_t)__builtin_clzll(w), (uint64_t)__builtin_ffs(v), r, rl,
            (uint64_t)v * 0x87654321u >> 32, (uint64_t)((unsigned __int128)w * w >> 64), (uint32_t)((int64_t)(int32_t)v * -77777 >> 32), (v > 99 ? v - 99 : 99 - v) + 5u,
            (v & 255) | (~v >> 8 & 255) << 8 | (v >> 16 & 255) << 16 | (~v >> 16 & 255) << 24, (uint32_t)(((uint64_t)~v << 32 | v) << 13 >> 32),
            ((uint64_t)v + 0xffffffffu) >> 1, add4, (uint64_t)(int64_t)dot};
        for (int i = 0; i < 16; i++) {
            if (l[16 * t + i] != wanted[i] && failures++ < 10)
                printf("integer %d of %x: %llx, not %llx\n", i, v, (unsigned long long)l[16 * t + i], (unsigned long long)wanted[i]);
        }
    }
    if (cudaGetLastError()) failures++;
    printf("%s\n", failures ? "FAIL" : "PASS");
    return failures != 0;
}
