"""Operands of instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from . import constants
from .ast import (
    Addr,
    Element,
    Function,
    Imm,
    Not,
    Operand,
    Pair,
    Reg,
    Sink,
    Sym,
    TensorAddr,
    Variable,
    Vec,
)
from .scope import Scope
from .source import Source, quoted

_WORD = re.compile(r"[A-Za-z_$%][\w$]*+(?:\.[a-z0-9_]++)?", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_PART = re.compile(r"([bh])([0-3])")
_SINK = Sink()


class Operands:
    """Parses operands in the scope that is current; ``module`` are the names known outside the function."""

    def __init__(self, src: Source, module: Mapping[str, Variable | Function], scope: Scope) -> None:
        self.src = src
        self.module = module
        self.scope = scope
        self.variables: dict[str, Variable] = {}  # of this function, by flattened name

    def parse(self, pos: int) -> tuple[Operand, int]:
        """The operand at ``pos`` and the position after it."""
        src = self.src
        pos = src.skip(pos)
        first = src.text[pos : pos + 1]
        if first == "[":
            return self._address(pos + 1)
        if first == "{":
            return self._vector(pos + 1)
        if first == "!":
            match = _WORD.match(src.text, src.skip(pos + 1))
            if match and match[0] != "WARP_SZ":
                return Not(self.register(match.start(), match[0])), match.end()
        return self._simple(pos)

    def register(self, pos: int, name: str) -> Reg:
        found = self.scope.lookup(name, self.module)
        if not isinstance(found, Reg):
            if found is None:
                self._unknown(pos, name)
            self.src.error(pos, f"{quoted(name)} is not a register")
        return found

    def _unknown(self, pos: int, name: str) -> NoReturn:
        self.src.error(pos, f"{quoted(name)} is not declared")

    def _simple(self, pos: int) -> tuple[Operand, int]:
        """Anything without brackets."""
        src = self.src
        match = _WORD.match(src.text, pos)
        if match is None:
            number = _DECIMAL.match(src.text, pos)
            if number and src.text[number.end() : number.end() + 1] in (",", ";", "}", "]"):
                return Imm(int(number[0])), number.end()
            if src.text[pos : pos + 1] not in tuple("0123456789.-+~!("):
                src.expected(pos, "an operand")
            value, end = constants.expression(src, pos)
            return value.imm(), end
        name, end = match[0], match.end()
        if name == "WARP_SZ":
            value, end = constants.expression(src, pos)
            return value.imm(), end
        operand, end = (_SINK, end) if name == "_" else self._name(pos, name, end)
        after = src.skip(end)
        following = src.text[after : after + 1]
        if following == "|" and isinstance(operand, Reg | Sink):
            return self._pair(operand, after + 1)
        if isinstance(operand, Sym) and following and following in "+-[":
            return self._symbol(operand, after)
        return operand, end

    def _name(self, pos: int, name: str, end: int) -> tuple[Operand, int]:
        found = self.scope.lookup(name, self.module)
        if found is not None:
            return found, end
        base, dot, suffix = name.partition(".")
        if dot:
            found = self.scope.lookup(base, self.module)
            part = _PART.fullmatch(suffix)
            if isinstance(found, Reg) and part and (part[1] == "b" or part[2] in "01"):
                return Element(found, int(part[2]), part[1]), end
            if found is not None:
                self.src.error(pos, f"{quoted(base)} has no part {quoted('.' + suffix)}")
        self._unknown(pos, base)

    def _pair(self, first: Reg | Sink, pos: int) -> tuple[Operand, int]:
        pos = self.src.skip(pos)
        name, end = self.src.ident(pos, "a register after '|'")
        return Pair(first, _SINK if name == "_" else self.register(pos, name)), end

    def _symbol(self, symbol: Sym, pos: int) -> tuple[Sym, int]:
        """``symbol+4``, ``symbol-4`` or ``symbol[2]``."""
        if self.src.text[pos] == "[":
            index, end = constants.integer(self.src, pos + 1, "a constant index")
            end = self.src.expect(end, "]")
            variable = self.variables.get(symbol.name) or self.module.get(symbol.name)
            if not isinstance(variable, Variable):
                self.src.error(pos, f"{quoted(symbol.name)} is not an array")
            return Sym(symbol.name, index * variable.row), end
        offset, end = constants.integer(self.src, pos, "a constant offset")
        return Sym(symbol.name, offset), end

    def _vector(self, pos: int) -> tuple[Vec, int]:
        src, cache = self.src, self.scope.cache
        items: list[Operand] = []
        end = src.text.find("}", pos)
        if end < 0 or src.text.find(";", pos, end) >= 0:
            src.error(pos, "'{' without a matching '}'")
        for part in src.text[pos:end].split(","):
            item = cache.get(part)
            if item is None:
                if src.peek(pos) in ("{", "["):
                    src.expected(pos, "a register or a constant")
                item, after = self.parse(pos)
                if isinstance(item, Pair):
                    src.expected(pos, "a register or a constant")
                if src.skip(after) != pos + len(part):
                    src.expected(after, "',' or '}'")
                cache[part] = item
            items.append(item)
            pos += len(part) + 1
        return Vec(tuple(items)), end + 1

    def _address(self, pos: int) -> tuple[Addr | TensorAddr | Sym, int]:
        src = self.src
        base, pos = self._base(pos)
        if src.peek(pos) == "]":
            return base, src.skip(pos) + 1
        pos = src.expect(pos, ",")
        sampler: Reg | Sym | None = None
        if src.peek(pos) not in ("{", ""):
            second, pos = self._simple(src.skip(pos))
            if src.peek(pos) == "]":  # one coordinate without braces
                return TensorAddr(base, (second,)), src.skip(pos) + 1
            if not isinstance(second, Reg | Sym):
                src.expected(pos, "']'")
            sampler, pos = second, src.expect(pos, ",")
        coords, pos = self._vector(src.expect(pos, "{"))
        extra: tuple[Operand, ...] = ()
        if src.peek(pos) == ",":
            more, pos = self.parse(src.skip(pos) + 1)
            extra = more.items if isinstance(more, Vec) else (more,)
        return TensorAddr(base, coords.items, extra, sampler), src.expect(pos, "]")

    def _base(self, pos: int) -> tuple[Addr, int]:
        """``reg``, ``reg+4``, ``symbol+4`` or a number."""
        src = self.src
        pos = src.skip(pos)
        match = _WORD.match(src.text, pos)
        if match is None or match[0] == "WARP_SZ":
            address, end = constants.integer(src, pos, "an address")
            return Addr(None, address), end
        found, end = self._name(pos, match[0], match.end())
        if not isinstance(found, Reg | Sym):
            src.error(pos, f"{quoted(match[0])} cannot be the base of an address")
        offset = 0
        if isinstance(found, Sym) and src.peek(end) == "[":
            element, end = self._symbol(found, src.skip(end))
            offset = element.offset
        after = src.skip(end)
        if src.text[after : after + 1] in ("+", "-"):
            more, end = self._offset(after)
            offset += more
        return Addr(found, offset), end

    def _offset(self, pos: int) -> tuple[int, int]:
        """``+4``, ``-4``, ``+-4``, ``+ 4``."""
        src = self.src
        start = pos + 1 if src.text[pos] == "+" else pos
        number = _DECIMAL.match(src.text, start)
        if number and src.text[number.end() : number.end() + 1] == "]":
            return int(number[0]), number.end()
        return constants.integer(src, start, "a constant offset")
