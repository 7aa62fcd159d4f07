"""Integer division of 32 lanes.

A CPU divides vectors of floating-point numbers but not of integers; one lane at a time would cost a
hundred cycles and more.  A correctly rounded floating-point quotient of integers that are exact in its
format truncates to the exact integer quotient while the dividend stays well below the format's
precision: a quotient that is no integer is at least 1/divisor, so 1/dividend of itself, away from the
next one.  So 16-bit lanes go through ``float``, 32-bit lanes and most 64-bit ones through ``double``.
The CPU must never trap: lanes that do not run may hold anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import BITS, Builder, Val, const, fconst
from .common import number

if TYPE_CHECKING:
    from .function import FunctionLowering


def quotient(f: FunctionLowering, a: Val, b: Val, signed: bool) -> Val:
    """a / b, truncated.

    The PTX ISA leaves open what a zero divisor gives; on GPUs it is all ones, of the remainder too.  The
    smallest integer over -1 is itself.
    """
    d = number(b)
    if d is not None:
        return quotient_by_constant(f, a, d, b, signed)
    zero = f.b.cmp("eq", b, const(0, b.ty))
    q = divide_safely(f, a, guarded(f.b, a, b, zero, signed), signed)
    return f.b.select(zero, const(-1, a.ty), q)


def remainder(f: FunctionLowering, a: Val, b: Val, signed: bool) -> Val:
    """a - b * (a / b); all ones where b is 0."""
    d = number(b)
    if d is None:
        zero = f.b.cmp("eq", b, const(0, b.ty))
        q = divide_safely(f, a, guarded(f.b, a, b, zero, signed), signed)
        return f.b.select(zero, const(-1, a.ty), f.b.op("sub", a, f.b.op("mul", q, b)))
    if d == 0:
        return const(-1, a.ty)
    if d > 0 and d & (d - 1) == 0 and not signed:
        return f.b.op("and", a, const(d - 1, a.ty))
    return f.b.op("sub", a, f.b.op("mul", quotient_by_constant(f, a, d, b, signed), b))


def quotient_by_constant(f: FunctionLowering, a: Val, d: int, b: Val, signed: bool) -> Val:
    if d == 0:
        return const(-1, a.ty)
    if signed and d == -1:
        return f.b.op("sub", const(0, a.ty), a)
    if BITS[a.ty] < 64 or a.uniform or d & (d - 1) == 0:
        return f.b.op("sdiv" if signed else "udiv", a, b)  # LLVM has shifts or a multiplication for it
    return divide_safely(f, a, b, signed)


def guarded(b: Builder, x: Val, y: Val, zero: Val, signed: bool) -> Val:
    """The divisor, with 1 in place of 0 and of the -1 that would overflow (x / 1 is the right result for it)."""
    bad = zero
    if signed:
        smallest = b.cmp("eq", x, const(1 << (BITS[x.ty] - 1), x.ty))
        bad = b.op("or", bad, b.op("and", smallest, b.cmp("eq", y, const(-1, y.ty))))
    return b.select(bad, const(1, y.ty), y)


def divide_safely(f: FunctionLowering, a: Val, b: Val, signed: bool) -> Val:
    """a / b where no lane divides by zero or overflows."""
    if a.uniform and b.uniform:
        return f.b.op("sdiv" if signed else "udiv", a, b)
    if BITS[a.ty] == 64:
        return divide_64(f, a, b, signed)
    ext = "sext" if signed else "zext"
    x, y = f.b.cast(ext, a, "i32"), f.b.cast(ext, b, "i32")
    if BITS[a.ty] == 16:
        real, bits, signed = "float", 24, True  # as i32 they are never negative, and that conversion is cheaper
    else:
        real, bits = "double", 53
    to, back = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    x, y = f.b.cast(to, x, real), f.b.cast(to, y, real)
    if y.uniform:
        # One division for all lanes; the reciprocal is rounded up by a little so that whole quotients
        # do not fall short of themselves, by far less than keeps it below the next integer.
        y = f.b.op("fdiv", fconst(1.0 + 2.0 ** (3 - bits), real), y)
        q = f.b.op("fmul", x, y)
    else:
        q = f.b.op("fdiv", x, y)
    return f.b.cast("trunc", f.b.cast(back, q, "i32"), a.ty)


# Bits below 2^51 of the operands make the double quotient exact (see above).  Adding 2^52 to a double below
# it puts the integer into the low bits of the pattern; the conversions exist as instructions only in AVX-512.
UDIV64 = """define internal <32 x i64> @ws.udiv64(<32 x i64> %a, <32 x i64> %b) noinline #0 {
  %pa = alloca <32 x i64>, align 64
  %pb = alloca <32 x i64>, align 64
  %any = or <32 x i64> %a, %b
  %all = call i64 @llvm.vector.reduce.or.v32i64(<32 x i64> %any)
  %small = icmp ult i64 %all, 2251799813685248
  br i1 %small, label %fast, label %slow
fast:
  %ma = or <32 x i64> %a, splat (i64 4841369599423283200)
  %mb = or <32 x i64> %b, splat (i64 4841369599423283200)
  %ba = bitcast <32 x i64> %ma to <32 x double>
  %bb = bitcast <32 x i64> %mb to <32 x double>
  %da = fsub <32 x double> %ba, splat (double 0x4330000000000000)
  %db = fsub <32 x double> %bb, splat (double 0x4330000000000000)
  %dq = fdiv <32 x double> %da, %db
  %tq = call <32 x double> @llvm.trunc.v32f64(<32 x double> %dq)
  %bq = fadd <32 x double> %tq, splat (double 0x4330000000000000)
  %iq = bitcast <32 x double> %bq to <32 x i64>
  %q = and <32 x i64> %iq, splat (i64 4503599627370495)
  ret <32 x i64> %q
slow:
  store <32 x i64> %a, ptr %pa, align 64
  store <32 x i64> %b, ptr %pb, align 64
  br label %loop
loop:
  %k = phi i64 [ 0, %slow ], [ %k1, %loop ]
  %ea = getelementptr i64, ptr %pa, i64 %k
  %eb = getelementptr i64, ptr %pb, i64 %k
  %x = load i64, ptr %ea, align 8
  %y = load i64, ptr %eb, align 8
  %z = udiv i64 %x, %y
  store i64 %z, ptr %ea, align 8
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, 32
  br i1 %more, label %loop, label %done
done:
  %r = load <32 x i64>, ptr %pa, align 64
  ret <32 x i64> %r
}
"""


def divide_64(f: FunctionLowering, a: Val, b: Val, signed: bool) -> Val:
    """64-bit lanes by a function of their own: in doubles when all operands fit, else one by one."""
    f.b.declare("llvm.vector.reduce.or.v32i64", "declare i64 @llvm.vector.reduce.or.v32i64(<32 x i64>)")
    f.b.declare("llvm.trunc.v32f64", "declare <32 x double> @llvm.trunc.v32f64(<32 x double>)")
    name = f.helper("ws.udiv64", UDIV64)
    a, b = f.b.vec(a), f.b.vec(b)
    if not signed:
        return f.b.raw("i64", False, f"call <32 x i64> {name}({a.typed}, {b.typed})")
    # On magnitudes: that of the smallest integer is right as an unsigned number.
    x, y = (f.b.call("llvm.abs", v, const(0, "i1")) for v in (a, b))
    q = f.b.raw("i64", False, f"call <32 x i64> {name}({x.typed}, {y.typed})")
    sign = f.b.op("ashr", f.b.op("xor", a, b), const(63, "i64"))
    return f.b.op("sub", f.b.op("xor", q, sign), sign)
