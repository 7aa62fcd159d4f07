// Products of small matrices by a warp: mma, wmma and what they are made of.
//
// A fragment is an array [register][32] of words; element i of register r of lane 4g + t lies, for e elements a register,
//   A (16 x K):  row g + 8 (r % 2), column 4e (r / 2) + e t + i
//   B (K x 8):   row 4e r + e t + i, column g
//   C (16 x 8):  row g + 8 (n / 2), column 2t + n % 2, n counting the elements of the lane
// and for 8 rows A has no odd registers and C half of its elements (PTX ISA 9.7.14.5).  All shapes of mma and wmma
// but one come down to products of this kind.
#pragma once
#include <cstdint>

#include "abi.h"

namespace ws::matrix {

using Word = uint32_t;

// Operands made ready for products: the elements of a matrix widened and put in order once, however many products it takes
// part in.  Each starts with its registers.
constexpr uint32_t kLeftBytes = WS_LEFT_BYTES, kRightBytes = WS_RIGHT_BYTES;  // for four registers of A, two of B; twice that for the double
struct Prepared {
  // Of A and B; registers: of B, 1, 2 or 4.  hardware: for sums as the hardware forms them.
  void (*left[3])(void* left, bool hardware);
  void (*right[3])(void* right, bool hardware);
  // C and D in f32 ([4][32]), d may be c.  Sums as a Hopper tensor core forms them.  floor: the least biased exponent that
  // a number of C counts with; sticky: the last bit of D is set if bits were lost (to round once more).  False, with D
  // untouched, if an operand is outside the range for which this is right: infinity, NaN, extreme exponents.
  bool (*exact[3])(const void* left, const void* right, const Word* c, Word* d, int floor, bool sticky);
  // Plain f32 sums in order of k.  False as above.
  bool (*fast[3])(const void* left, const void* right, const Word* c, Word* d);
};

// What is worth a vectorised version.  Fragments are 64-byte aligned.
struct Kernels {
  Prepared f16, bf16, tf32;
  // 8 or 4-bit integers, C and D in s32; sums are exact.
  using Integer = void (*)(const Word* a, const Word* b, const Word* c, Word* d, bool a_signed, bool b_signed, bool saturate);
  Integer integer8[3], integer4[3];
  // m x k times k x 8, row by row, each sum a chain of fused multiply-adds.
  void (*doubles)(uint32_t m, uint32_t k, const double* a, const double* b, double* d);
  // m x k bits times k x 8 bits, in words of 32: adds to d.
  void (*bits)(uint32_t m, uint32_t words, const Word* a, const Word* b, Word* d, bool conjunction);
  // Four registers of f32 in C's layout to two of f16 pairs, to nearest even.  A result of zero is positive if positive_zero.
  void (*to_f16)(const Word* in, Word* out, bool positive_zero);
};

extern const Kernels kernels_base, kernels_v3, kernels_v4;
const Kernels& kernels();  // the best that this processor can run

// An operand of the reference: value = significand * 2^(exponent - fraction bits of its type).
struct Number {
  enum Kind : uint8_t { finite, infinite, nan, absent };
  int32_t significand = 0;  // signed
  int16_t exponent = 0;
  Kind kind = finite;
};
Number decode(uint32_t type, Word bits);

// How a tensor core adds: in groups, all terms of a group cut to `fraction` bits below the largest exponent.
struct Sum {
  uint32_t k = 16;
  uint32_t fraction = 25;
  uint32_t kept = 23;                 // fraction bits of an f32 result
  uint32_t a = WS_M_F16, b = WS_M_F16, c = WS_M_F32, d = WS_M_F32;
};
// One element of D: c + sum of a[i] * b[i * stride], correct for all inputs.  Bits of the type sum.d (f32 or f16).
Word reference_sum(const Sum& sum, const Number* a, const Number* b, uint32_t stride, Word c);

float f16_to_float(uint16_t h);
uint16_t float_to_f16(float f);      // to nearest even; NaN is 0x7fff
Word e4m3_to_f16(uint8_t x);         // bits
uint32_t elements(uint32_t type);    // in a 32-bit register

}  // namespace ws::matrix
