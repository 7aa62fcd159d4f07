"""A real GPU through NVIDIA's driver library, by ctypes: load code, launch, copy."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np

from .kernels import Kernel, inputs
from .operands import BLOCK, Array
from .toolchain import Refused

# CUjit_option
ERROR_LOG, ERROR_LOG_SIZE, OPTIMIZATION_LEVEL = 5, 6, 7


def library() -> ctypes.CDLL:
    """The driver, where the loader or the usual folders have it."""
    for name in ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise SystemExit("no NVIDIA driver here: libcuda.so.1 is not found")


class Gpu:
    """The first GPU."""

    def __init__(self) -> None:
        self.cuda = library()
        self.call("cuInit", c_uint(0))
        device, self.context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), c_int(0))
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, c_int(128), device)
        self.name = name.value.decode()
        major, minor = c_int(), c_int()
        self.call("cuDeviceGetAttribute", byref(major), c_int(75), device)
        self.call("cuDeviceGetAttribute", byref(minor), c_int(76), device)
        self.capability = f"{major.value}.{minor.value}"

    def call(self, function: str, *arguments: Any) -> None:
        code = getattr(self.cuda, function)(*arguments)
        if code:
            text = c_char_p()
            self.cuda.cuGetErrorString(code, byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'?').decode()} ({code})")

    def describe(self) -> dict[str, str]:
        """What the results may depend on."""
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        wanted = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
        try:
            run = subprocess.run(
                ["nvidia-smi", f"--query-gpu={wanted}", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                check=True,
            )
            values = [v.strip() for v in run.stdout.splitlines()[0].split(",")]
        except (OSError, subprocess.CalledProcessError, IndexError):
            values = ["?"] * 5
        found = dict(
            zip(("driver", "clock_sm", "clock_memory", "clock_sm_max", "clock_memory_max"), values, strict=True)
        )
        return {
            "chip": self.name,
            "compute_capability": self.capability,
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
            **found,
        }

    def compile(self, ptx: str, level: int) -> c_void_p:
        """A module from PTX text, by the driver's own compiler."""
        log = ctypes.create_string_buffer(1 << 20)
        options = (c_int * 3)(ERROR_LOG, ERROR_LOG_SIZE, OPTIMIZATION_LEVEL)
        values = (c_void_p * 3)(ctypes.cast(log, c_void_p).value, len(log), level)
        module = c_void_p()
        code = self.cuda.cuModuleLoadDataEx(byref(module), ptx.encode() + b"\0", c_uint(3), options, values)
        if code:
            raise Refused(log.value.decode(errors="replace") or f"cuModuleLoadDataEx: error {code}")
        return module

    def load(self, cubin: bytes) -> c_void_p:
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), cubin)
        return module

    def allocate(self, size: int) -> c_uint64:
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(max(size, 1)))
        return pointer

    def upload(self, values: Array) -> c_uint64:
        pointer = self.allocate(values.nbytes)
        self.call("cuMemcpyHtoD_v2", pointer, c_void_p(values.ctypes.data), c_size_t(values.nbytes))
        return pointer

    def launch(self, module: c_void_p, kernel: Kernel) -> bytes:
        """What a kernel writes."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, kernel.name.encode())
        columns = [np.ascontiguousarray(v) for v in inputs(kernel)]
        result, scratch = self.allocate(kernel.size), self.allocate(16 * kernel.sets)
        pointers = [*(self.upload(v) for v in columns), result, scratch]
        self.call("cuMemsetD8_v2", result, ctypes.c_ubyte(0), c_size_t(max(kernel.size, 1)))
        self.call("cuMemsetD8_v2", scratch, ctypes.c_ubyte(0), c_size_t(16 * kernel.sets))
        arguments = (c_void_p * len(pointers))(*(ctypes.addressof(p) for p in pointers))
        sizes = (c_uint(kernel.blocks), c_uint(1), c_uint(1), c_uint(BLOCK), c_uint(1), c_uint(1))
        self.call("cuLaunchKernel", function, *sizes, c_uint(0), c_void_p(), arguments, c_void_p())
        self.call("cuCtxSynchronize")
        out = np.empty(max(kernel.size, 1), np.uint8)
        self.call("cuMemcpyDtoH_v2", c_void_p(out.ctypes.data), result, c_size_t(out.nbytes))
        for p in pointers:
            self.call("cuMemFree_v2", p)
        return out.tobytes()
