"""Comparison, selection and moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import TYPE_BITS, Element, Instruction, Operand, Pair, Reg, Vec
from ..ir import BITS, Val, const, fconst
from . import floating, half, lowers
from .common import accept, integer_type, missing, pack, unpack
from .integer import is_signed, sources

if TYPE_CHECKING:
    from .function import FunctionLowering

FLOAT_TYPES = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})
SCALARS = frozenset({f"{k}{n}" for k in "bus" for n in (16, 32, 64)} | {"f32", "f64"})
COMPARED = SCALARS | FLOAT_TYPES
#: Operators on integers -> icmp predicate without its sign.
INTEGER_OPS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
               "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}  # fmt: skip
#: Operators on floats -> fcmp predicate.  The second six are true of NaN.
FLOAT_OPS = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
             "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
             "num": "ord", "nan": "uno"}  # fmt: skip
BOOLEAN_OPS = frozenset({"and", "or", "xor"})
COMPARE_MODS = frozenset({*INTEGER_OPS, *FLOAT_OPS, *BOOLEAN_OPS, "ftz"})
#: Types with a .ftz form.
FLUSHED = frozenset({"f16", "f16x2", "f32"})


# ---- comparisons -------------------------------------------------------------------------------------
def compared(f: FunctionLowering, i: Instruction, ptx_type: str) -> list[Val]:
    """The truth of the comparison, one value for each half of a packed type."""
    op = i.mods[0]
    a, b = (f.src(o, "b32" if ptx_type.endswith("x2") else ptx_type) for o in i.operands[1:3])
    if ptx_type not in FLOAT_TYPES:
        if op not in INTEGER_OPS or i.has("ftz"):
            raise missing(i)
        name = INTEGER_OPS[op]
        if name not in ("eq", "ne"):
            if ptx_type[0] == "b":
                raise missing(i)
            name = ("s" if is_signed(ptx_type) else "u") + name
        return [f.b.cmp(name, a, b)]
    if op not in FLOAT_OPS or (i.has("ftz") and ptx_type not in FLUSHED):
        raise missing(i)
    x, y = (as_floats(f, v, ptx_type, i.has("ftz")) for v in (a, b))
    return [f.b.cmp(FLOAT_OPS[op], p, q) for p, q in zip(x, y, strict=True)]


def as_floats(f: FunctionLowering, v: Val, ptx_type: str, ftz: bool) -> list[Val]:
    """An operand as float or double lanes (exact: CPUs compare no narrower ones), one value for each packed half."""
    narrow = half.LANES.get(ptx_type)
    values = list(half.unpack(f, v, narrow)) if narrow and ptx_type.endswith("x2") else [v]
    if ftz:
        values = [floating.flush(f, x) for x in values]
    return [half.widen(f, x) for x in values] if narrow else values


def boolean_op(f: FunctionLowering, i: Instruction) -> tuple[str, Val] | None:
    """The Boolean operator of set and setp with its predicate, if there is one."""
    name = next((m for m in i.mods if m in BOOLEAN_OPS), None)
    if len(i.operands) != (3 if name is None else 4):
        raise missing(i)
    return (name, f.src(i.operands[3], "pred")) if name else None


@lowers("setp")
def set_predicate(f: FunctionLowering, i: Instruction) -> None:
    """p|q: q is the comparison of the upper halves (packed types), or else that with the opposite sense."""
    accept(i, COMPARED, COMPARE_MODS)
    truths = compared(f, i, i.type)
    if len(truths) == 1:
        truths.append(f.b.op("xor", truths[0], const(1, "i1")))
    combine = boolean_op(f, i)
    if combine:
        name, c = combine
        truths = [f.b.op(name, t, c) for t in truths]
    target = i.operands[0]
    if isinstance(target, Pair):
        f.dst(target.first, truths[0])
        f.dst(target.second, truths[1])
    elif i.type.endswith("x2"):
        raise missing(i)
    else:
        f.dst(target, truths[0])


#: 1.0 as bits, by destination type.
ONES = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C003C00, "bf16x2": 0x3F803F80}


@lowers("set")
def set_value(f: FunctionLowering, i: Instruction) -> None:
    """All ones or 1.0 where the comparison holds, else zero; packed sources give two 16-bit results."""
    if len(i.types) != 2:
        raise missing(i)
    to, of = i.types
    packed = of.endswith("x2")
    allowed = {"u32", "s32", "f32", "f16", "bf16"} | ({"u16", "s16"} if of in ("f16", "bf16") else set())
    if of not in COMPARED or to not in ({"u32", "s32", of} if packed else allowed):
        raise missing(i)
    accept(i, COMPARED | {to}, COMPARE_MODS)
    ty = integer_type(to)
    true = ONES.get(to, -1)
    parts = [true & 0xFFFF, true & ~0xFFFF] if packed else [true]
    truths = compared(f, i, of)
    combine = boolean_op(f, i)
    if combine:
        truths = [f.b.op(combine[0], t, combine[1]) for t in truths]
    values = [f.b.select(t, const(p, ty), const(0, ty)) for t, p in zip(truths, parts, strict=True)]
    f.dst(i.operands[0], f.b.op("or", *values) if packed else values[0])


# ---- selections --------------------------------------------------------------------------------------
@lowers("selp")
def select_by_predicate(f: FunctionLowering, i: Instruction) -> None:
    accept(i, SCALARS)
    a, b, c = sources(f, i, i.type, i.type, "pred")
    f.dst(i.operands[0], f.b.select(c, a, b))


@lowers("slct")
def select_by_sign(f: FunctionLowering, i: Instruction) -> None:
    """a where c >= 0 (true of -0.0, not of NaN), else b."""
    if len(i.types) != 2 or i.types[1] not in ("s32", "f32") or (i.has("ftz") and i.type != "f32"):
        raise missing(i)
    accept(i, SCALARS, {"ftz"})
    a, b, c = sources(f, i, i.types[0], i.types[0], i.types[1])
    if i.type == "f32" and i.has("ftz"):
        c = floating.flush(f, c)
    not_negative = f.b.cmp("sge", c, const(0, "i32")) if i.type == "s32" else f.b.cmp("oge", c, fconst(0.0))
    f.dst(i.operands[0], f.b.select(not_negative, a, b))


# ---- properties of floats ----------------------------------------------------------------------------
@lowers("testp")
def test_property(f: FunctionLowering, i: Instruction) -> None:
    """Kinds of numbers by exponent and mantissa; zeros count as normal."""
    accept(i, {"f32", "f64"}, {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
    ty = integer_type(i.type)
    mantissa = 23 if ty == "i32" else 52
    infinity = ((1 << (BITS[ty] - 1)) - 1) >> mantissa << mantissa
    smallest = const(1 << mantissa, ty)
    (a,) = sources(f, i, i.type)
    a = f.b.op("and", f.b.bitcast(a, ty), const((1 << (BITS[ty] - 1)) - 1, ty))
    limit = const(infinity, ty)
    subnormal = f.b.cmp("ult", f.b.op("sub", a, const(1, ty)), const((1 << mantissa) - 1, ty))
    kind = i.mods[0]
    if kind == "subnormal":
        r = subnormal
    elif kind == "normal":
        in_range = f.b.op("and", f.b.cmp("uge", a, smallest), f.b.cmp("ult", a, limit))
        r = f.b.op("or", f.b.cmp("eq", a, const(0, ty)), in_range)
    else:
        r = f.b.cmp({"finite": "ult", "infinite": "eq", "number": "ule", "notanumber": "ugt"}[kind], a, limit)
    f.dst(i.operands[0], r)


@lowers("copysign")
def copy_sign(f: FunctionLowering, i: Instruction) -> None:
    """The magnitude of b with the sign of a."""
    accept(i, {"f32", "f64"})
    a, b = sources(f, i, i.type, i.type)
    f.dst(i.operands[0], f.b.call("llvm.copysign", b, a))


# ---- moves -------------------------------------------------------------------------------------------
@lowers("mov")
def move(f: FunctionLowering, i: Instruction) -> None:
    """A register, constant, special register or address; with braces, parts are packed or unpacked."""
    accept(i, SCALARS | {"pred", "b128", "f16", "bf16", "f16x2", "bf16x2"}, {"v2", "v4"})
    if len(i.operands) != 2:
        raise missing(i)
    to, of = i.operands
    t = i.type
    if i.has("v2", "v4"):
        n = 2 if i.has("v2") else 4
        values = [f.src(o, t) for o in elements(of, n, i)]
        for o, v in zip(elements(to, n, i), values, strict=True):
            f.dst(o, v)
        return
    braced = to if isinstance(to, Vec) else of
    if isinstance(braced, Vec):
        n = len(braced.items)
        if n not in (2, 4) or TYPE_BITS[t] < 8 * n:
            raise missing(i)
    if isinstance(to, Vec):
        for o, v in zip(to.items, unpack(f.b, f.src(of, f"b{TYPE_BITS[t]}"), n), strict=True):
            f.dst(o, v)
    elif isinstance(of, Vec):
        f.dst(to, pack(f.b, [f.src(o, f"b{TYPE_BITS[t] // n}") for o in of.items], integer_type(t)))
    else:
        f.dst(to, f.src(of, "b32" if t.endswith("x2") else t))


def elements(op: Operand | None, n: int, i: Instruction) -> list[Operand]:
    """The n parts of a vector operand: braces or a vector register."""
    if isinstance(op, Vec) and len(op.items) == n:
        return list(op.items)
    if isinstance(op, Reg):
        return [Element(op, k) for k in range(n)]
    raise missing(i)
