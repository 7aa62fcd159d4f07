"""Random programs: what g++ makes of a function thread by thread, and the emulator of the kernel around it, must agree.

The functions are full of nested branches, loops with break and continue, switches and early returns that depend on
the thread, so lanes part and meet again in every way that structured code allows; shuffles and barriers stand where all
threads come by.  The oracle runs the same C++ for one thread after the other.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess

import numpy as np
import pytest

import warpsmith

THREADS = 96
FUNCTIONS = 10

PRELUDE = """
typedef unsigned u32; typedef unsigned long long u64;
#ifdef __CUDACC__
#define FN __device__ __forceinline__
#else
#define FN static inline
#endif
"""


class Writer:
    """Writes one function ``u32 f(u32 t, u32 n, const u32* data)``.  ``n`` is the same for all threads."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.names = ["a", "b", "c", "d"]
        self.loops = 0
        self.lines: list[str] = []

    def value(self, depth: int = 0) -> str:
        r = self.r
        kind = r.randrange(9 if depth < 3 else 4)
        if kind < 2:
            return r.choice(self.names)
        if kind == 2:
            return str(r.choice([0, 1, 2, 3, 5, 7, 31, 255, 65537, 0x80000000])) + "u"
        if kind == 3:
            return r.choice(["t", "n", "(t & 31u)", "data[(t * 7u + 3u) & 63u]", "data[n & 63u]"])
        a, b = self.value(depth + 1), self.value(depth + 1)
        if kind == 4:
            return f"(({a}) {r.choice(['<<', '>>'])} (({b}) & 31u))"
        if kind == 5:
            return f"(({a}) {r.choice(['/', '%'])} ((({b}) & 1023u) + 1u))"
        if kind == 6:
            return f"(({self.condition(depth + 1)}) ? ({a}) : ({b}))"
        if kind == 7:
            return f"(u32)((u64)({a}) * ({b}) >> {r.randrange(33)})"
        return f"(({a}) {r.choice(['+', '-', '*', '^', '&', '|'])} ({b}))"

    def condition(self, depth: int = 0) -> str:
        r = self.r
        if depth < 2 and r.random() < 0.3:
            return f"({self.condition(depth + 1)}) {r.choice(['&&', '||'])} ({self.condition(depth + 1)})"
        a, b = self.value(2), self.value(2)
        if r.random() < 0.3:
            return f"(int)({a}) {r.choice(['<', '>', '<=', '>='])} (int)({b})"
        return f"({a}) {r.choice(['<', '>', '==', '!=', '<=', '>='])} ({b})"

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("  " * indent + text)

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        for _ in range(self.r.randint(1, 4)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent: int, depth: int, in_loop: bool) -> None:
        r = self.r
        kind = r.random()
        if depth >= 4 or kind < 0.45:
            name = r.choice(self.names)
            self.emit(indent, f"{name} {r.choice(['=', '+=', '^=', '-=', '*='])} {self.value()};")
        elif kind < 0.65:
            self.emit(indent, f"if ({self.condition()}) {{")
            self.block(indent + 1, depth + 1, in_loop)
            if r.random() < 0.5:
                self.emit(indent, "} else {")
                self.block(indent + 1, depth + 1, in_loop)
            self.emit(indent, "}")
        elif kind < 0.83:
            self.loops += 1
            i = f"i{self.loops}"
            limit = r.choice(["(t & 7u)", "5u", "(n & 7u)", f"(({self.value(2)}) & 7u)"])
            self.emit(indent, f"for (u32 {i} = 0; {i} < {limit} + 1u; ++{i}) {{")
            self.names.append(i)
            saved = list(self.names)
            self.emit(indent + 1, f"a += {i};")
            targets, self.names = [n for n in self.names if not n.startswith("i")], saved
            self.names = [*targets]  # loop counters are read through a, never written
            self.block(indent + 1, depth + 1, True)
            self.names = targets
            self.emit(indent, "}")
        elif kind < 0.90:
            self.emit(indent, f"switch (({self.value()}) & 3u) {{")
            for k in range(r.randint(2, 4)):
                self.emit(indent, f"case {k}u: {{")
                self.block(indent + 1, depth + 1, False)
                self.emit(indent, "}" + r.choice([" break;", " break;", ""]))
            self.emit(indent, "default: d += 1u; }")
        elif kind < 0.96 and in_loop:
            self.emit(indent, f"if ({self.condition()}) {r.choice(['break', 'continue'])};")
        else:
            self.emit(indent, f"if ({self.condition()}) return {self.value()};")

    def function(self, name: str) -> str:
        self.emit(1, "u32 a = t, b = n * 3u + 1u, c = data[t & 63u], d = 0u;")
        for _ in range(self.r.randint(3, 7)):
            self.statement(1, 0, False)
        self.emit(1, "return a ^ (b * 3u) ^ (c << 1) ^ (d * 7u);")
        return f"FN u32 {name}(u32 t, u32 n, const u32* data) {{\n" + "\n".join(self.lines) + "\n}\n"


@pytest.mark.skipif(shutil.which("g++") is None, reason="the oracle is g++")
@pytest.mark.parametrize(("batch", "mode"), [(0, "check"), (1, "check"), (2, "fast")])
def test_kernel_equals_host_function(batch, mode, tmp_path):
    functions = [Writer(1000 * batch + k).function(f"f{k}") for k in range(FUNCTIONS)]
    body = PRELUDE + "".join(functions)
    table = "".join(f"    case {k}: return f{k}(t, n, data);\n" for k in range(FUNCTIONS))
    host = (
        body
        + 'extern "C" u32 run(int k, u32 t, u32 n, const u32* data) {\n  switch (k) {\n'
        + table
        + "  }\n  return 0;\n}\n"
    )
    source, library = tmp_path / "host.cpp", tmp_path / "host.so"
    source.write_text(host)
    subprocess.run(["g++", "-O1", "-w", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    oracle = ctypes.CDLL(str(library)).run
    oracle.restype = ctypes.c_uint32

    kernels = "".join(
        f'extern "C" __global__ void k{k}(u32* out, u32 n, const u32* data) {{\n'
        f"  u32 t = blockIdx.x * blockDim.x + threadIdx.x;\n  out[t] = f{k}(t, n, data);\n}}\n"
        f'extern "C" __global__ void s{k}(u32* out, u32 n, const u32* data) {{\n'  # lanes meet again afterwards
        f"  __shared__ u32 s[{THREADS}];\n  u32 t = threadIdx.x, v = f{k}(t, n, data);\n"
        f"  u32 w = __shfl_xor_sync(~0u, v, 5);\n  s[t] = w; __syncthreads();\n  out[t] = s[(t + 33) % {THREADS}];\n}}\n"
        for k in range(FUNCTIONS)
    )
    program = warpsmith.device("emulator", mode=mode).compile(body + kernels)
    data = np.random.default_rng(batch).integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    pointer = data.ctypes.data_as(ctypes.c_void_p)
    for k in range(FUNCTIONS):
        for n in (0, 13):
            want = np.array([oracle(k, t, n, pointer) for t in range(THREADS)], np.uint32)
            out = np.zeros(THREADS, np.uint32)
            program[f"k{k}"](3, THREADS // 3, out, n, data)
            assert np.array_equal(out, want), f"batch {batch} function {k} n {n}:\n{functions[k]}"
            program[f"s{k}"](1, THREADS, out, n, data)
            met = want.reshape(-1, 32)[:, np.arange(32) ^ 5].reshape(-1)
            assert np.array_equal(out, np.roll(met, -33)), (
                f"batch {batch} function {k} n {n} (shuffled):\n{functions[k]}"
            )
