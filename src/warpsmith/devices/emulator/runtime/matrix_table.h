// What all instruction sets write alike, and the table of kernels of one of them.

namespace ws::matrix::WS_ISA {
namespace {

template <class Operand>
void prepare(void* operand, bool hardware) {
  static_cast<Operand*>(operand)->prepare(hardware);
}

void doubles(uint32_t m, uint32_t k, const double* a, const double* b, double* d) {
  for (uint32_t r = 0; r < m; ++r) {
    double sum[8];
    for (int n = 0; n < 8; ++n) sum[n] = d[8 * r + n];
    for (uint32_t i = 0; i < k; ++i)
      for (int n = 0; n < 8; ++n) sum[n] = __builtin_fma(a[k * r + i], b[8 * i + n], sum[n]);
    for (int n = 0; n < 8; ++n) d[8 * r + n] = sum[n];
  }
}

void bits(uint32_t m, uint32_t words, const Word* a, const Word* b, Word* d, bool conjunction) {
  for (uint32_t r = 0; r < m; ++r)
    for (int n = 0; n < 8; ++n) {
      Word sum = 0;
      for (uint32_t i = 0; i < words; ++i) {
        const Word x = a[words * r + i], y = b[8 * i + n];
        sum += Word(__builtin_popcount(conjunction ? x & y : x ^ y));
      }
      d[8 * r + n] += sum;
    }
}

template <class Type>
constexpr Prepared prepared() {
  static_assert(sizeof(Left<Type, 2>) <= kLeftBytes && sizeof(Right<Type, 2>) <= kRightBytes);
  static_assert(sizeof(Left<Type, 4>) <= 2 * kLeftBytes && sizeof(Right<Type, 4>) <= 2 * kRightBytes);
  return {{prepare<Left<Type, 1>>, prepare<Left<Type, 2>>, prepare<Left<Type, 4>>},
          {prepare<Right<Type, 1>>, prepare<Right<Type, 2>>, prepare<Right<Type, 4>>},
          {exact<Type, 1>, exact<Type, 2>, exact<Type, 4>},
          {fast<Type, 1>, fast<Type, 2>, fast<Type, 4>}};
}

constexpr Kernels table() {
  return {prepared<Half>(), prepared<Brain>(), prepared<Tensor32>(), {integer<8, 1>, integer<8, 2>, integer<8, 4>},
          {integer<4, 1>, integer<4, 2>, integer<4, 4>}, doubles, bits, to_f16};
}

}  // namespace
}  // namespace ws::matrix::WS_ISA
