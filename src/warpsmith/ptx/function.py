"""Heads of functions: names, parameters, and the directives between them and the body."""

from __future__ import annotations

from . import constants, data
from .ast import Function, Param
from .source import Source

LINKAGES = frozenset(("extern", "visible", "weak", "common"))
#: directives between the head of a function and its body: how many numbers they may take
_FUNCTION_DIRECTIVES = {
    "maxntid": 3, "reqntid": 3, "minnctapersm": 1, "maxnctapersm": 1, "maxnreg": 1, "maxclusterrank": 1,
    "reqnctapercluster": 3, "explicitcluster": 0, "blocksareclusters": 0, "noreturn": 0, "abi_preserve": 1,
    "abi_preserve_control": 1,
}  # fmt: skip


def pragma(src: Source, pos: int) -> tuple[list[str], int]:
    """``.pragma "nounroll";`` after the word itself."""
    result = []
    while True:
        text, pos = src.string(pos)
        result.append(text)
        if src.peek(pos) != ",":
            return result, src.expect(pos, ";")
        pos = src.skip(pos) + 1


def signature(src: Source, pos: int, is_entry: bool) -> tuple[Function, int]:
    """``(returns) name (params)``; both lists may be missing."""
    while (word := src.directive(pos)) is not None and word[0] == "attribute":
        _, pos = data.attribute(src, word[1])
    returns: tuple[Param, ...] = ()
    if not is_entry and src.peek(pos) == "(":
        returns, pos = data.parameters(src, src.skip(pos) + 1)
    name, pos = src.ident(pos, "a function name")
    params: tuple[Param, ...] = ()
    if src.peek(pos) == "(":
        params, pos = data.parameters(src, src.skip(pos) + 1)
    return Function(name, is_entry, params, returns), pos


def directives(src: Source, pos: int, function: Function) -> int:
    """``.maxntid 128, 1, 1 .noreturn ...`` in any order."""
    while (word := src.directive(pos)) is not None:
        name, after = word
        if name == "pragma":
            pragmas, pos = pragma(src, after)
            function.pragmas += pragmas
            continue
        if name == "attribute":
            _, pos = data.attribute(src, after)
            continue
        most = _FUNCTION_DIRECTIVES.get(name)
        if most is None:
            src.error(src.skip(pos), f"unknown directive '.{name}'")
        values: list[int] = []
        pos = after
        while most and len(values) < most:
            value, pos = constants.integer(src, pos)
            values.append(value)
            if src.peek(pos) != ",":
                break
            pos = src.skip(pos) + 1
        function.directives[name] = tuple(values)
    return pos
