"""f16 and bf16 arithmetic, single and packed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Form, call, form

SOURCES = {"add": 2, "sub": 2, "mul": 2, "fma": 3}


def both(name: str, t: str, n: int) -> Iterator[Form]:
    """The single and the packed form."""
    yield call(f"{name}.{t}", " ".join([t] * n), "b16")
    yield call(f"{name}.{t}x2", " ".join([f"{t}x2"] * n), "b32")


def halves() -> Iterator[Form]:
    for t in ("f16", "bf16"):
        ftzs = ("", ".ftz") if t == "f16" else ("",)
        for (op, n), ftz, clamp in product(SOURCES.items(), ftzs, ("", ".sat", ".relu")):
            if (clamp == ".relu" and op != "fma") or (clamp == ".sat" and t == "bf16"):
                continue
            yield from both(f"{op}.rn{ftz}{clamp}", t, n)
            if op != "fma":
                yield from both(f"{op}{ftz}{clamp}", t, n)
        for op, ftz, nan, xorsign in product(("min", "max"), ftzs, ("", ".NaN"), ("", ".xorsign.abs")):
            yield from both(f"{op}{ftz}{nan}{xorsign}", t, 2)
        for op, ftz in product(("abs", "neg"), ftzs):
            yield from both(f"{op}{ftz}", t, 1)
        for relu in ("", ".relu"):
            yield from both(f"fma.rn.oob{relu}", t, 3)
        # which NaN is the one of out-of-bounds reads: all patterns in every place
        one = "0x3C00" if t == "f16" else "0x3F80"
        for operands in ("$a, t, t", "t, $a, t", "t, t, $a"):
            yield form(f"{{.reg .b16 t; mov.b16 t, {one}; fma.rn.oob.{t} $d, {operands};}}", "all16", "b16")
    for op, n in SOURCES.items():  # results beside the smallest normal number
        yield call(f"{op}.rn.ftz.f16", " ".join(["tiny16"] * n), "b16")
        yield call(f"{op}.rn.f16", " ".join(["tiny16"] * n), "b16")
