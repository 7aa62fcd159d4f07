"""Matrices of a warp (PTX ISA 9.7.14): mma, mma.sp, ldmatrix, stmatrix, movmatrix.

The registers of an operand go to memory as ``[register][32 lanes]``, and a function of ``runtime/matrix.cpp`` does the
work for all lanes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....ptx.ast import Imm, Instruction, Operand, Vec
from .. import abi
from ..ir import LANES, Val, const
from . import Unsupported, lowers
from .common import missing
from .control import meet
from .fragments import Fragments, at, fetch, write
from .memory import address

if TYPE_CHECKING:
    from .function import FunctionLowering

#: Width of an element.
BITS = {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64}  # fmt: skip
#: Types with the same shapes.
FAMILIES = {"e4m3": "fp8", "e5m2": "fp8", "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4"}
#: Multiplicands that the runtime can prepare.
PREPARED = ("f16", "bf16", "tf32")
#: Where the operands of other products lie in their common area.
B_AT, C_AT, META_AT = 2048, 4096, 6016


@dataclass(frozen=True)
class Product:
    """A product of m x k by k x 8 elements and its sum with C: see ws_mma_form in runtime/abi.h."""

    a: str
    b: str
    c: str
    d: str
    m: int
    k: int
    flags: int = 0
    selector: int = 0

    def constant(self, f: FunctionLowering) -> str:
        """The constant that describes it to the runtime, by name."""
        codes = [abi.MATRIX_TYPES[t] for t in (self.a, self.b, self.c, self.d)]
        flags = self.flags | (abi.MMA_EXACT if f.kernel.numerics == "hardware" else 0)
        data = bytes([*codes, self.m, flags, self.k & 255, self.k >> 8, self.selector, *[0] * 7])
        name = f"mma.{data.hex()}"
        text = "".join(f"\\{v:02X}" for v in data)
        return f.helper(name, f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}", align 8\n')

    @property
    def registers(self) -> tuple[int, int, int, int]:
        """Of A, B, C and D."""
        if self.flags & abi.MMA_QUADS:
            return 2, 2, 8 if self.c == "f32" else 4, 8 if self.d == "f32" else 4
        stored = self.k // 2 if self.flags & abi.MMA_SPARSE else self.k
        n = BITS[self.a]
        a, b = (rows * depth * n // LANES // max(n, 32) for rows, depth in ((self.m, stored), (8, self.k)))
        return a, b, accumulators(self.m, self.c), accumulators(self.m, self.d)

    @property
    def word(self) -> str:
        """The type in which registers are read."""
        return "b64" if self.a == "f64" else "b32"

    @property
    def prepared(self) -> bool:
        return self.a in PREPARED and not self.flags & (abi.MMA_SPARSE | abi.MMA_QUADS)


def accumulators(m: int, element: str) -> int:
    """Registers of m x 8 sums."""
    return m // 4 // (2 if element == "f16" else 1)


# ---- operands ------------------------------------------------------------------------------------------


def items(i: Instruction, op: Operand | None, count: int) -> tuple[Operand, ...]:
    """The registers of a vector operand, of which there must be so many."""
    found = op.items if isinstance(op, Vec) else (op,) if op is not None else ()
    if len(found) != count:
        raise Unsupported(f"{i.text}: an operand has {len(found)} registers, {count} are needed", i)
    return found


def read(f: FunctionLowering, registers: Sequence[Operand], word: str = "b32") -> list[Val]:
    """The registers of an operand.  To be done before ``WholeWarp``: what is read in it is not known after it."""
    return [f.src(op, word) for op in registers]


class WholeWarp:
    """``with WholeWarp(f, i):`` around what needs all lanes; skipped, and reported, if some are missing.

    Results are read after it: what they are then does not matter, as the guard excludes all lanes.
    """

    def __init__(self, f: FunctionLowering, i: Instruction) -> None:
        self.f, self.i = f, i
        self.done = f.fresh("done")

    def __enter__(self) -> None:
        f, b = self.f, self.f.b
        run, partial = f.fresh("whole"), f.fresh("partial")
        mask = f.mask
        b.line(f"br i1 {b.cmp('eq', mask, const(-1, 'i32')).name}, label %{run}, label %{partial}, !prof !2")
        b.label(partial)
        f.runtime("ws_whole_warp", "void", "ptr %w", f"i32 {f.site(self.i)}", f"i32 {mask.name}")
        b.line(f"br label %{self.done}")
        b.label(run)

    def __exit__(self, *_: object) -> None:
        self.f.b.line(f"br label %{self.done}")
        self.f.b.label(self.done)


class Sum:
    """C + A x B, or several products in a row: operands to memory when it is made, then ``run``, then ``results``.

    Only ``run`` belongs into ``WholeWarp``."""

    def __init__(
        self,
        f: FunctionLowering,
        p: Product,
        steps: Sequence[tuple[list[Val], list[Val]]],
        c: list[Val],
        metadata: Sequence[Val] = (),
    ) -> None:
        self.f, self.p = f, p
        self.fragments = Fragments.of(f)
        self.form = p.constant(f)
        self.calls: list[tuple[str, str]] = []
        if p.prepared:
            # The area of the sums last: making it forgets them.
            self.calls = [(self.fragments.left(self.form, a), self.fragments.right(self.form, b)) for a, b in steps]
            self.c = self.fragments.sums(c)
            self.d = self.c
        else:
            area = self.fragments.area("other")
            self.c, self.d, self.meta = (at(f, area, offset) for offset in (C_AT, C_AT, META_AT))
            ((a, b),) = steps
            self.calls = [(area, at(f, area, B_AT))]
            write(f, area, a)
            write(f, area, b, B_AT)
            write(f, area, c, C_AT)
            write(f, area, metadata, META_AT)

    def run(self) -> None:
        for a, b in self.calls:
            if self.p.prepared:
                self.f.runtime("ws_mma_prepared", "void", *(f"ptr {x}" for x in (self.form, a, b, self.c, self.d)))
            else:
                self.f.runtime("ws_mma", "void", *(f"ptr {x}" for x in (self.form, a, b, self.c, self.d, self.meta)))

    def results(self) -> list[Val]:
        values = fetch(self.f, self.d, self.p.registers[3], "i64" if self.p.a == "f64" else "i32")
        if self.p.prepared:
            self.fragments.replace(self.d, values)
        return values


# ---- mma -----------------------------------------------------------------------------------------------

#: K of the shapes with 16 rows, of those with 8 rows; of sparse ones.
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "f16": ((8, 16), (), (16, 32)),
    "bf16": ((8, 16), (), (16, 32)),
    "tf32": ((4, 8), (), (8, 16)),
    "f64": ((4, 8, 16), (4,), ()),
    "fp8": ((16, 32), (), (64,)),
    "int8": ((16, 32), (16,), (32, 64)),
    "int4": ((32, 64), (32,), (64, 128)),
    "b1": ((128, 256), (128,), ()),
}
#: Types of accumulators, if not s32.
SUMS = {"f16": ("f16", "f32"), "fp8": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}
#: How many lanes of four can have the metadata of a sparse matrix, if not one.
SELECTORS = {
    ("f16", 16): 4, ("bf16", 16): 4, ("tf32", 8): 4, ("f16", 32): 2, ("bf16", 32): 2, ("tf32", 16): 2, ("int8", 32): 2, ("int4", 64): 2,
}  # fmt: skip


def shape_of(i: Instruction) -> tuple[str, int, int, int]:
    """``m16n8k8`` as text and as numbers."""
    for mod in i.mods:
        if mod[0] == "m" and "n" in mod and "k" in mod:
            m, _, rest = mod[1:].partition("n")
            n, _, k = rest.partition("k")
            if m.isdigit() and n.isdigit() and k.isdigit():
                return mod, int(m), int(n), int(k)
    raise missing(i)


def parse(i: Instruction) -> Product:
    """The product that an mma instruction names, or a refusal."""
    shape, m, n, k = shape_of(i)
    known = {"sync", "aligned", shape, "row", "col", "satfinite", "xor", "and", "popc", "sp", "sp::ordered_metadata"}
    if any(mod not in known and mod not in BITS for mod in i.mods) or len(i.types) != 4 or n != 8:
        raise missing(i)
    d, a, b, c = i.types
    family = FAMILIES.get(a, a)
    sparse = i.has("sp", "sp::ordered_metadata")
    if (m, k, a, sparse) == (8, 4, "f16", False):
        return parse_quads(i)
    tall, flat, holed = SHAPES.get(family, ((), (), ()))
    fits = (m == 16 and k in (holed if sparse else tall)) or (m == 8 and not sparse and k in flat)
    behind = i.mods.index(shape) + 1
    if not fits or i.mods[behind : behind + 2] != ("row", "col"):
        raise missing(i)
    mixed = family in ("fp8", "int8", "int4")
    if c != d or c not in SUMS.get(family, ("s32",)) or (FAMILIES.get(b, b) != family if mixed else a != b):
        raise missing(i)
    if (i.has("satfinite") and family not in ("int8", "int4")) or i.has("popc") != (a == "b1"):
        raise missing(i)
    if (i.has("xor") + i.has("and") != 1) if a == "b1" else i.has("xor", "and"):
        raise missing(i)
    flags = i.has("satfinite") * abi.MMA_SATURATE | i.has("and") * abi.MMA_AND | sparse * abi.MMA_SPARSE
    if not sparse:
        return Product(a, b, c, d, m, k, flags)
    if family == "fp8" and c == "f16":
        raise missing(i)
    choices = SELECTORS.get((family, k), 1)
    op = i.operands[5] if len(i.operands) == 6 else None
    if not isinstance(op, Imm) or not 0 <= op.value < choices:
        raise Unsupported(f"{i.text}: its sparsity selector must be a constant less than {choices}", i)
    return Product(a, b, c, d, m, k, flags, op.value)


def parse_quads(i: Instruction) -> Product:
    """m8n8k4 of f16: any layouts, and C may be narrower than D."""
    d, a, b, c = i.types
    layouts = [mod for mod in i.mods if mod in ("row", "col")]
    known = len(i.mods) == 9 and len(layouts) == 2
    if not known or b != "f16" or (d, c) not in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
        raise missing(i)
    flags = abi.MMA_QUADS | (layouts[0] == "col") * abi.MMA_A_COLUMNS | (layouts[1] == "row") * abi.MMA_B_ROWS
    return Product(a, b, c, d, 8, 4, flags)


@lowers("mma")
def lower_mma(f: FunctionLowering, i: Instruction) -> None:
    """mma.sync and mma.sp.sync: D = A x B + C."""
    p = parse(i)
    na, nb, nc, nd = p.registers
    d, *sources = (items(i, op, n) for op, n in zip(i.operands, (nd, na, nb, nc), strict=False))
    meet(f, i, const(-1, "i32"))
    a, b, c = (read(f, registers, p.word) for registers in sources)
    metadata = read(f, items(i, i.operands[4], 1)) if p.flags & abi.MMA_SPARSE else []
    work = Sum(f, p, [(a, b)], c, metadata)
    with WholeWarp(f, i):
        work.run()
    for op, v in zip(d, work.results(), strict=True):
        f.dst(op, v)


# ---- ldmatrix, stmatrix, movmatrix -----------------------------------------------------------------------


def shared_offsets(f: FunctionLowering, i: Instruction, op: Operand | None) -> Val:
    """An address operand that must lie in the block's shared memory, as an offset in it (i32)."""
    addr = address(f, op)
    if i.has("shared", "shared::cta"):
        return f.b.cast("trunc", addr, "i32")
    out = f.buffer("i32")
    args = [f"i32 {f.site(i)}", f"ptr {f.spill(addr)}", f"ptr {out}", f"i32 {f.mask.name}"]
    f.runtime("ws_shared_offsets", "void", "ptr %w", *args)
    v = f.reload(out, "i32")
    return f.first(v) if addr.uniform else v


def matrix_count(i: Instruction) -> int:
    """Of ldmatrix and stmatrix: the number of matrices; other forms than 8x8 of 16 bits are refused."""
    known = {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16"}
    if any(mod not in known for mod in i.mods) or not i.has("m8n8"):
        raise Unsupported(f"{i.text} is not implemented: only matrices of 8x8 elements of 16 bits are", i)
    counts = [n for n in (1, 2, 4) if i.has(f"x{n}")]
    if len(counts) != 1:
        raise missing(i)
    return counts[0]


@lowers("ldmatrix")
def lower_ldmatrix(f: FunctionLowering, i: Instruction) -> None:
    """ldmatrix: 8x8 matrices from shared memory; lanes 8j to 8j+7 have the addresses of the rows of matrix j."""
    count = matrix_count(i)
    out = items(i, i.operands[0], count)
    meet(f, i, const(-1, "i32"))
    rows = f.spill(shared_offsets(f, i, i.operands[1]))
    area = Fragments.of(f).area("other")
    with WholeWarp(f, i):
        args = [f"i32 {f.site(i)}", f"i32 {count}", f"i32 {int(i.has('trans'))}", f"ptr {rows}", f"ptr {area}"]
        f.runtime("ws_ldmatrix", "void", "ptr %w", *args)
    for op, v in zip(out, fetch(f, area, count), strict=True):
        f.dst(op, v)


@lowers("stmatrix")
def lower_stmatrix(f: FunctionLowering, i: Instruction) -> None:
    """stmatrix: the way back."""
    count = matrix_count(i)
    meet(f, i, const(-1, "i32"))
    rows, values = f.spill(shared_offsets(f, i, i.operands[0])), read(f, items(i, i.operands[1], count))
    area = Fragments.of(f).area("other")
    write(f, area, values)
    with WholeWarp(f, i):
        args = [f"i32 {f.site(i)}", f"i32 {count}", f"i32 {int(i.has('trans'))}", f"ptr {rows}", f"ptr {area}"]
        f.runtime("ws_stmatrix", "void", "ptr %w", *args)


@lowers("movmatrix")
def lower_movmatrix(f: FunctionLowering, i: Instruction) -> None:
    """movmatrix: an 8x8 matrix held by the warp, transposed."""
    if i.mods != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise missing(i)
    meet(f, i, const(-1, "i32"))
    values = read(f, items(i, i.operands[1], 1))
    area = Fragments.of(f).area("other")
    write(f, area, values)
    with WholeWarp(f, i):
        f.runtime("ws_movmatrix", "void", f"ptr {area}", f"ptr {area}")
    f.dst(items(i, i.operands[0], 1)[0], fetch(f, area, 1)[0])
