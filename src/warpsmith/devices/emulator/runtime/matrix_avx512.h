// The products of matrix.h in vectors of 16 lanes, for AVX-512.
//
// A quarter of a C fragment, one register of 16 lanes, is an outer product of 4 rows and 4 columns: in lane 4g + t the row is
// g, the column 2t or 2t + 1.  So a column of A is spread within groups of four lanes, and a row of B is repeated.

namespace ws::matrix::WS_ISA {
namespace {

typedef float F __attribute__((vector_size(64), may_alias));
typedef int32_t I __attribute__((vector_size(64), may_alias));
typedef uint32_t U __attribute__((vector_size(64), may_alias));
typedef int16_t H __attribute__((vector_size(64), may_alias));
typedef uint16_t UH __attribute__((vector_size(64), may_alias));

#define WS_INLINE static inline __attribute__((always_inline))
#define WS_MEMBER inline __attribute__((always_inline))
#ifdef __clang__
#define WS_SHUFFLE(a, b, index, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define WS_UNROLL _Pragma("unroll")
#else
#define WS_SHUFFLE(a, b, index, ...) __builtin_shuffle(a, b, (index){__VA_ARGS__})
#define WS_UNROLL _Pragma("GCC unroll 16")
#endif

// ---- moving ------------------------------------------------------------------------------------------

// Lane t of every group of four, in all four of them.
template <int T>
WS_INLINE F spread(const F& v) {
  return (F)_mm512_permute_ps((__m512)v, T * 0x55);
}

// Four floats, four times.
WS_INLINE F repeat(const float* p) {
  return (F)_mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));  // GCC folds the load of this one
}

// Half i of a fragment: 16 lanes of register i / 2.
WS_INLINE U part(const Word* fragment, int i) { return reinterpret_cast<const U*>(fragment)[i]; }

// A register of B, lanes 4n + t, in the order in which rows are read, [t][n % 2][n / 2]; half h has rows 2h and 2h + 1.
WS_INLINE U turned(const Word* b, int h) {
  const U low = part(b, 0), high = part(b, 1);
  if (h) return WS_SHUFFLE(low, high, U, 2, 10, 18, 26, 6, 14, 22, 30, 3, 11, 19, 27, 7, 15, 23, 31);
  return WS_SHUFFLE(low, high, U, 0, 8, 16, 24, 4, 12, 20, 28, 1, 9, 17, 25, 5, 13, 21, 29);
}

WS_INLINE bool any(const I& v) { return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) != 0; }

// What has been stored is to be loaded again: else GCC keeps it in registers and takes it apart there, which costs more.
#define WS_FORGET(memory) __asm__("" : "+m"(memory))

// ---- element types -----------------------------------------------------------------------------------
// expand: the elements of half a register (16 lanes), element i to f[i].

struct Half {
  static constexpr int kElements = 2, kMantissa = 10, kExponent = 5;
  WS_MEMBER void expand(const U& x, F* f) const {
    f[0] = (F)((I)(x << 16) >> 3 & int32_t(0x8fffe000)) * 0x1p112f;
    f[1] = (F)((I)x >> 3 & int32_t(0x8fffe000)) * 0x1p112f;
  }
};

struct Brain {
  static constexpr int kElements = 2, kMantissa = 7, kExponent = 8;
  WS_MEMBER void expand(const U& x, F* f) const {
    f[0] = (F)(x << 16);
    f[1] = (F)(x & 0xffff0000u);
  }
};

struct Tensor32 {
  static constexpr int kElements = 1, kMantissa = 23, kExponent = 8;
  WS_MEMBER void expand(const U& x, F* f) const { f[0] = (F)(x & 0xffffe000u); }
};

template <int kBits>
struct Whole {  // integers as floats: sums of products stay below 2^24
  static constexpr int kElements = 32 / kBits;
  bool with_sign;
  WS_MEMBER void expand(const U& x, F* f) const {
    const F wrap = F{} + (with_sign ? 0.0f : float(1 << kBits));
    WS_UNROLL
    for (int i = 0; i < kElements; ++i) {
      const F v = __builtin_convertvector((I)(x << (32 - kBits * (i + 1))) >> (32 - kBits), F);
      f[i] = v + (F)((v < 0.0f) & (I)wrap);
    }
  }
};

// ---- plain sums --------------------------------------------------------------------------------------

// The floats of A, by quarter, and of B, row by row.
template <class Type, int kRegisters>
struct LeftFloats {
  F x[kRegisters][4][Type::kElements];
  WS_MEMBER void fill(const Type& type, const Word* a) {
    WS_UNROLL
    for (int j = 0; j < 4 * kRegisters; ++j) type.expand(part(a, j), x[j / 4][j % 4]);
  }
};

template <class Type, int kRegisters>
struct RightFloats {
  alignas(64) float row[kRegisters][Type::kElements][4][8];
  WS_MEMBER void fill(const Type& type, const Word* b) {
    WS_UNROLL
    for (int j = 0; j < kRegisters; ++j) {
      WS_UNROLL
      for (int h = 0; h < 2; ++h) {
        F x[Type::kElements];
        type.expand(turned(b + 32 * j, h), x);
        WS_UNROLL
        for (int i = 0; i < Type::kElements; ++i) *reinterpret_cast<F*>(row[j][i][2 * h]) = x[i];
      }
    }
  }
};

template <int T>
WS_INLINE void step(const F a[4], const float* row, F c[4][2]) {
  const F even = repeat(row), odd = repeat(row + 4);
  WS_UNROLL
  for (int q = 0; q < 4; ++q) {
    const F x = spread<T>(a[q]);
    c[q >> 1 << 1][q & 1] += x * even;
    c[(q >> 1 << 1) + 1][q & 1] += x * odd;
  }
}

template <class Type, int kRegisters>
WS_INLINE void multiply(const LeftFloats<Type, kRegisters>& a, const RightFloats<Type, kRegisters>& b, F c[4][2]) {
  WS_UNROLL
  for (int j = 0; j < kRegisters; ++j) {
    WS_UNROLL
    for (int i = 0; i < Type::kElements; ++i) {
      const F x[4] = {a.x[j][0][i], a.x[j][1][i], a.x[j][2][i], a.x[j][3][i]};
      step<0>(x, b.row[j][i][0], c);
      step<1>(x, b.row[j][i][1], c);
      step<2>(x, b.row[j][i][2], c);
      step<3>(x, b.row[j][i][3], c);
    }
  }
}

template <int kBits, int kRegisters>
void integer(const Word* a, const Word* b, const Word* c, Word* d, bool a_signed, bool b_signed, bool saturate) {
  F sum[4][2] = {};
  LeftFloats<Whole<kBits>, kRegisters> left;
  RightFloats<Whole<kBits>, kRegisters> right;
  left.fill(Whole<kBits>{a_signed}, a);
  right.fill(Whole<kBits>{b_signed}, b);
  WS_FORGET(right);
  multiply(left, right, sum);
  WS_UNROLL
  for (int i = 0; i < 8; ++i) {
    const I old = reinterpret_cast<const I*>(c)[i], more = __builtin_convertvector(sum[i >> 1][i & 1], I);
    I now = (I)((U)old + (U)more);
    if (saturate) {
      const I over = ((old ^ now) & (more ^ now)) >> 31, limit = (old >> 31) ^ 0x7fffffff;
      now = over ? limit : now;
    }
    reinterpret_cast<I*>(d)[i] = now;
  }
}

// ---- sums as the hardware forms them -----------------------------------------------------------------
// All products and c are cut (towards zero) to multiples of 2^(top - 25), top the largest exponent among them, added
// exactly, and the sum is cut to f32.  The exponent of a product is the sum of those of its factors.
//
// Exponents are bytes, for the sake of speed: below the largest of their matrix, from 0 down to -60, where they stop;
// -128 is that of a zero.  A sum above -60 is right, and -128 is that of a zero product; what is between may be wrong.

constexpr int kLeast = -60, kNothing = -128;

// Biased exponents of the elements of half a register, in lanes of 16 or 32 bits (1 for subnormal numbers), and which
// elements are not zero.
struct Fields {
  __m512i e;
  __mmask32 some;
};

template <class Type>
WS_INLINE Fields fields(const U& x) {
  if constexpr (Type::kElements == 2) {
    const UH field = ((UH)x >> Type::kMantissa) & uint16_t((1 << Type::kExponent) - 1);
    return {_mm512_max_epi16((__m512i)field, _mm512_set1_epi16(1)), _mm512_test_epi16_mask((__m512i)x, _mm512_set1_epi16(0x7fff))};
  } else {
    const U field = (x >> 23) & 255u;
    return {_mm512_max_epi32((__m512i)field, _mm512_set1_epi32(1)), _mm512_test_epi32_mask((__m512i)x, _mm512_set1_epi32(0x7fffe000))};
  }
}

template <class Type>
WS_INLINE __m512i larger(__m512i a, __m512i b) {
  if constexpr (Type::kElements == 2) return _mm512_max_epi16(a, b);
  else return _mm512_max_epi32(a, b);
}

// The largest lane; the lanes are not negative.
template <class Type>
WS_INLINE int largest(__m512i v) {
  if constexpr (Type::kElements == 2) v = _mm512_max_epi32(_mm512_and_si512(v, _mm512_set1_epi32(0xffff)), _mm512_srli_epi32(v, 16));
  return _mm512_reduce_max_epi32(v);
}

// Two or four halves to bytes.  In 128-bit part g of the result: row g of the first, then of the second, ...
template <class Type>
WS_INLINE __m512i bytes(const Fields* half, int reference) {
  constexpr bool kShort = Type::kExponent == 5;  // never below kLeast
  if constexpr (Type::kElements == 2) {
    const __m512i r = _mm512_set1_epi16(int16_t(reference)), nothing = _mm512_set1_epi16(kNothing);
    __m512i x[2];
    WS_UNROLL
    for (int i = 0; i < 2; ++i)
      x[i] = _mm512_mask_sub_epi16(nothing, half[i].some, kShort ? half[i].e : _mm512_max_epi16(half[i].e, _mm512_set1_epi16(int16_t(reference + kLeast))), r);
    return _mm512_packs_epi16(x[0], x[1]);
  } else {
    const __m512i r = _mm512_set1_epi32(reference), nothing = _mm512_set1_epi32(kNothing);
    __m512i x[4];
    WS_UNROLL
    for (int i = 0; i < 4; ++i)
      x[i] = _mm512_mask_sub_epi32(nothing, __mmask16(half[i].some), _mm512_max_epi32(half[i].e, _mm512_set1_epi32(reference + kLeast)), r);
    return _mm512_packs_epi16(_mm512_packs_epi32(x[0], x[1]), _mm512_packs_epi32(x[2], x[3]));
  }
}

// One column of A and one row of B: top[r] covers rows 8r to 8r + 7.  In 128-bit part g: row g, even columns, then odd
// ones, then the same of row g + 4.
template <int kPlace, int kStride>
WS_INLINE __m512i column(__m512i bytes) {
  return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(_mm_set_epi64x(0x0101010101010101ll * (kPlace + kStride), 0x0101010101010101ll * kPlace)));
}
WS_INLINE void raise(__m512i& top, __m512i column, int64_t row) {
  top = _mm512_max_epi8(top, _mm512_adds_epi8(column, _mm512_set1_epi64(row)));
}

template <class Type, int kRegisters>
struct Left {
  alignas(64) Word registers[2 * kRegisters][WS_LANES];
  LeftFloats<Type, kRegisters> floats;
  __m512i exponents[kRegisters][Type::kElements];  // see bytes()
  int reference;
  bool special;                                    // there is an infinity or a NaN
  WS_MEMBER void prepare(bool hardware) {
    floats.fill(Type{}, registers[0]);
    constexpr bool kShort = Type::kExponent == 5;  // so few bits need no reference
    Fields field[kRegisters][4];
    __m512i all = _mm512_setzero_si512();
    WS_UNROLL
    for (int j = 0; j < 4 * kRegisters; ++j) all = larger<Type>(all, (field[j / 4][j % 4] = fields<Type>(part(registers[0], j))).e);
    const int most = largest<Type>(all);
    special = most == (1 << Type::kExponent) - 1;
    reference = kShort ? 30 : most;
    if (!hardware) return;
    WS_UNROLL
    for (int j = 0; j < kRegisters; ++j) {
      exponents[j][0] = bytes<Type>(field[j], reference);
      if constexpr (Type::kElements == 2) exponents[j][1] = bytes<Type>(field[j] + 2, reference);
    }
  }
};

template <class Type, int kRegisters>
struct Right {
  alignas(64) Word registers[kRegisters][WS_LANES];
  RightFloats<Type, kRegisters> floats;
  alignas(64) int64_t exponents[kRegisters][8];    // of the rows: even columns, then odd ones
  int reference;
  bool special;
  WS_MEMBER void prepare(bool hardware) {
    floats.fill(Type{}, registers[0]);
    constexpr bool kShort = Type::kExponent == 5;
    Fields field[kRegisters][4];
    __m512i all = _mm512_setzero_si512();
    WS_UNROLL
    for (int j = 0; j < kRegisters; ++j) {
      WS_UNROLL
      for (int h = 0; h < 2; ++h) all = larger<Type>(all, (field[j][h] = fields<Type>(turned(registers[j], h))).e);
      field[j][2] = field[j][3] = {_mm512_setzero_si512(), 0};
    }
    const int most = largest<Type>(all);
    special = most == (1 << Type::kExponent) - 1;
    reference = kShort ? 30 : most;
    if (!hardware) return;
    WS_UNROLL
    for (int j = 0; j < kRegisters; ++j) {
      __m512i x = bytes<Type>(field[j], reference);
      if constexpr (Type::kElements == 2) {
        x = _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(_mm_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0)));
        x = _mm512_permutexvar_epi32(_mm512_set_epi32(15, 11, 14, 10, 7, 3, 6, 2, 13, 9, 12, 8, 5, 1, 4, 0), x);
      } else {
        x = _mm512_permutexvar_epi32(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 9, 5, 1, 12, 8, 4, 0), x);
      }
      _mm512_store_si512(exponents[j], x);
    }
  }
};

// The largest exponents of products: [rows 8r...][quarter: even columns, odd ones, the same 4 rows below][lane].
template <class Type, int kRegisters>
WS_INLINE void find_tops(const Left<Type, kRegisters>& a, const Right<Type, kRegisters>& b, uint8_t top[2][64]) {
  __m512i t[2] = {_mm512_set1_epi8(kNothing), _mm512_set1_epi8(kNothing)};
  WS_UNROLL
  for (int j = 0; j < kRegisters; ++j) {
    const int64_t* row = b.exponents[j];
    WS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const __m512i x = a.exponents[j][Type::kElements == 2 ? r : 0];
      if constexpr (Type::kElements == 2) {
        raise(t[r], column<0, 8>(x), row[0]);
        raise(t[r], column<1, 8>(x), row[1]);
        raise(t[r], column<2, 8>(x), row[2]);
        raise(t[r], column<3, 8>(x), row[3]);
        raise(t[r], column<4, 8>(x), row[4]);
        raise(t[r], column<5, 8>(x), row[5]);
        raise(t[r], column<6, 8>(x), row[6]);
        raise(t[r], column<7, 8>(x), row[7]);
      } else {
        raise(t[r], r ? column<8, 4>(x) : column<0, 4>(x), row[0]);
        raise(t[r], r ? column<9, 4>(x) : column<1, 4>(x), row[1]);
        raise(t[r], r ? column<10, 4>(x) : column<2, 4>(x), row[2]);
        raise(t[r], r ? column<11, 4>(x) : column<3, 4>(x), row[3]);
      }
    }
  }
  const __m512i gather = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  for (int r = 0; r < 2; ++r) _mm512_store_si512(top[r], _mm512_permutexvar_epi32(gather, t[r]));
}

template <class Type, int kRegisters>
bool fast(const void* left, const void* right, const Word* c, Word* d) {
  const auto& a = *static_cast<const Left<Type, kRegisters>*>(left);
  const auto& b = *static_cast<const Right<Type, kRegisters>*>(right);
  if (a.special | b.special) return false;
  F sum[4][2];
  WS_UNROLL
  for (int i = 0; i < 8; ++i) sum[i >> 1][i & 1] = reinterpret_cast<const F*>(c)[i];
  multiply(a.floats, b.floats, sum);
  WS_UNROLL
  for (int i = 0; i < 8; ++i) reinterpret_cast<F*>(d)[i] = sum[i >> 1][i & 1];
  return true;
}

template <int T>
WS_INLINE void cut(const F a[4], const float* row, const F scale[4][2], I sum[4][2]) {
  const F even = repeat(row), odd = repeat(row + 4);
  WS_UNROLL
  for (int q = 0; q < 4; ++q) {
    const F x = spread<T>(a[q]);
    const int c = q >> 1 << 1, h = q & 1;
    sum[c][h] += __builtin_convertvector(x * even * scale[c][h], I);
    sum[c + 1][h] += __builtin_convertvector(x * odd * scale[c + 1][h], I);
  }
}

template <class Type, int kRegisters>
bool exact(const void* left, const void* right, const Word* c, Word* d, int floor, bool sticky) {
  const auto& a = *static_cast<const Left<Type, kRegisters>*>(left);
  const auto& b = *static_cast<const Right<Type, kRegisters>*>(right);
  constexpr bool kShort = Type::kExponent == 5;
  constexpr int kBias = (1 << (Type::kExponent - 1)) - 1;
  if (a.special | b.special) return false;
  alignas(64) uint8_t tops[2][64];
  find_tops(a, b, tops);
  WS_FORGET(tops);
  I first[4][2], second[4][2];
  F scale[4][2];
  __mmask16 bad = 0;
  const __m512i least = _mm512_set1_epi32(floor), offset = _mm512_set1_epi32(a.reference + b.reference - 2 * kBias + 127);
  WS_UNROLL
  for (int i = 0; i < 8; ++i) {  // register i / 2 of C, half i % 2; exponents are biased, those of products too
    const F value = reinterpret_cast<const F*>(c)[i];
    const int quarter = (i / 2 % 2) + 2 * (i % 2);
    const __m512i low = _mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(tops[i / 4]) + quarter));
    const __mmask16 some = _mm512_test_epi32_mask((__m512i)value, _mm512_set1_epi32(0x7fffffff));
    const __m512i ec = _mm512_max_epi32((__m512i)(((U)value >> 23) & 255u), least), product = _mm512_add_epi32(low, offset);
    __m512i top = _mm512_max_epi32(product, ec);
    const __mmask16 none = _mm512_mask_cmpeq_epi32_mask(some, low, _mm512_set1_epi32(kNothing));
    bad |= _mm512_mask_cmplt_epi32_mask(none, ec, product);  // C alone, and it is smaller than what stands for nothing
    bad |= _mm512_cmpgt_epi32_mask(top, _mm512_set1_epi32(227));
    if (!kShort) {
      const __mmask16 real = _mm512_cmpneq_epi32_mask(low, _mm512_set1_epi32(kNothing));
      bad |= _mm512_mask_cmple_epi32_mask(real, low, _mm512_set1_epi32(kLeast));
      bad |= _mm512_mask_cmplt_epi32_mask(real | some, top, _mm512_set1_epi32(27));
      top = _mm512_max_epi32(top, _mm512_set1_epi32(27));
    }
    const F s = (F)((I{} + 279 - (I)top) << 23);
    scale[i >> 1][i & 1] = s;
    first[i >> 1][i & 1] = __builtin_convertvector(value * s, I);
    second[i >> 1][i & 1] = I{};
  }
  if (bad) return false;
  WS_UNROLL
  for (int j = 0; j < kRegisters; ++j) {
    WS_UNROLL
    for (int i = 0; i < Type::kElements; ++i) {
      const F x[4] = {a.floats.x[j][0][i], a.floats.x[j][1][i], a.floats.x[j][2][i], a.floats.x[j][3][i]};
      I(*sum)[2] = 2 * j < kRegisters ? first : second;  // sixteen terms can exceed 32 bits, eight cannot
      cut<0>(x, b.floats.row[j][i][0], scale, sum);
      cut<1>(x, b.floats.row[j][i][1], scale, sum);
      cut<2>(x, b.floats.row[j][i][2], scale, sum);
      cut<3>(x, b.floats.row[j][i][3], scale, sum);
    }
  }
  F result[8];
  I over{};
  WS_UNROLL
  for (int i = 0; i < 8; ++i) {
    const I x = first[i >> 1][i & 1], y = second[i >> 1][i & 1], sum = (I)((U)x + (U)y);
    over |= (x ^ sum) & (y ^ sum);
    const F f = (F)_mm512_cvt_roundepi32_ps((__m512i)sum, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    result[i] = f * (F)((I{} + (254 << 23)) - (I)scale[i >> 1][i & 1]);  // over the power of two
    first[i >> 1][i & 1] = (__builtin_convertvector(f, I) != sum) & 1;
  }
  if (any(over & int32_t(0x80000000))) return false;
  if (sticky) {
    WS_UNROLL
    for (int i = 0; i < 8; ++i) result[i] = (F)((I)result[i] | first[i >> 1][i & 1]);
  }
  WS_UNROLL
  for (int i = 0; i < 8; ++i) reinterpret_cast<F*>(d)[i] = result[i];
  return true;
}

void to_f16(const Word* in, Word* out, bool positive_zero) {
  for (int r = 0; r < 2; ++r)
    for (int h = 0; h < 2; ++h) {
      U half[2];
      WS_UNROLL
      for (int i = 0; i < 2; ++i) {
        const F f = *reinterpret_cast<const F*>(in + 64 * r + 32 * i + 16 * h);
        U v = (U)_mm512_cvtepu16_epi32(_mm512_cvtps_ph((__m512)f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        if (positive_zero) v = v == 0x8000u ? U{} : v;
        half[i] = f != f ? U{} + 0x7fffu : v;
      }
      *reinterpret_cast<U*>(out + 32 * r + 16 * h) = half[0] | half[1] << 16;
    }
}

}  // namespace
}  // namespace ws::matrix::WS_ISA
