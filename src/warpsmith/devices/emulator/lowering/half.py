"""f16, bf16 and their packed pairs (PTX ISA 9.7.4).

Sums, differences and products are computed in float and rounded once more: float has more than twice
the significant bits of f16 and of bf16, which makes the second rounding harmless (Figueroa 1995); results
below the normal range are exact in float.  A fused multiply-add has too many bits for that argument, so
its float is rounded to odd first (Boldo and Melquiond 2008).

x86 converts f16 in hardware (F16C) but not bf16, which is done on the bits here: LLVM would call a
library function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....ptx.ast import Instruction, Operand
from ..ir import Val, const, fconst
from . import Unsupported, floating, host

if TYPE_CHECKING:
    from .function import FunctionLowering

#: Lane type of each 16-bit PTX type and its pair.
LANES = {"f16": "half", "f16x2": "half", "bf16": "bfloat", "bf16x2": "bfloat"}


# ---- conversions -----------------------------------------------------------------------------------
def widen(f: FunctionLowering, v: Val) -> Val:
    """A half or bfloat as a float: exact."""
    if v.ty == "half":
        if host.has("f16c"):
            return f.b.cast("fpext", v, "float")
        return f.lanewise("ws_f32_of_f16", "float", f.b.bitcast(v, "i16"))
    u = f.b.cast("zext", f.b.bitcast(v, "i16"), "i32")
    return f.b.bitcast(f.b.op("shl", u, const(16, "i32")), "float")


def narrow(f: FunctionLowering, v: Val, ty: str) -> Val:
    """A float as half or bfloat, to nearest even; NaN becomes 0x7fff."""
    if ty == "half" and host.has("f16c"):
        r = f.b.bitcast(f.b.cast("fptrunc", v, "half"), "i16")
    elif ty == "half":
        r = f.lanewise("ws_f16_of_f32", "i16", v)
    else:
        u = floating.bits(f, v)
        even = f.b.op("and", f.b.op("lshr", u, const(16, "i32")), const(1, "i32"))
        u = f.b.op("add", u, f.b.op("add", even, const(0x7FFF, "i32")))
        r = f.b.cast("trunc", f.b.op("lshr", u, const(16, "i32")), "i16")
    return f.b.bitcast(f.b.select(floating.is_nan(f, v), const(0x7FFF, "i16"), r), ty)


def unpack(f: FunctionLowering, v: Val, ty: str) -> tuple[Val, Val]:
    """The lower and upper half of a packed pair (i32) as lanes of type half or bfloat."""
    low = f.b.cast("trunc", v, "i16")
    high = f.b.cast("trunc", f.b.op("lshr", v, const(16, "i32")), "i16")
    return f.b.bitcast(low, ty), f.b.bitcast(high, ty)


def pack(f: FunctionLowering, low: Val, high: Val) -> Val:
    """Two 16-bit lanes (of any type) -> i32."""
    lo, hi = (f.b.cast("zext", f.b.bitcast(v, "i16"), "i32") for v in (low, high))
    return f.b.op("or", lo, f.b.op("shl", hi, const(16, "i32")))


def each(f: FunctionLowering, i: Instruction, sources: tuple[Operand | None, ...], compute: Callable[..., Val]) -> None:
    """Apply a function of half/bfloat lanes to the sources of an instruction, to both halves if packed."""
    ty = LANES[i.type]
    if not i.type.endswith("x2"):
        f.dst(i.operands[0], compute(*(f.src(op, i.type) for op in sources)))
        return
    pairs = [unpack(f, f.src(op, "b32"), ty) for op in sources]
    low, high = (compute(*(p[k] for p in pairs)) for k in (0, 1))
    f.dst(i.operands[0], pack(f, low, high))


# ---- rounding to odd ---------------------------------------------------------------------------------
def to_odd(f: FunctionLowering, v: Val, error: Val) -> Val:
    """v + error rounded to odd, where v is that sum rounded to nearest: if inexact, the neighbour with an odd last bit.

    ``error`` need only have the right sign.  NaN (from infinities) counts as exact.
    """
    u = floating.bits(f, v)
    one = const(1, u.ty)
    zero = floating.constant(0, error.ty)
    even = f.b.cmp("eq", f.b.op("and", u, one), const(0, u.ty))
    move = f.b.op("and", even, f.b.cmp("one", error, zero))
    outward = f.b.cmp("eq", f.b.cmp("olt", error, zero), f.b.cmp("slt", u, const(0, u.ty)))
    step = f.b.select(outward, one, const(-1, u.ty))
    return f.b.bitcast(f.b.select(move, f.b.op("add", u, step), u), v.ty)


def two_sum(f: FunctionLowering, a: Val, b: Val) -> tuple[Val, Val]:
    """a + b rounded to nearest, and the exact error of it (Knuth)."""
    s = f.b.op("fadd", a, b)
    t = f.b.op("fsub", s, a)
    return s, f.b.op("fadd", f.b.op("fsub", a, f.b.op("fsub", s, t)), f.b.op("fsub", b, t))


def fused(f: FunctionLowering, a: Val, b: Val, c: Val, ty: str) -> Val:
    """a * b + c of floats that hold f16 or bf16 values, as a float that rounds to the fused result."""
    if host.is_x86_with("avx512f"):
        # One of the neighbours in float is odd; where the sum is exact both are the same, but for the sign of
        # a zero, of which the second has the right one.
        below, above = (floating.embedded(f, "fma", m, a, b, c) for m in ("rm", "rp"))
        odd = f.b.op("and", floating.bits(f, below), const(1, "i32"))
        return f.b.select(f.b.cmp("ne", odd, const(0, "i32")), below, above)
    if ty == "half":  # the product of two f16 is exact in float
        return to_odd(f, *two_sum(f, f.b.op("fmul", a, b), c))
    a, b, c = (f.b.cast("fpext", v, "double") for v in (a, b, c))
    s, error = two_sum(f, f.b.op("fmul", a, b), c)
    r = f.b.cast("fptrunc", s, "float")
    return to_odd(f, r, f.b.op("fadd", f.b.op("fsub", s, f.b.cast("fpext", r, "double")), error))


# ---- add, sub, mul, fma, min, max, abs, neg ------------------------------------------------------------
ALLOWED: dict[str, tuple[str, ...]] = {
    "add": ("rn", "ftz", "sat"), "sub": ("rn", "ftz", "sat"), "mul": ("rn", "ftz", "sat"),
    "fma": ("rn", "ftz", "sat", "relu", "oob"), "abs": ("ftz",), "neg": ("ftz",),
    "min": ("ftz", "NaN", "xorsign", "abs"), "max": ("ftz", "NaN", "xorsign", "abs"),
}  # fmt: skip


def arithmetic(f: FunctionLowering, i: Instruction) -> None:
    """add, sub, mul, fma, min, max, abs and neg of f16, bf16, f16x2 and bf16x2."""
    if len(i.types) != 1 or i.type not in LANES or i.opcode not in ALLOWED:
        floating.arithmetic(f, i) if len(i.types) == 2 and i.types[0] == "f32" else refuse(i)
        return
    ty = LANES[i.type]
    # bf16 has neither .ftz nor .sat.  (ptxas takes .rz, .rm and .rp of bf16 fma, but an H200 then gives nonsense.)
    floating.allow(i, *(m for m in ALLOWED[i.opcode] if ty == "half" or m not in ("ftz", "sat")))
    if i.opcode == "fma":
        floating.rounding(i, None)
    if (i.has("relu") and i.has("sat")) or (i.has("oob") and i.has("ftz", "sat")):
        refuse(i)

    def compute(*v: Val) -> Val:
        if i.has("ftz"):
            v = tuple(floating.flush(f, x) for x in v)
        if i.opcode in ("abs", "neg"):
            r = floating.magnitude(f, v[0]) if i.opcode == "abs" else floating.negative(f, v[0])
            r = f.b.select(floating.is_nan(f, r), const(floating.NAN[ty], "i16"), floating.bits(f, r))
            return f.b.bitcast(r, ty)
        r = value(f, i, [widen(f, x) for x in v], ty)
        if i.has("ftz"):  # below the normal range, when rounded without a lower end of exponents
            r = floating.flush(f, r, f.b.cmp("olt", floating.magnitude(f, r), fconst(2.0**-14 - 2.0**-26)))
        if i.has("sat"):
            r = floating.saturate(f, r)
        h = narrow(f, floating.relu(f, r) if i.has("relu") else r, ty)
        if i.has("oob"):
            outside = f.b.op("or", *(out_of_bounds(f, x) for x in v[:2]))
            h = f.b.bitcast(f.b.select(outside, const(0, "i16"), floating.bits(f, h)), ty)
        return h

    each(f, i, i.operands[1:], compute)


def out_of_bounds(f: FunctionLowering, v: Val) -> Val:
    """Is a factor the NaN that loads beyond a tensor give?  With .oob the sum is zero then."""
    return f.b.cmp("eq", f.b.op("and", floating.bits(f, v), const(0x7FFF, "i16")), const(0x7FF7, "i16"))


def value(f: FunctionLowering, i: Instruction, v: list[Val], ty: str) -> Val:
    """The result as a float that need only be rounded to the type."""
    if i.opcode == "fma":
        return fused(f, v[0], v[1], v[2], ty)
    if i.opcode in ("min", "max"):
        if len(v) != 2:
            refuse(i)
        return floating.minmax(f, i, v)
    return f.b.op("f" + i.opcode, v[0], v[1])


def refuse(i: Instruction) -> None:
    raise Unsupported(f"{i.text} is not implemented", i)


# ---- ex2, tanh -----------------------------------------------------------------------------------------
def transcendental(f: FunctionLowering, i: Instruction) -> None:
    """ex2 and tanh: the float function, cut (not rounded), as an H200 does it."""
    from . import convert

    ty = LANES[i.type]
    ftz = i.opcode == "ex2" and ty == "bfloat"  # ex2.approx.ftz.bf16 is the only form with bf16
    if i.opcode not in ("ex2", "tanh") or not i.has("approx") or i.has("ftz") != ftz or len(i.types) != 1:
        refuse(i)
    floating.allow(i, "approx", "ftz")

    def compute(v: Val) -> Val:
        x = widen(f, v)
        if i.opcode == "ex2":  # the hardware cuts arguments to 23 binary places
            x = f.b.select(f.b.cmp("olt", floating.magnitude(f, x), fconst(2.0**-23)), fconst(0.0), x)
        x = floating.approximate(f, i.opcode, x)
        r = convert.narrow(f, x, ty, "rz")
        if ty == "half":  # but what is too large becomes infinite
            infinity = f.b.bitcast(const(floating.EXPONENT[ty], "i16"), ty)
            r = f.b.select(f.b.cmp("oge", x, fconst(65536.0)), infinity, r)
        return floating.flush(f, r) if ftz else r

    each(f, i, i.operands[1:2], compute)
