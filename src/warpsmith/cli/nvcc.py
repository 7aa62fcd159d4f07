"""``warpsmith nvcc``: in the place of nvcc in a build."""

from __future__ import annotations

from collections.abc import Sequence

from .main import COMMANDS, program

HELP = """\
usage: {ws} nvcc [nvcc's options] FILES
       {ws} nvcc --toolkit

{what}

Takes nvcc's command lines; the programs that come out run on the emulator.  Architectures (-arch, -gencode) are
replaced by PTX that the chip in $WARPSMITH_CHIP (h200) runs; libcudart is warpsmith's.  Everything else, also
what the options mean, is NVIDIA's nvcc: {ws} nvcc -h lists them.

--toolkit prints the path of a folder that looks like a CUDA toolkit, for builds that ask for one.

examples:
  Makefiles   make NVCC='{ws} nvcc'
              make CUDA_HOME=$({ws} nvcc --toolkit)
  CMake       cmake -B build -DCMAKE_CUDA_COMPILER=$({ws} nvcc --toolkit)/bin/nvcc
  others      PATH=$({ws} nvcc --toolkit)/bin:$PATH ./configure

The programs are started like any other, or with {ws} run ./program arguments, which sums up.  By hand, these
variables say how:
  WARPSMITH_CHIP   the GPU to emulate (h200)
  WARPSMITH_MODE   check, or fast
  WARPSMITH_ORDER  of blocks: ascending, descending or random, with WARPSMITH_SEED
  WARPSMITH_CORES  how many cores to use (0: all)
  WARPSMITH_LEAKS  1: memory that the program does not free is reported"""


def main(arguments: Sequence[str]) -> int:
    if not arguments or list(arguments) == ["--help"]:
        print(HELP.format(ws=program(), what=COMMANDS["nvcc"]))
        return 0
    from ..toolchains import dropin

    if list(arguments) == ["--toolkit"]:
        print(dropin.folder())
        return 0
    return dropin.main(arguments)
