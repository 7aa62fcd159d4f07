"""``warpsmith help``: the overview, a command's own help, or a topic."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ..errors import UsageError, WarpsmithError
from .main import COMMANDS, INTERNAL, INTERRUPTED, program, welcome
from .output import table


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print(welcome())
        return 0
    topic = arguments[0]
    if topic == "exit-codes":
        print(table([("code", "meaning"), *((str(code), meaning) for code, meaning in exit_codes())], right=[0]))
        return 0
    if topic == "help" or topic.startswith("-"):
        print(f"usage: {program()} help [COMMAND | exit-codes]")
        return 0
    if topic in COMMANDS:
        return int(import_module(f".{topic}", __package__).main(["--help"]))
    raise UsageError(f"there is no command or topic {topic}; {program()} help lists them")


def exit_codes() -> list[tuple[int, str]]:
    """Every exit code of ours with its meaning, in order."""
    codes = {kind.code: kind.meaning for kind in _kinds(WarpsmithError)}
    codes[0] = "everything went well"
    codes[INTERNAL] = "a bug in warpsmith itself"
    codes[INTERRUPTED] = "interrupted with Ctrl-C"
    return sorted(codes.items())


def _kinds(kind: type[WarpsmithError]) -> list[type[WarpsmithError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _kinds(child))]
