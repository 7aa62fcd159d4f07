// Sums of a tensor core, one element at a time, right for every input: what the fast versions fall back to.
//
// The rules were found by comparing with an H200 (tests/golden/h200/matrix.json); each is tested bit for bit:
// a number counts with the exponent of its encoding, so subnormal ones with the least exponent of their type;
// zeros do not count; terms are cut towards zero; a sum that is zero, or becomes zero by rounding, is +0; f32 results
// are cut, f16 results are rounded to nearest even; a NaN is all ones but its sign.
#include <cstring>

#include "matrix.h"

namespace ws::matrix {

namespace {

struct Format {
  int exponent, mantissa, bias;
};

Format format_of(uint32_t type) {
  switch (type) {
    case WS_M_F16: return {5, 10, 15};
    case WS_M_E5M2: return {5, 2, 15};
    case WS_M_E4M3: return {4, 3, 7};
    case WS_M_BF16: return {8, 7, 127};
    case WS_M_TF32: return {8, 10, 127};
    default: return {8, 23, 127};
  }
}

int64_t cut(int64_t v, int shift) {  // v * 2^-shift, towards zero
  if (shift <= 0) return v << -shift;
  if (shift > 62) return 0;
  return v < 0 ? -(-v >> shift) : v >> shift;
}

int msb(uint64_t v) { return 63 - __builtin_clzll(v); }

// value = sum * 2^scale as an f32 with `kept` fraction bits, cut.
Word to_f32(int64_t sum, int scale, int kept) {
  if (!sum) return 0;
  const uint64_t magnitude = sum < 0 ? uint64_t(-sum) : uint64_t(sum);
  const Word sign = sum < 0 ? 0x80000000u : 0;
  int exponent = msb(magnitude) + scale;
  if (exponent > 127) return sign | 0x7f800000u;
  if (exponent < -126) exponent = -126;
  const int shift = exponent - 23 - scale;
  uint64_t significand = shift > 0 ? (shift > 63 ? 0 : magnitude >> shift) : magnitude << -shift;
  significand &= ~((uint64_t(1) << (23 - kept)) - 1);
  if (!significand) return 0;
  return sign | (significand >> 23 ? Word(exponent + 127) << 23 : 0) | Word(significand & 0x7fffff);
}

// The same as an f16, to nearest even.
Word to_f16_bits(int64_t sum, int scale) {
  if (!sum) return 0;
  const uint64_t magnitude = sum < 0 ? uint64_t(-sum) : uint64_t(sum);
  const Word sign = sum < 0 ? 0x8000u : 0;
  int exponent = msb(magnitude) + scale;
  if (exponent > 15) return sign | 0x7c00u;
  if (exponent < -14) exponent = -14;
  const int shift = exponent - 10 - scale;
  uint64_t significand;
  if (shift <= 0) {
    significand = magnitude << -shift;
  } else if (shift > 62) {
    significand = 0;
  } else {
    significand = magnitude >> shift;
    const uint64_t rest = magnitude & ((uint64_t(1) << shift) - 1), half = uint64_t(1) << (shift - 1);
    if (rest > half || (rest == half && (significand & 1))) ++significand;
  }
  if (!significand) return 0;
  // A carry out of the significand raises the exponent, up to infinity.
  return sign | Word((significand >> 10 ? (uint64_t(exponent + 15 - 1) << 10) : 0) + significand);
}

}  // namespace

Number decode(uint32_t type, Word bits) {
  const Format f = format_of(type);
  if (type == WS_M_TF32) bits >>= 13;
  const int field = int(bits >> f.mantissa) & ((1 << f.exponent) - 1);
  const int32_t mantissa = int32_t(bits & ((1u << f.mantissa) - 1));
  const bool negative = bits >> (f.mantissa + f.exponent) & 1;
  Number n;
  if (type == WS_M_E4M3 ? field == 15 && mantissa == 7 : field == (1 << f.exponent) - 1) {
    n.kind = type == WS_M_E4M3 || mantissa ? Number::nan : Number::infinite;
    n.significand = negative ? -1 : 1;
    return n;
  }
  n.significand = field ? mantissa | 1 << f.mantissa : mantissa;
  if (negative) n.significand = -n.significand;
  n.exponent = int16_t((field ? field : 1) - f.bias);
  return n;
}

Word reference_sum(const Sum& s, const Number* a, const Number* b, uint32_t stride, Word c) {
  const bool half = s.d == WS_M_F16;
  const Word quiet = half ? 0x7fffu : 0x7fffffffu;
  const Number start = decode(s.c, c);
  bool up = false, down = false;  // infinities among the terms
  int top = -100000;
  if (start.kind == Number::nan) return quiet;
  if (start.kind == Number::infinite) (start.significand < 0 ? down : up) = true;
  else if (start.significand) top = start.exponent;
  for (uint32_t i = 0; i < s.k; ++i) {
    const Number &x = a[i], &y = b[i * stride];
    if (x.kind == Number::absent) continue;
    if (x.kind == Number::nan || y.kind == Number::nan) return quiet;
    if (x.kind == Number::infinite || y.kind == Number::infinite) {
      if (!x.significand || !y.significand) return quiet;
      ((x.significand < 0) != (y.significand < 0) ? down : up) = true;
    } else if (x.significand && y.significand && x.exponent + y.exponent > top) {
      top = x.exponent + y.exponent;
    }
  }
  if (up && down) return quiet;
  if (up || down) return (down ? (half ? 0x8000u : 0x80000000u) : 0) | (half ? 0x7c00u : 0x7f800000u);
  if (top == -100000) return 0;
  const int fraction = int(s.fraction), products = format_of(s.a).mantissa + format_of(s.b).mantissa;
  int64_t sum = start.significand ? cut(start.significand, top - fraction - start.exponent + format_of(s.c).mantissa) : 0;
  for (uint32_t i = 0; i < s.k; ++i) {
    const Number &x = a[i], &y = b[i * stride];
    if (x.kind == Number::absent || !x.significand || !y.significand) continue;
    sum += cut(int64_t(x.significand) * y.significand, top - fraction - x.exponent - y.exponent + products);
  }
  return half ? to_f16_bits(sum, top - fraction) : to_f32(sum, top - fraction, int(s.kept));
}

float f16_to_float(uint16_t h) {
  const Word sign = Word(h & 0x8000) << 16, magnitude = h & 0x7fffu;
  float f;
  Word bits = magnitude << 13;
  std::memcpy(&f, &bits, 4);
  f *= 0x1p112f;
  std::memcpy(&bits, &f, 4);
  if (magnitude >= 0x7c00) bits = 0x7f800000u | (magnitude & 0x3ffu) << 13;
  bits |= sign;
  std::memcpy(&f, &bits, 4);
  return f;
}

uint16_t float_to_f16(float f) {
  if (f != f) return 0x7fff;
  Word x;
  std::memcpy(&x, &f, 4);
  const Word sign = x >> 16 & 0x8000u;
  x &= 0x7fffffffu;
  if (x >= 0x7f800000u) return uint16_t(sign | 0x7c00u);
  const Number n = decode(WS_M_F32, x);
  return uint16_t(sign | to_f16_bits(n.significand, n.exponent - 23));
}

Word e4m3_to_f16(uint8_t x) {
  const Word sign = Word(x & 0x80) << 8;
  if ((x & 0x7f) == 0x7f) return 0x7fff;
  const Number n = decode(WS_M_E4M3, x & 0x7fu);
  return sign | to_f16_bits(n.significand, n.exponent - 3);
}

uint32_t elements(uint32_t type) {
  switch (type) {
    case WS_M_F16: case WS_M_BF16: return 2;
    case WS_M_E4M3: case WS_M_E5M2: case WS_M_S8: case WS_M_U8: return 4;
    case WS_M_S4: case WS_M_U4: return 8;
    case WS_M_B1: return 32;
    default: return 1;
  }
}

}  // namespace ws::matrix
