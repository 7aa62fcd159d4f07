"""setp, set, selp, slct, testp, copysign."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Form, call, form

INTEGERS = tuple(f"{k}{n}" for k in "bus" for n in (16, 32, 64))
FLOATS = ("f16", "bf16", "f32", "f64")
ORDER = ("eq", "ne", "lt", "le", "gt", "ge")
FLOAT_OPS = (*ORDER, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def operators(t: str) -> tuple[str, ...]:
    if t in FLOATS:
        return FLOAT_OPS
    return {"b": ("eq", "ne"), "u": (*ORDER, "lo", "ls", "hi", "hs"), "s": ORDER}[t[0]]


def comparisons() -> Iterator[Form]:
    for t in (*INTEGERS, *FLOATS):
        two = f"{t} {t}"
        for op in operators(t):
            yield call(f"setp.{op}.{t}", two, "pred")
            if t in ("f16", "f32"):
                yield call(f"setp.{op}.ftz.{t}", two, "pred")
        for both in ("and", "or", "xor"):
            yield form(f"setp.ne.{both}.{t} $d, $a, $b, !$c;", f"{two} pred", "pred")
            yield form(f"setp.eq.{both}.{t} $d, $a, $b, $c;", f"{two} pred", "pred")
        if t not in ("f16", "bf16"):
            yield form(f"setp.eq.and.{t} $d|$d1, $a, $b, $c;", f"{two} pred", "pred pred")
            yield form(f"setp.eq.{t} $d|$d1, $a, $b;", two, "pred pred")
    for t in ("f16", "bf16"):
        for op in FLOAT_OPS:
            yield form(f"setp.{op}.{t}x2 $d|$d1, $a, $b;", f"{t}x2 {t}x2", "pred pred")
        yield form(f"setp.gtu.xor.{t}x2 $d|$d1, $a, $b, $c;", f"{t}x2 {t}x2 pred", "pred pred")
    for op in FLOAT_OPS:
        yield form(f"setp.{op}.ftz.f16x2 $d|$d1, $a, $b;", "f16x2 f16x2", "pred pred")
    yield from values()
    yield from selections()


def targets(t: str) -> tuple[str, ...]:
    """The types of results that a comparison of t can have."""
    if t.endswith("x2"):
        return "u32", "s32", t
    if t in ("f16", "bf16"):
        return "u16", "s16", "u32", "s32", "bf16", *(("f16",) if t == "f16" else ())
    return "u32", "s32", "f32", "f16", "bf16"


def values() -> Iterator[Form]:
    for t in (*INTEGERS, *FLOATS, "f16x2", "bf16x2"):
        ops = ("eq", "ne") if t[0] == "b" and t[1].isdigit() else ("eq", "lt")
        ops += ("hs",) if t[0] == "u" else ("gtu", "nan") if t[0] not in "usb" or t[:2] == "bf" else ()
        for op, to in product(ops, targets(t)):
            out = to if to[1:] == "32" else "b32" if to.endswith("x2") else "b16"
            for ftz in ("", ".ftz") if t in ("f16", "f32", "f16x2") and not to.startswith("bf16") else ("",):
                yield call(f"set.{op}{ftz}.{to}.{t}", f"{t} {t}", out)
            if op == ops[1]:
                yield form(f"set.{op}.or.{to}.{t} $d, $a, $b, !$c;", f"{t} {t} pred", out)
                yield form(f"set.{op}.and.{to}.{t} $d, $a, $b, $c;", f"{t} {t} pred", out)


def selections() -> Iterator[Form]:
    for t in (*INTEGERS, "f32", "f64"):
        yield call(f"selp.{t}", f"{t} {t} pred", t)
        yield call(f"slct.{t}.s32", f"{t} {t} s32", t)
        yield call(f"slct.{t}.f32", f"{t} {t} f32", t)
        yield call(f"slct.ftz.{t}.f32", f"{t} {t} f32", t)
    for t in ("f32", "f64"):
        for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield call(f"testp.{kind}.{t}", t, "pred")
        yield call(f"copysign.{t}", f"{t} {t}", t)
