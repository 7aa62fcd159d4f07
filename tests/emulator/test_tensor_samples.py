"""Whole kernels with tensor cores and asynchronous copies, as four compilers write them, compared with numpy.

The PTX is that of tests/ptx/samples (nvcc, Triton, CUTLASS's Python DSL).  In check mode none of them may be accused.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warpsmith
from warpsmith.errors import KernelError

SAMPLES = Path(__file__).parent.parent / "ptx" / "samples"


@pytest.fixture(
    scope="module", params=[("check", "hardware"), ("fast", "hardware"), ("fast", "fast")], ids=lambda p: "-".join(p)
)
def dev(request):
    mode, numerics = request.param
    return warpsmith.device("emulator", mode=mode, numerics=numerics)


@pytest.fixture
def rng():
    return np.random.default_rng(23)


def text(name: str) -> str:
    return (SAMPLES / f"{name}.ptx").read_text(encoding="utf-8")


def only(program):
    return program[program.kernels[0]]


def assert_product(c, a, b, extra=0.0):
    """c = a x b to within the error of sums in single precision (and of a rounding to the type of c)."""
    a, b = np.float64(a), np.float64(b)
    bound = a.shape[1] * 2.0**-22 * (np.abs(a) @ np.abs(b)) + extra * np.abs(a @ b)
    assert (np.abs(np.float64(c) - a @ b) <= bound).all()


def test_wmma_gemm(dev, rng):
    m, n, k = 64, 96, 80
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((n, k)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    only(dev.compile(text("wmma_gemm.sm80")))((n // 32, m // 32), (64, 2), a, b, c, m, n, k)
    assert_product(c, a, b.T)


@pytest.mark.parametrize("k", [32, 64, 224])
def test_mma_cpasync(dev, rng, k):
    m, n = 128, 192
    a, b = (rng.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    kernel = only(dev.compile(text("mma_cpasync.sm80")))
    kernel((n // 64, m // 64), 128, a.view(np.uint16), b.view(np.uint16), c, m, n, k)
    assert_product(c, np.float64(a), np.float64(b).T)


@pytest.mark.parametrize("shape", [(64, 64, 64), (64, 128, 256), (100, 80, 96), (64, 64, 32), (130, 72, 40)])
def test_triton_matmul(dev, rng, shape):
    """Tiles of 64 x 64 x 32, three stages, masks for K and for the result; the scratch pointers are not used."""
    m, n, k = shape
    rows, columns = -(-m // 64) * 64, -(-n // 64) * 64
    a, b = rng.standard_normal((rows, k)).astype(np.float16), rng.standard_normal((k, columns)).astype(np.float16)
    c = np.full((rows, columns), 99, np.float16)
    kernel = only(dev.compile(text("triton_matmul.sm80")))
    kernel((rows // 64, columns // 64), 128, a, b, c, m, n, k, k, columns, columns, 0, 0, shared=49152)
    assert_product(c[:m, :n], a[:m], b[:, :n], 2.0**-10)
    assert (c[m:] == 99).all() and (c[:, n:] == 99).all()


def test_cutedsl_mma(dev, rng):
    a, b = rng.standard_normal((2, 128, 128)).astype(np.float16)
    c = dev.empty((128, 128))
    only(dev.compile(text("cutedsl_mma.sm90a")))((4, 4), 128, dev.array(a), dev.array(b), c)
    assert_product(c.numpy(), a, b.T)


@pytest.mark.parametrize("chip", ["sm80", "sm90a"])
@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_pipeline_and_barrier(dev, rng, chip, tiles):
    """cuda::pipeline with two stages, cooperative memcpy_async, cuda::barrier."""
    g, out = rng.integers(-9, 9, (tiles, 256)).astype(np.float32), np.zeros(256, np.float32)
    only(dev.compile(text(f"pipeline_barrier.{chip}")))(1, 256, g, out, tiles)
    assert np.array_equal(out, g.sum(0))


def matrices(registers, dtype, wide: bool) -> np.ndarray:
    """The matrix that the registers [number][lane] hold: A (16 rows of k) or B transposed (8 rows of k)."""
    regs = np.ascontiguousarray(registers).view(dtype).reshape(len(registers), 8, -1)  # 8 rows in 4 lanes each
    if not wide:
        return np.concatenate(list(regs), axis=1)
    return np.concatenate([np.concatenate([regs[0], regs[2]], axis=1), np.concatenate([regs[1], regs[3]], axis=1)])


def test_mma_types(dev, rng):
    """All types of multiplicands in one kernel, on bits that are small numbers in each of them."""
    words = rng.choice(np.array([0, 0x3800, 0xB800], np.uint16), 512).view(np.uint32)
    f, d, i = np.zeros((32, 4), np.float32), np.zeros((32, 2)), np.zeros((32, 4), np.int32)
    only(dev.compile(text("mma_types.sm90a")))(1, 32, words, f, d, i)
    halves = words[:128].view(np.float16).reshape(4, 8, 8).transpose(0, 2, 1)
    a = np.ascontiguousarray(halves).view(np.uint32).reshape(4, 32)
    c = np.zeros((16, 8))
    for ta, tb in (
        (np.float16, np.float16),
        (np.float32, np.float32),
        (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
        (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn),
    ):
        c += np.float64(matrices(a, ta, True)) @ np.float64(matrices(a[:2], tb, False)).T
    # [row][column] as [lane][register]: rows l / 4 and + 8, columns 2 (l % 4) and + 1.
    by_lane = lambda x: np.stack([x[:8].reshape(32, 2), x[8:].reshape(32, 2)], axis=1).reshape(32, 4)  # noqa: E731
    assert np.allclose(f, by_lane(c), rtol=1e-6, atol=1e-6)
    half = np.float64(matrices(a, np.float16, True)) @ np.float64(matrices(a[:2], np.float16, False)).T
    half += np.concatenate([a[0].view(np.float16).reshape(8, 8), a[1].view(np.float16).reshape(8, 8)])
    h1 = np.ascontiguousarray(half[8:].astype(np.float16)).view(np.int32).reshape(32)
    whole = matrices(a, np.int8, True).astype(np.int64) @ matrices(a[:2], np.int8, False).T.astype(np.int64)
    want = by_lane(whole) + h1[:, None].astype(np.int64) + words[:32, None].astype(np.int64)
    assert np.array_equal(i, want.astype(np.uint64).astype(np.uint32).view(np.int32))
    x = np.arange(32.0).reshape(8, 4)
    assert np.array_equal(d, (x @ x.T).reshape(32, 2))


# ---- mistakes planted in them --------------------------------------------------------------------------
@pytest.fixture(scope="module")
def checked():
    return warpsmith.device("emulator", mode="check")


def test_missing_wait_in_a_product(checked, rng):
    """The last wait of the two-stage pipeline is off by one."""
    source = text("mma_cpasync.sm80")
    assert source.count("cp.async.wait_group 0;") == 1
    program = checked.compile(source.replace("cp.async.wait_group 0;", "cp.async.wait_group 1;"))
    a, b = rng.standard_normal((2, 64, 64)).astype(ml_dtypes.bfloat16).view(np.uint16)
    with pytest.raises(KernelError) as e:
        only(program)(1, 128, a, b, np.zeros((64, 64), np.float32), 64, 64, 64)
    assert "ldmatrix" in str(e.value) and "cp.async.cg.shared.global" in str(e.value)


def test_too_few_stages_in_a_product(checked, rng):
    """Triton's loop waits for one group less than it must."""
    source = text("triton_matmul.sm80")
    broken = source.replace("cp.async.wait_group \t2;", "cp.async.wait_group \t4;")
    assert broken != source
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float16)
    with pytest.raises(KernelError, match="asynchronous copy"):
        only(checked.compile(broken))(1, 128, a, b, np.zeros_like(a), *[64] * 6, 0, 0, shared=49152)


def test_missing_consumer_wait(checked, rng):
    """cuda::pipeline without consumer_wait reads what has not come."""
    source = """
    #include <cuda/pipeline>
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const float* g, float* out, int wait) {
      __shared__ float buf[256];
      __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> st;
      auto p = cuda::make_pipeline(cg::this_thread_block(), &st);
      p.producer_acquire();
      cuda::memcpy_async(&buf[threadIdx.x * 4], &g[threadIdx.x * 4], cuda::aligned_size_t<16>(16), p);
      p.producer_commit();
      if (wait) p.consumer_wait();
      out[threadIdx.x] = buf[threadIdx.x];
      if (!wait) p.consumer_wait();
      p.consumer_release();
    }"""
    program = checked.compile(source)
    g, out = rng.standard_normal(256).astype(np.float32), np.zeros(64, np.float32)
    program["k"](1, 64, g, out, 1)
    assert np.array_equal(out, g[:64])
    with pytest.raises(KernelError, match="asynchronous copy"):
        program["k"](1, 64, g, out, 0)
