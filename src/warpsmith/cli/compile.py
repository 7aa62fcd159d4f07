"""``warpsmith compile``: CUDA C++ to PTX."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..chips import Chip, load
from ..errors import UsageError
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
    from ..toolchains import auto, nvcc, nvrtc

    text = Path(source).read_text(errors="surrogateescape")
    if toolchain == "nvcc":
        return nvcc.ptx(text, options, chip, name=source, progress=progress)
    if toolchain == "nvrtc":
        return nvrtc.compile(text, name=source, chip=chip, options=auto.for_nvrtc(options))
    return auto.compile(text, name=source, chip=chip, options=options, progress=progress)
