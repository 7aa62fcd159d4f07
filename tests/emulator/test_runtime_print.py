"""printf of kernels against Python's % operator, for every conversion."""

from __future__ import annotations

import itertools
import struct
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from runtime_host import buffers, child, launch, pack, run, setup, zeros


@pytest.fixture(autouse=True)
def output():
    runtime = setup(threads=2)
    pieces = []
    runtime.set_output(pieces.append)
    yield pieces
    runtime.set_output(None)


def text(s):
    return np.frombuffer(s.encode() + b"\0", np.uint8)


def printed(output, pattern, layout="", *values):
    """What one thread prints; arguments packed as nvcc does: each aligned to its size."""
    data = struct.pack("@" + layout, *values) or b"\0"
    with buffers(text(pattern), np.frombuffer(data, np.uint8), zeros(1, np.int32)) as (f, a, r):
        run("print", 1, 32, pack("QQQII", f.address, a.address, r.address, 0, 1))
        count = int(r.numpy()[0])
    out = b"".join(output).decode()
    output.clear()
    return out, count


FLAGS = ["".join(c) for n in range(4) for c in itertools.combinations("-+ 0#", n)]
SIZES = ["", "1", "12", ".0", ".3", "9.4"]


@pytest.mark.parametrize("flags", FLAGS)
def test_integers(output, flags):
    lengths = [("", "i", 32), ("l", "q", 64), ("ll", "q", 64), ("h", "i", 16), ("hh", "i", 8)]
    for size, (length, code, width) in itertools.product(SIZES, lengths):
        if "." in size and "0" in flags:
            continue  # C ignores the 0 then, Python does not
        for v in (0, -1, 12345, -(2**31), 2**31 - 1):
            seen = (v + (1 << width - 1)) % (1 << width) - (1 << width - 1)
            if size == ".0" and seen == 0:
                continue  # nothing in C, 0 in Python
            want = f"<%{flags}{size}d>" % seen
            assert printed(output, f"<%{flags}{size}{length}{'id'[v & 1]}>", code, v) == (want, 1)


@pytest.mark.parametrize("flags", ["", "-", "#", "0", "-#"])
@pytest.mark.parametrize("size", ["", "14", ".6", "14.6"])
def test_unsigned(output, flags, size):
    if "." in size and "0" in flags:
        return  # as above
    for v in (1, 255, 0xDEADBEEF):
        for conversion in "xX":
            want = f"%{flags}{size}{conversion}" % v
            assert printed(output, f"%{flags}{size}{conversion}", "I", v)[0] == want
            assert printed(output, f"%{flags}{size}ll{conversion}", "Q", v << 20)[
                0
            ] == f"%{flags}{size}{conversion}" % (v << 20)
        if "#" not in flags:
            assert printed(output, f"%{flags}{size}u", "I", v)[0] == f"%{flags}{size}d" % v
            assert printed(output, f"%{flags}{size}o", "I", v)[0] == f"%{flags}{size}o" % v


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    v=st.floats(allow_nan=False),
    flags=st.sampled_from(FLAGS),
    size=st.sampled_from(SIZES),
    conversion=st.sampled_from("feEgGF"),
)
def test_floats(v, flags, size, conversion):
    runtime = setup(threads=1)
    pieces = []
    runtime.set_output(pieces.append)
    want = f"%{flags}{size}{conversion}" % v
    if "0" in flags and np.isinf(v):
        return
    assert printed(pieces, f"%{flags}{size}{conversion}", "d", v)[0] == want


def test_the_rest(output):
    with buffers(text("hello"), text("")) as (hello, empty):
        assert printed(
            output, "[%s|%10s|%-7.2s|%s]", "QQQQ", hello.address, hello.address, hello.address, empty.address
        ) == ("[hello|     hello|he     |]", 4)
        assert printed(output, "%s", "Q", 0) == ("(null)", 1)
        assert printed(output, "%s", "Q", 0x123)[0] == "(unreadable string at 0x123)"
        assert printed(output, "%p", "Q", 0x1234)[0] == "0x1234"
        assert printed(output, "%c%c%5c", "iii", 72, 105, 33) == ("Hi    !", 3)
        assert printed(output, "100%%, %%d, %", "") == ("100%, %d, %", 0)
        assert printed(output, "%y%d", "i", 3)[0] == "%y3"
        assert printed(output, "%*d|%-*d|%.*f", "iiiiid", 5, 1, 5, 2, 2, 3.14159) == ("    1|2    |3.14", 6)
        assert printed(output, "%*d|", "ii", -4, 7)[0] == "7   |"
        assert printed(output, "%d %f %d %lld %c %s", "idiqiQ", 1, 2.5, 3, 1 << 40, 65, hello.address) == (
            f"1 2.500000 3 {1 << 40} A hello",
            6,
        )
        assert printed(output, "%a %f %e", "ddd", 1.0, float("nan"), float("-inf"))[0] == "0x1p+0 nan -inf"
        assert printed(output, "") == ("", 0)
        assert printed(output, "%.400f", "d", 1 / 3)[0] == f"{1 / 3:.400f}"


def test_many_threads_do_not_mix_their_lines(output):
    n = 64 * 256
    with buffers(text("thread %d of %d says %s\n"), text("hello")) as (f, s):
        args = np.zeros((n, 2), np.uint64)
        args.view(np.uint32)[:, 0] = np.arange(n)
        args.view(np.uint32)[:, 1] = n
        args[:, 1] = s.address
        with buffers(args) as a:
            run("print", 64, 256, pack("QQQII", f.address, a.address, 0, 16, 0xFFFFFFFF))
    lines = b"".join(output).decode().splitlines()
    assert sorted(lines) == sorted(f"thread {i} of {n} says hello" for i in range(n))
    # Lanes of a warp print in order and together.
    first = lines.index("thread 64 of 16384 says hello")
    assert lines[first : first + 32] == [f"thread {64 + i} of {n} says hello" for i in range(32)]


def test_inactive_lanes_print_nothing(output):
    with buffers(text("x"), zeros(1)) as (f, a):
        run("print", 1, 32, pack("QQQII", f.address, a.address, 0, 0, 0x80000001))
    assert b"".join(output) == b"xx"


def test_output_of_a_kernel_that_fails_is_not_lost(output):
    with buffers(text("before\n"), zeros(1)) as (f, a):
        run("print", 1, 1, pack("QQQII", f.address, a.address, 0, 0, 1))
        e = launch("print", 1, 32, pack("QQQII", f.address, 8, 0, 0, 1)).error
        assert e is None  # nothing is read for a format without arguments
    with buffers(text("%d\n")) as f:
        e = launch("print", 1, 32, pack("QQQII", f.address, 8, 0, 0, 1)).error
    assert e.kind == "null"
    assert b"".join(output) == b"before\nbefore\n"


def test_standard_output_in_order_with_the_host():
    done = child("""
        libc = ctypes.CDLL(None)
        f = Buffer(np.frombuffer(b"kernel\\n\\0", np.uint8))
        libc.printf(b"host 1\\n")
        run("print", 1, 2, pack("QQQII", f.address, f.address, 0, 0, 3))
        libc.printf(b"host 2\\n")
    """)
    assert done.stdout == "host 1\nkernel\nkernel\nhost 2\n"


def test_output_comes_while_a_kernel_runs(output):
    """A full buffer is handed on before the launch ends, by whichever thread fills it."""
    seen = []
    runtime = setup(threads=2)
    runtime.set_output(lambda b: seen.append((len(b), threading.get_ident())))
    with buffers(text("0123456789" * 10), zeros(1)) as (f, a):
        run("print", 100, 256, pack("QQQII", f.address, a.address, 0, 0, 0xFFFFFFFF))
    assert sum(n for n, _ in seen) == 100 * 256 * 100
    assert max(n for n, _ in seen) < 1 << 20
