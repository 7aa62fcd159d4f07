"""Exact floating-point arithmetic on rational numbers: the oracle of the numeric tests.

Every number is a bit pattern.  A finite one stands for a fraction; operations are done on fractions and
the result is rounded once, by the definition of the rounding mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MODES = ("rn", "rz", "rm", "rp")


class Format(NamedTuple):
    """A binary floating-point format with infinities and NaN, as in IEEE 754."""

    exponent: int
    mantissa: int
    nan: int  # what operations give

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def lowest(self) -> int:
        """Exponent of the smallest normal number."""
        return 2 - (1 << (self.exponent - 1))


F16, BF16 = Format(5, 10, 0x7FFF), Format(8, 7, 0x7FFF)
F32, F64 = Format(8, 23, 0x7FFFFFFF), Format(11, 52, 0xFFF8_0000_0000_0000)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def is_nan(u: int, t: Format) -> bool:
    return u & (t.sign - 1) > t.infinity


def is_infinite(u: int, t: Format) -> bool:
    return u & (t.sign - 1) == t.infinity


def is_subnormal(u: int, t: Format) -> bool:
    return 0 < u & (t.sign - 1) < 1 << t.mantissa


@lru_cache(1 << 16)
def value(u: int, t: Format) -> Fraction:
    """The number that a finite pattern stands for."""
    e = u >> t.mantissa & ((1 << t.exponent) - 1)
    m = u & ((1 << t.mantissa) - 1) | (bool(e) << t.mantissa)
    power = max(e, 1) - 1 + t.lowest - t.mantissa
    x = Fraction(m << power) if power >= 0 else Fraction(m, 1 << -power)
    return -x if u & t.sign else x


def exponent_of(x: Fraction) -> int:
    """The largest e with 2^e <= |x|."""
    n, d = abs(x.numerator), x.denominator
    e = n.bit_length() - d.bit_length()
    return e - (n << max(-e, 0) < d << max(e, 0))


def integer(x: Fraction, mode: str) -> int:
    """x as an integer: to nearest even (rn), to nearest and away from zero (rna), or directed."""
    low = math.floor(x)
    rest = x - low
    if rest == 0 or mode == "rm":
        return low
    if mode == "rp":
        return low + 1
    if mode == "rz":
        return low + (x < 0)
    if rest != Fraction(1, 2):
        return low + (rest > Fraction(1, 2))
    return low + ((low & 1) if mode == "rn" else (x > 0))


def encode(x: Fraction, t: Format, mode: str = "rn", negative_zero: bool = False) -> int:
    """The pattern of a number rounded to the format."""
    if x == 0:
        return t.sign if negative_zero else 0
    e = max(exponent_of(x), t.lowest)
    power = e - t.mantissa
    n = integer(x / (1 << power) if power >= 0 else x * (1 << -power), mode)
    sign = t.sign if x < 0 else 0
    u = abs(n) + ((e - t.lowest) << t.mantissa)
    if u >= t.infinity:
        toward_zero = mode == "rz" or mode == ("rm" if x > 0 else "rp")
        u = t.infinity - toward_zero
    return sign | u


def flush(u: int, t: Format) -> int:
    return u & t.sign if is_subnormal(u, t) else u


def flush_result(
    oracle: Callable[..., int], v: Sequence[int], r: int, t: Format, mode: str, source: Format | None = None
) -> int:
    """``.ftz`` of a result r = oracle(*v, t, mode): zero if it is below the normal range when rounded without a lower
    end of exponents.  ``source``: the format of the operands if it is another one."""
    wide = Format(t.exponent + 3, t.mantissa, 0)
    wide = wide._replace(nan=wide.infinity + 1)
    w = oracle(*(x if source else convert(x, t, wide) for x in v), wide, mode)
    if is_nan(w, wide) or is_infinite(w, wide) or abs(value(w, wide)) >= Fraction(2) ** t.lowest:
        return r
    return r & t.sign


def saturate(u: int, t: Format) -> int:
    one = ((1 << (t.exponent - 1)) - 1) << t.mantissa
    return 0 if is_nan(u, t) or u & t.sign else min(u, one)


def relu(u: int, t: Format) -> int:
    return t.nan if is_nan(u, t) else 0 if u & t.sign else u


# ---- operations ----------------------------------------------------------------------------------------
def add(a: int, b: int, t: Format, mode: str = "rn") -> int:
    return fma_of(a, None, b, t, mode)


def fma(a: int, b: int, c: int, t: Format, mode: str = "rn") -> int:
    return fma_of(a, b, c, t, mode)


def fma_of(a: int, b: int | None, c: int, t: Format, mode: str) -> int:
    """a * b + c, or a + c when b is None."""
    if any(is_nan(x, t) for x in (a, b, c) if x is not None):
        return t.nan
    infinite = is_infinite(a, t) or (b is not None and is_infinite(b, t))
    product_sign = (a ^ (b or 0)) & t.sign
    if infinite:
        zero = any(x is not None and x & (t.sign - 1) == 0 for x in (a, b))
        if zero or (is_infinite(c, t) and (c ^ product_sign) & t.sign):
            return t.nan
        return product_sign | t.infinity
    if is_infinite(c, t):
        return c
    product = value(a, t) * (1 if b is None else value(b, t))
    total = product + value(c, t)
    if total == 0:
        if product == 0 and value(c, t) == 0 and not (product_sign ^ c) & t.sign:
            return c & t.sign
        return t.sign if mode == "rm" else 0
    return encode(total, t, mode)


def mul(a: int, b: int, t: Format, mode: str = "rn") -> int:
    sign = (a ^ b) & t.sign
    if is_nan(a, t) or is_nan(b, t):
        return t.nan
    zero = not (a & (t.sign - 1) and b & (t.sign - 1))
    if is_infinite(a, t) or is_infinite(b, t):
        return t.nan if zero else sign | t.infinity
    return encode(value(a, t) * value(b, t), t, mode, bool(sign))


def div(a: int, b: int, t: Format, mode: str = "rn") -> int:
    sign = (a ^ b) & t.sign
    if is_nan(a, t) or is_nan(b, t):
        return t.nan
    if is_infinite(a, t):
        return t.nan if is_infinite(b, t) else sign | t.infinity
    if is_infinite(b, t):
        return sign
    if b & (t.sign - 1) == 0:
        return t.nan if a & (t.sign - 1) == 0 else sign | t.infinity
    return encode(value(a, t) / value(b, t), t, mode, bool(sign))


def sqrt(a: int, t: Format, mode: str = "rn") -> int:
    if is_nan(a, t):
        return t.nan
    if a & (t.sign - 1) == 0:
        return a
    if a & t.sign:
        return t.nan
    if is_infinite(a, t):
        return a
    # Scale to an integer with a root of many bits; a remainder only has to be seen, not to be exact.
    x = value(a, t)
    shift = 2 * (t.mantissa + 8) + (-exponent_of(x)) // 2 * 2
    n = x * (Fraction(1 << shift) if shift >= 0 else Fraction(1, 1 << -shift))
    assert n.denominator == 1
    root = math.isqrt(n.numerator)
    inexact = root * root != n.numerator
    halfway = Fraction(2 * root + inexact, 2)
    return encode(halfway / Fraction(2) ** (shift // 2), t, mode)


def neg(a: int, t: Format) -> int:
    return a ^ t.sign


def sub(a: int, b: int, t: Format, mode: str = "rn") -> int:
    return add(a, b if is_nan(b, t) else b ^ t.sign, t, mode)


def ordered(u: int, t: Format) -> int:
    """A key that orders numbers as the PTX ISA does, with -0 below +0."""
    return -(u & (t.sign - 1)) - 1 if u & t.sign else u


def extremum(t: Format, choose: Callable[..., int], propagate: bool, *v: int) -> int:
    """min or max of some numbers; a NaN loses unless ``propagate``."""
    numbers = [x for x in v if not is_nan(x, t)]
    if not numbers or (propagate and len(numbers) < len(v)):
        return t.nan
    return choose(numbers, key=lambda u: ordered(u, t))


def convert(u: int, of: Format, to: Format, mode: str = "rn") -> int:
    """Another format's nearest (or directed) number."""
    if is_nan(u, of):
        return to.nan
    sign = to.sign if u & of.sign else 0
    if is_infinite(u, of):
        return sign | to.infinity
    return encode(value(u, of), to, mode, bool(sign))
