"""The emulator behind the Device interface: compile text, launch on numpy arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...chips import Chip, load
from ...errors import KernelError, LaunchError, OutOfMemoryError, PtxError, UsageError
from ...ptx import ast
from ..base import Device, DeviceArray, Dim, Kernel, LaunchResult, Problem, Program
from . import abi, native
from .compiler import CompileOptions, compile_kernel
from .lowering.kernel import addressed_functions, param_layout

if TYPE_CHECKING:
    from .native import LaunchReport

ORDERS = {"ascending": 0, "descending": 1, "random": 2}
#: How tensor cores add: as the hardware does, bit for bit, or in plain f32 sums, about three times as fast.
NUMERICS = ("hardware", "fast")


class Emulator(Device):
    """An emulated chip.  There is one emulated memory in a process; devices of different chips share it."""

    def __init__(
        self,
        chip: str | Chip = "h200",
        *,
        mode: str = "check",
        threads: int = 0,
        order: str = "ascending",
        seed: int = 0,
        numerics: str = "hardware",
    ) -> None:
        if numerics not in NUMERICS:
            raise UsageError(f"numerics must be one of {', '.join(NUMERICS)}, not {numerics!r}")
        if mode not in ("check", "fast"):
            raise UsageError(f"mode must be 'check' or 'fast', not {mode!r}")
        if order not in ORDERS:
            raise UsageError(f"order must be one of {', '.join(ORDERS)}, not {order!r}")
        if not isinstance(chip, str | Chip):
            raise UsageError(f"chip is a name or a Chip, not {chip!r}")
        self.chip = load(chip) if isinstance(chip, str) else chip
        self.mode, self.numerics = mode, numerics
        self.runtime = native.load()
        self._options = native.options(threads=threads, check=mode == "check", order=ORDERS[order], seed=seed)

    def __repr__(self) -> str:
        return f"<emulated {self.chip.name}, mode {self.mode}>"

    def activate(self) -> None:
        """Make this device's chip and options the runtime's current ones."""
        self.runtime.init(self.chip, self._options)

    def compile(
        self, source: str, *, language: str | None = None, options: Sequence[str] = (), name: str = ""
    ) -> EmulatedProgram:
        if not isinstance(source, str):
            raise UsageError(f"compile() takes the text of a source, not a {type(source).__name__}")
        if isinstance(options, str):
            raise UsageError(f"options is a list: [{options!r}]")
        if "\n" not in source and source.endswith((".cu", ".ptx", ".cpp")):
            raise UsageError(f"compile() takes the text of a source, not its name: open({source!r}).read()")
        if language is None:
            language = "ptx" if ".version" in source and ".target" in source and ".address_size" in source else "cuda"
        if language == "cuda":
            from ...toolchains import auto

            source = auto.compile(source, chip=self.chip, options=list(options), name=name or "kernel.cu").text
        elif language != "ptx":
            raise UsageError(f"the emulator compiles 'cuda' and 'ptx', not {language!r}")
        return EmulatedProgram(self, source, name or "<ptx>")

    def array(self, values: Any) -> EmulatedArray:
        host = host_array(values)
        out = EmulatedArray(self, host.shape, host.dtype)
        out.set(host)
        return out

    def empty(self, shape: int | tuple[int, ...], dtype: Any = "float32") -> EmulatedArray:
        return EmulatedArray(self, (shape,) if isinstance(shape, int) else tuple(shape), np.dtype(dtype))


def host_array(values: Any) -> NDArray[Any]:
    """A numpy view of anything that exposes its memory on the host (array interface, buffer, DLPack), else a copy."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array_interface__") or hasattr(values, "__array__"):
        return np.asarray(values)
    if hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return np.asarray(values)


class EmulatedArray(DeviceArray):
    """See DeviceArray."""

    def __init__(self, device: Emulator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.device, self.shape, self.dtype = device, shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.address = 0
        device.activate()
        self.address = allocate(device.runtime, max(self.nbytes, 1), f"array{list(shape)} {dtype}")

    def numpy(self) -> NDArray[Any]:
        out = np.empty(self.shape, self.dtype)
        if out.nbytes:
            self.device.runtime.copy_out(out.ctypes.data, self.live_address(), out.nbytes)
        return out

    def set(self, values: Any) -> None:
        host = np.ascontiguousarray(np.broadcast_to(host_array(values), self.shape).astype(self.dtype, copy=False))
        if host.nbytes:
            self.device.runtime.copy_in(self.live_address(), host.ctypes.data, host.nbytes)

    def live_address(self) -> int:
        """The address; UsageError if the array was freed."""
        if not self.address:
            raise UsageError("this device array has been freed")
        return self.address

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<array {list(self.shape)} {self.dtype} on the emulated {self.device.chip.name}>"

    def free(self) -> None:
        if self.address:
            self.device.runtime.free(self.address)
            self.address = 0

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            try:
                self.free()
            except Exception:
                pass  # the runtime is gone: the interpreter is shutting down


def allocate(runtime: native.Runtime, size: int, label: str) -> int:
    address = runtime.malloc(size, label)
    if not address:
        raise OutOfMemoryError(f"the emulated chip has no {size} bytes left for {label}: {runtime.last_message()}")
    return address


class EmulatedProgram(Program):
    """A PTX module on the emulator: its variables live in device memory, kernels are compiled when first asked for."""

    def __init__(self, device: Emulator, text: str, name: str) -> None:
        from ...ptx.parser import parse

        self.device, self.text, self.name = device, text, name
        try:
            self.module = parse(text, name)
        except ast.PtxError as e:
            raise PtxError(str(e)) from e
        self.kernels = tuple(self.module.kernels)
        self.variables: dict[str, int] = {}
        self._kernels: dict[str, EmulatedKernel] = {}
        device.activate()
        self._place_variables()

    def _place_variables(self) -> None:
        runtime = self.device.runtime
        every = [v for v in self.module.variables.values() if v.space in ("global", "const")]
        every += [v for f in self.module.functions.values() for v in f.variables if v.space in ("global", "const")]
        for v in every:
            self.variables[v.name] = allocate(runtime, max(v.size, 1), f"variable {v.name}")
        functions = {n: abi.FUNCTION_BASE + 16 * i for i, n in enumerate(addressed_functions(self.module))}
        for v in every:
            data = bytearray((v.init or b"").ljust(v.size, b"\0"))
            for offset, symbol, addend, _ in v.relocs:
                target = self.variables.get(symbol, functions.get(symbol))
                if target is None:
                    raise PtxError(f"{self.name}: variable {v.name} refers to unknown {symbol}")
                data[offset : offset + 8] = (target + addend).to_bytes(8, "little")
            if data:
                runtime.copy_in(self.variables[v.name], (ctypes.c_char * len(data)).from_buffer(data), len(data))
            if v.space == "const":
                runtime.set_readonly(self.variables[v.name])

    def variable(self, name: str) -> int:
        """The device address of a __device__ or __constant__ variable."""
        return self.variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __getitem__(self, kernel: str) -> EmulatedKernel:
        if not isinstance(kernel, str):
            raise UsageError(f"a kernel is asked for by its name, not by {kernel!r}")
        if kernel not in self._kernels:
            name = kernel
            if name not in self.module.kernels:
                near = [k for k in self.kernels if f"{len(kernel)}{kernel}" in k]  # a C++ name inside a mangled one
                if len(near) != 1:
                    raise UsageError(
                        f"no kernel named {kernel} in {self.name} (it has: {', '.join(self.kernels) or 'none'})"
                    )
                name = near[0]
            self._kernels[kernel] = EmulatedKernel(self, name)
        return self._kernels[kernel]

    def __del__(self) -> None:
        runtime = getattr(getattr(self, "device", None), "runtime", None)
        for address in getattr(self, "variables", {}).values():
            try:
                if runtime is not None:
                    runtime.free(address)
            except Exception:
                pass  # the interpreter is shutting down


class EmulatedKernel(Kernel):
    """See Kernel."""

    def __init__(self, program: EmulatedProgram, name: str) -> None:
        self.program, self.name = program, name
        self.device = program.device
        self.function = program.module.functions[name]
        options = CompileOptions(check=self.device.mode == "check", numerics=self.device.numerics)
        self.compiled = compile_kernel(program.module, name, options, text=program.text)
        self._engine, self.info = native.load_object(self.compiled.object, self.compiled.info_symbol)
        self.offsets, self.param_bytes = param_layout(self.function)
        runtime = self.device.runtime
        addresses = [program.variables[v] for v in runtime.var_names(self.info)]
        self._vars = (ctypes.c_uint64 * max(len(addresses), 1))(*addresses)

    def __call__(self, grid: Dim, block: Dim, *args: Any, shared: int = 0, cooperative: bool = False) -> LaunchResult:
        runtime = self.device.runtime
        self.device.activate()
        params = self.function.params
        if len(args) != len(params):
            raise LaunchError(f"kernel {self.name} takes {len(params)} arguments, {len(args)} given")
        buffer = bytearray(max(self.param_bytes, 1))
        arrays: list[tuple[NDArray[Any], EmulatedArray, int]] = []
        try:
            # Bigger arrays first: others may be parts of them.
            order = sorted(range(len(args)), key=lambda k: -getattr(args[k], "nbytes", 0))
            for k in order:
                p, at = params[k], self.offsets[params[k].name]
                buffer[at : at + p.size] = self._argument(k, p, args[k], arrays)
            report = runtime.launch(
                self.info, self._vars, three(grid), three(block), shared, cooperative, bytes(buffer)
            )
            self._raise(report)
            for host, dev, k in arrays:
                if host.flags.writeable:
                    host[...] = dev.numpy()
                elif dev.numpy().tobytes() != np.ascontiguousarray(host).tobytes():
                    raise LaunchError(
                        f"argument {k} of {self.name} was written to, but it is a list or a read-only array: the result is lost"
                    )
        finally:
            for _, dev, _ in arrays:
                dev.free()
        return LaunchResult(
            self.name,
            three(grid),
            three(block),
            report.blocks,
            report.threads,
            report.warps,
            report.instructions,
            report.nanoseconds / 1e9,
        )

    def _argument(
        self, k: int, p: ast.Param, value: Any, arrays: list[tuple[NDArray[Any], EmulatedArray, int]]
    ) -> bytes:
        if isinstance(value, EmulatedArray):
            return self._sized(k, p, value.live_address().to_bytes(8, "little"))
        if isinstance(value, DeviceArray):
            return self._sized(k, p, value.address.to_bytes(8, "little"))
        if isinstance(value, bytes | np.void | ctypes.Structure):
            return self._sized(k, p, value.tobytes() if isinstance(value, np.void) else bytes(value))
        if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.names:
            return self._sized(k, p, value.tobytes())
        if isinstance(value, bool | int | float | np.generic):
            return self._scalar(k, p, value)
        if opaque(p):
            raise LaunchError(
                f"argument {k} of {self.name} is a structure of {p.size} bytes passed by value: give bytes, a numpy record "
                f"(np.void) or a ctypes.Structure, not a {type(value).__name__}"
            )
        try:
            host = host_array(value)
        except (TypeError, ValueError) as e:
            raise LaunchError(f"argument {k} of {self.name}: cannot pass a {type(value).__name__} ({e})") from None
        if host.dtype.hasobject or host.dtype.kind not in "biufcV" or not host.dtype.isnative:
            raise LaunchError(f"argument {k} of {self.name}: cannot pass a {type(value).__name__} of {host.dtype}")
        for other, dev, j in arrays:
            if np.may_share_memory(host, other):
                return self._sized(k, p, self._within(host, k, other, dev, j).to_bytes(8, "little"))
        if isinstance(value, list | tuple):  # nothing could come back into it
            host.flags.writeable = False
        dev = self.device.array(np.ascontiguousarray(host))
        arrays.append((host, dev, k))
        return self._sized(k, p, dev.address.to_bytes(8, "little"))

    def _within(self, host: NDArray[Any], k: int, other: NDArray[Any], dev: EmulatedArray, j: int) -> int:
        """The address of an array that lies in the memory of one that was copied to the device already."""
        start = host.ctypes.data - other.ctypes.data
        inside = start >= 0 and start + host.nbytes <= other.nbytes
        if not (inside and host.flags.c_contiguous and other.flags.c_contiguous):
            raise LaunchError(
                f"arguments {j} and {k} of {self.name} share memory, and {k} is no contiguous part of {j}: copy them to the "
                "device first (dev.array)"
            )
        return dev.address + start

    def _scalar(self, k: int, p: ast.Param, value: bool | int | float | np.generic) -> bytes:
        """A number as the parameter's type has it; the type is not known for ``.b32`` and the like: the number's decides."""
        is_float = isinstance(value, float | np.floating) or is_small_float(value)
        if opaque(p) and not (isinstance(value, float | np.generic) and p.size in (1, 2)):
            raise LaunchError(
                f"argument {k} of {self.name} is {p.size} opaque bytes (a structure or __half): give bytes, a numpy record or a "
                f"numpy scalar of that size such as np.float16(2), not {value!r}"
            )
        if isinstance(value, np.generic) and (opaque(p) or p.type[0] == "b"):
            return self._sized(k, p, value.tobytes())
        if p.type in ("f16", "f32", "f64") or (is_float and p.type[0] == "b"):
            if p.size not in FLOATS:
                raise LaunchError(f"argument {k} of {self.name}: a float for a parameter of {p.size} bytes")
            return np.array(float(value), FLOATS[p.size]).tobytes()
        if is_float:
            raise LaunchError(f"argument {k} of {self.name}: {value!r} for an integer parameter (.{p.type})")
        number = int(value)
        if not -(1 << 8 * p.size - 1) <= number < 1 << 8 * p.size:
            raise LaunchError(f"argument {k} of {self.name}: {value} does not fit in {p.size} bytes")
        return (number & (1 << 8 * p.size) - 1).to_bytes(p.size, "little")

    def _sized(self, k: int, p: ast.Param, data: bytes) -> bytes:
        if len(data) != p.size:
            raise LaunchError(f"argument {k} of {self.name} has {len(data)} bytes, the parameter {p.size}")
        return data

    def _raise(self, report: LaunchReport) -> None:
        e = report.error
        if e is None:
            return
        if e.kind == "interrupt":
            raise KeyboardInterrupt
        if e.kind == "launch":
            raise LaunchError(e.message)
        raise KernelProblem(e)


class KernelProblem(KernelError):
    """A KernelError with its parts: see Problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}


def opaque(p: ast.Param) -> bool:
    """True for a parameter of which PTX knows only the size: a structure by value, ``__half``."""
    return p.type == "b8" and p.size > 0


def is_small_float(value: Any) -> bool:
    """True for bfloat16 and the 8-bit floats of ml_dtypes, which numpy does not count as floats."""
    return isinstance(value, np.generic) and value.dtype.kind in "fV" and "float" in value.dtype.name


def three(dim: Dim) -> tuple[int, int, int]:
    """1 to 3 sizes as exactly three."""
    try:
        sizes = (dim,) if isinstance(dim, int | np.integer) else tuple(dim)
    except TypeError:
        sizes = ()
    if not 1 <= len(sizes) <= 3 or any(not isinstance(s, int | np.integer) or s < 1 or s >= 1 << 32 for s in sizes):
        raise LaunchError(f"grid and block sizes are 1 to 3 positive integers, not {dim!r}")
    x, y, z = (*(int(s) for s in sizes), 1, 1)[:3]
    return x, y, z
