"""Comparisons, selections and moves against Python's own numbers."""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from harness import Form, Forms, Oracle, check, check_refused, signed

CASES: dict[Form, Oracle] = {}


def case(text: str, types: str, outs: str, oracle: Oracle, kinds: str = "") -> None:
    CASES[Form(text, tuple(types.split()), tuple(outs.split()), tuple(kinds.split()))] = oracle


FORMATS = {
    "f16": ("<H", np.float16),
    "bf16": ("<H", ml_dtypes.bfloat16),
    "f32": ("<I", np.float32),
    "f64": ("<Q", np.float64),
}
SMALLEST = {"f16": 2.0**-14, "f32": 2.0**-126}


def number(t: str, v: int, ftz: bool = False) -> float:
    """A bit pattern as the number that it means."""
    if t[0] in "ub":
        if t != "bf16":
            return v
    elif t[0] == "s":
        return signed(v, int(t[1:]))
    code, kind = FORMATS[t]
    x = float(np.frombuffer(struct.pack(code, v), kind)[0])
    return 0.0 if ftz and abs(x) < SMALLEST[t] else x


def ordered(function: Callable[[float, float], bool]) -> Callable[[float, float], bool]:
    return lambda a, b: not (math.isnan(a) or math.isnan(b)) and function(a, b)


def unordered(function: Callable[[float, float], bool]) -> Callable[[float, float], bool]:
    return lambda a, b: math.isnan(a) or math.isnan(b) or function(a, b)


BASIC: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNSIGNED = {**BASIC, "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
FLOAT: dict[str, Callable[[float, float], bool]] = {
    **{name: ordered(f) for name, f in BASIC.items()},
    **{name + "u": unordered(f) for name, f in BASIC.items()},
    "num": ordered(lambda a, b: True),
    "nan": unordered(lambda a, b: False),
}
BOOLEAN = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def operators(t: str) -> dict[str, Callable[[float, float], bool]]:
    if t in FORMATS:
        return FLOAT
    if t[0] == "b":
        return {"eq": operator.eq, "ne": operator.ne}
    return UNSIGNED if t[0] == "u" else BASIC


Truth = Callable[[int, int], int]


def compare(t: str, name: str, ftz: bool = False) -> Truth:
    """Truth of a comparison of bit patterns."""
    function = operators(t)[name]
    return lambda a, b: int(function(number(t, a, ftz), number(t, b, ftz)))


INTEGERS = [f"{k}{n}" for k in "bus" for n in (16, 32, 64)]


def reg(t: str) -> str:
    return f"b{16}" if t in ("f16", "bf16") else t


# ---- setp --------------------------------------------------------------------------------------------
for t in (*INTEGERS, *FORMATS):
    pair, kinds = f"{reg(t)} {reg(t)}", f"{t} {t}"
    for name in operators(t):
        case(f"setp.{name}.{t} $d, $a, $b;", pair, "pred", compare(t, name), kinds)
    for op, combine in BOOLEAN.items():
        for name, no in (("eq", ""), ("ne", "!")):
            truth = compare(t, name)
            case(
                f"setp.{name}.{op}.{t} $d, $a, $b, {no}$c;",
                f"{pair} pred",
                "pred",
                lambda a, b, c, truth=truth, combine=combine, no=no: combine(truth(a, b), 1 - c if no else c),
                f"{kinds} pred",
            )
    if t not in ("f16", "bf16"):
        truth = compare(t, "eq")
        case(
            f"setp.eq.{t} $d|$d1, $a, $b;",
            pair,
            "pred pred",
            lambda a, b, truth=truth: (truth(a, b), 1 - truth(a, b)),
            kinds,
        )
        case(
            f"setp.eq.and.{t} $d|$d1, $a, $b, $c;",
            f"{pair} pred",
            "pred pred",
            lambda a, b, c, truth=truth: (truth(a, b) & c, 1 - truth(a, b) & c),
            f"{kinds} pred",
        )
for t, name in itertools.product(("f16", "f32"), ("eq", "lt", "geu", "nan")):
    case(f"setp.{name}.ftz.{t} $d, $a, $b;", f"{reg(t)} {reg(t)}", "pred", compare(t, name, True), f"{t} {t}")
for t, name in itertools.product(("f16", "bf16"), ("eq", "gt", "neu", "num")):
    for ftz in ("", ".ftz") if t == "f16" else ("",):
        truth = compare(t, name, bool(ftz))
        case(
            f"setp.{name}{ftz}.{t}x2 $d|$d1, $a, $b;",
            "b32 b32",
            "pred pred",
            lambda a, b, truth=truth: (truth(a & 0xFFFF, b & 0xFFFF), truth(a >> 16, b >> 16)),
            f"{t}x2 {t}x2",
        )
    truth = compare(t, name)
    case(
        f"setp.{name}.xor.{t}x2 $d|$d1, $a, $b, $c;",
        "b32 b32 pred",
        "pred pred",
        lambda a, b, c, truth=truth: (truth(a & 0xFFFF, b & 0xFFFF) ^ c, truth(a >> 16, b >> 16) ^ c),
        f"{t}x2 {t}x2 pred",
    )
case("setp.lt.s32 $d, $a, 10;", "s32", "pred", lambda a: int(signed(a, 32) < 10))
case("setp.gt.u32 $d, $a, 0xFFFFFFF0;", "u32", "pred", lambda a: int(a > 0xFFFFFFF0))
case("setp.ge.f32 $d, $a, 0f3F800000;", "f32", "pred", lambda a: int(number("f32", a) >= 1.0))
case("setp.lt.s32 _|$d, $a, $b;", "s32 s32", "pred", lambda a, b: int(signed(a, 32) >= signed(b, 32)))


# ---- set ---------------------------------------------------------------------------------------------
TRUE = {
    "u32": 0xFFFFFFFF,
    "s32": 0xFFFFFFFF,
    "u16": 0xFFFF,
    "s16": 0xFFFF,
    "f32": 0x3F800000,
    "f16": 0x3C00,
    "bf16": 0x3F80,
}
SOURCES = [t for t in (*INTEGERS, *FORMATS) if t not in ("f16", "bf16")]
for t, to in itertools.product(SOURCES, ("u32", "s32", "f32", "f16", "bf16")):
    name = "ne" if t[0] == "b" else "lt"
    truth, true = compare(t, name), TRUE[to]
    case(
        f"set.{name}.{to}.{t} $d, $a, $b;", f"{t} {t}", reg(to), lambda a, b, truth=truth, true=true: true * truth(a, b)
    )
    case(
        f"set.{name}.or.{to}.{t} $d, $a, $b, !$c;",
        f"{t} {t} pred",
        reg(to),
        lambda a, b, c, truth=truth, true=true: true * (truth(a, b) | (1 - c)),
    )
for t, to in itertools.product(("f16", "bf16"), ("u16", "s16", "u32", "s32")):
    truth, true = compare(t, "geu"), TRUE[to]
    case(
        f"set.geu.{to}.{t} $d, $a, $b;",
        "b16 b16",
        to,
        lambda a, b, truth=truth, true=true: true * truth(a, b),
        f"{t} {t}",
    )
for t in ("f16", "bf16"):
    for to in ("u32", "s32", f"{t}x2"):
        truth, true = compare(t, "le"), TRUE[t] if to[-2:] == "x2" else 0xFFFF

        def both(a: int, b: int, c: int = 1, truth: Truth = truth, true: int = true) -> int:
            return true * (truth(a & 0xFFFF, b & 0xFFFF) & c) | true * (truth(a >> 16, b >> 16) & c) << 16

        case(f"set.le.{to}.{t}x2 $d, $a, $b;", "b32 b32", "b32", both, f"{t}x2 {t}x2")
        case(f"set.le.and.{to}.{t}x2 $d, $a, $b, $c;", "b32 b32 pred", "b32", both, f"{t}x2 {t}x2 pred")
case("set.eq.ftz.u32.f32 $d, $a, $b;", "f32 f32", "u32", lambda a, b: -compare("f32", "eq", True)(a, b))
case(
    "set.gt.ftz.f16.f16 $d, $a, $b;",
    "b16 b16",
    "b16",
    lambda a, b: 0x3C00 * compare("f16", "gt", True)(a, b),
    "f16 f16",
)

# ---- selections --------------------------------------------------------------------------------------
for t in (*INTEGERS, "f32", "f64"):
    case(f"selp.{t} $d, $a, $b, $c;", f"{t} {t} pred", t, lambda a, b, c: a if c else b)
    case(f"slct.{t}.s32 $d, $a, $b, $c;", f"{t} {t} s32", t, lambda a, b, c: b if c >> 31 else a)
    case(f"slct.{t}.f32 $d, $a, $b, $c;", f"{t} {t} f32", t, lambda a, b, c: a if number("f32", c) >= 0 else b)
    case(
        f"slct.ftz.{t}.f32 $d, $a, $b, $c;", f"{t} {t} f32", t, lambda a, b, c: a if number("f32", c, True) >= 0 else b
    )
case("selp.f32 $d, 0f3F800000, 0f00000000, $a;", "pred", "f32", lambda a: 0x3F800000 * a)
case("selp.f32 $d, 1.5, -2.0, $a;", "pred", "f32", lambda a: 0x3FC00000 if a else 0xC0000000)
case("selp.f64 $d, 1.5, $a, $b;", "f64 pred", "f64", lambda a, b: 0x3FF8000000000000 if b else a)
case("selp.b32 $d, 1, -1, $a;", "pred", "b32", lambda a: 1 if a else -1)


# ---- properties of floats ----------------------------------------------------------------------------
def kind(t: str, v: int) -> set[str]:
    x = number(t, v)
    smallest = 2.0**-126 if t == "f32" else 2.0**-1022
    if math.isnan(x):
        return {"notanumber"}
    if math.isinf(x):
        return {"number", "infinite"}
    return {"number", "finite", "subnormal" if 0 < abs(x) < smallest else "normal"}


for t in ("f32", "f64"):
    for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        case(f"testp.{name}.{t} $d, $a;", t, "pred", lambda a, t=t, name=name: int(name in kind(t, a)))
    sign = 1 << (int(t[1:]) - 1)
    case(f"copysign.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b, sign=sign: a & sign | b & ~sign)

# ---- moves -------------------------------------------------------------------------------------------
for t in (*INTEGERS, "f32", "f64", "pred"):
    case(f"mov.{t} $d, $a;", t, t, lambda a: a)
case("mov.b32 $d, $a;", "f32", "b32", lambda a: a)
case("mov.b64 $d, $a;", "b64", "f64", lambda a: a)
case("mov.b32 $d, {$a, $b};", "b16 b16", "b32", lambda a, b: a | b << 16)
case("mov.b64 $d, {$a, $b};", "b32 b32", "b64", lambda a, b: a | b << 32)
case("mov.b64 $d, {$a, $b};", "f32 f32", "b64", lambda a, b: a | b << 32)
case("mov.b64 $d, {$a, $b, $c, $e};", "b16 b16 b16 b16", "b64", lambda a, b, c, e: a | b << 16 | c << 32 | e << 48)
case("mov.b32 {$d, $d1}, $a;", "b32", "b16 b16", lambda a: (a, a >> 16))
case("mov.b64 {$d, $d1}, $a;", "b64", "b32 b32", lambda a: (a, a >> 32))
case("mov.b64 {$d, $d1}, $a;", "f64", "b32 f32", lambda a: (a, a >> 32))
case("mov.b64 {$d, $d1, $d2, $d3}, $a;", "b64", "b16 b16 b16 b16", lambda a: (a, a >> 16, a >> 32, a >> 48))
case("mov.b32 {_, $d}, $a;", "b32", "b16", lambda a: a >> 16)
case("mov.b64 {$d, _}, $a;", "b64", "b32", lambda a: a)
case("mov.b32 $d, {$a, $a};", "b16", "b32", lambda a: a | a << 16)
case("{.reg .b8 %p, %q; mov.b16 {%p, %q}, $a; mov.b16 $d, {%q, %p};}", "b16", "b16", lambda a: a >> 8 | a << 8)
case(
    "{.reg .b8 %p, %q, %r, %s; mov.b32 {%p, %q, %r, %s}, $a; mov.b32 $d, {%s, %r, %q, %p};}",
    "b32",
    "b32",
    lambda a: int.from_bytes(a.to_bytes(4, "little"), "big"),
)
case("{.reg .b128 %q; mov.b128 %q, {$a, $b}; mov.b128 {$d1, $d}, %q;}", "b64 b64", "b64 b64", lambda a, b: (b, a))
case(
    "{.reg .v4 .b32 %v; mov.v4.b32 %v, {$a, $b, $c, $e}; mov.v4.b32 {$d3, $d2, $d1, $d}, %v;}",
    "b32 b32 b32 b32",
    "b32 b32 b32 b32",
    lambda a, b, c, e: (e, c, b, a),
)
case("{.reg .v2 .f64 %v; mov.v2.f64 %v, {$a, $b}; mov.f64 $d, %v.y;}", "f64 f64", "f64", lambda a, b: b)
case("mov.v2.b32 {$d, $d1}, {$b, $a};", "b32 b32", "b32 b32", lambda a, b: (b, a))
case("mov.f32 $d, 0f7FC01234; mov.b32 $d1, $a;", "b32", "f32 b32", lambda a: (0x7FC01234, a))
case("mov.f64 $d, 0.1; mov.f32 $d1, $a;", "f32", "f64 f32", lambda a: (0x3FB999999999999A, a))
case("mov.u16 $d, -2; mov.pred $d1, $a;", "pred", "u16 pred", lambda a: (-2, a))
case("mov.u64 $d, 0xFFFFFFFFFFFFFFFE; mov.s32 $d1, $a;", "s32", "u64 s32", lambda a: (-2, a))

FORMS = Forms(CASES)


@pytest.mark.parametrize("form", CASES, ids=str)
def test_form(form: Form) -> None:
    check(FORMS, form, CASES[form])


REFUSED = [
    Form(
        "setp.lt.b32 $d, $a, $b;",
        (
            "b32",
            "b32",
        ),
        ("pred",),
    ),
    Form(
        "setp.lt.ftz.s32 $d, $a, $b;",
        (
            "s32",
            "s32",
        ),
        ("pred",),
    ),
    Form(
        "setp.lt.ftz.bf16 $d, $a, $b;",
        (
            "b16",
            "b16",
        ),
        ("pred",),
    ),
    Form(
        "setp.ltu.s32 $d, $a, $b;",
        (
            "s32",
            "s32",
        ),
        ("pred",),
    ),
    Form(
        "setp.lt.f16x2 $d, $a, $b;",
        (
            "b32",
            "b32",
        ),
        ("pred",),
    ),
    Form(
        "set.lt.u16.f32 $d, $a, $b;",
        (
            "f32",
            "f32",
        ),
        ("u16",),
    ),
    Form(
        "set.lt.f16.f16x2 $d, $a, $b;",
        (
            "b32",
            "b32",
        ),
        ("b16",),
    ),
    Form("selp.pred $d, $a, $a, $a;", ("pred",), ("pred",)),
    Form(
        "slct.u32.u32 $d, $a, $b, $a;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form("testp.finite.f16 $d, $a;", ("b16",), ("pred",)),
    Form("copysign.f16 $d, $a, $a;", ("b16",), ("b16",)),
    Form("mov.b16 $d, {$a, $a, $a, $a};", ("b16",), ("b16",)),
    Form("mov.v3.b32 $d, $a;", ("b32",), ("b32",)),
]


@pytest.mark.parametrize("form", REFUSED, ids=str)
def test_refused(form: Form) -> None:
    check_refused(form)
