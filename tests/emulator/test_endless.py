"""Loops that take long are not deadlocks; loops that cannot end are."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith
from warpsmith.errors import KernelError

SOURCE = r"""
extern "C" __global__ void counts_by_atomics(int* p, int n) { while (atomicAdd(p, 1) < n) { } }
extern "C" __global__ void counts_in_memory(volatile int* p, int n) {
  if (threadIdx.x == 0) while (*p < n) *p = *p + 1;
}
extern "C" __global__ void waits_for_the_clock(int* p, int n) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < (unsigned long long)n * 100);
  if (threadIdx.x == 0) *p = n;
}
extern "C" __global__ void polls_for_nobody(volatile int* p, int n) { while (*p < n) { } }
extern "C" __global__ void turns_in_place(volatile int* p, int n) { while (n) { } }
extern "C" __global__ void another_counts(volatile int* p, int n) {   // block 1 polls what block 0 works on
  if (threadIdx.x) return;
  if (blockIdx.x == 0) for (int i = 0; i < n; ++i) atomicAdd((int*)p, 1); else while (*p < n) { }
}
"""


@pytest.fixture(scope="module")
def program():
    return warpsmith.device("emulator").compile(SOURCE)


@pytest.mark.parametrize(
    ("kernel", "grid", "n"),
    [
        ("counts_by_atomics", 1, 120_000_000),
        ("counts_in_memory", 1, 25_000_000),
        ("waits_for_the_clock", 1, 12_000_000),
        ("another_counts", 2, 12_000_000),
    ],
)
def test_slow_is_not_stuck(program, kernel, grid, n):
    """All of these run for longer than it takes to recognise a deadlock."""
    x = np.zeros(1, np.int32)
    program[kernel](grid, 32, x, n)
    assert x[0] >= n


@pytest.mark.parametrize("kernel", ["polls_for_nobody", "turns_in_place"])
def test_stuck_is_reported(program, kernel):
    with pytest.raises(KernelError, match="deadlock"):
        program[kernel](1, 32, np.zeros(1, np.int32), 5)
