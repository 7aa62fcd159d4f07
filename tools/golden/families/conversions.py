"""cvt in all directions, cvt.pack, tf32 and 8-bit formats."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Form, call, form

INTEGERS = tuple(f"{k}{n}" for n in (8, 16, 32, 64) for k in "us")
FLOATS = ("f16", "bf16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")
DIGITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
RANGE = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}


def source(t: str, other: str = "") -> str:
    """The kind of an integer source: 8-bit ones in a register with something else above them (bf16 takes no such)."""
    return f"{t}in32" if t[1:] == "8" and other != "bf16" else t


def target(t: str, other: str = "") -> str:
    """The register of a result: 8-bit ones are extended (from bf16 they are not)."""
    if t[1:] == "8":
        return "b8" if other == "bf16" else "b32"
    return {"f16": "b16", "bf16": "b16"}.get(t, t)


def limits(t: str) -> tuple[int, int]:
    n = int(t[1:])
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == "s" else (0, (1 << n) - 1)


def from_integers() -> Iterator[Form]:
    for to, of in product(INTEGERS, INTEGERS):
        yield call(f"cvt.{to}.{of}", source(of), target(to))
        if not (limits(to)[0] <= limits(of)[0] and limits(of)[1] <= limits(to)[1]):
            yield call(f"cvt.sat.{to}.{of}", source(of), target(to))
    # into wider registers
    yield call("cvt.s8.s32", "s32", "s64")
    yield call("cvt.u8.s32", "s32", "u64")
    yield call("cvt.s16.u64", "u64", "s64")
    for t in ("s16", "u16", "s8", "u8", "s4", "u4", "s2", "u2"):
        small = t[1:] != "16"
        yield call(f"cvt.pack.sat.{t}.s32{'.b32' * small}", "s32 s32" + " b32" * small, "b32")
    for to, of, mode in product(FLOATS, INTEGERS, MODES):
        yield call(f"cvt.{mode}.{to}.{of}", source(of, to), target(to))
        if to != "bf16":
            yield call(f"cvt.{mode}.sat.{to}.{of}", source(of), target(to))
        for sat in ("", ".sat") if to == "f32" else ():
            yield call(f"cvt.{mode}.ftz{sat}.f32.{of}", source(of), "f32")


def to_integers() -> Iterator[Form]:
    for of, to, mode in product(FLOATS, INTEGERS, INTEGRAL):
        yield call(f"cvt.{mode}.{to}.{of}", f"{of}i", target(to, of))
        if of != "bf16":
            yield call(f"cvt.{mode}.sat.{to}.{of}", f"{of}i", target(to))
        for sat in ("", ".sat") if of == "f32" else ():
            yield call(f"cvt.{mode}.ftz{sat}.{to}.{of}", f"{of}i", target(to))
    for of, mode in product(FLOATS, INTEGRAL):
        yield call(f"cvt.{mode}.{of}.{of}", f"{of}i", target(of))
        if of == "f32":
            yield call(f"cvt.{mode}.ftz.f32.f32", "f32i", "f32")
            yield call(f"cvt.{mode}.ftz.sat.f32.f32", "f32i", "f32")
        if of != "bf16":
            yield call(f"cvt.{mode}.sat.{of}.{of}", f"{of}i", target(of))


def between_floats() -> Iterator[Form]:
    for to, of in product(FLOATS, FLOATS):
        exact = DIGITS[to] >= DIGITS[of] and RANGE[to] >= RANGE[of]
        modes: tuple[str, ...] = ("",) if exact else MODES
        if "bf16" in (to, of) and to != of and (exact or "f16" in (to, of)):
            modes = ("", *MODES)
        for mode, ftz, sat in product(modes, ("", ".ftz"), ("", ".sat")):
            if (ftz and "f32" not in (to, of)) or (sat and "bf16" in (to, of)):
                continue
            name = f"cvt{'.' * bool(mode)}{mode}{ftz}{sat}.{to}.{of}"
            yield call(name, of, target(to))
            if of in ("f32", "f64") and to != of:
                yield call(name, f"{of}n", target(to))
    for t, mode, relu, finite in product(("f16", "bf16"), ("rn", "rz"), ("", ".relu"), ("", ".satfinite")):
        if relu or finite:
            yield call(f"cvt.{mode}{relu}{finite}.{t}.f32", "f32n", "b16")
        yield call(f"cvt.{mode}{relu}{finite}.{t}x2.f32", "f32n f32", "b32")
    for mode, relu, finite in product(("rna", "rn", "rz"), ("", ".relu"), ("", ".satfinite")):
        if not (mode == "rna" and relu) and not (mode != "rna" and finite):
            yield call(f"cvt.{mode}{relu}{finite}.tf32.f32", "f32n", "b32")
    for kind, relu in product(("e4m3", "e5m2"), ("", ".relu")):
        yield call(f"cvt.rn.satfinite{relu}.{kind}x2.f32", "f32n f32", "b16")
        yield call(f"cvt.rn.satfinite{relu}.{kind}x2.f16x2", "all16x2", "b16")
        yield call(f"cvt.rn{relu}.f16x2.{kind}x2", "all16", "b32")
    # the packed halves of wider results
    yield form("{.reg .b32 t; cvt.rn.f16x2.f32 t, $a, $b; mov.b32 {$d, $d1}, t;}", "f32 f32", "b16 b16")
