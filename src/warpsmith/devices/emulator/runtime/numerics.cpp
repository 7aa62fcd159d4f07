// Numeric functions over the 32 lanes of a warp, for what has no short form in LLVM IR.
//
// Called by compiled kernels (lowering/floating.py, half.py, convert.py) with arrays of 32 elements,
// aligned to 64 bytes.  Exact unless the comment says otherwise.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
// One body, compiled for several processors; the loader picks by what the processor has (not by its model, as
// it would for "arch=...").
#define WS_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#define WS_FMA_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define WS_CLONES
#define WS_FMA_CLONES
#endif
#if defined(__GNUC__) && !defined(__clang__)
// Results must not depend on whether the processor has a fused multiply-add.
#pragma GCC optimize("fp-contract=off", "no-math-errno", "no-trapping-math", "tree-vectorize", "vect-cost-model=dynamic")
#endif

// Helpers must end up inside the clones, whatever processor they were written for.
#define WS_INLINE inline __attribute__((always_inline))

#define LANES _Pragma("GCC unroll 1") for (int l = 0; l < WS_LANES; l++)

namespace {

// ---- the rounding mode ------------------------------------------------------------------------------
// The mode is a property of the thread, set around the loop.  The asm statements keep the compiler from
// moving arithmetic across: operands are only loaded after the first, results are stored before the second.
#if defined(__x86_64__)
enum { NEAREST = 0x0000, DOWN = 0x2000, UP = 0x4000, ZERO = 0x6000 };
WS_INLINE unsigned enter(unsigned mode) {
  const unsigned old = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr((old & ~0x6000u) | mode);
  asm volatile("" ::: "memory");
  return old;
}
WS_INLINE void leave(unsigned old) {
  asm volatile("" ::: "memory");
  __builtin_ia32_ldmxcsr(old);
}
#else
#include <fenv.h>
enum { NEAREST = FE_TONEAREST, DOWN = FE_DOWNWARD, UP = FE_UPWARD, ZERO = FE_TOWARDZERO };
WS_INLINE int enter(int mode) {
  const int old = fegetround();
  fesetround(mode);
  asm volatile("" ::: "memory");
  return old;
}
WS_INLINE void leave(int old) {
  asm volatile("" ::: "memory");
  fesetround(old);
}
#endif

// ---- small floating-point formats ----------------------------------------------------------------------
template <class To, class From> WS_INLINE To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To r;
  memcpy(&r, &v, sizeof r);
  return r;
}

// The code of v in a format with E exponent and M fraction bits, without its sign, to nearest even,
// clamped to `largest`.
template <int E, int M> WS_INLINE uint32_t encode(float v, uint32_t largest, uint32_t nan) {
  constexpr int bias = (1 << (E - 1)) - 1;
  const uint32_t u = bits<uint32_t>(v) & 0x7fffffffu;
  // Below the smallest normal number the spacing is fixed: adding a float with that spacing rounds.
  const float spacing = bits<float>(uint32_t(127 + 23 + 1 - bias - M) << 23);
  const uint32_t subnormal = bits<uint32_t>(bits<float>(u) + spacing) - bits<uint32_t>(spacing);
  const uint32_t normal = (u + ((1u << (22 - M)) - 1) + ((u >> (23 - M)) & 1) - (uint32_t(127 - bias) << 23)) >> (23 - M);
  const uint32_t r = u < (uint32_t(128 - bias) << 23) ? subnormal : normal;
  return u > 0x7f800000u ? nan : r < largest && u < 0x7f800000u ? r : largest;
}

// f16 bits of a code in a format with E exponent and M fraction bits (every value is exact in f16).
template <int E, int M> constexpr uint16_t decode(uint32_t code) {
  constexpr int bias = (1 << (E - 1)) - 1;
  const uint32_t magnitude = code & ((1u << (E + M)) - 1), e = magnitude >> M, m = magnitude & ((1u << M) - 1);
  const uint32_t sign = (code >> (E + M) & 1) << 15;
  if (e != 0) return uint16_t(sign | (e + 15 - bias) << 10 | m << (10 - M));
  if (bias == 15) return uint16_t(sign | m << (10 - M));  // subnormal in both
  if (m == 0) return uint16_t(sign);
  int lead = M - 1;
  while (!(m >> lead & 1)) lead--;  // the leading one becomes implicit
  return uint16_t(sign | uint32_t(16 - bias - M + lead) << 10 | (m << (10 - lead) & 0x3ff));
}
struct Table {
  uint16_t f16[256];
};
// nan: magnitudes above this are NaN.
template <int E, int M> constexpr Table decoded(uint32_t nan) {
  Table t{};
  for (uint32_t c = 0; c < 256; c++) t.f16[c] = (c & ((1u << (E + M)) - 1)) > nan ? 0x7fff : decode<E, M>(c);
  return t;
}
constexpr Table e4m3 = decoded<4, 3>(0x7e), e5m2 = decoded<5, 2>(0x7c), e2m3 = decoded<2, 3>(0x1f), e3m2 = decoded<3, 2>(0x1f),
                e2m1 = decoded<2, 1>(0x7);

// ---- approximations: well inside the bounds of the PTX ISA -----------------------------------------------
// One lane each, without branches, so that a loop over the lanes becomes vector code.

// 2^x for |x| < 126.
WS_INLINE float power_of_two(float x) {
  const float shifted = x + 12582912.0f;  // 1.5 * 2^23: the nearest integer is in the low bits
  const float r = x - (shifted - 12582912.0f);
  const int32_t n = bits<int32_t>(shifted) - 0x4b400000;
  float p = 0.00015353360504377633f;
  p = p * r + 0.0013398875016719103f;
  p = p * r + 0.00961843691766262f;
  p = p * r + 0.055503323674201965f;
  p = p * r + 0.24022647738456726f;
  p = p * r + 0.6931471824645996f;
  return (p * r + 1.0f) * bits<float>((n + 127) << 23);
}

// x = 2^k m with m in [sqrt(1/2), sqrt(2)); log2(m) = r P(r), r = m - 1, |relative error of P| < 2^-27.
WS_INLINE float log2_of(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const int32_t u = bits<int32_t>(tiny ? x * 8388608.0f : x);
  const int32_t k = (u - 0x3f3504f3) >> 23;
  const float r = bits<float>(u - (k << 23)) - 1.0f;
  float p = -0.1099480539560318f;
  p = p * r + 0.18617413938045502f;
  p = p * r - 0.19106297194957733f;
  p = p * r + 0.2046007663011551f;
  p = p * r - 0.23961739242076874f;
  p = p * r + 0.2885673940181732f;
  p = p * r - 0.3606966435909271f;
  p = p * r + 0.4808982312679291f;
  p = p * r - 0.7213473320007324f;
  p = p * r + 1.4426950216293335f;
  float y = float(tiny ? k - 23 : k) + r * p;
  y = x == 0 ? -INFINITY : y;
  y = x == INFINITY ? x : y;
  return x >= 0 ? y : NAN;
}

WS_INLINE float tanh_of(float x) {
  const float t = fabsf(x), z = x * x;
  float p = -0.005895150825381279f;
  p = p * z + 0.02079596556723118f;
  p = p * z - 0.053783826529979706f;
  p = p * z + 0.13331924378871918f;
  p = p * z - 0.33333298563957214f;
  const float small = t + t * (z * p);
  const float large = 1.0f - 2.0f / (power_of_two((t < 10.0f ? t : 10.0f) * 2.885390082f) + 1.0f);
  // The hardware passes small numbers through and gives 1 from 8 on.
  const float middle = t < 0.6f ? small : large;
  const float y = t < 0x1p-8f ? t : t < 8.0f ? middle : 1.0f;
  return x == x ? bits<float>(bits<uint32_t>(y) | (bits<uint32_t>(x) & 0x80000000u)) : x;
}

// sin of x and n quarter turns.  The argument is reduced as the hardware does it (seen on an H200): x / 2pi is cut to
// the precision of a float, and then to 25 binary places of a turn.  The rest lies within 2^-21.5 of the hardware's.
WS_INLINE float sine(float x, uint32_t quarters) {
  const double turns = fabs(bits<double>(bits<uint64_t>(double(x) * 0x1.45f306p-3) & ~0x1fffffffull));
  const double rest = turns - floor(turns);
  const uint32_t place = uint32_t(int32_t((rest >= 0 ? rest : 0) * 0x1p25)) + (quarters << 23);
  const int32_t within = int32_t(place & 0x7fffff);
  const int32_t ahead = place & 0x800000 ? 0x800000 - within : within;  // in the first quarter now
  const bool steep = ahead <= 0x400000;
  const float r = float(steep ? ahead : 0x800000 - ahead) * 1.8725351414619535e-07f;  // pi / 2 * 2^-23
  const float z = r * r;
  const float s = r + r * (z * (-0.16666655242443085f + z * (0.00833216030150652f + z * -0.00019515249005053192f)));
  const float c = 1.0f - 0.5f * z + z * z * (0.04166664555668831f + z * (-0.0013887316454201937f + z * 2.4433118596789427e-05f));
  const uint32_t sign = (place << 7 ^ (quarters ? 0 : bits<uint32_t>(x))) & 0x80000000u;
  const float y = bits<float>(bits<uint32_t>(steep ? s : c) | sign);
  return x - x == 0 ? y : NAN;
}
}  // namespace

WS_API WS_CLONES void ws_lg2_f32(float* __restrict out, const float* a) { LANES out[l] = log2_of(a[l]); }
WS_API WS_CLONES void ws_tanh_f32(float* __restrict out, const float* a) { LANES out[l] = tanh_of(a[l]); }
WS_API WS_CLONES void ws_sin_f32(float* __restrict out, const float* a) { LANES out[l] = sine(a[l], 0); }
WS_API WS_CLONES void ws_cos_f32(float* __restrict out, const float* a) { LANES out[l] = sine(a[l], 1); }

// ---- 8, 6 and 4 bit formats ----------------------------------------------------------------------------
// From f32, to nearest even, never infinite.  The NaN of the 8-bit formats has no sign; the narrower
// ones have no NaN and give their largest number.
#define SMALL(NAME, E, M, LARGEST, NAN_CODE)                                                                             \
  WS_API WS_CLONES void ws_##NAME##_of_f32(uint8_t* __restrict out, const float* a) {                                    \
    LANES {                                                                                                              \
      const uint32_t code = encode<E, M>(a[l], LARGEST, NAN_CODE);                                                       \
      const uint32_t sign = (bits<uint32_t>(a[l]) >> 31) << (E + M);                                                     \
      out[l] = uint8_t(a[l] == a[l] ? code | sign : code);                                                               \
    }                                                                                                                    \
  }                                                                                                                      \
  WS_API void ws_f16_of_##NAME(uint16_t* __restrict out, const uint8_t* a) { LANES out[l] = NAME.f16[a[l]]; }
SMALL(e4m3, 4, 3, 0x7e, 0x7f)
SMALL(e5m2, 5, 2, 0x7b, 0x7f)
SMALL(e2m3, 2, 3, 0x1f, 0x1f)
SMALL(e3m2, 3, 2, 0x1f, 0x1f)
SMALL(e2m1, 2, 1, 0x7, 0x7)

// ---- what older processors lack ----------------------------------------------------------------------------
// A fused multiply-add, f16 conversions, rounding to integers: compiled kernels call these only if the
// processor has no instruction for it (lowering/host.py).
WS_API WS_FMA_CLONES void ws_fma_rn_f32(float* __restrict out, const float* a, const float* b, const float* c) {
  LANES out[l] = __builtin_fmaf(a[l], b[l], c[l]);
}
WS_API WS_FMA_CLONES void ws_fma_rn_f64(double* __restrict out, const double* a, const double* b, const double* c) {
  LANES out[l] = __builtin_fma(a[l], b[l], c[l]);
}
WS_API void ws_f32_of_f16(float* __restrict out, const uint16_t* a) {
  LANES {
    // The exponent is rebased by a product, which also makes subnormals normal; infinities and NaN again.
    const uint32_t u = uint32_t(a[l] & 0x7fff) << 13;
    const uint32_t r = bits<uint32_t>(bits<float>(u) * bits<float>(uint32_t(127 + 112) << 23)) | (u >= 0x0f800000u ? 0x7f800000u : 0);
    out[l] = bits<float>(r | uint32_t(a[l] & 0x8000) << 16);
  }
}
WS_API void ws_f16_of_f32(uint16_t* __restrict out, const float* a) {
  LANES {
    const uint32_t u = bits<uint32_t>(a[l]);
    const uint32_t code = encode<5, 10>(a[l], 0x7c00, 0x7e00);
    out[l] = uint16_t(code | (u >> 31) << 15);
  }
}
#define INTEGRAL(NAME, FUNCTION)                                                                                           \
  WS_API void ws_##NAME##_f32(float* __restrict out, const float* a) { LANES out[l] = __builtin_##FUNCTION##f(a[l]); }    \
  WS_API void ws_##NAME##_f64(double* __restrict out, const double* a) { LANES out[l] = __builtin_##FUNCTION(a[l]); }
INTEGRAL(rni, nearbyint)
INTEGRAL(rzi, trunc)
INTEGRAL(rmi, floor)
INTEGRAL(rpi, ceil)

// ---- directed rounding ---------------------------------------------------------------------------------------
// add, sub, mul, div, fma, sqrt in the directed modes
#define DIRECTED(CLONES, NAME, MODE, TYPE, PARAMS, EXPR)                                 \
  WS_API CLONES void ws_##NAME##_##TYPE PARAMS {                                         \
    const auto old = enter(MODE);                                                        \
    LANES out[l] = EXPR;                                                                 \
    leave(old);                                                                          \
  }
#define BINARY(OP, SIGN, MODE, M, TYPE, T)                                             \
  DIRECTED(WS_CLONES, OP##_##M, MODE, TYPE, (T* __restrict out, const T* a, const T* b), a[l] SIGN b[l])
#define OPERATIONS(MODE, M, TYPE, T, FMA, SQRT)                                        \
  BINARY(add, +, MODE, M, TYPE, T)                                                       \
  BINARY(sub, -, MODE, M, TYPE, T)                                                       \
  BINARY(mul, *, MODE, M, TYPE, T)                                                       \
  BINARY(div, /, MODE, M, TYPE, T)                                                       \
  DIRECTED(WS_CLONES, sqrt_##M, MODE, TYPE, (T* __restrict out, const T* a), SQRT(a[l]))         \
  DIRECTED(WS_FMA_CLONES, fma_##M, MODE, TYPE, (T* __restrict out, const T* a, const T* b, const T* c), FMA(a[l], b[l], c[l]))
#define BOTH(MODE, M)                                                                  \
  OPERATIONS(MODE, M, f32, float, __builtin_fmaf, __builtin_sqrtf)                       \
  OPERATIONS(MODE, M, f64, double, __builtin_fma, __builtin_sqrt)                        \
  DIRECTED(WS_CLONES, M, MODE, f64_of_s64, (double* __restrict out, const int64_t* a), double(a[l]))  \
  DIRECTED(WS_CLONES, M, MODE, f64_of_u64, (double* __restrict out, const uint64_t* a), double(a[l]))
BOTH(ZERO, rz)
BOTH(DOWN, rm)
BOTH(UP, rp)
