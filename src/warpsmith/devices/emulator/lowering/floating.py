"""Single and double precision arithmetic (PTX ISA 9.7.3, 9.7.5).

Everything with a rounding mode is exact to the bit; what the PTX ISA leaves open is as an H200 has it
(tests/golden).  Round-to-nearest is plain IR; the directed modes
are functions of ``runtime/numerics.cpp`` that set the rounding mode of the processor.  Approximate
instructions keep the documented bounds and special values, not the hardware's bits.

NaN: every f32 operation gives 0x7fffffff, whatever NaN went in (CUDA programming guide).  Putting that
into each result would cost two instructions an operation, so ``write`` puts it into the register and
remembers the value before (``source`` hands it to the next operation, which cannot tell the two apart):
LLVM drops the fix-up of every value that is only used by arithmetic of the same block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from ....ptx.ast import Instruction, Operand, Reg
from ..ir import BITS, LANES, Val, const, fconst
from . import Unsupported, host, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

ROUNDING = frozenset({"rn", "rz", "rm", "rp"})
#: The NaN that operations of each type produce; those of f64 pass payloads on (``one_nan``).
NAN = {"half": 0x7FFF, "bfloat": 0x7FFF, "float": 0x7FFFFFFF, "double": 0x7FFF_FFFF_0000_0000}
EXPONENT = {"half": 0x7C00, "bfloat": 0x7F80, "float": 0x7F80_0000, "double": 0x7FF0_0000_0000_0000}
SHORT = {"float": "f32", "double": "f64"}


class Note(NamedTuple):
    """What is known of a register's value: the result before the NaN fix-up, and if it can be subnormal."""

    raw: Val
    flushed: bool


_notes: WeakKeyDictionary[FunctionLowering, dict[str, Note]] = WeakKeyDictionary()


# ---- modifiers -------------------------------------------------------------------------------------
def allow(i: Instruction, *mods: str | frozenset[str]) -> None:
    """Refuse an instruction that has any modifier beside its types and these."""
    known = set(i.types)
    for m in mods:
        known |= {m} if isinstance(m, str) else m
    for m in i.mods:
        if m not in known:
            raise Unsupported(f"{i.text}: modifier .{m} is not implemented here", i)


def rounding(i: Instruction, default: str | None = "rn") -> str:
    """The rounding mode of an instruction."""
    modes = [m for m in i.mods if m in ROUNDING]
    if len(modes) > 1 or (not modes and default is None):
        raise Unsupported(f"{i.text}: needs exactly one rounding mode", i)
    return modes[0] if modes else str(default)


# ---- values ----------------------------------------------------------------------------------------
def bits(f: FunctionLowering, v: Val) -> Val:
    """A floating-point value as an integer of its width."""
    return f.b.bitcast(v, f"i{BITS[v.ty]}")


def constant(pattern: int, ty: str) -> Val:
    """A uniform floating-point constant given by its bits."""
    return Val(f"bitcast (i{BITS[ty]} {const(pattern, f'i{BITS[ty]}').name} to {ty})", ty, True)


def is_nan(f: FunctionLowering, v: Val) -> Val:
    if v.ty in ("half", "bfloat"):  # on the bits: most CPUs do not compare these
        rest = f.b.op("and", bits(f, v), const(0x7FFF, "i16"))
        return f.b.cmp("ugt", rest, const(EXPONENT[v.ty], "i16"))
    return f.b.cmp("uno", v, v)


def canonical(f: FunctionLowering, v: Val) -> Val:
    """The value with the NaN that the hardware produces in place of any other."""
    return f.b.select(is_nan(f, v), constant(NAN[v.ty], v.ty), v)


def is_tiny(f: FunctionLowering, v: Val) -> Val:
    """Zero or subnormal."""
    ity = f"i{BITS[v.ty]}"
    return f.b.cmp("eq", f.b.op("and", bits(f, v), const(EXPONENT[v.ty], ity)), const(0, ity))


def flush(f: FunctionLowering, v: Val, small: Val | None = None) -> Val:
    """``.ftz``: a subnormal (or a lane of ``small``) becomes a zero of the same sign (any floating-point lane type)."""
    u = bits(f, v)
    sign = f.b.op("and", u, const(1 << (BITS[v.ty] - 1), u.ty))
    return f.b.bitcast(f.b.select(is_tiny(f, v) if small is None else small, sign, u), v.ty)


def flush_result(f: FunctionLowering, op: str, mode: str, operands: list[Val], r: Val) -> Val:
    """``.ftz`` of an f32 result: it becomes zero if it lies below the normal range when it is rounded as if there
    were no lower end of exponents.  So a product next to the smallest normal number is flushed although it
    rounds to it; whether it is shows with 2^24 times the operands.  (Sums are never that fine.)"""
    if op not in ("mul", "fma", "div") or mode == "rz":
        return flush(f, r)
    a, b, *c = operands
    larger = rounded(f, op, mode, scaled(f, a), b, *(scaled(f, v) for v in c))
    return flush(f, r, below_scaled(f, larger))


def scaled(f: FunctionLowering, v: Val) -> Val:
    return f.b.op("fmul", v, fconst(2.0**24, v.ty))


def below_scaled(f: FunctionLowering, larger: Val) -> Val:
    """Is 2^24 times a float, rounded, that of one below the normal range?"""
    return f.b.cmp("olt", magnitude(f, larger), fconst(2.0**-102))


def quiet(f: FunctionLowering, v: Val) -> Val:
    """A double NaN as operations pass it on (of anything else: nonsense)."""
    return f.b.bitcast(f.b.op("or", bits(f, v), const(1 << 51, "i64")), "double")


def one_nan(f: FunctionLowering, *operands: Val) -> list[Val]:
    """Double operands by precedence, with the NaN of the first that is one in place of later ones: which NaN the
    processor passes on does not matter then.  This costs more than the operation itself; in fast mode, without checks,
    it is left open which of two payloads comes through."""
    if not f.kernel.check:
        return list(operands)
    out = list(operands[:1])
    for v in operands[1:]:
        number = out[-1].name.startswith("0x") and out[-1].name[2:6] not in ("7FF8", "FFF8")  # a constant
        out.append(v if number or v == out[-1] else f.b.select(is_nan(f, out[-1]), out[-1], v))
    return out


def invalid(f: FunctionLowering, r: Val, *operands: Val) -> Val:
    """A double result with the NaN of an operation that has no value: negative, as on x86."""
    if host.is_x86():
        return r
    fresh = is_nan(f, r)
    for v in operands:
        fresh = f.b.op("and", fresh, f.b.cmp("ord", v, v))
    return f.b.select(fresh, constant(0xFFF8 << 48, "double"), r)


def saturate(f: FunctionLowering, v: Val) -> Val:
    """``.sat``: into [+0, 1]; NaN becomes +0."""
    zero, one = fconst(0.0, v.ty), fconst(1.0, v.ty)
    v = f.b.select(f.b.cmp("ogt", v, zero), v, zero)
    return f.b.select(f.b.cmp("olt", v, one), v, one)


def relu(f: FunctionLowering, v: Val) -> Val:
    """``.relu``: negative values become +0; NaN stays (the caller makes it canonical)."""
    zero = fconst(0.0, v.ty)
    return f.b.select(f.b.cmp("ugt", v, zero), v, zero)


def magnitude(f: FunctionLowering, v: Val) -> Val:
    ity = f"i{BITS[v.ty]}"
    return f.b.bitcast(f.b.op("and", bits(f, v), const((1 << (BITS[v.ty] - 1)) - 1, ity)), v.ty)


def negative(f: FunctionLowering, v: Val) -> Val:
    ity = f"i{BITS[v.ty]}"
    return f.b.bitcast(f.b.op("xor", bits(f, v), const(1 << (BITS[v.ty] - 1), ity)), v.ty)


def source(f: FunctionLowering, op: Operand | None, ptx_type: str, ftz: bool = False) -> Val:
    """An operand of an operation that treats all NaNs alike; flushed if ``ftz``."""
    if isinstance(op, Reg):
        now = f.values.get(op.name)
        note = _notes.get(f, {}).get(now.name) if now is not None else None
        if note is not None and SHORT.get(note.raw.ty) == ptx_type:
            return flush(f, note.raw) if ftz and not note.flushed else note.raw
    v = f.src(op, ptx_type)
    return flush(f, v) if ftz else v


def write(f: FunctionLowering, op: Operand | None, v: Val, *, ftz: bool = False, sat: bool = False) -> None:
    """Write the result of an f32 or f64 operation (``ftz``: it has been flushed)."""
    if sat:
        v = saturate(f, v)
    if v.ty != "float":
        f.dst(op, v)
        return
    f.dst(op, v if sat else canonical(f, v))
    if isinstance(op, Reg) and f.guard is None:
        _notes.setdefault(f, {})[f.values[op.name].name] = Note(v, ftz)


# ---- operations on values --------------------------------------------------------------------------
def fused(f: FunctionLowering, a: Val, b: Val, c: Val) -> Val:
    """a * b + c with one rounding to nearest."""
    if host.has("fma"):
        return f.b.call("llvm.fma", a, b, c)
    return f.lanewise(f"ws_fma_rn_{SHORT[a.ty]}", a.ty, a, b, c)


def rounded(f: FunctionLowering, op: str, mode: str, *v: Val) -> Val:
    """add, sub, mul, div, fma or sqrt in a rounding mode."""
    if mode != "rn":
        if host.is_x86_with("avx512f"):
            return embedded(f, op, mode, *v)
        return f.lanewise(f"ws_{op}_{mode}_{SHORT[v[0].ty]}", v[0].ty, *v)
    if op == "fma":
        return fused(f, *v)
    return f.b.call("llvm.sqrt", v[0]) if op == "sqrt" else f.b.op("f" + op, v[0], v[1])


#: The operand by which AVX-512 instructions choose a rounding mode of their own (8: no exceptions).
EMBEDDED = {"rm": 9, "rp": 10, "rz": 11}


def embedded(f: FunctionLowering, op: str, mode: str, *v: Val) -> Val:
    """The same with AVX-512 instructions, which take 512 bits at a time."""
    kind, count = {"float": ("ps", 16), "double": ("pd", 8)}[v[0].ty]
    part = f"<{count} x {v[0].ty}>"
    name = f"llvm.x86.avx512.{'vfmadd' if op == 'fma' else op}.{kind}.512"
    f.b.declare(name, f"declare {part} @{name}({', '.join([part] * len(v))}, i32)")
    lanes = [f.b.vec(x) for x in v]
    results = []
    for first in range(0, LANES if not all(x.uniform for x in v) else count, count):
        mask = ", ".join(f"i32 {n}" for n in range(first, first + count))
        cut = [f.pointer(f"shufflevector {x.typed}, {x.full} poison, <{count} x i32> <{mask}>") for x in lanes]
        arguments = ", ".join(f"{part} {c}" for c in cut)
        results.append(f.pointer(f"call {part} @{name}({arguments}, i32 {EMBEDDED[mode]})"))
    if len(results) == 1:  # a value that all lanes share
        return f.b.raw(v[0].ty, True, f"extractelement {part} {results[0]}, i64 0")
    while len(results) > 1:
        mask = ", ".join(f"i32 {n}" for n in range(2 * count))
        results = [
            f.pointer(
                f"shufflevector <{count} x {v[0].ty}> {a}, <{count} x {v[0].ty}> {b}, <{2 * count} x i32> <{mask}>"
            )
            for a, b in zip(results[::2], results[1::2], strict=True)
        ]
        count *= 2
    return Val(results[0], v[0].ty)


def extremum(f: FunctionLowering, i: Instruction, a: Val, b: Val) -> Val:
    """min or max of two values as the PTX ISA has it: -0 < +0; a NaN loses, or wins with ``.NaN``."""
    return f.b.call(f"llvm.{i.opcode}imum" + ("" if i.has("NaN") else "num"), a, b)


def minmax(f: FunctionLowering, i: Instruction, values: list[Val]) -> Val:
    """min/max of two or three values with .abs and .xorsign; the NaN is not canonical yet."""
    sign: Val | None = None
    if i.has("xorsign"):
        if len(values) != 2 or not i.has("abs"):
            raise Unsupported(f"{i.text}: .xorsign goes with .abs and two sources", i)
        u, w = (bits(f, v) for v in values)
        sign = f.b.op("and", f.b.op("xor", u, w), const(1 << (BITS[values[0].ty] - 1), u.ty))
    elif i.has("abs") and len(values) == 2:
        raise Unsupported(f"{i.text}: .abs of two sources goes with .xorsign", i)
    if i.has("abs"):
        values = [magnitude(f, v) for v in values]
    r = values[0]
    for v in values[1:]:
        r = extremum(f, i, r, v)
    if sign is not None:
        r = f.b.bitcast(f.b.op("or", bits(f, r), sign), r.ty)
    return r


def divide_approx(f: FunctionLowering, a: Val, b: Val) -> Val:
    """div.approx.f32 is a * (1/b), where 1/b of |b| > 2^126 is zero: so 0 there, NaN if a is infinite."""
    huge = f.b.op(
        "and",
        f.b.cmp("ogt", magnitude(f, b), fconst(2.0**126)),
        f.b.cmp("one", magnitude(f, b), constant(0x7F800000, "float")),
    )
    sign = f.b.op("and", bits(f, b), const(1 << 31, "i32"))
    return f.b.select(huge, f.b.op("fmul", a, f.b.bitcast(sign, "float")), f.b.op("fdiv", a, b))


# ---- add, sub, mul, fma, mad, min, max, abs, neg, div -------------------------------------------------
SOURCES = {"fma": 3, "mad": 3, "abs": 1, "neg": 1}


def arithmetic(f: FunctionLowering, i: Instruction) -> None:
    """add, sub, mul, fma, mad, min, max, abs, neg and div of floating-point types."""
    from . import half

    types = i.types
    if types[-1] in half.LANES and types[0] in half.LANES:
        half.arithmetic(f, i)
    elif len(types) == 2 and types[0] == "f32" and types[1] in ("f16", "bf16"):
        mixed(f, i)
    elif types in (("f32x2",), ("f32",), ("f64",)):
        {"f32x2": pairs, "f32": scalar, "f64": scalar}[types[0]](f, i)
    else:
        raise Unsupported(f"{i.text}: these types do not go together", i)


def operation(f: FunctionLowering, i: Instruction, v: list[Val]) -> Val:
    """The value of a scalar operation, flushed if ``.ftz``, before saturation and the NaN fix-up of f32."""
    if v[0].ty == "double":
        return double_operation(f, i, v)
    op = "fma" if i.opcode == "mad" else i.opcode
    if op in ("min", "max"):
        return minmax(f, i, v)
    if op in ("abs", "neg"):
        return magnitude(f, v[0]) if op == "abs" else negative(f, v[0])
    if op == "div" and i.has("approx", "full"):
        r = divide_approx(f, *v) if i.has("approx") else f.b.op("fdiv", *v)
        return flush(f, r) if i.has("ftz") else r
    # Without a rounding mode ptxas may fuse mul and add; nearest and unfused is what it says.
    mode = rounding(i, None if op in ("fma", "div") else "rn")
    r = rounded(f, op, mode, *v)
    return flush_result(f, op, mode, v, r) if i.has("ftz") else r


def double_operation(f: FunctionLowering, i: Instruction, v: list[Val]) -> Val:
    """NaN payloads pass through: that of the second operand, of the third (the addend of fma), of the first one; of a
    division that of the dividend first."""
    op = "fma" if i.opcode == "mad" else i.opcode
    if op in ("min", "max"):
        r = minmax(f, i, v)
        return f.b.select(is_nan(f, r), quiet(f, v[1]), r)
    if op in ("abs", "neg"):
        r = magnitude(f, v[0]) if op == "abs" else negative(f, v[0])
        return f.b.select(is_nan(f, v[0]), quiet(f, v[0]), r)
    mode = rounding(i, None if op in ("fma", "div") else "rn")
    if op == "div":
        v = one_nan(f, *v)
    else:
        second, *third, first = one_nan(f, *v[1:], v[0])
        v = [first, second, *third]
    return invalid(f, rounded(f, op, mode, *v), *v)


def scalar(f: FunctionLowering, i: Instruction) -> None:
    single = i.type == "f32"
    extra: dict[str, tuple[str | frozenset[str], ...]] = {
        "div": (ROUNDING, *(("approx", "full", "ftz") if single else ())),
        "abs": ("ftz",) if single else (),
        "neg": ("ftz",) if single else (),
        "min": ("ftz", "NaN", "abs", "xorsign") if single else (),
        "max": ("ftz", "NaN", "abs", "xorsign") if single else (),
    }
    allow(i, *extra.get(i.opcode, (ROUNDING, *(("ftz", "sat") if single else ()))))
    if i.opcode == "div" and sum(m in ("approx", "full") or m in ROUNDING for m in i.mods) != 1:
        raise Unsupported(f"{i.text}: needs one of .approx, .full or a rounding mode", i)
    ftz = i.has("ftz")
    n = SOURCES.get(i.opcode, len(i.operands) - 1 if single and i.opcode in ("min", "max") else 2)
    if len(i.operands) != n + 1:
        raise Unsupported(f"{i.text}: takes {n} sources", i)
    sources = i.operands[1 : 1 + n]
    if i.has("xorsign"):  # looks at the sign of a NaN too
        v = [flush(f, f.src(op, i.type)) if ftz else f.src(op, i.type) for op in sources]
    else:
        v = [source(f, op, i.type, ftz) for op in sources]
    write(f, i.operands[0], operation(f, i, v), ftz=ftz, sat=i.has("sat"))


def pairs(f: FunctionLowering, i: Instruction) -> None:
    """f32x2: two single-precision operations in a 64-bit register."""
    if i.opcode not in ("add", "sub", "mul", "fma"):
        raise Unsupported(f"{i.text} does not exist", i)
    allow(i, ROUNDING, "ftz")
    ftz = i.has("ftz")
    whole = [f.src(op, "b64") for op in i.operands[1:]]
    halves: list[Val] = []
    for shift in (0, 32):
        v = [f.b.bitcast(f.b.cast("trunc", f.b.op("lshr", w, const(shift, "i64")), "i32"), "float") for w in whole]
        r = canonical(f, operation(f, i, [flush(f, x) for x in v] if ftz else v))
        halves.append(f.b.cast("zext", bits(f, r), "i64"))
    f.dst(i.operands[0], f.b.op("or", halves[0], f.b.op("shl", halves[1], const(32, "i64"))))


def mixed(f: FunctionLowering, i: Instruction) -> None:
    """add, sub, fma with f16 or bf16 sources and an f32 last source and result."""
    from . import half

    if i.opcode not in ("add", "sub", "fma"):
        raise Unsupported(f"{i.text} does not exist", i)
    allow(i, ROUNDING, "sat")
    v = [half.widen(f, f.src(op, i.types[1])) for op in i.operands[1:-1]]
    v.append(source(f, i.operands[-1], "f32"))
    write(f, i.operands[0], operation(f, i, v), sat=i.has("sat"))


lowers("fma")(arithmetic)


# ---- roots and reciprocals ---------------------------------------------------------------------------
@lowers("sqrt", "rcp", "rsqrt")
def roots(f: FunctionLowering, i: Instruction) -> None:
    if i.types not in (("f32",), ("f64",)):
        raise Unsupported(f"{i.text} does not exist", i)
    allow(i, "approx", "ftz", *((ROUNDING,) if i.opcode != "rsqrt" else ()))
    approx, ftz = i.has("approx"), i.has("ftz")
    mode = "rn" if approx else rounding(i, None)
    if approx == any(m in ROUNDING for m in i.mods) or (i.type == "f64" and ftz and i.opcode == "sqrt"):
        raise Unsupported(f"{i.text} does not exist", i)
    if i.type == "f64" and ftz and approx:
        f.dst(i.operands[0], gross(f, i.opcode, f.src(i.operands[1], "f64")))
        return
    if i.type == "f64" and approx and i.opcode != "rsqrt":
        raise Unsupported(f"{i.text} does not exist", i)
    ftz = ftz and i.type == "f32"  # ptxas takes rcp.rn.ftz.f64 and does nothing about it
    a = source(f, i.operands[1], i.type, ftz)
    one = fconst(1.0, a.ty)
    if i.opcode == "sqrt":
        r = rounded(f, "sqrt", mode, a)
    elif i.opcode == "rcp":
        r = rounded(f, "div", mode, one, a)
    else:
        r = f.b.op("fdiv", one, f.b.call("llvm.sqrt", a))
    if i.type == "f64":
        r = invalid(f, r, a)
    elif ftz:
        r = flush_result(f, "div", mode, [one, a], r) if i.opcode == "rcp" and not approx else flush(f, r)
    write(f, i.operands[0], r, ftz=ftz)


def gross(f: FunctionLowering, opcode: str, a: Val) -> Val:
    """rcp/rsqrt.approx.ftz.f64: from and to the upper 32 bits of a double, subnormals as zero."""
    upper = const(0xFFFF_FFFF_0000_0000, "i64")
    a = flush(f, f.b.bitcast(f.b.op("and", bits(f, a), upper), "double"))
    if opcode == "rsqrt":
        a = f.b.call("llvm.sqrt", a)
    r = flush(f, f.b.op("fdiv", fconst(1.0, "double"), a))
    near = f.b.op("add", bits(f, r), const(0x8000_0000, "i64"))  # cannot reach infinity: 1/2^-1022 is far from it
    return canonical(f, f.b.bitcast(f.b.op("and", f.b.select(is_nan(f, r), bits(f, r), near), upper), "double"))


# ---- ex2, lg2, sin, cos, tanh -----------------------------------------------------------------------------
@lowers("ex2", "lg2", "sin", "cos", "tanh")
def transcendental(f: FunctionLowering, i: Instruction) -> None:
    from . import half

    if i.types and i.type in half.LANES:
        half.transcendental(f, i)
        return
    if i.types != ("f32",) or not i.has("approx"):
        raise Unsupported(f"{i.text} does not exist", i)
    allow(i, "approx", *(("ftz",) if i.opcode != "tanh" else ()))
    ftz = i.has("ftz")
    r = approximate(f, i.opcode, source(f, i.operands[1], "f32", ftz))
    write(f, i.operands[0], flush(f, r) if ftz else r, ftz=ftz)


def approximate(f: FunctionLowering, opcode: str, a: Val) -> Val:
    """One of the transcendental functions of a float."""
    if opcode != "ex2":
        return f.lanewise(f"ws_{opcode}_f32", "float", a)
    # The exponential is what softmax lives on: a function inside the kernel's object, arguments in registers.
    name = f.helper("ws.ex2", EX2)
    r = f.b.raw("float", False, f"call <32 x float> {name}({f.b.vec(a).typed})")
    return f.b.lane(r, 0) if a.uniform else r


def _ex2() -> str:
    """2^x = 2^n * 2^r with n the nearest integer and r in [-1/2, 1/2], 2^r by a polynomial.

    n comes out of the low bits of x + 1.5 * 2^23.  2^n is applied in two steps, the first exact, so that
    subnormal results round once.  The bounds on x keep n in range; NaN passes both selects.
    """
    lines: list[str] = []
    count = 0

    def emit(text: str, ty: str = "float") -> str:
        nonlocal count
        count += 1
        lines.append(f"  %t{count} = {text}")
        return f"<32 x {ty}> %t{count}"

    def num(value: float) -> str:
        return f"splat (float {fconst(value).name})"

    def op(name: str, a: str, b: str, ty: str = "float") -> str:
        return emit(f"{name} {a}, {b.rsplit('>', 1)[-1].strip() if b.startswith('<') else b}", ty)

    def keep(pred: str, a: str, limit: float) -> str:
        c = emit(f"fcmp {pred} {a}, {num(limit)}", "i1")
        return emit(f"select {c}, <32 x float> {num(limit)}, {a}")

    x = keep("olt", keep("ogt", "<32 x float> %x", 129.0), -152.0)
    shifted = op("fadd", x, num(12582912.0))
    r = op("fsub", x, op("fsub", shifted, num(12582912.0)))
    n = op("sub", emit(f"bitcast {shifted} to <32 x i32>", "i32"), f"splat (i32 {0x4B400000})", "i32")
    p = f"<32 x float> {num(EX2_COEFFICIENTS[-1])}"
    for c in reversed(EX2_COEFFICIENTS[:-1]):
        p = op("fadd", op("fmul", r, p), num(c))
    first = op("ashr", n, "splat (i32 1)", "i32")
    for part in (first, op("sub", n, first, "i32")):
        biased = op("shl", op("add", part, "splat (i32 127)", "i32"), "splat (i32 23)", "i32")
        p = op("fmul", p, emit(f"bitcast {biased} to <32 x float>"))
    return "\n".join(["define internal <32 x float> @ws.ex2(<32 x float> %x) {", *lines, f"  ret {p}", "}"])


#: Minimax polynomial of 2^r on [-1/2, 1/2] (relative error), coefficients rounded to float.
EX2_COEFFICIENTS = (
    1.0, 0.6931471824645996, 0.24022647738456726, 0.055503323674201965,
    0.00961843691766262, 0.0013398875016719103, 0.00015353360504377633,
)  # fmt: skip
EX2 = _ex2()
