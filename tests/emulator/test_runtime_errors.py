"""Reports of what goes wrong inside kernels, and what the process is like afterwards."""

from __future__ import annotations

import time

import numpy as np
import pytest
from runtime_host import buffers, launch, pack, run, setup, zeros


@pytest.fixture(autouse=True, params=[1, 2])
def runtime(request):
    return setup(threads=request.param)


def text(s):
    return np.frombuffer(s.encode() + b"\0", np.uint8)


def test_trap_names_block_and_thread():
    e = launch("trap", (4, 5, 6), (32, 4, 2), pack("I", 4 * 5 * 3 + 4 * 2 + 1)).error
    assert e.kind == "trap"
    assert e.block == (1, 2, 3)
    assert e.thread[0] == 31
    assert e.lanes == 1 << 31
    assert e.message.startswith(
        "trap instruction\n  in kernel trap, function helper, at PTX line 80 (bra)\n  by thread (31,"
    )
    assert "of block (1,2,3)" in e.message


def test_assertion():
    with buffers(text("x < n"), text("a.cu"), text("void f(int)")) as (message, file, function):
        e = launch("assertion", 1, (16, 6, 1), pack("QQQ", message.address, file.address, function.address)).error
    assert e.kind == "assert"
    assert e.message.splitlines()[0] == "assertion failed: x < n (a.cu:42, void f(int))"
    assert e.thread == (4, 2, 0)
    assert e.message.endswith("and 1 more thread of its warp")


def test_stack_overflow():
    for _ in range(3):
        e = launch("recursion", 4, 64).error
        assert e.kind == "stack"
        assert "device stack overflow" in e.message
        assert run("nothing", 10, 64).blocks == 10


def test_a_crash_of_compiled_code_is_a_report():
    e = launch("divide_by_zero", 4, 64).error
    assert e.kind == "trap"
    assert "stopped with signal" in e.message
    run("nothing", 4, 64)


def test_an_error_stops_the_others_soon():
    start = time.perf_counter()
    e = launch("trap", 1 << 22, 32, pack("I", 7)).error
    assert e.kind == "trap"
    assert time.perf_counter() - start < 0.1


def test_after_errors_all_is_well():
    for _ in range(5):
        assert launch("crossed_barriers", 50, 64).error
        assert launch("trap", 50, 64, pack("I", 49)).error
        with buffers(zeros(256)) as out:
            run("reverse", 1, 256, pack("QI", out.address, 3), shared=1024)
            assert out.numpy().tolist() == [3 + i for i in range(255, -1, -1)]
