"""Where NVIDIA's compilers are: the packages in this Python first, then a CUDA 13 of the system."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import HostCompilerError, MissingToolError

INSTALL = 'pip install "warpsmith[cuda]"'
#: The packages whose versions must agree, and what each brings.
PACKAGES = {
    "nvidia-cuda-nvcc": "nvcc, ptxas",
    "nvidia-nvvm": "the device compiler inside nvcc",
    "nvidia-cuda-crt": "headers of nvcc",
    "nvidia-cuda-nvrtc": "the run-time compiler",
    "nvidia-cuda-runtime": "headers of the CUDA runtime",
    "nvidia-cuda-cccl": "cooperative groups, CUB, Thrust, libcu++",
}


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit: a folder with bin, include, lib."""

    root: Path
    packaged: bool  # from Python packages

    @property
    def nvcc(self) -> Path:
        path = self.root / "bin" / "nvcc"
        if not path.exists():
            raise MissingToolError(f"nvcc is not installed ({path}); {INSTALL}")
        return path

    @property
    def nvrtc(self) -> Path:
        return self._library("libnvrtc.so.13")

    @property
    def nvrtc_builtins(self) -> Path | None:
        return next(iter(sorted(self.nvrtc.parent.glob("libnvrtc-builtins.so.*"))), None)

    @property
    def includes(self) -> list[Path]:
        """Include folders: CUDA's own, then CCCL (cooperative groups, CUB, libcu++)."""
        return [folder for folder in (self.root / "include", self.root / "include" / "cccl") if folder.is_dir()]

    def version(self, part: str) -> str:
        """The version of a package ("nvidia-cuda-nvcc"), cheap to ask; what tells two toolkits apart."""
        if self.packaged:
            return package_version(part, self.root.parent.parent) or "none"
        # A system toolkit: any change of the compiler shows in one of these.
        stats = [os.stat(p) for p in (self.root / "bin" / "nvcc", self.root / "version.json") if p.exists()]
        return f"{self.root}:" + ",".join(f"{s.st_size}-{s.st_mtime_ns}" for s in stats)

    def _library(self, name: str) -> Path:
        for folder in ("lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
            if (path := self.root / folder / name).exists():
                return path
        raise MissingToolError(f"NVRTC is not installed ({name} not found in {self.root}); {INSTALL}")


def package_version(name: str, site: Path) -> str | None:
    """The installed version of a package, by its metadata folder (importlib.metadata reads all of them)."""
    stem = name.replace("-", "_")
    for folder in site.glob(f"{stem}-*.dist-info"):
        return folder.name.removeprefix(f"{stem}-").removesuffix(".dist-info")
    return None


@cache
def toolkit() -> Toolkit:
    """The toolkit to use; raises with what to install when there is none."""
    for candidate in _candidates():
        return candidate
    raise MissingToolError(f"the CUDA compilers are not installed; {INSTALL}")


def _candidates() -> Iterator[Toolkit]:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        root = Path(folder) / "cu13"
        if (root / "bin").is_dir() or (root / "lib").is_dir():
            yield Toolkit(root, packaged=True)
    on_path = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    places += [str(Path(on_path).resolve().parent.parent) if on_path else None, "/usr/local/cuda"]
    for place in places:
        if place and (Path(place) / "bin" / "nvcc").exists() and _major(Path(place)) == 13:
            yield Toolkit(Path(place), packaged=False)


def _major(root: Path) -> int | None:
    """A system toolkit's CUDA version; other majors register kernels in another way."""
    header = root / "include" / "cuda.h"
    if not header.exists():
        return None
    found = re.search(r"^#define CUDA_VERSION (\d+)", header.read_text(errors="replace"), re.MULTILINE)
    return int(found[1]) // 1000 if found else None


@cache
def host_compiler() -> str:
    """The C++ compiler's path."""
    for name in (os.environ.get("CXX", ""), "g++", "c++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    raise HostCompilerError(
        "whole programs need a C++ compiler (g++), and none was found; on Debian or Ubuntu: sudo apt install g++"
    )


def host_compiler_identity() -> str:
    """Changes whenever the compiler is replaced."""
    path = os.path.realpath(host_compiler())
    stat = os.stat(path)
    return f"{path}:{stat.st_size}:{stat.st_mtime_ns}"
