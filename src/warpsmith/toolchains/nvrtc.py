"""CUDA C++ -> PTX in tens of milliseconds with NVRTC; no host compiler, no GPU, no driver.

NVRTC has no C library headers; ``shims/`` stands in for those that kernels commonly include.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..chips import DEFAULT, Chip, load
from ..errors import CompileError, MissingToolError, OutOfMemoryError, UsageError
from . import cache as caches
from .base import Artifact
from .toolkit import INSTALL, toolkit

SHIMS = Path(__file__).with_name("shims")

_OUT_OF_MEMORY, _INVALID_OPTION, _COMPILATION = 1, 5, 6


def compile(
    source: str,
    *,
    name: str = "kernel.cu",
    chip: Chip | str = DEFAULT,
    target: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    options: Sequence[str] = (),
    std: str = "c++17",
    names: Sequence[str] = (),
    cached: bool = True,
) -> Artifact:
    """Compile CUDA C++ text; ``name`` is the file name in messages and line information.

    ``target``: an architecture (sm_80) instead of the chip's.  ``include``: folders for #include, besides
    that of ``name``.  ``options``: NVRTC's own (-DN=4, --use_fast_math...).  ``names``: expressions such as
    ``kernel<float>`` to instantiate; the artifact's ``kernels`` says what they are called in the PTX.
    """
    start = time.perf_counter()
    kit = toolkit()
    target = target or (load(chip) if isinstance(chip, str) else chip).target
    version = kit.version("nvidia-cuda-nvrtc")
    folders = [os.fspath(folder) for folder in include]
    if not any(option.startswith(("-std", "--std")) for option in options):
        options = [f"--std={std}", *options]
    flags = [f"--gpu-architecture={target.replace('sm_', 'compute_')}", "-lineinfo", *options]
    headers = user_headers(source, [os.path.dirname(name) or ".", *folders, *_pre_included(options)])
    store = caches.default_cache() if cached and headers is not None else None
    entry = caches.key(
        "nvrtc", version, kit.version("nvidia-cuda-cccl"), kit.version("nvidia-cuda-runtime"), _shims_version(),
        source, name, os.getcwd() if not os.path.isabs(name) else "", json.dumps([flags, folders, list(names)]),
        *(part for path, text in headers or () for part in (path, text)),
    )  # fmt: skip
    if store and (found := store.load("nvrtc", entry)):
        text, log, kernels = json.loads(found)
        return Artifact(text, target, name, f"nvrtc {version}", log, kernels, True, time.perf_counter() - start)
    paths = [*folders, SHIMS, *kit.includes]
    text, log, kernels = _compile(source, name, [*flags, *(f"-I{path}" for path in paths)], names)
    # NVRTC makes the name absolute in the line information; people should see what they wrote.
    text = text.replace(f'"{os.path.join(os.getcwd(), name)}"', f'"{name}"') if not os.path.isabs(name) else text
    if store:
        store.store("nvrtc", entry, json.dumps([text, log, kernels]).encode())
    return Artifact(text, target, name, f"nvrtc {version}", log, kernels, False, time.perf_counter() - start)


# ---- which of the user's own headers does a source read? ---------------------------------------------

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\S))?', re.MULTILINE)


def user_headers(source: str, folders: Sequence[str]) -> list[tuple[str, bytes]] | None:
    """Path and content of every header outside the toolkit that ``source`` may include, in a fixed order.

    Conditions are not evaluated, so the list may be longer than what the compiler reads, never shorter.
    None: an include's name is computed by macros, so nobody but the compiler knows.
    """
    found: dict[str, bytes] = {}
    todo: list[tuple[str, list[str]]] = [(source, list(folders))]
    while todo:
        text, search = todo.pop()
        for quoted, angled, computed in _INCLUDE.findall(text):
            if computed:
                return None
            for folder in search:
                path = os.path.normpath(os.path.join(folder, quoted or angled))
                if path in found:
                    break
                try:
                    content = Path(path).read_bytes()
                except OSError:
                    continue
                found[path] = content
                todo.append((content.decode(errors="replace"), [os.path.dirname(path), *folders]))
                break
    return sorted(found.items())


def _pre_included(options: Sequence[str]) -> list[str]:
    """Include folders that were given as raw options: -Ifolder, -I folder, --include-path=folder."""
    joined = [option.removeprefix("-I") for option in options if option.startswith("-I") and len(option) > 2]
    named = [option.partition("=")[2] for option in options if option.startswith("--include-path=")]
    apart = [folder for flag, folder in pairwise(options) if flag in ("-I", "--include-path")]
    return [*joined, *named, *apart]


@cache
def _shims_version() -> str:
    return caches.key(*(part for path in sorted(SHIMS.iterdir()) for part in (path.name, path.read_bytes())))


# ---- the library ---------------------------------------------------------------------------------------


class _Nvrtc:
    def __init__(self) -> None:
        kit = toolkit()
        try:
            # NVRTC looks for this one by name, in places where a Python package is not.
            if kit.nvrtc_builtins:
                ctypes.CDLL(str(kit.nvrtc_builtins))
            self.library = ctypes.CDLL(str(kit.nvrtc))
        except OSError as error:
            raise MissingToolError(f"NVRTC cannot be loaded ({error}); {INSTALL}") from None
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, function: str, *arguments: Any) -> int:
        return int(getattr(self.library, function)(*arguments))

    def check(self, function: str, *arguments: Any) -> None:
        if status := self.call(function, *arguments):
            raise CompileError(f"{function}: {self.library.nvrtcGetErrorString(status).decode()}")

    def text(self, what: str, program: ctypes.c_void_p) -> str:
        """The pair nvrtcGet<what>Size, nvrtcGet<what>."""
        size = ctypes.c_size_t()
        self.check(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value or 1)
        self.check(f"nvrtcGet{what}", program, buffer)
        return buffer.value.decode(errors="replace")


_lock = threading.Lock()
_loaded: _Nvrtc | None = None


def _nvrtc() -> _Nvrtc:
    global _loaded
    with _lock:
        _loaded = _loaded or _Nvrtc()
        return _loaded


def _compile(source: str, name: str, flags: Iterable[str], names: Sequence[str]) -> tuple[str, str, dict[str, str]]:
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    nvrtc.check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), os.fsencode(name), 0, None, None)
    try:
        for expression in names:
            nvrtc.check("nvrtcAddNameExpression", program, expression.encode())
        options = [os.fsencode(flag) for flag in flags]
        status = nvrtc.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = nvrtc.text("ProgramLog", program).strip("\n\0 ")
        if status:
            raise _failure(status, log, nvrtc.library.nvrtcGetErrorString)
        lowered = ctypes.c_char_p()
        kernels = {}
        for expression in names:
            nvrtc.check("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(lowered))
            kernels[expression] = (lowered.value or b"").decode()
        return nvrtc.text("PTX", program), log, kernels
    finally:
        nvrtc.call("nvrtcDestroyProgram", ctypes.byref(program))


def _failure(status: int, log: str, describe: Callable[[int], bytes]) -> Exception:
    if status == _COMPILATION:
        return CompileError(log)
    if status == _INVALID_OPTION:
        return UsageError(log or "NVRTC does not know one of the options")
    if status == _OUT_OF_MEMORY:
        return OutOfMemoryError("NVRTC ran out of memory")
    return CompileError(log or describe(status).decode())
