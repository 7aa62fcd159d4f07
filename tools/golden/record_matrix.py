"""Records what a GPU answers to the kernels of tests/emulator/matrix_forms.py: ``python record_matrix.py OUT [FACTOR]``

Needs an NVIDIA GPU of compute capability 9.0, its driver, and numpy.  Writes OUT/mma.npz, mma_sparse.npz, mma_quad.npz,
mma_wmma.npz and mma_wgmma.npz (results by "form|category", with a checksum of the inputs, which are made again from their
seeds), mma_layouts.npz (which element of the matrix each register of a wmma fragment holds), and mma.json (where and when).
With a FACTOR, so many times the usual number of inputs.
"""

from __future__ import annotations

import ctypes
import datetime
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests" / "emulator"))

import matrix_forms as forms

Array = np.ndarray[Any, Any]


class Cuda:
    """As much of the driver's interface as is needed."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *args: Any) -> None:
        code = getattr(self.lib, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def name(self) -> str:
        text = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", text, 100, self.device)
        return text.value.decode()

    def driver(self) -> int:
        v = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(v))
        return v.value

    def module(self, ptx: str) -> ctypes.c_void_p:
        m = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(m), ctypes.c_char_p(ptx.encode()))
        return m

    def launch(self, module: ctypes.c_void_p, kernel: str, grid: int, block: int, arrays: list[Array]) -> None:
        """Arrays are passed by address and come back as the kernel left them."""
        f = ctypes.c_void_p()
        assert all(a.flags.c_contiguous for a in arrays)
        self.call("cuModuleGetFunction", ctypes.byref(f), module, kernel.encode())
        pointers = []
        for a in arrays:
            p = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(max(a.nbytes, 256)))
            self.call("cuMemcpyHtoD_v2", p, a.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(a.nbytes))
            pointers.append(p)
        params = (ctypes.c_void_p * len(pointers))(*(ctypes.addressof(p) for p in pointers))
        self.call("cuLaunchKernel", f, grid, 1, 1, block, 1, 1, 0, None, params, None)
        self.call("cuCtxSynchronize")
        for a, p in zip(arrays, pointers, strict=True):
            self.call("cuMemcpyDtoH_v2", a.ctypes.data_as(ctypes.c_void_p), p, ctypes.c_size_t(a.nbytes))
            self.call("cuMemFree_v2", p)


def record(cuda: Cuda, group: forms.Group, factor: int) -> dict[str, tuple[Array, int]]:
    out: dict[str, tuple[Array, int]] = {}
    for form in group.forms:
        module = cuda.module(forms.HEADER + forms.kernel(form))
        for category in group.categories(form):
            n = group.count * factor
            args = forms.operands(form, category, n)
            a, b, c, e = args
            d = forms.result_array(form, n)
            cuda.launch(module, "k", n, form.lanes, [a, b, c, d, e])
            out[f"{form}|{category}"] = d, forms.checksum(args)
    return out


def layouts(cuda: Cuda) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for (shape, element), (na, nb) in forms.WMMA_REGS.items():
        m, n, k = forms.sizes(shape)
        for which, rows, cols, regs in (("a", m, k, na), ("b", k, n, nb)):
            for layout in ("row", "col"):
                if element in ("s4", "u4", "b1") and layout != ("row" if which == "a" else "col"):
                    continue
                out[f"{which}.{layout}.{shape}.{element}"] = fragment(
                    cuda, which, layout, shape, element, rows, cols, regs
                )
        accumulators = {"f16": ("f16", "f32"), "f64": ("f64",)}.get(
            element, ("s32",) if element[0] in "su" or element == "b1" else ("f32",)
        )
        for c in accumulators:
            for layout in ("row", "col"):
                regs = forms.wmma_c_regs(shape, c)
                out[f"c.{layout}.{shape}.{c}"] = fragment(cuda, "c", layout, shape, c, m, n, regs)
                out[f"d.{layout}.{shape}.{c}"] = stored(cuda, layout, shape, c, m, n, regs)
    return out


def kernel_of(body: list[str]) -> str:
    text = "\n".join(body)
    return f"{forms.HEADER}.visible .entry k(.param .u64 p0, .param .u64 p1)\n{{\n{text}\nret;\n}}\n"


def head(element: str, regs: int) -> list[str]:
    ty = forms.register_type(element)
    return [
        f".reg .{ty} %x<{regs}>;", ".reg .b64 %p<2>;", ".reg .b32 %lane, %s;", "mov.u32 %lane, %tid.x;",
        "ld.param.u64 %p0, [p0];", "ld.param.u64 %p1, [p1];", f"mad.wide.u32 %p1, %lane, {8 if element == 'f64' else 4}, %p1;",
    ]  # fmt: skip


def fragment(cuda: Cuda, which: str, layout: str, shape: str, element: str, rows: int, cols: int, regs: int) -> Array:
    """Number of the element (row * columns + column) in ``[register][lane][place]``."""
    ty, bits = forms.register_type(element), forms.BITS[element]
    stride = cols if layout == "row" else rows
    xs = ", ".join(f"%x{r}" for r in range(regs))
    body = [
        *head(element, regs),
        f"wmma.load.{which}.sync.aligned.{layout}.{shape}.global.{element} {{{xs}}}, [%p0], {stride};",
    ]
    body += [f"st.global.{ty} [%p1+{r * 32 * (8 if ty == 'f64' else 4)}], %x{r};" for r in range(regs)]
    module = cuda.module(kernel_of(body))
    number = np.arange(rows * cols, dtype=np.uint64).reshape(rows, cols)
    number = number if layout == "row" else number.T
    flat = np.ascontiguousarray(number).reshape(-1)
    per = max(1, 32 // bits)
    found = np.zeros((regs, 32, per), np.uint64)
    for shift in range(0, 12, min(bits, 12)):
        part = (flat >> np.uint64(shift)) & np.uint64((1 << min(bits, 12)) - 1)
        if bits < 8:
            group = part.reshape(-1, 32 // bits)
            memory = (
                (group << (np.arange(32 // bits, dtype=np.uint64) * np.uint64(bits)))
                .sum(-1, dtype=np.uint64)
                .astype(np.uint32)
            )
        else:
            memory = part.astype({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits])
        result = np.zeros((regs, 32), np.uint64 if ty == "f64" else np.uint32)
        cuda.launch(module, "k", 1, 32, [memory, result])
        for i in range(per):
            found[:, :, i] |= (
                (result.astype(np.uint64) >> np.uint64(i * bits % 64)) & np.uint64((1 << min(bits, 12)) - 1)
            ) << np.uint64(shift)
    return found.astype(np.uint16)


def stored(cuda: Cuda, layout: str, shape: str, element: str, rows: int, cols: int, regs: int) -> Array:
    """Which register, lane and place (as one number) every element of the matrix comes from."""
    ty, bits = forms.register_type(element), forms.BITS[element]
    stride = cols if layout == "row" else rows
    xs = ", ".join(f"%x{r}" for r in range(regs))
    body = head(element, regs)
    body += [f"ld.global.{ty} %x{r}, [%p1+{r * 32 * (8 if ty == 'f64' else 4)}];" for r in range(regs)]
    body.append(f"wmma.store.d.sync.aligned.{layout}.{shape}.global.{element} [%p0], {{{xs}}}, {stride};")
    per = max(1, 32 // bits)
    number = np.arange(regs * 32 * per, dtype=np.uint64).reshape(regs, 32, per)
    words = (number << (np.arange(per, dtype=np.uint64) * np.uint64(bits))).sum(-1, dtype=np.uint64)
    registers = words.astype(np.uint64 if ty == "f64" else np.uint32)
    memory = np.zeros(rows * cols, {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits])
    cuda.launch(cuda.module(kernel_of(body)), "k", 1, 32, [memory, registers])
    matrix = memory.reshape(rows, cols) if layout == "row" else memory.reshape(cols, rows).T
    return np.ascontiguousarray(matrix).astype(np.uint16)


def main() -> int:
    out = Path(sys.argv[1])
    factor = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    out.mkdir(parents=True, exist_ok=True)
    cuda = Cuda()
    np.savez_compressed(out / "mma_layouts.npz", **layouts(cuda))
    for group in forms.groups():
        forms.save_answers(out / f"{group.file}.npz", record(cuda, group, factor))
        print(group.file, len(group.forms), "forms", flush=True)
    about = {
        "gpu": cuda.name(), "driver": cuda.driver(), "recorded": datetime.date.today().isoformat(), "factor": factor,
        "how": "tools/golden/record_matrix.py", "inputs": "tests/emulator/matrix_forms.py, by seed",
    }  # fmt: skip
    (out / "mma.json").write_text(json.dumps(about, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
