"""wmma (PTX ISA 9.7.14.4): matrices of 16x16, 32x8, 8x32 and 8x8 elements.

Their products are those of mma: 16 x 16 and 32 x 8 are two of 16 x 8 beside or below each other, 8 x 32 is 32 x 8 with rows
and columns exchanged.  The fragments are laid out as an H200 has them (the PTX ISA leaves it open), which is that of mma,
and the same for matrices stored by rows and by columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....ptx.ast import Instruction, Operand
from .. import abi
from ..ir import LANES, Val, const
from . import lowers
from .common import missing
from .control import meet
from .fragments import Fragments, fetch, write
from .matrix import BITS, FAMILIES, SUMS, Product, Sum, WholeWarp, accumulators, items, read, shape_of
from .memory import address, space_of

if TYPE_CHECKING:
    from .function import FunctionLowering


@dataclass(frozen=True)
class Shape:
    """``tiles`` products of ``rows`` x ``k`` by ``k`` x 8, each in so many ``steps``.

    ``a`` and ``b``: registers of the fragments; those beyond what the products use repeat the others.  ``shares``: the
    operand that all tiles use; ``flipped``: A and B are exchanged."""

    a: int
    b: int
    shares: str
    tiles: int = 2
    rows: int = 16
    k: int = 16
    steps: int = 1
    flipped: bool = False


SHAPES = {
    ("m16n16k16", "f16"): Shape(8, 8, "a"),
    ("m32n8k16", "f16"): Shape(8, 8, "b"),
    ("m8n32k16", "f16"): Shape(8, 8, "a", flipped=True),
    ("m16n16k16", "bf16"): Shape(4, 4, "a"),
    ("m32n8k16", "bf16"): Shape(8, 2, "b"),
    ("m8n32k16", "bf16"): Shape(2, 8, "a", flipped=True),
    ("m16n16k8", "tf32"): Shape(4, 4, "a", k=4, steps=2),
    ("m8n8k4", "f64"): Shape(1, 1, "a", tiles=1, rows=8, k=4),
    ("m16n16k16", "int8"): Shape(2, 2, "a"),
    ("m32n8k16", "int8"): Shape(4, 1, "b"),
    ("m8n32k16", "int8"): Shape(1, 4, "a", flipped=True),
    ("m8n8k32", "int4"): Shape(1, 1, "a", tiles=1, rows=8, k=32),
    ("m8n8k128", "b1"): Shape(1, 1, "a", tiles=1, rows=8, k=128),
}


def shape(i: Instruction, element: str) -> Shape:
    """That of an instruction with multiplicands of this type."""
    found = SHAPES.get((shape_of(i)[0], FAMILIES.get(element, element)))
    if found is None:
        raise missing(i)
    return found


@lowers("wmma")
def lower_wmma(f: FunctionLowering, i: Instruction) -> None:
    """wmma.load, wmma.mma and wmma.store."""
    if i.mods[:1] == ("mma",):
        lower_product(f, i)
    elif i.mods[:1] == ("load",) and i.mods[1:2] in (("a",), ("b",), ("c",)):
        lower_load(f, i)
    elif i.mods[:2] == ("store", "d"):
        lower_store(f, i)
    else:
        raise missing(i)


def accept(i: Instruction, *extra: str) -> None:
    """Refuse unknown modifiers."""
    known = {"sync", "aligned", "row", "col", shape_of(i)[0], *BITS, *extra}
    if not known.issuperset(i.mods):
        raise missing(i)


def lower_product(f: FunctionLowering, i: Instruction) -> None:
    """wmma.mma."""
    accept(i, "mma", "satfinite", "xor", "and", "popc")
    types = i.types
    if len(types) == 2:  # of f16 only the accumulators are named
        d, c = types
        a = b = "f16"
    elif len(types) == 4:
        d, a, b, c = types
    else:
        raise missing(i)
    s = shape(i, a)
    family = FAMILIES.get(a, a)
    sums = SUMS.get(family, ("s32",))
    layouts = tuple(mod for mod in i.mods if mod in ("row", "col"))
    wrong = a != b or c not in sums or d not in sums or i.has("popc") != (a == "b1")
    wrong |= i.has("satfinite") and family not in ("int8", "int4")
    wrong |= len(layouts) != 2 or (family in ("int4", "b1") and layouts != ("row", "col"))
    if wrong:
        raise missing(i)
    p = Product(a, b, c, d, s.rows, s.k, i.has("satfinite") * abi.MMA_SATURATE | i.has("and") * abi.MMA_AND)
    na, nb, nc, nd = p.registers
    meet(f, i, const(-1, "i32"))
    va, vb, vc = (
        read(f, items(i, op, n), p.word) for op, n in zip(i.operands[1:4], (s.a, s.b, nc * s.tiles), strict=True)
    )
    left, right = (vb, va) if s.flipped else (va, vb)
    shares_left = s.shares == "a" and not s.flipped
    work = []
    for tile in range(s.tiles):
        first_a, first_b = (0, tile * nb * s.steps) if shares_left else (tile * na * s.steps, 0)
        steps = [
            (left[first_a + na * n : first_a + na * (n + 1)], right[first_b + nb * n : first_b + nb * (n + 1)])
            for n in range(s.steps)
        ]
        work.append(Sum(f, p, steps, vc[tile * nc : (tile + 1) * nc]))
        if not p.prepared:  # they share one area: one after the other
            run(f, i, work[-1:], items(i, i.operands[0], nd * s.tiles)[tile * nd : (tile + 1) * nd])
    if p.prepared:
        run(f, i, work, items(i, i.operands[0], nd * s.tiles))


def run(f: FunctionLowering, i: Instruction, work: list[Sum], out: tuple[Operand, ...]) -> None:
    with WholeWarp(f, i):
        for w in work:
            w.run()
    for op, v in zip(out, [v for w in work for v in w.results()], strict=True):
        f.dst(op, v)


# ---- load and store --------------------------------------------------------------------------------------

#: Row and column of the first element in every ``[register][lane]``.
Places = list[list[tuple[int, int]]]


def places(i: Instruction, which: str, element: str) -> tuple[Places, bool]:
    """Where the elements of a fragment stand; True if those of a register follow each other in a row of the matrix."""
    per = max(32 // BITS[element], 1)
    lanes = [divmod(lane, 4) for lane in range(LANES)]
    _, m, n, _ = shape_of(i)
    out: Places = []
    if which == "c":
        for r in range(accumulators(16, element) * 2 if m * n > 64 else accumulators(8, element)):
            tile, number = divmod(r * per, 4)
            down, beside = (0, 8 * tile) if (m, n) == (16, 16) else (16 * tile, 0)
            out.append([(g + 8 * (number // 2) + down, 2 * t + number % 2 + beside) for g, t in lanes])
        return (flip(out), False) if n == 32 else (out, True)
    s = shape(i, element)
    span = 4 * per
    depth = max(s.k // span, 1) * s.steps  # registers along K
    tall = (which == "a") != s.flipped  # the operand with 16 rows
    high = s.rows // 8 if tall else 1
    parts = (m if which == "a" else n) // (8 * high)  # what of the registers is not a repetition
    for r in range(s.a if which == "a" else s.b):
        tile, part = divmod(r, high * depth)
        first = 8 * (part % high) + 8 * high * (tile % parts)
        out.append([(g + first, part // high * span + per * t) for g, t in lanes])
    return (out, True) if which == "a" else (flip(out), False)


def flip(places: Places) -> Places:
    return [[(column, row) for row, column in lanes] for lanes in places]


def tile(f: FunctionLowering, i: Instruction, which: str, element: str) -> tuple[str, int]:
    """The ws_tile that describes a fragment to the runtime, by name; and its number of registers."""
    where, along = places(i, which, element)
    bits = BITS[element]
    name = f"tile.{which}.{shape_of(i)[0]}.{element}"
    numbers = [f"i16 {v}" for lanes in where for place in lanes for v in place]
    table = f"[{len(numbers)} x i16] [{', '.join(numbers)}]"
    f.helper(f"{name}.places", f"@{name}.places = private unnamed_addr constant {table}\n")
    fields = f"i32 {len(where)}, i32 {bits}, i32 {max(32 // bits, 1)}, i32 {int(along)}, ptr @{name}.places"
    return f.helper(
        name, f"@{name} = private unnamed_addr constant {{ i32, i32, i32, i32, ptr }} {{ {fields} }}\n"
    ), len(where)


def arguments(
    f: FunctionLowering, i: Instruction, which: str, at: Operand | None, stride: Operand | None
) -> tuple[list[str], int]:
    """Those of the runtime's functions, but for the registers; and the number of registers."""
    accept(i, "load", "store", "a", "b", "c", "d", "global", "shared", "shared::cta")
    element, layout, space = i.type, [mod for mod in i.mods if mod in ("row", "col")], space_of(i)
    _, m, n, k = shape_of(i)
    if len(layout) != 1 or space not in ("generic", "global", "shared"):
        raise missing(i)
    if which == "c":
        small = (m, n) == (8, 8)
        if element not in (("s32", "f64") if small else ("f16", "f32", "s32")) or (m, n) not in (
            (8, 8),
            (16, 16),
            (32, 8),
            (8, 32),
        ):
            raise missing(i)
    name, count = tile(f, i, which, element)
    addr = f.first(address(f, at))
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[which]
    step = const(columns if layout[0] == "row" else rows, "i32") if stride is None else f.first(f.src(stride, "u32"))
    args = [
        "ptr %w",
        f"i32 {f.site(i)}",
        f"i32 {abi.SPACES[space]}",
        f"ptr {name}",
        f"i64 {addr.name}",
        f"i32 {step.name}",
    ]
    return [*args, f"i32 {int(layout[0] == 'row')}"], count


def lower_load(f: FunctionLowering, i: Instruction) -> None:
    meet(f, i, const(-1, "i32"))
    args, count = arguments(f, i, i.mods[1], i.operands[1], i.operands[2] if len(i.operands) > 2 else None)
    area = Fragments.of(f).area("other")
    with WholeWarp(f, i):
        f.runtime("ws_tile_load", "void", *args, f"ptr {area}")
    values: list[Val] = fetch(f, area, count, "i64" if i.type == "f64" else "i32")
    for op, v in zip(items(i, i.operands[0], count), values, strict=True):
        f.dst(op, v)


def lower_store(f: FunctionLowering, i: Instruction) -> None:
    meet(f, i, const(-1, "i32"))
    args, count = arguments(f, i, "c", i.operands[0], i.operands[2] if len(i.operands) > 2 else None)
    values = read(f, items(i, i.operands[1], count), "b64" if i.type == "f64" else "b32")
    area = Fragments.of(f).area("other")
    write(f, area, values)
    with WholeWarp(f, i):
        f.runtime("ws_tile_store", "void", *args, f"ptr {area}")
