"""CUDA C++ -> PTX by whichever compiler takes it: NVRTC, which is fast and needs no C++ compiler, or nvcc for
sources with host code in them."""

from __future__ import annotations

from collections.abc import Sequence

from ..chips import DEFAULT, Chip, load
from ..errors import CompileError, HostCompilerError, UsageError
from . import nvcc, nvrtc
from .base import Artifact
from .nvcc import Progress
from .options import Options, parse

#: What NVRTC says of code for the host.
_HOST_CODE = (
    "is considered a host function", "is not allowed in JIT mode", "could not open source file",
    "cannot open source file", "kernel launch from", "calling a __host__ function",
)  # fmt: skip


def compile(
    source: str,
    *,
    name: str = "kernel.cu",
    chip: Chip | str = DEFAULT,
    options: Sequence[str] | Options = (),
    progress: Progress = lambda step: None,
) -> Artifact:
    """``options`` are nvcc's; ``name`` is the file name in messages and line information, and the folder in it
    is where quoted #includes look first."""
    chip = load(chip) if isinstance(chip, str) else chip
    given = options if isinstance(options, Options) else parse(options)
    try:
        return nvrtc.compile(source, name=name, chip=chip, options=for_nvrtc(given))
    except (CompileError, UsageError) as error:
        if isinstance(error, CompileError) and not any(said in error.log for said in _HOST_CODE):
            raise
        try:
            return nvcc.ptx(source, given, chip, name=name, progress=progress)
        except HostCompilerError:
            raise error from None


def for_nvrtc(options: Options) -> list[str]:
    """nvcc's options in NVRTC's spelling, without those of the host compiler."""
    out: list[str] = []
    words = iter(options.compile)
    for word in words:
        if word == "-isystem":
            out.append(f"-I{next(words)}")
        elif word == "-include":
            out.append(f"--pre-include={next(words)}")
        elif word == "-Xcompiler":
            next(words)
        elif word == "-w":
            out.append("--disable-warnings")
        elif word.startswith(("-O", "--expt", "-expt")) or word == "-g":
            pass  # of the host compiler, or always so in NVRTC
        elif word.startswith("-") and word[1:].startswith(
            ("use_", "extended", "ftz", "prec", "fmad", "maxrreg", "std")
        ):
            out.append(f"-{word}")
        else:
            out.append(word)
    return out
