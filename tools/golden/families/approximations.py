"""Approximate functions, with the error that the PTX ISA allows them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Bound, Form, call

PI = 3.141592653589793

#: Function -> promise (PTX ISA 9.7.3, 9.7.4, 9.7.5), kinds of arguments.
SINGLE: dict[str, tuple[tuple[Bound, str], ...]] = {
    "ex2": ((Bound("ex2", "2 ulp", ulp=2.0), "exponent"), (Bound("ex2", "2 ulp", ulp=2.0), "fraction")),
    "lg2": (
        (Bound("lg2", "2^-22 relative; absolute in (0.5, 2)", relative=2.0**-22, absolute=2.0**-22), "positive"),
        (Bound("lg2", "2^-22 relative; absolute in (0.5, 2)", relative=2.0**-22, absolute=2.0**-22), "exponent"),
    ),
    "sin": (
        (Bound("sin", "2^-20.5 absolute in [-2pi, 2pi]", absolute=2.0**-20.5, high=2 * PI), "angle"),
        (Bound("sin", "2^-14.7 absolute in [-100pi, 100pi]", absolute=2.0**-14.7, high=100 * PI), "turns"),
    ),
    "cos": (
        (Bound("cos", "2^-20.5 absolute in [-2pi, 2pi]", absolute=2.0**-20.5, high=2 * PI), "angle"),
        (Bound("cos", "2^-14.7 absolute in [-100pi, 100pi]", absolute=2.0**-14.7, high=100 * PI), "turns"),
    ),
    "rcp": ((Bound("rcp", "1 ulp", ulp=1.0), "f32"), (Bound("rcp", "1 ulp", ulp=1.0), "positive")),
    "sqrt": ((Bound("sqrt", "2^-23 relative", relative=2.0**-23), "f32"), (Bound("sqrt", "2^-23 relative", relative=2.0**-23), "positive")),
    "rsqrt": (
        (Bound("rsqrt", "2^-22.9 relative", relative=2.0**-22.9), "f32"),
        (Bound("rsqrt", "2^-22.9 relative", relative=2.0**-22.9), "positive"),
    ),
}  # fmt: skip


def approximations() -> Iterator[Form]:
    for (op, cases), ftz in product(SINGLE.items(), ("", ".ftz")):
        for bound, kind in cases:
            yield call(f"{op}.approx{ftz}.f32", kind, "f32", bound)
    tanh = Bound("tanh", "2^-11 relative", relative=2.0**-11)
    for kind in ("tanh", "f32"):
        yield call("tanh.approx.f32", kind, "f32", tanh)
    for name, high in (("div.approx", 2.0**126), ("div.full", float("inf"))):
        for ftz in ("", ".ftz"):
            words = "2 ulp, divisor of 2^-126 to 2^126" if "approx" in name else "2 ulp"
            yield call(
                f"{name}{ftz}.f32",
                "f32 f32",
                "f32",
                Bound("div", words, ulp=2.0, low=2.0**-126 if "approx" in name else 0.0, high=high),
            )
    for t in ("f16", "bf16"):
        ftz = ".ftz" if t == "bf16" else ""
        ex2 = (
            Bound("ex2", "2^-9.9 relative", relative=2.0**-9.9)
            if t == "f16"
            else Bound("ex2", "2^-7 relative", relative=2.0**-7)
        )
        tanh = (
            Bound("tanh", "2^-10.987 absolute", absolute=2.0**-10.987)
            if t == "f16"
            else Bound("tanh", "2^-8 absolute", absolute=2.0**-8)
        )
        for x2 in ("", "x2"):
            yield call(f"ex2.approx{ftz}.{t}{x2}", f"all16{x2}", "b32" if x2 else "b16", ex2)
            yield call(f"tanh.approx.{t}{x2}", f"all16{x2}", "b32" if x2 else "b16", tanh)
    gross = "upper word only; no bound given, 2^-19 relative asked for here"
    yield call("rcp.approx.ftz.f64", "f64", "f64", Bound("rcp", gross, relative=2.0**-19))
    yield call("rsqrt.approx.ftz.f64", "f64", "f64", Bound("rsqrt", gross, relative=2.0**-19))
    yield call("rsqrt.approx.f64", "f64", "f64", Bound("rsqrt", "no bound given; 4 ulp asked for here", ulp=4.0))
