"""C++ of ours -> shared libraries, only what changed.

Used by ``setup.py`` (which loads this file by its path, so it may import nothing but the standard
library), by the launcher after a source changed, and as a fallback on first use.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

#: src/warpsmith
PACKAGE = Path(__file__).resolve().parent.parent

# Contraction is off everywhere: a*b+c must round twice unless the PTX says fma.
FLAGS = ("-O2", "-std=c++17", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra")


class Library(NamedTuple):
    """A shared library: all .cpp files of ``folder``, linked against other libraries of ours."""

    file: str
    folder: str
    needs: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    #: A library without a name of its own is found by programs at the path where it was linked.
    named: bool = True


#: In the order in which they must be linked.
LIBRARIES = (
    Library("devices/emulator/libwarpsmith_runtime.so", "devices/emulator/runtime", links=("-ldl",)),
    Library(
        "cudart/libwarpsmith_cudart.so",
        "cudart",
        needs=("devices/emulator/libwarpsmith_runtime.so",),
        includes=("devices/emulator/runtime",),
        links=("-ldl",),
        named=False,
    ),
)


class BuildError(Exception):
    """The C++ compiler is missing or said no."""


def compiler() -> str:
    """The C++ compiler's path: $CXX, g++, c++ or clang++."""
    for name in (os.environ.get("CXX", ""), "g++", "c++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    raise BuildError("no C++ compiler found (g++); on Debian or Ubuntu: sudo apt install g++")


def present(package: Path = PACKAGE) -> list[Library]:
    """The libraries whose sources are there."""
    return [library for library in LIBRARIES if any((package / library.folder).glob("*.cpp"))]


def build(
    package: Path = PACKAGE, work: Path | None = None, jobs: int = 0, only: Sequence[Library] | None = None
) -> list[Path]:
    """Bring every library (or ``only`` some) up to date; object files are kept in ``work`` for the next time.

    ``jobs``: compilers at once, 0: one a core.  Several processes may do this at the same time."""
    cxx = compiler()
    jobs = jobs or min(8, len(os.sched_getaffinity(0)))
    work = work or package.parent.parent / "build" / "native"
    libraries = [library for library in present(package) if only is None or library in only]
    with ThreadPoolExecutor(jobs) as pool:
        units = [
            (library, pool.submit(_compile, cxx, source, _flags(package, library), work / library.folder))
            for library in libraries
            for source in sorted((package / library.folder).glob("*.cpp"))
        ]
        objects = [(library, unit.result()) for library, unit in units]
    return [_link(cxx, package, library, [o for of, o in objects if of is library], work) for library in libraries]


def _flags(package: Path, library: Library) -> list[str]:
    return [*FLAGS, *(f"-I{package / folder}" for folder in (library.folder, *library.includes))]


def _compile(cxx: str, source: Path, flags: list[str], folder: Path) -> Path:
    """One object file, named by its source; rebuilt when the command or any file it reads changed."""
    folder.mkdir(parents=True, exist_ok=True)
    target, deps = folder / f"{source.stem}.o", folder / f"{source.stem}.d"
    command = [cxx, *flags, "-c", str(source)]
    read = _dependencies(deps)
    if target.exists() and read and _up_to_date(target, _digest(command, read)):
        return target
    scratch, fresh = (folder / f"{source.stem}.{os.getpid()}.{kind}" for kind in ("o", "d"))
    try:
        _run([*command, "-MD", "-MF", str(fresh), "-MT", "x", "-o", str(scratch)])
        os.replace(scratch, target)
        os.replace(fresh, deps)
    finally:
        scratch.unlink(missing_ok=True)
        fresh.unlink(missing_ok=True)
    _write(_stamp(target), _digest(command, _dependencies(deps)))
    return target


def _link(cxx: str, package: Path, library: Library, objects: list[Path], work: Path) -> Path:
    target = package / library.file
    needed = [package / need for need in library.needs]
    origin = [f"-Wl,-rpath,$ORIGIN/{os.path.relpath(need.parent, target.parent)}" for need in needed]
    command = [
        cxx, "-shared", "-pthread", *([f"-Wl,-soname,{target.name}"] if library.named else []), "-Wl,-z,defs",
        *map(str, objects), *map(str, needed), *origin, *library.links,
    ]  # fmt: skip
    stamp = work / f"{target.name}.stamp"
    digest = _digest(command, [*objects, *needed])
    if target.exists() and stamp.exists() and stamp.read_text() == digest:
        sources = (package / library.folder).iterdir()
        if any(source.stat().st_mtime > target.stat().st_mtime for source in sources):
            os.utime(target)  # newer sources with the same meaning: nobody needs to look again
        return target
    # Never write into a library that a running process has mapped: make a new file and rename it.
    scratch = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        _run([*command, "-o", str(scratch)])
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)
    _write(stamp, digest)
    return target


def _write(path: Path, text: str) -> None:
    """All of it or nothing."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_text(text)
    os.replace(scratch, path)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}".rstrip())


def _stamp(target: Path) -> Path:
    return target.with_suffix(".stamp")


def _up_to_date(target: Path, digest: str) -> bool:
    stamp = _stamp(target)
    return stamp.exists() and stamp.read_text() == digest


def _dependencies(deps: Path) -> list[Path]:
    """The files that a .d file of the compiler names."""
    if not deps.exists():
        return []
    _, _, names = deps.read_text().replace("\\\n", " ").partition(":")
    return [Path(name) for name in names.split()]


def _digest(command: Sequence[str], files: Sequence[Path]) -> str:
    total = hashlib.sha256("\0".join(command).encode())
    for file in files:
        total.update(file.read_bytes() if file.exists() else b"gone")
    return total.hexdigest()


def main() -> int:
    try:
        build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
