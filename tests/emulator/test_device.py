"""The Python interface: arguments in, results out, and what is refused."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

import warpsmith
from warpsmith.errors import LaunchError, UsageError

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct P { float a; int n; };
extern "C" __global__ void scale(float* x, float f) { x[threadIdx.x] *= f; }
extern "C" __global__ void wide(double* x, double f, long long n) { x[threadIdx.x] = f + n; }
extern "C" __global__ void set(int* x, int v) { x[threadIdx.x] = v; }
extern "C" __global__ void small(unsigned char* x, unsigned char v, short w) { x[threadIdx.x] = v + w; }
extern "C" __global__ void half_scale(__half* x, __half f) { x[threadIdx.x] = __hmul(x[threadIdx.x], f); }
extern "C" __global__ void bf16_scale(__nv_bfloat16* x, __nv_bfloat16 f) { x[threadIdx.x] = __hmul(x[threadIdx.x], f); }
extern "C" __global__ void structure(float* x, P p) { x[threadIdx.x] = p.a * p.n; }
"""


@pytest.fixture(scope="module")
def dev():
    return warpsmith.device("emulator")


@pytest.fixture(scope="module")
def program(dev):
    return dev.compile(SOURCE)


@pytest.mark.parametrize("f", [3, 3.0, np.float32(3), np.float64(3), np.int32(3), np.float16(3), True + 2])
def test_numbers_take_the_type_of_a_float_parameter(program, f):
    x = np.arange(4, dtype=np.float32)
    program["scale"](1, 4, x, f)
    assert x.tolist() == [0, 3, 6, 9]


def test_double_and_long(program):
    x = np.zeros(2)
    program["wide"](1, 2, x, 3, np.int16(-5))
    assert x.tolist() == [-2, -2]


@pytest.mark.parametrize("v", [2.5, np.float32(2), 1 << 33, -(1 << 31) - 1, "7", None])
def test_an_integer_parameter_refuses_what_is_no_integer_of_its_size(program, v):
    with pytest.raises(LaunchError, match="argument 1 of set"):
        program["set"](1, 4, np.zeros(4, np.int32), v)


@pytest.mark.parametrize(("v", "w", "want"), [(200, -3, 197), (np.uint8(255), 1, 0)])
def test_small_integers(program, v, w, want):
    x = np.zeros(3, np.uint8)
    program["small"](1, 3, x, v, w)
    assert x.tolist() == [want] * 3


def test_sixteen_bit_floats(program):
    x = np.arange(4, dtype=np.float16)
    program["half_scale"](1, 4, x, np.float16(0.5))
    assert x.tolist() == [0, 0.5, 1, 1.5]
    y = np.arange(4).astype(ml_dtypes.bfloat16)
    program["bf16_scale"](1, 4, y, ml_dtypes.bfloat16(2))
    assert y.astype(float).tolist() == [0, 2, 4, 6]
    with pytest.raises(LaunchError, match=r"np\.float16"):
        program["half_scale"](1, 4, x, 2)


def test_structures_by_value(program):
    record = np.dtype([("a", np.float32), ("n", np.int32)])

    class P(ctypes.Structure):
        _fields_ = [("a", ctypes.c_float), ("n", ctypes.c_int)]

    for p in (
        np.array((2.5, 4), record),
        np.array((2.5, 4), record)[()],
        np.array((2.5, 4), record).tobytes(),
        P(2.5, 4),
    ):
        x = np.zeros(2, np.float32)
        program["structure"](1, 2, x, p)
        assert x.tolist() == [10, 10]
    for wrong in (np.array([(2.5, 4)], record), (2.5, 4), [1, 2], 3.0, 7, b"123"):
        with pytest.raises(LaunchError, match="argument 1 of structure"):
            program["structure"](1, 2, np.zeros(2, np.float32), wrong)


def test_arrays_of_any_layout(program):
    base = np.zeros((4, 6), np.int32)
    program["set"](1, 4, base[:, 2], 9)  # copied, and back into the column
    assert base[:, 2].tolist() == [9] * 4
    assert base.sum() == 36
    program["set"](1, 0 + 1, memoryview(bytearray(4)), 1)


def test_arrays_that_share_memory(dev):
    source = """extern "C" __global__ void k(int* a, const int* b, int n) { int i = threadIdx.x; if (i < n) a[i] = b[i] * 10; }"""
    k = dev.compile(source)["k"]
    m = np.arange(12, dtype=np.int32).reshape(3, 4)
    k(1, 32, m[1], m, 4)
    assert m[1].tolist() == [0, 10, 20, 30]
    a = np.arange(10, dtype=np.int32)
    k(1, 32, a[:5], a, 5)
    assert a.tolist() == [0, 10, 20, 30, 40, 5, 6, 7, 8, 9]
    with pytest.raises(LaunchError, match="share memory"):
        k(1, 32, a[2:], a[:8], 8)


@pytest.mark.parametrize("wrong", [np.array(["a"]), np.array([1], ">i4"), np.array([None]), [1, 2, 3, 4]])
def test_results_are_never_dropped(program, wrong):
    """Kinds that the device does not know, and a list, into which nothing could come back."""
    with pytest.raises(LaunchError, match="argument 0 of set"):
        program["set"](1, 4, wrong, 5)


def test_a_write_to_a_read_only_array_is_not_lost_in_silence(program):
    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        program["set"](1, 4, x, 5)
    program["set"](1, 4, x, 0)  # nothing changed


def test_device_arrays(dev, program):
    d = dev.array(np.arange(4, dtype=np.int32))
    program["set"](1, 2, d, 7)
    assert d.numpy().tolist() == [7, 7, 2, 3]
    assert np.asarray(d).sum() == 19
    assert len(d) == 4
    assert "int32" in repr(d)
    d.free()
    with pytest.raises(UsageError, match="freed"):
        program["set"](1, 2, d, 7)


@pytest.mark.parametrize("grid", [0, -1, (1, 2, 3, 4), 1.5, "x", (), (1, 0)])
def test_bad_grids(program, grid):
    with pytest.raises(LaunchError, match="positive integers"):
        program["set"](grid, 1, np.zeros(4, np.int32), 1)


def test_wrong_counts_and_names(dev, program):
    with pytest.raises(LaunchError, match="takes 2 arguments, 1 given"):
        program["set"](1, 1, np.zeros(1, np.int32))
    with pytest.raises(UsageError, match="no kernel named nothing"):
        program["nothing"]
    with pytest.raises(UsageError, match="text of a source"):
        dev.compile("kernel.cu")
    with pytest.raises(UsageError, match="mode"):
        warpsmith.device("emulator", mode="quick")
    for wrong in (None, b"x", 3):
        with pytest.raises(UsageError, match="text of a source"):
            dev.compile(wrong)
    with pytest.raises(UsageError, match="list"):
        dev.compile("int x;", options="-DX")
    with pytest.raises(UsageError, match="by its name"):
        program[3]
    assert "set" in list(program)
    with pytest.raises(UsageError, match="chip is a name"):
        warpsmith.device("emulator", None)
    with pytest.raises(UsageError, match="no device"):
        warpsmith.device("tpu")


def test_chip_limits_are_the_chips(program):
    with pytest.raises(LaunchError):
        program["set"](1, 1025, np.zeros(1025, np.int32), 1)
    with pytest.raises(LaunchError):
        program["set"](1, 1, np.zeros(1, np.int32), 1, shared=300_000)
