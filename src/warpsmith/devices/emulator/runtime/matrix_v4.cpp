// The matrix kernels for processors with AVX-512 (the level x86-64-v4).
#include "matrix.h"

#ifdef __x86_64__
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v4")
// Products of these types are exact in f32 (but for underflow), so contracting only saves time.
#pragma GCC optimize("fp-contract=fast")
#endif
#pragma GCC diagnostic ignored "-Wpsabi"
// The intrinsics of GCC 12 use a register that they leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define WS_ISA v4
#include "matrix_avx512.h"
#include "matrix_table.h"

namespace ws::matrix {
const Kernels kernels_v4 = v4::table();
}

#ifdef __clang__
#pragma clang attribute pop
#endif
#else
namespace ws::matrix {
const Kernels kernels_v4 = {};
}
#endif
