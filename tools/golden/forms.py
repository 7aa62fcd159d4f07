"""The table of instruction forms: what is run on a GPU and must come out of the emulator bit for bit.

A form is PTX text with ``$a $b $c $e`` for its operands and ``$d`` (``$d1``, ``$d2``...) for its results.
``$m`` is the address of 16 bytes of global memory, ``$s`` of 16 bytes of shared memory, each a thread's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from . import operands

INPUTS = "abce"


@dataclass(frozen=True)
class Bound:
    """What the PTX ISA promises of an approximate instruction: ``ulp``, ``relative`` and ``absolute`` error are at
    most these (the largest of those given counts), for arguments of magnitude ``low`` to ``high``."""

    function: str  # the exact function, see accuracy.FUNCTIONS
    text: str  # the promise in words
    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    low: float = 0.0
    high: float = float("inf")


@dataclass(frozen=True)
class Form:
    """``ins``: kinds of operands (operands.kinds); ``outs``: PTX types of the results; ``bound``: of an approximation."""

    text: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    bound: Bound | None = None

    @property
    def key(self) -> str:
        """Names the form in recorded data."""
        return f"{self.text} | {' '.join(self.ins)} -> {' '.join(self.outs)}"

    @property
    def unoptimised(self) -> Form:
        """Stands for the same form compiled without optimisation, in recorded data."""
        return replace(self, text=f"{self.text} // -O0")

    @property
    def name(self) -> str:
        """The instruction's own name."""
        words = self.text.replace("{", " ").replace(";", " ").split()
        return next(
            (w for w in words if "." in w and not w.startswith((".", "%", "mov.", "st.", "ld.", "setp.ne.b32"))),
            words[0],
        )

    @property
    def sets(self) -> int:
        return operands.count(self.ins)


def form(text: str, ins: str, outs: str, bound: Bound | None = None) -> Form:
    return Form(text, tuple(ins.split()), tuple(outs.split()), bound)


def call(name: str, ins: str, out: str, bound: Bound | None = None) -> Form:
    """The usual shape: one result, then the operands in order."""
    names = ", ".join(f"${c}" for c in INPUTS[: len(ins.split())])
    return form(f"{name} $d, {names};", ins, out, bound)


def reg(kind: str) -> str:
    """The type of the register that holds a kind of operand."""
    return operands.kinds()[kind].type


FAMILIES = (
    "integers", "division", "carries", "bits", "comparisons", "singles", "doubles", "halves", "newer",
    "from_integers", "to_integers", "between_floats", "approximations", "warps", "atomics", "memory",
)  # fmt: skip
_MODULES = {
    "division": "integers", "carries": "integers", "doubles": "singles", "newer": "singles",
    "from_integers": "conversions", "to_integers": "conversions", "between_floats": "conversions",
}  # fmt: skip


@cache
def family(name: str) -> tuple[Form, ...]:
    """The forms of a family, in the order of the table."""
    module = import_module(f".families.{_MODULES.get(name, name)}", __package__)
    make: Callable[[], Iterable[Form]] = getattr(module, name)
    found = tuple(make())
    keys = [f.key for f in found]
    assert len(set(keys)) == len(keys), f"{name}: {[k for k in keys if keys.count(k) > 1][:3]} twice"
    return found


def everything() -> Iterator[tuple[str, Form]]:
    for name in FAMILIES:
        for f in family(name):
            yield name, f
