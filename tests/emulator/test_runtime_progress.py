"""Every thread that has started makes progress; what cannot is reported, not waited for."""

from __future__ import annotations

import time

import numpy as np
import pytest
from runtime_host import buffers, launch, pack, run, setup, zeros


def seconds(report):
    return report.nanoseconds / 1e9


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("grid", "block", "work", "limit"),
    [(1, 32, 0, 0.02), (1, 32, 1000, 0.05), (1, 256, 0, 0.1), (32, 64, 10, 0.5), (64, 256, 0, 2)],
)
def test_spin_lock(threads, grid, block, work, limit):
    setup(threads=threads)
    with buffers(zeros(2)) as b:
        report = run("spin_lock", grid, block, pack("QQI", b.address, b.address + 4, work))
        assert b.numpy().tolist() == [0, grid * block]
    assert seconds(report) < limit * 2


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("step", [-1, 1, -7])
@pytest.mark.parametrize("counting", [0, 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_that_wait_for_each_other(order, step, counting, threads):
    setup(order=order, threads=threads, seed=5)
    n = 1000 if not counting else 40
    with buffers(zeros(n)) as flags:
        report = run("chain", n, 64, pack("QiI", flags.address, step, counting))
        assert flags.numpy().all()
    assert seconds(report) < 4


@pytest.mark.parametrize("naps", [0, 1, 1000])
def test_sleeping_gives_way(naps):
    setup(threads=1)
    with buffers(zeros(1)) as flag:
        report = run("sleeper", 1, 64, pack("QI", flag.address, naps))
    assert seconds(report) < 0.2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (4, 96), (132, 1024), (4224, 32)])
def test_grid_barrier(grid, block, threads):
    setup(threads=threads)
    with buffers(zeros(grid), zeros(grid)) as (a, b):
        report = run("grid_sync", grid, block, pack("QQ", a.address, b.address), cooperative=True)
        assert (b.numpy() == grid * (grid + 1) // 2).all()
    assert seconds(report) < 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("grid", [1, 300])
def test_spinning_for_ever(grid, threads):
    setup(threads=threads, patience_ms=200)
    with buffers(zeros(1)) as flag:
        start = time.perf_counter()
        error = launch("for_ever", grid, 64, pack("QII", flag.address, 0, 0)).error
        took = time.perf_counter() - start
    assert error is not None
    assert error.kind == "deadlock"
    assert f"{64 * grid} threads of " in error.message
    assert "spin at kernels.cu:9 (bra, PTX line 90): what it reads never changes" in error.message
    assert error.line == 9
    assert 0.2 <= took < 3


def test_some_spin_and_some_wait_at_a_barrier():
    setup(patience_ms=200)
    with buffers(zeros(1)) as flag:
        error = launch("for_ever", 2, 96, pack("QII", flag.address, 1, 0)).error
    assert error is not None
    assert error.kind == "deadlock"
    assert "64 threads of 2 blocks spin at kernels.cu:9" in error.message
    assert "128 threads of 2 blocks wait at barrier 0, kernels.cu:1" in error.message
    assert "not there in block (0,0,0): warp 0" in error.message


def test_spinning_for_ever_with_a_barrier_in_the_loop():
    setup(patience_ms=200)
    with buffers(zeros(1)) as flag:
        error = launch("for_ever_together", 3, 96, pack("Q", flag.address)).error
    assert error is not None
    assert error.kind == "deadlock"
    assert "of 3 blocks" in error.message


@pytest.mark.parametrize("threads", [1, 2])
def test_waiting_with_a_barrier_in_the_loop(threads):
    setup(threads=threads)
    with buffers(zeros(1)) as flag:
        report = run("wait_together", 2000, 96, pack("Q", flag.address))
    assert seconds(report) < 1


def test_a_loop_that_changes_something_is_no_deadlock():
    runtime = setup(patience_ms=50)
    import threading

    with buffers(zeros(1)) as flag:
        timer = threading.Timer(0.6, runtime.interrupt)
        timer.start()
        error = launch("for_ever", 2, 64, pack("QII", flag.address, 0, 1)).error
    assert error is not None
    assert error.kind == "interrupt"


def test_host_can_change_what_a_kernel_polls():
    """A flag in device memory that another host thread writes while the kernel spins."""
    runtime = setup(patience_ms=2000)
    import threading

    one = np.ones(1, np.uint32)
    with buffers(zeros(1)) as flag:
        timer = threading.Timer(0.2, lambda: runtime.copy_in(flag.address, one.ctypes.data, 4))
        timer.start()
        assert launch("for_ever", 1, 64, pack("QII", flag.address, 0, 0)).error is None


def test_long_work_in_many_blocks_stays_small():
    """Blocks that compute for long are not taken for blocks that wait."""
    import resource

    setup(threads=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with buffers(zeros(256, np.uint64)) as out:
        run("busy", 256, 1024, pack("QQ", out.address, 20_000), shared=40_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB
