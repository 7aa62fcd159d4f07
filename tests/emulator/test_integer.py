"""Integer arithmetic against Python integers."""

from __future__ import annotations

import pytest
from harness import Form, Forms, Oracle, check, check_refused, operand_sets, signed
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = ("u16", "s16", "u32", "s32", "u64", "s64")


def value(t: str, v: int) -> int:
    """A bit pattern as the number that it means for this type."""
    return signed(v, width(t)) if t[0] == "s" else v


def width(t: str) -> int:
    return int(t[1:])


def on_values(t: str, function: Oracle) -> Oracle:
    """An oracle on numbers of type t, as one on bit patterns."""
    return lambda *v: function(*(value(t, x) for x in v))


def wide(t: str) -> str:
    return f"{t[0]}{2 * width(t)}"


def clamp32(v: int) -> int:
    return max(-(1 << 31), min((1 << 31) - 1, v))


def truncated(a: int, b: int) -> int:
    """Quotient rounded towards zero; all ones for a zero divisor, as GPUs have it."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rest(a: int, b: int) -> int:
    return a - b * truncated(a, b) if b else -1


def halves(function: Oracle, t: str) -> Oracle:
    """An oracle on two 16-bit values of type t packed in 32 bits."""

    def packed(*v: int) -> int:
        low, high = (function(*(value(t, x >> at & 0xFFFF) for x in v)) for at in (0, 16))
        assert isinstance(low, int)
        assert isinstance(high, int)
        return low & 0xFFFF | (high & 0xFFFF) << 16

    return packed


def high(t: str, a: int, b: int) -> int:
    return a * b >> width(t)


def value24(t: str, v: int) -> int:
    return signed(v & 0xFFFFFF, 24) if t[0] == "s" else v & 0xFFFFFF


CASES: dict[Form, Oracle] = {}


def case(text: str, types: str, outs: str, oracle: Oracle, kinds: str = "") -> None:
    """A form to test; types and kinds are words in one string."""
    CASES[Form(text, tuple(types.split()), tuple(outs.split()), tuple(kinds.split()))] = oracle


for t in WORDS:
    case(f"add.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b: a + b)
    case(f"sub.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b: a - b)
    case(f"mul.lo.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b: a * b)
    case(f"mul.hi.{t} $d, $a, $b;", f"{t} {t}", t, on_values(t, lambda a, b, t=t: high(t, a, b)))
    case(f"mad.lo.{t} $d, $a, $b, $c;", f"{t} {t} {t}", t, lambda a, b, c: a * b + c)
    case(f"mad.hi.{t} $d, $a, $b, $c;", f"{t} {t} {t}", t, on_values(t, lambda a, b, c, t=t: high(t, a, b) + c))
    case(f"sad.{t} $d, $a, $b, $c;", f"{t} {t} {t}", t, on_values(t, lambda a, b, c: c + abs(a - b)))
    case(f"div.{t} $d, $a, $b;", f"{t} {t}", t, on_values(t, truncated))
    case(f"rem.{t} $d, $a, $b;", f"{t} {t}", t, on_values(t, rest))
    case(f"min.{t} $d, $a, $b;", f"{t} {t}", t, on_values(t, min))
    case(f"max.{t} $d, $a, $b;", f"{t} {t}", t, on_values(t, max))
    if t[0] == "s":
        case(f"abs.{t} $d, $a;", t, t, on_values(t, abs))
        case(f"neg.{t} $d, $a;", t, t, lambda a: -a)
    if width(t) < 64:
        w = wide(t)
        case(f"mul.wide.{t} $d, $a, $b;", f"{t} {t}", w, on_values(t, lambda a, b: a * b))
        case(f"mad.wide.{t} $d, $a, $b, $c;", f"{t} {t} {w}", w, lambda a, b, c, t=t: value(t, a) * value(t, b) + c)
    # Divisors that are known when compiling take other paths.
    top = 1 << (width(t) - 1)
    for n in [0, 1, 3, 7, 10, 16, 100, top // 2, top - 1] + [-1, -2, -5] * (t[0] == "s"):
        case(f"div.{t} $d, $a, {n};", t, t, on_values(t, lambda a, n=n: truncated(a, n)))
        case(f"rem.{t} $d, $a, {n};", t, t, on_values(t, lambda a, n=n: rest(a, n)))

for t in ("u16", "s16"):
    case(f"add.{t}x2 $d, $a, $b;", "b32 b32", "b32", halves(lambda a, b: a + b, t), f"{t}x2 {t}x2")
    case(f"min.{t}x2 $d, $a, $b;", "b32 b32", "b32", halves(min, t), f"{t}x2 {t}x2")
    case(f"max.{t}x2 $d, $a, $b;", "b32 b32", "b32", halves(max, t), f"{t}x2 {t}x2")
case("min.relu.s16x2 $d, $a, $b;", "b32 b32", "b32", halves(lambda a, b: max(min(a, b), 0), "s16"), "s16x2 s16x2")
case("max.relu.s16x2 $d, $a, $b;", "b32 b32", "b32", halves(lambda a, b: max(a, b, 0), "s16"), "s16x2 s16x2")
case("min.relu.s32 $d, $a, $b;", "s32 s32", "s32", on_values("s32", lambda a, b: max(min(a, b), 0)))
case("max.relu.s32 $d, $a, $b;", "s32 s32", "s32", on_values("s32", lambda a, b: max(a, b, 0)))
case("add.sat.s32 $d, $a, $b;", "s32 s32", "s32", on_values("s32", lambda a, b: clamp32(a + b)))
case("sub.sat.s32 $d, $a, $b;", "s32 s32", "s32", on_values("s32", lambda a, b: clamp32(a - b)))
case(
    "mad.hi.sat.s32 $d, $a, $b, $c;", "s32 s32 s32", "s32", on_values("s32", lambda a, b, c: clamp32((a * b >> 32) + c))
)

for t in ("u32", "s32"):
    for part, down in (("lo", 0), ("hi", 16)):
        case(
            f"mul24.{part}.{t} $d, $a, $b;",
            f"{t} {t}",
            t,
            lambda a, b, t=t, down=down: value24(t, a) * value24(t, b) >> down,
        )
        case(
            f"mad24.{part}.{t} $d, $a, $b, $c;",
            f"{t} {t} {t}",
            t,
            lambda a, b, c, t=t, down=down: (value24(t, a) * value24(t, b) >> down) + c,
        )
case(
    "mad24.hi.sat.s32 $d, $a, $b, $c;",
    "s32 s32 s32",
    "s32",
    lambda a, b, c: clamp32(signed((value24("s32", a) * value24("s32", b) >> 16) & 0xFFFFFFFF, 32) + signed(c, 32)),
)

# Carry chains: numbers of two words, low word first.
for t in ("u32", "s32", "u64", "s64"):
    bits = width(t)

    def pair(v: int, w: int = bits) -> tuple[int, int]:
        return v & ((1 << w) - 1), v >> w

    case(
        f"add.cc.{t} $d, $a, $b; addc.{t} $d1, $c, $e;",
        f"{t} {t} {t} {t}",
        f"{t} {t}",
        lambda a, b, c, e, w=bits, pair=pair: pair(a + b + (c + e << w)),
    )
    case(
        f"sub.cc.{t} $d, $a, $b; subc.{t} $d1, $c, $e;",
        f"{t} {t} {t} {t}",
        f"{t} {t}",
        lambda a, b, c, e, w=bits, pair=pair: pair(a - b + (c - e << w)),
    )
    # Three words and the carry out of them.
    case(
        f"add.cc.{t} $d, $a, $b; addc.cc.{t} $d1, $c, $e; addc.cc.{t} $d2, $c, $b; addc.{t} $d3, 0, 0;",
        f"{t} {t} {t} {t}",
        f"{t} {t} {t} {t}",
        lambda a, b, c, e, w=bits: tuple(a + b + (c + e << w) + (c + b << 2 * w) >> k * w for k in range(4)),
    )
    case(
        f"sub.cc.{t} $d, $a, $b; subc.cc.{t} $d1, $c, $e; subc.cc.{t} $d2, $c, $b; subc.{t} $d3, 0, 0;",
        f"{t} {t} {t} {t}",
        f"{t} {t} {t} {t}",
        lambda a, b, c, e, w=bits: tuple(a - b + (c - e << w) + (c - b << 2 * w) >> k * w for k in range(4)),
    )
    case(
        f"mad.lo.cc.{t} $d, $a, $b, $c; madc.hi.{t} $d1, $a, $b, $e;",
        f"{t} {t} {t} {t}",
        f"{t} {t}",
        lambda a, b, c, e, w=bits, t=t: (
            a * b + c,
            high(t, value(t, a), value(t, b)) + e + ((a * b & ((1 << w) - 1)) + c >> w),
        ),
    )
    case(
        f"mad.hi.cc.{t} $d, $a, $b, $c; madc.lo.cc.{t} $d1, $a, $b, $e; addc.{t} $d2, 0, 0;",
        f"{t} {t} {t} {t}",
        f"{t} {t} {t}",
        lambda a, b, c, e, w=bits, t=t: mad_chain(t, a, b, c, e),
    )


def mad_chain(t: str, a: int, b: int, c: int, e: int) -> tuple[int, int, int]:
    full = (1 << width(t)) - 1
    first = (high(t, value(t, a), value(t, b)) & full) + c
    second = (a * b & full) + e + (first >> width(t))
    return first, second, second >> width(t)


# On hardware the flag after sub.cc says that there was no borrow; mixed chains show it.
case(
    "sub.cc.u32 $d, $a, $b; addc.u32 $d1, $c, $e;",
    "u32 u32 u32 u32",
    "u32 u32",
    lambda a, b, c, e: (a - b, c + e + (a >= b)),
)
case(
    "add.cc.u32 $d, $a, $b; subc.u32 $d1, $c, $e;",
    "u32 u32 u32 u32",
    "u32 u32",
    lambda a, b, c, e: (a + b, c - e - 1 + (a + b >> 32)),
)
# 256-bit product of 64-bit numbers in 32-bit words, as compilers write it.
case(
    "mul.lo.u32 $d, $a, $c; mul.hi.u32 $d1, $a, $c; mad.lo.cc.u32 $d1, $b, $c, $d1; madc.hi.u32 $d2, $b, $c, 0;"
    "mad.lo.cc.u32 $d1, $a, $e, $d1; madc.hi.cc.u32 $d2, $a, $e, $d2; addc.u32 $d3, 0, 0;"
    "mad.lo.cc.u32 $d2, $b, $e, $d2; madc.hi.u32 $d3, $b, $e, $d3;",
    "u32 u32 u32 u32",
    "u32 u32 u32 u32",
    lambda a, b, c, e: tuple((a | b << 32) * (c | e << 32) >> 32 * k for k in range(4)),
)

for ta in ("u32", "s32"):
    for tb in ("u32", "s32"):

        def dot(a: int, b: int, c: int, wa: int, first: int, n: int, ta: str = ta, tb: str = tb) -> int:
            for k in range(n):
                x, y = a >> wa * k & ((1 << wa) - 1), b >> 8 * (first + k) & 0xFF
                c += (signed(x, wa) if ta == "s32" else x) * (signed(y, 8) if tb == "s32" else y)
            return c

        case(f"dp4a.{ta}.{tb} $d, $a, $b, $c;", "b32 b32 b32", "b32", lambda a, b, c, dot=dot: dot(a, b, c, 8, 0, 4))
        case(
            f"dp2a.lo.{ta}.{tb} $d, $a, $b, $c;", "b32 b32 b32", "b32", lambda a, b, c, dot=dot: dot(a, b, c, 16, 0, 2)
        )
        case(
            f"dp2a.hi.{ta}.{tb} $d, $a, $b, $c;", "b32 b32 b32", "b32", lambda a, b, c, dot=dot: dot(a, b, c, 16, 2, 2)
        )

# Constants as operands.
case("add.u32 $d, $a, -5;", "u32", "u32", lambda a: a - 5)
case("sub.s64 $d, 7, $a;", "s64", "s64", lambda a: 7 - a)
case("mul.wide.s16 $d, $a, -3;", "s16", "s32", on_values("s16", lambda a: -3 * a))
case("mad.lo.s32 $d, $a, 12, 0xFFFFFFFF;", "s32", "s32", lambda a: 12 * a - 1)
case("div.u32 $d, 1000000007, $a;", "u32", "u32", lambda a: truncated(1000000007, a))
case("rem.s64 $d, -1000000000000000007, $a;", "s64", "s64", on_values("s64", lambda a: rest(-1000000000000000007, a)))
case("max.s32 $d, $a, 0;", "s32", "s32", on_values("s32", lambda a: max(a, 0)))

FORMS = Forms(CASES)


@pytest.mark.parametrize("form", CASES, ids=str)
def test_form(form: Form) -> None:
    check(FORMS, form, CASES[form])


REFUSED = [
    Form(
        "add.sat.u32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form(
        "sub.s16x2 $d, $a, $b;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
    Form(
        "mul.u32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form(
        "mul.wide.u64 $d, $a, $b;",
        (
            "u64",
            "u64",
        ),
        ("u64",),
    ),
    Form(
        "add.rn.s32 $d, $a, $b;",
        (
            "s32",
            "s32",
        ),
        ("s32",),
    ),
    Form(
        "add.cc.u16 $d, $a, $b;",
        (
            "u16",
            "u16",
        ),
        ("u16",),
    ),
    Form(
        "mad.lo.sat.s32 $d, $a, $b, $b;",
        (
            "s32",
            "s32",
        ),
        ("s32",),
    ),
    Form(
        "min.relu.u32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form("abs.u32 $d, $a;", ("u32",), ("u32",)),
    Form(
        "mul24.u32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form(
        "dp2a.s32.s32 $d, $a, $b, $b;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
    Form(
        "sad.b32 $d, $a, $b, $b;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
]


@pytest.mark.parametrize("form", REFUSED, ids=str)
def test_refused(form: Form) -> None:
    check_refused(form)


DIVISIONS = [form for form in CASES if form.text[:3] in ("div", "rem") and len(form.ins) == 2]


@settings(max_examples=40, deadline=None, database=None)
@given(st.integers(0, (1 << 64) - 1), st.integers(1, (1 << 64) - 1), st.sampled_from(DIVISIONS))
def test_division_near_multiples(q: int, b: int, form: Form) -> None:
    """Dividends next to multiples of the divisor, where an inexact quotient would be off by one."""
    t = form.ins[0]
    full = (1 << width(t)) - 1
    b = b % full or 1
    multiple = q % (full // b + 1) * b
    rows: list[tuple[int, ...]] = [((multiple + d) & full, s * b & full) for d in range(-2, 3) for s in (1, -1)]
    rows += [(-row[0] & full, row[1]) for row in rows]
    rows += list(operand_sets(form.ins)[: 128 - len(rows)])
    check(FORMS, form, CASES[form], rows, shares=1)
