"""The command ``warpsmith``: finds the command asked for and turns errors into messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from ..errors import CompileError, OutOfMemoryError, UsageError, WarpsmithError
from .output import say, table

#: Command -> what it does.  Each is a module of this folder with ``main(arguments) -> exit code``; only the
#: one asked for is loaded.
COMMANDS = {
    "run": "compile a CUDA program and run it on an emulated GPU",
    "nvcc": "in the place of nvcc in a build: executables that run on the emulator",
    "compile": "CUDA C++ to PTX",
    "ptx": "what is in a PTX file",
    "chips": "the GPUs that can be emulated",
    "occupancy": "how many blocks an SM holds, and what limits it",
    "doctor": "what is installed, what is missing, how to get it",
    "cache": "how much the cache holds; clear it",
    "version": "versions of warpsmith and its compilers",
    "help": "about a command, or a topic (exit-codes)",
}

INTERRUPTED = 130
INTERNAL = 70


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)  # an exception, so that compilers are ended and folders removed on the way out
    try:
        code = _command(arguments)
        sys.stdout.flush()
        return code
    except CompileError as error:
        print(error.log, file=sys.stderr)
        return error.code
    except WarpsmithError as error:
        say(str(error))
        return error.code
    except MemoryError:
        say("out of memory")
        return OutOfMemoryError.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Who read our output has gone; Python must not complain about that on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith("warpsmith"):
            say(f"the Python package {error.name} is not installed; pip install warpsmith installs it")
            return 86
        raise
    except Exception:
        import traceback

        traceback.print_exc()
        say("this is a bug in warpsmith, not in your program; please report it with the lines above")
        return INTERNAL


def _command(arguments: Sequence[str]) -> int:
    if not arguments:
        print(welcome())
        return 0
    name, *rest = arguments
    name = {"-h": "help", "--help": "help", "--version": "version", "-V": "version"}.get(name, name)
    if name not in COMMANDS:
        raise UsageError(_unknown(name))
    return int(import_module(f".{name}", __package__).main(rest))


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    if name.endswith((".cu", ".cpp", ".c")) or os.path.exists(name):
        return f"there is no command {name}; to run a program: {program()} run {name}"
    near = get_close_matches(name, COMMANDS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"there is no command {name}{hint}; {program()} help lists them"


def program() -> str:
    """How the person called us."""
    return os.environ.get("WARPSMITH_PROGRAM", "warpsmith")


def indented(rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join("  " + line for line in table(rows).splitlines())


def welcome() -> str:
    me = program()
    example = "examples/saxpy.cu" if os.path.exists("examples/saxpy.cu") else "saxpy.cu"
    tries = [
        (f"{me} run {example}", "a whole program: its output, then what it launched"),
        (f"{me} run {example} --chip a100 -- 1000", 'on another GPU; after "--", the program\'s own arguments'),
        (f"{me} doctor", "is everything here that is needed?"),
    ]
    here = {"test": "run the tests", "bench": "run a benchmark; alone: list them", "python": "Python with warpsmith"}
    launcher = f"\nOf this repository:\n{indented(list(here.items()))}\n" if os.path.basename(me) == "ws" else ""
    return f"""\
warpsmith runs CUDA programs on any machine: it compiles them with NVIDIA's own compilers and executes the
result (PTX) on the processor, translated to its vector instructions.  It needs no GPU, and it says where a
kernel reads out of bounds, waits forever or fails, by source line, block and thread.

Try:
{indented(tries)}

Commands:
{indented(list(COMMANDS.items()))}
{launcher}
{me} COMMAND --help says more about each.

From Python:
  import warpsmith
  dev = warpsmith.device("emulator", chip="h200")
  dev.compile(source)["kernel"](grid, block, array, 3.0)"""
