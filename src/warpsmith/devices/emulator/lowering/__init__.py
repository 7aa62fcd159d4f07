"""PTX instructions -> LLVM IR, one file an instruction family.

To add an instruction, write a function in the file of its family and register it::

    @lowers("clz")
    def count_leading_zeros(f: FunctionLowering, i: Instruction) -> None:
        a = f.src(i.operands[1], i.type)
        n = f.b.call("llvm.ctlz", a, FALSE)
        f.dst(i.operands[0], f.b.cast("trunc", n, "i32"))

``f.src`` gives an operand as a value of the PTX type asked for, ``f.dst`` writes a register and takes
care of the guard and of the lanes that do not run, ``f.b`` writes IR (see ``ir.Builder``; every
operation works on one scalar for the whole warp as well as on 32 lanes).  What has no short form in IR
is a C++ function over 32 lanes in ``runtime/numerics.cpp``, called with ``f.lanewise``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ....ptx.ast import Instruction

if TYPE_CHECKING:
    from .function import FunctionLowering

Handler = Callable[["FunctionLowering", Instruction], None]

HANDLERS: dict[str, Handler] = {}

#: The files of this folder that register instructions.
FAMILIES = (
    "integer",
    "logic",
    "compare",
    "convert",
    "floating",
    "half",
    "memory",
    "atomics",
    "texture",
    "warp",
    "matrix",
    "wmma",
    "asynchronous",
    "control",
    "calls",
)


class Unsupported(Exception):
    """An instruction, or a form of one, that the emulator does not have (``line``: in the PTX text)."""

    def __init__(self, what: str, instruction: Instruction | None = None) -> None:
        self.what, self.instruction = what, instruction
        super().__init__(what)


def lowers(*opcodes: str) -> Callable[[Handler], Handler]:
    """Register a function as the lowering of these base opcodes (the part before the first dot)."""

    def register(handler: Handler) -> Handler:
        for opcode in opcodes:
            assert opcode not in HANDLERS, f"{opcode} is lowered twice"
            HANDLERS[opcode] = handler
        return handler

    return register


@cache
def handlers() -> dict[str, Handler]:
    """The table of all families, loaded on first use."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
    return HANDLERS
