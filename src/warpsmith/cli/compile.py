"""``warpsmith compile``: CUDA C++ to PTX."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..chips import Chip, load
from ..errors import CompileError, HostCompilerError, UsageError
from ..toolchains.base import Artifact
from ..toolchains.options import Options, check_sources, parse
from .arguments import split
from .output import Progress, write_text
from .parsing import Parser

EXAMPLES = """
  $ws compile kernel.cu                         to the screen
  $ws compile kernel.cu -o kernel.ptx --chip a100
  $ws compile kernel.cu -DN=4 -Iinclude --use_fast_math
"""
MORE = """
All other options are the compiler's: -I, -D, -std, -include, -maxrregcount...  NVRTC compiles when it can (it
is faster and needs no C++ compiler), nvcc otherwise: for sources with host code in them."""

#: What NVRTC says of code for the host.
_HOST_CODE = (
    "is considered a host function", "is not allowed in JIT mode", "could not open source file",
    "cannot open source file", "kernel launch from", "calling a __host__ function",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = Parser("compile", examples=EXAMPLES, more=MORE, usage="FILE.cu [options]")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write the PTX (stdout)")
    parser.add_argument(
        "--toolchain", choices=("auto", "nvrtc", "nvcc"), default="auto", help="which compiler (auto: see below)"
    )
    parser.chip()
    ours, rest, _ = split(parser, arguments)
    options = parser.parse_args(ours)
    given = parse(rest)
    if len(given.sources) != 1:
        raise UsageError(f"compile takes one source file, {len(given.sources)} given; see {parser.prog} --help")
    check_sources(given.sources, (".cu", ".cuh"))
    progress = Progress()
    try:
        artifact = _compile(given.sources[0], given, load(options.chip), options.toolchain, progress)
    finally:
        progress.done()
    if artifact.log:
        print(artifact.log, file=sys.stderr)
    write_text(options.output, artifact.text)
    return 0


def _compile(source: str, options: Options, chip: Chip, toolchain: str, progress: Progress) -> Artifact:
    from ..toolchains import nvcc, nvrtc

    if toolchain == "nvcc":
        return nvcc.ptx(source, options, chip, progress)
    try:
        text = Path(source).read_text(errors="surrogateescape")
        return nvrtc.compile(text, name=source, chip=chip, options=_for_nvrtc(options))
    except (CompileError, UsageError) as error:
        if toolchain == "nvrtc" or not (isinstance(error, UsageError) or any(s in str(error) for s in _HOST_CODE)):
            raise
        try:
            return nvcc.ptx(source, options, chip, progress)
        except HostCompilerError:
            raise error from None


def _for_nvrtc(options: Options) -> list[str]:
    """NVRTC looks for headers where the program that uses it runs, so relative folders are the same ones."""
    out = []
    rest = iter(options.compile)
    for option in rest:
        if option == "-isystem":
            out.append(f"-I{next(rest)}")
        elif option == "-include":
            out.append(f"--pre-include={next(rest)}")
        elif option == "-Xcompiler":
            next(rest)
        elif option.startswith("-O") or option in ("-g", "-w"):
            pass  # of the host compiler
        elif option.startswith(
            ("-use_fast_math", "-extended", "-expt", "-ftz", "-prec", "-fmad", "-maxrregcount", "-std")
        ):
            out.append(f"-{option}" if not option.startswith("-expt") else "")
        else:
            out.append(option)
    return [os.fspath(option) for option in out if option]
