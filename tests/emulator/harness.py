"""Runs single PTX instructions over arrays and compares them with an oracle.

A ``Form`` is one form of an instruction as PTX text with ``$a $b $c $e`` for its inputs and ``$d`` (``$d1``, ``$d2``,
``$d3``) for its results, and the PTX types of both::

    ADD = Form("add.u32 $d, $a, $b;", ("u32", "u32"), ("u32",))

``Forms`` compiles many of them as one PTX module.  Each form becomes one kernel that runs it in every
way in which the emulator treats operands differently: on lanes, under a guard, on values that all lanes
share, and on mixtures.  ``check`` compares all of that with an oracle on Python integers (bit patterns)::

    FORMS = Forms([ADD, ...])
    check(FORMS, ADD, lambda a, b: a + b)

``floats.through`` runs whole arrays through one form.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import pytest

import warpsmith
from warpsmith.devices.base import Device
from warpsmith.errors import UnsupportedInstructionError
from warpsmith.ptx.ast import TYPE_BITS

Array = np.ndarray[Any, Any]
INPUTS = "abce"
BLOCK = 128
#: What a register holds before an instruction that its guard may skip.
OLD = 0xA5C3965A_3CA5695A


@dataclass(frozen=True)
class Form:
    """An instruction (or a few) with its operand types; ``kinds`` says which values make sense as inputs
    (see ``draw``; by default any of the type)."""

    text: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def bits(ptx_type: str) -> int:
    """Width of the value, at least a byte."""
    return max(TYPE_BITS[ptx_type], 8)


def dtype(ptx_type: str) -> np.dtype[Any]:
    """The unsigned numpy type of the bit pattern."""
    return np.dtype(f"u{bits(ptx_type) // 8}")


# ---- values ------------------------------------------------------------------------------------------
def corners(width: int) -> list[int]:
    """Bit patterns where integer instructions go wrong, as unsigned numbers."""
    top = 1 << (width - 1)
    half = 1 << (width // 2)
    signed = (0, 1, 2, 3, 7, 10, -1, -2, -3, -7, top, top + 1, top - 1, top - 2, half, half - 1, half + 1, -half, ~half)
    patterns = (0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 0x0123456789ABCDEF, 0x80FF7F0180FF7F01)
    return list(dict.fromkeys(v & ((1 << width) - 1) for v in (*signed, *patterns)))


def float_corners(exponent: int, mantissa: int) -> list[int]:
    """Bit patterns of special floating-point numbers."""
    top = (1 << exponent) - 1
    one = (top >> 1) << mantissa
    full = (1 << mantissa) - 1
    positive = [
        0,
        1,
        2,
        full,
        full + 1,
        full + 2,
        one - 1,
        one,
        one + 1,
        one + (full >> 1),
        one + (1 << mantissa),
        (top << mantissa) - 1,
        top << mantissa,
        (top << mantissa) + 1,
        (top << mantissa) | (full + 1) >> 1,
        (top << mantissa) | full,
    ]
    return [s | v for v in positive for s in (0, 1 << (exponent + mantissa))]


FLOATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
AMOUNTS = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    12,
    15,
    16,
    17,
    24,
    30,
    31,
    32,
    33,
    40,
    47,
    48,
    62,
    63,
    64,
    65,
    127,
    128,
    129,
    200,
    254,
    255,
    256,
    257,
    287,
    288,
    300,
    0x10000,
    0x10001,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFE0,
    0xFFFFFFFF,
]
BASES: dict[str, list[int]] = {
    "amount": AMOUNTS,
    "lane": list(range(32)),
    "rank": [*range(34), *(-k & 0xFFFFFFFF for k in range(1, 34)), 0x80000001, 0x7FFFFFFF],
    "pred": [0, 1],
}


@cache
def base_values(kind: str) -> list[int]:
    """Corner values of a kind: a PTX type, or a name in BASES."""
    if kind in BASES:
        return BASES[kind]
    if kind in FLOATS:
        return float_corners(*FLOATS[kind])
    if kind.endswith("x2"):
        half = base_values(kind[:-2])
        return [a | b << 16 for a, b in zip(half, half[7:] + half[:7], strict=True)]
    return corners(TYPE_BITS[kind])


def draw(kind: str, rng: random.Random) -> int:
    """A random value of a kind: a corner, anything, or a small number."""
    base = base_values(kind)
    if kind in BASES:
        return rng.choice(base)
    width = TYPE_BITS[kind]
    choice = rng.random()
    if choice < 0.25:
        return rng.choice(base)
    if kind.endswith("x2"):
        return draw(kind[:-2], rng) | draw(kind[:-2], rng) << 16
    if choice < 0.4:
        return (rng.choice(base) + rng.randint(-3, 3)) & ((1 << width) - 1)
    if choice < 0.6:
        return rng.getrandbits(width) >> rng.randrange(width)
    return rng.getrandbits(width)


@cache
def operand_sets(kinds: tuple[str, ...], n: int = 1024, seed: int = 1) -> tuple[tuple[int, ...], ...]:
    """Operand tuples for a form: all pairs of corners of the first two operands, then random ones."""
    rng = random.Random(f"{kinds}{seed}")
    firsts = [base_values(k) for k in kinds[:2]]
    rows = [(*pair, *(draw(k, rng) for k in kinds[2:])) for pair in itertools.product(*firsts)]
    rng.shuffle(rows)
    n = -(-max(n, len(rows) + n // 4) // BLOCK) * BLOCK
    rows += [tuple(draw(k, rng) for k in kinds) for _ in range(n - len(rows))]
    return tuple(rows)


# ---- kernels -----------------------------------------------------------------------------------------
class Kernels(Protocol):
    """Compiled PTX that can be launched.  Arrays are passed by address and written in place, numpy scalars by value."""

    def launch(self, name: str, blocks: int, threads: int, args: Sequence[Array | np.generic]) -> None: ...


class EmulatorKernels:
    """PTX on the emulator."""

    def __init__(self, ptx: str) -> None:
        self.program = emulator().compile(ptx, language="ptx")

    def launch(self, name: str, blocks: int, threads: int, args: Sequence[Array | np.generic]) -> None:
        self.program[name](blocks, threads, *args)


@cache
def emulator() -> Device:
    return warpsmith.device("emulator", chip="h200")


#: Makes PTX text runnable; a test of other hardware can put its own here.
compile_ptx: Callable[[str], Kernels] = EmulatorKernels

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def register(ptx_type: str) -> str:
    """The type in which a register is declared."""
    return ptx_type if ptx_type in ("pred", "f32", "f64") else f"b{TYPE_BITS[ptx_type]}"


class KernelText:
    """Writes the kernel of one form."""

    def __init__(self, form: Form, name: str) -> None:
        self.form, self.name = form, name
        self.lines: list[str] = []
        self.n = 0
        self.params: list[str] = []

    def reg(self, ptx_type: str) -> str:
        self.n += 1
        name = f"%x{self.n}"
        self.lines.append(f".reg .{ptx_type} {name};")
        return name

    def out(self, text: str) -> None:
        self.lines.append(text)

    def pointer(self, index: str, size: int) -> str:
        """A new pointer parameter; gives the address of this thread's element."""
        p = f"p{len(self.params)}"
        self.params.append(f".param .u64 {p}")
        base, at = self.reg("b64"), self.reg("b64")
        self.out(f"ld.param.u64 {base}, [{p}];")
        self.out(f"mad.wide.u32 {at}, {index}, {size}, {base};")
        return at

    def load(self, ptx_type: str, space: str, address: str) -> str:
        """A register with a value from memory; predicates are bytes."""
        r = self.reg(register(ptx_type))
        if ptx_type == "pred":
            byte = self.reg("b16")
            self.out(f"ld.{space}.u8 {byte}, [{address}];")
            self.out(f"setp.ne.s16 {r}, {byte}, 0;")
        else:
            self.out(f"ld.{space}.{register(ptx_type)} {r}, [{address}];")
        return r

    def store(self, ptx_type: str, address: str, r: str) -> None:
        if ptx_type == "pred":
            byte = self.reg("b16")
            self.out(f"selp.u16 {byte}, 1, 0, {r};")
            self.out(f"st.global.u8 [{address}], {byte};")
        else:
            self.out(f"st.global.{register(ptx_type)} [{address}], {r};")

    def instance(self, inputs: list[str], index: str, guard: str | None = None) -> None:
        """One use of the instruction, its results stored."""
        names = dict(zip(INPUTS, inputs, strict=False))
        results = []
        for k, t in enumerate(self.form.outs):
            r = self.reg(register(t))
            results.append(r)
            names["d" if k == 0 else f"d{k}"] = r
            if guard:
                if t in ("f32", "f64"):
                    old = f"0{t[0] if t == 'f32' else 'd'}{old_value(t):0{bits(t) // 4}X}"
                else:
                    old = "-1" if t == "pred" else str(old_value(t))
                self.out(f"mov.{register(t)} {r}, {old};")
        text = re.sub(r"\$(d\d?|[a-z])", lambda m: names[m[1]], self.form.text)
        if guard:
            text = re.sub(r"(^|[;}{]\s*)(?=[a-z])", lambda m: f"{m[1]}@{guard} ", text)
        self.out(text)
        for t, r in zip(self.form.outs, results, strict=True):
            self.store(t, self.pointer(index, bits(t) // 8), r)

    def text(self) -> str:
        """PTX of the kernel.  Parameters: inputs, shared inputs (one element), guard; then for each instance
        (lanes, guarded, all shared, first shared, second shared...) its results."""
        form = self.form
        index, tid, block = self.reg("b32"), self.reg("b32"), self.reg("b32")
        self.out(f"mov.u32 {tid}, %tid.x;\nmov.u32 {block}, %ctaid.x;\nmad.lo.u32 {index}, {block}, {BLOCK}, {tid};")
        lanes = [self.load(t, "global", self.pointer(index, bits(t) // 8)) for t in form.ins]
        shared = []
        for t in form.ins:
            p = f"p{len(self.params)}"
            self.params.append(f".param .b{bits(t)} {p}")  # a pattern, not a number: bits
            shared.append(self.load(t, "param", p))
        guard = self.load("pred", "global", self.pointer(index, 1))
        self.instance(lanes, index)
        self.instance(lanes, index, guard)
        self.instance(shared, index)
        if len(form.ins) > 1:
            for k in range(len(form.ins)):
                self.instance([*lanes[:k], shared[k], *lanes[k + 1 :]], index)
        body = "\n".join(self.lines)
        return f".visible .entry {self.name}({', '.join(self.params)})\n{{\n{body}\nret;\n}}\n"


def old_value(ptx_type: str) -> int:
    return 1 if ptx_type == "pred" else OLD & ((1 << bits(ptx_type)) - 1)


class Forms:
    """Instruction forms compiled together, on first use."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self.forms = list(dict.fromkeys(forms))
        self.names = {form: f"form{k}" for k, form in enumerate(self.forms)}
        self._kernels: Kernels | None = None

    @property
    def ptx(self) -> str:
        return HEADER + "".join(KernelText(form, name).text() for form, name in self.names.items())

    def run(self, form: Form, lanes: Sequence[Array], shared: Sequence[np.generic], guard: Array) -> list[list[Array]]:
        """Results of every instance (see ``KernelText.text``)."""
        if self._kernels is None:
            self._kernels = compile_ptx(self.ptx)
        n = len(guard)
        instances = 3 + (len(form.ins) if len(form.ins) > 1 else 0)
        results = [[np.zeros(n, dtype(t)) for t in form.outs] for _ in range(instances)]
        args: list[Array | np.generic] = [*lanes, *shared, guard, *itertools.chain.from_iterable(results)]
        self._kernels.launch(self.names[form], n // BLOCK, BLOCK, args)
        return results


Oracle = Callable[..., "int | tuple[int, ...]"]


def check(
    forms: Forms, form: Form, oracle: Oracle, rows: Sequence[tuple[int, ...]] | None = None, shares: int = 6
) -> None:
    """Compare a form with its oracle, which maps bit patterns to the bit pattern of the result (it is cut to
    the width of the result) or to a tuple of them."""
    if rows is None:
        rows = operand_sets(form.kinds or form.ins)
    rng = random.Random(form.text)
    masks = [(1 << TYPE_BITS[t]) - 1 for t in form.outs]

    def expect(row: Sequence[int]) -> tuple[int, ...]:
        r = oracle(*row)
        return tuple(v & m for v, m in zip(r if isinstance(r, tuple) else (r,), masks, strict=True))

    for share in range(shares):
        some = rows if share == 0 else [rows[rng.randrange(len(rows))] for _ in range(BLOCK)]
        one = rows[rng.randrange(len(rows))]
        lanes = [np.array(column, dtype(t)) for column, t in zip(zip(*some, strict=True), form.ins, strict=True)]
        shared = [dtype(t).type(v) for v, t in zip(one, form.ins, strict=True)]
        guard = np.array([rng.random() < 0.5 for _ in some], np.uint8)
        results = forms.run(form, lanes, shared, guard)
        plain = [expect(row) for row in some]
        compare(form, "lanes", some, results[0], plain)
        old = tuple(old_value(t) for t in form.outs)
        compare(
            form, "guarded", some, results[1], [p if g else old for p, g in zip(plain, guard.tolist(), strict=True)]
        )
        compare(form, "shared", [one] * len(some), results[2], [expect(one)] * len(some))
        few = some if share else some[:BLOCK]
        for k, result in enumerate(results[3:]):
            mixed = [(*row[:k], one[k], *row[k + 1 :]) for row in few]
            compare(form, f"operand {k} shared", mixed, [r[: len(few)] for r in result], [expect(row) for row in mixed])


def check_refused(form: Form) -> None:
    """A form that does not exist must be named in one line, not compiled to something else."""
    inputs = [dtype(t).type(0) for t in form.ins]
    lanes = [np.full(BLOCK, v) for v in inputs]
    opcode = re.search(r"[a-z][\w.]*", form.text)
    assert opcode is not None
    with pytest.raises(
        UnsupportedInstructionError, match=f"^kernel form0: {re.escape(opcode[0])} is not implemented, PTX line \\d"
    ):
        Forms([form]).run(form, lanes, inputs, np.zeros(BLOCK, np.uint8))


def compare(
    form: Form, how: str, rows: Sequence[tuple[int, ...]], results: list[Array], expected: Sequence[tuple[int, ...]]
) -> None:
    """Fail with the first operands that gave a wrong result."""
    for k, result in enumerate(results):
        want = [e[k] for e in expected]
        got = result.tolist()
        if got != want:
            wrong = [j for j, (g, w) in enumerate(zip(got, want, strict=True)) if g != w]
            j = wrong[0]
            operands = ", ".join(f"{v:#x}" for v in rows[j])
            raise AssertionError(
                f"{form} ({how}), result {k}: {len(wrong)} of {len(want)} wrong, first for ({operands}): "
                f"{got[j]:#x}, expected {want[j]:#x}"
            )


def signed(v: int, width: int) -> int:
    """A bit pattern as a two's-complement number."""
    return v - (1 << width) if v >> (width - 1) & 1 else v
