// The matrix kernels for processors with AVX2, FMA and F16C (the level x86-64-v3).
#include "matrix.h"

#ifdef __x86_64__
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v3")
// Products of these types are exact in f32 (but for underflow), so contracting only saves time.
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#define WS_ISA v3
#include "matrix_dense.h"
#include "matrix_table.h"

namespace ws::matrix {
const Kernels kernels_v3 = v3::table();
}

#ifdef __clang__
#pragma clang attribute pop
#endif
#else
namespace ws::matrix {
const Kernels kernels_v3 = {};
}
#endif
