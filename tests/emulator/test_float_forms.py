"""The floating-point and cvt forms that the emulator takes are exactly those that ptxas takes.

Except directed rounding of bf16 fma, which the PTX ISA does not have: ptxas takes it, and an H200 then gives nonsense.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from warpsmith.devices.emulator.compiler import CompileError, CompileOptions, lower_kernel
from warpsmith.ptx.parser import parse
from warpsmith.toolchains.toolkit import toolkit

HEADER = ".version 9.0\n.target sm_100a\n.address_size 64\n"
REGISTERS = "".join(f".reg .{t} %{t}_<5>;\n" for t in ("b8", "b16", "b32", "b64", "f32", "f64"))
CHUNK = 400  # instructions in one kernel


class Candidate(NamedTuple):
    name: str
    ins: tuple[str, ...]
    out: str

    @property
    def text(self) -> str:
        sources = ", ".join(f"%{t}_{n}" for n, t in enumerate(self.ins, 1))
        return f"{self.name} %{self.out}_0, {sources};"


SINGLE = ("f32", "f64", "f32x2", "f16", "f16x2", "bf16", "bf16x2")
INTEGERS = tuple(f"{k}{n}" for k in "su" for n in (8, 16, 32, 64))
SMALL = ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2")
WIDTHS = {
    "f16x2": 32,
    "bf16x2": 32,
    "f32x2": 64,
    "tf32": 32,
    "e2m1x2": 8,
    **dict.fromkeys(SMALL[:4], 16),
    "ue8m0x2": 16,
}
ROUNDED = ("", "rn", "rz", "rm", "rp")
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3}
OTHERS = {"div": 2, **dict.fromkeys(("sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), 1)}


def register(ty: str) -> str:
    if ty in ("f32", "f64"):
        return ty
    width = WIDTHS.get(ty) or int(re.sub(r"\D", "", ty))
    return f"b{16 if width == 8 and ty not in WIDTHS else width}"  # 8-bit integers live in 16-bit registers


def named(op: str, mods: Iterable[object], *types: str) -> str:
    return ".".join((op, *(str(m) for m in mods if m), *types))


def arithmetic_forms() -> Iterator[Candidate]:
    for ty in SINGLE:
        r = register(ty)
        for op, n in ARITHMETIC.items():
            for m in product(ROUNDED, ("", "ftz"), ("", "sat", "relu")):
                yield Candidate(named(op, m, ty), (r,) * n, r)
        for op, n in OTHERS.items():
            for m in product(("", "approx", "full", "rn", "rz"), ("", "ftz"), ("", "sat")):
                yield Candidate(named(op, m, ty), (r,) * n, r)
        for op, n, *m4 in product(
            ("min", "max"), (2, 3), ("", "ftz"), ("", "NaN"), ("", "xorsign.abs", "abs"), ("", "sat")
        ):
            yield Candidate(named(str(op), m4, ty), (r,) * int(n), r)
        for op, *m2 in product(("abs", "neg"), ("", "ftz"), ("", "sat")):
            yield Candidate(named(op, m2, ty), (r,), r)
    for (op, n), half in product((*ARITHMETIC.items(), ("div", 2), ("min", 2)), ("f16", "bf16")):
        for m in product(ROUNDED, ("", "ftz"), ("", "sat")):
            yield Candidate(named(op, m, "f32", half), (*("b16",) * (n - 1), "f32"), "f32")


def conversions() -> Iterator[Candidate]:
    floats = ("f16", "bf16", "f32", "f64")
    modes = ("", "rn", "rz", "rm", "rp", "rni", "rzi", "rna")
    packed = ("f16x2", "bf16x2", *SMALL)
    for to, of in product((*INTEGERS, *floats, "tf32", *packed), (*INTEGERS, *floats, *packed)):
        mods: Iterator[tuple[str, ...]]
        if to in INTEGERS and of in INTEGERS:
            mods = product(("", "rn", "rni"), ("", "sat", "relu"))
        elif to in INTEGERS or of in INTEGERS:
            mods = product(modes, ("", "ftz"), ("", "sat", "satfinite"))
        else:
            mods = product(modes, ("", "ftz"), ("", "sat", "relu", "satfinite", "satfinite.relu"))
        n = 2 if to.endswith("x2") and of == "f32" else 1
        if not {to, of} & {"s8", "u8"} or "bf16" not in (to, of):  # ptxas is particular about the registers of those
            for m in mods:
                yield Candidate(named("cvt", m, to, of), (register(of),) * n, register(to))


def accepted_by_ptxas(candidates: list[Candidate], folder: Path) -> set[Candidate]:
    """ptxas reports every line that it does not take, though not always all in one run."""
    left = candidates
    for _ in range(8):
        lines = HEADER.rstrip().split("\n")
        where = {}
        for k in range(0, len(left), CHUNK):
            lines += f".visible .entry k{k}()\n{{\n{REGISTERS}".rstrip().split("\n")
            for c in left[k : k + CHUNK]:
                lines.append(c.text)
                where[len(lines)] = c
            lines += ["ret;", "}"]
        source = folder / "forms.ptx"
        source.write_text("\n".join(lines) + "\n")
        command = [
            str(toolkit().root / "bin" / "ptxas"),
            "-arch=sm_100a",
            "-O0",
            str(source),
            "-o",
            str(folder / "forms.cubin"),
        ]
        log = subprocess.run(command, capture_output=True, text=True, check=False)
        wrong = {where[int(n)] for n in re.findall(r"line (\d+); error", log.stderr) if int(n) in where}
        if not wrong:
            assert log.returncode == 0, log.stderr[:500]
            return set(left)
        left = [c for c in left if c not in wrong]
    raise AssertionError("ptxas found new errors in every run")


def accepted_by_emulator(c: Candidate) -> bool:
    module = parse(f"{HEADER}.visible .entry k()\n{{\n{REGISTERS}{c.text}\nret;\n}}\n")
    try:
        lower_kernel(module, "k", CompileOptions())
    except CompileError as e:
        if c.name not in str(e):
            raise  # the message does not say which instruction it is
        return False
    return True


@pytest.mark.parametrize("forms", [arithmetic_forms, conversions])
def test_forms_are_those_of_ptxas(forms: Callable[[], Iterator[Candidate]], tmp_path: Path) -> None:
    candidates = list(dict.fromkeys(forms()))
    theirs = {c for c in accepted_by_ptxas(candidates, tmp_path) if not re.match(r"fma\.r[zmp](\.relu)?\.bf16", c.name)}
    assert len(theirs) > 100
    ours = {c for c in candidates if accepted_by_emulator(c)}
    assert sorted(c.text for c in theirs - ours) == [], "ptxas takes these, the emulator does not"
    assert sorted(c.text for c in ours - theirs) == [], "the emulator takes these, ptxas does not"
