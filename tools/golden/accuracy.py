"""Compares the emulator with the recordings of a GPU, and writes docs/accuracy.md.

PYTHONPATH=src:tools python -m golden.accuracy [--write]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import emulated, operands, store
from .forms import Bound, Form
from .operands import Array

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests/golden/h200"


@cache
def index() -> dict[str, Any]:
    return store.read_index(RECORDING)


def recorded(family: str) -> store.Results:
    """What the GPU gave, by key."""
    described = index()["families"][family]["forms"]
    return store.load(RECORDING, family, described) if described else {}


# ---- exact instructions ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Difference:
    """The first operands on which the emulator and the GPU disagree."""

    form: Form
    result: int
    count: int
    operands: tuple[int, ...]
    emulator: int
    hardware: int

    def __str__(self) -> str:
        given = ", ".join(f"{v:#x}" for v in self.operands)
        what = f"{self.form.text}: result {self.result} differs for {self.count} of {self.form.sets} operand sets"
        return f"{what}, first ({given}): {self.emulator:#x}, the GPU gives {self.hardware:#x}"


def difference(form: Form, ours: tuple[Array, ...], theirs: tuple[Array, ...]) -> Difference | None:
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        wrong = np.flatnonzero(a != b)
        if len(wrong):
            j = int(wrong[0])
            row = tuple(int(column[j]) for column in operands.rows(form.ins))
            return Difference(form, k, len(wrong), row, int(a[j]), int(b[j]))
    return None


def differences(family: str) -> list[Difference]:
    """All exact forms of a family that differ.  Where ptxas's optimisation changes a result, either one will do."""
    found = []
    hardware = recorded(family)
    for key, (form, values) in emulated.run(family).items():
        if form.bound is None and key in hardware:
            d = difference(form, values, hardware[key])
            plain = hardware.get(form.unoptimised.key)
            if d is not None and not (plain and difference(form, values, plain) is None):
                found.append(d)
    return found


# ---- approximations ----------------------------------------------------------------------------------
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "div": lambda x, y: x / y,
}


@dataclass(frozen=True)
class Format:
    """A floating-point format: its width and what its patterns mean."""

    name: str
    width: int
    mantissa: int
    lowest: int  # exponent of the smallest normal number
    largest: float

    def numbers(self, u: Array) -> Array:
        if self.name == "bf16":
            x: Array = (u.astype(np.uint32) << np.uint32(16)).view(np.float32)
        else:
            kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[self.name]
            x = np.ascontiguousarray(u.astype(f"u{self.width // 8}")).view(kind)
        with np.errstate(invalid="ignore"):  # signalling NaN
            return x.astype(np.longdouble if self.width == 64 else np.float64)

    def places(self, u: Array) -> Array:
        """The patterns as integers in the order of the numbers: neighbours differ by one."""
        top = 1 << (self.width - 1)
        s = u.astype(np.uint64).astype(np.int64) if self.width == 64 else u.astype(np.int64)
        if self.width == 64:
            return np.where(s < 0, np.int64(-(1 << 63)) - s, s)
        return np.where(s & top, top - s, s)


FORMATS = {
    "f16": Format("f16", 16, 10, -14, 65504.0),
    "bf16": Format("bf16", 16, 7, -126, float.fromhex("0x1.fep127")),
    "f32": Format("f32", 32, 23, -126, float.fromhex("0x1.fffffep127")),
    "f64": Format("f64", 64, 52, -1022, float.fromhex("0x1.fffffffffffffp1023")),
}


@dataclass(frozen=True)
class Measured:
    """An approximation on the GPU and on the emulator: largest errors (in the unit of the promise) and how far apart."""

    form: Form
    hardware: float
    emulator: float
    places: int  # how many numbers of the format they are apart
    gap: float  # the same in the unit of the promise
    equal: float
    broken: tuple[str, ...]  # where the emulator does not keep the promise, or a special value differs
    exceeded: tuple[str, ...]  # where the GPU does not keep the promise


def format_of(form: Form) -> Format:
    return FORMATS[form.name.split(".")[-1].removesuffix("x2")]


def halves(form: Form, u: Array) -> Array:
    """The numbers of packed patterns, lower halves first."""
    if form.name.endswith("x2"):
        return np.concatenate([u & np.uint64(0xFFFF), u >> np.uint64(16)])
    return u


def arguments(form: Form) -> list[Array]:
    """The operands as numbers, as the instruction sees them."""
    t = format_of(form)
    seen = []
    for column in operands.rows(form.ins):
        u = halves(form, column)
        if t.width == 64 and ".ftz" in form.name:
            u = u & np.uint64(0xFFFFFFFF_00000000)
        x = t.numbers(u)
        seen.append(np.where(np.abs(x) < 2.0**t.lowest, np.copysign(0, x), x) if ".ftz" in form.name else x)
    return seen


def units(t: Format, exact: Array) -> Array:
    """The spacing of the format's numbers where the exact result lies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(exact).astype(np.float64)))
    exponent = np.clip(np.nan_to_num(exponent, nan=t.lowest, neginf=t.lowest, posinf=t.lowest), t.lowest, None)
    spacing: Array = np.ldexp(1.0, (exponent - t.mantissa).astype(int))
    return spacing


def allowed(bound: Bound, t: Format, exact: Array) -> Array:
    """The error that the promise leaves; never less than the last place of subnormal numbers."""
    size = np.abs(exact)
    most = np.maximum(np.maximum(bound.ulp * units(t, exact), bound.relative * size), bound.absolute)
    return np.maximum(most, 2.0 ** (t.lowest - t.mantissa))


def in_unit(bound: Bound, t: Format, error: Array, exact: Array) -> Array:
    """An error in the unit of the promise: ulp, a fraction of the result, or absolute."""
    if bound.ulp:
        return error / units(t, exact)
    if bound.relative:
        least = bound.absolute / bound.relative if bound.absolute else 2.0**t.lowest
        return error / np.maximum(np.abs(exact), least)
    return error


@dataclass(frozen=True)
class Exact:
    """What a form should give: exact values, and where the promise holds."""

    form: Form
    bound: Bound
    format: Format
    args: list[Array]
    values: Array

    @classmethod
    def of(cls, form: Form) -> Exact:
        assert form.bound is not None
        args = arguments(form)
        with np.errstate(all="ignore"):
            values = FUNCTIONS[form.bound.function](*args)
        return cls(form, form.bound, format_of(form), args, values)

    def case(self, j: int) -> str:
        return f"{self.form.name} of {', '.join(f'{float(x[j]):.9g}' for x in self.args)}"

    def judge(self, u: Array) -> tuple[float, list[str]]:
        """The largest error of some results, in the unit of the promise, and a complaint if it is not kept."""
        t, exact, got = self.format, self.values, self.format.numbers(u)
        size, last = np.abs(exact), np.abs(self.args[-1])
        inside = (last >= self.bound.low) & (last <= self.bound.high)
        flushed = (size < 2.0**t.lowest * (1 + 2.0**-20)) & (".ftz" in self.form.name)
        with np.errstate(invalid="ignore"):
            error = np.abs(got - exact)
            fine = (error <= allowed(self.bound, t, exact)) | (flushed & (got == 0)) | ~inside
        fine |= np.isnan(exact) & np.isnan(got)
        fine |= (size > t.largest) & (np.abs(got) >= t.largest) & (np.signbit(got) == np.signbit(exact))
        counted = inside & np.isfinite(exact) & (size <= t.largest) & ~flushed
        worst = float(in_unit(self.bound, t, error, exact)[counted].max())
        wrong = np.flatnonzero(~fine)[:1].tolist()
        return worst, [f"{self.case(j)}: {float(got[j]):.9g}, exactly {float(exact[j]):.9g}" for j in wrong]


def measure(form: Form, ours: Array, theirs: Array) -> Measured:
    exact = Exact.of(form)
    t = exact.format
    ours, theirs = halves(form, ours), halves(form, theirs)
    hardware, exceeded = exact.judge(theirs)
    emulator, broken = exact.judge(ours)
    special = ~np.isfinite(t.numbers(theirs)) | (t.numbers(theirs) == 0)
    for j in np.flatnonzero(special & (ours != theirs))[:1].tolist():
        broken.append(f"{exact.case(j)}: {int(ours[j]):#x}, the GPU gives {int(theirs[j]):#x}")
    places = np.abs(t.places(ours) - t.places(theirs))[~special]
    gap = np.abs(t.numbers(ours[~special]) - t.numbers(theirs[~special]))
    gap = in_unit(exact.bound, t, gap, exact.values[~special])
    return Measured(
        form,
        hardware,
        emulator,
        places=int(places.max()),
        gap=float(gap[np.isfinite(gap)].max()),
        equal=float(np.mean(ours == theirs)),
        broken=tuple(broken),
        exceeded=tuple(exceeded),
    )


def approximations() -> list[Measured]:
    hardware = recorded("approximations")
    return [
        measure(form, values[0], hardware[key][0])
        for key, (form, values) in emulated.run("approximations").items()
        if form.bound is not None
    ]
