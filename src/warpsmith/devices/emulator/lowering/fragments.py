"""Operands of matrix instructions in memory, and what is still known of them.

The functions of ``runtime/matrix.cpp`` take registers as arrays ``[register][32 lanes]``.  Multiplicands are made ready for
products there, which costs as much as half a product, and accumulators go through many products in a row: so a unit
remembers which values it has put where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import abi
from ..ir import LANES, Val

if TYPE_CHECKING:
    from .function import FunctionLowering
    from .plan import Unit

#: Kinds of areas: bytes, and how many of them a function may have.
AREAS = {"left": (abi.LEFT_BYTES, 8), "right": (abi.RIGHT_BYTES, 12), "sums": (1024, 24), "other": (6144, 1)}


class Fragments:
    """The areas of the stack frame of one function."""

    def __init__(self, f: FunctionLowering) -> None:
        self.f = f
        self.unit: Unit | None = None
        self.pools: dict[str, list[str]] = {}
        self.order: dict[str, list[str]] = {}  # of the current unit, least recently used first
        self.holds: dict[tuple[object, ...], str] = {}  # what an area holds -> its pointer

    @staticmethod
    def of(f: FunctionLowering) -> Fragments:
        """Those of a function; nothing is known at the start of a unit."""
        found = f.memo.setdefault("fragments", None) or Fragments(f)
        f.memo["fragments"] = found
        assert isinstance(found, Fragments)
        if found.unit is not f.unit:
            found.unit = f.unit
            found.order = {kind: list(pool) for kind, pool in found.pools.items()}
            found.holds = {}
        return found

    def area(self, kind: str) -> str:
        """An area to write to: what was in it is forgotten."""
        size, most = AREAS[kind]
        pool, order = self.pools.setdefault(kind, []), self.order.setdefault(kind, [])
        used = set(self.holds.values())
        free = [a for a in order if a not in used]
        if free:
            area = free[0]
        elif len(pool) < most:
            area = f"%{kind}.{len(pool)}"
            self.f.entry.append(f"  {area} = alloca [{size} x i8], align 64")
            self.f.stack_room += size
            pool.append(area)
            order.append(area)
        else:
            area = order[0]
        self.forget(area)
        self.touch(kind, area)
        return area

    def forget(self, area: str) -> None:
        self.holds = {what: where for what, where in self.holds.items() if where != area}

    def touch(self, kind: str, area: str) -> None:
        """It is in use: others are given away first."""
        self.order[kind].remove(area)
        self.order[kind].append(area)

    def known(self, kind: str, what: tuple[object, ...]) -> str | None:
        """The area that holds something."""
        area = self.holds.get((kind, *what))
        if area is not None:
            self.touch(kind, area)
        return area

    def keep(self, kind: str, what: tuple[object, ...], area: str) -> None:
        self.holds[(kind, *what)] = area

    # ---- what is put there -------------------------------------------------------------------------
    def left(self, form: str, registers: Sequence[Val]) -> str:
        """A, ready for the products of a form."""
        return self._ready("left", form, registers)

    def right(self, form: str, registers: Sequence[Val]) -> str:
        """B, likewise."""
        return self._ready("right", form, registers)

    def _ready(self, kind: str, form: str, registers: Sequence[Val]) -> str:
        what = (form, *names(registers))
        area = self.known(kind, what)
        if area is None:
            area = self.area(kind)
            write(self.f, area, registers)
            self.f.runtime(f"ws_mma_{kind}", "void", f"ptr {form}", f"ptr {area}")
            self.keep(kind, what, area)
        return area

    def sums(self, registers: Sequence[Val]) -> str:
        """An accumulator, in an area that is to be overwritten; it is nobody else's until ``replace``."""
        area = self.known("sums", names(registers))
        if area is None:
            area = self.area("sums")
            write(self.f, area, registers)
        self.replace(area, None)
        return area

    def replace(self, area: str, registers: Sequence[Val] | None) -> None:
        """An area of sums holds these values now (None: what nobody knows yet)."""
        self.forget(area)
        self.keep("sums", (area,) if registers is None else names(registers), area)


def names(registers: Sequence[Val]) -> tuple[object, ...]:
    return tuple((v.name, v.ty, v.uniform) for v in registers)


def size_of(v: Val) -> int:
    """Bytes of a register of all lanes."""
    return (8 if v.ty == "i64" else 4) * LANES


def at(f: FunctionLowering, area: str, offset: int) -> str:
    return f.pointer(f"getelementptr i8, ptr {area}, i64 {offset}") if offset else area


def write(f: FunctionLowering, area: str, registers: Sequence[Val], offset: int = 0) -> None:
    """Registers one after the other."""
    for r, v in enumerate(registers):
        f.b.line(f"store {f.b.vec(v).typed}, ptr {at(f, area, offset + r * size_of(v))}, align 64")


def fetch(f: FunctionLowering, area: str, count: int, ty: str = "i32", offset: int = 0) -> list[Val]:
    """And back."""
    size = (8 if ty == "i64" else 4) * LANES
    return [
        f.b.raw(ty, False, f"load <{LANES} x {ty}>, ptr {at(f, area, offset + r * size)}, align 64")
        for r in range(count)
    ]
