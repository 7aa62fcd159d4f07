"""Device memory: allocation, guards, accesses in and out of bounds, the device heap, host memory that kernels use."""

from __future__ import annotations

import ctypes
import resource
from itertools import pairwise

import numpy as np
import pytest
from runtime_host import Buffer, buffers, child, launch, pack, run, setup, zeros

from warpsmith.devices.emulator import abi, native

GLOBAL, SHARED, LOCAL, GENERIC = (abi.SPACES[s] for s in ("global", "shared", "local", "generic"))
LOAD_SITE, STORE_SITE = 3, 4


@pytest.fixture(autouse=True)
def runtime():
    return setup(poison=0xFF)


def access(address, stride=4, space=GLOBAL, kind=abi.LOAD, size=4, mask=0xFFFFFFFF, times=1, out=0, site=LOAD_SITE):
    return pack("QqIIIIIIQ", address, stride, space, kind, size, mask, site, times, out)


def refused(*args, block=32, shared=0, grid=1, **more):
    error = launch("access", grid, block, access(*args, **more), shared=shared).error
    assert error is not None
    return error


# ---- allocation ----------------------------------------------------------------------------------------


def test_allocations_are_aligned_apart_and_poisoned(runtime):
    made = [
        (runtime.malloc(n, "x"), n) for n in (1, 4, 255, 256, 257, 4096, 40_000, 100_000, 3 << 20) for _ in range(3)
    ]
    assert all(a and a % 256 == 0 for a, _ in made)
    ends = sorted((a, a + n) for a, n in made)
    assert all(end + 256 <= start for (_, end), (start, _) in pairwise(ends))
    for a, n in made:
        out = ctypes.create_string_buffer(n)
        runtime.copy_out(out, a, n)
        assert out.raw == b"\xff" * n
        assert runtime.find(a + n - 1) == (a, n)
        assert runtime.find(a + n) is None
        runtime.free(a)
        assert runtime.find(a) is None


def test_statistics(runtime):
    in_use, count, _ = runtime.memory()
    a = runtime.malloc(1000)
    b = runtime.malloc(1 << 20)
    assert runtime.memory()[:2] == (in_use + 1000 + (1 << 20), count + 2)
    runtime.free(a)
    runtime.free(b)
    now_in_use, now_count, peak = runtime.memory()
    assert (now_in_use, now_count) == (in_use, count)
    assert peak >= in_use + 1000 + (1 << 20)


def test_out_of_memory(runtime):
    assert runtime.malloc(200 << 30) == 0
    assert runtime.last_message().startswith("out of device memory: 200.0 GiB asked for")
    assert runtime.malloc(0) == 0
    assert 0 < runtime.available() <= 141 << 30
    if runtime.available() < 130 << 30:  # less than the chip has
        assert runtime.malloc(135 << 30) == 0
        assert "this machine has only" in runtime.last_message()


def test_freeing_what_is_not_allocated(runtime):
    a = runtime.malloc(512, "mine")
    for address, words in (
        (a + 4, 'lies 4 bytes into the 512-byte allocation "mine"'),
        (12345, "does not come from an allocation"),
    ):
        with pytest.raises(native.RuntimeCallError, match=words):
            runtime.free(address)
    runtime.free(a)
    with pytest.raises(native.RuntimeCallError, match="has been freed already"):
        runtime.free(a)


def test_many_allocations_and_memory_comes_back(runtime):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        runtime.free(runtime.malloc(64 << 20))
    small = [runtime.malloc(100) for _ in range(20_000)]
    large = [runtime.malloc(40_000) for _ in range(2000)]
    assert len(set(small + large)) == 22_000
    for a in small + large:
        runtime.free(a)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_copies_are_checked(runtime):
    data = (ctypes.c_char * 256)()
    with buffers(np.arange(64, dtype=np.uint32), zeros(64)) as (a, b):
        runtime.copy(b.address, a.address, 256)
        assert np.array_equal(b.numpy(), np.arange(64))
        runtime.copy(a.address + 4, a.address, 128)  # overlapping
        assert a.numpy()[1:33].tolist() == list(range(32))
        runtime.fill(b.address + 4, 0xAB, 8)
        assert b.numpy()[:4].tolist() == [0, 0xABABABAB, 0xABABABAB, 3]
        for call in (
            lambda: runtime.copy_in(a.address + 4, data, 256),
            lambda: runtime.copy_out(data, a.address - 4, 4),
            lambda: runtime.copy(a.address, b.address + 100, 200),
            lambda: runtime.fill(a.address, 0, 257),
            lambda: runtime.copy_in(a.address, b.address, 4),
            lambda: runtime.copy_out(b.address, a.address, 4),
            lambda: runtime.copy_in(id(data), data, 4),
        ):
            with pytest.raises(native.RuntimeCallError):
                call()


# ---- accesses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_good_accesses_are_remembered(size):
    with buffers(zeros(32 * size, np.uint8), zeros(2, np.uint64)) as (b, out):
        run("access", 1, 32, access(b.address, size, size=size, times=3, out=out.address))
        assert out.numpy().tolist() == [b.address, 32 * size - size + 1]


def test_lanes_in_several_allocations():
    with buffers(zeros(8), zeros(8)) as (a, b):
        run("access", 1, 2, access(a.address, b.address - a.address, times=2))


def test_past_the_end():
    with buffers(zeros(1024)) as b:
        b_label = Buffer(zeros(1024), "cudaMalloc #2")
        e = refused(b_label.address + 4000, block=128, grid=2)
        assert e.kind == "oob"
        assert e.message.splitlines()[0] == (
            f'out-of-bounds read of 4 bytes at 0x{b_label.address + 4096:x}: it is just past the end of the 4096-byte allocation "cudaMalloc #2"'
        )
        assert (
            e.message.splitlines()[1] == "  in kernel access, function k, at kernels.cu:4 (ld.global.u32, PTX line 40)"
        )
        assert e.message.splitlines()[2].startswith("  by thread (")
        assert e.message.splitlines()[2].endswith("and 7 more threads of its warp")
        assert "likely: threads beyond the end of the data" in e.message.splitlines()[3]
        assert (e.file, e.line, e.ptx_line, e.instruction) == ("kernels.cu", 4, 40, "ld.global.u32")
        assert e.address == b_label.address + 4096
        assert e.thread[0] % 32 == 24
        assert e.lanes == 0xFF000000
        assert e.details["near_base"] == b_label.address
        b_label.free()
        assert b.numpy().sum() == 0


@pytest.mark.parametrize(
    ("offset", "size", "words"),
    [
        (4096 + 4, 4, "4 bytes past the end of"),
        (-8, 4, "8 bytes before the start of"),
        (4094, 4, "only 2 bytes remain in the 4096-byte"),
        (4088, 16, "only 8 bytes remain in"),
    ],
)
def test_distance_to_the_nearest_allocation(offset, size, words):
    with buffers(zeros(1024)) as b:
        e = refused(b.address + offset, 0, size=size, kind=abi.STORE, mask=1, site=STORE_SITE)
    assert e.kind == "oob"
    assert words in e.message
    assert f"out-of-bounds write of {size} bytes" in e.message


def test_null_freed_host_and_wild(runtime):
    host = np.zeros(4096, np.uint8)
    a = runtime.malloc(1 << 20, "gone")
    runtime.free(a)
    e = refused(0, 4, mask=1)
    assert (e.kind, e.message.splitlines()[0]) == ("null", "read of 4 bytes through a null pointer at 0x0")
    assert "it is the null pointer plus 128" in refused(128, 0).message
    assert 'into the 1048576-byte allocation "gone", which has been freed' in refused(a + 64, 4).message
    assert "it is memory of the host program" in refused(host.ctypes.data & ~15, 0).message
    assert "no allocation is near it" in refused(0x123456789000, 0).message


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_misaligned(size):
    with buffers(zeros(1024)) as b:
        e = refused(b.address + size // 2, size, size=size, mask=0xF0)
    assert e.kind == "misaligned"
    assert f"misaligned read of {size} bytes" in e.message
    assert f"not a multiple of {size}; it lies {size // 2 + 4 * size} bytes into the 4096-byte" in e.message
    assert e.lanes == 0xF0


def test_read_only(runtime):
    with buffers(zeros(16)) as b:
        runtime.set_readonly(b.address)
        run("access", 1, 16, access(b.address))
        for kind, word in ((abi.STORE, "write"), (abi.ATOMIC, "atomic operation")):
            e = refused(b.address, kind=kind, block=16)
            assert e.kind == "readonly"
            assert e.message.startswith(f"{word} of 4 bytes to constant memory")
        runtime.set_readonly(b.address, False)
        run("access", 1, 16, access(b.address, kind=abi.STORE))


def test_shared_and_local_memory():
    run("access", 1, 32, access(0, 4, SHARED), shared=128)
    run("access", 1, 32, access(abi.SHARED_WINDOW, 4, GENERIC), shared=128)
    run("access", 1, 32, access(abi.LOCAL_WINDOW + 60, 0, GENERIC))
    e = refused(0, 4, SHARED, shared=124)
    assert "out-of-bounds read of 4 bytes at 0x7c in shared memory, of which the block has 124 bytes" in e.message
    assert e.lanes == 1 << 31
    assert "of which there is none" in refused(0, 4, SHARED).message
    assert "at 0x3e in local memory, of which a thread has 64 bytes" in refused(62, 0, LOCAL, size=4).message
    assert (
        "at 0x80 in shared memory, of which the block has 128 bytes"
        in refused(abi.SHARED_WINDOW + 128, 0, GENERIC, shared=128).message
    )
    assert "misaligned read of 8 bytes at 0x4 in shared memory" in refused(4, 8, SHARED, size=8, shared=512).message


def test_generic_windows():
    with buffers(zeros(32)) as out:
        run("windows", 1, 32, pack("Q", out.address), shared=128)
        i = np.arange(32)
        assert np.array_equal(out.numpy(), i * i + (31 - i) ** 2)


@pytest.mark.parametrize("size", [1, 3, 8, 64])
def test_read_and_write(size):
    n = 32 * size
    data = np.arange(n, dtype=np.uint8)
    with buffers(data, zeros(n, np.uint8)) as (a, b):
        run("copy_and_add", 1, 32, access(a.address, size, GLOBAL, 0, size, 0xFFFF00FF, out=b.address))
        want = (data + 1).astype(np.uint8).reshape(32, size)
        want[8:16] = 0
        assert np.array_equal(b.numpy().reshape(32, size), want)


def test_without_checks_the_pages_still_protect(runtime):
    setup(check=False)
    b = Buffer(zeros(1 << 20), "big")
    wild = lambda a: launch("wild", 2, 64, access(a)).error  # noqa: E731
    e = wild(b.address + (4 << 20))
    assert e.kind == "segv"
    assert (
        f'illegal memory access at 0x{b.address + (4 << 20):x}: it is just past the end of the 4194304-byte allocation "big"'
        in e.message
    )
    assert "in kernel wild" in e.message
    assert "run with checks on" in e.message
    assert "null pointer" in wild(0).message
    assert "null pointer plus 4096" in wild(4096).message
    b.free()
    assert "has been freed" in wild(b.address).message
    assert wild(0x0123_4567_89AB_CDE0).kind == "segv"
    assert launch("nothing", 2, 64).error is None


# ---- device malloc -------------------------------------------------------------------------------------


def test_heap(runtime):
    with buffers(zeros(96, np.uint64)) as b:
        run("heap", 1, 96, pack("QQI", b.address, 100, 0))
        got = b.numpy()
        assert got.all()
        assert (got % 16 == 0).all()
        assert len(np.unique(got)) == 96
        assert np.diff(np.sort(got)).min() >= 100
        assert runtime.find(int(got[0])) is None  # not for the host
        run("access", 1, 1, access(int(got[5]) + 96, 0))
        e = refused(int(got[5]) + 100, 0)
        assert e.kind == "oob"
        run("heap", 1, 96, pack("QQI", b.address, 0, 1))
        e = launch("heap", 1, 96, pack("QQI", b.address, 0, 1)).error
        assert e.kind == "memory"
        assert "it has been freed already" in e.message
        assert "at PTX line 80 (bra)" in e.message
        assert "from malloc that has been freed" in refused(int(got[5]), 0).message


def test_heap_is_reused_and_full_gives_null():
    with buffers(zeros(64, np.uint64)) as b:
        setup(threads=2)
        run("heap", 8, 64, pack("QQI", Buffer(zeros(512, np.uint64)).address, 1000, 2))
        run("heap", 1, 64, pack("QQI", b.address, 1 << 20, 0))
        got = b.numpy()
        assert 0 < (got != 0).sum() <= 8
        run("heap", 1, 64, pack("QQI", b.address, 0, 1))  # null is freed too
        run("heap", 1, 64, pack("QQI", b.address, 4 << 20, 0))
        assert (b.numpy() != 0).sum() == 1
        run("heap", 1, 64, pack("QQI", b.address, 0, 1))


def test_use_after_free_of_the_heap_is_seen_through_the_cache():
    with buffers(zeros(2, np.uint64)) as b:
        e = launch("heap_use_after_free", 1, 32, pack("Q", b.address)).error
        assert e.kind == "oob"
        assert "has been freed" in e.message
        assert b.numpy().tolist() == [253, 0]


def test_free_of_a_wrong_pointer():
    with buffers(np.full(32, 0x1234, np.uint64)) as b:
        e = launch("heap", 1, 32, pack("QQI", b.address, 0, 1)).error
        assert "free of 0x1234: it did not come from malloc in a kernel" in e.message


# ---- host memory ---------------------------------------------------------------------------------------


def test_managed_memory_has_one_address(runtime):
    a = runtime.malloc_managed(8 * 64, "managed")
    host = np.frombuffer((ctypes.c_uint64 * 64).from_address(a), np.uint64)
    host[:] = 0
    run("heap", 1, 32, pack("QQI", a, 64, 0))
    assert host[:32].all()
    run("heap", 1, 32, pack("QQI", a, 0, 1))
    copy = np.zeros(64, np.uint64)
    runtime.copy_out(copy.ctypes.data, a, 512)
    runtime.copy_in(a, a + 256, 8)  # a host pointer as well
    assert np.array_equal(copy[:32], host[:32]) or copy[0] != host[0]
    del host
    runtime.free(a)


def test_registered_host_memory(runtime):
    raw = np.zeros(5000, np.uint32)
    parts = [raw[10:110], raw[200:300], raw[3000:]]  # the first two share a page
    for p in parts:
        runtime.register_host(p.ctypes.data, p.nbytes)
    with pytest.raises(native.RuntimeCallError, match="registered"):
        runtime.register_host(parts[0].ctypes.data, 4)
    raw[:] = np.arange(5000)
    with buffers(zeros(128, np.uint8)) as out:
        for p in parts:
            run("copy_and_add", 1, 32, access(p.ctypes.data, 4, GLOBAL, out=out.address))
            assert np.array_equal(out.numpy().view(np.uint32)[:4] - 0x01010101, p[:4])
            run("copy_and_add", 1, 32, access(out.address, 4, GLOBAL, out=p.ctypes.data))
            assert p[1] == raw[:1][0] + p[1]
    e = refused(parts[0].ctypes.data + 400, 0, mask=1)
    assert "past the end of the 400-byte" in e.message
    for p in parts:
        runtime.unregister_host(p.ctypes.data)
    with pytest.raises(native.RuntimeCallError, match="is not registered"):
        runtime.unregister_host(parts[0].ctypes.data)
    assert "it is memory of the host program" in refused(parts[0].ctypes.data, 0).message
    assert raw[4999] == 4999


def test_host_code_that_uses_a_device_pointer_is_told_so():
    done = child("""
        a = rt.malloc(1000, "cudaMalloc call 1")
        rt.lib.ws_explain_host_faults(1)
        ctypes.string_at(a + 8, 1)
    """)
    assert done.returncode == -11
    assert "the host program touched device memory at 0x" in done.stderr
    assert '8 bytes into the 1000-byte allocation "cudaMalloc call 1"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_crashes_are_left_alone():
    done = child("""
        import faulthandler
        faulthandler.enable()
        rt.lib.ws_explain_host_faults(1)
        run("nothing", 4, 32)
        ctypes.string_at(16, 1)
    """)
    assert done.returncode == -11
    assert "Segmentation fault" in done.stderr
    assert "device memory" not in done.stderr


def test_limited_address_space():
    done = child(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        rt = native.Runtime(native.library_path())
        b = Buffer(zeros(1000))
        run("reverse", 1, 256, pack("QI", b.address, 1), shared=1024)
        print(b.numpy()[0])
    """,
        ready=False,
    )
    assert done.stdout == "256\n", done.stderr
