"""Instructions in which the lanes of a warp see each other (PTX ISA 9.7.13): shfl, vote, match, redux, elect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import Instruction, Operand, Pair, Sink
from ..ir import LANES, Val, const
from . import Unsupported, lowers
from .control import meet
from .special import lane_constants

if TYPE_CHECKING:
    from .function import FunctionLowering


def known(v: Val) -> int | None:
    """The value of a constant, as unsigned 32 bits."""
    return int(v.name) & 0xFFFFFFFF if v.uniform and v.name.lstrip("-").isdigit() else None


def shuffle_source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane read and the predicate, as the PTX ISA's pseudo-code of shfl.sync has it."""
    b, segment, clamp = b & 31, (c >> 8) & 31, c & 31
    max_lane = (lane & segment) | (clamp & ~segment)
    min_lane = lane & segment
    if mode == "up":
        j = lane - b
        ok = j >= max_lane
    elif mode == "down":
        j = lane + b
        ok = j <= max_lane
    elif mode == "bfly":
        j = lane ^ b
        ok = j <= max_lane
    else:
        j = min_lane | (b & ~segment)
        ok = j <= max_lane
    return (j if ok else lane), ok


@lowers("shfl")
def lower_shuffle(f: FunctionLowering, i: Instruction) -> None:
    """shfl.sync: read a register of another lane."""
    b = f.b
    mode = next(m for m in i.mods if m in ("up", "down", "bfly", "idx"))
    dest = i.operands[0]
    if i.has("sync"):
        meet(f, i, f.src(i.operands[4], "b32"))
    a, delta, c = f.src(i.operands[1], "b32"), f.src(i.operands[2], "b32"), f.src(i.operands[3], "b32")
    d, p = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, Sink())
    kb, kc = known(delta), known(c)
    if kb is not None and kc is not None:
        table = [shuffle_source(mode, lane, kb, kc) for lane in range(LANES)]
        ok = lane_constants([int(x) for _, x in table], "i1")
        if a.uniform:
            value = a
        else:
            indices = ", ".join(f"i32 {j}" for j, _ in table)
            value = b.raw("i32", False, f"shufflevector {a.typed}, <{LANES} x i32> poison, <{LANES} x i32> <{indices}>")
    else:
        source, ok = _source_lanes(f, mode, delta, c)
        value = permute(f, a, source)
    f.dst(d, value)
    f.dst(p, ok)


def _source_lanes(f: FunctionLowering, mode: str, delta: Val, c: Val) -> tuple[Val, Val]:
    """``shuffle_source`` for operands known only at run time."""
    b = f.b
    lane = lane_constants(list(range(LANES)))
    five = const(31, "i32")
    delta = b.op("and", delta, five)
    segment = b.op("and", b.op("lshr", c, const(8, "i32")), five)
    clamp = b.op("and", c, five)
    inverse = b.op("xor", segment, const(-1, "i32"))
    low = b.op("and", lane, segment)
    high = b.op("or", low, b.op("and", clamp, inverse))
    if mode == "up":
        j = b.op("sub", lane, delta)
        ok = b.cmp("sge", j, high)
    else:
        if mode == "down":
            j = b.op("add", lane, delta)
        elif mode == "bfly":
            j = b.op("xor", lane, delta)
        else:
            j = b.op("or", low, b.op("and", delta, inverse))
        ok = b.cmp("sle", j, high)
    return b.select(ok, j, lane), ok


def permute(f: FunctionLowering, a: Val, index: Val) -> Val:
    """Lane i of the result is lane ``index[i]`` of ``a`` (both 32-bit; indices 0 to 31)."""
    if a.uniform:
        return a
    b = f.b
    if index.uniform:
        return b.lane(a, index)
    buffer = f.spill(a)
    b.declare(
        "llvm.masked.gather.v32i32.v32p0",
        "declare <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x i32>)",
    )
    p = f.pointer(f"getelementptr i32, ptr {buffer}, {index.typed}")
    return b.raw(
        "i32",
        False,
        f"call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> {p}, i32 4, <32 x i1> splat (i1 true), <32 x i32> zeroinitializer)",
    )


def _members(f: FunctionLowering, i: Instruction, op: Operand | None) -> Val:
    members = f.src(op, "b32")
    meet(f, i, members)
    return members


@lowers("vote")
def lower_vote(f: FunctionLowering, i: Instruction) -> None:
    """vote.sync.all/any/uni.pred and .ballot.b32."""
    b = f.b
    sync = i.has("sync")
    members = _members(f, i, i.operands[2]) if sync else const(-1, "i32")
    p = f.src(i.operands[1], "pred")
    mask = f.mask
    yes = b.op("and", b.bits(p), mask)
    if not members.uniform:
        lanes = b.op("and", members, mask)
        yes = b.op("and", b.vec(yes), lanes)
    else:
        lanes = b.op("and", members, mask)
        yes = b.op("and", yes, members)
    mode = next(m for m in i.mods if m in ("all", "any", "uni", "ballot"))
    zero = const(0, "i32")
    if mode == "ballot":
        v = yes
    elif mode == "all":
        v = b.cmp("eq", yes, lanes)
    elif mode == "any":
        v = b.cmp("ne", yes, zero)
    else:
        v = b.op("or", b.cmp("eq", yes, lanes), b.cmp("eq", yes, zero))
    f.dst(i.operands[0], v)


@lowers("activemask")
def lower_activemask(f: FunctionLowering, i: Instruction) -> None:
    """activemask: the lanes that execute this, here and now."""
    f.dst(i.operands[0], f.mask)


@lowers("match")
def lower_match(f: FunctionLowering, i: Instruction) -> None:
    """match.any/all.sync: which lanes have the same value."""
    members = _members(f, i, i.operands[2])
    dest = i.operands[0]
    bits = 64 if i.type == "b64" else 32
    a = f.src(i.operands[1], i.type)
    out, pred = f.buffer("i32"), f.buffer("i8")
    name = f"ws_match_{'all' if i.has('all') else 'any'}_{bits}"
    f.runtime(
        name, "void", f"ptr {out}", f"ptr {pred}", f"ptr {f.spill(a)}", f"ptr {f.spill(members)}", f"i32 {f.mask.name}"
    )
    d, p = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, Sink())
    f.dst(d, f.reload(out, "i32"))
    f.dst(p, f.reload(pred, "i1"))


REDUCTIONS = {"add": "add", "and": "and", "or": "or", "xor": "xor"}


@lowers("redux")
def lower_redux(f: FunctionLowering, i: Instruction) -> None:
    """redux.sync: a reduction over the lanes that the mask names."""
    op = next((m for m in i.mods if m in ("add", "min", "max", "and", "or", "xor")), None)
    if op is None or i.type not in ("u32", "s32", "b32"):
        raise Unsupported(f"{i.text} is not implemented", i)
    members = _members(f, i, i.operands[2])
    b = f.b
    a = f.src(i.operands[1], i.type)
    if members.uniform:
        signed = i.type == "s32"
        neutral = {"min": 0x7FFFFFFF if signed else -1, "max": -0x80000000 if signed else 0, "and": -1}.get(op, 0)
        lanes = b.lanes(b.op("and", members, f.mask))
        chosen = b.select(lanes, b.vec(a), const(neutral, "i32"))
        name = REDUCTIONS.get(op) or ("s" if signed else "u") + op
        b.declare(f"llvm.vector.reduce.{name}.v32i32", f"declare i32 @llvm.vector.reduce.{name}.v32i32(<32 x i32>)")
        f.dst(i.operands[0], b.raw("i32", True, f"call i32 @llvm.vector.reduce.{name}.v32i32({chosen.typed})"))
        return
    number = ["add", "min", "max", "and", "or", "xor"].index(op) + (8 if i.type == "s32" else 0)
    out = f.buffer("i32")
    f.runtime(
        "ws_redux",
        "void",
        f"i32 {number}",
        f"ptr {out}",
        f"ptr {f.spill(a)}",
        f"ptr {f.spill(members)}",
        f"i32 {f.mask.name}",
    )
    f.dst(i.operands[0], f.reload(out, "i32"))


@lowers("elect")
def lower_elect(f: FunctionLowering, i: Instruction) -> None:
    """elect.sync: one leader among the lanes that the mask names (the lowest)."""
    members = f.first(_members(f, i, i.operands[1]))
    b = f.b
    leader = b.call("llvm.cttz", b.op("and", members, f.mask), const(0, "i1"))
    dest = i.operands[0]
    d, p = (dest.first, dest.second) if isinstance(dest, Pair) else (Sink(), dest)
    f.dst(d, leader)
    f.dst(p, b.cmp("eq", lane_constants(list(range(LANES))), leader))
