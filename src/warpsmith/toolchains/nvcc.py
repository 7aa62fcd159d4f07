"""Whole programs with nvcc: .cu, .cpp and .c sources -> an executable that runs on the emulator.

The executable keeps the kernels as PTX and calls warpsmith's own CUDA runtime (``cudart/``) where an ordinary
one would call NVIDIA's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ..chips import DEFAULT, Chip, load
from ..errors import (
    CompileError,
    LinkError,
    MissingToolError,
    NoMainError,
    OutOfMemoryError,
    UnsupportedApiError,
    UsageError,
)
from . import cache as caches
from . import devicelink, libraries, recorded
from .base import Artifact
from .options import Options, check_sources
from .toolkit import Toolkit, host_compiler, host_compiler_identity, toolkit

CUDART = Path(__file__).resolve().parent.parent / "cudart" / "libwarpsmith_cudart.so"

#: Said before each step that takes time: "compiling saxpy.cu".
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ProgramFile:
    """A built program."""

    path: Path
    log: str  # warnings, in the compiler's own words
    cached: bool  # nothing had to be compiled
    seconds: float


def build(
    options: Options, chip: Chip | str = DEFAULT, progress: Progress = lambda step: None, jobs: int = 2
) -> ProgramFile:
    """Compile and link; both are remembered in the cache."""
    start = time.perf_counter()
    chip = load(chip) if isinstance(chip, str) else chip
    if not options.sources:
        raise UsageError("no source file given")
    check_sources(options.sources)
    for word in options.link:
        if word.startswith("-l") and (missing := libraries.missing_library(word[2:])):
            raise UnsupportedApiError(missing)
    kit = toolkit()
    host_compiler()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            units = list(pool.map(lambda source: _compile(source, options, chip, kit, progress), options.sources))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_compilers()
            raise
    path, linked = _link([unit.path for unit in units], [unit.key for unit in units], options, progress)
    log = "\n".join(unit.log for unit in units if unit.log)
    cached = all(unit.cached for unit in units) and not linked
    return ProgramFile(path, log, cached, time.perf_counter() - start)


def ptx(
    source: str,
    options: Options,
    chip: Chip | str = DEFAULT,
    *,
    name: str = "kernel.cu",
    progress: Progress = lambda step: None,
) -> Artifact:
    """The PTX of CUDA C++ text, called ``name``: for sources that NVRTC does not take (host code in them)."""
    start = time.perf_counter()
    chip = load(chip) if isinstance(chip, str) else chip
    kit = toolkit()
    host_compiler()
    # The text needs a file with a lasting path (it is part of what the cache goes by), and its own name in messages.
    store = caches.default_cache()
    text = f'#line 1 "{name}"\n{source}'.encode(errors="surrogateescape")
    key = caches.key("source", text)
    path = store.find_file("source", key)
    if path is None:
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            made = Path(folder) / "source"
            made.write_bytes(text)
            path = store.store_file("source", key, made)
    own_folder = replace(options, compile=[*options.compile, f"-I{os.path.dirname(name) or '.'}", "-x", "cu"])
    unit = _compile(str(path), own_folder, chip, kit, lambda step: progress(f"compiling {name}"), kind="ptx")
    made_of = unit.path.read_text()
    for given in (os.path.join(os.getcwd(), name), str(path)):
        made_of = made_of.replace(f'"{given}"', f'"{name}"')
    version = kit.version("nvidia-cuda-nvcc")
    return Artifact(
        made_of, chip.target, name, f"nvcc {version}", unit.log, {}, unit.cached, time.perf_counter() - start
    )


# ---- compiling -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unit:
    path: Path
    key: str
    log: str
    cached: bool


def _compile(
    source: str, options: Options, chip: Chip, kit: Toolkit, progress: Progress, kind: str = "object"
) -> _Unit:
    store = caches.default_cache()
    arch = chip.target.replace("sm_", "compute_")
    flags = _flags(source, options, arch, kind)
    command = [str(kit.nvcc), "-ccbin", host_compiler(), *flags, source]
    versions = [
        kit.version(part) for part in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl")
    ]
    surroundings = [
        os.environ.get(name, "") for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH")
    ]
    key = caches.key(
        kind, os.getcwd(), Path(source).read_bytes(), host_compiler_identity(), *versions, *surroundings, *command
    )
    trusted = ("/usr/", f"{kit.root}/")
    if (found := recorded.recall(store, key, trusted)) and (path := store.find_file(kind, found.name)):
        return _Unit(path, found.name, found.log, True)
    progress(f"compiling {source}")
    since = time.time()
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        made, deps = Path(folder) / "out", Path(folder) / "deps"
        log = _run([*command, "-MD", "-MF", str(deps), "-o", str(made)], source)
        # A #line directive makes a file of whatever stands in it.
        read = [file for file in recorded.dependencies(deps) if os.path.exists(file)]
        name = caches.key(key, *(Path(file).read_bytes() for file in read if not file.startswith(trusted)))
        path = store.store_file(kind, name, made)
    recorded.record(store, key, read, trusted, recorded.Result(name, log), since)
    return _Unit(path, name, log, False)


def _flags(source: str, options: Options, arch: str, kind: str) -> list[str]:
    given = options.compile
    if source.endswith(".c"):  # a C++ standard means nothing to C
        given = [option for option in given if not option.startswith("-std=c++")]
    flags = ["-Wno-deprecated-gpu-targets", "-allow-unsupported-compiler", *given]
    if options.relocatable and kind == "object":
        flags.append("-rdc=true")
    if "-G" not in given:
        flags.append("-lineinfo")
    if kind == "ptx":
        return ["-ptx", f"-arch={arch}", *flags]
    # Line tables of the host code, before the user's own -g: a report can name the line of a cudaMalloc.
    flags = ["-Xcompiler", "-g1", *flags]
    # PTX only: nothing of a real chip's machine code is wanted.
    return ["-c", "-cudart", "none", "-gencode", f"arch={arch},code={arch}", "--no-compress", *flags]


#: Process groups of the compilers that run now.
_running: set[int] = set()


def run_group(command: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a compiler; if we are stopped meanwhile, so are all the processes that it started."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    )
    _running.add(process.pid)
    try:
        log, _ = process.communicate()
    except BaseException:
        end_compilers()
        process.wait()
        raise
    finally:
        _running.discard(process.pid)
    return process.returncode, log.strip("\n")


def end_compilers() -> None:
    """Ends every compiler that is running for us, with what it started."""
    for pid in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _run(command: Sequence[str], what: str) -> str:
    """Run a compiler; its text, whether it was content or not, is for the user and stays as it is."""
    code, log = run_group(command)
    if code == 0:
        return log
    if code < 0 or "Killed" in log or "out of memory" in log:
        raise OutOfMemoryError(f"the compiler was killed while compiling {what}: most likely it ran out of memory")
    if found := re.search(r"^nvcc fatal +: (.*)$", log, re.MULTILINE):
        raise UsageError(f"nvcc: {found[1]}")
    if missing := libraries.missing_header(log):
        raise UnsupportedApiError(missing)
    raise CompileError(log)


# ---- linking -------------------------------------------------------------------------------------------


def _link(objects: list[Path], keys: list[str], options: Options, progress: Progress) -> tuple[Path, bool]:
    """The program and whether it had to be linked."""
    if not CUDART.exists():
        raise MissingToolError(
            f"warpsmith's CUDA runtime is not built ({CUDART});"
            " install the package again, or call ./ws in its repository"
        )
    store = caches.default_cache()
    given = [_stamp(option) for option in [*options.link, *library_files(options.link)]]
    key = caches.key("program", host_compiler_identity(), str(CUDART), *given, *keys)
    if path := store.find_file("program", key):
        return path, False
    progress("linking")
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        made = Path(folder) / "program"
        inputs = [*map(str, objects), *library_files(options.link)]
        try:
            stub = device_stub(inputs, Path(folder))
        except LinkError as error:
            raise LinkError(_in_the_users_words(str(error), objects, options.sources)) from None
        command = [
            host_compiler(), "-o", str(made), *map(str, objects), *stub, *options.link,
            str(CUDART), f"-Wl,-rpath,{CUDART.parent}", "-lpthread", "-ldl",
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"}
        )
        if done.returncode:
            raise link_failure(done.stdout + done.stderr, objects, options.sources)
        return store.store_file("program", key, made), True


def device_stub(inputs: Sequence[str], folder: Path, made: Path | None = None) -> list[str]:
    """The object that registers relocatable device code (in ``folder``, or ``made``), if there is any to register."""
    source = devicelink.stub(inputs)
    if source is None:
        return []
    text, made = folder / "device_link.c", made or folder / "device_link.o"
    text.write_text(source)
    command = [host_compiler(), "-x", "c", "-c", "-fPIC", "-O1", "-w", str(text), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise LinkError(f"the device code cannot be linked: {done.stderr.strip()}")
    return [str(made)]


def library_files(words: Sequence[str]) -> list[str]:
    """The objects and static libraries among the words of a link command: files, and -l with its -L."""
    folders = [word[2:] for word in words if word.startswith("-L")]
    files = []
    for word in words:
        if word.startswith("-l"):
            names = [word[3:]] if word.startswith("-l:") else [f"lib{word[2:]}.so", f"lib{word[2:]}.a"]
            places = (Path(folder) / name for folder in folders for name in names)
            found = next((str(place) for place in places if place.exists()), None)
            files += [found] if found and found.endswith(".a") else []
        elif not word.startswith("-") and word.endswith((".o", ".a", ".obj")) and os.path.exists(word):
            files.append(word)
    return files


def _in_the_users_words(text: str, objects: Sequence[Path], sources: Sequence[str]) -> str:
    for path, source in zip(objects, sources, strict=True):
        text = text.replace(str(path), source)
    return text


def _stamp(option: str) -> str:
    """A link option, and for a file its state."""
    if not option.startswith("-") and os.path.exists(option):
        stat = os.stat(option)
        return f"{os.path.realpath(option)} {stat.st_size} {stat.st_mtime_ns}"
    return option


_UNDEFINED = re.compile(r"undefined reference to [`'](?P<name>[^'`]+)'")
_NO_LIBRARY = re.compile(r"cannot find -l:?(?P<name>[\w.+-]+)")
# Names of NVIDIA's host libraries; lower-case prefix, then a capital.
_API = re.compile(
    r"^(?:cuda|cu|cublas|cublasLt|cufft|curand|cusparse|cusolver\w\w|cudnn|nccl|nvtx|nvml)[A-Z_]\w*$|^__cuda\w+$"
)


def link_failure(log: str, objects: list[Path], sources: list[str]) -> Exception:
    """Say in the user's words what the linker said in its own."""
    missing = list(dict.fromkeys(_UNDEFINED.findall(log)))
    if missing == ["main"]:
        return NoMainError(
            f"{', '.join(sources)}: there is no main function, so there is no program to run; to launch kernels"
            " from Python: warpsmith.device().compile(open('file.cu').read())['kernel'](grid, block, arrays...)"
        )
    api = [name for name in missing if _API.match(name)]
    if api:
        where = _first_use(api[0], sources)
        names = " and ".join([", ".join(api[:-1]), api[-1]] if len(api) > 1 else api)
        return UnsupportedApiError(f"{where}uses {names}, which warpsmith's CUDA runtime does not have yet")
    if missing_library := _NO_LIBRARY.search(log):
        name = missing_library["name"]
        return LinkError(f"the library {name} (-l{name}) was not found; give its folder with -L")
    if missing:
        readable = [demangle(name) for name in missing[:5]]
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return LinkError(
            f"{', '.join(sources)}: declared and used but nowhere defined: {', '.join(readable)}{more};"
            " is a source file or a library missing?"
        )
    if doubled := re.search(r"multiple definition of [`'](?P<name>[^'`]+)'", log):
        return LinkError(f"{', '.join(sources)}: {demangle(doubled['name'])} is defined more than once")
    return LinkError(_in_the_users_words(log.strip(), objects, sources))


def _first_use(name: str, sources: Sequence[str]) -> str:
    """Where the name first stands, as "prog.cu:12: ", or the file, or nothing."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    for source in sources:
        for number, line in enumerate(Path(source).read_text(errors="replace").splitlines(), 1):
            if word.search(line):
                return f"{source}:{number}: "
    return f"{sources[0]}: " if len(sources) == 1 else ""


def demangle(name: str) -> str:
    tool = shutil.which("c++filt")
    if not tool or not name.startswith("_Z"):
        return name
    return subprocess.run([tool, name], capture_output=True, text=True).stdout.strip() or name
