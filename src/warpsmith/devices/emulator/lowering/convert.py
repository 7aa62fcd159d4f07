"""cvt: every conversion between number formats (PTX ISA 9.7.9.21, 9.7.9.22).

Three ideas carry all of it:

- A conversion to a narrower format in a directed mode is the nearest one, corrected by one unit where it
  went past the source (``narrow``).
- A conversion in two steps (f64 to f16, s64 to f32) is exact if the first step rounds to odd, which keeps
  the fact that something was cut off in the last bit (``half.to_odd``, ``sticky``).
- LLVM leaves a conversion to an integer undefined beyond the integer's range, so those lanes are replaced
  (``to_integer``); its saturating conversions are done lane by lane on x86.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import Instruction, Operand, Vec
from ..ir import BITS, Val, const, fconst
from . import Unsupported, floating, half, host, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

INTEGERS = frozenset(f"{k}{n}" for k in "su" for n in (8, 16, 32, 64))
FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
TO_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
#: Packed small formats: bits of one number.
SMALL = {"e4m3x2": 8, "e5m2x2": 8, "e2m3x2": 8, "e3m2x2": 8, "e2m1x2": 4}
#: Largest finite number of each format that .satfinite clamps to.
LARGEST = {"half": 65504.0, "bfloat": float.fromhex("0x1.fep127"), "tf32": float.fromhex("0x1.ffcp127")}


@lowers("cvt")
def convert(f: FunctionLowering, i: Instruction) -> None:
    if i.has("pack"):
        pack_integers(f, i)
        return
    if len(i.types) != 2:
        refuse(i)
    to, of = i.types
    if to in INTEGERS and of in INTEGERS:
        inside = limits(to)[0] <= limits(of)[0] and limits(of)[1] <= limits(to)[1]
        floating.allow(i, *(() if inside else ("sat",)))
        v = resized(f, f.src(i.operands[1], of), of, to, i.has("sat"))
        f.dst(i.operands[0], v, signed=to[0] == "s")
    elif to in INTEGERS and of in FLOATS:
        to_integer(f, i, to, of)
    elif to in FLOATS and of in INTEGERS:
        from_integer(f, i, to, of)
    elif to in FLOATS and of in FLOATS:
        between(f, i, to, of)
    elif of == "f32" and to in ("f16x2", "bf16x2"):
        floating.allow(i, "rn", "rz", "relu", "satfinite")
        high, low = (small_float(f, i, op, half.LANES[to]) for op in two_sources(i))
        f.dst(i.operands[0], half.pack(f, low, high))
    elif of == "f32" and to == "tf32":
        tf32(f, i)
    elif to in SMALL and of in ("f32", "f16x2"):
        to_small(f, i, to, of)
    elif of in SMALL and to == "f16x2":
        from_small(f, i, of)
    elif "ue8m0x2" in (to, of):
        exponents(f, i, to, of)
    else:
        refuse(i)


def refuse(i: Instruction) -> None:
    raise Unsupported(f"{i.text} is not implemented", i)


def two_sources(i: Instruction) -> tuple[Operand | None, Operand | None]:
    if len(i.operands) != 3 or isinstance(i.operands[1], Vec):
        refuse(i)
    return i.operands[1], i.operands[2]


# ---- integers ----------------------------------------------------------------------------------------
def limits(ptx_type: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    n = int(ptx_type[1:])
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if ptx_type[0] == "s" else (0, (1 << n) - 1)


def resized(f: FunctionLowering, v: Val, of: str, to: str, sat: bool) -> Val:
    """An integer of one type as another; clamped to its range if ``sat``, else cut."""
    have, want = limits(of), limits(to)
    kind = of[0]
    if sat and have[0] < want[0]:
        v = f.b.call("llvm.smax", v, const(want[0], v.ty))
    if sat and have[1] > want[1]:
        v = f.b.call(f"llvm.{kind}min", v, const(want[1], v.ty))
    ty = f"i{to[1:]}"
    if BITS[ty] <= BITS[v.ty]:
        return f.b.cast("trunc", v, ty)
    return f.b.cast("sext" if kind == "s" else "zext", v, ty)


def pack_integers(f: FunctionLowering, i: Instruction) -> None:
    """cvt.pack: two saturated integers in the low bits, the rest from the low bits of c."""
    kind = i.mods[2] if len(i.mods) > 3 else ""
    if (
        i.mods[:2] != ("pack", "sat")
        or i.mods[3:4] != ("s32",)
        or kind[:1] not in ("s", "u")
        or kind[1:] not in ("2", "4", "8", "16")
    ):
        refuse(i)
    n = int(kind[1:])
    if i.mods[4:] != (() if n == 16 else ("b32",)) or len(i.operands) != (3 if n == 16 else 4):
        refuse(i)
    low, high = limits(kind)
    a, b = (
        f.b.call("llvm.smin", f.b.call("llvm.smax", f.src(op, "s32"), const(low, "i32")), const(high, "i32"))
        for op in i.operands[1:3]
    )
    mask = const((1 << n) - 1, "i32")
    r = f.b.op("or", f.b.op("and", b, mask), f.b.op("shl", f.b.op("and", a, mask), const(n, "i32")))
    if n < 16:
        r = f.b.op("or", r, f.b.op("shl", f.src(i.operands[3], "b32"), const(2 * n, "i32")))
    f.dst(i.operands[0], r)


# ---- floating point -> integer -------------------------------------------------------------------------
def load(f: FunctionLowering, i: Instruction, op: Operand | None, of: str) -> Val:
    """A floating-point source as float or double, flushed if the instruction says so (f32 only)."""
    if of in half.LANES:
        return half.widen(f, f.src(op, of))
    return floating.source(f, op, of, i.has("ftz") and of == "f32")


def integral(f: FunctionLowering, v: Val, mode: str) -> Val:
    """Rounded to an integer, as a floating-point number."""
    if host.has("sse4.1"):
        return f.b.call(f"llvm.{TO_INTEGRAL[mode]}", v)
    return f.lanewise(f"ws_{mode}_{floating.SHORT[v.ty]}", v.ty, v)


def to_integer(f: FunctionLowering, i: Instruction, to: str, of: str) -> None:
    floating.allow(i, frozenset(TO_INTEGRAL), *(("ftz",) if of == "f32" else ()), *(("sat",) if of != "bf16" else ()))
    modes = [m for m in i.mods if m in TO_INTEGRAL]
    if len(modes) != 1:
        raise Unsupported(f"{i.text}: needs one of .rni, .rzi, .rmi, .rpi", i)
    v = load(f, i, i.operands[1], of)
    if modes[0] != "rzi":
        v = integral(f, v, modes[0])
    low, high = limits(to)
    ty = f"i{max(BITS[f'i{to[1:]}'], 32)}"
    r = f.b.cast("fptosi" if to[0] == "s" or BITS[f"i{to[1:]}"] < 32 else "fptoui", v, ty)
    r = f.b.select(f.b.cmp("oge", v, fconst(float(high + 1), v.ty)), const(high, ty), r)
    r = f.b.select(f.b.cmp("olt", v, fconst(float(low), v.ty)), const(low, ty), r)
    nan = 1 << (int(to[1:]) - 1) if of == "f64" or to[1:] == "64" else 0
    r = f.b.select(floating.is_nan(f, v), const(nan, ty), r)
    f.dst(i.operands[0], f.b.cast("trunc", r, f"i{to[1:]}"), signed=to[0] == "s")


# ---- integer -> floating point -------------------------------------------------------------------------
def sticky(f: FunctionLowering, v: Val) -> Val:
    """A 64-bit integer with its low 11 bits folded into bit 11: it converts to double exactly, rounded to odd."""
    rest = f.b.cmp("ne", f.b.op("and", v, const(0x7FF, "i64")), const(0, "i64"))
    cut = f.b.op("and", v, const(~0x7FF, "i64"))
    return f.b.op("or", cut, f.b.select(rest, const(0x800, "i64"), const(0, "i64")))


def from_integer(f: FunctionLowering, i: Instruction, to: str, of: str) -> None:
    floating.allow(i, floating.ROUNDING, *(("sat",) if to != "bf16" else ()), *(("ftz",) if to == "f32" else ()))
    mode = floating.rounding(i, None)
    v = f.src(i.operands[1], of)
    cast = "sitofp" if of[0] == "s" else "uitofp"
    ty, bits = FLOATS[to], BITS[v.ty]
    if bits < 32:
        v, cast = f.b.cast("sext" if of[0] == "s" else "zext", v, "i32"), "sitofp"
    if (mode == "rn" and ty in ("float", "double")) or (ty == "double" and bits <= 32):
        r = f.b.cast(cast, v, ty)
    elif ty == "double":
        r = f.lanewise(f"ws_{mode}_f64_of_{of}", ty, v)
    else:
        if bits == 64:
            # Numbers of up to 53 bits are exact as they are.
            small = f.b.cmp(
                "ult",
                f.b.op("add", v, const((1 << 53) if of[0] == "s" else 0, "i64")),
                const(1 << (54 if of[0] == "s" else 53), "i64"),
            )
            v = f.b.select(small, v, sticky(f, v))
        r = narrow(f, f.b.cast(cast, v, "double"), ty, mode)
    if i.has("sat"):
        r = (
            floating.saturate(f, r)
            if ty in ("float", "double")
            else half.narrow(f, floating.saturate(f, half.widen(f, r)), ty)
        )
    f.dst(i.operands[0], r)


# ---- floating point -> floating point --------------------------------------------------------------------
def narrow(f: FunctionLowering, v: Val, ty: str, mode: str) -> Val:
    """A float or double as float, half or bfloat in a rounding mode; the NaN of a float is not canonical yet."""
    if v.ty == ty:
        return v
    if v.ty == "double" and ty != "float":
        r = f.b.cast("fptrunc", v, "float")
        v = half.to_odd(f, r, f.b.op("fsub", v, f.b.cast("fpext", r, "double")))
    r = f.b.cast("fptrunc", v, ty) if ty == "float" else half.narrow(f, v, ty)
    if mode == "rn":
        return r
    back = f.b.cast("fpext", r, "double") if ty == "float" else half.widen(f, r)
    u = floating.bits(f, r)
    down, up = const(-1, u.ty), const(1, u.ty)
    if mode == "rz":
        past = f.b.cmp("ogt", floating.magnitude(f, back), floating.magnitude(f, v))
        step = down
    else:
        past = f.b.cmp("ogt" if mode == "rm" else "olt", back, v)
        below = f.b.cmp("slt", u, const(0, u.ty))
        step = f.b.select(below, *((up, down) if mode == "rm" else (down, up)))
    return f.b.bitcast(f.b.select(past, f.b.op("add", u, step), u), ty)


def clamp(f: FunctionLowering, v: Val, largest: float) -> Val:
    """.satfinite: into [-largest, largest]; NaN stays."""
    top, bottom = fconst(largest, v.ty), fconst(-largest, v.ty)
    v = f.b.select(f.b.cmp("ogt", v, top), top, v)
    return f.b.select(f.b.cmp("olt", v, bottom), bottom, v)


def prepared(f: FunctionLowering, i: Instruction, op: Operand | None, largest: float, ftz: bool = False) -> Val:
    """An f32 source after .relu and .satfinite."""
    v = floating.source(f, op, "f32", ftz)
    if i.has("relu"):
        v = floating.relu(f, v)
    return clamp(f, v, largest) if i.has("satfinite") else v


def small_float(f: FunctionLowering, i: Instruction, op: Operand | None, ty: str) -> Val:
    """An f32 source as half or bfloat (.ftz does nothing to a conversion to f16)."""
    ftz = i.has("ftz") and ty == "bfloat"
    return narrow(f, prepared(f, i, op, LARGEST[ty], ftz), ty, floating.rounding(i, None))


def nan_of_double(f: FunctionLowering, v: Val, ty: str) -> Val:
    """The NaN that a double NaN becomes as half or bfloat: sign and upper bits of the payload stay, and it is quiet."""
    mantissa = {"half": 10, "bfloat": 7}[ty]
    u = floating.bits(f, v)
    top = f.b.op("and", f.b.op("lshr", u, const(52 - mantissa, "i64")), const(0x7FFF, "i64"))
    sign = f.b.op("and", f.b.op("lshr", u, const(48, "i64")), const(0x8000, "i64"))
    r = f.b.op("or", f.b.op("or", top, sign), const(1 << (mantissa - 1), "i64"))
    return f.b.bitcast(f.b.cast("trunc", r, "i16"), ty)


def between(f: FunctionLowering, i: Instruction, to: str, of: str) -> None:
    ty, source_ty = FLOATS[to], FLOATS[of]
    narrows = BITS[ty] < BITS[source_ty]
    halves = {to, of} == {"f16", "bf16"}
    finite = of == "f32" and to in half.LANES and i.has("relu", "satfinite")
    floating.allow(
        i,
        *((floating.ROUNDING,) if narrows or halves or (of == "bf16" and to != of) else ()),
        *((frozenset(TO_INTEGRAL),) if to == of else ()),
        *(("ftz",) if "f32" in (to, of) and not finite else ()),
        *(("sat",) if "bf16" not in (to, of) and not finite else ()),
        *(("relu", "satfinite") if finite else ()),
    )
    whole = [m for m in i.mods if m in TO_INTEGRAL]
    mode = floating.rounding(i, None if narrows else "rn")
    if len(whole) > 1 or (finite and mode not in ("rn", "rz")):
        refuse(i)
    if len(i.mods) == 2 and to == of and of in ("f32", "f64"):
        f.dst(i.operands[0], f.src(i.operands[1], of))  # no conversion at all, as ptxas has it
    elif narrows and of == "f32":
        write_half(f, i, small_float(f, i, i.operands[1], ty), ty)
    elif of == "f64" and to != of:
        from_double(f, i, to, mode)
    elif (of, to) == ("f32", "f64"):
        v = f.src(i.operands[1], of)  # the payload of a NaN goes along, but .ftz makes it canonical before
        v = floating.canonical(f, floating.flush(f, v)) if i.has("ftz") else v
        floating.write(f, i.operands[0], f.b.cast("fpext", v, ty), sat=i.has("sat"))
    elif (of, to) == ("bf16", "f32") and not i.has("ftz"):
        f.dst(i.operands[0], half.widen(f, f.src(i.operands[1], of)))  # with the payload, too
    else:
        v = load(f, i, i.operands[1], of)
        if whole:
            r = integral(f, v, whole[0])
            v = f.b.select(floating.is_nan(f, v), floating.quiet(f, v), r) if of == "f64" else r
        v = narrow(f, f.b.cast("fpext", v, ty) if BITS[v.ty] < BITS[ty] else v, ty, mode)
        if to not in ("f32", "f64"):
            return write_half(f, i, v, ty)
        ftz = i.has("ftz") and to == "f32"
        floating.write(f, i.operands[0], floating.flush(f, v) if ftz else v, ftz=ftz, sat=i.has("sat"))


def write_half(f: FunctionLowering, i: Instruction, v: Val, ty: str) -> None:
    """Write a result of type half or bfloat."""
    if i.has("sat"):
        v = half.narrow(f, floating.saturate(f, half.widen(f, v)), ty)
    f.dst(i.operands[0], v)


def from_double(f: FunctionLowering, i: Instruction, to: str, mode: str) -> None:
    """f64 to a narrower type: a NaN keeps its sign and the upper bits of its payload."""
    v, ty = f.src(i.operands[1], "f64"), FLOATS[to]
    r = narrow(f, v, ty, mode)
    if to != "f32":
        return write_half(f, i, f.b.select(floating.is_nan(f, v), nan_of_double(f, v, ty), r), ty)
    if i.has("ftz"):
        r = floating.flush(f, r, floating.below_scaled(f, narrow(f, floating.scaled(f, v), ty, mode)))
    f.dst(i.operands[0], floating.saturate(f, r) if i.has("sat") else r)


def tf32(f: FunctionLowering, i: Instruction) -> None:
    """f32 with 10 bits of fraction: the lower 13 become zero."""
    floating.allow(i, "rna", "rn", "rz", "relu", "satfinite")
    modes = [m for m in i.mods if m in ("rna", "rn", "rz")]
    if len(modes) != 1 or (modes[0] == "rna" and i.has("relu")):
        refuse(i)
    if modes[0] == "rna":
        f.dst(i.operands[0], tf32_away(f, floating.bits(f, f.src(i.operands[1], "f32")), i.has("satfinite")))
        return
    v = prepared(f, i, i.operands[1], LARGEST["tf32"])
    u = floating.bits(f, v)
    if modes[0] == "rn":
        even = f.b.op("and", f.b.op("lshr", u, const(13, "i32")), const(1, "i32"))
        u = f.b.op("add", u, f.b.op("add", even, const(0xFFF, "i32")))
    u = f.b.select(floating.is_nan(f, v), const(floating.NAN["float"], "i32"), u)
    f.dst(i.operands[0], f.b.op("and", u, const(~0x1FFF, "i32")))


def tf32_away(f: FunctionLowering, u: Val, finite: bool) -> Val:
    """.rna, on the bits: to nearest, halves away from zero; NaN is cut like any pattern, and .satfinite takes the
    next lower one of whatever is not finite."""

    def endless(w: Val) -> Val:
        return f.b.cmp("eq", f.b.op("and", w, const(0x7F80_0000, "i32")), const(0x7F80_0000, "i32"))

    near = f.b.select(endless(u), u, f.b.op("add", u, const(0x1000, "i32")))
    r = f.b.op("and", near, const(~0x1FFF, "i32"))
    return f.b.select(endless(r), f.b.op("sub", r, const(0x2000, "i32")), r) if finite else r


# ---- 8, 6 and 4 bit formats --------------------------------------------------------------------------------
def to_small(f: FunctionLowering, i: Instruction, to: str, of: str) -> None:
    """Two numbers, to nearest, never infinite; the first source (or upper half) goes to the upper bits."""
    floating.allow(i, "rn", "relu", "satfinite")
    if not (i.has("rn") and i.has("satfinite")) or (of == "f16x2" and to in ("e2m3x2", "e3m2x2")):
        refuse(i)
    if of == "f32":
        high, low = (floating.source(f, op, "f32") for op in two_sources(i))
    else:
        low, high = (half.widen(f, h) for h in half.unpack(f, f.src(i.operands[1], "b32"), "half"))
    ty = "i16" if SMALL[to] == 8 else "i8"
    low, high = (
        f.b.cast("zext", f.lanewise(f"ws_{to[:-2]}_of_f32", "i8", floating.relu(f, v) if i.has("relu") else v), ty)
        for v in (low, high)
    )
    f.dst(i.operands[0], f.b.op("or", low, f.b.op("shl", high, const(SMALL[to], ty))))


def from_small(f: FunctionLowering, i: Instruction, of: str) -> None:
    """Two small numbers as f16: exact."""
    floating.allow(i, "rn", "relu")
    if not i.has("rn"):
        refuse(i)
    ty = "i16" if SMALL[of] == 8 else "i8"
    whole = f.src(i.operands[1], "b16" if ty == "i16" else "b8")
    halves = []
    for shift in (0, SMALL[of]):
        code = f.b.cast("trunc", f.b.op("lshr", whole, const(shift, ty)), "i8")
        h = f.lanewise(f"ws_f16_of_{of[:-2]}", "i16", code)
        if i.has("relu"):
            h = f.b.select(f.b.cmp("slt", h, const(0, "i16")), const(0, "i16"), h)
        halves.append(h)
    f.dst(i.operands[0], half.pack(f, halves[0], halves[1]))


def exponents(f: FunctionLowering, i: Instruction, to: str, of: str) -> None:
    """ue8m0: powers of two, 255 is NaN, the sign of the source does not count."""
    if to == "bf16x2":
        floating.allow(i, "rn")
        if not i.has("rn"):
            refuse(i)
        whole = f.src(i.operands[1], "b16")
        halves = []
        for shift in (0, 8):
            e = f.b.op("and", f.b.op("lshr", whole, const(shift, "i16")), const(0xFF, "i16"))
            r = f.b.op("shl", e, const(7, "i16"))
            r = f.b.select(f.b.cmp("eq", e, const(0, "i16")), const(0x0040, "i16"), r)  # 2^-127
            halves.append(f.b.select(f.b.cmp("eq", e, const(0xFF, "i16")), const(0x7FFF, "i16"), r))
        f.dst(i.operands[0], half.pack(f, halves[0], halves[1]))
        return
    floating.allow(i, "rz", "rp", "satfinite")
    if of not in ("f32", "bf16x2") or i.has("rz") == i.has("rp"):
        refuse(i)
    if of == "f32":
        high, low = (floating.source(f, op, "f32") for op in two_sources(i))
    else:
        low, high = (half.widen(f, h) for h in half.unpack(f, f.src(i.operands[1], "b32"), "bfloat"))
    codes = []
    for v in (low, high):
        u = f.b.op("and", floating.bits(f, v), const(0x7FFF_FFFF, "i32"))
        e = f.b.op("lshr", u, const(23, "i32"))
        if i.has("rp"):
            inexact = f.b.cmp("ne", f.b.op("and", u, const(0x7F_FFFF, "i32")), const(0, "i32"))
            inexact = f.b.op("and", inexact, f.b.cmp("ugt", u, const(0x0040_0000, "i32")))  # 2^-127
            e = f.b.op(
                "add", e, f.b.cast("zext", f.b.op("and", inexact, f.b.cmp("ult", u, const(0x7F80_0000, "i32"))), "i32")
            )
        if i.has("satfinite"):
            e = f.b.call("llvm.umin", e, f.b.select(floating.is_nan(f, v), const(255, "i32"), const(254, "i32")))
        codes.append(f.b.cast("trunc", e, "i16"))
    f.dst(i.operands[0], f.b.op("or", codes[0], f.b.op("shl", codes[1], const(8, "i16"))))
