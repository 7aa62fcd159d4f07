"""Integer arithmetic: add, sub, mul, mad, sad, min, max, carry chains, dot products.

``add``, ``mul`` and their kin also exist for floating-point types; those forms are passed on to
``floating.py`` and ``half.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....ptx.ast import TYPE_BITS, Instruction
from ..ir import BITS, Builder, Val, const
from . import Handler, lowers
from .common import FALSE, accept, each_part, missing, parts, whole
from .division import quotient, remainder

if TYPE_CHECKING:
    from .function import FunctionLowering

FLOATS = frozenset({"f32", "f64", "f32x2"})
HALVES = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
WORDS = frozenset({"u16", "s16", "u32", "s32", "u64", "s64"})
PACKED = frozenset({"u16x2", "s16x2"})
CARRYING = frozenset({"u32", "s32", "u64", "s64"})
SIGNED = frozenset({"s16", "s32", "s64"})


def arithmetic(*opcodes: str) -> Callable[[Handler], Handler]:
    """Register the integer forms of opcodes that exist for floating-point types too."""

    def register(integer_form: Handler) -> Handler:
        def handler(f: FunctionLowering, i: Instruction) -> None:
            if not i.types:
                raise missing(i)
            if i.types[0] in FLOATS:
                from . import floating

                floating.arithmetic(f, i)
            elif i.types[0] in HALVES:
                from . import half

                half.arithmetic(f, i)
            else:
                integer_form(f, i)

        return lowers(*opcodes)(handler)

    return register


def is_signed(ptx_type: str) -> bool:
    return ptx_type[0] == "s"


def sources(f: FunctionLowering, i: Instruction, *types: str) -> list[Val]:
    """The source operands, as values of the given types."""
    if len(i.operands) != len(types) + 1:
        raise missing(i)
    return [f.src(op, t) for op, t in zip(i.operands[1:], types, strict=True)]


# ---- sums ------------------------------------------------------------------------------------------
@arithmetic("add", "sub")
def add_sub(f: FunctionLowering, i: Instruction) -> None:
    if i.has("cc"):
        return carry_chain(f, i)
    accept(i, WORDS | PACKED, {"sat"})
    t = i.type
    if t in PACKED:
        if i.opcode == "sub" or i.has("sat"):
            raise missing(i)
        a, b = f.b.same(*sources(f, i, "b32", "b32"))
        halves = f.b.op("add", parts(f.b, a, "i16"), parts(f.b, b, "i16"))
        return f.dst(i.operands[0], whole(f.b, halves, a))
    a, b = sources(f, i, t, t)
    if not i.has("sat"):
        return f.dst(i.operands[0], f.b.op(i.opcode, a, b))
    if t != "s32":
        raise missing(i)
    f.dst(i.operands[0], f.b.call(f"llvm.s{i.opcode}.sat", a, b))


@lowers("addc", "subc")
def carry_chain(f: FunctionLowering, i: Instruction) -> None:
    """add.cc, addc, addc.cc and the same for sub.

    As on hardware a - b is a + ~b + 1, so after sub.cc the flag is set where there is *no* borrow (one can
    tell by using addc after sub.cc).
    """
    accept(i, CARRYING, {"cc"})
    a, b = sources(f, i, i.type, i.type)
    carry_in = f.carry() if i.opcode[-1] == "c" else None
    if i.opcode[:3] == "add":
        total, carry_out = add_with_carry(f.b, a, b, carry_in)
    elif carry_in is None:
        total, carry_out = f.b.op("sub", a, b), f.b.cmp("uge", a, b)
    else:
        total, carry_out = add_with_carry(f.b, a, f.b.op("xor", b, const(-1, b.ty)), carry_in)
    f.dst(i.operands[0], total)
    if i.has("cc"):
        f.set_carry(carry_out)


def add_with_carry(b: Builder, x: Val, y: Val, carry: Val | None) -> tuple[Val, Val]:
    """x + y + carry, and the carry out of it."""
    total = b.op("add", x, y)
    out = b.cmp("ult", total, x)
    if carry is None:
        return total, out
    after = b.op("add", total, b.cast("zext", carry, x.ty))
    return after, b.op("or", out, b.cmp("ult", after, total))


# ---- products --------------------------------------------------------------------------------------
@arithmetic("mul")
def multiply(f: FunctionLowering, i: Instruction) -> None:
    accept(i, WORDS, {"lo", "hi", "wide"})
    a, b = sources(f, i, i.type, i.type)
    f.dst(i.operands[0], product(f, i, a, b))


@arithmetic("mad")
def multiply_add(f: FunctionLowering, i: Instruction) -> None:
    if i.has("cc"):
        return multiply_add_carry(f, i)
    accept(i, WORDS, {"lo", "hi", "wide", "sat"})
    t = i.type
    a, b, c = sources(f, i, t, t, twice(t) if i.has("wide") else t)
    f.dst(i.operands[0], add_saturating(f, i, product(f, i, a, b), c))


@lowers("madc")
def multiply_add_carry(f: FunctionLowering, i: Instruction) -> None:
    """mad.cc and madc: the carry is that of the addition."""
    accept(i, CARRYING, {"lo", "hi", "cc"})
    a, b, c = sources(f, i, i.type, i.type, i.type)
    carry_in = f.carry() if i.opcode == "madc" else None
    total, carry_out = add_with_carry(f.b, product(f, i, a, b), c, carry_in)
    f.dst(i.operands[0], total)
    if i.has("cc"):
        f.set_carry(carry_out)


@lowers("mul24", "mad24")
def multiply_24(f: FunctionLowering, i: Instruction) -> None:
    """Products of the low 24 bits: .lo gives bits 31..0 and .hi bits 47..16 of the 48-bit result."""
    accept(i, {"u32", "s32"}, {"lo", "hi", "sat"} if i.opcode == "mad24" else {"lo", "hi"})
    vals = sources(f, i, *[i.type] * (len(i.operands) - 1))
    signed = is_signed(i.type)
    a, b = (low_24(f.b, v, signed) for v in vals[:2])
    if i.has("hi"):
        ext = "sext" if signed else "zext"
        p = f.b.op("mul", f.b.cast(ext, a, "i64"), f.b.cast(ext, b, "i64"))
        r = f.b.cast("trunc", f.b.op("lshr", p, const(16, "i64")), "i32")
    elif i.has("lo"):
        r = f.b.op("mul", a, b)
    else:
        raise missing(i)
    f.dst(i.operands[0], add_saturating(f, i, r, vals[2]) if i.opcode == "mad24" else r)


def low_24(b: Builder, v: Val, signed: bool) -> Val:
    if not signed:
        return b.op("and", v, const(0xFFFFFF, "i32"))
    return b.op("ashr", b.op("shl", v, const(8, "i32")), const(8, "i32"))


def twice(ptx_type: str) -> str:
    """The type of a .wide result."""
    return f"{ptx_type[0]}{2 * TYPE_BITS[ptx_type]}"


def add_saturating(f: FunctionLowering, i: Instruction, a: Val, c: Val) -> Val:
    """The addition of mad, which .sat (only in .hi.sat.s32) clamps."""
    if not i.has("sat"):
        return f.b.op("add", a, c)
    if i.type != "s32" or not i.has("hi"):
        raise missing(i)
    return f.b.call("llvm.sadd.sat", a, c)


def product(f: FunctionLowering, i: Instruction, a: Val, b: Val) -> Val:
    """The part of a * b that .lo, .hi or .wide names."""
    signed = is_signed(i.type)
    if i.has("lo"):
        return f.b.op("mul", a, b)
    if i.has("hi"):
        return high_product(f.b, a, b, signed)
    if not i.has("wide") or BITS[a.ty] == 64:
        raise missing(i)
    ext, ty = ("sext" if signed else "zext"), f"i{2 * BITS[a.ty]}"
    return f.b.op("mul", f.b.cast(ext, a, ty), f.b.cast(ext, b, ty))


def high_product(b: Builder, x: Val, y: Val, signed: bool) -> Val:
    """The upper half of the double-width product."""
    bits = BITS[x.ty]
    if bits == 64 and not (x.uniform and y.uniform):
        return high_product_64(b, b.vec(x), b.vec(y), signed)
    ext, ty = ("sext" if signed else "zext"), f"i{2 * bits}"
    p = b.op("mul", b.cast(ext, x, ty), b.cast(ext, y, ty))
    return b.cast("trunc", b.op("lshr", p, const(bits, ty)), x.ty)


def high_product_64(b: Builder, x: Val, y: Val, signed: bool) -> Val:
    """64-bit lanes in four 32x32-bit products, each one SIMD instruction; i128 would go lane by lane."""
    low, half = const(0xFFFFFFFF, "i64"), const(32, "i64")
    x0, x1 = b.op("and", x, low), b.op("lshr", x, half)
    y0, y1 = b.op("and", y, low), b.op("lshr", y, half)
    # Neither sum can overflow: (2^32-1)^2 + 2^32-1 < 2^64.
    middle = b.op("add", b.op("mul", x1, y0), b.op("lshr", b.op("mul", x0, y0), half))
    other = b.op("add", b.op("mul", x0, y1), b.op("and", middle, low))
    high = b.op("add", b.op("mul", x1, y1), b.op("add", b.op("lshr", middle, half), b.op("lshr", other, half)))
    if not signed:
        return high
    sign = const(63, "i64")
    for u, v in ((x, y), (y, x)):  # a negative factor counts 2^64 too much as unsigned
        high = b.op("sub", high, b.op("and", b.op("ashr", u, sign), v))
    return high


# ---- quotients -------------------------------------------------------------------------------------
@arithmetic("div")
def divide(f: FunctionLowering, i: Instruction) -> None:
    accept(i, WORDS)
    a, b = sources(f, i, i.type, i.type)
    f.dst(i.operands[0], quotient(f, a, b, is_signed(i.type)))


@arithmetic("rem")
def remain(f: FunctionLowering, i: Instruction) -> None:
    accept(i, WORDS)
    a, b = sources(f, i, i.type, i.type)
    f.dst(i.operands[0], remainder(f, a, b, is_signed(i.type)))


# ---- absolute values, extremes -----------------------------------------------------------------------
@arithmetic("abs")
def absolute(f: FunctionLowering, i: Instruction) -> None:
    accept(i, SIGNED)
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.call("llvm.abs", a, FALSE))


@arithmetic("neg")
def negate(f: FunctionLowering, i: Instruction) -> None:
    accept(i, SIGNED)
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.op("sub", const(0, a.ty), a))


@arithmetic("min", "max")
def extreme(f: FunctionLowering, i: Instruction) -> None:
    accept(i, WORDS | PACKED, {"relu"})
    t = i.type
    if i.has("relu") and t not in ("s32", "s16x2"):
        raise missing(i)
    name = f"llvm.{'s' if is_signed(t) else 'u'}{i.opcode}"
    if t in PACKED:
        a, b = sources(f, i, "b32", "b32")
        r = each_part(f.b, name, "i16", a, b)
        if i.has("relu"):
            r = each_part(f.b, "llvm.smax", "i16", r, const(0, "i32"))
    else:
        a, b = sources(f, i, t, t)
        r = f.b.call(name, a, b)
        if i.has("relu"):
            r = f.b.call("llvm.smax", r, const(0, "i32"))
    f.dst(i.operands[0], r)


@lowers("sad")
def sum_of_absolute_differences(f: FunctionLowering, i: Instruction) -> None:
    accept(i, WORDS)
    a, b, c = sources(f, i, i.type, i.type, i.type)
    larger, smaller = (f.b.call(f"llvm.{'s' if is_signed(i.type) else 'u'}{m}", a, b) for m in ("max", "min"))
    f.dst(i.operands[0], f.b.op("add", c, f.b.op("sub", larger, smaller)))


# ---- dot products ------------------------------------------------------------------------------------
@lowers("dp4a")
def dot_product_4(f: FunctionLowering, i: Instruction) -> None:
    """Four products of bytes, added to c."""
    signed_a, signed_b = dot_signs(i)
    x, y, total = sources(f, i, "b32", "b32", "b32")
    x, y = f.b.same(x, y)
    for at in (0, 8):  # even bytes, then odd ones: each a pair of 16-bit numbers
        u, v = bytes_of_halves(f.b, x, at, signed_a), bytes_of_halves(f.b, y, at, signed_b)
        total = f.b.op("add", total, pair_product(f.b, u, v, x))
    f.dst(i.operands[0], total)


@lowers("dp2a")
def dot_product_2(f: FunctionLowering, i: Instruction) -> None:
    """Two products of a half of a and a byte of b (of its lower or upper half), added to c."""
    signed_a, signed_b = dot_signs(i, "lo", "hi")
    a, b, total = sources(f, i, "b32", "b32", "b32")
    first = 16 if i.has("hi") else 0
    for k in range(2):
        u, v = field_at(f.b, a, 16 * k, 16, signed_a), field_at(f.b, b, first + 8 * k, 8, signed_b)
        total = f.b.op("add", total, f.b.op("mul", u, v))
    f.dst(i.operands[0], total)


def dot_signs(i: Instruction, *parts_of_b: str) -> tuple[bool, bool]:
    """Whether a and b of a dot product are signed."""
    accept(i, {"u32", "s32"}, parts_of_b)
    if len(i.types) != 2 or (parts_of_b and not i.has(*parts_of_b)):
        raise missing(i)
    return is_signed(i.types[0]), is_signed(i.types[1])


def field_at(b: Builder, v: Val, at: int, width: int, signed: bool) -> Val:
    """Bits at..at+width-1 of a 32-bit value, extended."""
    v = b.op("shl", v, const(32 - width - at, "i32"))
    return b.op("ashr" if signed else "lshr", v, const(32 - width, "i32"))


def bytes_of_halves(b: Builder, v: Val, at: int, signed: bool) -> Val:
    """The lower (at 0) or upper (at 8) bytes of all 16-bit parts, extended to 16 bits."""
    v = parts(b, v, "i16")
    if at == 0:
        v = b.raw(v.ty, True, f"shl {v.typed}, splat (i16 8)")
    return b.raw(v.ty, True, f"{'ashr' if signed else 'lshr'} {v.typed}, splat (i16 8)")


def pair_product(b: Builder, x: Val, y: Val, like: Val) -> Val:
    """Products of signed 16-bit parts, added in pairs: one instruction of the CPU (pmaddwd)."""
    count = int(x.ty[1:].split()[0])
    wide = f"<{count} x i32>"
    u, v = (b.raw(wide, True, f"sext {p.typed} to {wide}") for p in (x, y))
    p = b.op("mul", u, v)
    half = f"<{count // 2} x i32>"
    sides = []
    for first in (0, 1):
        mask = ", ".join(f"i32 {k}" for k in range(first, count, 2))
        sides.append(b.raw(half, True, f"shufflevector {p.typed}, {wide} poison, {half} <{mask}>"))
    return whole(b, b.op("add", *sides), like)
