"""PTX text without its comments, and the small lexical questions that every part of the parser asks."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NoReturn

from .ast import PtxError

#: A name (PTX ISA 4.4); register names may start with a percent sign.
NAME = re.compile(r"[A-Za-z_$%][\w$]*+", re.ASCII)
_SPACE = re.compile(r"\s*+", re.ASCII)
_DIRECTIVE = re.compile(r"\.([a-z_]\w*+)", re.ASCII)
#: Comments and strings always match, closed or not: an open one ends the text, which keeps the scan linear.
_COMMENT = re.compile(r'//[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)|"(?:[^"\\\n]|\\[^\n])*+"?')
#: What an error message quotes: a word, a string or one character.
_TOKEN = re.compile(r'[\w$%.:]+|"[^"\n]*"?|\S', re.ASCII)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Source:
    """The text with comments blanked (line breaks stay, so that line numbers do), and errors at a position."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text.rstrip("\0")  # NVRTC and fat binaries end PTX with a zero byte
        #: Bytes of initial values so far: a few braces can stand for many bytes, so their sum is limited.
        self.initial_bytes = 0
        self.newlines = [m.start() for m in re.finditer("\n", self.text)]
        self.text = _COMMENT.sub(self._blank, self.text)
        self.newlines = [m.start() for m in re.finditer("\n", self.text)]

    def _blank(self, match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == '"':
            if len(token) < 2 or token[-1] != '"':
                self.error(match.start(), "string without a closing quote")
            return token
        if token[1] == "/":
            return ""
        if len(token) < 4 or not token.endswith("*/"):
            self.error(match.start(), "comment without a closing '*/'")
        return " " + "\n" * token.count("\n")

    def line(self, pos: int) -> int:
        """The line (from 1) of a position."""
        return bisect_left(self.newlines, pos) + 1

    def error(self, pos: int, message: str) -> NoReturn:
        raise PtxError(message, self.line(pos), self.name)

    def found(self, pos: int) -> str:
        """What stands at a position, for an error message."""
        match = _TOKEN.match(self.text, self.skip(pos))
        if match is None:
            return "the end of the text"
        return quoted(match[0])

    def expected(self, pos: int, what: str) -> NoReturn:
        pos = self.skip(pos)
        self.error(pos, f"expected {what}, found {self.found(pos)}")

    def skip(self, pos: int) -> int:
        """The first position that is not white space."""
        match = _SPACE.match(self.text, pos)
        assert match is not None
        return match.end()

    def peek(self, pos: int) -> str:
        """The next character that is not white space ("" at the end)."""
        pos = self.skip(pos)
        return self.text[pos : pos + 1]

    def expect(self, pos: int, what: str) -> int:
        """Step over a punctuation mark."""
        pos = self.skip(pos)
        if not self.text.startswith(what, pos):
            self.error(pos, f"expected '{what}', found {self.found(pos)}")
        return pos + len(what)

    def ident(self, pos: int, what: str = "a name") -> tuple[str, int]:
        pos = self.skip(pos)
        match = NAME.match(self.text, pos)
        if match is None:
            self.expected(pos, what)
        return match[0], match.end()

    def directive(self, pos: int) -> tuple[str, int] | None:
        """A word that starts with a dot (without the dot), or None."""
        match = _DIRECTIVE.match(self.text, self.skip(pos))
        return (match[1], match.end()) if match else None

    def string(self, pos: int) -> tuple[str, int]:
        """A quoted string with its escapes resolved."""
        pos = self.skip(pos)
        match = _COMMENT.match(self.text, pos)
        if match is None or match[0][0] != '"':
            self.expected(pos, "a string")
        return re.sub(r"\\(x[0-9a-fA-F]{1,2}|.)", _unescape, match[0][1:-1]), match.end()


def quoted(word: str) -> str:
    """A word of the text as error messages show it."""
    return f"'{word if len(word) <= 60 else word[:57] + '...'}'"


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPES.get(code, code)
    value = int(code[1:], 16)
    return chr(value if value < 128 else 0xDC00 + value)  # a byte, in the manner of "surrogateescape"
