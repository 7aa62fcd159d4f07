"""The native runtime (runtime/*.cpp) through ctypes.

The structures are those of ``runtime/api.h``.  The library is built with the package; from a source tree
whose runtime has changed, and where it is missing altogether, it is built on first use.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_char, c_char_p, c_int, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...chips import Chip
from ...errors import HostCompilerError, WarpsmithError
from ..base import Problem
from . import abi

HERE = Path(__file__).parent
#: Fresh memory reads as NaN in every floating-point type, and as -1.
POISON = 0xFF
NO_SITE = 0xFFFFFFFF


class ChipStruct(ctypes.Structure):
    """ws_chip"""

    _fields_ = (
        ("sm_count", c_uint32),
        ("max_threads_per_block", c_uint32),
        ("max_warps_per_sm", c_uint32),
        ("max_blocks_per_sm", c_uint32),
        ("registers_per_sm", c_uint32),
        ("shared_per_sm", c_uint32),
        ("shared_per_block", c_uint32),
        ("shared_per_block_optin", c_uint32),
        ("global_memory", c_uint64),
        ("max_grid", c_uint32 * 3),
        ("max_block", c_uint32 * 3),
    )


class Options(ctypes.Structure):
    """ws_options"""

    _fields_ = (
        ("threads", c_uint32),
        ("check", c_uint32),
        ("order", c_uint32),
        ("seed", c_uint32),
        ("poison", c_uint32),
        ("patience_ms", c_uint32),
    )


class LaunchConfig(ctypes.Structure):
    """ws_launch_config"""

    _fields_ = (
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("dynamic_shared", c_uint32),
        ("cooperative", c_uint32),
        ("registers", c_uint32),
        ("pad", c_uint32),
    )


class ErrorStruct(ctypes.Structure):
    """ws_error"""

    _fields_ = (
        ("code", c_uint32),
        ("site", c_uint32),
        ("block", c_uint32 * 3),
        ("thread", c_uint32 * 3),
        ("lanes", c_uint32),
        ("space", c_uint32),
        ("kind", c_uint32),
        ("bytes", c_uint32),
        ("address", c_uint64),
        ("near_base", c_uint64),
        ("near_size", c_uint64),
        ("message", c_char * 2048),
    )


class LaunchResultStruct(ctypes.Structure):
    """ws_launch_result"""

    _fields_ = (
        ("error", ErrorStruct),
        ("blocks", c_uint64),
        ("threads", c_uint64),
        ("warps", c_uint64),
        ("instructions", c_uint64),
        ("nanoseconds", c_uint64),
        ("worker_threads", c_uint32),
    )


class Site(ctypes.Structure):
    """ws_site"""

    _fields_ = (
        ("ptx_line", c_uint32),
        ("line", c_uint32),
        ("file", c_char_p),
        ("text", c_char_p),
        ("function", c_char_p),
    )


class KernelInfo(ctypes.Structure):
    """ws_kernel_info"""

    _fields_ = (
        ("abi", c_uint32),
        ("param_bytes", c_uint32),
        ("static_shared", c_uint32),
        ("local_bytes", c_uint32),
        ("stack_bytes", c_uint32),
        ("site_count", c_uint32),
        ("var_count", c_uint32),
        ("uses_grid_sync", c_uint32),
        ("reqntid", c_uint32 * 3),
        ("maxntid", c_uint32 * 3),
        ("name", c_char_p),
        ("entry", c_void_p),
        ("sites", POINTER(Site)),
        ("vars", POINTER(c_char_p)),
        ("function_count", c_uint32),
        ("pad", c_uint32),
        ("functions", POINTER(c_char_p)),
    )


#: A pointer to a KernelInfo.
Info = Any
_Output = ctypes.CFUNCTYPE(None, POINTER(c_char), c_uint64)
ERROR_NAMES = {code: name for name, code in abi.ERRORS.items()}

_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ws_init": (c_int, (POINTER(ChipStruct), POINTER(Options))),
    "ws_last_message": (c_char_p, ()),
    "ws_malloc": (c_uint64, (c_uint64, c_char_p)),
    "ws_malloc_managed": (c_uint64, (c_uint64, c_char_p)),
    "ws_register_host": (c_int, (c_void_p, c_uint64)),
    "ws_unregister_host": (c_int, (c_void_p,)),
    "ws_free": (c_int, (c_uint64,)),
    "ws_copy_in": (c_int, (c_uint64, c_void_p, c_uint64)),
    "ws_copy_out": (c_int, (c_void_p, c_uint64, c_uint64)),
    "ws_copy": (c_int, (c_uint64, c_uint64, c_uint64)),
    "ws_fill": (c_int, (c_uint64, c_uint8, c_uint64)),
    "ws_find": (c_int, (c_uint64, POINTER(c_uint64), POINTER(c_uint64))),
    "ws_memory": (None, (POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64))),
    "ws_available": (c_uint64, ()),
    "ws_set_readonly": (c_int, (c_uint64, c_uint32)),
    "ws_set_heap_limit": (c_int, (c_uint64,)),
    "ws_heap_limit": (c_uint64, ()),
    "ws_launch": (c_int, (c_void_p, c_void_p, POINTER(LaunchConfig), c_char_p, POINTER(LaunchResultStruct))),
    "ws_resident_blocks": (c_uint32, (c_void_p, POINTER(LaunchConfig))),
    "ws_interrupt": (None, ()),
    "ws_set_output": (None, (_Output,)),
    "ws_explain_host_faults": (None, (c_int,)),
    "ws_abi_layout": (c_char_p, ()),
}


class RuntimeCallError(WarpsmithError):
    """The runtime refused a call; its message says why."""


@dataclass(frozen=True)
class LaunchReport:
    """What a launch did; ``error`` is the first thing that went wrong."""

    blocks: int
    threads: int
    warps: int
    instructions: int
    nanoseconds: int
    workers: int
    error: Problem | None


def options(
    *,
    threads: int = 0,
    check: bool = True,
    order: int = 0,
    seed: int = 0,
    poison: int = POISON,
    patience_ms: int = 0,
) -> Options:
    """How launches run, see ws_options in runtime/api.h."""
    return Options(threads, int(check), order, seed & 0xFFFFFFFF, poison, patience_ms)


def chip_limits(chip: Chip) -> ChipStruct:
    return ChipStruct(
        chip.sm_count,
        chip.threads_per_block,
        chip.warps_per_sm,
        chip.blocks_per_sm,
        chip.registers_per_sm,
        chip.shared_per_sm,
        chip.shared_per_block,
        chip.shared_per_block_optin,
        chip.global_memory,
        (c_uint32 * 3)(*chip.max_grid),
        (c_uint32 * 3)(*chip.max_block),
    )


class Runtime:
    """The loaded library.  Calls that can fail raise RuntimeCallError with the runtime's own sentence."""

    def __init__(self, path: Path) -> None:
        # Global, so that compiled kernels find the functions that they call.
        self.lib = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self._output: Any = None
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments

    def last_message(self) -> str:
        return (self.lib.ws_last_message() or b"").decode("utf-8", "replace")

    def _checked(self, code: int) -> None:
        if code:
            raise RuntimeCallError(self.last_message())

    def init(self, chip: Chip, opts: Options) -> None:
        self._checked(self.lib.ws_init(chip_limits(chip), opts))

    def malloc(self, size: int, label: str = "") -> int:
        """A device address, 0 if there is no memory left."""
        return int(self.lib.ws_malloc(size, label.encode() or None))

    def malloc_managed(self, size: int, label: str = "") -> int:
        """Memory that host code can use at the same address; 0 if there is none left."""
        return int(self.lib.ws_malloc_managed(size, label.encode() or None))

    def register_host(self, address: int, size: int) -> None:
        """Let kernels use host memory at its own address."""
        self._checked(self.lib.ws_register_host(address, size))

    def unregister_host(self, address: int) -> None:
        self._checked(self.lib.ws_unregister_host(address))

    def free(self, address: int) -> None:
        self._checked(self.lib.ws_free(address))

    def copy_in(self, to: int, source: int | ctypes.Array[Any] | bytes, size: int) -> None:
        """Host memory (an address or a ctypes array) to the device."""
        self._checked(self.lib.ws_copy_in(to, source, size))

    def copy_out(self, to: int | ctypes.Array[Any], source: int, size: int) -> None:
        self._checked(self.lib.ws_copy_out(to, source, size))

    def copy(self, to: int, source: int, size: int) -> None:
        self._checked(self.lib.ws_copy(to, source, size))

    def fill(self, to: int, value: int, size: int) -> None:
        self._checked(self.lib.ws_fill(to, value, size))

    def find(self, address: int) -> tuple[int, int] | None:
        """Base and size of the live allocation that the address lies in."""
        base, size = c_uint64(), c_uint64()
        return (base.value, size.value) if self.lib.ws_find(address, base, size) else None

    def memory(self) -> tuple[int, int, int]:
        """Bytes in use, number of allocations, most bytes ever in use."""
        values = [c_uint64() for _ in range(3)]
        self.lib.ws_memory(*values)
        in_use, count, peak = (v.value for v in values)
        return in_use, count, peak

    def available(self) -> int:
        return int(self.lib.ws_available())

    def set_readonly(self, address: int, on: bool = True) -> None:
        self._checked(self.lib.ws_set_readonly(address, int(on)))

    def set_output(self, write: Callable[[bytes], None] | None) -> None:
        """Where printf of kernels goes; None: the process's standard output."""
        callback = _Output() if write is None else _Output(lambda text, size: write(ctypes.string_at(text, size)))
        self.lib.ws_set_output(callback)
        self._output = callback  # must outlive its use by the library

    def interrupt(self) -> None:
        self.lib.ws_interrupt()

    def abi_layout(self) -> dict[str, int]:
        """Offsets by "struct.field", sizes by "struct.size"."""
        text = self.lib.ws_abi_layout().decode()
        return {name: int(value) for name, value in (line.split() for line in text.splitlines())}

    def var_names(self, info: Info) -> list[str]:
        k = info.contents
        return [k.vars[i].decode() for i in range(k.var_count)]

    def resident_blocks(self, info: Info, block: Sequence[int], shared: int = 0, registers: int = 0) -> int:
        config = _config((1, 1, 1), block, shared, False, registers)
        return int(self.lib.ws_resident_blocks(info, config))

    def launch(
        self,
        info: Info,
        variables: ctypes.Array[c_uint64] | None,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int = 0,
        cooperative: bool = False,
        params: bytes = b"",
        registers: int = 0,
    ) -> LaunchReport:
        """Run a kernel to its end or to its first error."""
        size = info.contents.param_bytes
        if len(params) < size:
            params = params.ljust(size, b"\0")
        result = LaunchResultStruct()
        self.lib.ws_launch(info, variables, _config(grid, block, shared, cooperative, registers), params, result)
        return LaunchReport(
            result.blocks,
            result.threads,
            result.warps,
            result.instructions,
            result.nanoseconds,
            result.worker_threads,
            _problem(info.contents, result.error) if result.error.code else None,
        )


def _config(grid: Sequence[int], block: Sequence[int], shared: int, cooperative: bool, registers: int) -> LaunchConfig:
    return LaunchConfig((c_uint32 * 3)(*grid), (c_uint32 * 3)(*block), shared, int(cooperative), registers, 0)


def _problem(info: KernelInfo, e: ErrorStruct) -> Problem:
    site = info.sites[e.site] if e.site < info.site_count else None
    details: dict[str, Any] = {"space": e.space, "access": e.kind, "bytes": e.bytes} if e.bytes else {}
    if e.near_size:
        details |= {"near_base": e.near_base, "near_size": e.near_size}
    placed = bool(e.lanes)
    return Problem(
        kind=ERROR_NAMES.get(e.code, "unknown"),
        message=e.message.decode("utf-8", "replace"),
        kernel=info.name.decode(),
        file=site.file.decode() if site and site.file else None,
        line=site.line or None if site else None,
        ptx_line=site.ptx_line if site else None,
        instruction=site.text.decode() if site and site.text else None,
        block=(e.block[0], e.block[1], e.block[2]) if placed else None,
        thread=(e.thread[0], e.thread[1], e.thread[2]) if placed else None,
        lanes=e.lanes,
        address=e.address if e.bytes else None,
        details=details,
    )


# ---- finding the library ------------------------------------------------------------------------------


@functools.cache
def library_path() -> Path:
    """The built library; builds it where it is missing or older than its sources."""
    from ...toolchains import native as builder

    package = builder.PACKAGE
    library = next(x for x in builder.LIBRARIES if x.folder == "devices/emulator/runtime")
    built = package / library.file
    in_source_tree = (package.parent.parent / "setup.py").exists()
    if built.exists() and not (in_source_tree and _older(built)):
        return built
    try:
        if os.access(built.parent, os.W_OK):
            builder.build(package, only=[library])
            return built
        return _build_in_cache(builder, package, library)
    except builder.BuildError as e:
        if built.exists():
            return built  # it works, if not as the sources say
        raise HostCompilerError(f"the emulator's native part has to be built first: {e}") from None


def _older(built: Path) -> bool:
    made = built.stat().st_mtime
    return any(p.stat().st_mtime > made for p in (HERE / "runtime").iterdir() if p.suffix in (".cpp", ".h"))


def _build_in_cache(builder: Any, package: Path, library: Any) -> Path:
    """For a package that is installed without its libraries where this user cannot write."""
    import hashlib
    import shutil

    from .compiler import cache_directory

    sources = sorted((package / library.folder).iterdir())
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:16]
    root = cache_directory().parent / f"native-{digest}"
    built = root / library.file
    if not built.exists():
        target = root / library.folder
        target.mkdir(parents=True, exist_ok=True)
        for p in sources:
            shutil.copyfile(p, target / p.name)
        builder.build(root, root / "objects")
    return Path(built)


@functools.cache
def load() -> Runtime:
    """The runtime of this process."""
    return Runtime(library_path())


@functools.cache
def _llvm_ready() -> None:
    import llvmlite.binding as llvm

    load()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.load_library_permanently(str(library_path()))


def load_object(data: bytes, symbol: str) -> tuple[Any, Info]:
    """A compiled kernel in memory: what keeps it there, and its ws_kernel_info."""
    import llvmlite.binding as llvm

    _llvm_ready()
    target = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    address = engine.get_global_value_address(symbol)
    if not address:
        raise RuntimeCallError(f"the compiled kernel has no {symbol}")
    return engine, ctypes.cast(c_void_p(address), POINTER(KernelInfo))


assert ctypes.sizeof(KernelInfo) == abi.INFO_SIZE
assert ctypes.sizeof(c_int64) == 8
