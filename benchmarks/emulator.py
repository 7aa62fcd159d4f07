"""Speed of the emulator against its peers, in one run: ``python benchmarks/emulator.py [--json FILE] [names...]``

Peers, each on the largest size that it can finish: Numba's CUDA simulator (one Python thread a CUDA thread) and Triton's
interpreter (one program after the other in numpy).  A peer that is not installed is named and left out:
``pip install numba triton torch``.  Times are medians of runs after compilation, in seconds of this machine;
they say nothing about the time that a GPU would take.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import warpsmith

SOURCE = r"""#include <math.h>
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    as[y][x] = a[row * n + t + x];
    bs[y][x] = b[(t + y) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float part[8];
  const float* row = x + (long)blockIdx.x * cols;
  float m = -INFINITY, s = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  m = part[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, part[w]);
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += blockDim.x) s += __expf(row[i] - m);
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) s += part[w];
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[(long)blockIdx.x * cols + i] = __expf(row[i] - m) / s;
}
extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
extern "C" __global__ void reduce(const float* x, float* out, int n) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
  __shared__ float part[32];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x == 0) out[blockIdx.x] = s;
  }
}
extern "C" __global__ void arithmetic(float* out, int n) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3; unsigned e = threadIdx.x, f = e * 7, g = e ^ 5, h = e + 9;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      a = a * 0.5f + b; b = b * 0.25f + c; c = c * 0.125f + d; d = d * 0.5f + a;
      e = e * 3 + f; f = f ^ (g << 1); g = g + h; h = h * 5 + e;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d + (float)(e + f + g + h);
}
"""


def median(f: Callable[[], object], budget: float = 2.0) -> float:
    """Median seconds of repeated calls (at least 3, about ``budget`` seconds)."""
    f()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < budget and len(times) < 50):
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return statistics.median(times)


class Bench:
    """The workloads on one device, data resident on it; each returns (seconds of a launch, instructions)."""

    def __init__(self, mode: str, threads: int) -> None:
        self.dev = warpsmith.device("emulator", chip="h200", mode=mode, threads=threads)
        self.program = self.dev.compile(SOURCE, name="emulator_bench.cu")
        self.rng = np.random.default_rng(0)

    def launch(self, kernel: str, grid: object, block: object, *args: object) -> tuple[float, int]:
        k = self.program[kernel]
        results = []

        def once() -> None:
            results.append(k(grid, block, *args))

        median(once)
        return statistics.median(r.seconds for r in results[1:]), results[0].instructions

    def array(self, *shape: int) -> object:
        return self.dev.array(self.rng.standard_normal(shape, dtype=np.float32))

    def vector_add(self, n: int) -> tuple[float, int]:
        a, b, c = self.array(n), self.array(n), self.array(n)
        r = self.launch("vector_add", (n + 255) // 256, 256, a, b, c, n)
        assert np.array_equal(c.numpy(), a.numpy() + b.numpy())
        return r

    def matmul(self, n: int) -> tuple[float, int]:
        a, b, c = self.array(n, n), self.array(n, n), self.array(n, n)
        r = self.launch("matmul", (n // 16, n // 16), (16, 16), a, b, c, n)
        assert np.allclose(c.numpy(), a.numpy().astype(np.float64) @ b.numpy(), atol=1e-3)
        return r

    def softmax(self, n: int) -> tuple[float, int]:
        x, y = self.array(n, n), self.array(n, n)
        r = self.launch("softmax", n, 256, x, y, n)
        e = np.exp(x.numpy().astype(np.float64))
        assert np.allclose(y.numpy(), e / e.sum(1, keepdims=True), rtol=1e-4)
        return r

    def histogram(self, n: int) -> tuple[float, int]:
        x = self.rng.integers(0, 256, n).astype(np.uint8)
        dx, bins = self.dev.array(x), self.dev.array(np.zeros(256, np.uint32))
        r = self.launch("histogram", 264, 256, dx, bins, n)
        runs = bins.numpy().sum() // n
        assert (bins.numpy() == runs * np.bincount(x, minlength=256)).all()
        return r

    def reduce(self, n: int) -> tuple[float, int]:
        x, out = self.array(n), self.array(264)
        r = self.launch("reduce", 264, 256, x, out, n)
        assert abs(out.numpy().astype(np.float64).sum() - x.numpy().astype(np.float64).sum()) < 1e-3 * n**0.5
        return r

    def arithmetic(self, n: int) -> tuple[float, int]:
        out = self.array(64 * 256)
        return self.launch("arithmetic", 64, 256, out, n)


WORK: list[tuple[str, str, int]] = [
    ("vector add 2^16", "vector_add", 1 << 16),
    ("vector add 2^24", "vector_add", 1 << 24),
    ("matmul 256, 16x16 tiles", "matmul", 256),
    ("matmul 1024, 16x16 tiles", "matmul", 1024),
    ("softmax 1024x1024", "softmax", 1024),
    ("histogram 2^22", "histogram", 1 << 22),
    ("reduce 2^24 by shuffles", "reduce", 1 << 24),
    ("arithmetic, 16384 threads", "arithmetic", 400),
]

NUMBA = r"""
import sys, time
import numpy as np
from numba import cuda, float32

@cuda.jit
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size: c[i] = a[i] + b[i]

@cuda.jit
def matmul(a, b, c, n):
    s = cuda.shared.array((16, 16), float32)
    t = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 16 + y, cuda.blockIdx.x * 16 + x
    acc = float32(0)
    for k in range(0, n, 16):
        s[y, x] = a[row, k + x]
        t[y, x] = b[k + y, col]
        cuda.syncthreads()
        for j in range(16): acc += s[y, j] * t[j, x]
        cuda.syncthreads()
    c[row, col] = acc

what, n = sys.argv[1], int(sys.argv[2])
if what == "vector_add":
    a, b, c = (np.ones(n, np.float32) for _ in range(3))
    t = time.perf_counter(); vector_add[(n + 255) // 256, 256](a, b, c); t = time.perf_counter() - t
    assert (c == 2).all()
else:
    a, b, c = (np.ones((n, n), np.float32) for _ in range(3))
    t = time.perf_counter(); matmul[(n // 16, n // 16), (16, 16)](a, b, c, n); t = time.perf_counter() - t
    assert (c == n).all()
print(t)
"""

TRITON = r"""
import sys, time
import torch, triton, triton.language as tl

@triton.jit
def vector_add(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(z + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)

@triton.jit
def matmul(a, b, c, n, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    s = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, n, B):
        q = k + tl.arange(0, B)
        acc += tl.dot(tl.load(a + r[:, None] * n + q[None, :]), tl.load(b + q[:, None] * n + s[None, :]))
    tl.store(c + r[:, None] * n + s[None, :], acc)

@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, B)
    v = tl.load(x + i)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + i, e / tl.sum(e, axis=0))

what, n = sys.argv[1], int(sys.argv[2])
times = []
for _ in range(3):
    if what == "vector_add":
        x, y, z = (torch.ones(n) for _ in range(3))
        t = time.perf_counter(); vector_add[((n + 1023) // 1024,)](x, y, z, n, B=1024); times.append(time.perf_counter() - t)
        assert (z == 2).all()
    elif what == "matmul":
        x, y, z = (torch.ones(n, n) for _ in range(3))
        t = time.perf_counter(); matmul[(n // 16, n // 16)](x, y, z, n, B=16); times.append(time.perf_counter() - t)
        assert (z == n).all()
    else:
        x, z = torch.ones(n, n), torch.zeros(n, n)
        t = time.perf_counter(); softmax[(n,)](x, z, n, B=n); times.append(time.perf_counter() - t)
        assert (abs(z - 1 / n) < 1e-6).all()
print(sorted(times)[1])
"""

#: Peer runs: workload, its size for us, peer, the size that the peer can finish in a minute or so, its script and module.
PEERS = [
    ("vector_add", 1 << 16, "Numba's CUDA simulator", 1 << 16, NUMBA, "numba", {"NUMBA_ENABLE_CUDASIM": "1"}),
    ("matmul", 64, "Numba's CUDA simulator", 64, NUMBA, "numba", {"NUMBA_ENABLE_CUDASIM": "1"}),
    ("vector_add", 1 << 24, "Triton's interpreter, BLOCK 1024", 1 << 24, TRITON, "triton", {"TRITON_INTERPRET": "1"}),
    ("matmul", 256, "Triton's interpreter, 16x16 tiles", 256, TRITON, "triton", {"TRITON_INTERPRET": "1"}),
    ("softmax", 1024, "Triton's interpreter, a row a program", 1024, TRITON, "triton", {"TRITON_INTERPRET": "1"}),
]


def compile_time() -> dict[str, float]:
    """Seconds from PTX text to native code for a kernel of about 1,000 instructions (not from the cache)."""
    from warpsmith.devices.emulator.compiler import CompileOptions, emit_object, lower_kernel
    from warpsmith.ptx.parser import parse
    from warpsmith.toolchains import nvrtc

    text = nvrtc.compile(SOURCE.replace("k < 8", "k < 100"), name="unrolled.cu", chip=warpsmith.device().chip).text
    emit_object(lower_kernel(parse(text), "vector_add", CompileOptions()), CompileOptions())  # LLVM itself is loaded
    start = time.perf_counter()
    module = parse(text)
    ir = lower_kernel(module, "arithmetic", CompileOptions())
    emit_object(ir, CompileOptions())
    seconds = time.perf_counter() - start
    return {"instructions": sum(1 for _ in module.functions["arithmetic"].instructions()), "seconds": seconds}


def peer(what: str, n: int, script: str, env: dict[str, str]) -> float:
    """Seconds that a peer takes, measured in a process of its own."""
    import tempfile

    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "peer.py"
        path.write_text(script)
        out = subprocess.run(
            [sys.executable, str(path), what, str(n)], env={**os.environ, **env}, capture_output=True, text=True
        )
    if out.returncode:
        raise RuntimeError(out.stderr.strip().splitlines()[-1])
    return float(out.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    wanted = [w for w in WORK if not args.names or any(n in w[0] for n in args.names)]
    rows: list[dict[str, object]] = []
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.processor() or platform.machine()}, {cores} cores, Python {platform.python_version()}")
    print(f"\n{'':28}{'fast':>10}{'check':>10}{'1 core':>10}{'speed-up':>10}{'warp-instr/s and core':>24}")
    fast, check, single = Bench("fast", 0), Bench("check", 0), Bench("fast", 1)
    for title, name, n in wanted:
        t_fast, count = getattr(fast, name)(n)
        t_check, _ = getattr(check, name)(n)
        t_one, _ = getattr(single, name)(n)
        rows.append({"name": title, "fast": t_fast, "check": t_check, "one_core": t_one, "instructions": count})
        print(
            f"{title:28}{t_fast:>9.4f}s{t_check:>9.4f}s{t_one:>9.4f}s{t_one / t_fast:>10.2f}{count / t_one / 1e6:>21.0f} M"
        )
    if not args.names:
        made = compile_time()
        rows.append({"name": "compile", **made})
        print(f"\ncompiling a kernel of {made['instructions']:.0f} PTX instructions: {made['seconds']:.2f} s (then cached)")
    if not args.no_peers:
        print("\nAgainst peers (seconds; ratio = peer / warpsmith in check mode):")
        for name, n, title, size, script, module, env in PEERS:
            if args.names and not any(name in a or a in name for a in args.names):
                continue
            if importlib.util.find_spec(module) is None:
                print(
                    f"  {name} {size}: {title}: not installed (pip install {'triton torch' if module == 'triton' else module})"
                )
                continue
            ours, _ = getattr(check, name)(n)
            theirs = peer(name, size, script, env)
            rows.append(
                {
                    "name": name,
                    "size": size,
                    "peer": title,
                    "peer_seconds": theirs,
                    "check": ours,
                    "ratio": theirs / ours,
                }
            )
            print(f"  {name} {size}: {title} {theirs:.3f}, warpsmith {ours:.4f}: {theirs / ours:.0f} x")
    if args.json:
        args.json.write_text(json.dumps({"machine": platform.processor(), "cores": cores, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
