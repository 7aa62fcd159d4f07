"""``warpsmith doctor``: what is installed, what is missing, how to get it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import CacheError, WarpsmithError
from .output import dump_json, size, table
from .parsing import Parser

EXAMPLES = """
  $ws doctor
  $ws doctor --json
"""


class Finding(NamedTuple):
    what: str
    ok: bool
    detail: str
    remedy: str = ""


def main(arguments: Sequence[str]) -> int:
    parser = Parser("doctor", examples=EXAMPLES)
    parser.json()
    options = parser.parse_args(arguments)
    findings = list(examine())
    if options.json:
        print(dump_json([finding._asdict() for finding in findings]))
    else:
        print(table([("ok" if f.ok else "--", f.what, f.detail) for f in findings]))
        for finding in findings:
            if not finding.ok:
                print(f"\n{finding.what}: {finding.remedy}")
        if all(finding.ok for finding in findings):
            print("\neverything is here")
    return 0 if all(finding.ok for finding in findings) else 86


def examine() -> Iterator[Finding]:
    yield Finding("python", sys.version_info >= (3, 11), platform.python_version(), "Python 3.11 or newer is needed")
    cores = len(os.sched_getaffinity(0))
    yield Finding("processor", True, f"{platform.machine()}, {cores} cores for us{_vectors()}")
    for package in ("numpy", "ml_dtypes", "llvmlite"):
        yield _package(package)
    yield from _toolkit()
    yield _guarded("C++ compiler", _host_compiler)
    yield from _libraries()
    yield _guarded("cache", _cache)


def _vectors() -> str:
    """The widest vectors that Linux says the processor has."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    found = next((name for name in ("avx512f", "avx2", "avx", "asimd") if f" {name}" in flags), "")
    return f", {found}" if found else ""


def _package(name: str) -> Finding:
    from importlib import metadata

    try:
        return Finding(name, True, metadata.version(name.replace("_", "-")))
    except metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", f"pip install {name.replace('_', '-')}")


def _toolkit() -> Iterator[Finding]:
    from ..toolchains.toolkit import INSTALL, PACKAGES, package_version, toolkit

    try:
        kit = toolkit()
    except WarpsmithError as error:
        yield Finding("CUDA compilers", False, "not installed", str(error))
        return
    if not kit.packaged:
        yield Finding("CUDA compilers", True, f"of the system, in {kit.root}")
        return
    versions = {name: package_version(name, kit.root.parent.parent) for name in PACKAGES}
    missing = [name for name, version in versions.items() if version is None]
    together = {".".join(version.split(".")[:2]) for version in versions.values() if version}
    detail = ", ".join(f"{name.removeprefix('nvidia-')} {version or 'missing'}" for name, version in versions.items())
    remedy = INSTALL
    if len(together) > 1:
        remedy = f"the packages are of different CUDA versions, which do not work together; {INSTALL} --force-reinstall"
    yield Finding("CUDA compilers", not missing and len(together) == 1, detail, remedy)


def _guarded(what: str, probe: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, probe())
    except WarpsmithError as error:
        return Finding(what, False, "missing", str(error))


def _host_compiler() -> str:
    from ..toolchains.toolkit import host_compiler

    path = host_compiler()
    done = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True)
    return f"{path} {done.stdout.strip()}"


def _libraries() -> Iterator[Finding]:
    from ..toolchains import native

    for library in native.LIBRARIES:
        path = native.PACKAGE / library.file
        yield Finding(
            path.name,
            path.exists(),
            "built" if path.exists() else "not built",
            "install the package again (it is built then), or call ./ws in its repository",
        )


def _cache() -> str:
    from ..toolchains.cache import default_cache

    cache = default_cache()
    try:
        cache.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = cache.root / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CacheError(f"{cache.root} cannot be written ({error.strerror}); set WARPSMITH_CACHE") from None
    usage = cache.usage()
    return f"{cache.root}, {size(usage.bytes)} of at most {size(cache.limit)}"
