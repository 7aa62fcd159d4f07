"""A kernel of a PTX module -> a native object file that describes itself (``ws_kernel_info``).

Compiled objects are kept in the cache directory under a hash of everything that they depend on: the
PTX, the kernel's name, the options, this machine's processor and the compiler's own sources.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...errors import UnsupportedInstructionError
from ...ptx.ast import Function, Loc, Module
from . import abi
from .lowering import Unsupported
from .lowering.function import FunctionLowering
from .lowering.kernel import DYNAMIC_SHARED, KernelLowering, param_layout

#: What a lane may use of local memory, and a warp of native stack, when calls recurse (the depth is not known).
RECURSIVE_LOCAL = 64 << 10
RECURSIVE_STACK = 16 << 20

_PREAMBLE = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 4000}
!2 = !{!"branch_weights", i32 4000, i32 1}
"""


class CompileError(UnsupportedInstructionError):
    """A kernel that the emulator cannot compile: one sentence with the PTX line and the source line."""


@dataclass(frozen=True)
class CompileOptions:
    """``check``: verify every global access against its allocation (else rely on page protection).
    ``numerics``: sums of tensor cores as the "hardware" forms them, or "fast"."""

    check: bool = True
    numerics: str = "hardware"
    level: int = 1


@dataclass(frozen=True)
class CompiledKernel:
    """``object``: a relocatable object file; ``info_symbol``: its exported ``ws_kernel_info``."""

    name: str
    object: bytes
    info_symbol: str
    cached: bool = False
    seconds: float = 0.0


def cache_directory() -> Path:
    """Where compiled kernels are kept: $WARPSMITH_CACHE or the user's cache directory."""
    root = os.environ.get("WARPSMITH_CACHE")
    if root:
        return Path(root) / "kernels"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "warpsmith" / "kernels"


@functools.cache
def _sources_digest() -> str:
    """A hash of the code that decides what is generated."""
    here = Path(__file__).parent
    h = hashlib.sha256()
    for p in sorted(
        [
            *here.glob("*.py"),
            *here.glob("lowering/*.py"),
            *(here.parent.parent / "ptx").glob("*.py"),
            here / "runtime/abi.h",
        ]
    ):
        h.update(p.name.encode() + p.read_bytes())
    return h.hexdigest()


@functools.cache
def _target() -> tuple[str, str, str]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten() if hasattr(llvm, "get_host_cpu_features") else ""
    return llvm.get_default_triple(), llvm.get_host_cpu_name(), features


def digest(text: str, kernel: str, options: CompileOptions) -> str:
    """The cache key of a kernel."""
    import llvmlite

    parts = [text, kernel, str(options), _sources_digest(), llvmlite.__version__, *_target()]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def compile_kernel(
    module: Module, name: str, options: CompileOptions | None = None, *, text: str | None = None
) -> CompiledKernel:
    """Compile one kernel of a module.

    ``text`` is the module's PTX; with it the result is looked up in, and added to, the disk cache.
    Raises CompileError for a kernel that does not exist or uses what the emulator does not have.
    """
    options = options or CompileOptions()
    if name not in module.kernels:
        known = ", ".join(module.kernels) or "none"
        raise CompileError(f"no kernel named {name} in this PTX (it has: {known})")
    key = digest(text, name, options) if text is not None else None
    symbol = f"ws_info_{key[:24]}" if key else f"ws_info_{abs(hash((id(module), name))):x}"
    path = cache_directory() / f"{key}.o" if key else None
    if path is not None and path.exists():
        try:
            data = path.read_bytes()
            os.utime(path)
            return CompiledKernel(name, data, symbol, cached=True)
        except OSError:
            pass
    start = time.perf_counter()
    ir = lower_kernel(module, name, options, symbol)
    data = emit_object(ir, options)
    if path is not None:
        _write_atomically(path, data)
    return CompiledKernel(name, data, symbol, seconds=time.perf_counter() - start)


def _write_atomically(path: Path, data: bytes) -> None:
    """Two processes may write the same entry: the last rename wins and both are whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        pass  # a cache that cannot be written only costs time


def emit_object(ir: str, options: CompileOptions) -> bytes:
    """LLVM IR text -> native object file."""
    import llvmlite.binding as llvm

    triple, cpu, features = _target()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, features=features, opt=options.level, reloc="pic")
    try:
        module = llvm.parse_assembly(ir)
    except RuntimeError as e:
        what = str(e).strip().splitlines()[-1 if "error:" not in str(e) else 1].partition("error: ")[2]
        raise CompileError(f"the operands of an instruction have the wrong types for it ({what or e})") from e
    module.triple = triple
    module.data_layout = str(machine.target_data)
    if os.environ.get("WARPSMITH_VERIFY_IR"):
        module.verify()
    return bytes(machine.emit_object(module))


def lower_kernel(module: Module, name: str, options: CompileOptions, symbol: str = "ws_info") -> str:
    """The LLVM IR of a kernel and of the device functions that it calls."""
    kernel = KernelLowering(module, check=options.check, numerics=options.numerics)
    function = module.functions[name]
    try:
        bodies = [FunctionLowering(kernel, function).lower()]
        while kernel.pending:
            bodies.append(FunctionLowering(kernel, module.functions[kernel.pending.pop()]).lower())
    except Unsupported as e:
        raise CompileError(explain(e, module, name)) from e
    info = describe(kernel, function, symbol)
    attributes = 'attributes #0 = { nounwind "min-legal-vector-width"="512" "frame-pointer"="none" }'
    parts = [*info, *kernel.helpers.values(), *kernel.declared.values(), *bodies, attributes, _PREAMBLE]
    return "\n".join(parts) + "\n"


def explain(e: Unsupported, module: Module, kernel: str) -> str:
    """One sentence: what is missing, where in the PTX and in the source."""
    where = ""
    if e.instruction is not None:
        where = f", PTX line {e.instruction.line}"
        loc = _in_the_users_files(e.instruction.loc, module.files)
        if loc is not None:
            where += f", {module.files.get(loc.file, '?')}:{loc.line}"
    return f"kernel {kernel}: {e.what}{where}"


def _bytes(text: str) -> tuple[str, int]:
    raw = text.encode("utf-8", "surrogateescape") + b"\0"
    return "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in raw), len(raw)


def depth(kernel: KernelLowering, root: str) -> tuple[int, int, bool]:
    """Most local bytes a lane and native stack bytes a warp over all chains of calls; True if calls recurse."""
    best: dict[str, tuple[int, int]] = {}
    open_: set[str] = set()
    recursive = False

    def visit(name: str) -> tuple[int, int]:
        nonlocal recursive
        if name in best:
            return best[name]
        if name in open_:
            recursive = True
            return 0, 0
        open_.add(name)
        below = [visit(c) for c in sorted(kernel.calls.get(name, ()))]
        open_.discard(name)
        best[name] = (
            kernel.frame[name] + max((b[0] for b in below), default=0),
            kernel.stack[name] + max((b[1] for b in below), default=0),
        )
        return best[name]

    local, stack = visit(root)
    return local, stack, recursive


def _in_the_users_files(loc: Loc | None, files: dict[int, str]) -> Loc | None:
    """The place itself, or where the user's code called if it lies in a header of the CUDA toolkit."""
    outer = loc
    while outer is not None and _is_toolkit_header(files.get(outer.file, "")):
        outer = outer.inlined_at
    return outer or loc


@functools.cache
def _is_toolkit_header(file: str) -> bool:
    folders = Path(os.path.normpath(file)).parents
    return any(folder.name == "include" and (folder / "cuda_runtime.h").exists() for folder in folders)


def describe(kernel: KernelLowering, function: Function, symbol: str) -> list[str]:
    """The constants that make the object describe itself: strings, sites, names, ws_kernel_info."""
    local, stack, recursive = depth(kernel, function.name)
    if recursive:
        local, stack = max(local, RECURSIVE_LOCAL), max(stack, RECURSIVE_STACK)
    files = kernel.module.files
    rows = []
    for s in kernel.sites:
        loc = _in_the_users_files(s.instruction.loc, files)
        file = kernel.string(files[loc.file]) if loc is not None and loc.file in files else "null"
        line = loc.line if loc is not None else 0
        rows.append(
            f"%site {{ i32 {s.instruction.line}, i32 {line}, ptr {file}, ptr {kernel.string(s.instruction.text)}, ptr {kernel.string(s.function)} }}"
        )
    out = ["%site = type { i32, i32, ptr, ptr, ptr }"]
    out.append(
        f"@sites = private constant [{len(rows)} x %site] [{', '.join(rows)}]"
        if rows
        else "@sites = private constant [0 x %site] zeroinitializer"
    )
    for table, names in (("vars", list(kernel.vars)), ("functions", kernel.addressed)):
        pointers = ", ".join(f"ptr {kernel.string(n)}" for n in names)
        out.append(
            f"@{table} = private constant [{len(names)} x ptr] " + (f"[{pointers}]" if names else "zeroinitializer")
        )
    out.append(f"{DYNAMIC_SHARED} = private unnamed_addr constant i64 {kernel.end_of_shared()}, align 8")
    name = kernel.string(function.name)

    def three(key: str) -> str:
        given = (*function.directives.get(key, ()), *(1, 1, 1))[:3] if key in function.directives else (0, 0, 0)
        return f"[3 x i32] [{', '.join(f'i32 {v}' for v in given)}]"

    fields = [
        f"i32 {abi.ABI_VERSION}", f"i32 {param_layout(function)[1]}", f"i32 {kernel.shared_size}", f"i32 {local}", f"i32 {stack}",
        f"i32 {len(rows)}", f"i32 {len(kernel.vars)}", f"i32 {int(kernel.uses_grid_sync)}", three("reqntid"), three("maxntid"),
        f"ptr {name}", f'ptr @"kernel.{function.name}"', "ptr @sites", "ptr @vars", f"i32 {len(kernel.addressed)}", "i32 0", "ptr @functions",
    ]  # fmt: skip
    types = ", ".join(f.rsplit(" ", 1)[0] if not f.startswith("[") else "[3 x i32]" for f in fields)
    out.append(f"@{symbol} = constant {{ {types} }} {{ {', '.join(fields)} }}, align 8")
    for text, label in kernel.strings.items():
        body, n = _bytes(text)
        out.append(f'{label} = private unnamed_addr constant [{n} x i8] c"{body}"')
    return out


def module_variables(module: Module) -> Iterable[str]:
    """Names of the variables that need device memory (global and const)."""
    return (v.name for v in module.variables.values() if v.space in ("global", "const"))


__all__ = ["CompileError", "CompileOptions", "CompiledKernel", "compile_kernel"]
