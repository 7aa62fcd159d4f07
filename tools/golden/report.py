"""Writes docs/accuracy.md: how the emulator compares with the recordings of a GPU.

PYTHONPATH=src:tools python -m golden.report [--write]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import accuracy, forms
from .accuracy import ROOT, Measured

REPORT = ROOT / "docs/accuracy.md"

#: What the recordings taught beyond the PTX ISA, in the order of the families.
FINDINGS = """
- Integer division by zero gives all ones, the remainder too.
- `bfe` and `bfi` of 64-bit values use all 32 bits of position and length; those of 32-bit values the lowest 8.
- `.ftz` flushes a result that is below the normal range *after* rounding as if exponents had no lower end (as IEEE 754
  defines "after rounding"): `mul.rn.ftz.f32` of 2^-126 and 1 - 2^-24 is 0, although 2^-126 would be the rounded result.
- Every NaN of f32, f16 and bf16 arithmetic is `0x7fffffff` or `0x7fff`. f64 keeps payloads and makes them quiet: of two
  operands that of the second one, of `fma` that of the second factor, else of the addend, of a division that of the
  dividend; an invalid operation gives `0xfff8000000000000`. (The emulator's fast mode leaves open which of two payloads
  comes through: picking it costs more than the operation.)
- `cvt.f32.bf16` is a shift, whatever the pattern; `cvt` from f64 to a narrower type keeps sign and upper payload of a NaN;
  `.ftz` does nothing to `cvt.f16.f32`; `cvt.rna.tf32.f32` cuts a NaN like a number (it can become infinity).
- `atom.add.f32` flushes subnormal numbers in global memory and keeps them in shared memory. `atom.add.f64` passes NaN on
  as it is in global memory, and makes it quiet in shared memory.
- `sin.approx` and `cos.approx` multiply by 1/2pi, cut to 24 bits and then to 25 places of a turn; that is also what the
  emulator does, so that both agree for any argument. Angles below 2pi/2^25 give zero.
- `ex2.approx` and `tanh.approx` of f16 and bf16 cut instead of rounding. `tanh.approx` passes numbers below 2^-8 through.
- The NaN `0x7ff7` as a factor of `fma.rn.oob` gives zero.
- ptxas also takes `fma.rz.bf16` and its like, which the PTX ISA does not have. What it makes of them rounds to nearest
  (packed) or computes something else (single); the emulator refuses them.
"""


def log2(x: float) -> str:
    return f"2^{np.log2(x):.2f}" if x > 0 else "0"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def report(differ: dict[str, int], measured: list[Measured]) -> str:
    """The text, from the number of forms that differ, by family, and the approximations."""
    about = accuracy.index()
    parts = [origin(about), families(about, differ), approximations(measured), findings(about), newer(about)]
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def origin(about: dict[str, Any]) -> list[str]:
    return [
        "# Bit for bit: the emulator against a GPU",
        "",
        "Written by `PYTHONPATH=src:tools python -m golden.report --write` from the recordings in tests/golden/h200,",
        "with which tests/emulator/test_h200_golden.py compares the emulator. The instructions are a table in tools/golden/families;",
        "their inputs follow from a seed: all pairs of corner cases of the first two operands, then random ones of many shapes.",
        "",
        f"Recorded on an {about['chip']} (compute capability {about['compute_capability']}, driver {about['driver']},",
        f"CUDA {about['cuda']}, ptxas {about['ptxas']}, {about['clock_sm']} of {about['clock_sm_max']}) on {about['date']} by",
        f"`PYTHONPATH=tools {about['command']}`. Every kernel was compiled with and without optimisation and launched twice.",
        "",
    ]


def families(about: dict[str, Any], differ: dict[str, int]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    total, sets = 0, 0
    for family, f in about["families"].items():
        count = len(f["forms"]) - len(f["by_level"])
        total, sets = total + count, sets + f["sets"]
        outcome = "see below" if family == "approximations" else str(differ[family])
        if count:
            rows.append((family.replace("_", " "), f"{count:,}", f"{f['sets']:,}", outcome))
    rows.append(("**all**", f"**{total:,}**", f"**{sets:,}**", ""))
    return table(("family", "forms", "operand sets", "forms that differ"), rows)


def approximations(measured: list[Measured]) -> list[str]:
    head = ("instruction", "arguments", "promise", "GPU", "emulator", "apart", "equal")
    return [
        "## Approximations",
        "",
        "The largest errors against the exact value, and how far the emulator is from the GPU. NaN, infinities and zeros are",
        "equal everywhere. (Arguments: `exponent`, `fraction`, `positive`, `angle`, `turns` and `tanh` are ranges, `all16` all",
        "patterns, the others corner cases and random patterns.)",
        "",
        *table(head, [approximation(m) for m in measured]),
        *(f"- The GPU goes beyond the promise: {text}." for m in measured for text in m.exceeded),
        "",
    ]


def approximation(m: Measured) -> tuple[str, ...]:
    bound = m.form.bound
    assert bound is not None
    show: Callable[[float], str] = (lambda x: f"{x:.2f} ulp") if bound.ulp else log2
    upper = m.form.name.endswith(".ftz.f64")  # the lower word is zero
    apart = log2(m.gap) if bound.absolute else f"{m.places >> 32 if upper else m.places} ulp"
    equal = "all" if m.equal == 1 else f"{100 * m.equal:.2f} %"
    return f"`{m.form.name}`", " ".join(m.form.ins), bound.text, show(m.hardware), show(m.emulator), apart, equal


def findings(about: dict[str, Any]) -> list[str]:
    lines = ["## What the PTX ISA leaves open", FINDINGS.rstrip(), "", "## Results that depend on ptxas", ""]
    lines += ["With optimisation these give something else than without; the emulator gives one of the two.", ""]
    for family, f in about["families"].items():
        for form in forms.family(family):
            if form.key in f["by_level"]:
                words = form.text.split()
                text = next(w for w in words if w.startswith(("atom", "red"))) if family == "atomics" else form.text
                lines.append(f"- `{text}`: {f['by_level'][form.key]} of {form.sets} operand sets")
    return [*lines, ""]


def newer(about: dict[str, Any]) -> list[str]:
    messages = Counter(message for f in about["families"].values() for message in f["refused"].values())
    return [
        "## Not on this chip",
        "",
        "Forms for newer chips that the emulator has, with ptxas's message; nothing proves them here.",
        "",
        *(f"- {count} forms: {message}" for message, count in messages.items()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="golden.report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.relative_to(ROOT)} instead of printing it")
    chosen = parser.parse_args()
    differ = {family: len(accuracy.differences(family)) for family in forms.FAMILIES}
    text = report(differ, accuracy.approximations())
    if chosen.write:
        REPORT.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
