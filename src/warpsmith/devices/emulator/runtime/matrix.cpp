// mma of every shape and type: operands to the kernels of matrix.h, and back.
#include "matrix.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace ws::matrix {

namespace {

// For tests: as if the processor could do no more.
bool limited_to(const char* level) {
  const char* value = std::getenv("WARPSMITH_CPU");
  return value && !std::strcmp(value, level);
}

}  // namespace

const Kernels& kernels() {
#ifdef __x86_64__
  static const Kernels& best = limited_to("base") ? kernels_base
                               : limited_to("x86-64-v3") ? kernels_v3
                               : __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd")
                                   ? kernels_v4
                               : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") ? kernels_v3
                                                                                                                                : kernels_base;
  return best;
#else
  return kernels_base;
#endif
}

namespace {

constexpr uint32_t kLanes = WS_LANES;

struct alignas(64) Fragment {
  Word word[8][kLanes];
  Word* data() { return word[0]; }
  const Word* data() const { return word[0]; }
};

float as_float(Word w) {
  float f;
  std::memcpy(&f, &w, 4);
  return f;
}

Word as_word(float f) {
  Word w;
  std::memcpy(&w, &f, 4);
  return f != f ? 0x7fffffffu : w;
}

// Elements of a fragment, with their place in the matrix: f(row, column, word index, element).
template <class Visit>
void each_a(uint32_t m, uint32_t k, uint32_t per, Visit visit) {
  const uint32_t high = m / 8, registers = high * std::max(k / (4 * per), 1u);
  for (uint32_t r = 0; r < registers; ++r)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < per; ++i) visit(lane / 4 + 8 * (r % high), r / high * 4 * per + lane % 4 * per + i, r * kLanes + lane, i);
}

template <class Visit>
void each_b(uint32_t k, uint32_t per, Visit visit) {
  for (uint32_t r = 0; r < std::max(k / (4 * per), 1u); ++r)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < per; ++i) visit(r * 4 * per + lane % 4 * per + i, lane / 4, r * kLanes + lane, i);
}

template <class Visit>
void each_c(uint32_t m, uint32_t per, Visit visit) {
  for (uint32_t r = 0; r < m / 4 / per; ++r)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < per; ++i) {
        const uint32_t n = r * per + i;
        visit(lane / 4 + 8 * (n / 2), 2 * (lane % 4) + n % 2, r * kLanes + lane, i);
      }
}

Word element(const Word* fragment, uint32_t word, uint32_t i, uint32_t per) {
  return per == 1 ? fragment[word] : fragment[word] >> (32 / per * i) & ((1u << (32 / per)) - 1);
}

void put(Word* fragment, uint32_t word, uint32_t i, uint32_t per, Word value) {
  if (per == 1) fragment[word] = value;
  else fragment[word] = i ? fragment[word] | value << (32 / per * i) : value;
}

void unpack_halves(const Word* c, Word* out) {
  each_c(16, 2, [&](uint32_t, uint32_t, uint32_t word, uint32_t i) {
    const uint32_t r = word / kLanes, lane = word % kLanes;
    out[(2 * r + i) * kLanes + lane] = as_word(f16_to_float(uint16_t(element(c, word, i, 2))));
  });
}

// ---- products of floats ------------------------------------------------------------------------------

struct Product {
  uint32_t type, c, d;       // f16, bf16 or tf32; f32 or f16
  uint32_t registers;        // of B: 1, 2 or 4
  bool exact;
  const bool* absent = nullptr;  // [16][K]: elements of A that a sparse matrix does not have
};

void by_reference(const Product& p, const Word* a, const Word* b, const Word* c, Word* d) {
  const uint32_t per = elements(p.type), k = p.registers * 4 * per;
  Number left[16 * 64], right[64 * 8];
  each_a(16, k, per, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t i) {
    Number& n = left[row * k + column];
    n = decode(p.type, element(a, word, i, per));
    if (p.absent && p.absent[row * k + column]) n.kind = Number::absent;
  });
  each_b(k, per, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t i) { right[row * 8 + column] = decode(p.type, element(b, word, i, per)); });
  // An f16 product of an f32 sum is rounded twice, and the other way about C is converted first: the tensor core itself
  // knows only one type.
  const uint32_t inner = p.c == WS_M_F16 && p.d == WS_M_F16 ? WS_M_F16 : WS_M_F32;
  Sum sum;
  sum.k = k;
  sum.a = sum.b = p.type;
  sum.c = sum.d = inner;
  Word out[16 * 8];
  const uint32_t pc = p.c == WS_M_F16 ? 2 : 1, pd = p.d == WS_M_F16 ? 2 : 1;
  each_c(16, pc, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t i) {
    Word start = element(c, word, i, pc);
    if (p.c == WS_M_F16 && inner == WS_M_F32) start = as_word(f16_to_float(uint16_t(start)));
    out[row * 8 + column] = reference_sum(sum, left + row * k, right + column, 8, start);
  });
  each_c(16, pd, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t i) {
    Word value = out[row * 8 + column];
    if (p.d == WS_M_F16 && inner == WS_M_F32) value = float_to_f16(as_float(value));
    put(d, word, i, pd, value);
  });
}

const Prepared& prepared(uint32_t type) {
  const Kernels& k = kernels();
  return type == WS_M_F16 ? k.f16 : type == WS_M_BF16 ? k.bf16 : k.tf32;
}

uint32_t size_index(uint32_t registers) { return registers == 4 ? 2 : registers - 1; }

// left and right: prepared operands.
void product(const Product& p, const void* left, const void* right, const Word* c, Word* d) {
  const Prepared& k = prepared(p.type);
  const uint32_t size = size_index(p.registers);
  const bool c_half = p.c == WS_M_F16, d_half = p.d == WS_M_F16;
  alignas(64) Word start[4 * kLanes], result[4 * kLanes];
  const Word* from = c;
  if (c_half) {
    unpack_halves(c, start);
    from = start;
  }
  Word* to = d_half ? result : d;
  const bool done = p.exact ? k.exact[size](left, right, from, to, c_half && d_half ? 127 - 14 : 1, c_half && d_half) : k.fast[size](left, right, from, to);
  if (!done) by_reference(p, static_cast<const Word*>(left), static_cast<const Word*>(right), c, d);
  else if (d_half) kernels().to_f16(result, d, c_half);
}

struct Operands {
  alignas(64) uint8_t left[2 * kLeftBytes], right[2 * kRightBytes];
  void prepare(const Product& p) {
    prepared(p.type).left[size_index(p.registers)](left, p.exact);
    prepared(p.type).right[size_index(p.registers)](right, p.exact);
  }
  Word* a() { return reinterpret_cast<Word*>(left); }
  Word* b() { return reinterpret_cast<Word*>(right); }
};

void plain_product(const Product& p, const Word* a, const Word* b, const Word* c, Word* d) {
  Operands o;
  std::memcpy(o.a(), a, 2 * p.registers * kLanes * sizeof(Word));
  std::memcpy(o.b(), b, p.registers * kLanes * sizeof(Word));
  o.prepare(p);
  product(p, o.left, o.right, c, d);
}

// fp8 goes through the tensor core as f16, the lower two elements of every register first; C is added at the end.
void product8(const ws_mma_form& f, const Word* a, const Word* b, const Word* c, Word* d) {
  const uint32_t registers = f.k / 16;
  auto half = [](uint32_t type, const Word* in, Word* out, uint32_t count, uint32_t shift) {
    static const auto table = [] {
      struct Table { uint16_t e4m3[256]; } t;
      for (int i = 0; i < 256; ++i) t.e4m3[i] = uint16_t(e4m3_to_f16(uint8_t(i)));
      return t;
    }();
    for (uint32_t i = 0; i < count; ++i) {
      const Word x = in[i] >> shift;
      out[i] = type == WS_M_E5M2 ? (x & 0xff) << 8 | (x & 0xff00) << 16 : Word(table.e4m3[x & 0xff]) | Word(table.e4m3[x >> 8 & 0xff]) << 16;
    }
  };
  Operands o;
  alignas(64) Word sum[4 * kLanes] = {};
  const Product p{WS_M_F16, f.c, f.d, registers, (f.flags & WS_MMA_EXACT) != 0};
  for (uint32_t part = 0; part < 2; ++part) {
    half(f.a, a, o.a(), 2 * registers * kLanes, 16 * part);
    half(f.b, b, o.b(), registers * kLanes, 16 * part);
    o.prepare(p);
    product(p, o.left, o.right, sum, sum);
  }
  const uint32_t per = elements(f.d);
  for (uint32_t i = 0; i < 4 / per * kLanes; ++i) {
    if (per == 1) {
      d[i] = as_word(as_float(c[i]) + as_float(sum[i]));
      continue;
    }
    Word out = 0;
    for (uint32_t h = 0; h < 2; ++h)
      out |= Word(float_to_f16(f16_to_float(uint16_t(c[i] >> 16 * h)) + f16_to_float(uint16_t(sum[i] >> 16 * h)))) << 16 * h;
    d[i] = out;
  }
}

// ---- sparse matrices ---------------------------------------------------------------------------------
// A nibble of metadata says where the elements of a chunk stand: 2 of 4 (of pairs, for 4-bit types), or 1 of 2 for tf32.

struct Chunks {
  uint32_t stored, wide, unit;  // elements stored and spanned by a chunk; elements that stay together
  explicit Chunks(uint32_t type) {
    unit = type == WS_M_S4 || type == WS_M_U4 ? 2 : 1;
    stored = type == WS_M_TF32 ? 1 : 2 * unit;
    wide = 2 * stored;
  }
};

// The column of a stored element of A.
uint32_t column_of(const ws_mma_form& f, const Chunks& c, const Word* metadata, uint32_t row, uint32_t stored) {
  const uint32_t chunk = stored / c.stored, place = stored % c.stored, chunks = f.k / c.wide, high = row / 8;
  uint32_t lane = row % 8 * 4, nibble;
  if (elements(f.a) <= 2) {
    lane += chunks == 4 ? f.selector : 2 * f.selector + chunk / 4;
    nibble = chunk % 4 + 4 * high;
  } else {
    lane += 2 * (chunks == 8 ? f.selector : chunk / 8) + high;
    nibble = chunk % 8;
  }
  const Word bits = metadata[lane] >> 4 * nibble & 15;
  if (f.a == WS_M_TF32) return chunk * c.wide + (bits >> 3);
  return chunk * c.wide + (bits >> (2 * (place / c.unit)) & 3) * c.unit + place % c.unit;
}

// A with its zeros.
void expand(const ws_mma_form& f, const Word* a, const Word* metadata, Word* out, bool* absent) {
  const uint32_t per = elements(f.a), width = 32 / per, span = 4 * per;
  const Chunks chunks(f.a);
  std::memset(out, 0, 2 * f.k / span * kLanes * sizeof(Word));
  std::memset(absent, 1, 16 * f.k);
  each_a(16, f.k / 2, per, [&](uint32_t row, uint32_t stored, uint32_t word, uint32_t i) {
    const uint32_t column = column_of(f, chunks, metadata, row, stored), lane = row % 8 * 4 + column % span / per;
    out[(column / span * 2 + row / 8) * kLanes + lane] |= element(a, word, i, per) << (width * (column % per) % 32);
    absent[row * f.k + column] = false;
  });
}

void sparse_product8(const ws_mma_form& f, const Word* a, const Word* b, const Word* c, Word* d, const Word* metadata) {
  const Chunks chunks(f.a);
  Number left[16][32], right[64][8];
  uint32_t column[16][32];
  auto number = [](uint32_t type, Word x) { return decode(WS_M_F16, type == WS_M_E5M2 ? x << 8 : e4m3_to_f16(uint8_t(x))); };
  each_a(16, f.k / 2, 4, [&](uint32_t row, uint32_t stored, uint32_t word, uint32_t i) {
    left[row][stored] = number(f.a, element(a, word, i, 4));
    column[row][stored] = column_of(f, chunks, metadata, row, stored);
  });
  each_b(f.k, 4, [&](uint32_t row, uint32_t n, uint32_t word, uint32_t i) { right[row][n] = number(f.b, element(b, word, i, 4)); });
  each_c(16, 1, [&](uint32_t row, uint32_t n, uint32_t word, uint32_t) {
    Word sum = 0;
    for (uint32_t part = 0; part < 2; ++part) {
      Number x[16], y[16];
      Sum s;
      s.k = 0;
      for (uint32_t i = 0; i < f.k / 2u; ++i) {
        if (i % 4 / 2 != part) continue;
        x[s.k] = left[row][i];
        y[s.k++] = right[column[row][i]][n];
      }
      sum = reference_sum(s, x, y, 1, sum);
    }
    d[word] = as_word(as_float(c[word]) + as_float(sum));
  });
}

// ---- the other types ---------------------------------------------------------------------------------

void integers(const ws_mma_form& f, const Word* a, const Word* b, const Word* c, Word* d, uint32_t registers) {
  const Kernels& k = kernels();
  const uint32_t size = registers == 4 ? 2 : registers - 1;
  const bool four = f.a == WS_M_S4 || f.a == WS_M_U4, saturate = f.flags & WS_MMA_SATURATE;
  const bool a_signed = f.a == WS_M_S8 || f.a == WS_M_S4, b_signed = f.b == WS_M_S8 || f.b == WS_M_S4;
  const auto run = four ? k.integer4[size] : k.integer8[size];
  if (f.m == 16) return run(a, b, c, d, a_signed, b_signed, saturate);
  Fragment left{}, sum{};
  for (uint32_t r = 0; r < registers; ++r) std::memcpy(left.word[2 * r], a + r * kLanes, sizeof left.word[0]);
  std::memcpy(sum.data(), c, 2 * sizeof sum.word[0]);
  run(left.data(), b, sum.data(), sum.data(), a_signed, b_signed, saturate);
  std::memcpy(d, sum.data(), 2 * sizeof sum.word[0]);
}

void doubles(const ws_mma_form& f, const double* a, const double* b, const double* c, double* d) {
  double left[16 * 16], right[16 * 8], sum[16 * 8];
  each_a(f.m, f.k, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { left[row * f.k + column] = a[word]; });
  each_b(f.k, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { right[row * 8 + column] = b[word]; });
  each_c(f.m, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { sum[row * 8 + column] = c[word]; });
  kernels().doubles(f.m, f.k, left, right, sum);
  each_c(f.m, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { d[word] = sum[row * 8 + column]; });
}

void bits(const ws_mma_form& f, const Word* a, const Word* b, const Word* c, Word* d) {
  const uint32_t words = f.k / 32;
  Word left[16 * 8], right[8 * 8], sum[16 * 8];
  each_a(f.m, words, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { left[row * words + column] = a[word]; });
  each_b(words, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { right[row * 8 + column] = b[word]; });
  each_c(f.m, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { sum[row * 8 + column] = c[word]; });
  kernels().bits(f.m, words, left, right, sum, f.flags & WS_MMA_AND);
  each_c(f.m, 1, [&](uint32_t row, uint32_t column, uint32_t word, uint32_t) { d[word] = sum[row * 8 + column]; });
}

// m8n8k4: each quad pair (lanes q to q + 3 and q + 16 to q + 19) multiplies on its own; made of ordinary fused
// multiply-adds on chips after Volta.
void quads(const ws_mma_form& f, const Word* a, const Word* b, const Word* c, Word* d) {
  float left[4][8][4], right[4][4][8], start[4][8][8], out[4][8][8];
  auto value = [](const Word* x, uint32_t lane, uint32_t i) { return f16_to_float(uint16_t(x[i / 2 * kLanes + lane] >> 16 * (i % 2))); };
  auto each = [](uint32_t type, auto visit) {  // elements of C or D
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t high = lane / 16 * 4;
        const uint32_t row = type == WS_M_F16 ? lane % 4 + high : (lane & 1) + (i & 2) + high;
        const uint32_t column = type == WS_M_F16 ? i : (i & 4) + (lane & 2) + (i & 1);
        visit(lane % 16 / 4, row, column, lane, i);
      }
  };
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t q = lane % 16 / 4, high = lane / 16 * 4, l = lane % 4;
      (f.flags & WS_MMA_A_COLUMNS ? left[q][i + high][l] : left[q][l + high][i]) = value(a, lane, i);
      (f.flags & WS_MMA_B_ROWS ? right[q][l][i + high] : right[q][i][l + high]) = value(b, lane, i);
    }
  each(f.c, [&](uint32_t q, uint32_t row, uint32_t column, uint32_t lane, uint32_t i) {
    start[q][row][column] = f.c == WS_M_F16 ? value(c, lane, i) : as_float(c[i * kLanes + lane]);
  });
  for (uint32_t q = 0; q < 4; ++q)
    for (uint32_t m = 0; m < 8; ++m)
      for (uint32_t n = 0; n < 8; ++n) {
        auto x = [&](uint32_t k) { return left[q][m][k]; };
        auto y = [&](uint32_t k) { return right[q][k][n]; };
        if (f.d == WS_M_F16) {
          const float low = std::fma(x(1), y(1), x(0) * y(0)), high = std::fma(x(3), y(3), x(2) * y(2));
          out[q][m][n] = start[q][m][n] + low + high;
        } else {
          float sum = std::fma(x(0), y(0), 0.0f);
          for (uint32_t k = 1; k < 4; ++k) sum = std::fma(x(k), y(k), sum);
          out[q][m][n] = start[q][m][n] + sum;
        }
      }
  each(f.d, [&](uint32_t q, uint32_t row, uint32_t column, uint32_t lane, uint32_t i) {
    const float v = out[q][row][column];
    if (f.d == WS_M_F16) put(d, i / 2 * kLanes + lane, i % 2, 2, float_to_f16(v));
    else d[i * kLanes + lane] = as_word(v);
  });
}

void sparse(const ws_mma_form& f, const Word* a, const Word* b, const Word* c, Word* d, const Word* metadata) {
  if (f.a == WS_M_E4M3 || f.a == WS_M_E5M2) return sparse_product8(f, a, b, c, d, metadata);
  const uint32_t registers = f.k / (4 * elements(f.a));
  alignas(64) Word whole[8 * kLanes];
  bool absent[16 * 128];
  expand(f, a, metadata, whole, absent);
  if (f.c == WS_M_S32) return integers(f, whole, b, c, d, registers);
  plain_product(Product{f.a, f.c, f.d, registers, (f.flags & WS_MMA_EXACT) != 0, absent}, whole, b, c, d);
}

Product dense(const ws_mma_form& f) { return Product{f.a, f.c, f.d, f.k / (4 * elements(f.a)), (f.flags & WS_MMA_EXACT) != 0}; }

}  // namespace

}  // namespace ws::matrix

using namespace ws::matrix;

void ws_mma_left(const ws_mma_form* f, void* left) { prepared(f->a).left[size_index(f->k / (4 * elements(f->a)))](left, f->flags & WS_MMA_EXACT); }

void ws_mma_right(const ws_mma_form* f, void* right) { prepared(f->a).right[size_index(f->k / (4 * elements(f->a)))](right, f->flags & WS_MMA_EXACT); }

void ws_mma_prepared(const ws_mma_form* f, const void* left, const void* right, const void* c, void* d) {
  product(dense(*f), left, right, static_cast<const Word*>(c), static_cast<Word*>(d));
}

void ws_mma(const ws_mma_form* form, const void* va, const void* vb, const void* vc, void* vd, const uint32_t* metadata) {
  const ws_mma_form& f = *form;
  const Word *a = static_cast<const Word*>(va), *b = static_cast<const Word*>(vb), *c = static_cast<const Word*>(vc);
  Word* d = static_cast<Word*>(vd);
  if (f.flags & WS_MMA_SPARSE) return sparse(f, a, b, c, d, metadata);
  if (f.flags & WS_MMA_QUADS) return quads(f, a, b, c, d);
  switch (f.a) {
    case WS_M_F16: case WS_M_BF16: case WS_M_TF32:
      return plain_product(dense(f), a, b, c, d);
    case WS_M_E4M3: case WS_M_E5M2: return product8(f, a, b, c, d);
    case WS_M_F64:
      return doubles(f, static_cast<const double*>(va), static_cast<const double*>(vb), static_cast<const double*>(vc), static_cast<double*>(vd));
    case WS_M_B1: return bits(f, a, b, c, d);
    default: return integers(f, a, b, c, d, f.k / (4 * elements(f.a)));
  }
}
