"""f16 and bf16 arithmetic, single and packed, against exact arithmetic; one-operand forms over all 65536 inputs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import ieee
import numpy as np
import pytest
from floats import Array, same, through
from harness import Form, Forms, check, operand_sets
from ieee import BF16, F16, Format
from ml_dtypes import bfloat16

Oracle = Callable[..., int]
TABLE: dict[Form, Oracle] = {}
BINARY: dict[str, tuple[int, Oracle]] = {
    "add": (2, ieee.add),
    "sub": (2, ieee.sub),
    "mul": (2, ieee.mul),
    "fma": (3, ieee.fma),
}
TYPES = {"f16": F16, "bf16": BF16}


def form(name: str, ins: tuple[str, ...], out: str) -> Form:
    return Form(f"{name} $d, {', '.join(f'${c}' for c in 'abc'[: len(ins)])};", ins, (out,))


def paired(one: Oracle) -> Oracle:
    """The same operation on both halves of packed operands."""
    return lambda *v: one(*(x & 0xFFFF for x in v)) | one(*(x >> 16 for x in v)) << 16


def modified(oracle: Oracle, t: Format, ftz: bool, sat: bool, relu: bool, exact: Oracle | None = None) -> Oracle:
    """``exact``: the same operation in any format."""

    def apply(*v: int) -> int:
        if ftz:
            v = tuple(ieee.flush(x, t) for x in v)
        r = oracle(*v)
        if ftz and exact:
            r = ieee.flush_result(exact, v, r, t, "rn")
        return ieee.saturate(r, t) if sat else ieee.relu(r, t) if relu else r

    return apply


def enter(name: str, ty: str, n: int, oracle: Oracle) -> None:
    """Put the single and the packed form into the table."""
    TABLE[form(f"{name}.{ty}", (ty,) * n, ty)] = oracle
    TABLE[form(f"{name}.{ty}x2", (f"{ty}x2",) * n, f"{ty}x2")] = paired(oracle)


for ty, t in TYPES.items():
    for op, (n, exact) in BINARY.items():
        for ftz, clamp in product((False, True), ("", "sat", "relu")):
            if (ty == "bf16" and (ftz or clamp == "sat")) or (clamp == "relu" and op != "fma"):
                continue
            name = f"{op}.rn{'.ftz' * ftz}{'.' * bool(clamp)}{clamp}"
            enter(
                name,
                ty,
                n,
                modified(lambda *v, exact=exact, t=t: exact(*v, t), t, ftz, clamp == "sat", clamp == "relu", exact),
            )
    for op, ftz, nan, xorsign in product(("min", "max"), (False, True), (False, True), (False, True)):

        def extreme(
            a: int,
            b: int,
            t: Format = t,
            choose: Oracle = min if op == "min" else max,
            nan: bool = nan,
            xorsign: bool = xorsign,
        ) -> int:
            mask = t.sign - 1 if xorsign else (t.sign << 1) - 1
            r = ieee.extremum(t, choose, nan, a & mask, b & mask)
            return r | (a ^ b) & t.sign if xorsign and not ieee.is_nan(r, t) else r

        if not (ty == "bf16" and ftz):
            enter(
                f"{op}{'.ftz' * ftz}{'.NaN' * nan}{'.xorsign.abs' * xorsign}",
                ty,
                2,
                modified(extreme, t, ftz, False, False),
            )
TABLE[form("add.f16", ("f16", "f16"), "f16")] = lambda a, b: ieee.add(a, b, F16)

UNARY: dict[Form, tuple[str, Oracle]] = {}
for ty, t in TYPES.items():
    for ftz in (False, True) if ty == "f16" else (False,):
        for op, change in (("neg", lambda u, t: u ^ t.sign), ("abs", lambda u, t: u & ~t.sign)):

            def unary(u: int, t: Format = t, change: Oracle = change, ftz: bool = ftz) -> int:
                return t.nan if ieee.is_nan(u, t) else change(ieee.flush(u, t) if ftz else u, t)

            UNARY[form(f"{op}{'.ftz' * ftz}.{ty}", (ty,), ty)] = (ty, unary)
            UNARY[form(f"{op}{'.ftz' * ftz}.{ty}x2", (f"{ty}x2",), f"{ty}x2")] = (ty, unary)
#: Form -> function, largest relative and absolute error (PTX ISA 9.7.4.9, 9.7.4.10)
CURVES: dict[Form, tuple[Callable[[Array], Array], float, float]] = {
    form(f"{name}{x2}", (name.rsplit(".", 1)[1] + x2,), name.rsplit(".", 1)[1] + x2): (function, relative, absolute)
    for name, function, relative, absolute in (
        ("ex2.approx.f16", np.exp2, 2**-9.9, 2.0**-24),
        ("ex2.approx.ftz.bf16", np.exp2, 2**-7, 0.0),
        ("tanh.approx.f16", np.tanh, 0.0, 2**-10.987),
        ("tanh.approx.bf16", np.tanh, 0.0, 2**-8),
    )
    for x2 in ("", "x2")
}
FORMS = Forms([*TABLE, *UNARY, *CURVES])


@pytest.mark.parametrize("which", TABLE, ids=str)
def test_exact(which: Form) -> None:
    check(FORMS, which, TABLE[which], operand_sets(which.ins), shares=2)


@pytest.mark.parametrize("ty", TYPES)
def test_fma_rounds_once(ty: str) -> None:
    """Sums that lie just beside the middle of two numbers: rounding twice would get them wrong."""
    t = TYPES[ty]
    rng = np.random.default_rng(7)
    one = (t.infinity >> 1) & ~((1 << t.mantissa) - 1)
    rows = []
    while len(rows) < 4096:
        a, b = (one + int(v) for v in rng.integers(-2 << t.mantissa, 2 << t.mantissa, 2))
        product = ieee.value(a, t) * ieee.value(b, t)
        # c makes a*b + c a middle, or one unit of c's or of the product's last place beside it
        c = ieee.encode(ieee.value(one + (int(rng.integers(0, 12)) << t.mantissa), t) - product, t)
        rows.append((a, b, (c + int(rng.integers(-1, 2))) & ((t.sign << 1) - 1)))
        # (1 + x)(1 - x) lies just below 1, half the spacing of this c
        x, n = (int(v) for v in rng.integers(1, 1 << t.mantissa - 3, 2))
        unit = Fraction(1, 1 << t.mantissa)
        near = [ieee.encode(v, t) for v in (1 + x * unit, 1 - x * unit, (2 << t.mantissa) + Fraction(2 * n))]
        rows.append((near[0] ^ int(rng.integers(0, 2)) * t.sign, near[1], near[2]))
        tiny = int(rng.integers(1, 1 << t.mantissa)) | (int(rng.integers(0, 2)) * t.sign)
        rows.append((a, b, tiny))
    which = form(f"fma.rn.{ty}", (ty,) * 3, ty)
    columns = [np.array(c, np.uint16) for c in zip(*rows, strict=True)]
    want = np.array([ieee.fma(*row, t) for row in rows], np.uint16)
    same(which, through(FORMS, which, *columns)[0], want, columns)


def everything(which: Form) -> Array:
    """All 16-bit patterns, in both halves of packed operands."""
    x = np.arange(65536, dtype=np.uint32)
    return x | (x * 40503 + 12345 & 0xFFFF) << 16 if which.ins[0].endswith("x2") else x.astype(np.uint16)


def apart(which: Form, v: Array) -> Array:
    return np.concatenate([v & 0xFFFF, v >> 16]).astype(np.uint16) if which.ins[0].endswith("x2") else v


@pytest.mark.parametrize("which", UNARY, ids=str)
def test_every_input(which: Form) -> None:
    _, oracle = UNARY[which]
    x = everything(which)
    table = np.array([oracle(u) for u in range(65536)], np.uint16)
    got = through(FORMS, which, x)[0]
    assert np.array_equal(apart(which, got), table[apart(which, x)])


@pytest.mark.parametrize("which", CURVES, ids=str)
def test_error_of_approximation(which: Form) -> None:
    function, relative, absolute = CURVES[which]
    dtype = bfloat16 if "bf16" in which.text else np.float16
    x = everything(which)
    bits = apart(which, through(FORMS, which, x)[0])
    got, exact = bits.view(dtype).astype(np.float64), apart(which, x).view(dtype).astype(np.float64)
    nan = np.isnan(exact)
    assert (bits[nan] == 0x7FFF).all()
    got, exact = got[~nan], exact[~nan]
    if ".ftz" in which.text:
        exact = np.where(np.abs(exact) < 2.0**-126, 0, exact)
    with np.errstate(over="ignore"):
        exact = function(exact)
    if ".ftz" in which.text:
        exact = np.where(exact < 2.0**-126, 0, exact)
    largest = 65504 if dtype is np.float16 else float.fromhex("0x1.fep127")
    overflow = exact > largest
    assert (np.isinf(got[overflow]) | (got[overflow] == largest)).all()
    assert np.isinf(got[exact >= 2.0 ** np.ceil(np.log2(largest))]).all()
    error = np.abs(got - exact)[~overflow]
    scale = np.maximum(np.abs(exact[~overflow]), np.finfo(np.float64).tiny)
    print(
        f"{which}: relative error {np.where(error > absolute, error / scale, 0).max():.3g}, absolute {error.max():.3g}"
    )
    assert (error <= np.maximum(relative * scale, absolute)).all()


REFUSED = {
    "fma.rz.bf16 $d, $a, $b, $c;": "bf16", "fma.rz.f16 $d, $a, $b, $c;": "f16", "add.sat.bf16 $d, $a, $b;": "bf16",
    "mul.ftz.bf16 $d, $a, $b;": "bf16", "fma.rn.sat.relu.f16 $d, $a, $b, $c;": "f16", "ex2.approx.bf16 $d, $a;": "bf16",
    "ex2.approx.ftz.f16 $d, $a;": "f16", "tanh.f16 $d, $a;": "f16",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_unknown_forms_are_refused(text: str) -> None:
    bad = Forms([Form(text, (REFUSED[text],) * 3, (REFUSED[text],))])
    with pytest.raises(Exception, match=text.split(maxsplit=1)[0].replace(".", r"\.")):
        through(bad, bad.forms[0], *[np.zeros(128, np.uint16)] * 3)
