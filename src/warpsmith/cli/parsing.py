"""The argument parser of all commands: errors as ours are said, help with examples."""

from __future__ import annotations

import argparse
from typing import NoReturn

from ..chips import DEFAULT
from ..errors import UsageError
from .main import COMMANDS, program


class Parser(argparse.ArgumentParser):
    def __init__(self, command: str, *, examples: str = "", more: str = "", usage: str | None = None) -> None:
        epilog = "\n\n".join(filter(None, [more.strip("\n"), examples and "examples:\n" + examples.strip("\n")]))
        super().__init__(
            prog=f"{program()} {command}",
            description=COMMANDS[command],
            epilog=epilog.replace("$ws", program()),
            usage=usage and f"{program()} {command} {usage}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def chip(self) -> None:
        self.add_argument(
            "--chip", default=DEFAULT, metavar="NAME", help=f"the GPU to emulate, by name or architecture ({DEFAULT})"
        )

    def json(self) -> None:
        self.add_argument("--json", action="store_true", help="as JSON, for programs")
