"""Variables and parameters: declarations and initial values."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import NoReturn

from . import constants
from .ast import TYPE_BITS, Param, Variable
from .constants import Const
from .source import NAME, Source

STATE_SPACES = frozenset(("global", "const", "shared", "local", "param"))
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_OPAQUE = frozenset(("texref", "samplerref", "surfref"))
#: A list in braces of what may be plain numbers.
_FLAT = re.compile(r"\s*+\{([-\w.,\s]++)\}", re.ASCII)
_MAX_INIT = 1 << 26
_MAX_DIMS = 16


@dataclass(slots=True)
class Declarator:
    """What stands before the names of a declaration: ``.align 8 .v2 .f32``."""

    type: str = ""
    align: int = 0
    vector: int = 1
    is_reg: bool = False
    attributes: tuple[str, ...] = ()

    @property
    def natural(self) -> int:
        return max(TYPE_BITS[self.type], 8) // 8 * self.vector


def prefix(src: Source, pos: int) -> tuple[Declarator, int]:
    """Alignment, attributes, vector width, type and pointer notes, in any order."""
    declarator = Declarator()
    start = pos
    while (word := src.directive(pos)) is not None:
        name, pos = word
        if name == "align":
            at = pos
            declarator.align, pos = constants.integer(src, pos, "an alignment")
            if not 0 < declarator.align <= 1 << 30 or declarator.align & (declarator.align - 1):
                src.error(at, f"alignment {declarator.align} is not a power of two")
        elif name == "ptr":
            pos = _pointer(src, pos)
        elif name == "attribute":
            more, pos = attribute(src, pos)
            declarator.attributes += more
        elif name in _VECTORS:
            declarator.vector = _VECTORS[name]
        elif name in TYPE_BITS:
            declarator.type = name
        else:
            src.error(pos, f"'.{name}' is not a type")
    if not declarator.type:
        src.expected(start if start == pos else pos, "a type")
    return declarator, pos


def _pointer(src: Source, pos: int) -> int:
    """``.ptr .global .align 16``: notes about what a parameter points to, which nothing depends on."""
    while (word := src.directive(pos)) is not None and (word[0] in STATE_SPACES or word[0] == "align"):
        pos = word[1]
        if word[0] == "align":
            _, pos = constants.integer(src, pos, "an alignment")
    return pos


def attribute(src: Source, pos: int) -> tuple[tuple[str, ...], int]:
    """``.attribute(.managed, .unified(1, 2))`` after the word itself."""
    start = pos = src.expect(pos, "(")
    depth = 1
    for match in re.compile(r"[()]").finditer(src.text, pos):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            text = re.sub(r"\s+", "", src.text[start : match.start()])
            return tuple(part for part in re.split(r",?\.", text) if part), match.end()
    src.error(start, "'.attribute' without a closing ')'")


def dimensions(src: Source, pos: int) -> tuple[tuple[int | None, ...], int]:
    dims: list[int | None] = []
    while src.peek(pos) == "[":
        start = pos = src.skip(pos) + 1
        if src.peek(pos) == "]":
            if dims:
                src.error(pos, "only the first dimension may be left open")
            dims.append(None)
        else:
            size, pos = constants.integer(src, pos, "a size")
            if size < 0:
                src.error(start, f"array size {size} is negative")
            dims.append(size)
        pos = src.expect(pos, "]")
        if len(dims) > _MAX_DIMS:
            src.error(start, f"more than {_MAX_DIMS} dimensions")
    return tuple(dims), pos


def parameter(src: Source, pos: int) -> tuple[Param, int]:
    """One parameter of a function, prototype or kernel."""
    word = src.directive(pos)
    if word is None or word[0] not in ("param", "reg"):
        src.expected(pos, "'.param' or '.reg'")
    declarator, pos = prefix(src, word[1])
    name, pos = src.ident(pos, "a parameter name")
    dims, pos = dimensions(src, pos)
    size = declarator.natural
    for n in dims:
        size *= n or 0
    return Param(name, declarator.type, declarator.align or declarator.natural, size, word[0] == "reg"), pos


def parameters(src: Source, pos: int) -> tuple[tuple[Param, ...], int]:
    """``( .param .b32 a, ... )`` with ``pos`` after the opening parenthesis."""
    result: list[Param] = []
    if src.peek(pos) == ")":
        return (), src.skip(pos) + 1
    while True:
        param, pos = parameter(src, pos)
        result.append(param)
        if src.peek(pos) != ",":
            return tuple(result), src.expect(pos, ")")
        pos = src.skip(pos) + 1


def variables(src: Source, pos: int, space: str, linkage: str | None) -> tuple[list[Variable], int]:
    """A declaration after its state space, up to and with the semicolon."""
    line = src.line(src.skip(pos))
    declarator, pos = prefix(src, pos)
    result: list[Variable] = []
    while True:
        start = pos
        name, pos = src.ident(pos, "a variable name")
        dims, pos = dimensions(src, pos)
        variable = Variable(
            space, declarator.type, name, declarator.align or declarator.natural, dims, declarator.vector,
            linkage=linkage, line=line, attributes=declarator.attributes,
        )  # fmt: skip
        if src.peek(pos) == "=":
            pos = _initialise(src, src.skip(pos) + 1, variable)
        elif dims and dims[0] is None and linkage not in ("extern", None) and space != "shared":
            src.error(src.skip(start), f"array '{name}' has neither a size nor an initialiser")
        result.append(variable)
        if src.peek(pos) != ",":
            return result, src.expect(pos, ";")
        pos = src.skip(pos) + 1


def _initialise(src: Source, pos: int, variable: Variable) -> int:
    if variable.type in _OPAQUE:
        return _opaque(src, pos, variable)
    image = _Image(src, variable)
    if src.peek(pos) != "{":
        pos = image.item(pos, 0)
    elif (flat := _FLAT.match(src.text, pos)) and (values := _flat(flat[1], image, pos)) is not None:
        image.data, pos = values, flat.end()
    else:
        pos = image.braces(src.skip(pos) + 1, 0, 0)
    variable.init = bytes(image.data)
    src.initial_bytes += len(image.data)
    variable.relocs = image.addresses(pos)
    if variable.dims and variable.dims[0] is None:
        variable.dims = (-(-len(image.data) // max(variable.row, 1)), *variable.dims[1:])
    return pos


def _flat(text: str, image: _Image, pos: int) -> bytearray | None:
    """The common case fast: a plain list of numbers; None if it is anything else."""
    parts = text.split(",")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    known: dict[str, bytes] = {}
    for part in set(parts):
        value = constants.simple(part)
        if value is None:
            return None
        known[part] = image.encode(value, pos)
    limit = image.strides[0]
    if limit is not None and len(parts) * image.size > limit:
        return None  # the slow way knows which one is too many
    return bytearray(b"".join([known[part] for part in parts]))


def _opaque(src: Source, pos: int, variable: Variable) -> int:
    """``{addr_mode_0 = wrap, filter_mode = linear}`` of textures and samplers."""
    pos = src.expect(pos, "{")
    settings = []
    while src.peek(pos) != "}":
        key, pos = src.ident(pos, "a setting")
        pos = src.skip(src.expect(pos, "="))
        if NAME.match(src.text, pos):
            value, pos = src.ident(pos)
        else:
            number, pos = constants.integer(src, pos)
            value = str(number)
        settings.append(f"{key}={value}")
        if src.peek(pos) != ",":
            break
        pos = src.skip(pos) + 1
    variable.attributes += tuple(settings)
    return src.expect(pos, "}")


@dataclass(slots=True)
class _Address:
    """An address, or ``mask`` bits of one, at an offset of the image."""

    offset: int
    size: int
    symbol: str
    addend: int
    generic: bool
    mask: int | None
    pos: int


class _Image:
    """The initial bytes of one variable."""

    def __init__(self, src: Source, variable: Variable) -> None:
        self.src, self.variable = src, variable
        self.data = bytearray()
        self.found: list[_Address] = []
        self.size = max(TYPE_BITS[variable.type], 8) // 8
        # strides[k]: bytes of one sub-array k braces deep; None when the first dimension is open
        shape: list[int | None] = [*variable.dims] + ([variable.vector] if variable.vector > 1 else [])
        strides: list[int | None] = [self.size]
        for n in reversed(shape):
            below = strides[0]
            strides.insert(0, None if n is None or below is None else n * below)
        self.strides = strides

    def check(self, end: int, pos: int) -> None:
        limit = self.strides[0]
        if limit is not None and end > limit:
            self.src.error(pos, f"'{self.variable.name}' has {limit} bytes but its initialiser is longer")
        if self.src.initial_bytes + end > _MAX_INIT:
            self.src.error(pos, f"initialiser of '{self.variable.name}' is too large")

    def braces(self, pos: int, offset: int, depth: int) -> int:
        """A list after its opening brace; it fills the sub-array at ``offset``."""
        src = self.src
        inner = self.strides[min(depth + 1, len(self.strides) - 1)]
        assert inner is not None
        limit = self.strides[min(depth, len(self.strides) - 1)]
        if depth > _MAX_DIMS:
            src.error(pos, "braces of an initialiser are nested too deeply")
        at = offset
        while src.peek(pos) != "}":
            start = pos
            if src.peek(pos) == "{":
                pos = self.braces(src.skip(pos) + 1, at, depth + 1)
                at += inner
            else:
                pos = self.item(pos, at)
                at = len(self.data) if src.text[src.skip(start)] == '"' else at + self.size
            if limit is not None and at > offset + limit:
                src.error(src.skip(start), f"too many values in the initialiser of '{self.variable.name}'")
            self.check(at, start)
            if src.peek(pos) != ",":
                break
            pos = src.skip(pos) + 1
        self._pad(at)
        return src.expect(pos, "}")

    def _pad(self, end: int) -> None:
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))

    def _put(self, offset: int, value: bytes, pos: int) -> None:
        self.check(offset + len(value), pos)
        self._pad(offset + len(value))
        self.data[offset : offset + len(value)] = value

    def item(self, pos: int, offset: int) -> int:
        """One value at ``offset``: a string, a constant, or an address."""
        src = self.src
        pos = src.skip(pos)
        if src.text.startswith('"', pos):
            text, end = src.string(pos)
            try:
                raw = text.encode("utf-8", "surrogateescape") + b"\0"
            except UnicodeEncodeError:
                src.error(pos, "string with a character that is not valid Unicode")
            limit = self.strides[0]
            if limit is not None and offset + len(raw) - 1 == limit:
                raw = raw[:-1]  # as in C, the zero byte may be left out when it does not fit
            self._put(offset, raw, pos)
            return end
        if NAME.match(src.text, pos) and not src.text.startswith("WARP_SZ", pos):
            return self._address(pos, offset, None)
        value, end = constants.expression(src, pos)
        if src.peek(end) == "(" and value.is_int:  # 0xff00(symbol): some bits of an address
            end = self._address(src.skip(end) + 1, offset, value.value)
            return src.expect(end, ")")
        self._put(offset, self.encode(value, pos), pos)
        return end

    def _address(self, pos: int, offset: int, mask: int | None) -> int:
        """``symbol+4``, ``generic(symbol+4)+8``."""
        src, start = self.src, pos
        name, pos = src.ident(pos, "a symbol")
        addend, generic = 0, False
        if name == "generic" and src.peek(pos) == "(":
            generic = True
            name, pos = src.ident(src.skip(pos) + 1, "a symbol")
            addend, pos = self._addend(pos)
            pos = src.expect(pos, ")")
        more, pos = self._addend(pos)
        self.found.append(_Address(offset, self.size, name, addend + more, generic, mask, start))
        self._put(offset, bytes(self.size), start)
        return pos

    def _addend(self, pos: int) -> tuple[int, int]:
        if self.src.peek(pos) not in ("+", "-"):
            return 0, pos
        return constants.integer(self.src, pos, "a constant offset")

    def encode(self, value: Const, pos: int) -> bytes:
        type_ = self.variable.type
        if type_ in ("f32", "f64"):
            if value.kind == type_:
                return value.value.to_bytes(self.size, "little")
            return _pack(self.src, pos, "<f" if type_ == "f32" else "<d", value)
        if type_ == "f16" and not value.is_int:
            return _pack(self.src, pos, "<e", value)
        if not value.is_int and (value.kind == "f32") != (self.size == 4):
            self.src.error(pos, f"a floating-point constant does not fit type '.{type_}'")
        return (value.value % (1 << self.size * 8)).to_bytes(self.size, "little")

    def addresses(self, pos: int) -> tuple[tuple[int, str, int, bool], ...]:
        """Relocations; runs of masked parts that make up a whole address become one."""
        result: list[tuple[int, str, int, bool]] = []
        index = 0
        while index < len(self.found):
            first = self.found[index]
            index += 1
            if first.mask is not None:
                covered = first.size if first.mask == _mask(0, first.size) else self._partial(first)
                while covered < 8:
                    part = self.found[index] if index < len(self.found) else first
                    if (part.symbol, part.addend, part.generic, part.offset, part.mask) != (
                        first.symbol, first.addend, first.generic, first.offset + covered, _mask(covered, part.size),
                    ):  # fmt: skip
                        self._partial(part)
                    covered += part.size
                    index += 1
            result.append((first.offset, first.symbol, first.addend, first.generic))
        return tuple(result)

    def _partial(self, part: _Address) -> NoReturn:
        self.src.error(part.pos, f"only all bytes of the address of '{part.symbol}' in order can be initial values")


def _mask(skipped: int, size: int) -> int:
    return ((1 << size * 8) - 1) << skipped * 8


def _pack(src: Source, pos: int, code: str, value: Const) -> bytes:
    try:
        return struct.pack(code, float(value.number()))
    except OverflowError:
        src.error(pos, "floating-point constant is too large for its type")
