"""Launches the hand-written kernels of runtime_kernels.cpp on the native runtime, without compiler and PTX."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith import chips
from warpsmith.devices.emulator import native
from warpsmith.toolchains.native import PACKAGE, compiler

HERE = Path(__file__).parent
KERNELS = HERE / "runtime_kernels.cpp"
INCLUDE = PACKAGE / "devices/emulator/runtime"


def build(target: Path) -> None:
    flags = ["-O1", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{INCLUDE}"]
    subprocess.run([compiler(), *flags, str(KERNELS), "-o", str(target)], check=True)


@cache
def _library() -> ctypes.CDLL:
    native.load()
    folder = tempfile.TemporaryDirectory(prefix="warpsmith-test-")
    build(Path(folder.name) / "kernels.so")
    library = ctypes.CDLL(str(Path(folder.name) / "kernels.so"))
    folder.cleanup()
    return library


def kernel(name: str) -> Any:
    return ctypes.pointer(native.KernelInfo.in_dll(_library(), f"info_{name}"))


def setup(chip: str = "h200", **options: Any) -> native.Runtime:
    runtime = native.load()
    runtime.init(chips.load(chip), native.options(**options))
    return runtime


def launch(name: str, grid: Any, block: Any, params: bytes = b"", **more: Any) -> native.LaunchReport:
    return native.load().launch(kernel(name), None, three(grid), three(block), params=params, **more)


def three(n: Any) -> Any:
    return (n, 1, 1) if isinstance(n, int) else n


def run(name: str, grid: Any, block: Any, params: bytes = b"", **more: Any) -> native.LaunchReport:
    """A launch that must go well."""
    report = launch(name, grid, block, params, **more)
    assert report.error is None, report.error.message
    return report


def pack(layout: str, *values: Any) -> bytes:
    """Kernel parameters with the alignment of a C structure."""
    return struct.pack("@" + layout, *values)


def child(body: str, ready: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    first = ["import ctypes", "from runtime_host import *", "rt = setup()" if ready else ""]
    code = "\n".join([*first, textwrap.dedent(body)])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env)


class Buffer:
    """Device memory that holds a numpy array."""

    def __init__(self, values: Any, label: str = "") -> None:
        host = np.ascontiguousarray(values)
        self.shape, self.dtype, self.size = host.shape, host.dtype, host.nbytes
        self.address = native.load().malloc(max(host.nbytes, 1), label)
        assert self.address, native.load().last_message()
        native.load().copy_in(self.address, host.ctypes.data, host.nbytes)

    def numpy(self) -> np.ndarray[Any, Any]:
        out = np.empty(self.shape, self.dtype)
        native.load().copy_out(out.ctypes.data, self.address, out.nbytes)
        return out

    def free(self) -> None:
        native.load().free(self.address)


@contextmanager
def buffers(*arrays: Any) -> Iterator[Any]:
    """Buffers for a test, freed after it; a single one comes alone."""
    made = [Buffer(a) for a in arrays]
    try:
        yield made[0] if len(made) == 1 else made
    finally:
        for b in made:
            b.free()


def zeros(n: int, dtype: Any = np.uint32) -> np.ndarray[Any, Any]:
    return np.zeros(n, dtype)
