"""Loads, stores and addresses (PTX ISA 9.7.9): ld, ldu, st, cvta, isspacep, prefetch, fences.  access.py does the accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import TYPE_BITS, Addr, Instruction, Operand, Reg, Sym, Vec
from .. import abi
from ..ir import Val, const
from . import Unsupported, lowers
from .access import SPACES, WINDOWS, load, store

if TYPE_CHECKING:
    from .function import FunctionLowering

#: Modifiers that say how caches should treat an access: no effect on results.
CACHE_HINTS = frozenset(
    "ca cg cs lu cv wb wt nc L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
    "L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B L2::128B L2::256B unified".split()
)
ORDERS = frozenset("weak volatile relaxed acquire release mmio sc".split())
SCOPES = frozenset("cta cluster gpu sys".split())


def space_of(i: Instruction) -> str:
    """The state space of a memory instruction; ``shared::cta`` and ``param::entry`` count as their space."""
    for m in i.mods:
        s = m.partition("::")[0]
        if s in SPACES:
            if m == "shared::cluster":
                raise Unsupported(f"{i.text}: thread block clusters are not emulated yet", i)
            return s
    return "generic"


def check_modifiers(i: Instruction, extra: frozenset[str] = frozenset()) -> None:
    """Refuse a modifier that is neither known to be harmless nor handled."""
    for m in i.mods:
        if m in CACHE_HINTS or m in ORDERS or m in SCOPES or m in TYPE_BITS or m in extra:
            continue
        if m.partition("::")[0] in SPACES or m in ("v2", "v4", "v8"):
            continue
        raise Unsupported(f"modifier .{m} of {i.text}", i)


def address(f: FunctionLowering, op: Operand | None) -> Val:
    """A memory operand as an i64 address (or offset) in its space."""
    if isinstance(op, (Reg, Sym)):
        op = Addr(op)
    if not isinstance(op, Addr):
        raise Unsupported(f"address operand {op!r} of {f.where()}", f.instruction)
    if op.base is None:
        return const(op.offset, "i64")
    if isinstance(op.base, Sym):
        return f.symbol(Sym(op.base.name, op.base.offset + op.offset))
    v = f.src(op.base, "u64" if TYPE_BITS[op.base.type] == 64 else "u32")
    if v.ty == "i32":
        if op.offset:
            v = f.b.op("add", v, const(op.offset, "i32"))
        return f.b.cast("zext", v, "i64")
    return f.b.op("add", v, const(op.offset, "i64")) if op.offset else v


def resolve_space(f: FunctionLowering, i: Instruction, op: Operand | None) -> str:
    """``.param`` means kernel parameters in an entry, and local memory around calls and in functions."""
    space = space_of(i)
    if space == "param":
        base = op.base if isinstance(op, Addr) else op
        if isinstance(base, Sym) and base.name in f.locals:
            return "local"
        if not f.function.is_entry:
            return "local"
    return space


def _elements(i: Instruction) -> tuple[str, int, int]:
    """PTX type, bytes of an element, number of elements of a vector access."""
    v = next((int(m[1]) for m in i.mods if m in ("v2", "v4", "v8")), 1)
    return i.type, max(TYPE_BITS[i.type], 8) // 8, v


def _split128(f: FunctionLowering, values: list[Val]) -> list[Val]:
    """128-bit values as pairs of 64-bit ones."""
    out = []
    for x in values:
        out += [f.b.cast("trunc", x, "i64"), f.b.cast("trunc", f.b.op("lshr", x, const(64, "i128")), "i64")]
    return out


def _fence(f: FunctionLowering, ordering: str) -> None:
    f.b.line(f"fence {ordering}")


@lowers("ld", "ldu")
def lower_load(f: FunctionLowering, i: Instruction) -> None:
    """ld, ld.global.nc, ldu: a destination register (or vector) from memory."""
    check_modifiers(i)
    dest, source = i.operands[0], i.operands[1]
    space = resolve_space(f, i, source)
    ptx_type, n, v = _elements(i)
    addr = address(f, source)
    if n == 16:
        halves = load(f, i, space, addr, 8, 2 * v)
        wide = [f.b.cast("zext", h, "i128") for h in halves]
        values = [f.b.op("or", wide[2 * k], f.b.op("shl", wide[2 * k + 1], const(64, "i128"))) for k in range(v)]
    else:
        values = load(f, i, space, addr, n, v)
    if i.has("acquire", "sc"):
        _fence(f, "acquire")
    items = dest.items if isinstance(dest, Vec) else (dest,)
    for item, value in zip(items, values, strict=True):
        f.dst(item, value, signed=ptx_type[0] == "s")


@lowers("st")
def lower_store(f: FunctionLowering, i: Instruction) -> None:
    """st: registers (or a vector of them) to memory."""
    if i.has("async", "bulk"):
        raise Unsupported(f"{i.text} is not implemented", i)
    check_modifiers(i)
    target, source = i.operands[0], i.operands[1]
    space = resolve_space(f, i, target)
    if space in ("const", "param"):
        raise Unsupported(f"{i.text}: a kernel cannot write its parameters or constants", i)
    ptx_type, n, _ = _elements(i)
    addr = address(f, target)
    items = source.items if isinstance(source, Vec) else (source,)
    values = [f.fit(f.src(x, ptx_type), f"i{8 * n}") for x in items]
    if n == 16:
        values, n = _split128(f, values), 8
    if i.has("release", "sc"):
        _fence(f, "seq_cst")
    store(f, i, space, addr, values, n)
    if i.has("sc"):
        _fence(f, "seq_cst")


@lowers("cvta")
def lower_cvta(f: FunctionLowering, i: Instruction) -> None:
    """cvta: between a state space's own addresses and generic ones (global and const: the same)."""
    space = space_of(i)
    if isinstance(i.operands[1], (Sym, Addr)):
        v = address(f, i.operands[1])
    else:
        v = f.src(i.operands[1], i.type)
    base = WINDOWS.get(space, 0)
    if space == "param" and not f.function.is_entry:
        base = WINDOWS["local"]
    if base:
        v = f.b.cast("zext", v, "i64")
        v = f.b.op("sub" if i.has("to") else "add", v, const(base, "i64"))
    f.dst(i.operands[0], v)


@lowers("isspacep")
def lower_isspacep(f: FunctionLowering, i: Instruction) -> None:
    """isspacep: does a generic address lie in this state space's window?"""
    space = space_of(i)
    hi = f.b.op("lshr", f.src(i.operands[1], "u64"), const(32, "i64"))
    if space in WINDOWS:
        p = f.b.cmp("eq", hi, const(WINDOWS[space] >> 32, "i64"))
    elif space == "const":
        p = const(0, "i1")  # constants share the global window; the address says no more
    else:
        p = f.b.cmp("ugt", f.b.op("sub", hi, const(abi.SHARED_WINDOW >> 32, "i64")), const(2, "i64"))
    f.dst(i.operands[0], p)


@lowers("prefetch", "prefetchu", "applypriority", "discard", "createpolicy")
def lower_prefetch(f: FunctionLowering, i: Instruction) -> None:
    """Hints to the caches: no result (createpolicy's is never looked at)."""
    if i.opcode == "createpolicy":
        f.dst(i.operands[0], const(0, "i64"))


@lowers("membar", "fence")
def lower_fence(f: FunctionLowering, i: Instruction) -> None:
    """Memory ordering: the host's strongest fence.  For proxies and fresh mbarriers, too: here they see the same memory."""
    _fence(f, "seq_cst")
