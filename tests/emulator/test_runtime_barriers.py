"""Barriers of a block and lanes of a warp that meet again: what completes, and what is reported instead of a hang."""

from __future__ import annotations

import time

import numpy as np
import pytest
from runtime_host import buffers, launch, pack, run, setup, zeros


@pytest.fixture(autouse=True, params=[1, 2])
def runtime(request):
    return setup(threads=request.param)


@pytest.mark.parametrize("block", [1, 32, 100, 256, 1024])
def test_barrier_of_the_block(block):
    rounds = 5
    with buffers(zeros(40 * block)) as out:
        run("reverse", 40, block, pack("QI", out.address, rounds), shared=4096)
        got = out.numpy().reshape(40, block)
    want = np.arange(block)
    for _ in range(rounds):
        want = want[::-1] + 1
    assert (got == want).all()


def test_named_barriers_between_a_producer_and_a_consumer():
    with buffers(zeros(1)) as out:
        run("pipeline", 1, 64, pack("QI", out.address, 500), shared=64)
        assert out.numpy()[0] == sum(range(500))


@pytest.mark.parametrize("limit", [0, 1, 50, 95, 96, 200])
def test_barrier_with_a_reduction(limit):
    threads = 96
    with buffers(zeros(9)) as out:
        run("reductions", 1, threads, pack("QI", out.address, limit))
        got = out.numpy().reshape(3, 3)
    n = min(limit, threads)
    assert (got == [n, n == threads, n > 0]).all()


@pytest.mark.parametrize(("limit", "warps"), [(0, 4), (1, 4), (31, 1), (32, 2), (32, 3), (5, 2)])
def test_threads_that_leave_are_not_waited_for(limit, warps):
    with buffers(zeros(128)) as out:
        run("leavers", 1, 128, pack("QII", out.address, limit, warps))
        got = out.numpy().reshape(4, 32)
    want = np.ones((4, 32))
    want[:warps, :limit] = 0
    assert np.array_equal(got, want)


@pytest.mark.parametrize(("mode", "together"), [(0, [0xFFFFFFFF] * 32), (1, [0xFFFF] * 16 + [0] * 16)])
def test_lanes_come_to_a_barrier_apart(mode, together):
    with buffers(zeros(64)) as out:
        run("parted_barrier", 1, 64, pack("QI", out.address, mode))
        assert out.numpy().reshape(2, 32).tolist() == [together] * 2


def test_barriers_crossed():
    start = time.perf_counter()
    error = launch("crossed_barriers", 100, 64).error
    assert error is not None
    assert time.perf_counter() - start < 0.3
    assert error.kind == "deadlock"
    lines = error.message.splitlines()
    assert lines[0].startswith("deadlock in kernel crossed_barriers: no thread of block (")
    assert (
        "32 threads wait at barrier 1, kernels.cu:2 (bar.sync 1, 64, PTX line 20): 32 of 64 threads have come"
        in error.message
    )
    assert "32 threads wait at barrier 2, kernels.cu:3" in error.message
    assert "not there: warp 1" in error.message
    assert "not there: warp 0" in error.message
    assert error.line in (2, 3)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0, "barrier 16 does not exist"),
        (1, "must be a multiple of 32"),
        (2, "the block has only 96"),
        (3, "64 threads"),
    ],
)
def test_wrong_use_of_barriers(mode, words):
    error = launch("bad_barrier", 4, 96, pack("I", mode)).error
    assert error is not None
    assert error.kind == "barrier"
    assert words in error.message
    assert "kernels.cu" in error.message


def test_barrier_in_a_function_that_half_of_the_warp_called():
    error = launch("half_call", 1, 32).error
    assert error is not None
    assert error.kind == "barrier"
    assert "lanes 16-31 are outside of this function" in error.message


@pytest.mark.parametrize(("mode", "together"), [(0, 0xFFFFFFFF), (1, 0xFFFF)])
def test_lanes_meet_at_a_sync_instruction(mode, together):
    with buffers(zeros(32)) as out:
        run("meeting", 1, 32, pack("QI", out.address, mode))
        assert out.numpy().tolist() == [together if together >> i & 1 else 0 for i in range(32)]


def test_lanes_that_never_meet():
    with buffers(zeros(32)) as out:
        error = launch("meeting", 1, 32, pack("QI", out.address, 2)).error
    assert error is not None
    assert error.kind == "sync"
    assert "lanes 0-15" in error.message
    assert "lanes 16-31" in error.message
    assert "kernels.cu:6 (shfl.sync.idx.b32" in error.message
    assert "kernels.cu:7 (bar.warp.sync" in error.message


@pytest.mark.parametrize("members", [0xFFFFFFFF, 0xFFFF])
def test_different_bar_warp_sync_let_each_other_go(members):
    with buffers(zeros(32)) as out:
        run("two_syncwarps", 1, 32, pack("QI", out.address, members), shared=256)
        got = out.numpy()
    if members == 0xFFFFFFFF:
        assert got[:16].tolist() == [331 - i for i in range(16)]
    assert got[16:].tolist() == [131 - i for i in range(16, 32)]
