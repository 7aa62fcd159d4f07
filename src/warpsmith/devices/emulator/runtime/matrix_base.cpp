// The matrix kernels for any processor.
#include "matrix.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif
#define WS_ISA base
#include "matrix_dense.h"
#include "matrix_table.h"

namespace ws::matrix {
const Kernels kernels_base = base::table();
}
