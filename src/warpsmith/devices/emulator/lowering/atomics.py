"""atom and red (PTX ISA 9.7.13.4, .5): read-modify-write, lane after lane, in the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import TYPE_BITS, Instruction, Vec
from .. import abi
from ..ir import Val, const
from . import Unsupported, lowers
from .access import SPACES
from .memory import CACHE_HINTS, ORDERS, SCOPES, address, space_of

if TYPE_CHECKING:
    from .function import FunctionLowering

_EXTRA = frozenset({"noftz", "acq_rel", "v2", "v4", "v8", *abi.ATOMIC_OPS})


@lowers("atom", "red")
def lower_atomic(f: FunctionLowering, i: Instruction) -> None:
    """atom: d = old value; red: no result."""
    for m in i.mods:
        if not (
            m in _EXTRA
            or m in TYPE_BITS
            or m in CACHE_HINTS
            or m in ORDERS
            or m in SCOPES
            or m.partition("::")[0] in SPACES
        ):
            raise Unsupported(f"modifier .{m} of {i.text}", i)
    op = next((m for m in i.mods if m in abi.ATOMIC_OPS), None)
    space = space_of(i)
    if op is None or i.type not in abi.ATOMIC_TYPES or space not in ("generic", "global", "shared"):
        raise Unsupported(f"{i.text} is not implemented", i)
    operands = list(i.operands)
    dest = operands.pop(0) if i.opcode == "atom" else None
    addr = address(f, operands[0])
    if i.has("release", "acq_rel", "sc"):
        f.b.line("fence seq_cst")
    sources = operands[1:3] if op == "cas" else operands[1:2]
    columns = [list(s.items) if isinstance(s, Vec) else [s] for s in sources]
    dests = list(dest.items) if isinstance(dest, Vec) else [dest]
    size = TYPE_BITS[i.type] // 8
    for k in range(len(columns[0])):
        at = f.b.op("add", addr, const(k * size, "i64")) if k else addr
        values = [f.fit(f.src(c[k], i.type), f"i{8 * size}") for c in columns]
        old = atomic(f, i, space, op, at, values)
        if dest is not None:
            f.dst(dests[k], old)
        f._used_buffers.clear()
    if i.has("acquire", "acq_rel", "sc"):
        f.b.line("fence seq_cst")


def atomic(f: FunctionLowering, i: Instruction, space: str, op: str, addr: Val, values: list[Val]) -> Val:
    """One atomic operation of every lane that executes; the old values, as integers."""
    pointers = [f.spill(v) for v in values]
    b, c = pointers[0], (pointers[1] if len(pointers) > 1 else "null")
    ty = values[0].ty
    out = f.buffer(ty) if i.opcode == "atom" else "null"
    f.runtime(
        "ws_atomic", "void", "ptr %w", f"i32 {f.site(i)}", f"i32 {SPACES[space]}", f"i32 {abi.ATOMIC_OPS[op]}",
        f"i32 {abi.ATOMIC_TYPES[i.type]}", f"ptr {f.spill(addr)}", f"ptr {b}", f"ptr {c}", f"ptr {out}", f"i32 {f.mask.name}",
    )  # fmt: skip
    return f.reload(out, ty) if i.opcode == "atom" else values[0]
