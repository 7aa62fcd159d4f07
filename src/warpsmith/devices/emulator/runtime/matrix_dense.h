// The products of matrix.h as plain loops over rows of eight, which compilers vectorise: for processors without AVX-512.
// Compiled once for every instruction set (see matrix_base.cpp): no include guard, and everything has internal linkage.

namespace ws::matrix::WS_ISA {
namespace {

constexpr int kNone = -8192;  // exponent of a zero: so small that it never counts

float from_bits(Word w) {
  float f;
  __builtin_memcpy(&f, &w, 4);
  return f;
}

Word to_bits(float f) {
  Word w;
  __builtin_memcpy(&w, &f, 4);
  return w;
}

// ---- element types -----------------------------------------------------------------------------------
// value: an element as a float.  exponent: its biased exponent, kNone for a zero; sets bad if it is not in the range
// for which `exact` is right.

int exponent_of(int field, bool zero, int low, int high, int& bad) {
  bad |= (field > high) | ((field < low) & !zero);
  return zero ? kNone : field < 1 ? 1 : field;
}

struct Half {
  static constexpr int kElements = 2, kBias = 15;
  static Word pick(const Word* p, int i) { return p[0] >> 16 * i & 0xffff; }
  static float value(Word h) { return from_bits((h & 0x8000) << 16 | (h & 0x7fff) << 13) * 0x1p112f; }
  static int exponent(Word h, int& bad) { return exponent_of(int(h >> 10 & 31), !(h & 0x7fff), 0, 30, bad); }
  static bool special(Word h) { return (h & 0x7c00) == 0x7c00; }
};

struct Brain {
  static constexpr int kElements = 2, kBias = 127;
  static Word pick(const Word* p, int i) { return p[0] >> 16 * i & 0xffff; }
  static float value(Word h) { return from_bits(h << 16); }
  static int exponent(Word h, int& bad) { return exponent_of(int(h >> 7 & 255), !(h & 0x7fff), 67, 187, bad); }
  static bool special(Word) { return false; }
};

struct Tensor32 {
  static constexpr int kElements = 1, kBias = 127;
  static Word pick(const Word* p, int) { return p[0] & 0xffffe000u; }
  static float value(Word x) { return from_bits(x); }
  static int exponent(Word x, int& bad) { return exponent_of(int(x >> 23 & 255), !(x & 0x7fffffff), 67, 187, bad); }
  static bool special(Word) { return false; }
};

// ---- layouts -----------------------------------------------------------------------------------------

template <int kPer, int kRegisters, class Visit>
void each_a(Visit visit) {  // visit(row, column, word, element)
  for (int r = 0; r < 2 * kRegisters; ++r)
    for (int g = 0; g < 8; ++g)
      for (int t = 0; t < 4; ++t)
        for (int i = 0; i < kPer; ++i) visit(g + 8 * (r % 2), r / 2 * 4 * kPer + t * kPer + i, r * 32 + g * 4 + t, i);
}

template <int kPer, int kRegisters, class Visit>
void each_b(Visit visit) {
  for (int r = 0; r < kRegisters; ++r)
    for (int g = 0; g < 8; ++g)
      for (int t = 0; t < 4; ++t)
        for (int i = 0; i < kPer; ++i) visit(r * 4 * kPer + t * kPer + i, g, r * 32 + g * 4 + t, i);
}

template <class Visit>
void each_c(Visit visit) {  // visit(row, column, word)
  for (int n = 0; n < 4; ++n)
    for (int g = 0; g < 8; ++g)
      for (int t = 0; t < 4; ++t) visit(g + 8 * (n / 2), 2 * t + n % 2, n * 32 + g * 4 + t);
}

// ---- sums --------------------------------------------------------------------------------------------

template <int kWidth>
void multiply(const float (&a)[16][kWidth], const float (&b)[kWidth][8], float (&c)[16][8]) {
  for (int m = 0; m < 16; ++m) {
    float sum[8];
    for (int n = 0; n < 8; ++n) sum[n] = c[m][n];
    for (int k = 0; k < kWidth; ++k)
      for (int n = 0; n < 8; ++n) sum[n] += a[m][k] * b[k][n];
    for (int n = 0; n < 8; ++n) c[m][n] = sum[n];
  }
}

template <class Type, int kRegisters>
struct Left {
  static constexpr int kPer = Type::kElements, kWidth = 4 * kPer * kRegisters;
  alignas(64) Word registers[2 * kRegisters][WS_LANES];
  float value[16][kWidth];
  int16_t exponent[16][kWidth];
  bool special, extreme;
  void prepare(bool) {
    int bad = 0;
    special = false;
    each_a<kPer, kRegisters>([&](int row, int column, int word, int i) {
      const Word x = Type::pick(registers[0] + word, i);
      special |= Type::special(x);
      value[row][column] = Type::value(x);
      exponent[row][column] = int16_t(Type::exponent(x, bad));
    });
    extreme = bad;
  }
};

template <class Type, int kRegisters>
struct Right {
  static constexpr int kPer = Type::kElements, kWidth = 4 * kPer * kRegisters;
  alignas(64) Word registers[kRegisters][WS_LANES];
  float value[kWidth][8];
  int16_t exponent[kWidth][8];
  bool special, extreme;
  void prepare(bool) {
    int bad = 0;
    special = false;
    each_b<kPer, kRegisters>([&](int row, int column, int word, int i) {
      const Word x = Type::pick(registers[0] + word, i);
      special |= Type::special(x);
      value[row][column] = Type::value(x);
      exponent[row][column] = int16_t(Type::exponent(x, bad));
    });
    extreme = bad;
  }
};

template <class Type, int kRegisters>
bool fast(const void* left, const void* right, const Word* c, Word* d) {
  const auto& a = *static_cast<const Left<Type, kRegisters>*>(left);
  const auto& b = *static_cast<const Right<Type, kRegisters>*>(right);
  if (a.special | b.special) return false;
  float sum[16][8];
  each_c([&](int row, int column, int word) { sum[row][column] = from_bits(c[word]); });
  multiply(a.value, b.value, sum);
  each_c([&](int row, int column, int word) { d[word] = to_bits(sum[row][column]); });
  return true;
}

// All products and c are cut (towards zero) to multiples of 2^(top - 25), top the largest exponent among them, added
// exactly, and the sum is cut to f32.  The exponent of a product is the sum of those of its factors.
template <class Type, int kRegisters>
bool exact(const void* left, const void* right, const Word* c, Word* d, int floor, bool sticky) {
  const auto& a = *static_cast<const Left<Type, kRegisters>*>(left);
  const auto& b = *static_cast<const Right<Type, kRegisters>*>(right);
  constexpr int kPer = Type::kElements, kWidth = 4 * kPer * kRegisters;
  if (a.extreme | b.extreme) return false;
  float start[16][8];
  Word out[16][8];
  int bad = 0;
  each_c([&](int row, int column, int word) { start[row][column] = from_bits(c[word]); });
  for (int m = 0; m < 16; ++m) {
    int top[8], first[8], second[8] = {};
    float scale[8];
    for (int n = 0; n < 8; ++n) top[n] = kNone;
    for (int k = 0; k < kWidth; ++k)
      for (int n = 0; n < 8; ++n) {
        const int e = a.exponent[m][k] + b.exponent[k][n];
        top[n] = e > top[n] ? e : top[n];
      }
    for (int n = 0; n < 8; ++n) {
      const Word x = to_bits(start[m][n]) & 0x7fffffffu;
      int e = int(x >> 23), t = top[n] - 2 * Type::kBias;
      e = !x ? kNone : e < floor ? floor : e;
      t = e - 127 > t ? e - 127 : t;
      bad |= (t > 100) | ((t < -100) & (x != 0));
      t = t < -100 ? -100 : t > 100 ? 100 : t;
      scale[n] = from_bits(Word(152 - t) << 23);
      top[n] = t;
    }
    if (bad) return false;
    for (int n = 0; n < 8; ++n) first[n] = int(start[m][n] * scale[n]);
    // Sixteen terms can exceed 32 bits, eight cannot.
    for (int k = 0; k < kWidth; ++k) {
      int* sum = 2 * (k / (4 * kPer)) < kRegisters ? first : second;
      for (int n = 0; n < 8; ++n) sum[n] += int(a.value[m][k] * b.value[k][n] * scale[n]);
    }
    for (int n = 0; n < 8; ++n) {
      const double sum = double(first[n]) + double(second[n]);
      const float f = float(sum);
      const double over = sum < 0 ? sum - double(f) : double(f) - sum;
      const Word w = to_bits(f) - (over > 0);  // if it was rounded up
      const bool lost = double(from_bits(w)) != sum;
      out[m][n] = to_bits(from_bits(w) * from_bits(Word(102 + top[n]) << 23)) | (sticky && lost);
    }
  }
  each_c([&](int row, int column, int word) { d[word] = out[row][column]; });
  return true;
}

template <int kBits, int kRegisters>
void integer(const Word* a, const Word* b, const Word* c, Word* d, bool a_signed, bool b_signed, bool saturate) {
  constexpr int kPer = 32 / kBits, kWidth = 4 * kPer * kRegisters, kShift = 32 - kBits;
  int left[16][kWidth], right[kWidth][8];
  auto value = [](Word w, int i, bool with_sign) {
    const Word top = w << (kShift - kBits * i);
    return with_sign ? int(top) >> kShift : int(top >> kShift);
  };
  each_a<kPer, kRegisters>([&](int row, int column, int word, int i) { left[row][column] = value(a[word], i, a_signed); });
  each_b<kPer, kRegisters>([&](int row, int column, int word, int i) { right[row][column] = value(b[word], i, b_signed); });
  int sums[16][8];
  for (int m = 0; m < 16; ++m) {
    int sum[8] = {};
    for (int k = 0; k < kWidth; ++k)
      for (int n = 0; n < 8; ++n) sum[n] += left[m][k] * right[k][n];
    for (int n = 0; n < 8; ++n) sums[m][n] = sum[n];
  }
  each_c([&](int row, int column, int word) {
    const int64_t sum = int64_t(int32_t(c[word])) + sums[row][column];
    d[word] = Word(!saturate ? sum : sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  });
}

// ---- the rest ----------------------------------------------------------------------------------------

void to_f16(const Word* in, Word* out, bool positive_zero) {
  for (int i = 0; i < 64; ++i) {
    Word pair = 0;
    for (int h = 0; h < 2; ++h) {
      const float f = from_bits(in[i / 32 * 64 + 32 * h + i % 32]);
      const Word v = float_to_f16(f);
      pair |= (positive_zero && v == 0x8000 ? 0 : v) << 16 * h;
    }
    out[i] = pair;
  }
}

}  // namespace
}  // namespace ws::matrix::WS_ISA
