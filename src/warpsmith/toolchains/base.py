"""What every toolchain gives back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["note", "remark", "warning", "error"]


@dataclass(frozen=True)
class Diagnostic:
    """One message of a compiler, where it stands in the source."""

    file: str
    line: int  # 0: the whole file
    column: int  # 0: not given
    severity: Severity
    text: str


@dataclass(frozen=True)
class Artifact:
    """Compiled text with what a device or a reader needs to know about it."""

    text: str
    target: str  # sm_90a
    name: str  # of the source, as in its diagnostics
    toolchain: str  # "nvrtc 13.0.88"
    log: str = ""  # warnings, in the compiler's own words
    kernels: dict[str, str] = field(default_factory=dict)  # name asked for -> name in the text
    cached: bool = False
    seconds: float = 0.0

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return list(diagnostics(self.log))


# nvcc's front end and NVRTC:  k.cu(3): error: identifier "x" is undefined    k.cu(3): warning #177-D: ...
# gcc and clang:               k.cu:3:5: error: ...
# ptxas:                       ptxas k.ptx, line 3; error   : ...
_EDG = re.compile(r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?P<rest>.*)$")
_GCC = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<rest>.*)$")
_PTXAS = re.compile(r"^ptxas (?P<file>.+), line (?P<line>\d+); (?P<rest>.*)$")
_SEVERITY = re.compile(r"^(?:catastrophic |fatal |internal )?(note|remark|warning|error)\b[^:]*: (.*)$")


def diagnostics(log: str) -> Iterator[Diagnostic]:
    """The messages in a compiler's text (its carets and summaries are left out)."""
    for line in log.splitlines():
        for pattern in (_PTXAS, _EDG, _GCC):
            found = pattern.match(line)
            if found and (said := _SEVERITY.match(found["rest"])):
                column = found.groupdict().get("column")
                yield Diagnostic(found["file"], int(found["line"]), int(column or 0), _severity(said[1]), said[2])
                break


def _severity(word: str) -> Severity:
    return "error" if word == "error" else "warning" if word == "warning" else "note" if word == "note" else "remark"
