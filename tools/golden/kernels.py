"""PTX text of the forms: one kernel for a few forms with the same operands.

A kernel's thread loads its operands once, runs every form on them and stores the results, each result an
array over the threads.  Parameters: one pointer an operand, the results, 16 bytes a thread of scratch memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import forms, operands
from .forms import INPUTS, Form
from .operands import BLOCK

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
#: Forms of a kernel: large kernels take long to compile, small ones cost a launch each.
SHARE = 24
SCRATCH = 16
WIDTHS = {"pred": 8, "f32": 32, "f64": 64}


def width(ptx_type: str) -> int:
    """Bits of a value in memory."""
    return WIDTHS.get(ptx_type) or int(ptx_type[1:])


def register(ptx_type: str) -> str:
    """The type in which a register is declared."""
    return ptx_type if ptx_type in WIDTHS else f"b{width(ptx_type)}"


@dataclass(frozen=True)
class Kernel:
    """``places``: for each form, where the arrays of its results begin in the results' bytes."""

    name: str
    ins: tuple[str, ...]
    forms: tuple[Form, ...]
    places: tuple[tuple[int, ...], ...]
    size: int  # bytes of results
    text: str

    @property
    def sets(self) -> int:
        return operands.count(self.ins)

    @property
    def blocks(self) -> int:
        return self.sets // BLOCK

    def lines(self, first: int) -> dict[int, Form]:
        """Which form a line of a module belongs to, if this kernel begins at line ``first``."""
        found, current = {}, None
        for k, line in enumerate(self.text.splitlines()):
            if line.startswith("// form "):
                current = self.forms[int(line.split()[2])]
            if current is not None:
                found[first + k] = current
        return found


def kernels(family: str, without: frozenset[str] = frozenset()) -> Iterator[Kernel]:
    """The kernels of a family, without the forms whose keys are given."""
    groups: dict[tuple[str, ...], list[Form]] = {}
    for f in forms.family(family):
        if f.key not in without:
            groups.setdefault(f.ins, []).append(f)
    for ins, members in groups.items():
        for k in range(0, len(members), SHARE):
            yield kernel(f"{family}_{'_'.join(ins) or 'none'}_{k // SHARE}", ins, tuple(members[k : k + SHARE]))


def module(chosen: list[Kernel]) -> str:
    return HEADER + "".join(k.text for k in chosen)


def kernel(name: str, ins: tuple[str, ...], members: tuple[Form, ...]) -> Kernel:
    w = Writer()
    n = operands.count(ins)
    uses = " ".join(f.text for f in members)
    w.out("mov.u32 %t, %tid.x;", "mov.u32 %c, %ctaid.x;", f"mad.lo.u32 %i, %c, {BLOCK}, %t;")
    names = [w.load(k, operands.kinds()[kind].type) for k, kind in enumerate(ins)]
    w.out("ld.param.u64 %r, [results];")
    if "$m" in uses:
        w.out("ld.param.u64 %m, [scratch];", f"mad.wide.u32 %m, %i, {SCRATCH}, %m;")
    if "$s" in uses:
        w.declare(f".shared .align 16 .b8 cells[{SCRATCH * BLOCK}];")
        w.out("mov.u32 %s, cells;", f"mad.lo.u32 %s, %t, {SCRATCH}, %s;")
    places, size = [], 0
    for index, f in enumerate(members):
        starts = []
        for t in f.outs:
            starts.append(size)
            size += n * width(t) // 8
            size += -size % 256
        places.append(tuple(starts))
        w.form(index, f, dict(zip(INPUTS, names, strict=False)), starts)
    params = [*(f"p{k}" for k in range(len(ins))), "results", "scratch"]
    head = f".visible .entry {name}({', '.join(f'.param .u64 {p}' for p in params)})"
    return Kernel(name, ins, members, tuple(places), size, f"{head}\n{{\n{w.text()}\nret;\n}}\n")


class Writer:
    """Lines of a kernel's body."""

    def __init__(self) -> None:
        self.declarations = [".reg .b32 %t, %c, %i, %s;", ".reg .b64 %p, %r, %m;"]
        self.body: list[str] = []
        self.bases: dict[int, str] = {}

    def declare(self, line: str) -> None:
        self.declarations.append(line)

    def out(self, *lines: str) -> None:
        self.body.extend(lines)

    def text(self) -> str:
        return "\n".join([*self.declarations, *self.body])

    def load(self, k: int, ty: str) -> str:
        """Operand k of this thread in a register."""
        name, size = f"%in{k}", width(ty) // 8
        self.declare(f".reg .{register(ty)} {name};")
        self.out(f"ld.param.u64 %p, [p{k}];", f"mad.wide.u32 %p, %i, {size}, %p;")
        if ty == "pred":
            self.declare(f".reg .b16 {name}_byte;")
            self.out(f"ld.global.u8 {name}_byte, [%p];", f"setp.ne.s16 {name}, {name}_byte, 0;")
        else:
            self.out(f"ld.global.{register(ty)} {name}, [%p];")
        return name

    def base(self, size: int) -> str:
        """The address of this thread's element of an array at the start of the results."""
        if size not in self.bases:
            name = self.bases[size] = f"%base{size}"
            self.declare(f".reg .b64 {name};")
            self.out(f"mad.wide.u32 {name}, %i, {size}, %r;")
        return self.bases[size]

    def form(self, index: int, f: Form, names: dict[str, str], starts: list[int]) -> None:
        bases = [self.base(width(t) // 8) for t in f.outs]
        self.out(f"// form {index}", "{")
        results = []
        for k, t in enumerate(f.outs):
            results.append(f"d{k}")
            self.out(f".reg .{register(t)} d{k};")
            names["d" if k == 0 else f"d{k}"] = f"d{k}"
        names.update(m="%m", s="%s", l=f"after_{index}")
        self.out(re.sub(r"\$(d\d?|[a-z])", lambda m: names[m[1]], f.text))
        for base, t, r, start in zip(bases, f.outs, results, starts, strict=True):
            if t == "pred":
                self.out(
                    f".reg .b16 byte{r};", f"selp.u16 byte{r}, 1, 0, {r};", f"st.global.u8 [{base}+{start}], byte{r};"
                )
            else:
                self.out(f"st.global.{register(t)} [{base}+{start}], {r};")
        self.out("}")


def results(kernel: Kernel, data: bytes) -> Iterator[tuple[Form, tuple[operands.Array, ...]]]:
    """The arrays of results of every form, cut out of what a launch wrote."""
    import numpy as np

    for f, starts in zip(kernel.forms, kernel.places, strict=True):
        yield (
            f,
            tuple(
                np.frombuffer(data, f"<u{width(t) // 8}", kernel.sets, start)
                for t, start in zip(f.outs, starts, strict=True)
            ),
        )


def inputs(kernel: Kernel) -> list[operands.Array]:
    """The arrays of operands of a kernel."""
    table = operands.kinds()
    return [
        column.astype(f"<u{width(table[kind].type) // 8}")
        for kind, column in zip(kernel.ins, operands.rows(kernel.ins), strict=True)
    ]
