"""f32 and f64 arithmetic with a rounding mode, min, max, abs, neg; and forms of chips newer than sm_90."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Form, call, form

MODES = ("rn", "rz", "rm", "rp")
SOURCES = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "mad": 3, "sqrt": 1, "rcp": 1}


def many(t: str, n: int) -> str:
    return " ".join([t] * n)


def singles() -> Iterator[Form]:
    for op, n in SOURCES.items():
        bare = ("",) if op in ("add", "sub", "mul") else ()
        for ftz, sat, mode in product(("", ".ftz"), ("", ".sat"), (*bare, *MODES)):
            if not (sat and op in ("div", "sqrt", "rcp")):
                yield call(f"{op}{'.' * bool(mode)}{mode}{ftz}{sat}.f32", many("f32", n), "f32")
    for op, ftz, nan, xorsign in product(("min", "max"), ("", ".ftz"), ("", ".NaN"), ("", ".xorsign.abs")):
        yield call(f"{op}{ftz}{nan}{xorsign}.f32", "f32 f32", "f32")
    for op, ftz in product(("abs", "neg"), ("", ".ftz")):
        yield call(f"{op}{ftz}.f32", "f32", "f32")
    yield from tiny_results()
    yield from chains()


def tiny_results() -> Iterator[Form]:
    """Results beside the smallest normal number: what is flushed?"""
    for op, n in SOURCES.items():
        for ftz, mode in product(("", ".ftz"), MODES):
            yield call(f"{op}.{mode}{ftz}.f32", many("tiny32", n), "f32")
    yield call("mul.rn.ftz.sat.f32", "tiny32 tiny32", "f32")
    yield call("fma.rp.ftz.sat.f32", "tiny32 tiny32 tiny32", "f32")


#: What is done with a result, its operands, type of the outcome.
USES = (
    ("mov.b32 $d, t;", "b32"), ("cvt.f64.f32 $d, t;", "f64"), ("cvt.ftz.f64.f32 $d, t;", "f64"), ("cvt.f32.f32 $d, t;", "f32"),
    ("cvt.rna.tf32.f32 $d, t;", "b32"), ("cvt.rn.tf32.f32 $d, t;", "b32"), ("cvt.rn.f16.f32 $d, t;", "b16"),
    ("cvt.rn.bf16.f32 $d, t;", "b16"), ("cvt.rn.satfinite.e4m3x2.f32 $d, t, $a;", "b16"), ("cvt.rzi.s32.f32 $d, t;", "s32"),
    ("abs.f32 $d, t;", "f32"), ("neg.f32 $d, t;", "f32"), ("min.f32 $d, t, $a;", "f32"), ("max.NaN.f32 $d, t, $a;", "f32"),
    ("max.xorsign.abs.f32 $d, t, $a;", "f32"), ("copysign.f32 $d, t, $a;", "f32"), ("copysign.f32 $d, $a, t;", "f32"),
    ("testp.notanumber.f32 $d, t;", "pred"), ("setp.ltu.f32 $d, t, $a;", "pred"), ("selp.f32 $d, t, $a, 1;", "f32"),
    ("slct.f32.f32 $d, $a, $b, t;", "f32"), ("add.rn.f32 $d, t, $a;", "f32"), ("mul.rn.ftz.f32 $d, t, $a;", "f32"),
    ("fma.rn.sat.f32 $d, t, $a, $b;", "f32"), ("sqrt.rn.f32 $d, t;", "f32"), ("div.rn.f32 $d, $b, t;", "f32"), ("shl.b32 $d, t, 1;", "b32"),
)  # fmt: skip


def chains() -> Iterator[Form]:
    """Results that other instructions use, and constants as operands."""
    for use, out in USES:
        yield form(f"{{.reg .f32 t; mul.rn.f32 t, $a, $b; {use}}}", "f32 f32", out)
    for use, out in USES[:8]:
        yield form(f"{{.reg .f32 t; sub.rz.ftz.f32 t, $a, $b; {use}}}", "f32 f32", out)
    yield form("fma.rn.f32 $d, $a, 0f3FC00000, 0fBF800000;", "f32", "f32")
    yield form("{.reg .f32 t; neg.f32 t, $a; add.rn.f32 $d, t, $b;}", "f32 f32", "f32")
    yield form("{.reg .f32 t; abs.f32 t, $b; fma.rn.f32 $d, $a, t, $a;}", "f32 f32", "f32")
    yield form("{.reg .f32 t; mul.rn.f32 t, $a, $b; add.rn.f32 $d, t, $c;}", "f32 f32 f32", "f32")
    yield form("{.reg .b32 t; and.b32 t, $b, 0x80000000; xor.b32 t, t, $a; add.rn.f32 $d, t, $b;}", "f32 f32", "f32")


def doubles() -> Iterator[Form]:
    for op, n in SOURCES.items():
        for mode in MODES:
            yield call(f"{op}.{mode}.f64", many("f64", n), "f64")
    for mode in ("rn", "rz"):
        yield call(f"rcp.{mode}.ftz.f64", "f64", "f64")
    for op in ("add", "sub", "mul", "min", "max"):
        yield call(f"{op}.f64", "f64 f64", "f64")
    for op in ("abs", "neg"):
        yield call(f"{op}.f64", "f64", "f64")
    for use in (
        "mul.rn.f64 $d, t, $a;",
        "fma.rn.f64 $d, $a, t, $b;",
        "div.rn.f64 $d, $a, t;",
        "max.f64 $d, t, $b;",
        "mov.b64 $d, t;",
    ):
        yield form(f"{{.reg .f64 t; add.rn.f64 t, $a, $b; {use}}}", "f64 f64", "f64")


def newer() -> Iterator[Form]:
    for op, mode, ftz in product(("add", "sub", "mul", "fma"), MODES, ("", ".ftz")):
        yield call(f"{op}.{mode}{ftz}.f32x2", many("f32x2", SOURCES[op]), "b64")
    for op, of, mode, sat in product(("add", "sub", "fma"), ("f16", "bf16"), MODES, ("", ".sat")):
        yield call(f"{op}.{mode}{sat}.f32.{of}", f"{many(of, SOURCES[op] - 1)} f32", "f32")
    for op, ftz, nan, absolute in product(("min", "max"), ("", ".ftz"), ("", ".NaN"), ("", ".abs")):
        yield call(f"{op}{ftz}{nan}{absolute}.f32", "f32 f32 f32", "f32")
    for kind, out in (("e2m3", "b16"), ("e3m2", "b16"), ("e2m1", "b8")):
        for relu in ("", ".relu"):
            yield call(f"cvt.rn.satfinite{relu}.{kind}x2.f32", "f32 f32", out)
            yield call(f"cvt.rn{relu}.f16x2.{kind}x2", out, "b32")
    for mode, relu in product(("rn", "rz"), ("", ".relu")):
        yield call(f"cvt.{mode}{relu}.satfinite.tf32.f32", "f32", "b32")
    for mode, sat in product(("rz", "rp"), ("", ".satfinite")):
        yield call(f"cvt.{mode}{sat}.ue8m0x2.f32", "f32 f32", "b16")
        yield call(f"cvt.{mode}{sat}.ue8m0x2.bf16x2", "bf16x2", "b16")
    yield call("cvt.rn.bf16x2.ue8m0x2", "b16", "b32")
