"""Every atomic operation and type against numpy, and under contention between host threads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from runtime_host import buffers, launch, pack, run, setup, zeros

from warpsmith.devices.emulator import abi

GLOBAL, SHARED, GENERIC = (abi.SPACES[s] for s in ("global", "shared", "generic"))
DTYPES = {
    "b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "u32": np.uint32, "s32": np.int32, "u64": np.uint64,
    "s64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTEGERS = ("u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")


@pytest.fixture(autouse=True, params=[1, 2], ids=["plain", "atomic"])
def runtime(request):
    return setup(threads=request.param)


def atomic(space, op, ty, address, b, c, out, mask=0xFFFFFFFF, stride=None, times=1, grid=1, block=32):
    size = out.dtype.itemsize if space != SHARED else b.dtype.itemsize
    size = int(np.prod(b.shape[1:], initial=1)) * b.dtype.itemsize
    params = pack(
        "QQQQIIIIIII", address, b.address, c.address if c else 0, out.address if out else 0,
        space, abi.ATOMIC_OPS[op], abi.ATOMIC_TYPES[ty], size, mask, size if stride is None else stride, times,
    )  # fmt: skip
    return launch("atomic", grid, block, params, shared=512)


def values(ty, rng, n=64):
    dt = np.dtype(DTYPES[ty])
    if ty in FLOATS:
        info = ml_dtypes.finfo(dt)
        corners = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            info.max,
            -info.max,
            info.tiny,
            -info.tiny,
            info.smallest_subnormal,
            np.inf,
            -np.inf,
            np.nan,
            1.5,
        ]
        return np.concatenate([np.array(corners).astype(dt), rng.normal(0, 10, n - len(corners)).astype(dt)])
    info = np.iinfo(dt)
    corners = [0, 1, info.max, info.min, info.max - 1, info.max // 2]
    return np.concatenate(
        [np.array(corners, dt), rng.integers(info.min, info.max, n - len(corners), dt, endpoint=True)]
    )


def oracle(op, ty, old, b, c, flush=False):
    with np.errstate(all="ignore"):
        match op:
            case "add" if ty == "f32":
                ftz = lambda x: np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)  # noqa: E731
                return ftz(ftz(old) + ftz(b)) if flush else old + b
            case "add" if ty in ("f16", "bf16"):
                return (old.astype(np.float64) + b.astype(np.float64)).astype(old.dtype)
            case "add":
                return old + b
            case "min" | "max" if ty in FLOATS:
                pick = np.fmin if op == "min" else np.fmax
                out = pick(old.astype(np.float64), b.astype(np.float64)).astype(old.dtype)
                both_zero = (old == 0) & (b == 0)
                sign = (np.signbit(old) | np.signbit(b)) if op == "min" else (np.signbit(old) & np.signbit(b))
                return np.where(both_zero, np.where(sign, -0.0, 0.0).astype(old.dtype), out)
            case "min" | "max":
                return getattr(np, f"{op}imum")(old, b)
            case "inc":
                return np.where(old >= b, 0, old + 1).astype(old.dtype)
            case "dec":
                return np.where((old == 0) | (old > b), b, old - 1).astype(old.dtype)
            case "and":
                return old & b
            case "or":
                return old | b
            case "xor":
                return old ^ b
            case "exch":
                return b
            case "cas":
                return np.where(old == b, c, old)


def same(ty, got, want):
    if ty in FLOATS:
        unsigned = f"u{got.dtype.itemsize}"
        nan = np.isnan(want.astype(np.float64))
        # The NaN of f64 depends on the operands: see the recordings of an H200.
        bits = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}.get(ty)
        assert np.isnan(got[nan]).all() if bits is None else (got.view(unsigned)[nan] == bits).all()
        assert np.array_equal(got.view(unsigned)[~nan], want.view(unsigned)[~nan])
    else:
        assert np.array_equal(got, want)


FORMS = (
    [(op, ty) for ty in INTEGERS for op in ("add", "min", "max", "and", "or", "xor", "exch", "cas")]
    + [(op, ty) for ty in ("u32",) for op in ("inc", "dec")]
    + [(op, ty) for ty in FLOATS for op in ("add", "min", "max", "exch")]
    + [(op, ty) for ty in ("b32", "b64") for op in ("and", "or", "xor", "exch", "cas")]
    + [(op, "b16") for op in ("exch", "cas")]
)


@pytest.mark.parametrize(("op", "ty"), FORMS)
@pytest.mark.parametrize("space", [GLOBAL, GENERIC])
def test_against_numpy(op, ty, space):
    rng = np.random.default_rng(1)
    old, b = values(ty, rng), rng.permutation(values(ty, rng))
    c = rng.permutation(values(ty, rng))
    if op == "cas":
        b = np.where(rng.random(64) < 0.5, old, b)
    elif op in ("exch",):
        c = None
    for part in (slice(0, 32), slice(32, 64)):
        with buffers(old[part], b[part], (c if c is not None else b)[part], zeros(32, old.dtype)) as (
            memory,
            bb,
            cc,
            out,
        ):
            assert atomic(space, op, ty, memory.address, bb, cc if op == "cas" else None, out).error is None
            assert np.array_equal(out.numpy().view(np.uint8), old[part].view(np.uint8))
            got = memory.numpy()
        want = oracle(op, ty, old[part], b[part], c[part] if c is not None else None, flush=ty == "f32")
        if ty in FLOATS and op == "exch":
            assert np.array_equal(got.view(np.uint8), want.view(np.uint8))
        else:
            same(ty, got, want)


def test_shared_f32_add_keeps_subnormals_and_global_flushes():
    tiny = np.full(32, 1e-40, np.float32)
    with buffers(tiny, np.zeros(128, np.float32)) as (b, out):
        assert atomic(SHARED, "add", "f32", 0, b, None, out).error is None
        assert np.array_equal(out.numpy()[:32], tiny)
    with buffers(tiny, np.zeros(32, np.float32), np.zeros(32, np.float32)) as (b, memory, out):
        atomic(GLOBAL, "add", "f32", memory.address, b, None, out)
        assert not memory.numpy().any()


@pytest.mark.parametrize("ty", ["f16x2", "bf16x2"])
def test_packed_halves(ty):
    half = np.float16 if ty == "f16x2" else ml_dtypes.bfloat16
    rng = np.random.default_rng(2)
    old, b = (rng.normal(0, 100, (32, 2)).astype(half) for _ in range(2))
    with buffers(old.view(np.uint32), b.view(np.uint32), zeros(32)) as (memory, bb, out):
        assert atomic(GLOBAL, "add", ty, memory.address, bb, None, out).error is None
        got = memory.numpy().view(half).reshape(32, 2)
    assert np.array_equal(got, (old.astype(np.float64) + b.astype(np.float64)).astype(half))


@pytest.mark.parametrize("bits", range(0, 65536, 4096))
def test_half_addition_of_all_values(bits):
    """x + y rounded once, for all x and a few y, against an exact sum."""
    for ty, half in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        x = np.arange(bits, bits + 4096, dtype=np.uint16).view(half)
        y = np.roll(x, 1234)[::-1].copy()
        with buffers(x, y, zeros(4096, np.uint16).view(half)) as (memory, b, out):
            for k in range(0, 4096, 1024):
                part = pack(
                    "QQQQIIIIIII", memory.address + 2 * k, b.address + 2 * k, 0, out.address + 2 * k, GLOBAL,
                    abi.ATOMIC_OPS["add"], abi.ATOMIC_TYPES[ty], 2, 0xFFFFFFFF, 2, 1,
                )  # fmt: skip
                run("atomic", 1, 32, part)
            got = memory.numpy()
        for k in range(0, 4096, 1024):
            with np.errstate(all="ignore"):
                want = (x[k : k + 32].astype(np.float64) + y[k : k + 32].astype(np.float64)).astype(half)
            same(ty, got[k : k + 32], want)


def test_128_bits():
    rng = np.random.default_rng(3)
    old, b, c = (rng.integers(0, 1 << 63, (32, 2), np.uint64) for _ in range(3))
    b[::2] = old[::2]
    with buffers(old, b, c, np.zeros((32, 2), np.uint64)) as (memory, bb, cc, out):
        assert atomic(GLOBAL, "cas", "b128", memory.address, bb, cc, out).error is None
        assert np.array_equal(out.numpy(), old)
        assert np.array_equal(memory.numpy(), np.where((np.arange(32) % 2 == 0)[:, None], c, old))
        assert atomic(GLOBAL, "exch", "b128", memory.address, bb, None, out).error is None
        assert np.array_equal(memory.numpy(), b)


@pytest.mark.parametrize(
    ("op", "ty", "want"),
    [
        ("add", "u32", 64 * 256 * 10),
        ("add", "u64", 64 * 256 * 10),
        ("add", "f32", 64 * 256 * 10),
        ("add", "f64", 64 * 256 * 10),
        ("max", "s32", 1),
        ("xor", "b32", 0),
        ("inc", "u32", 0),
    ],
)
def test_contention(op, ty, want):
    dt = DTYPES[ty]
    n = 64 * 256
    with buffers(zeros(4, dt), np.ones(n, dt), zeros(n, dt)) as (memory, b, out):
        assert (
            atomic(GLOBAL, op, ty, memory.address, b, None, out, stride=0, times=10, grid=64, block=256).error is None
        )
        assert memory.numpy()[0] == want
        if (op, ty) == ("add", "u32"):  # every thread saw another value
            assert len(np.unique(out.numpy())) == n


def test_lanes_go_in_order():
    with buffers(zeros(1), np.ones(32, np.uint32), zeros(32)) as (memory, b, out):
        assert atomic(GLOBAL, "add", "u32", memory.address, b, None, out, mask=0xF0F0F0F0, stride=0).error is None
        got = out.numpy()
        active = [i for i in range(32) if 0xF0F0F0F0 >> i & 1]
        assert got[active].tolist() == list(range(16))
        assert memory.numpy()[0] == 16


def test_bad_addresses():
    with buffers(zeros(32), np.ones(32, np.uint32), zeros(32)) as (memory, b, out):
        for address, kind in ((memory.address + 4, "oob"), (memory.address + 2, "misaligned"), (0, "null")):
            e = atomic(GLOBAL, "add", "u32", address, b, None, out).error
            assert e is not None
            assert e.kind == kind
            assert "atomic operation of 4 bytes" in e.message
        e = atomic(SHARED, "add", "u32", 512, b, None, out).error
        assert e.kind == "oob"
        assert "shared memory" in e.message
        e = atomic(GLOBAL, "inc", "f32", memory.address, b, None, out).error
        assert e.kind == "unsupported"
