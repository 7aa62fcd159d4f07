"""Literals and constant expressions (PTX ISA 4.5): 64-bit integers as in C, and doubles."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from .ast import Imm
from .source import Source

_LITERAL = re.compile(
    r"""(?:
      0[fF](?P<f32>[0-9a-fA-F]{8})
    | 0[dD](?P<f64>[0-9a-fA-F]{16})
    | 0[xX](?P<hex>[0-9a-fA-F]++)U?
    | 0[bB](?P<bin>[01]++)U?
    | (?P<float>(?:\d++\.\d*+|\d++(?=[eE]))(?:[eE][+-]?\d++)?)
    | 0(?P<oct>[0-7]++)U?
    | (?P<dec>0|[1-9]\d*+)U?
    )(?![\w.$])""",
    re.VERBOSE | re.ASCII,
)
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_UNARY = re.compile(r"\s*+(\(\s*+\.[su]64\s*+\)|[-+~!])", re.ASCII)
_BINARY = re.compile(r"\s*+(\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^<>?])", re.ASCII)
_PRECEDENCE = {
    op: level
    for level, ops in enumerate(
        ("?", "||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"), start=1
    )
    for op in ops.split()
}  # fmt: skip
_MAX_DEPTH = 120  # far beyond any real expression, far below Python's recursion limit
_MAX_DIGITS = 400
_WORD = 1 << 64


class Const(NamedTuple):
    """A value: kind "s" or "u" (64-bit integers), "f32" or "f64" (bit patterns)."""

    kind: str
    value: int

    @property
    def is_int(self) -> bool:
        return self.kind in "su"

    def imm(self) -> Imm:
        return Imm(self.value, "int" if self.is_int else self.kind)

    def number(self) -> int | float:
        """The value as Python number."""
        if self.is_int:
            return self.value
        size, code = (4, "<f") if self.kind == "f32" else (8, "<d")
        return float(struct.unpack(code, self.value.to_bytes(size, "little"))[0])


def of_float(value: float) -> Const:
    return Const("f64", int.from_bytes(struct.pack("<d", value), "little"))


def of_int(value: int, unsigned: bool) -> Const:
    """Wrapped to 64 bits."""
    value %= _WORD
    return Const("u", value) if unsigned else Const("s", value - _WORD if value >> 63 else value)


def literal(src: Source, pos: int) -> tuple[Const, int]:
    """One number, as written."""
    pos = src.skip(pos)
    match = _LITERAL.match(src.text, pos)
    if match is None:
        if src.text[pos : pos + 1].isdigit():
            src.error(pos, f"malformed number {src.found(pos)}")
        src.expected(pos, "a number")
    value = _value(match)
    if value is None:
        src.error(pos, f"number {src.found(pos)} does not fit in 64 bits")
    return value, match.end()


def simple(text: str) -> Const | None:
    """A text that is nothing but a number, perhaps with a minus sign; None for everything else."""
    text = text.strip()
    minus = text.startswith("-")
    match = _LITERAL.fullmatch(text, minus)
    value = _value(match) if match else None
    return negated(value) if minus and value else value


def _value(match: re.Match[str]) -> Const | None:
    kind = match.lastgroup
    assert kind is not None
    digits = match[kind]
    if len(digits) > _MAX_DIGITS:
        return None
    if kind in ("f32", "f64"):
        return Const(kind, int(digits, 16))
    if kind == "float":
        return of_float(float(digits))
    value = int(digits, _BASES[kind])
    if value >= _WORD:
        return None
    return Const("u" if match[0][-1] == "U" or value >> 63 else "s", value)


def negated(a: Const) -> Const:
    if not a.is_int:
        return Const(a.kind, a.value ^ (1 << (31 if a.kind == "f32" else 63)))
    return Const("s", -a.value) if a.value <= 1 << 63 else of_int(-a.value, True)


def expression(src: Source, pos: int, depth: int = 0, least: int = 1) -> tuple[Const, int]:
    """A constant expression of operators that bind at least as strongly as ``least``."""
    if depth > _MAX_DEPTH:
        src.error(pos, "constant expression is nested too deeply")
    left, pos = _unary(src, pos, depth)
    while (match := _BINARY.match(src.text, pos)) and _PRECEDENCE[match[1]] >= least:
        op, at = match[1], match.start(1)
        if op == "?":
            yes, pos = expression(src, match.end(), depth + 1)
            no, pos = expression(src, src.expect(pos, ":"), depth + 1)
            left = yes if left.number() else no
        else:
            right, pos = expression(src, match.end(), depth + 1, _PRECEDENCE[op] + 1)
            left = _apply(src, at, op, left, right)
    return left, pos


def integer(src: Source, pos: int, what: str = "an integer") -> tuple[int, int]:
    """A constant expression that must be an integer."""
    value, end = expression(src, pos)
    if not value.is_int:
        src.expected(pos, what)
    return value.value, end


def _unary(src: Source, pos: int, depth: int) -> tuple[Const, int]:
    operators: list[str] = []
    while match := _UNARY.match(src.text, pos):
        operators.append(match[1])
        pos = match.end()
    pos = src.skip(pos)
    if src.text.startswith("(", pos):
        value, pos = expression(src, pos + 1, depth + 1)
        pos = src.expect(pos, ")")
    elif src.text.startswith("WARP_SZ", pos):
        value, pos = Const("s", 32), pos + len("WARP_SZ")
    else:
        value, pos = literal(src, pos)
    for op in reversed(operators):
        value = _apply_unary(src, pos, op, value)
    return value, pos


def _apply_unary(src: Source, pos: int, op: str, a: Const) -> Const:
    if op == "+":
        return a
    if op[0] == "(":
        return of_int(int(_finite(src, pos, a)), "u" in op)
    if op == "!":
        return Const("s", int(not a.number()))
    if op == "-":
        return negated(a)
    if not a.is_int:
        src.error(pos, "'~' needs an integer constant")
    return of_int(~a.value, a.kind == "u")


def _finite(src: Source, pos: int, a: Const) -> int | float:
    number = a.number()
    if number != number or number in (float("inf"), float("-inf")):
        src.error(pos, "a constant that is not finite cannot become an integer")
    return number


def _apply(src: Source, pos: int, op: str, a: Const, b: Const) -> Const:
    x, y = a.number(), b.number()
    if op in ("&&", "||"):
        return Const("s", int(bool(x) and bool(y) if op == "&&" else bool(x) or bool(y)))
    if isinstance(x, float) or isinstance(y, float):
        return _apply_float(src, pos, op, float(x), float(y))
    unsigned = "u" in (a.kind, b.kind)
    if op in ("<<", ">>"):  # the result has the type of the left operand; a count past the width gives 0 or -1
        count = min(y % _WORD, 64)
        return of_int(x << count if op == "<<" else x >> count, a.kind == "u")
    if unsigned:
        x, y = x % _WORD, y % _WORD
    if op in ("/", "%"):
        if y == 0:
            src.error(pos, "division by zero in a constant expression")
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return of_int(quotient if op == "/" else x - quotient * y, unsigned)
    if op in ("==", "!=", "<", "<=", ">", ">="):
        return Const("s", _compare(op, x, y))
    results = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}
    return of_int(results[op], unsigned)


def _apply_float(src: Source, pos: int, op: str, x: float, y: float) -> Const:
    if op in ("==", "!=", "<", "<=", ">", ">="):
        return Const("s", _compare(op, x, y))
    if op == "/":
        if y == 0:
            src.error(pos, "division by zero in a constant expression")
        return of_float(x / y)
    if op not in ("+", "-", "*"):
        src.error(pos, f"'{op}' needs integer constants")
    return of_float(x + y if op == "+" else x - y if op == "-" else x * y)


def _compare(op: str, x: float, y: float) -> int:
    return int({"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op])


def literal_int(src: Source, pos: int) -> tuple[int, int]:
    """One unsigned integer without operators (``%r<10>``, where ``>`` would be one)."""
    value, end = literal(src, pos)
    if not value.is_int:
        src.expected(pos, "an integer")
    return value.value, end
