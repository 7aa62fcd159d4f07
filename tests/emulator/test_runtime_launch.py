"""Launches: who runs where, in which order, what is refused; and the layout of the shared structures."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from runtime_host import Buffer, buffers, kernel, launch, pack, run, setup, zeros

from warpsmith import chips
from warpsmith.chips.occupancy import occupancy
from warpsmith.devices.emulator import abi, native


@pytest.fixture(autouse=True)
def runtime():
    return setup()


def test_layout_is_that_of_the_header(runtime):
    layout = runtime.abi_layout()
    tables = {
        "ws_warp": (abi.WARP_FIELDS, abi.WARP_SIZE),
        "ws_groups": (abi.GROUP_FIELDS, abi.GROUP_SIZE),
        "ws_range": (abi.RANGE_FIELDS, abi.RANGE_SIZE),
        "ws_site": (abi.SITE_FIELDS, abi.SITE_SIZE),
        "ws_kernel_info": (abi.INFO_FIELDS, abi.INFO_SIZE),
    }
    for struct, (fields, size) in tables.items():
        mine = {name: offset for name, (offset, _) in fields.items() if "." not in name}
        theirs = {n.partition(".")[2]: v for n, v in layout.items() if n.startswith(struct + ".")}
        assert theirs == {**mine, "size": size}
    assert {
        f"ws_kernel_info.{n}": getattr(native.KernelInfo, n).offset for n, *_ in native.KernelInfo._fields_
    }.items() <= layout.items()


def test_header_and_library_have_the_same_functions(runtime):
    from runtime_host import INCLUDE

    text = (INCLUDE / "abi.h").read_text() + (INCLUDE / "api.h").read_text()
    declared = {line.split("(")[0].split()[-1].lstrip("*") for line in text.splitlines() if line.startswith("WS_API ")}
    assert len(declared) > 40
    assert [name for name in declared if not hasattr(runtime.lib, name)] == []


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("grid", "block"),
    [((1, 1, 1), (1, 1, 1)), ((5, 3, 2), (4, 3, 5)), ((70, 1, 1), (1024, 1, 1)), ((3, 1, 1), (33, 1, 1))],
)
def test_every_thread_runs_once(grid, block, order, threads):
    setup(order=order, threads=threads, seed=7)
    n = int(np.prod(grid) * np.prod(block))
    with buffers(np.full((n, 8), 0xDEAD, np.uint32)) as out:
        report = run("identity", grid, block, pack("Q", out.address))
        got = out.numpy()
    bz, by, bx, tz, ty, tx = (a.ravel() for a in np.indices((*grid[::-1], *block[::-1])))
    t = np.arange(n) % int(np.prod(block))
    want = np.stack([bx, by, bz, tx, ty, tz, t // 32, t % 32], 1)
    assert np.array_equal(got, want)
    assert report.threads == n
    assert report.blocks == np.prod(grid)
    assert report.warps == report.instructions == report.blocks * -(-int(np.prod(block)) // 32)
    assert 1 <= report.workers <= threads


@pytest.mark.parametrize("order", [0, 1, 2])
def test_order_of_blocks(order):
    setup(order=order, threads=1, seed=11)
    n = 1000
    with buffers(zeros(1), zeros(n)) as (counter, out):
        run("tickets", n, 64, pack("QQ", counter.address, out.address))
        ticket = out.numpy()
    assert sorted(ticket) == list(range(n))
    if order < 2:
        assert np.array_equal(ticket, np.arange(n)[:: -1 if order else 1])
    else:
        moved = np.abs(ticket.astype(int) - np.arange(n))
        assert moved.mean() > n / 6


def test_random_order_follows_the_seed():
    seen = []
    for seed in (1, 1, 2):
        setup(order=2, threads=1, seed=seed)
        with buffers(zeros(1), zeros(50)) as (counter, out):
            run("tickets", 50, 32, pack("QQ", counter.address, out.address))
            seen.append(tuple(out.numpy()))
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    ("name", "grid", "block", "more", "words"),
    [
        ("nothing", 1, 2048, {}, "1024"),
        ("nothing", 1, (32, 33, 1), {}, "1056 threads"),
        ("nothing", 1, (1, 1, 65), {}, "at most 64 threads in z"),
        ("nothing", 0, 32, {}, "zero dimension"),
        ("nothing", (1, 70000, 1), 32, {}, "at most 65535 blocks in y"),
        ("nothing", 1, 32, {"shared": 300_000}, "300000 bytes of shared memory"),
        ("nothing", 1, 1024, {"registers": 128}, "128 registers a thread"),
        ("bounded", 1, 256, {}, "at most 128 threads a block"),
        ("bounded", 1, 32, {"shared": 232_000}, "1000 static"),
        ("exact", 1, 128, {}, "compiled for blocks of (64,2,1)"),
        ("old", 1, 32, {}, "version 0"),
        ("nothing", 300, 1024, {"cooperative": True}, "grid of 300 blocks, but 132 SMs x 2 resident blocks = 264"),
        ("nothing", 133, 256, {"cooperative": True, "shared": 200_000}, "132 SMs x 1 resident blocks = 132"),
    ],
)
def test_what_cannot_be_launched_is_refused(name, grid, block, more, words):
    error = launch(name, grid, block, **more).error
    assert error is not None
    assert error.kind == "launch"
    assert words in error.message
    assert "\n" not in error.message
    assert error.block is None


@pytest.mark.parametrize("chip", ["t4", "a100", "h200", "rtx4090"])
def test_resident_blocks_are_those_of_the_occupancy_rules(chip):
    runtime = setup(chip)
    limits = chips.load(chip)
    for threads in (1, 32, 33, 96, 256, 768, 1024):
        for registers in (0, 16, 33, 64, 100, 255):
            for shared in (0, 1000, 17_000, 48_000):
                want = occupancy(limits, threads, registers, shared).blocks
                got = runtime.resident_blocks(kernel("nothing"), (threads, 1, 1), shared, registers)
                assert got == want, (threads, registers, shared)
    setup()


def test_launches_from_several_host_threads_take_turns():
    out = [Buffer(zeros(8 * 4096)) for _ in range(4)]
    failed = []

    def work(b):
        for _ in range(20):
            if launch("identity", 32, 128, pack("Q", b.address)).error:
                failed.append(b)

    threads = [threading.Thread(target=work, args=(b,)) for b in out]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    for b in out:
        assert b.numpy()[-1] == 31
        b.free()


def test_interrupt_from_another_thread(runtime):
    timer = threading.Timer(0.1, runtime.interrupt)
    timer.start()
    start = time.perf_counter()
    error = launch("busy", 64, 64, pack("QQ", 0, 1 << 60)).error
    assert error is not None
    assert error.kind == "interrupt"
    assert time.perf_counter() - start < 0.5
    assert run("nothing", 4, 64).blocks == 4


def test_control_c_ends_a_launch_and_python_keeps_its_handler():
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    error = launch("busy", 64, 64, pack("QQ", 0, 1 << 60)).error
    assert error is not None
    assert error.kind == "interrupt"
    assert time.perf_counter() - start < 0.5
    assert signal.getsignal(signal.SIGINT) is before


def test_a_forked_child_can_launch():
    run("nothing", 64, 64)
    child = os.fork()
    if child == 0:
        os._exit(0 if launch("nothing", 64, 64).error is None else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    run("nothing", 64, 64)


def test_clocks_go_forward():
    with buffers(zeros(9, np.uint64)) as out:
        run("clocks", 1, 32, pack("Q", out.address))
        values = out.numpy().astype(np.int64)
    assert (np.diff(values[:8]) > 0).all()
    assert abs(values[8] / 1e9 - time.time()) < 60
