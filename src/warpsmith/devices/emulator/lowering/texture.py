"""Texture and surface objects: tex, tld4, suld, sust.  The work is done in ``runtime/texture.cpp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import TYPE_BITS, Instruction, Operand, Reg, TensorAddr, Vec
from . import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

#: Shape -> dimensions, layered.
_SHAPES = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True)}
_GATHERED = {"r": 0, "g": 1, "b": 2, "a": 3}
_OUTSIDE = {"trap": 0, "clamp": 1, "zero": 2}
_INTEGER, _GATHER = 1, 2


def _shape(i: Instruction) -> tuple[int, bool]:
    shape = next((m for m in i.mods if m in _SHAPES), None)
    if shape is None:
        raise Unsupported(f"{i.text} (cube maps and multisampled textures)", i)
    return _SHAPES[shape]


def _object(f: FunctionLowering, i: Instruction, at: Operand | None) -> tuple[str, list[str]]:
    """(pointer to the lanes' handles, pointers to x, y, z and the layer)."""
    if not isinstance(at, TensorAddr) or not isinstance(at.base.base, Reg) or at.sampler is not None:
        raise Unsupported(f"{i.text} with a texture reference (use texture objects)", i)
    if at.extra:
        raise Unsupported(f"{i.text} with an offset or a depth to compare with", i)
    dimensions, layered = _shape(i)
    coordinate = "s32" if i.opcode in ("suld", "sust") else i.types[1]
    given = list(at.coords)
    layer = f"ptr {f.spill(f.src(given.pop(0), 'b32'))}" if layered else "ptr null"
    if len(given) < dimensions:
        raise Unsupported(f"{i.text} with {len(given)} coordinates", i)
    places = [f"ptr {f.spill(f.b.bitcast(f.src(c, coordinate), 'i32'))}" for c in given[:dimensions]]
    places += ["ptr null"] * (3 - dimensions)
    return f"ptr {f.spill(f.src(at.base.base, 'b64'))}", [*places, layer]


@lowers("tex", "tld4")
def fetch(f: FunctionLowering, i: Instruction) -> None:
    # Without mipmaps there is but one level: .level, .grad and their operands change nothing.
    known = {"base", "level", "grad", "v2", "v4", *_SHAPES, *_GATHERED, "f32", "s32", "u32"}
    unknown = [m for m in i.mods if m not in known]
    if unknown or len(i.types) != 2 or not isinstance(i.operands[0], Vec | Reg):
        raise Unsupported(i.text, i)
    result, coordinate = i.types
    flags = _INTEGER if coordinate == "s32" else 0
    if i.opcode == "tld4":
        flags |= _GATHER | next(_GATHERED[m] for m in i.mods if m in _GATHERED) << 4
    handle, places = _object(f, i, i.operands[1])
    # Four areas of 32 results one after the other.
    out = f.buffer("i128")
    dimensions, _ = _shape(i)
    f.runtime(
        "ws_texture_fetch", "void", "ptr %w", f"i32 {f.site(i)}", f"i32 {flags}", f"i32 {dimensions}", handle, *places,
        f"ptr {out}", f"i32 {f.mask.name}",
    )  # fmt: skip
    targets = i.operands[0].items if isinstance(i.operands[0], Vec) else (i.operands[0],)
    for number, target in enumerate(targets):
        at = f.pointer(f"getelementptr i8, ptr {out}, i32 {128 * number}")
        v = f.reload(at, "i32")
        f.dst(target, f.b.bitcast(v, "float") if result == "f32" else v)


def _access(
    f: FunctionLowering, i: Instruction, store: int, at: Operand | None, data: str, items: int, width: int
) -> None:
    outside = next((_OUTSIDE[m] for m in i.mods if m in _OUTSIDE), 0)
    dimensions, _ = _shape(i)
    handle, places = _object(f, i, at)
    f.runtime(
        "ws_surface_access", "void", "ptr %w", f"i32 {f.site(i)}", f"i32 {store}", f"i32 {outside}", f"i32 {dimensions}",
        f"i32 {items}", f"i32 {width}", handle, *places, f"ptr {data}", f"i32 {f.mask.name}",
    )  # fmt: skip


def _items(i: Instruction, operand: Operand | None) -> tuple[tuple[Operand, ...], int]:
    """(registers, bytes of each) of a surface access."""
    known = {"b", "v2", "v4", *_SHAPES, *_OUTSIDE, "b8", "b16", "b32", "b64", "ca", "cg", "cs", "cv", "wb", "wt"}
    if any(m not in known for m in i.mods):
        raise Unsupported(i.text, i)
    items = operand.items if isinstance(operand, Vec) else (operand,) if operand is not None else ()
    return items, TYPE_BITS[i.type] // 8


def _slot(f: FunctionLowering, data: str, number: int, width: int) -> str:
    """Where the lanes' values of one register stand."""
    return f.pointer(f"getelementptr i8, ptr {data}, i32 {number * max(128, 32 * width)}")


@lowers("suld")
def load_surface(f: FunctionLowering, i: Instruction) -> None:
    items, width = _items(i, i.operands[0])
    data = f.buffer("i128")  # an access has 16 bytes a lane at most
    _access(f, i, 0, i.operands[1], data, len(items), width)
    for number, item in enumerate(items):
        f.dst(item, f.reload(_slot(f, data, number, width), f"i{8 * width}"))


@lowers("sust")
def store_surface(f: FunctionLowering, i: Instruction) -> None:
    items, width = _items(i, i.operands[1])
    data = f.buffer("i128")
    for number, item in enumerate(items):
        value = f.b.vec(f.src(item, f"b{8 * width}"))
        f.b.line(f"store {value.typed}, ptr {_slot(f, data, number, width)}, align 64")
    _access(f, i, 1, i.operands[0], data, len(items), width)
