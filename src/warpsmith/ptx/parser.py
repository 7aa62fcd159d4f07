"""PTX text -> ``ast.Module``: the module level, and the way in."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import constants, data, debug
from .ast import Function, Module, PtxError, Variable
from .body import Body
from .function import LINKAGES, directives, pragma, signature
from .source import Source

__all__ = ["PtxError", "parse"]

_VERSION = re.compile(r"\s*+(\d{1,4})\.(\d{1,4})(?!\S)", re.ASCII)


def parse(text: str, name: str = "<ptx>") -> Module:
    """Parse a PTX translation unit; ``name`` stands in error messages.  Raises PtxError and nothing else."""
    return _Parser(Source(text, name)).parse()


class _Parser:
    """The module level."""

    def __init__(self, src: Source) -> None:
        self.src = src
        self.module = Module()
        self.symbols: dict[str, Variable | Function] = {}
        self.names = debug.strings(src)
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def parse(self) -> Module:
        src, pos = self.src, 0
        handlers: dict[str, Callable[[int], int]] = {
            "version": self._version, "target": self._target, "address_size": self._address_size, "file": self._file,
            "section": self._section, "alias": self._alias, "pragma": self._pragma, "loc": self._loc,
        }  # fmt: skip
        while (pos := src.skip(pos)) < len(src.text):
            word = src.directive(pos)
            if word is None:
                if src.text[pos] == ";":
                    pos += 1
                    continue
                src.expected(pos, "a directive")
            name, after = word
            if self.module.version == (0, 0) and name != "version":
                src.error(pos, "PTX must start with '.version'")
            handler = handlers.get(name)
            pos = handler(after) if handler else self._declaration(pos)
        if self.module.version == (0, 0):
            src.error(len(src.text), "no '.version' directive: this is not PTX")
        self._check_addresses()
        return self.module

    def _version(self, pos: int) -> int:
        match = _VERSION.match(self.src.text, pos)
        if match is None:
            self.src.expected(pos, "a version such as 9.0")
        self.module.version = (int(match[1]), int(match[2]))
        return match.end()

    def _target(self, pos: int) -> int:
        names = []
        while True:
            name, pos = self.src.ident(pos, "a target such as sm_90")
            names.append(name)
            if self.src.peek(pos) != ",":
                self.module.target = tuple(names)
                return pos
            pos = self.src.skip(pos) + 1

    def _address_size(self, pos: int) -> int:
        start = pos
        size, pos = constants.integer(self.src, pos, "32 or 64")
        if size not in (32, 64):
            self.src.error(self.src.skip(start), f"address size is 32 or 64, not {size}")
        self.module.address_size = size
        return pos

    def _file(self, pos: int) -> int:
        number, name, end = debug.file(self.src, pos)
        self.module.files[number] = name
        return end

    def _section(self, pos: int) -> int:
        return debug.section(self.src, pos)

    def _alias(self, pos: int) -> int:
        src = self.src
        alias, pos = src.ident(pos, "a function name")
        target, end = src.ident(src.expect(pos, ","), "a function name")
        if not isinstance(self.symbols.get(target), Function):
            src.error(pos, f"'.alias' to '{target}', which is not a function")
        self.module.aliases[alias] = target
        return src.expect(end, ";")

    def _pragma(self, pos: int) -> int:
        return pragma(self.src, pos)[1]

    def _loc(self, pos: int) -> int:
        return debug.Positions(self.src, {}).directive(pos)

    def _declaration(self, pos: int) -> int:
        """A variable or a function, after its linkage."""
        src, linkage = self.src, None
        while True:
            word = src.directive(pos)
            if word is None:
                src.expected(pos, "a declaration")
            name, after = word
            if name in LINKAGES:
                linkage = name
            elif name in data.STATE_SPACES:
                declared, pos = data.variables(src, after, name, linkage)
                for variable in declared:
                    self._declare(pos, variable)
                return pos
            elif name in ("entry", "func"):
                return self._function(after, name == "entry", linkage)
            else:
                src.error(src.skip(pos), f"unknown directive '.{name}'")
            pos = after

    def _declare(self, pos: int, variable: Variable) -> None:
        old = self.symbols.get(variable.name)
        if old is not None:
            tentative = ("extern", "common", "weak")
            if not isinstance(old, Variable) or not (old.linkage in tentative or variable.linkage in tentative):
                raise PtxError(f"'{variable.name}' is declared twice", variable.line, self.src.name)
            if old.linkage != "extern":
                return
        self.symbols[variable.name] = self.module.variables[variable.name] = variable

    def _check_addresses(self) -> None:
        """Addresses in initial values may name what is declared later, so they are looked up at the end."""
        everything = list(self.module.variables.values())
        for function in self.module.functions.values():
            everything += function.variables
        for variable in everything:
            for _, symbol, _, _ in variable.relocs:
                if symbol not in self.symbols and symbol not in self.module.aliases:
                    raise PtxError(
                        f"initialiser of '{variable.name}' names '{symbol}', which is not declared",
                        variable.line,
                        self.src.name,
                    )

    def _function(self, pos: int, is_entry: bool, linkage: str | None) -> int:
        src = self.src
        start = src.skip(pos)
        function, pos = signature(src, pos, is_entry)
        function.linkage, function.line = linkage, src.line(start)
        pos = directives(src, pos, function)
        has_body = src.peek(pos) == "{"
        if not has_body:
            pos = src.expect(pos, ";")
        old = self.symbols.get(function.name)
        if isinstance(old, Variable):
            src.error(start, f"'{function.name}' is declared twice")
        if old is not None and old.body is not None:
            if has_body:
                src.error(start, f"function '{function.name}' is defined twice")
            return pos
        self.symbols[function.name] = self.module.functions[function.name] = function
        if not has_body:
            return pos
        return Body(src, self.module, self.symbols, function, self.opcodes, self.names).parse(src.skip(pos) + 1)
