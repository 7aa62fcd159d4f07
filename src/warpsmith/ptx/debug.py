"""Positions in the source: ``.loc``, ``.file`` and the names in debug data."""

from __future__ import annotations

import re

from . import constants
from .ast import Loc
from .source import Source

_LOC = re.compile(r"\s++(\d{1,9})\s++(\d{1,9})(?:\s++(\d{1,9}))?(?=[\s,])", re.ASCII)
_INLINED = re.compile(
    r"\s*+,\s*+function_name\s++([\w$]++)(?:\s*+\+\s*+(\d{1,9}))?"
    r"\s*+,\s*+inlined_at\s++(\d{1,9})\s++(\d{1,9})(?:\s++(\d{1,9}))?",
    re.ASCII,
)
_DEBUG_STR = re.compile(r"\.section\s++\.debug_str\s*+\{", re.ASCII)
_STR_LABEL = re.compile(r"([\w$]++)\s*+:", re.ASCII)
_STR_BYTE = re.compile(r"(?<![\w.])\d{1,3}(?![\w.])", re.ASCII)
_MAX_INLINED = 64


class Positions:
    """The ``.loc`` directives of one function."""

    def __init__(self, src: Source, names: dict[str, str]) -> None:
        self.src, self.names = src, names
        self.current: Loc | None = None
        self.latest: dict[tuple[int, int, int], tuple[Loc, int]] = {}  # position -> Loc, how often inlined

    def directive(self, pos: int) -> int:
        """``.loc 1 5 3, function_name $L__info_string0, inlined_at 1 10 5`` after the word itself.

        The place of inlining is named by its position alone; the last ``.loc`` of that position is meant."""
        src = self.src
        match = _LOC.match(src.text, pos)
        if match is None:
            src.expected(pos, "file, line and column")
        file, line, column = int(match[1]), int(match[2]), int(match[3] or 0)
        inlined = _INLINED.match(src.text, match.end())
        if inlined is None:
            loc, depth = Loc(file, line, column), 0
        else:
            where = int(inlined[3]), int(inlined[4]), int(inlined[5] or 0)
            parent, depth = self.latest.get(where) or (Loc(*where), 0)
            function = self.names.get(inlined[1], inlined[1])
            if depth < _MAX_INLINED:
                loc, depth = Loc(file, line, column, function, parent), depth + 1
            else:
                loc, depth = Loc(file, line, column, function), 0
        self.current = loc
        self.latest[file, line, column] = loc, depth
        return (inlined or match).end()


def file(src: Source, pos: int) -> tuple[int, str, int]:
    """``.file 1 "a.cu", time, size`` after the word itself: number, name and the position after it."""
    number, pos = constants.integer(src, pos, "a file number")
    name, pos = src.string(pos)
    while src.peek(pos) == ",":
        _, pos = constants.integer(src, src.skip(pos) + 1)
    return number, name, pos


def section(src: Source, pos: int) -> int:
    """Skip debug data; nothing but ``.debug_str`` (see ``strings``) is of use here."""
    start = src.text.find("{", pos)
    if start < 0:
        src.expected(pos, "'{'")
    end = src.text.find("}", start)
    if end < 0:
        src.error(start, "'{' without a matching '}'")
    return end + 1


def strings(src: Source) -> dict[str, str]:
    """Label -> text of ``.debug_str``, where function names of inlined positions are."""
    section = _DEBUG_STR.search(src.text)
    if section is None:
        return {}
    end = src.text.find("}", section.end())
    pieces = _STR_LABEL.split(src.text[section.end() : end if end >= 0 else len(src.text)])
    result = {}
    for label, data_ in zip(pieces[1::2], pieces[2::2], strict=True):
        raw = bytes(int(v) & 255 for v in _STR_BYTE.findall(data_))
        result[label] = raw.split(b"\0")[0].decode("utf-8", "replace")
    return result
