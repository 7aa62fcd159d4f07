"""Bugs that others shipped, each as a small kernel with a known answer.

The list is that of public reports against simulators, translators and interpreters of GPU code; each test names
the report and says in words what went wrong there.  Kernels and checks are our own.
"""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith
from warpsmith.errors import KernelError, LaunchError


@pytest.fixture(scope="module")
def dev():
    return warpsmith.device("emulator", chip="h200")


def run(dev, source, kernel, grid, block, *args, **kw):
    return dev.compile(source)[kernel](grid, block, *args, **kw)


def test_broadcast_after_a_one_lane_branch(dev):
    """GPGPU-Sim #230: a value that lane 0 makes in a branch, shuffled right after it, was wrong."""
    src = """
    extern "C" __global__ void k(int* out) {
      int v = -1;
      if (threadIdx.x % 32 == 0) { v = 1000; for (int i = 0; i < 5; ++i) v += i * (int)blockIdx.x; }
      out[blockIdx.x * blockDim.x + threadIdx.x] = __shfl_sync(~0u, v, 0);
    }"""
    out = np.zeros(128, np.int32)
    run(dev, src, "k", 2, 64, out)
    assert (out[:64] == 1000).all() and (out[64:] == 1010).all()


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_spin_lock_within_and_between_warps(order):
    """GPGPU-Sim #292, Vortex #62, Ventus #1: lanes of one warp that take a lock in turn never ended."""
    src = """
    __device__ int lock = 0;
    extern "C" __global__ void k(int* counter) {
      bool done = false;
      while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
          __threadfence(); *(volatile int*)counter = *(volatile int*)counter + 1; __threadfence();
          atomicExch(&lock, 0); done = true;
        }
      }
    }
    extern "C" __global__ void spin(int* counter) {          // the spinning loop does not contain the release
      while (atomicCAS(&lock, 0, 1) != 0) { }
      __threadfence(); *(volatile int*)counter = *(volatile int*)counter + 1; __threadfence();
      atomicExch(&lock, 0);
    }"""
    p = warpsmith.device("emulator", order=order, seed=3).compile(src)
    for kernel in ("k", "spin"):
        out = np.zeros(1, np.int32)
        p[kernel](4, 96, out)
        assert out[0] == 4 * 96


def test_ballot_respects_its_member_mask(dev):
    """GPGPU-Sim: vote ignored the member mask."""
    src = """
    extern "C" __global__ void k(unsigned* out, int half) {
      unsigned lane = threadIdx.x, v;
      if (lane < half) v = __ballot_sync(0x0000ffffu, lane != 3); else v = __ballot_sync(0xffff0000u, lane != 20);
      out[lane] = v;
    }"""
    out = np.zeros(32, np.uint32)
    run(dev, src, "k", 1, 32, out, 16)
    assert (out[:16] == 0x0000FFF7).all() and (out[16:] == 0xFFEF0000).all()


def test_barrier_in_a_join_reached_from_a_loop(dev):
    """Triton #11153: jump threading duplicated a barrier in the join block of a loop; results raced."""
    src = """
    extern "C" __global__ void k(int* out, int n) {
      __shared__ int s[128];
      int acc = 0; bool first = true;
      for (int i = 0; i < n; ++i) {
        s[threadIdx.x] = threadIdx.x * 3 + i;
        if (first) { acc += 7; first = false; }
        __syncthreads();
        acc += s[(threadIdx.x + 33) % blockDim.x];
        __syncthreads();
      }
      out[threadIdx.x] = acc;
    }"""
    out = np.zeros(128, np.int32)
    run(dev, src, "k", 1, 128, out, 9)
    t = np.arange(128)
    assert (out == 7 + 9 * ((t + 33) % 128 * 3) + sum(range(9))).all()


def test_shuffle_delta_counts_modulo_32(dev):
    """ZLUDA #668: a run-time shuffle delta was not cut to five bits."""
    src = """extern "C" __global__ void k(int* out, int d) { out[threadIdx.x] = __shfl_xor_sync(~0u, (int)threadIdx.x, d); }"""
    out = np.zeros(32, np.int32)
    run(dev, src, "k", 1, 32, out, 33)
    assert (out == (np.arange(32) ^ 1)).all()


@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_shuffle_width(dev, width):
    """ZLUDA #208, chipStar #210, #726, #1354: the width of a shuffle was ignored, so sub-warps mixed."""
    src = """
    extern "C" __global__ void k(int* sum, int* up, int* down, int* idx, int width) {
      int lane = threadIdx.x, v = lane * lane + 1, s = v;
      for (int d = width / 2; d; d /= 2) s += __shfl_xor_sync(~0u, s, d, width);
      sum[lane] = s; up[lane] = __shfl_up_sync(~0u, v, 1, width); down[lane] = __shfl_down_sync(~0u, v, 1, width);
      idx[lane] = __shfl_sync(~0u, v, 3, width);
    }"""
    o = [np.zeros(32, np.int32) for _ in range(4)]
    run(dev, src, "k", 1, 32, *o, width)
    v = np.arange(32) ** 2 + 1
    groups = v.reshape(-1, width)
    assert (o[0].reshape(-1, width) == groups.sum(1, keepdims=True)).all()
    assert (o[1].reshape(-1, width)[:, 1:] == groups[:, :-1]).all() and (
        o[1].reshape(-1, width)[:, 0] == groups[:, 0]
    ).all()
    assert (o[2].reshape(-1, width)[:, :-1] == groups[:, 1:]).all() and (
        o[2].reshape(-1, width)[:, -1] == groups[:, -1]
    ).all()
    assert (o[3].reshape(-1, width) == groups[:, [3 % width]]).all()


def test_coalesced_group_size(dev):
    """chipStar #1283, #1409: coalesced_threads() in a branch had size 0."""
    src = """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(int* size, int* rank, int n) {
      if (threadIdx.x < n) { cg::coalesced_group g = cg::coalesced_threads(); size[threadIdx.x] = g.size(); rank[threadIdx.x] = g.thread_rank(); }
    }"""
    size, rank = np.zeros(32, np.int32), np.zeros(32, np.int32)
    run(dev, src, "k", 1, 32, size, rank, 5)
    assert size.tolist() == [5] * 5 + [0] * 27 and rank[:5].tolist() == [0, 1, 2, 3, 4]


def test_barrier_that_half_a_block_reaches_is_reported(dev):
    """Numba documentation, Quadrants #636: a barrier in a divergent branch hangs.

    The lanes that skip the barrier leave the kernel or wait at another one: the first is complete on
    hardware (exited threads do not count), the second is a deadlock."""
    skip = """extern "C" __global__ void k(int* out) { if (threadIdx.x < 16) __syncthreads(); out[threadIdx.x] = threadIdx.x; }"""
    out = np.zeros(64, np.int32)
    run(dev, skip, "k", 1, 64, out)
    assert (out == np.arange(64)).all()
    stuck = """extern "C" __global__ void k(int* out) {
      if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 2, 64;");
      out[threadIdx.x] = 1; }"""
    with pytest.raises(KernelError) as e:
        run(dev, stuck, "k", 1, 64, out)
    assert "deadlock" in str(e.value).lower() and "bar" in str(e.value)


PING_PONG = """
#include <cooperative_groups.h>
extern "C" __global__ void k(int* x, int n) {
  auto grid = cooperative_groups::this_grid();
  for (int i = 0; i < n; ++i) {
    if (threadIdx.x == 0 && blockIdx.x == i % gridDim.x) x[0] = x[0] * 3 + blockIdx.x;
    grid.sync();
  }
}"""


def test_grid_sync_is_real(dev):
    """Numba #8719, chipStar #1330: cooperative launches of more than one block were accepted, but grid sync did nothing."""
    x = np.ones(1, np.int32)
    run(dev, PING_PONG, "k", 2, 64, x, 10, cooperative=True)
    want = 1
    for i in range(10):
        want = want * 3 + i % 2
    assert x[0] == want


def test_grid_that_cannot_be_resident_is_refused(dev):
    """The same reports: a grid barrier needs all blocks at once."""
    with pytest.raises(LaunchError) as e:
        run(dev, PING_PONG, "k", 100000, 64, np.ones(1, np.int32), 1, cooperative=True)
    assert "100000" in str(e.value) and "132" in str(e.value)


LOOK_BACK = """
extern "C" __global__ void scan(const unsigned* in, unsigned* out, volatile unsigned long long* state, unsigned* ticket, int use_ticket) {
  __shared__ unsigned s[256]; __shared__ unsigned base, block;
  unsigned t = threadIdx.x;
  if (t == 0) block = use_ticket ? atomicAdd(ticket, 1) : blockIdx.x;
  __syncthreads();
  unsigned b = block, i = b * 256 + t, v = in[i];
  s[t] = v; __syncthreads();
  for (int d = 1; d < 256; d *= 2) { unsigned x = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += x; __syncthreads(); }
  if (t == 255) {
    state[b] = ((b ? 1ull : 2ull) << 32) | s[255]; __threadfence();
    unsigned sum = 0;
    for (int p = (int)b - 1; p >= 0;) {
      unsigned long long w = state[p];
      if (w >> 32 == 0) continue;
      sum += (unsigned)w; if (w >> 32 == 2) break; --p;
    }
    base = sum; state[b] = (2ull << 32) | (sum + s[255]);
  }
  __syncthreads();
  out[i] = base + s[t];
}"""


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
@pytest.mark.parametrize("ticket", [0, 1])
def test_single_pass_scan_in_any_block_order(order, ticket):
    """GPUPrefixSums #12: decoupled look-back hangs where blocks do not make progress independently."""
    dev = warpsmith.device("emulator", order=order, seed=7)
    n = 256 * 300
    x = np.random.default_rng(1).integers(0, 100, n).astype(np.uint32)
    out = np.zeros(n, np.uint32)
    run(dev, LOOK_BACK, "scan", n // 256, 256, x, out, np.zeros(n // 256, np.uint64), np.zeros(1, np.uint32), ticket)
    assert (out == np.cumsum(x, dtype=np.uint32)).all()


@pytest.mark.parametrize("order", ["ascending", "random"])
def test_block_waits_for_a_later_block(order):
    """Triton #1452, #7125, #11037, triton-viz #165: program i waits for a flag that program i+1 writes."""
    src = """
    extern "C" __global__ void k(volatile int* flag, int* out) {
      int b = blockIdx.x;
      if (threadIdx.x == 0) {
        if (b + 1 < gridDim.x) while (!flag[b + 1]) { }
        __threadfence(); out[b] = b + 1 < gridDim.x ? out[b + 1] + 1 : 0; __threadfence(); flag[b] = 1;
      }
    }"""
    out = np.zeros(200, np.int32)
    run(warpsmith.device("emulator", order=order), src, "k", 200, 32, np.zeros(200, np.int32), out)
    assert (out == np.arange(199, -1, -1)).all()


def test_two_dimensional_block_reduction_through_groups(dev):
    """cccl #8534: thread_block::sync() went wrong for two-dimensional blocks."""
    src = """
    #include <cooperative_groups.h>
    extern "C" __global__ void k(const int* in, int* out) {
      auto g = cooperative_groups::this_thread_block(); __shared__ int s[512];
      int r = g.thread_rank(); s[r] = in[blockIdx.x * g.size() + r]; g.sync();
      for (int d = 256; d; d /= 2) { if (r < d) s[r] += s[r + d]; g.sync(); }
      if (r == 0) out[blockIdx.x] = s[0];
    }"""
    x = np.random.default_rng(2).integers(-1000, 1000, (5, 512)).astype(np.int32)
    out = np.zeros(5, np.int32)
    run(dev, src, "k", 5, (32, 16), x, out)
    assert (out == x.sum(1)).all()


def test_message_passing_through_a_barrier_object(dev):
    """libcudacxx PR #300: arrive() lacked a release fence, so the payload could be missed."""
    src = """
    extern "C" __global__ void k(int* data, int* flag, int* out, int n) {
      if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x + n; __syncthreads(); if (threadIdx.x == 0) { __threadfence(); atomicExch(flag, 1); } }
      else { if (threadIdx.x == 0) while (atomicAdd(flag, 0) == 0) { } __syncthreads(); __threadfence(); out[threadIdx.x] = data[threadIdx.x]; }
    }"""
    out = np.zeros(128, np.int32)
    run(dev, src, "k", 2, 128, np.zeros(128, np.int32), np.zeros(1, np.int32), out, 5)
    assert (out == np.arange(128) + 5).all()


def ptx(params, body, regs=""):
    return f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k({params}) {{
  .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg .f32 %f<16>; {regs}
{body}
  ret;
}}"""


def test_selp_with_a_negated_predicate(dev):
    """GPGPU-Sim #343 (a): the negation was ignored."""
    body = """
  ld.param.u64 %d1, [o]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;
  not.pred %p2, %p1; selp.b32 %r3, 10, 20, %p2; @!%p1 mov.u32 %r3, 30;
  mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r3;"""
    out = np.zeros(32, np.int32)
    dev.compile(ptx(".param .u64 o", body))["k"](1, 32, out)
    assert (out == np.where(np.arange(32) % 2 == 1, 20, 30)).all()


def bfe(a, pos, length, signed):
    """The PTX ISA's definition of bfe.u32/.s32, one bit at a time."""
    pos, length = pos & 255, length & 255
    sign = 0
    if signed and length:
        sign = a >> min(pos + length - 1, 31) & 1
    d = 0
    for i in range(32):
        bit = a >> (pos + i) & 1 if i < length and pos + i < 32 else sign
        d |= bit << i
    return d


@pytest.mark.parametrize("signed", [False, True])
def test_bfe_beyond_the_word(dev, signed):
    """GPGPU-Sim #343 (b): bfe from position 32 on did not give zero (or the sign)."""
    body = f"""
  ld.param.u64 %d1, [o]; ld.param.u32 %r9, [a]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  bfe.{"s" if signed else "u"}32 %r3, %r9, %r1, %r2; mad.lo.u32 %r4, %r1, 256, %r2;
  mul.wide.u32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r3;"""
    k = dev.compile(ptx(".param .u64 o, .param .u32 a", body))["k"]
    for a in (0x80000001, 0x7FFF00F0):
        out = np.zeros((256, 256), np.uint32)
        k(256, 256, out, a)
        want = np.array([[bfe(a, p, n, signed) for n in range(256)] for p in range(256)], np.uint32)
        assert (out == want).all()


def test_int_to_float_rounds_as_asked(dev):
    """GPGPU-Sim #343 (d): cvt.rz.f32.s32 rounded up."""
    body = """
  ld.param.u64 %d1, [o]; ld.param.u64 %d4, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d5, %d4, %d2; ld.global.u32 %r2, [%d5];
  cvt.rn.f32.s32 %f0, %r2; cvt.rz.f32.s32 %f1, %r2; cvt.rm.f32.s32 %f2, %r2; cvt.rp.f32.s32 %f3, %r2;
  mul.wide.u32 %d2, %r1, 16; add.s64 %d3, %d1, %d2; st.global.v4.f32 [%d3], {%f0, %f1, %f2, %f3};"""
    base = 1 << 24
    x = np.array([s * (base + d) for d in (-1, 0, 1, 2, 3, 5) for s in (1, -1)], np.int32)
    out = np.zeros((len(x), 4), np.float32)
    dev.compile(ptx(".param .u64 o, .param .u64 x", body))["k"](1, len(x), out, x)
    exact = x.astype(np.float64)
    nearest = x.astype(np.float32)
    down = np.where(nearest > exact, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    up = np.where(nearest < exact, np.nextafter(nearest, np.float32(np.inf)), nearest)
    assert (out[:, 0] == nearest).all() and (out[:, 2] == down).all() and (out[:, 3] == up).all()
    assert (out[:, 1] == np.where(exact > 0, down, up)).all()


def test_wide_addition_carries(dev):
    """GPGPU-Sim #343 (e), #103: carries across bit 32, and chains of mad.lo.cc / madc."""
    body = """
  ld.param.u64 %d1, [o]; ld.param.u64 %d4, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 16; add.s64 %d5, %d4, %d2;
  ld.global.v2.u64 {%d6, %d7}, [%d5]; add.u64 %d8, %d6, %d7;
  mov.b64 {%r2, %r3}, %d6; mov.b64 {%r4, %r5}, %d7;
  mad.lo.cc.u32 %r6, %r2, %r4, %r2; madc.hi.u32 %r7, %r2, %r4, %r3; mov.b64 %d9, {%r6, %r7};
  add.s64 %d3, %d1, %d2; st.global.v2.u64 [%d3], {%d8, %d9};"""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 1 << 64, (64, 2), dtype=np.uint64)
    x[0], x[1] = (0xFFFFFFFF, 1), (0xFFFFFFFFFFFFFFFF, 1)
    out = np.zeros_like(x)
    dev.compile(ptx(".param .u64 o, .param .u64 x", body))["k"](1, 64, out, x)
    m = (1 << 64) - 1
    for (a, b), (s, t) in zip(x.tolist(), out.tolist(), strict=True):
        assert s == (a + b) & m
        lo = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF)
        first = (lo & 0xFFFFFFFF) + (a & 0xFFFFFFFF)
        assert t == (first & 0xFFFFFFFF) | (((lo >> 32) + (a >> 32) + (first >> 32)) & 0xFFFFFFFF) << 32


def test_sine_of_huge_arguments(dev):
    """GPGPU-Sim #103: the slow path of sinf (carry chains, local arrays) stopped the simulator."""
    src = """extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = sinf(x[threadIdx.x]); }"""
    x = np.array([s * m * 10.0**e for e in range(0, 31, 2) for m in (1.0, 7.3) for s in (1, -1)], np.float32)
    y = np.zeros_like(x)
    run(dev, src, "k", 1, len(x), x, y)
    want = np.sin(x.astype(np.float64))
    assert np.abs(y - want).max() < 2e-7


def test_local_array_of_constant_size(dev):
    """Numba #3265: the size of a per-thread array came out wrong."""
    src = """
    template <int N> __device__ int f(int seed, int k) { int a[N]; for (int i = 0; i < N; ++i) a[i] = seed * i; for (int i = 1; i < N; ++i) a[(i * k) % N] += a[i - 1]; return a[k % N]; }
    extern "C" __global__ void k(int* out, int k) { out[threadIdx.x] = f<37>(threadIdx.x, k); }"""
    out = np.zeros(64, np.int32)
    run(dev, src, "k", 1, 64, out, 5)

    def f(seed, k, n=37):
        a = [seed * i for i in range(n)]
        for i in range(1, n):
            a[(i * k) % n] += a[i - 1]
        return a[k % n]

    assert out.tolist() == [f(t, 5) for t in range(64)]
