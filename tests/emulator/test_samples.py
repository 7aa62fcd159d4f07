"""Whole kernels as seven compilers write them, run on the emulator and compared with numpy.

The PTX is that of tests/ptx/samples (our own sources, compiled by nvcc, Triton, Numba and Mojo): the samples that need
neither tensor cores nor asynchronous copies.
"""

from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warpsmith
from warpsmith.errors import KernelError

SAMPLES = Path(__file__).parent.parent / "ptx" / "samples"


@pytest.fixture(scope="module", params=["check", "fast"])
def dev(request):
    return warpsmith.device("emulator", mode=request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def load(dev, name):
    return dev.compile((SAMPLES / f"{name}.ptx").read_text(encoding="utf-8"), name=name)


def only(program):
    return program[program.kernels[0]]


def test_vadd(dev, rng):
    a, b = rng.standard_normal((2, 1000), dtype=np.float32)
    c = np.full(1024, -1, np.float32)
    load(dev, "vadd.sm80")["vadd"](4, 256, a, b, c, 1000)
    assert np.array_equal(c[:1000], a + b) and (c[1000:] == -1).all()


def test_sgemm(dev, rng):
    m, n, k = 128, 192, 64
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.zeros((m, n), np.float32)
    load(dev, "sgemm_tiled.sm80")["sgemm"]((n // 64, m // 64), 256, a, b, c, m, n, k)
    exact = a.astype(np.float64) @ b
    bound = k * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
    assert (np.abs(c - exact) <= bound).all()


def test_reduce_sum(dev, rng):
    x = rng.integers(-50, 50, 100_003).astype(np.float32)  # sums stay exact
    out = np.zeros(1, np.float32)
    load(dev, "warp_reduce.sm80")["reduce_sum"](7, 160, x, out, len(x))
    assert out[0] == x.astype(np.float64).sum()


def reverse_bits(v):
    return int(f"{v & 0xFFFFFFFF:032b}"[::-1], 2)


def test_vote_and_redux(dev, rng):
    n = 250
    x = rng.integers(-3, 9, n).astype(np.int32)
    out = np.zeros(n, np.int32)
    load(dev, "warp_reduce.sm80")["vote_redux"](4, 64, x, out, n)
    padded = np.zeros(256, np.int64)
    padded[:n] = x
    for i in range(n):
        w = padded[i // 32 * 32 :][:32]
        lane, v = i % 32, int(padded[i])
        same = next(k for k in range(32) if w[k] == v) + 1
        total = int((w > 0).sum()) + int((w == 7).any()) + 2 * int((w >= 0).all()) + same + int(w.max()) + int(w.sum())
        total += int(w[lane ^ 4]) + int(w[max(lane - 1, 0)]) + int(w[lane // 8 * 8 + 3])
        total += 32 - (v & 0xFFFFFFFF).bit_length() + reverse_bits(v) + v
        assert out[i] == np.int64(total).astype(np.int32), i


def test_histogram(dev, rng):
    x = rng.integers(0, 256, 5001).astype(np.uint8)
    h = np.zeros(256, np.uint32)
    load(dev, "histogram.sm80")["histogram"](3, 96, x, h, len(x))
    assert (h == np.bincount(x, minlength=256)).all()


def test_atomics(dev):
    p = np.zeros(128, np.int32)
    p[2], p[3], p[4], p[7] = 1000, -5, -1, 10_000
    f, d, q = np.zeros(1, np.float32), np.zeros(1, np.float64), np.zeros(1, np.uint64)
    load(dev, "histogram.sm80")["atomics"](1, 64, p, f, d, q)
    t = np.arange(64)
    assert p[2] == 0 and p[3] == 63 and p[4] == np.bitwise_and.reduce(t) and p[5] == 63
    assert p[6] == np.bitwise_xor.reduce(t) and p[7] == 10_000 - t.sum() and p[101] == p[102] == t.sum()
    assert p[0] in t and p[1] in t and p[100] == 64 % 17
    assert f[0] == 64 and d[0] == 64 and q[0] == 320
    # p[8 + t] are the values that the 64 subtractions saw: every partial sum in some order
    seen = np.sort(p[8:72])[::-1]
    assert seen[0] == 10_000 and set(np.diff(-seen)) <= set(t.tolist()) and len(seen) == 64


def test_block_scan(dev, rng):
    n, block = 1000, 256
    x = rng.integers(-100, 100, n).astype(np.int32)
    out, sums = np.zeros(n, np.int32), np.zeros(4, np.int32)
    load(dev, "scan.sm80")["scan_block"](4, block, x, out, sums, n)
    padded = np.zeros(1024, np.int64)
    padded[:n] = x
    want = np.cumsum(padded.reshape(4, block), axis=1)
    assert (out == want.reshape(-1)[:n]).all() and (sums == want[:, -1]).all()


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_online_softmax(dev, rng):
    x = (rng.standard_normal((6, 500)) * 3).astype(np.float16)
    y = np.zeros_like(x)
    load(dev, "softmax.sm80")["softmax_online"](6, 128, x, y, 250)
    want = softmax(x)
    assert np.abs(y - want).max() < 2.0**-11 * want.max() and np.allclose(y, want, rtol=2e-3, atol=6e-8)


def test_cooperative_groups(dev, rng):
    n, blocks = 5000, 6
    x = rng.integers(0, 100, n).astype(np.int32)
    out = np.zeros(blocks + 1, np.int32)
    load(dev, "coop_groups.sm80")["cg_kernel"](blocks, 128, x, out, n, cooperative=True)
    assert out[0] == x.sum() and out[1:].sum() == x.sum()


def test_cub_sort(dev, rng):
    k = rng.integers(-(2**31), 2**31, 512).astype(np.int32)
    want = np.sort(k)
    s = np.zeros(1, np.int32)
    load(dev, "cub_block.sm80")["cub_sort"](1, 128, k, s)
    assert (k == want).all()
    assert s[0] == want[::4].astype(np.int64).sum().astype(np.int32)


def test_debug_functions(dev, capfd):
    """printf, assert, trap, local memory passed to a function that is not inlined, constant and dynamic shared memory."""
    k = load(dev, "debugfn.sm80")["debugfn"]
    y = np.full(64, np.nan, np.float32)
    k(1, 64, y, 64, shared=256)  # n & 7 == 0: the polynomial has no terms; n & 3 == 0: y[0] += 1
    assert y[0] == 1 and (y[1:] == 0).all()
    assert "y0=0.000000 n=64" in capfd.readouterr().out
    with pytest.raises(KernelError, match="n > 0"):
        k(1, 32, y, 0, shared=256)
    with pytest.raises(KernelError, match=r"(?i)trap"):
        k(1, 32, y, 3, shared=256)


def test_math_functions(dev, rng):
    n = 500
    x = rng.uniform(0.1, 8, n).astype(np.float32)
    dx = rng.uniform(0.1, 8, n)
    y, dy = np.zeros(n, np.float32), np.zeros(n)
    load(dev, "mathfn.sm80")["mathfn"](4, 128, x, y, dx, dy, n)
    v = x.astype(np.float64)
    want = (
        np.sqrt(v)
        + 1 / np.sqrt(v)
        + np.sin(v)
        + np.log(v)
        + np.exp(v)
        + np.tanh(v)
        + np.array([math.erf(t) for t in v])
    )
    want += (
        v**1.5 + v / 3.7 + np.fmod(v, 2) + np.floor(v) + np.rint(v) + np.minimum(v, 1) + np.abs(v) - np.abs(v) + v / 3
    )
    assert np.abs(y / want - 1).max() < 2e-6
    wantd = np.sqrt(dx) + np.exp(dx) + dx / 3 + (dx * dx + 1)
    assert np.abs(dy / wantd - 1).max() < 1e-15


def test_conversions(dev, rng):
    n = 300
    x = rng.uniform(-0.99, 0.99, n).astype(np.float32)
    h, b = np.zeros(n, np.float16), np.zeros(n, ml_dtypes.bfloat16)
    e, q, back = np.zeros(n, ml_dtypes.float8_e4m3fn), np.zeros(n, np.int8), np.zeros(n, np.float32)
    load(dev, "mathfn.sm80")["cvts"](3, 128, x, h, b, e, q, back, n)
    assert (h == x.astype(np.float16)).all() and (b == x.astype(ml_dtypes.bfloat16)).all()
    assert (e == x.astype(ml_dtypes.float8_e4m3fn)).all() and (q == np.rint(x * np.float32(127)).astype(np.int8)).all()
    f = np.float32
    want = e.astype(f) + (h * h).astype(f) + (b + b).astype(f) + q.astype(f)
    assert (back == want).all()


def test_integers(dev, rng):
    n = 200
    a = rng.integers(-(2**31), 2**31, n).astype(np.int32)
    a[:4] = (0, -1, 2**31 - 1, -(2**31) + 1)
    o, u = np.zeros(n, np.int64), np.zeros(n, np.uint32)
    load(dev, "mathfn.sm80")["ints"](2, 128, a, o, u, n)
    for i in range(n):
        v = int(a[i])
        quotient = abs(v) // 13 * (1 if v >= 0 else -1)
        remainder = abs(v) % 5 * (1 if v >= 0 else -1)
        # the middle terms are ints: their sum wraps to 32 bits
        small = np.int64(quotient + remainder + (v * 12345 >> 32) + (v >> 3) + min(v, 3) + abs(v)).astype(np.int32)
        exact = v * int(a[i * 7 % n]) + quotient + remainder + (v * 12345 >> 32) + (v >> 3) + min(v, 3) + abs(v)
        assert o[i] in (v * int(a[i * 7 % n]) + int(small), exact)


@pytest.mark.parametrize("chip", ["sm80", "sm90"])
def test_triton_add(dev, rng, chip):
    n = 3000
    x, y = rng.standard_normal((2, n), dtype=np.float32)
    o = np.zeros(n, np.float32)
    k = only(load(dev, f"triton_add.{chip}"))
    k(3, 128, x, y, o, n, 0, 0)
    assert np.array_equal(o, x + y)


@pytest.mark.parametrize("chip", ["sm80", "sm90"])
def test_triton_softmax(dev, rng, chip):
    rows, cols = 5, 1000
    x = rng.standard_normal((rows, cols), dtype=np.float32)
    o = np.zeros_like(x)
    k = only(load(dev, f"triton_softmax.{chip}"))
    extra = [0] * (len(k.function.params) - 5)
    k(rows, k.function.directives["reqntid"][0], o, x, cols, cols, cols, *extra, shared=4096)
    assert np.allclose(o, softmax(x), rtol=1e-5, atol=1e-9)


def numba_array(dev, a):
    """A device array as Numba passes it: meminfo, parent, items, item size, data, shape, strides."""
    d = dev.array(a)
    return d, [0, 0, a.size, a.itemsize, d, *a.shape, *a.strides]


def test_numba_vadd(dev, rng):
    a, b = rng.standard_normal((2, 500), dtype=np.float32)
    arrays = [numba_array(dev, v) for v in (a, b, np.zeros(500, np.float32))]
    only(load(dev, "numba_vadd.sm80"))(4, 128, *(p for _, ps in arrays for p in ps))
    assert np.array_equal(arrays[2][0].numpy(), a + b)


def test_numba_matmul(dev, rng):
    a, b = rng.standard_normal((2, 32, 32), dtype=np.float32)
    arrays = [numba_array(dev, v) for v in (a, b, np.zeros((32, 32), np.float32))]
    only(load(dev, "numba_matmul.sm80"))((2, 2), (16, 16), *(p for _, ps in arrays for p in ps))
    assert np.allclose(arrays[2][0].numpy(), a.astype(np.float64) @ b, atol=1e-4)


def test_mojo_vadd(dev, rng):
    a, b = rng.standard_normal((2, 700), dtype=np.float32)
    c = np.zeros(700, np.float32)
    only(load(dev, "mojo_vadd.sm90a"))(6, 128, a, b, c, 700)
    assert np.array_equal(c, a + b)
