"""Integer arithmetic, division, carry chains."""

from __future__ import annotations

from collections.abc import Iterator

from ..forms import Form, call, form

WORDS = ("u16", "s16", "u32", "s32", "u64", "s64")


def wide(t: str) -> str:
    return f"{t[0]}{2 * int(t[1:])}"


def integers() -> Iterator[Form]:
    for t in WORDS:
        two, three = f"{t} {t}", f"{t} {t} {t}"
        for op in ("add", "sub", "min", "max", "mul.lo", "mul.hi"):
            yield call(f"{op}.{t}", two, t)
        for op in ("mad.lo", "mad.hi", "sad"):
            yield call(f"{op}.{t}", three, t)
        if t[0] == "s":
            yield call(f"abs.{t}", t, t)
            yield call(f"neg.{t}", t, t)
        if t[1:] != "64":
            yield call(f"mul.wide.{t}", two, wide(t))
            yield call(f"mad.wide.{t}", f"{two} {wide(t)}", wide(t))
    for t in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            yield call(f"{op}.{t}", f"{t} {t}", "b32")
    for op in ("min", "max"):
        yield call(f"{op}.relu.s16x2", "s16x2 s16x2", "b32")
        yield call(f"{op}.relu.s32", "s32 s32", "s32")
    for op in ("add", "sub"):
        yield call(f"{op}.sat.s32", "s32 s32", "s32")
    yield call("mad.hi.sat.s32", "s32 s32 s32", "s32")
    for t in ("u32", "s32"):
        for part in ("lo", "hi"):
            yield call(f"mul24.{part}.{t}", f"{t} {t}", t)
            yield call(f"mad24.{part}.{t}", f"{t} {t} {t}", t)
    yield call("mad24.hi.sat.s32", "s32 s32 s32", "s32")
    for ta in ("u32", "s32"):
        for tb in ("u32", "s32"):
            for op in ("dp4a", "dp2a.lo", "dp2a.hi"):
                yield call(f"{op}.{ta}.{tb}", "b32 b32 b32", "b32")
    # constants as operands
    yield form("add.u32 $d, $a, -5;", "u32", "u32")
    yield form("sub.s64 $d, 7, $a;", "s64", "s64")
    yield form("mul.wide.s16 $d, $a, -3;", "s16", "s32")
    yield form("mad.lo.s32 $d, $a, 12, 0xFFFFFFFF;", "s32", "s32")


def division() -> Iterator[Form]:
    for t in WORDS:
        for op in ("div", "rem"):
            yield call(f"{op}.{t}", f"{t} {t}", t)
            # divisors known to the compiler take other ways, there and here
            for n in (1, 3, 7, 10, 16, 100, *((-1, -2, -5) if t[0] == "s" else ())):
                yield form(f"{op}.{t} $d, $a, {n};", t, t)
    yield form("div.u32 $d, 1000000007, $a;", "u32", "u32")
    yield form("rem.s64 $d, -1000000000000000007, $a;", "s64", "s64")


def carries() -> Iterator[Form]:
    for t in ("u32", "s32", "u64", "s64"):
        four = f"{t} {t} {t} {t}"
        for op in ("add", "sub"):
            yield form(f"{op}.cc.{t} $d, $a, $b; {op}c.{t} $d1, $c, $e;", four, f"{t} {t}")
            yield form(
                f"{op}.cc.{t} $d, $a, $b; {op}c.cc.{t} $d1, $c, $e; {op}c.cc.{t} $d2, $c, $b; {op}c.{t} $d3, 0, 0;",
                four,
                f"{t} {t} {t} {t}",
            )
        yield form(f"mad.lo.cc.{t} $d, $a, $b, $c; madc.hi.{t} $d1, $a, $b, $e;", four, f"{t} {t}")
        yield form(
            f"mad.hi.cc.{t} $d, $a, $b, $c; madc.lo.cc.{t} $d1, $a, $b, $e; addc.{t} $d2, 0, 0;", four, f"{t} {t} {t}"
        )
        yield form(
            f"mad.lo.cc.{t} $d, $a, $b, $c; madc.hi.cc.{t} $d1, $a, $b, $e; madc.lo.{t} $d2, $a, $c, $e; addc.{t} $d3, 0, 0;",
            four,
            f"{t} {t} {t} {t}",
        )
    # mixed chains show which way round the flag of a subtraction is
    yield form("sub.cc.u32 $d, $a, $b; addc.u32 $d1, $c, $e;", "u32 u32 u32 u32", "u32 u32")
    yield form("add.cc.u32 $d, $a, $b; subc.u32 $d1, $c, $e;", "u32 u32 u32 u32", "u32 u32")
    # the 128-bit product of 64-bit numbers in 32-bit words, as compilers write it
    yield form(
        "mul.lo.u32 $d, $a, $c; mul.hi.u32 $d1, $a, $c; mad.lo.cc.u32 $d1, $b, $c, $d1; madc.hi.u32 $d2, $b, $c, 0;"
        " mad.lo.cc.u32 $d1, $a, $e, $d1; madc.hi.cc.u32 $d2, $a, $e, $d2; addc.u32 $d3, 0, 0;"
        " mad.lo.cc.u32 $d2, $b, $e, $d2; madc.hi.u32 $d3, $b, $e, $d3;",
        "u32 u32 u32 u32",
        "u32 u32 u32 u32",
    )
