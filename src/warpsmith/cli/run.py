"""``warpsmith run``: compile a program and run it on an emulated GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..chips import Chip, load
from ..errors import KernelError, UnsupportedInstructionError, UsageError
from ..toolchains.options import SOURCES
from .arguments import split
from .output import Progress, dump_json, duration, table, write_text
from .parsing import Parser

if TYPE_CHECKING:
    from ..devices.emulator.service import RunResult
    from ..toolchains.nvcc import ProgramFile

EXAMPLES = """
  $ws run saxpy.cu
  $ws run main.cpp kernels.cu -Iinclude -O3 -lm -- input.txt 1000
  $ws run saxpy.cu --chip rtx4090 --mode fast
  $ws run saxpy.cu --json report.json
  $ws run --chip a100 ./app input.txt 1000       a program that $ws nvcc has built
"""
MORE = """
Sources end in .cu, .cpp, .cc, .cxx or .c.  All other options are nvcc's: -I, -D, -std, -O, -Xcompiler, -include,
-L, -l, -g...  Those that choose an architecture or an output file (-arch, -gencode, -o) are accepted and without
effect.  What follows "--" goes to the program, which runs in the current folder with this terminal's input;
nothing is added to its output: the summary goes to stderr.

Modes: check   every access of a kernel to memory is compared with what was allocated (the default)
       fast    only what the processor catches by itself"""


def main(arguments: Sequence[str]) -> int:
    parser = Parser(
        "run",
        examples=EXAMPLES,
        more=MORE,
        usage="SOURCES [options] [-- program's arguments]  (or: [options] PROGRAM [its arguments])",
    )
    parser.add_argument("--mode", choices=("check", "fast"), default="check", help="how much is checked (see below)")
    parser.add_argument("--order", choices=("ascending", "descending", "random"), default="ascending", help="of blocks")
    parser.add_argument("--seed", type=natural, default=0, metavar="N", help="of --order random")
    parser.add_argument("--cores", type=natural, default=0, metavar="N", help="to use (0: all)")
    parser.add_argument("--leaks", action="store_true", help="memory that the program does not free is a problem, too")
    parser.add_argument("--json", metavar="FILE", help='the summary as JSON to a file, "-" for stderr')
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")
    parser.chip()
    arguments, built, built_arguments = _built_program(parser, arguments)
    ours, rest, program_arguments = split(parser, arguments)
    options = parser.parse_args(ours)
    chip = load(options.chip)

    from ..toolchains import nvcc
    from ..toolchains.options import parse

    given = parse(rest)
    if not given.sources and not built:
        raise UsageError(f"no source file given; see {parser.prog} --help")
    if built and rest:
        raise UsageError(
            f"{built} is a program already, so {rest[0]} would have no effect; its arguments stand behind it"
        )
    if options.json and options.json != "-":
        write_text(options.json, "")  # better to learn now that it cannot be written
    progress = Progress()
    try:
        program = nvcc.ProgramFile(built, "", True, 0.0) if built else nvcc.build(given, chip, progress)
    finally:
        progress.done()
    if program.log:
        print(program.log, file=sys.stderr)

    from ..devices.emulator.service import RunOptions, run_program

    sys.stdout.flush()
    result = run_program(
        program.path,
        built_arguments if built else program_arguments,
        chip,
        RunOptions(
            mode=options.mode, order=options.order, seed=options.seed, threads=options.cores, leaks=options.leaks
        ),
    )
    if options.json:
        text = dump_json(report(result, program, chip, options.mode)) + "\n"
        if options.json == "-":
            sys.stderr.write(text)
        else:
            write_text(options.json, text)
    elif not options.quiet:
        print(summary(result, chip, options.mode), file=sys.stderr)
    return exit_code(result)


def _built_program(parser: Parser, arguments: Sequence[str]) -> tuple[Sequence[str], Path | None, Sequence[str]]:
    """(arguments before it, the program, its own arguments) if a built program is to be run."""
    valued = {name for action in parser._actions if action.nargs is None for name in action.option_strings}
    before = ""
    for at, word in enumerate(arguments):
        if word == "--":
            break
        path = Path(word)
        if before not in valued and not word.startswith("-") and path.is_file() and os.access(path, os.X_OK):
            with path.open("rb") as file:
                start = file.read(4)
            library = path.suffix in (".so", ".o", ".a")
            if (start == b"\x7fELF" or start[:2] == b"#!") and not library and not word.endswith(SOURCES):
                rest = list(arguments[at + 1 :])
                return arguments[:at], path.absolute(), rest[1:] if rest[:1] == ["--"] else rest
        before = word
    return arguments, None, ()


def natural(text: str) -> int:
    """A whole number from 0 to 2^32 - 1, for argparse."""
    number = int(text)
    if not 0 <= number < 1 << 32:
        raise ValueError
    return number


def exit_code(result: RunResult) -> int:
    """The program's own; a program that did not look whether its kernels failed must not look well."""
    if result.returncode < 0:
        return 128 - result.returncode
    if result.returncode or not result.problems:
        return result.returncode
    ours = all(problem.get("kind") == "compile" for problem in result.problems)  # nothing of the program's is wrong
    return UnsupportedInstructionError.code if ours else KernelError.code


def _signal(number: int) -> str:
    import signal

    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    meaning = {
        "SIGSEGV": "it used an address that is not its own",
        "SIGABRT": "it called abort, or an assertion of the host's failed",
        "SIGFPE": "it divided by zero",
        "SIGKILL": "most likely the machine ran out of memory",
    }
    return name + (f" ({meaning[name]})" if name in meaning else "")


def report(result: RunResult, program: ProgramFile, chip: Chip, mode: str) -> dict[str, Any]:
    """The run in plain data."""
    return {
        "chip": chip.id,
        "mode": mode,
        "exit_code": exit_code(result),
        "program_exit_code": result.returncode,
        "build_seconds": program.seconds,
        "build_cached": program.cached,
        "kernels": [
            {
                "name": kernel.name,
                "launches": kernel.launches,
                "blocks": kernel.blocks,
                "threads": kernel.threads,
                "instructions": kernel.instructions,
                "nanoseconds": kernel.nanoseconds,
            }
            for kernel in result.kernels
        ],
        "problems": list(result.problems),
        "notes": list(result.notes),
        "memory_peak": result.memory_peak,
        "seconds": result.seconds,
    }


def summary(result: RunResult, chip: Chip, mode: str) -> str:
    """What a person wants to know after a run; the problems themselves were said when they happened."""
    lines = [f"--- warpsmith: {chip.name}, emulated, mode {mode} ---"]
    if result.kernels:
        names = [shorten(name) for name in _readable([kernel.name for kernel in result.kernels])]
        rows = [("kernel", "launches", "blocks", "threads", "warp instructions", "time here")]
        for name, kernel in zip(names, result.kernels, strict=True):
            counts = (kernel.launches, kernel.blocks, kernel.threads, kernel.instructions)
            a, b, c, d = (f"{count:,}" for count in counts)
            rows.append((name, a, b, c, d, duration(kernel.nanoseconds / 1e9)))
        lines.append(table(rows, right=[1, 2, 3, 4, 5]))
    else:
        lines.append("no kernel was launched")
    lines += [f"note: {note}" for note in result.notes]
    count = len(result.problems)
    if count:
        lines.append(f"{count} problem{'s' * (count > 1)} found (see above)")
    elif result.returncode >= 0:
        lines.append("no problems found" + (" (mode fast does not look for most of them)" if mode == "fast" else ""))
    if result.returncode < 0:
        lines.append(f"the program was ended by {_signal(-result.returncode)}")
    return "\n".join(lines)


def shorten(name: str, width: int = 60) -> str:
    """A template's name can have hundreds of characters; its ends tell the most."""
    return name if len(name) <= width else f"{name[: width - 20]}...{name[-17:]}"


def _readable(names: list[str]) -> list[str]:
    """C++ names without their mangling and arguments."""
    tool = shutil.which("c++filt")
    if not tool or not any(name.startswith("_Z") for name in names):
        return names
    done = subprocess.run([tool, "-p"], input="\n".join(names), capture_output=True, text=True)
    readable = done.stdout.splitlines()
    return readable if len(readable) == len(names) else names
