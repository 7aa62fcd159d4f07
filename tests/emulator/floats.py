"""Whole arrays through one instruction, for tests of all 65536 inputs or of the error over a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from harness import BLOCK, HEADER, Array, Form, Forms, KernelText, compile_ptx, dtype


class LaneText(KernelText):
    """A kernel that runs the instruction on lanes only: quick to compile, for forms whose siblings are run in every way."""

    def text(self) -> str:
        index, tid, block = self.reg("b32"), self.reg("b32"), self.reg("b32")
        self.out(f"mov.u32 {tid}, %tid.x;\nmov.u32 {block}, %ctaid.x;\nmad.lo.u32 {index}, {block}, {BLOCK}, {tid};")
        self.instance([self.load(t, "global", self.pointer(index, dtype(t).itemsize)) for t in self.form.ins], index)
        body = "\n".join(self.lines)
        return f".visible .entry {self.name}({', '.join(self.params)})\n{{\n{body}\nret;\n}}\n"


class LaneForms(Forms):
    """Instruction forms that ``through`` and ``check_lanes`` run."""

    @property
    def ptx(self) -> str:
        return HEADER + "".join(LaneText(form, name).text() for form, name in self.names.items())

    def run(self, form: Form, lanes: Sequence[Array], shared: Sequence[np.generic], guard: Array) -> list[list[Array]]:
        if self._kernels is None:
            self._kernels = compile_ptx(self.ptx)
        results = [np.zeros(len(guard), dtype(t)) for t in form.outs]
        self._kernels.launch(self.names[form], len(guard) // BLOCK, BLOCK, [*lanes, *results])
        return [results]


def check_lanes(forms: Forms, form: Form, oracle: Callable[..., int], rows: Sequence[tuple[int, ...]]) -> None:
    """Compare a form of one result with its oracle on bit patterns."""
    columns = [np.array(c, dtype(t)) for c, t in zip(zip(*rows, strict=True), form.ins, strict=True)]
    out = dtype(form.outs[0])
    want = np.array([oracle(*row) & (1 << 8 * out.itemsize) - 1 for row in rows], out)
    same(form, through(forms, form, *columns)[0], want, columns)


def through(forms: Forms, form: Form, *inputs: Array) -> list[Array]:
    """The bit patterns that an instruction makes of arrays of bit patterns (or of numbers of the same width)."""
    n = len(inputs[0])
    padded = -(-n // BLOCK) * BLOCK
    lanes = []
    for values, t in zip(inputs, form.ins, strict=True):
        lane = np.zeros(padded, dtype(t))
        lane[:n] = np.ascontiguousarray(values).view(dtype(t))
        lanes.append(lane)
    shared = [dtype(t).type(0) for t in form.ins]
    return [r[:n] for r in forms.run(form, lanes, shared, np.zeros(padded, np.uint8))[0]]


def same(form: Form, got: Array, want: Array, inputs: Sequence[Array]) -> None:
    """Fail with the first input whose result is wrong."""
    wrong = np.flatnonzero(got != want)
    if len(wrong):
        j = wrong[0]
        operands = ", ".join(f"{int(v.view(dtype(t))[j]):#x}" for v, t in zip(inputs, form.ins, strict=True))
        first = f"({operands}): {int(got[j]):#x}, expected {int(want[j]):#x}"
        raise AssertionError(f"{form}: {len(wrong)} of {len(got)} wrong, first for {first}")


def ulps(got: Array, exact: Array) -> Array:
    """Distance of float32 results from the exact ones, in units of the last place of the exact result."""
    exponent = np.clip(np.frexp(exact)[1] - 24, -149, None)
    errors: Array = np.abs(got.astype(np.float64) - exact) / np.ldexp(1.0, exponent)
    return errors


def spread(low: float, high: float, n: int = 1 << 18, seed: int = 1) -> Array:
    """float32 numbers over a range: evenly, with random offsets."""
    steps = np.random.default_rng(seed).random(n) + np.arange(n)
    return (low + (high - low) * steps / n).astype(np.float32)


def all_exponents(n: int = 1 << 18, seed: int = 2) -> Array:
    """Positive finite float32 numbers of every exponent, subnormal ones too."""
    return np.random.default_rng(seed).integers(1, 0x7F800000, n, np.uint32).view(np.float32)
