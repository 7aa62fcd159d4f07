"""f32, f64, f32x2 and mixed-precision arithmetic against exact rational arithmetic, and the error of approximations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import ieee
import numpy as np
import pytest
from floats import Array, all_exponents, same, spread, through, ulps
from harness import Form, Forms, check, operand_sets
from ieee import F32, F64, MODES, Format

Oracle = Callable[..., int]
TABLE: dict[Form, Oracle] = {}
EXACT: dict[str, tuple[int, Oracle]] = {
    "add": (2, ieee.add),
    "sub": (2, ieee.sub),
    "mul": (2, ieee.mul),
    "fma": (3, ieee.fma),
    "div": (2, ieee.div),
    "sqrt": (1, ieee.sqrt),
    "rcp": (1, lambda a, t, mode: ieee.div(ieee.encode(Fraction(1), t), a, t, mode)),
}


def form(name: str, ins: tuple[str, ...], out: str) -> Form:
    return Form(f"{name} $d, {', '.join(f'${c}' for c in 'abc'[: len(ins)])};", ins, (out,))


def around(oracle: Oracle, t: Format, mode: str | None, ftz: bool, sat: bool) -> Oracle:
    """An operation with the flushing and clamping of its modifiers."""

    def apply(*v: int) -> int:
        if ftz:
            v = tuple(ieee.flush(x, t) for x in v)
        r = oracle(*v, t, mode) if mode else oracle(*v)
        if ftz:
            r = ieee.flush_result(oracle, v, r, t, mode) if mode else ieee.flush(r, t)
        return ieee.saturate(r, t) if sat else r

    return apply


for op, (n, oracle) in EXACT.items():
    for mode, ftz, sat in product(MODES, (False, True), (False, True)):
        if not (sat and op in ("div", "sqrt", "rcp")):
            name = f"{op}.{mode}{'.ftz' * ftz}{'.sat' * sat}.f32"
            TABLE[form(name, ("f32",) * n, "f32")] = around(oracle, F32, mode, ftz, sat)
for op in ("add", "sub", "mul"):
    TABLE[form(f"{op}.f32", ("f32", "f32"), "f32")] = around(EXACT[op][1], F32, "rn", False, False)
TABLE[form("mad.rn.f32", ("f32",) * 3, "f32")] = around(ieee.fma, F32, "rn", False, False)

# min and max
for op, ftz, nan, extra in product(("min", "max"), (False, True), (False, True), ("", ".xorsign.abs", "3", "3.abs")):
    three, absolute, choose = extra[:1] == "3", "abs" in extra, min if op == "min" else max

    def extreme(
        *v: int, choose: Oracle = choose, nan: bool = nan, absolute: bool = absolute, three: bool = three
    ) -> int:
        r = ieee.extremum(F32, choose, nan, *(x & 0x7FFFFFFF if absolute else x for x in v))
        return r if ieee.is_nan(r, F32) or three or not absolute else r | (v[0] ^ v[1]) & F32.sign

    name = f"{op}{'.ftz' * ftz}{'.NaN' * nan}{extra.lstrip('3')}.f32"
    text = f"{name} $d, $a, $b{', $c' * three};"
    TABLE[Form(text, ("f32",) * (3 if three else 2), ("f32",))] = around(extreme, F32, None, ftz, False)
for ftz in (False, True):
    TABLE[form(f"neg{'.ftz' * ftz}.f32", ("f32",), "f32")] = lambda a, ftz=ftz: (
        F32.nan if ieee.is_nan(a, F32) else (ieee.flush(a, F32) if ftz else a) ^ F32.sign
    )
    TABLE[form(f"abs{'.ftz' * ftz}.f32", ("f32",), "f32")] = lambda a, ftz=ftz: (
        F32.nan if ieee.is_nan(a, F32) else (ieee.flush(a, F32) if ftz else a) & ~F32.sign
    )
QUIET = 1 << 51
TABLE[form("neg.f64", ("f64",), "f64")] = lambda a: a | QUIET if ieee.is_nan(a, F64) else a ^ F64.sign
TABLE[form("abs.f64", ("f64",), "f64")] = lambda a: a | QUIET if ieee.is_nan(a, F64) else a & ~F64.sign
TABLE[form("copysign.f32", ("f32", "f32"), "f32")] = lambda a, b: a & F32.sign | b & ~F32.sign

# f32x2
PAIR = (1 << 32) - 1
for op, mode, ftz in product(("add", "sub", "mul", "fma"), ("rn", "rz", "rm", "rp"), (False, True)):
    n, oracle = EXACT[op]
    one = around(oracle, F32, mode, ftz, False)
    TABLE[form(f"{op}.{mode}{'.ftz' * ftz}.f32x2", ("b64",) * n, "b64")] = lambda *v, one=one: (
        one(*(x & PAIR for x in v)) | one(*(x >> 32 for x in v)) << 32
    )

# mixed precision: the first sources are f16 or bf16
for op, of, mode, sat in product(("add", "sub", "fma"), ("f16", "bf16"), MODES, (False, True)):
    n, oracle = EXACT[op]

    def mixed(*v: int, oracle: Oracle = oracle, of: str = of, mode: str = mode) -> int:
        return oracle(*(ieee.convert(x, ieee.FORMATS[of], F32) for x in v[:-1]), v[-1], F32, mode)

    TABLE[form(f"{op}.{mode}{'.sat' * sat}.f32.{of}", (*(of,) * (n - 1), "f32"), "f32")] = around(
        mixed, F32, None, False, sat
    )

# f64: NaN payloads pass through, which has a test of its own
DOUBLE: dict[Form, Oracle] = {}
for op, (n, oracle) in EXACT.items():
    for mode in MODES:
        DOUBLE[form(f"{op}.{mode}.f64", ("f64",) * n, "f64")] = around(oracle, F64, mode, False, False)
for op, choose in (("min", min), ("max", max)):
    DOUBLE[form(f"{op}.f64", ("f64", "f64"), "f64")] = lambda a, b, choose=choose: ieee.extremum(
        F64, choose, False, a, b
    )

APPROXIMATED = ("ex2", "lg2", "sin", "cos", "rcp", "sqrt", "rsqrt", "div")
APPROXIMATE = {
    f: form(f, ("f32",) * (2 if f.startswith("div") else 1), "f32")
    for f in (
        *(f"{op}.approx{ftz}.f32" for op in APPROXIMATED for ftz in ("", ".ftz")),
        "div.full.f32", "div.full.ftz.f32", "tanh.approx.f32",
    )
}  # fmt: skip
GROSS = {op: form(op, ("f64",), "f64") for op in ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64")}
FORMS = Forms([*TABLE, *DOUBLE, *APPROXIMATE.values(), *GROSS.values()])


def rows_of(which: Form) -> list[tuple[int, ...]]:
    """Operands; those of f32x2 are made of two rows of f32."""
    if which.ins[0] != "b64":
        return list(operand_sets(which.ins))
    single = operand_sets(("f32",) * len(which.ins))
    return [
        tuple(x | y << 32 for x, y in zip(a, b, strict=True))
        for a, b in zip(single, single[1:] + single[:1], strict=True)
    ]


@pytest.mark.parametrize("which", TABLE, ids=str)
def test_exact(which: Form) -> None:
    check(FORMS, which, TABLE[which], rows_of(which), shares=2)


@pytest.mark.parametrize("which", DOUBLE, ids=str)
def test_double(which: Form) -> None:
    rows = [r for r in operand_sets(which.ins) if not any(ieee.is_nan(x, F64) for x in r)]
    check(FORMS, which, DOUBLE[which], rows[: len(rows) // 128 * 128], shares=2)


@pytest.mark.parametrize("which", DOUBLE, ids=str)
def test_double_nan(which: Form) -> None:
    """The payload of which operand comes through, as on an H200: the second, third, first one (of a division the first)."""
    order = (0, 1) if which.text.startswith("div") else (1, 2, 0)
    rows = [r for r in operand_sets(which.ins) if any(ieee.is_nan(x, F64) for x in r)]
    if which.text[:3] in ("min", "max"):
        rows = [r for r in rows if all(ieee.is_nan(x, F64) for x in r)]
    want = []
    for r in rows:
        first = next(r[k] for k in order if k < len(r) and ieee.is_nan(r[k], F64))
        want.append(first | QUIET)
    columns = [np.array(c, np.uint64) for c in zip(*rows, strict=True)]
    same(which, through(FORMS, which, *columns)[0], np.array(want, np.uint64), columns)


# ---- approximations ------------------------------------------------------------------------------------
def run(name: str, *inputs: Array) -> Array:
    return through(FORMS, APPROXIMATE[name], *inputs)[0].view(np.float32)


def angles() -> Array:
    return np.concatenate([spread(-100 * np.pi, 100 * np.pi), spread(-2 * np.pi, 2 * np.pi), spread(-1e-3, 1e-3, 4096)])


INF, NAN, TINY = float("inf"), float("nan"), 1e-40
CURVES: dict[str, tuple[Callable[[Array], Array], Callable[[], Array], float]] = {
    # exact function, inputs, largest error in ulp
    "ex2.approx.f32": (
        np.exp2,
        lambda: np.concatenate([spread(-152, 128), spread(-1, 1), spread(-1e-4, 1e-4, 4096)]),
        1.5,
    ),
    "lg2.approx.f32": (np.log2, lambda: np.concatenate([all_exponents(), spread(0.25, 4.0)]), 3.0),
    "sin.approx.f32": (np.sin, angles, INF),  # see below
    "cos.approx.f32": (np.cos, angles, INF),
    "tanh.approx.f32": (
        np.tanh,
        lambda: np.concatenate([spread(-12, 12), all_exponents(1 << 16), spread(-0.7, 0.7)]),
        INF,
    ),
    "rcp.approx.f32": (lambda x: 1 / x, all_exponents, 0.51),
    "sqrt.approx.f32": (np.sqrt, all_exponents, 0.51),
    "rsqrt.approx.f32": (lambda x: 1 / np.sqrt(x), all_exponents, 2.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_error_of_approximation(name: str, record_property: Callable[[str, object], None]) -> None:
    function, inputs, limit = CURVES[name]
    x = inputs()
    exact = function(x.astype(np.float64))
    with np.errstate(over="ignore"):
        exact = np.where(np.abs(exact) > np.finfo(np.float32).max, np.inf, exact)
    got = run(name, x)
    finite = np.isfinite(exact)
    assert np.array_equal(got[~finite], exact[~finite].astype(np.float32))
    error = ulps(got[finite], exact[finite])
    worst, absolute = x[finite][error.argmax()], np.abs(got[finite] - exact[finite]).max()
    print(f"{name}: {error.max():.3f} ulp, at {worst!r}; {absolute:.3g} absolute")
    record_property("ulp", float(error.max()))
    assert error.max() <= limit
    if name[:3] in ("sin", "cos"):
        near = np.abs(x) <= 2 * np.pi
        assert np.abs(got - exact)[near].max() <= 2**-20.5
        assert np.abs(got - exact).max() <= 2**-14.7
    if name == "tanh.approx.f32":
        assert (np.abs(got - exact) <= 2**-11 * np.abs(exact)).all()
    if name == "lg2.approx.f32":
        inside = (x > 0.5) & (x < 2)
        assert np.abs(got - exact)[inside].max() <= 2**-22
        assert (np.abs(got - exact) <= 2**-22 * np.abs(exact))[~inside].all()
    if name == "rsqrt.approx.f32":
        assert (np.abs(got - exact) <= 2**-22.9 * exact).all()


def test_reduction_of_angles() -> None:
    """sin and cos of any argument: x / 2pi cut to 24 bits, then to 25 places of a turn, as on an H200."""
    x = np.concatenate([all_exponents(1 << 14), -all_exponents(1 << 12), angles(), np.float32([1e6, 2.0**20, 3e38])])
    turns = x.astype(np.float64) * float(np.float32(1 / (2 * np.pi)))
    near = turns.astype(np.float32)
    cut = np.where(np.abs(near.astype(np.float64)) > np.abs(turns), np.nextafter(near, np.float32(0)), near)
    rest = np.trunc(np.fmod(cut.astype(np.float64), 1.0) * 2.0**25) * 2.0**-25 * 2 * np.pi
    for name, f in (("sin.approx.f32", np.sin), ("cos.approx.f32", np.cos)):
        got, want = run(name, x), f(rest)
        assert np.abs(got - want).max() < 1.2e-7
        assert not np.signbit(got[(rest == 0) & (x > 0)]).any()
    assert np.signbit(run("sin.approx.f32", np.float32([-1e-9]))).all()


SPECIAL = [-INF, -1.0, -TINY, -0.0, 0.0, TINY, INF, NAN]
#: Results for SPECIAL, from the tables of the PTX ISA; None: not a special case of this function.
TABLES: dict[str, list[float | None]] = {
    "ex2.approx.f32": [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, INF, NAN],
    "ex2.approx.ftz.f32": [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, INF, NAN],
    "lg2.approx.f32": [NAN, NAN, NAN, -INF, -INF, None, INF, NAN],
    "lg2.approx.ftz.f32": [NAN, NAN, -INF, -INF, -INF, -INF, INF, NAN],
    "sin.approx.f32": [NAN, None, -0.0, -0.0, 0.0, 0.0, NAN, NAN],  # the PTX ISA keeps subnormals, an H200 does not
    "sin.approx.ftz.f32": [NAN, None, -0.0, -0.0, 0.0, 0.0, NAN, NAN],
    "cos.approx.f32": [NAN, None, 1.0, 1.0, 1.0, 1.0, NAN, NAN],
    "cos.approx.ftz.f32": [NAN, None, 1.0, 1.0, 1.0, 1.0, NAN, NAN],
    "tanh.approx.f32": [-1.0, None, -TINY, -0.0, 0.0, TINY, 1.0, NAN],
    "rcp.approx.f32": [-0.0, -1.0, -INF, -INF, INF, INF, 0.0, NAN],
    "rcp.approx.ftz.f32": [-0.0, -1.0, -INF, -INF, INF, INF, 0.0, NAN],
    "sqrt.approx.f32": [NAN, NAN, NAN, -0.0, 0.0, None, INF, NAN],
    "sqrt.approx.ftz.f32": [NAN, NAN, -0.0, -0.0, 0.0, 0.0, INF, NAN],
    "rsqrt.approx.f32": [NAN, NAN, NAN, -INF, INF, None, 0.0, NAN],
    "rsqrt.approx.ftz.f32": [NAN, NAN, -INF, -INF, INF, INF, 0.0, NAN],
}


@pytest.mark.parametrize("name", TABLES)
def test_special_values(name: str) -> None:
    got = run(name, np.float32(SPECIAL))
    for x, g, want in zip(SPECIAL, got.view(np.uint32), TABLES[name], strict=True):
        if want is not None:
            expected = 0x7FFFFFFF if want != want else int(np.float32(want).view(np.uint32))
            assert int(g) == expected, f"{name}({x}): {int(g):#x}, expected {expected:#x}"


def test_flushed_results() -> None:
    """.ftz: results below 2^-126 are zero."""
    x = np.float32([-126, -126.5, -140, -160])
    assert run("ex2.approx.ftz.f32", x).tolist() == [2.0**-126, 0, 0, 0]
    assert (run("ex2.approx.f32", x)[:3] > 0).all()
    assert run("rcp.approx.ftz.f32", np.float32([2.0**126, 2.0**127, -(2.0**127)])).view(np.uint32).tolist() == [
        0x00800000,
        0,
        0x80000000,
    ]


@pytest.mark.parametrize("name", ["div.approx.f32", "div.full.f32"])
def test_approximate_division(name: str) -> None:
    """At most 2 ulp; div.approx gives 0 for 2^126 < |b| < 2^128, and NaN if a is infinite there."""
    b = all_exponents(seed=5)
    a = all_exponents(seed=6) * np.float32(-1)
    inside = (b >= 2.0**-126) & (b <= 2.0**126) if "approx" in name else b > 0
    exact = a.astype(np.float64) / b.astype(np.float64)
    got = run(name, a, b)
    with np.errstate(over="ignore"):
        inside &= np.isfinite(exact.astype(np.float32))
    error = ulps(got[inside], exact[inside])
    print(f"{name}: {error.max():.3f} ulp")
    assert error.max() <= 2
    if "approx" in name:
        huge = (b > 2.0**126) & np.isfinite(b)
        assert huge.any()
        assert (got[huge].view(np.uint32) == 0x80000000).all()
        assert np.isnan(run(name, np.float32([INF, -INF]), np.float32([2.0**127, 1.5 * 2.0**126]))).all()
        assert run(name, np.float32([INF, 3.0]), np.float32([2.0, INF])).tolist() == [INF, 0.0]


def test_gross_double_approximations() -> None:
    """rcp and rsqrt.approx.ftz.f64: the upper 32 bits of a double in and out."""
    rng = np.random.default_rng(3)
    x = rng.integers(0x0010_0000_0000_0000, 0x7FF0_0000_0000_0000, 1 << 16, np.uint64)
    for name, f in (("rcp.approx.ftz.f64", lambda v: 1 / v), ("rsqrt.approx.ftz.f64", lambda v: 1 / np.sqrt(v))):
        got = through(FORMS, GROSS[name], x)[0]
        assert not (got & np.uint64(0xFFFFFFFF)).any()
        exact = f(x.view(np.float64))
        normal = exact >= np.finfo(np.float64).tiny
        assert (got[~normal] == 0).all()
        error = np.abs(got.view(np.float64)[normal] / exact[normal] - 1)
        print(f"{name}: relative error {error.max():.3g}")
        assert error.max() < 2**-19
        special = np.array([-INF, -1e-310, -0.0, 0.0, 1e-310, INF, NAN])
        want = [-0.0, -INF, -INF, INF, INF, 0.0, NAN] if name[1] == "c" else [NAN, -INF, -INF, INF, INF, 0.0, NAN]
        bits = through(FORMS, GROSS[name], special)[0]
        for g, w in zip(bits.tolist(), want, strict=True):
            assert g == (0x7FFFFFFF00000000 if w != w else int(np.float64(w).view(np.uint64)))
    got = through(FORMS, GROSS["rsqrt.approx.f64"], x)[0].view(np.float64)
    assert np.abs(got * np.sqrt(x.view(np.float64)) - 1).max() < 1e-15


REFUSED = [
    "add.rn.relu.f32 $d, $a, $b;",
    "fma.f32 $d, $a, $b, $c;",
    "div.f32 $d, $a, $b;",
    "div.approx.rn.f32 $d, $a, $b;",
    "ex2.f32 $d, $a;",
    "sin.approx.sat.f32 $d, $a;",
    "sqrt.f32 $d, $a;",
    "min.xorsign.f32 $d, $a, $b;",
    "add.rn.rz.f32 $d, $a, $b;",
    "mul.rn.f32.f16 $d, $a, $b;",
]


@pytest.mark.parametrize("text", REFUSED)
def test_unknown_forms_are_refused(text: str) -> None:
    bad = Forms([Form(text, ("f32",) * 3, ("f32",))])
    with pytest.raises(Exception, match=text.split(maxsplit=1)[0].replace(".", r"\.")):
        through(bad, bad.forms[0], *[np.zeros(128, np.float32)] * 3)
