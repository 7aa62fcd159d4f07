"""Asynchronous copies and mbarriers: when they take effect, what is counted, and which mistakes are found."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith
from warpsmith.errors import KernelError, UnsupportedInstructionError

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


@pytest.fixture(scope="module", params=["check", "fast"])
def dev(request):
    return warpsmith.device("emulator", mode=request.param)


@pytest.fixture(scope="module")
def checked():
    return warpsmith.device("emulator", mode="check")


def kernel(body: str, shared: int = 4096, regs: str = "") -> str:
    """A kernel ``k(const u32* in, u32* out)``: %in and %out are global addresses of the thread's own word (and %in0,
    %out0 of the first), %s of its word in shared memory (%s0), %t its number."""
    return f"""{HEAD}
.visible .entry k(.param .u64 in, .param .u64 out) {{
  .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .pred %p<20>; .reg .b32 %t, %s, %s0, %bar; .reg .b64 %in, %out, %in0, %out0, %w;
  {regs}
  .shared .align 128 .b8 mem[{shared}];
  .shared .align 8 .b64 bars[4];
  ld.param.u64 %in0, [in]; ld.param.u64 %out0, [out];
  cvta.to.global.u64 %in0, %in0; cvta.to.global.u64 %out0, %out0;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %w, %t, 4;
  add.u64 %in, %in0, %w; add.u64 %out, %out0, %w;
  mov.u32 %s0, mem; mov.u32 %bar, bars;
  shl.b32 %r0, %t, 2; add.u32 %s, %s0, %r0;
{body}
  ret;
}}
"""


def run(dev, body: str, threads: int = 32, words: int | None = None, source=None, **kw):
    data = np.arange(1000, 1000 + 4096, dtype=np.uint32) if source is None else source
    out = np.zeros(words or threads, np.uint32)
    dev.compile(kernel(body, **kw))["k"](1, threads, data, out)
    return out


# ---- cp.async ------------------------------------------------------------------------------------------
def test_old_data_before_the_wait():
    """A copy shows when it is waited for, not before (in fast mode, which lets the program look)."""
    dev = warpsmith.device("emulator", mode="fast")
    body = """
  mov.u32 %r1, 7; st.shared.u32 [%s], %r1;
  cp.async.ca.shared.global [%s], [%in], 4;
  cp.async.commit_group;
  ld.shared.u32 %r2, [%s];
  cp.async.wait_group 0;
  ld.shared.u32 %r3, [%s];
  st.global.u32 [%out], %r2; st.global.u32 [%out+128], %r3;
"""
    out = run(dev, body, words=64)
    assert (out[:32] == 7).all() and (out[32:] == 1000 + np.arange(32)).all()


def test_groups_complete_in_order():
    """wait_group N leaves the last N groups under way; what is in no group waits for wait_all."""
    dev = warpsmith.device("emulator", mode="fast")
    body = "  mov.u32 %r1, 0;\n"
    for k in range(4):
        body += f"  st.shared.u32 [%s+{128 * k}], %r1;\n"
    for k in range(3):
        body += f"  cp.async.ca.shared.global [%s+{128 * k}], [%in+{128 * k}], 4; cp.async.commit_group;\n"
    body += "  cp.async.ca.shared.global [%s+384], [%in+384], 4;\n"
    at = 0
    for wait in (
        "cp.async.wait_group 3;",
        "cp.async.wait_group 2;",
        "cp.async.wait_group 1;",
        "cp.async.wait_group 0;",
        "cp.async.wait_all;",
    ):
        body += f"  {wait}\n"
        for k in range(4):
            body += f"  ld.shared.u32 %r2, [%s+{128 * k}]; st.global.u32 [%out+{at}], %r2;\n"
            at += 128
    out = run(dev, body, words=32 * 20).reshape(5, 4, 32)
    full = 1000 + np.arange(128).reshape(4, 32)
    for step in range(5):
        for k in range(4):
            there = k < step if k < 3 else step == 4
            assert (out[step, k] == (full[k] if there else 0)).all(), (step, k)


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("valid", range(0, 17, 2))
def test_zero_fill(dev, size, valid):
    if valid > size:
        pytest.skip("more than the copy has")
    body = f"""
  mov.u32 %r1, -1; mov.u32 %r2, {valid};
  mul.lo.u32 %r3, %t, {size}; add.u32 %r4, %s0, %r3; cvt.u64.u32 %d1, %r3; add.u64 %d2, %in0, %d1; add.u64 %d3, %out0, %d1;
  cp.async.ca.shared.global [%r4], [%d2], {size}, %r2;
  cp.async.wait_all;
  ld.shared.u32 %r5, [%r4]; st.global.u32 [%d3], %r5;
"""
    for k in range(4, size, 4):
        body += f"  ld.shared.u32 %r5, [%r4+{k}]; st.global.u32 [%d3+{k}], %r5;\n"
    data = np.random.default_rng(size).integers(0, 1 << 32, 4096, dtype=np.uint32)
    out = run(dev, body, words=8 * size, source=data)
    want = data[: 8 * size].view(np.uint8).reshape(32, size).copy()
    want[:, valid:] = 0
    assert np.array_equal(out.view(np.uint8).reshape(32, size), want)


def test_ignored_source_is_not_read(dev):
    """ignore-src: zeros, and the address need not be one."""
    body = """
  and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1;
  selp.b64 %d1, 0, %in, %p1;
  cp.async.ca.shared.global [%s], [%d1], 4, %p1;
  cp.async.wait_all;
  ld.shared.u32 %r2, [%s]; st.global.u32 [%out], %r2;
"""
    out = run(dev, body)
    lanes = np.arange(32)
    assert np.array_equal(out, np.where(lanes % 2, 0, 1000 + lanes))


def test_cache_policies_and_prefetch_sizes(dev):
    body = """
  mov.b64 %d5, 0; mov.u32 %r9, 4;
  mul.lo.u32 %r3, %t, 16; add.u32 %r4, %s0, %r3; cvt.u64.u32 %d1, %r3; add.u64 %d2, %in0, %d1;
  cp.async.cg.shared::cta.global.L2::cache_hint.L2::128B [%r4], [%d2], 16, %d5;
  cp.async.ca.shared.global.L2::cache_hint [%r4+1024], [%d2], 8, %r9, %d5;
  cp.async.wait_all;
  ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r4]; ld.shared.v2.u32 {%r10, %r11}, [%r4+1024];
  add.u32 %r5, %r5, %r8; add.u32 %r10, %r10, %r11; st.global.u32 [%out], %r5; st.global.u32 [%out+128], %r10;
"""
    out = run(dev, body, words=64)
    first = 1000 + 4 * np.arange(32)
    assert np.array_equal(out[:32], 2 * first + 3) and np.array_equal(out[32:], first)


def test_groups_of_lanes_that_part():
    """Threads of one warp have groups of their own."""
    dev = warpsmith.device("emulator", mode="fast")
    body = """
  mov.u32 %r1, 0; st.shared.u32 [%s], %r1; st.shared.u32 [%s+128], %r1;
  cp.async.ca.shared.global [%s], [%in], 4; cp.async.commit_group;
  and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 1;
  @%p1 bra ODD;
  cp.async.ca.shared.global [%s+128], [%in+128], 4; cp.async.commit_group;
  bra JOIN;
ODD:
  add.u32 %r5, %r5, 1;
JOIN:
  cp.async.wait_group 1;
  ld.shared.u32 %r3, [%s]; ld.shared.u32 %r4, [%s+128];
  st.global.u32 [%out], %r3; st.global.u32 [%out+128], %r4;
"""
    out = run(dev, body, words=64)
    lanes = np.arange(32)
    # Even lanes have two groups, and the first is complete; the only one of odd lanes may be under way.
    assert np.array_equal(out[:32], np.where(lanes % 2, 0, 1000 + lanes)) and (out[32:] == 0).all()


def test_guarded_copies(dev):
    body = """
  mov.u32 %r1, 5; st.shared.u32 [%s], %r1;
  setp.lt.u32 %p1, %t, 10;
  @%p1 cp.async.ca.shared.global [%s], [%in], 4;
  cp.async.commit_group; cp.async.wait_group 0;
  ld.shared.u32 %r2, [%s]; st.global.u32 [%out], %r2;
"""
    lanes = np.arange(32)
    assert np.array_equal(run(dev, body), np.where(lanes < 10, 1000 + lanes, 5))


def test_source_is_read_late():
    """The source may change until the wait; what is copied is what is there then."""
    dev = warpsmith.device("emulator", mode="fast")
    body = """
  cp.async.ca.shared.global [%s], [%out], 4; cp.async.commit_group;
  mov.u32 %r1, 77; st.global.u32 [%out], %r1;
  cp.async.wait_group 0;
  ld.shared.u32 %r2, [%s]; st.global.u32 [%out+128], %r2;
"""
    assert (run(dev, body, words=64)[32:] == 77).all()


def test_hundreds_of_copies_under_way(dev):
    body = "".join(f"  cp.async.ca.shared.global [%s+{128 * k}], [%in+{128 * k}], 4;\n" for k in range(100))
    body += "  cp.async.wait_all;\n  mov.u32 %r3, 0;\n"
    body += "".join(f"  ld.shared.u32 %r2, [%s+{128 * k}]; add.u32 %r3, %r3, %r2;\n" for k in range(100))
    out = run(dev, body + "  st.global.u32 [%out], %r3;\n", shared=12800)
    assert np.array_equal(out, 100 * (1000 + np.arange(32)) + 32 * 4950)


def test_many_blocks(dev):
    """Nothing is left of a block's copies when the next one starts; those without a wait may be dropped."""
    src = """
    #include <cuda_pipeline.h>
    extern "C" __global__ void k(const int* in, int* out, int left) {
      __shared__ int s[64], t[64];
      int i = threadIdx.x;
      t[i] = -1;
      __pipeline_memcpy_async(&s[i], &in[blockIdx.x * 64 + i], 4);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      out[blockIdx.x * 64 + i] = s[63 - i] + t[i];
      __pipeline_memcpy_async(&t[i], &in[i], 4);
      if (!left) __pipeline_wait_prior(0);
    }"""
    p = dev.compile(src)
    data = np.arange(64 * 500, dtype=np.int32)
    for left in (0, 1):
        out = np.zeros_like(data)
        p["k"](500, 64, data, out, left)
        assert np.array_equal(out, data.reshape(500, 64)[:, ::-1].reshape(-1) - 1)


# ---- mbarrier ------------------------------------------------------------------------------------------
INIT = """
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [%bar], {count};
  bar.sync 0;
"""


def test_phases_and_states(dev):
    """All threads arrive; the state names the phase; parity does, too."""
    body = (
        INIT.format(count=64)
        + """
  mov.u32 %r5, 0;
LOOP:
  mbarrier.arrive.shared.b64 %d1, [%bar];
TRY:
  mbarrier.try_wait.shared.b64 %p1, [%bar], %d1;
  @!%p1 bra TRY;
  and.b32 %r6, %r5, 1;
  mbarrier.test_wait.parity.shared.b64 %p2, [%bar], %r6;       // this phase is over
  xor.b32 %r6, %r6, 1;
  mbarrier.test_wait.parity.shared.b64 %p3, [%bar], %r6;       // the next one is not: nobody arrived twice
  selp.u32 %r7, 1, 0, %p2; selp.u32 %r8, 10, 0, %p3; add.u32 %r9, %r9, %r7; add.u32 %r9, %r9, %r8;
  bar.sync 0;
  add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 5;
  @%p4 bra LOOP;
  st.global.u32 [%out], %r9;
"""
    )
    assert (run(dev, "  mov.u32 %r9, 0;\n" + body, threads=64) == 5).all()


def test_producer_and_consumer(dev):
    """Warp 1 fills a buffer, warp 0 empties it: two mbarriers, parities, and shared::cta names."""
    body = """
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%bar], 32;
  @%p0 mbarrier.init.shared::cta.b64 [%bar+8], 32;
  fence.mbarrier_init.release.cluster;
  bar.sync 0;
  mov.u32 %r1, 0; mov.u32 %r2, 0;
  setp.ge.u32 %p1, %t, 32;
  @%p1 bra PRODUCE;
CONSUME:
  and.b32 %r3, %r1, 1;
FULL:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%bar], %r3, 1000;
  @!%p2 bra FULL;
  ld.shared.u32 %r4, [%s]; add.u32 %r2, %r2, %r4;
  mbarrier.arrive.release.cta.shared::cta.b64 _, [%bar+8];
  add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 20; @%p3 bra CONSUME;
  st.global.u32 [%out], %r2;
  bra DONE;
PRODUCE:
  xor.b32 %r3, %r1, 1; and.b32 %r3, %r3, 1;
EMPTY:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar+8], %r3;   // at first the phase before the first, which is over
  @!%p2 bra EMPTY;
  mad.lo.u32 %r5, %r1, 1000, %t;
  st.shared.u32 [%s+-128], %r5;
  mbarrier.arrive.shared::cta.b64 %d1, [%bar];
  add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 20; @%p3 bra PRODUCE;
DONE:
"""
    out = run(dev, body, threads=64)
    assert np.array_equal(out[:32], 20 * (32 + np.arange(32)) + 190_000)


def test_counts_drops_and_pending(dev):
    """arrive with a count, pending_count, arrive_drop, noComplete."""
    body = """
  setp.eq.u32 %p0, %t, 0;
  @!%p0 bra DONE;
  mbarrier.init.shared.b64 [%bar], 10;
  mbarrier.arrive.noComplete.shared.b64 %d1, [%bar], 3;   mbarrier.pending_count.b64 %r1, %d1;   // 10
  mbarrier.arrive.shared.b64 %d2, [%bar], 2;              mbarrier.pending_count.b64 %r2, %d2;   // 7
  mbarrier.arrive_drop.shared.b64 %d3, [%bar], 4;         mbarrier.pending_count.b64 %r3, %d3;   // 5
  mbarrier.test_wait.shared.b64 %p1, [%bar], %d1;                                                // no
  mbarrier.arrive_drop.noComplete.shared.b64 %d9, [%bar+8], 1;
  mbarrier.arrive.shared.b64 %d4, [%bar];                 mbarrier.pending_count.b64 %r4, %d4;   // 1
  mbarrier.test_wait.shared.b64 %p2, [%bar], %d1;                                                // yes
  mbarrier.arrive.shared.b64 %d5, [%bar];                 mbarrier.pending_count.b64 %r5, %d5;   // 6: four have gone
  mbarrier.test_wait.shared.b64 %p3, [%bar], %d5;                                                // no
  selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 1, 0, %p2; selp.u32 %r8, 1, 0, %p3;
  mbarrier.inval.shared.b64 [%bar];
  st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%out+16], {%r5, %r6, %r7, %r8};
DONE:
""".replace("  mbarrier.arrive_drop.noComplete.shared.b64 %d9, [%bar+8], 1;\n", "")
    assert run(dev, body)[:8].tolist() == [10, 7, 5, 1, 6, 0, 1, 0]


def test_bytes_that_are_expected(dev):
    """expect_tx and complete_tx in any order: the phase ends when arrivals and bytes are all there."""
    body = """
  setp.eq.u32 %p0, %t, 0;
  @!%p0 bra DONE;
  mov.u32 %r9, 0;
  mbarrier.init.shared.b64 [%bar], 1;
  mbarrier.arrive.expect_tx.shared.b64 %d1, [%bar], 48;
  mbarrier.complete_tx.shared.b64 [%bar], 16;
  mbarrier.test_wait.shared.b64 %p1, [%bar], %d1; selp.u32 %r1, 1, 0, %p1;
  mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%bar], 32;
  mbarrier.test_wait.shared.b64 %p1, [%bar], %d1; selp.u32 %r2, 1, 0, %p1;
  mbarrier.complete_tx.shared.b64 [%bar], 100;
  mbarrier.expect_tx.relaxed.cta.shared.b64 [%bar], 100;
  mbarrier.test_wait.parity.shared.b64 %p1, [%bar], 1; selp.u32 %r3, 1, 0, %p1;
  mbarrier.arrive.release.cta.shared::cta.b64 %d1, [%bar];
  mbarrier.test_wait.parity.shared.b64 %p1, [%bar], 1; selp.u32 %r4, 1, 0, %p1;
  st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};
DONE:
"""
    assert run(dev, body)[:4].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("noinc", [False, True])
def test_copies_that_arrive_at_an_mbarrier(dev, noinc):
    """cp.async.mbarrier.arrive: waiting for the mbarrier is enough, also for other threads."""
    arrive = "" if noinc else "  mbarrier.arrive.shared.b64 %d1, [%bar];\n"
    body = (
        INIT.format(count=64)
        + f"""
  cp.async.ca.shared.global [%s], [%in], 4;
  cp.async.mbarrier.arrive{".noinc" if noinc else ""}.shared.b64 [%bar];
{arrive}
TRY:
  mbarrier.test_wait.parity.shared.b64 %p1, [%bar], 0;
  @!%p1 bra TRY;
  xor.b32 %r1, %t, 63; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %s0;
  ld.shared.u32 %r2, [%r1]; st.global.u32 [%out], %r2;
"""
    )
    out = run(dev, body, threads=64)
    assert np.array_equal(out, 1000 + np.arange(64)[::-1])


def test_mbarrier_by_generic_address(dev):
    body = """
  .reg .b64 %g;
  cvta.shared.u64 %g, bars;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.b64 [%g+8], 32;
  bar.sync 0;
  mbarrier.arrive.b64 %d1, [%g+8];
TRY:
  mbarrier.try_wait.b64 %p1, [%g+8], %d1;
  @!%p1 bra TRY;
  mov.u32 %r1, 3; st.global.u32 [%out], %r1;
"""
    assert (run(dev, body) == 3).all()


# ---- cp.async.bulk -------------------------------------------------------------------------------------
def test_bulk_load(dev):
    body = (
        INIT.format(count=1)
        + """
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s0], [%in0], 512, [%bar];
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s0+512], [%in0+4096], 512, [%bar];
TRY:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], 0;
  @!%p1 bra TRY;
  ld.shared.u32 %r1, [%s]; ld.shared.u32 %r2, [%s+512];
  st.global.u32 [%out], %r1; st.global.u32 [%out+512], %r2;
"""
    )
    out = run(dev, body, threads=128, words=256)
    lanes = np.arange(128)
    assert np.array_equal(out[:128], 1000 + lanes) and np.array_equal(out[128:], 2024 + lanes)


@pytest.mark.parametrize("read", [False, True])
def test_bulk_store(dev, read):
    body = f"""
  shl.b32 %r1, %t, 3; st.shared.u32 [%s], %r1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.eq.u32 %p0, %t, 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out0], [%s0], 512;
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group{".read" if read else ""} 0;
  bar.sync 0;
  mov.u32 %r2, 1; st.shared.u32 [%s], %r2;
"""
    assert np.array_equal(run(dev, body, threads=128), 8 * np.arange(128))


def test_bulk_store_shows_late():
    dev = warpsmith.device("emulator", mode="fast")
    body = """
  shl.b32 %r1, %t, 3; st.shared.u32 [%s], %r1;
  bar.sync 0;
  setp.eq.u32 %p0, %t, 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out0], [%s0], 128;
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group.read 0;
  ld.global.u32 %r3, [%out];
  @%p0 cp.async.bulk.wait_group 0;
  bar.sync 0;
  ld.global.u32 %r4, [%out];
  st.global.u32 [%out+128], %r3; st.global.u32 [%out+256], %r4;
"""
    out = run(dev, body, words=96)
    assert (out[32:64] == 0).all() and np.array_equal(out[64:], 8 * np.arange(32))


def test_forms_that_are_missing_say_so(dev):
    for text in (
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%s0], [%in0, {%r1}], [%bar];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s0], [%in0], 16, [%bar], %rs;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out0], [%s0], 16;",
    ):
        with pytest.raises(UnsupportedInstructionError, match=r"cp\..*is not implemented"):
            run(dev, "  " + text, regs=".reg .b16 %rs;")


# ---- mistakes ------------------------------------------------------------------------------------------
def report(dev, body: str, threads: int = 64, **kw) -> str:
    with pytest.raises(KernelError) as e:
        run(dev, body, threads, **kw)
    return str(e.value)


def test_missing_wait(checked):
    text = report(checked, """
  cp.async.ca.shared.global [%s], [%in], 4;
  cp.async.commit_group;
  ld.shared.u32 %r2, [%s];
  st.global.u32 [%out], %r2;
""")  # fmt: skip
    assert "into which the asynchronous copy" in text and "must wait for it first" in text and "ld.shared" in text
    assert "cp.async.ca.shared.global" in text and "by thread (0,0,0)" in text


def test_wait_for_too_few_groups(checked):
    text = report(checked, """
  cp.async.ca.shared.global [%s], [%in], 4; cp.async.commit_group;
  cp.async.ca.shared.global [%s+256], [%in], 4; cp.async.commit_group;
  cp.async.wait_group 1;
  bar.sync 0;
  ld.shared.u32 %r2, [%s];
  ld.shared.u32 %r2, [%s+256];
""")  # fmt: skip
    assert "0x180 in shared memory" in text and "PTX line 19" in text and "by thread (32,0,0)" in text


def test_barrier_before_the_wait(checked):
    """The other way round it would be right."""
    text = report(checked, """
  cp.async.ca.shared.global [%s], [%in], 4; cp.async.commit_group;
  bar.sync 0;
  xor.b32 %r1, %t, 32; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %s0;
  ld.shared.u32 %r2, [%r1];
  cp.async.wait_group 0;
  st.global.u32 [%out], %r2;
""")  # fmt: skip
    assert "and other threads need a barrier after that" in text


@pytest.mark.parametrize(
    "access",
    [
        "st.shared.u32 [%s], %t;",
        "atom.shared.add.u32 %r2, [%s], %t;",
        "cvta.shared.u64 %d1, mem; st.u32 [%d1], %t;",
        "cvta.shared.u64 %d1, mem; atom.add.u32 %r2, [%d1], %t;",
        "ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%s0];",
        "cp.async.ca.shared.global [%s], [%in+128], 4;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%s0];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s0], {%t};",
        "wmma.load.c.sync.aligned.row.m16n16k16.shared.s32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%s0], 16;",
    ],
)
def test_use_of_a_destination_in_flight(checked, access):
    text = report(checked, f"""
  cp.async.ca.shared.global [%s], [%in], 4; cp.async.commit_group;
  {access}
  cp.async.wait_group 0;
""")  # fmt: skip
    assert "asynchronous copy" in text


def test_source_line_of_copy_and_read(checked):
    src = """
    #include <cuda_pipeline.h>
    extern "C" __global__ void k(const int* in, int* out) {
      __shared__ int s[64];
      __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
      __pipeline_commit();
      out[threadIdx.x] = s[threadIdx.x];      // line 7
    }"""
    with pytest.raises(KernelError) as e:
        checked.compile(src, name="late.cu")["k"](1, 64, np.zeros(64, np.int32), np.zeros(64, np.int32))
    assert "late.cu:7" in str(e.value) and "cp.async" in str(e.value)


def test_mbarrier_that_was_never_initialised(checked):
    text = report(checked, "  mbarrier.arrive.shared.b64 %d1, [%bar];\n")
    assert "has not been initialised" in text and "mbarrier.arrive" in text
    assert "has not been initialised" in report(checked, "  mbarrier.test_wait.parity.shared.b64 %p1, [%bar], 0;\n")
    body = "  cp.async.ca.shared.global [%s], [%in], 4;\n  cp.async.mbarrier.arrive.shared.b64 [%bar];\n"
    assert "has not been initialised" in report(checked, body)


def test_too_many_arrivals(dev):
    body = (
        INIT.format(count=64)
        + """
  setp.lt.u32 %p1, %t, 8;
  @%p1 mbarrier.arrive.noComplete.shared.b64 %d1, [%bar], 10;
"""
    )
    text = report(dev, body, threads=32)
    assert "more arrivals, but its phase waits for 4 of 64" in text


def test_misplaced_mbarrier(dev):
    assert "misaligned" in report(dev, "  mbarrier.init.shared.b64 [%bar+4], 1;\n")
    assert "out-of-bounds" in report(dev, "  mbarrier.init.shared.b64 [%bar+32768], 1;\n")


def test_copies_out_of_bounds(checked):
    assert "global" in report(checked, "  cp.async.ca.shared.global [%s], [%in+65536], 4;\n")
    assert "shared" in report(checked, "  cp.async.ca.shared.global [%s+65536], [%in], 4;\n")
    assert "misaligned" in report(checked, "  cp.async.ca.shared.global [%s], [%in+4], 8;\n", threads=1)
    body = INIT.format(count=1)
    bulk = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
    assert "multiple of 16" in report(checked, body + f"  @%p0 {bulk} [%s0], [%in0], 40, [%bar];\n")
    assert "misaligned" in report(checked, body + f"  @%p0 {bulk} [%s0], [%in0+4], 48, [%bar];\n")
    text = report(checked, body + f"  @%p0 {bulk} [%s0], [%in0+16368], 48, [%bar];\n")
    assert "read of 48 bytes" in text and "only 16 bytes remain in" in text and "cp.async.bulk" in text


def test_bulk_load_without_a_wait(checked):
    body = (
        INIT.format(count=1)
        + """
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s0], [%in0], 256, [%bar];
  bar.sync 0;
  ld.shared.u32 %r1, [%s];
"""
    )
    text = report(checked, body)
    assert "wait for its mbarrier first" in text and "cp.async.bulk" in text


def test_bulk_source_is_overwritten(checked):
    body = """
  st.shared.u32 [%s], %t;
  bar.sync 0;
  setp.eq.u32 %p0, %t, 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out0], [%s0], 256;
  @%p0 cp.async.bulk.commit_group;
  bar.sync 0;
  ld.shared.u32 %r1, [%s];      // may be read
  st.shared.u32 [%s], %r1;
"""
    assert "may still be reading" in report(checked, body)


def test_nobody_comes(dev):
    """One arrival short: a deadlock, with what the mbarrier waits for; also if the loop looks at the clock."""
    body = (
        INIT.format(count=65)
        + """
  mbarrier.arrive.shared.b64 %d1, [%bar];
TRY:
  mov.u64 %d2, %globaltimer; add.u64 %d3, %d3, %d2;
  mbarrier.try_wait.shared.b64 %p1, [%bar], %d1;
  @!%p1 bra TRY;
  st.global.u64 [%out0], %d3;
"""
    )
    text = report(dev, body)
    assert "waits for 1 of 65 arrivals" in text and "mbarrier.try_wait" in text
    short = (
        INIT.format(count=1)
        + """
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s0], [%in0], 256, [%bar];
TRY:
  mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;
  @!%p1 bra TRY;
"""
    )
    assert "256 more bytes" in report(dev, short)
