"""Shifted and truncated products of narrow integers: LLVM's x86 back end got these wrong (see ``ir.Builder.op``)."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith

A = (np.arange(32) * 2011 - 30000).astype(np.int16)
B = (np.arange(32) * 1777 - 20000).astype(np.int16)


@pytest.mark.parametrize("a_type", ["short", "signed char", "unsigned char", "unsigned short"])
@pytest.mark.parametrize("result", ["int", "short", "unsigned short"])
def test_fixed_point_products(a_type, result):
    shifts = [8, 15, 16, 17, 20, 24, 31, 32, 35, 40]
    kernels = "".join(
        f'extern "C" __global__ void k{s}(const {a_type}* a, const short* b, {result}* o) {{\n'
        f"  int i = threadIdx.x; o[i] = ({result})(((long long)a[i] * b[i]) >> {s}); }}\n"
        for s in shifts
    )
    program = warpsmith.device("emulator").compile(kernels)
    dtype = {"short": "i2", "signed char": "i1", "unsigned char": "u1", "unsigned short": "u2"}[a_type]
    a = A.astype(dtype)
    out_type = {"int": np.int32, "short": np.int16, "unsigned short": np.uint16}[result]
    for s in shifts:
        out = np.zeros(32, out_type)
        program[f"k{s}"](1, 32, a, B, out)
        assert np.array_equal(out, ((a.astype(np.int64) * B) >> s).astype(out_type)), s
