"""Small pieces that several instruction families share."""

from __future__ import annotations

from collections.abc import Container

from ....ptx.ast import TYPE_BITS, Instruction
from ..ir import BITS, LANES, Builder, Val, const
from . import Unsupported

TRUE, FALSE = const(1, "i1"), const(0, "i1")


def missing(i: Instruction) -> Unsupported:
    """The exception for a form of an instruction that has no lowering."""
    return Unsupported(f"{i.text} is not implemented", i)


def accept(i: Instruction, types: Container[str], mods: Container[str] = ()) -> None:
    """Refuse an instruction with a modifier that its handler does not know: a wrong result is worse than none."""
    for m in i.mods:
        if m not in mods and not (m in TYPE_BITS and m in types):
            raise missing(i)
    if not i.types:
        raise missing(i)


def integer_type(ptx_type: str) -> str:
    """The IR integer as wide as a PTX type."""
    return f"i{TYPE_BITS[ptx_type]}"


def number(v: Val) -> int | None:
    """The value of an integer constant (signed), None if it is not known when compiling."""
    if not v.uniform or v.ty[0] != "i":
        return None
    if v.ty == "i1":
        return {"true": 1, "false": 0}.get(v.name)
    return int(v.name) if v.name.lstrip("-").isdigit() else None


def resize(b: Builder, v: Val, ty: str, signed: bool = False) -> Val:
    """An integer as another integer type."""
    if BITS[v.ty] >= BITS[ty]:
        return b.cast("trunc", v, ty)
    return b.cast("sext" if signed else "zext", v, ty)


def shift(b: Builder, name: str, v: Val, amount: Val) -> Val:
    """``shl``, ``lshr`` or ``ashr`` by any unsigned amount: bits beyond the width are zeros (or signs)."""
    bits = BITS[v.ty]
    n = number(amount)
    if n is not None:
        n &= (1 << BITS[amount.ty]) - 1
        if n >= bits and name != "ashr":
            return const(0, v.ty)
        return b.op(name, v, const(min(n, bits - 1), v.ty))
    if name == "ashr":
        return b.op(name, v, resize(b, b.call("llvm.umin", amount, const(bits - 1, amount.ty)), v.ty))
    if BITS[amount.ty] < bits:
        amount = resize(b, amount, v.ty)
    inside = b.cmp("ult", amount, const(bits, amount.ty))
    # An over-wide shift is poison, but only in lanes that the select drops; x86 merges the two.
    return b.select(inside, b.op(name, v, resize(b, amount, v.ty)), const(0, v.ty))


# ---- lanes of several parts ----------------------------------------------------------------------------
# A lane can be seen as several narrower parts.  ``parts`` gives a Val whose "lane type" is the whole IR
# vector and which counts as uniform, so that ``Builder.op`` works on it; ``whole`` goes back.


def parts(b: Builder, v: Val, ty: str) -> Val:
    """The lanes of an integer value cut into parts of type ``ty``, lowest first."""
    count = BITS[v.ty] // BITS[ty] * (1 if v.uniform else LANES)
    vector = f"<{count} x {ty}>"
    return b.raw(vector, True, f"bitcast {v.typed} to {vector}")


def whole(b: Builder, v: Val, like: Val) -> Val:
    """Undo ``parts``: a value of the shape of ``like``."""
    return b.raw(like.ty, like.uniform, f"bitcast {v.typed} to {like.full}")


def each_part(b: Builder, intrinsic: str, ty: str, *operands: Val) -> Val:
    """An intrinsic over the parts of some operands (``llvm.smin`` on the two halves of s16x2)."""
    operands = tuple(b.same(*operands))
    cut = [parts(b, v, ty) for v in operands]
    vector = cut[0].ty
    name = f"{intrinsic}.v{vector[1:].split()[0]}{ty}"
    b.declare(name, f"declare {vector} @{name}({', '.join([vector] * len(cut))})")
    return whole(b, b.raw(vector, True, f"call {vector} @{name}({', '.join(c.typed for c in cut)})"), operands[0])


def unpack(b: Builder, v: Val, n: int) -> list[Val]:
    """The n equal parts of an integer lane, lowest first, each as a value of its own."""
    bits = BITS[v.ty] // n
    ty = f"i{bits}"
    if v.ty != "i128" or v.uniform:
        return [b.cast("trunc", b.op("lshr", v, const(k * bits, v.ty)) if k else v, ty) for k in range(n)]
    cut = parts(b, v, ty)  # 128-bit arithmetic would be done lane by lane
    return [pick(b, cut, ty, [k + n * lane for lane in range(LANES)]) for k in range(n)]


def pick(b: Builder, cut: Val, ty: str, indices: list[int]) -> Val:
    """Some parts, in some order, as 32 lanes."""
    mask = ", ".join(f"i32 {x}" for x in indices)
    return b.raw(ty, False, f"shufflevector {cut.typed}, {cut.ty} poison, <{len(indices)} x i32> <{mask}>")


def pack(b: Builder, items: list[Val], ty: str) -> Val:
    """The inverse of ``unpack``."""
    items = b.same(*items)
    bits = BITS[items[0].ty]
    if ty != "i128" or items[0].uniform:
        out = b.cast("zext", items[0], ty)
        for k, item in enumerate(items[1:], 1):
            out = b.op("or", out, b.op("shl", b.cast("zext", item, ty), const(k * bits, ty)))
        return out
    while len(items) > 1:  # interleave pairs: one register pair at a time becomes wider lanes
        n = len(items) // 2
        items = [interleave(b, items[2 * k], items[2 * k + 1]) for k in range(n)]
    return items[0]


def interleave(b: Builder, low: Val, high: Val) -> Val:
    """Two integer vectors -> one of lanes twice as wide."""
    bits = BITS[low.ty]
    mask = ", ".join(f"i32 {k // 2 + (k % 2) * LANES}" for k in range(2 * LANES))
    v = b.new()
    b.line(f"{v} = shufflevector {low.typed}, {high.typed}, <{2 * LANES} x i32> <{mask}>")
    return b.raw(f"i{2 * bits}", False, f"bitcast <{2 * LANES} x {low.ty}> {v} to <{LANES} x i{2 * bits}>")
