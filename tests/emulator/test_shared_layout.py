"""Static and dynamic shared memory side by side: nothing overlaps, everything is aligned, nothing unused is paid for."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith

SOURCE = r"""
extern __shared__ int4 wide[];
extern __shared__ int dynamic[];
__shared__ int unused_here[4000];
__device__ __noinline__ int* in_function() { __shared__ int f[3]; return f; }

extern "C" __global__ void both(int* out) {
  __shared__ int a[32];
  a[threadIdx.x] = threadIdx.x;
  dynamic[threadIdx.x] = 100 + threadIdx.x;
  if (threadIdx.x < 3) in_function()[threadIdx.x] = 200 + threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = a[31 - threadIdx.x];
  out[32 + threadIdx.x] = dynamic[31 - threadIdx.x];
  if (threadIdx.x < 3) out[64 + threadIdx.x] = in_function()[2 - threadIdx.x];
}
extern "C" __global__ void aligned(int4* out) {
  __shared__ char c[13];
  if (threadIdx.x < 13) c[threadIdx.x] = 1;
  wide[threadIdx.x] = make_int4(threadIdx.x, 1, 2, 3);
  __syncthreads();
  out[threadIdx.x] = wide[31 - threadIdx.x];
  out[threadIdx.x].y += c[threadIdx.x % 13];
}
extern "C" __global__ void module_level(int* out) {
  unused_here[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = unused_here[31 - threadIdx.x];
}
"""


@pytest.mark.parametrize("mode", ["check", "fast"])
def test_static_and_dynamic(mode):
    p = warpsmith.device("emulator", mode=mode).compile(SOURCE)
    back = np.arange(32)[::-1]
    out = np.zeros(67, np.int32)
    p["both"](1, 32, out, shared=128)
    assert np.array_equal(out, [*back, *(100 + back), 202, 201, 200])
    out = np.zeros((32, 4), np.int32)
    p["aligned"](1, 32, out, shared=512)
    assert np.array_equal(out[:, 0], back) and (out[:, 1:] == (2, 2, 3)).all()
    out = np.zeros(32, np.int32)
    p["module_level"](1, 32, out)
    assert np.array_equal(out, back)


def test_variables_of_other_kernels_take_no_room():
    p = warpsmith.device("emulator").compile(SOURCE)
    sizes = {name: p[name].info.contents.static_shared for name in p.kernels}
    assert sizes["both"] in (140, 144) and sizes["aligned"] == 16 and sizes["module_level"] == 16000
