// atom and red.  Lanes go one after the other, in lane order.
//
// Blocks run on several host threads, so global memory needs the processor's atomic operations; shared memory belongs
// to one thread, and so does everything in a launch with a single worker.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "check.h"
#include "scheduler.h"

namespace ws {

namespace {

using u128 = unsigned __int128;

// ---- values ------------------------------------------------------------------------------------------

struct F16 {
  using bits = uint16_t;
  static float widen(bits h) {
    const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    uint32_t out;
    if (exponent == 31) out = sign | 0x7f800000 | mantissa << 13;
    else if (exponent) out = sign | (exponent + 112) << 23 | mantissa << 13;
    else {
      const float v = float(mantissa) * 0x1p-24f;
      return sign ? -v : v;
    }
    float f;
    std::memcpy(&f, &out, 4);
    return f;
  }
  static bits narrow(float f) {
    uint32_t x;
    std::memcpy(&x, &f, 4);
    const uint32_t sign = x >> 16 & 0x8000;
    x &= 0x7fffffff;
    if (x > 0x7f800000) return 0x7fff;
    if (x >= 0x477ff000) return bits(sign | 0x7c00);
    if (x < 0x38800000) {  // subnormal: let the float unit round to multiples of 2^-24
      const float rounded = std::fabs(f) + 0.5f;
      uint32_t r;
      std::memcpy(&r, &rounded, 4);
      return bits(sign | (r - 0x3f000000));
    }
    x += 0xfff + (x >> 13 & 1);
    return bits(sign | (x - 0x38000000) >> 13);
  }
};

struct BF16 {
  using bits = uint16_t;
  static float widen(bits h) {
    const uint32_t x = uint32_t(h) << 16;
    float f;
    std::memcpy(&f, &x, 4);
    return f;
  }
  static bits narrow(float f) {
    uint32_t x;
    std::memcpy(&x, &f, 4);
    if ((x & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return bits((x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
};

float from_bits(uint32_t x) {
  float f;
  std::memcpy(&f, &x, 4);
  return f;
}

uint32_t to_bits(float f) {
  uint32_t x;
  std::memcpy(&x, &f, 4);
  return x;
}

uint32_t flush(uint32_t x) { return (x & 0x7f800000) ? x : x & 0x80000000; }

uint32_t add_f32(uint32_t a, uint32_t b) {
  const float r = from_bits(a) + from_bits(b);
  return r != r ? 0x7fffffff : to_bits(r);
}

// Arithmetic on numbers: the smaller one, or the one that is a number; -0 < +0.
template <class T>
T smaller(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
T larger(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class H>
uint16_t half_op(uint32_t op, uint16_t a, uint16_t b) {
  const float x = H::widen(a), y = H::widen(b);
  // The sum of two is rounded once: a float has more than twice their digits.
  return H::narrow(op == WS_OP_ADD ? x + y : op == WS_OP_MIN ? smaller(x, y) : larger(x, y));
}

// ---- operations: new = f(old, b) ---------------------------------------------------------------------

template <uint32_t Op, class T>
struct Integer {
  using bits = std::make_unsigned_t<T>;
  static bits apply(bits old, bits b) {
    if constexpr (Op == WS_OP_ADD) return old + b;
    if constexpr (Op == WS_OP_MIN) return T(old) < T(b) ? old : b;
    if constexpr (Op == WS_OP_MAX) return T(old) > T(b) ? old : b;
    if constexpr (Op == WS_OP_INC) return old >= b ? 0 : old + 1;
    if constexpr (Op == WS_OP_DEC) return old == 0 || old > b ? b : old - 1;
    if constexpr (Op == WS_OP_AND) return old & b;
    if constexpr (Op == WS_OP_OR) return old | b;
    if constexpr (Op == WS_OP_XOR) return old ^ b;
  }
};

template <uint32_t Op, bool Flush>
struct Float32 {
  using bits = uint32_t;
  static bits apply(bits old, bits b) {
    if constexpr (Op == WS_OP_MIN) return to_bits(smaller(from_bits(old), from_bits(b)));
    if constexpr (Op == WS_OP_MAX) return to_bits(larger(from_bits(old), from_bits(b)));
    if constexpr (Flush) return flush(add_f32(flush(old), flush(b)));
    return add_f32(old, b);
  }
};

bool is_nan(uint64_t x) { return (x & 0x7fffffffffffffff) > 0x7ff0000000000000; }

// Which NaN comes out (seen on an H200): global memory keeps the operand's, as it is, before its own; shared memory
// its own, quiet, before the operand's.
template <uint32_t Op, bool Shared>
struct Float64 {
  using bits = uint64_t;
  static bits apply(bits old, bits b) {
    double x, y;
    std::memcpy(&x, &old, 8);
    std::memcpy(&y, &b, 8);
    const double r = Op == WS_OP_ADD ? x + y : Op == WS_OP_MIN ? smaller(x, y) : larger(x, y);
    if (r != r) {
      const bits first = Shared ? old : b, second = Shared ? b : old;
      const bits payload = is_nan(first) ? first : is_nan(second) ? second : 0xfff8000000000000;
      return Shared ? payload | 0x0008000000000000 : payload;
    }
    uint64_t out;
    std::memcpy(&out, &r, 8);
    return out;
  }
};

template <uint32_t Op, class H>
struct Half {
  using bits = uint16_t;
  static bits apply(bits old, bits b) { return half_op<H>(Op, old, b); }
};

template <uint32_t Op, class H>
struct Half2 {
  using bits = uint32_t;
  static bits apply(bits old, bits b) {
    return half_op<H>(Op, uint16_t(old), uint16_t(b)) | uint32_t(half_op<H>(Op, uint16_t(old >> 16), uint16_t(b >> 16))) << 16;
  }
};

// ---- how memory is changed -----------------------------------------------------------------------------

bool swap128(u128* p, u128* expected, u128 desired) {
#if defined(__x86_64__)
  bool ok;
  uint64_t lo = uint64_t(*expected), hi = uint64_t(*expected >> 64);
  asm volatile("lock cmpxchg16b %1" : "=@ccz"(ok), "+m"(*p), "+a"(lo), "+d"(hi)
               : "b"(uint64_t(desired)), "c"(uint64_t(desired >> 64)) : "memory");
  *expected = u128(hi) << 64 | lo;
  return ok;
#else
  // What was read is written back if it differs: only then is it known to have been read in one piece.
  uint64_t lo, hi, new_lo, new_hi;
  uint32_t failed;
  const uint64_t want_lo = uint64_t(*expected), want_hi = uint64_t(*expected >> 64);
  asm volatile(
      "1: ldaxp %[lo], %[hi], [%[p]]\n"
      "   cmp %[lo], %[want_lo]\n"
      "   ccmp %[hi], %[want_hi], #0, eq\n"
      "   csel %[new_lo], %[d_lo], %[lo], eq\n"
      "   csel %[new_hi], %[d_hi], %[hi], eq\n"
      "   stlxp %w[failed], %[new_lo], %[new_hi], [%[p]]\n"
      "   cbnz %w[failed], 1b\n"
      : [lo] "=&r"(lo), [hi] "=&r"(hi), [new_lo] "=&r"(new_lo), [new_hi] "=&r"(new_hi), [failed] "=&r"(failed)
      : [p] "r"(p), [want_lo] "r"(want_lo), [want_hi] "r"(want_hi), [d_lo] "r"(uint64_t(desired)), [d_hi] "r"(uint64_t(desired >> 64))
      : "memory", "cc");
  *expected = u128(hi) << 64 | lo;
  return lo == want_lo && hi == want_hi;
#endif
}

template <class T>
bool swap(T* p, T* expected, T desired) {
  if constexpr (sizeof(T) == 16) return swap128(p, expected, desired);
  else return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

template <class T>
T load(const T* p) {
  if constexpr (sizeof(T) == 16) return *p;  // a torn value only makes the first swap fail
  else return __atomic_load_n(p, __ATOMIC_RELAXED);
}

template <class Op, bool Plain>
struct Update {
  using T = typename Op::bits;
  static T run(T* p, T b, T) {
    T old = load(p);
    if constexpr (Plain) {
      *p = Op::apply(old, b);
      return old;
    } else {
      while (!swap(p, &old, Op::apply(old, b))) {}
      return old;
    }
  }
};

// What the processor has an instruction for.
template <class T, bool Plain>
struct FetchAdd {
  static T run(T* p, T b, T) {
    if constexpr (!Plain) return __atomic_fetch_add(p, b, __ATOMIC_SEQ_CST);
    const T old = *p;
    *p = old + b;
    return old;
  }
};

template <class T, bool Plain>
struct Exchange {
  static T run(T* p, T b, T) {
    if constexpr (!Plain && sizeof(T) < 16) return __atomic_exchange_n(p, b, __ATOMIC_SEQ_CST);
    T old = *p;
    if constexpr (Plain) *p = b;
    else while (!swap(p, &old, b)) {}
    return old;
  }
};

template <class T, bool Plain>
struct CompareSwap {
  static T run(T* p, T b, T c) {
    T old = b;
    if constexpr (!Plain) swap(p, &old, c);
    else if ((old = *p) == b) *p = c;
    return old;
  }
};

// ---- a warp --------------------------------------------------------------------------------------------

struct Lanes {
  uint64_t base;                // lane i works at the host address base + offset[i]
  const uint64_t* offset;
  const void* b;
  const void* c;
  void* out;
  uint32_t mask;
};

using Run = void (*)(const Lanes&);

template <class T, class M>
void every_lane(const Lanes& l) {
  const T* b = static_cast<const T*>(l.b);
  const T* c = l.c ? static_cast<const T*>(l.c) : b;
  T unused[WS_LANES];
  T* out = l.out ? static_cast<T*>(l.out) : unused;
  auto lane = [&](int i) { out[i] = M::run(reinterpret_cast<T*>(l.base + l.offset[i]), b[i], c[i]); };
  if (l.mask == ~0u) {
    for (int i = 0; i < WS_LANES; ++i) lane(i);
  } else {
    for (uint32_t m = l.mask; m; m &= m - 1) lane(__builtin_ctz(m));
  }
}

template <class T, bool Plain>
Run bits_op(uint32_t op) {
  switch (op) {
    case WS_OP_EXCH: return every_lane<T, Exchange<T, Plain>>;
    case WS_OP_CAS: return every_lane<T, CompareSwap<T, Plain>>;
    default: break;
  }
  if constexpr (sizeof(T) < 16) {
    switch (op) {
      case WS_OP_AND: return every_lane<T, Update<Integer<WS_OP_AND, T>, Plain>>;
      case WS_OP_OR: return every_lane<T, Update<Integer<WS_OP_OR, T>, Plain>>;
      case WS_OP_XOR: return every_lane<T, Update<Integer<WS_OP_XOR, T>, Plain>>;
      default: break;
    }
  }
  return nullptr;
}

template <class T, bool Plain>
Run integer_op(uint32_t op) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case WS_OP_ADD: return every_lane<U, FetchAdd<U, Plain>>;
    case WS_OP_MIN: return every_lane<U, Update<Integer<WS_OP_MIN, T>, Plain>>;
    case WS_OP_MAX: return every_lane<U, Update<Integer<WS_OP_MAX, T>, Plain>>;
    case WS_OP_INC: return every_lane<U, Update<Integer<WS_OP_INC, T>, Plain>>;
    case WS_OP_DEC: return every_lane<U, Update<Integer<WS_OP_DEC, T>, Plain>>;
    default: return bits_op<U, Plain>(op);
  }
}

template <template <uint32_t> class F, bool Plain>
Run number_op(uint32_t op) {
  using T = typename F<WS_OP_ADD>::bits;
  switch (op) {
    case WS_OP_ADD: return every_lane<T, Update<F<WS_OP_ADD>, Plain>>;
    case WS_OP_MIN: return every_lane<T, Update<F<WS_OP_MIN>, Plain>>;
    case WS_OP_MAX: return every_lane<T, Update<F<WS_OP_MAX>, Plain>>;
    default: return bits_op<T, Plain>(op);
  }
}

template <uint32_t Op> using PlainF32 = Float32<Op, false>;
template <uint32_t Op> using FlushingF32 = Float32<Op, true>;
template <uint32_t Op> using SharedF64 = Float64<Op, true>;
template <uint32_t Op> using GlobalF64 = Float64<Op, false>;
template <uint32_t Op> using HalfF16 = Half<Op, F16>;
template <uint32_t Op> using HalfBF16 = Half<Op, BF16>;
template <uint32_t Op> using Half2F16 = Half2<Op, F16>;
template <uint32_t Op> using Half2BF16 = Half2<Op, BF16>;

template <bool Plain>
Run select(uint32_t op, uint32_t type, bool shared) {
  switch (type) {
    case WS_T_B16: return bits_op<uint16_t, Plain>(op);
    case WS_T_B32: return bits_op<uint32_t, Plain>(op);
    case WS_T_B64: return bits_op<uint64_t, Plain>(op);
    case WS_T_B128: return bits_op<u128, Plain>(op);
    case WS_T_U32: return integer_op<uint32_t, Plain>(op);
    case WS_T_S32: return integer_op<int32_t, Plain>(op);
    case WS_T_U64: return integer_op<uint64_t, Plain>(op);
    case WS_T_S64: return integer_op<int64_t, Plain>(op);
    case WS_T_F16: return number_op<HalfF16, Plain>(op);
    case WS_T_BF16: return number_op<HalfBF16, Plain>(op);
    case WS_T_F16X2: return number_op<Half2F16, Plain>(op);
    case WS_T_BF16X2: return number_op<Half2BF16, Plain>(op);
    // atom.add.f32 keeps subnormal numbers in shared memory, and flushes them to zero in global memory.
    case WS_T_F32: return shared ? number_op<PlainF32, Plain>(op) : number_op<FlushingF32, Plain>(op);
    case WS_T_F64: return shared ? number_op<SharedF64, Plain>(op) : number_op<GlobalF64, Plain>(op);
    default: return nullptr;
  }
}

constexpr uint32_t kSize[WS_TYPES] = {2, 4, 8, 16, 4, 4, 8, 8, 2, 2, 4, 4, 4, 8};

void run(Warp& w, const Lanes& l, uint32_t site, uint32_t op, uint32_t type, bool shared) {
  const Run f = shared || w.block->launch->single ? select<true>(op, type, shared) : select<false>(op, type, shared);
  if (!f) fail(w, Failure{WS_E_UNSUPPORTED, site, l.mask, "this atomic operation does not exist for this type"});
  f(l);
}

// Lanes whose address is not a multiple of size in [base, base + limit).
uint32_t outside(const uint64_t* addr, uint32_t mask, uint32_t size, const ws_range& good) {
  uint32_t bad = 0;
  for (int i = 0; i < WS_LANES; ++i) bad |= uint32_t((addr[i] - good.base >= good.limit) | ((addr[i] & (size - 1)) != 0)) << i;
  return bad & mask;
}

bool in_block(uint64_t address) { return address - WS_SHARED_WINDOW < 3 * WS_WINDOW_SIZE; }

// Generic addresses in several spaces, or the first time that an instruction runs.
void run_any(Warp& w, Lanes l, uint32_t site, uint32_t space, uint32_t op, uint32_t type) {
  check_access(w, site, space, WS_ATOMIC, kSize[type], kSize[type], l.offset, l.mask);
  if (w.in_flight) check_flights(w, site, space, WS_ATOMIC, kSize[type], l.offset, l.mask);
  uint64_t host[WS_LANES] = {};
  uint32_t block_lanes = space == WS_SHARED || space == WS_LOCAL ? l.mask : 0;
  for (uint32_t m = l.mask; m; m &= m - 1) {
    const uint32_t i = uint32_t(__builtin_ctz(m));
    host[i] = reinterpret_cast<uint64_t>(host_address(w, space, l.offset[i], i));
    if (space == WS_GENERIC && in_block(l.offset[i])) block_lanes |= 1u << i;
  }
  const uint32_t mask = l.mask;
  l.base = 0;
  l.offset = host;
  if ((l.mask = mask & block_lanes)) run(w, l, site, op, type, true);
  if ((l.mask = mask & ~block_lanes)) run(w, l, site, op, type, false);
}

}  // namespace

}  // namespace ws

using namespace ws;

void ws_atomic(ws_warp* w, uint32_t site, uint32_t space, uint32_t op, uint32_t type, const uint64_t* addr, const void* b, const void* c,
               void* out, uint32_t mask) {
  const uint32_t size = kSize[type];
  Lanes l{0, addr, b, c, out, mask};
  if (space == WS_SHARED && w->shared_size >= size) {
    if (outside(addr, mask, size, ws_range{0, w->shared_size - size + 1}) == 0) {
      l.base = reinterpret_cast<uint64_t>(w->shared);
      if (w->in_flight) check_flights(warp_of(w), site, space, WS_ATOMIC, size, addr, mask);
      return run(warp_of(w), l, site, op, type, true);
    }
  } else if (space == WS_GLOBAL || space == WS_GENERIC) {
    const ws_range good = w->cache[site];
    if (outside(addr, mask, size, good) == 0 && (space == WS_GLOBAL || !in_block(good.base))) {
      l.base = uint64_t(w->delta);
      return run(warp_of(w), l, site, op, type, false);
    }
  }
  run_any(warp_of(w), l, site, space, op, type);
}
