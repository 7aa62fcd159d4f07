"""Control flow (PTX ISA 9.7.12, 9.7.13): branches, calls, returns, barriers of the block, traps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import Instruction
from .. import abi
from ..ir import Val, const
from . import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


def guard_value(f: FunctionLowering, i: Instruction) -> Val:
    """The guard of a branch as a value (it is not applied by ``f``)."""
    assert i.guard is not None
    p = f.read(i.guard.reg)
    return f.b.op("xor", p, const(1, "i1")) if i.guard.negated else p


@lowers("bra")
def lower_branch(f: FunctionLowering, i: Instruction) -> None:
    """bra: a jump, or the place where lanes part."""
    f.ended = True
    if i.guard is None:
        f.flush()
        f.jump(f.unit.targets[0])
        return
    taken, fall = f.unit.targets
    p = guard_value(f, i)
    f.flush()
    if taken == fall:
        f.jump(fall)
        return
    branch(f, p, taken, fall)


def branch(f: FunctionLowering, p: Val, taken: int, fall: int) -> None:
    """Lanes with ``p`` go to one rank, the others to another."""
    b = f.b
    yes, no = f.fresh("yes"), f.fresh("no")
    if p.uniform:
        b.line(f"br i1 {p.name}, label %{yes}, label %{no}")
        b.label(yes)
        f.jump(taken)
        b.label(no)
        f.jump(fall)
        return
    active = f.active
    go = b.op("and", b.bits(p), active)
    stay = b.op("xor", go, active)
    some, part = f.fresh("some"), f.fresh("part")
    b.line(f"br i1 {b.cmp('eq', stay, const(0, 'i32')).name}, label %{yes}, label %{some}")
    b.label(some)
    b.line(f"br i1 {b.cmp('eq', go, const(0, 'i32')).name}, label %{no}, label %{part}")
    b.label(yes)
    f.jump(taken)
    b.label(no)
    f.jump(fall)
    b.label(part)
    for leaves, target, leaving, staying in ((taken, fall, go, stay), (fall, taken, stay, go)):
        if leaves in f.exit_ranks:
            drop_lanes(f, leaving)
            f.set_active(staying)
            f.jump(target)
            f._active = active
            return
    r = f.runtime(
        "ws_diverge", "i32", "ptr %w", "ptr %g", f"i32 {taken}", f"i32 {go.name}", f"i32 {fall}", f"i32 {stay.name}"
    )
    assert r is not None
    f.switch(r)


def drop_lanes(f: FunctionLowering, lanes: Val) -> None:
    """Lanes leave the activation here and now; in a kernel this ends them."""
    if f.function.is_entry or (f.instruction is not None and f.instruction.opcode == "exit"):
        f.runtime("ws_exit", "void", "ptr %w", f"i32 {lanes.name}")


@lowers("ret", "exit")
def lower_return(f: FunctionLowering, i: Instruction) -> None:
    """ret, exit: lanes leave; a guard lets the others go on."""
    f.ended = True
    b = f.b
    if i.guard is None:
        f.flush()
        f.leave()
        return
    p = guard_value(f, i)
    f.flush()
    fall = f.unit.targets[-1]
    active = f.active
    go = b.op("and", b.bits(p), active)
    stay = b.op("xor", go, active)
    none, some, all_, rest = f.fresh("none"), f.fresh("some"), f.fresh("all"), f.fresh("rest")
    b.line(f"br i1 {b.cmp('eq', go, const(0, 'i32')).name}, label %{none}, label %{some}")
    b.label(none)
    f.jump(fall)
    b.label(some)
    b.line(f"br i1 {b.cmp('eq', stay, const(0, 'i32')).name}, label %{all_}, label %{rest}")
    b.label(all_)
    f.leave()
    b.label(rest)
    drop_lanes(f, go)
    f.set_active(stay)
    f.jump(fall)
    f._active = active


@lowers("brx")
def lower_indexed_branch(f: FunctionLowering, i: Instruction) -> None:
    """brx.idx: lane by lane to one of a list of labels."""
    f.ended = True
    b = f.b
    index = f.src(i.operands[0], "u32")
    f.flush()
    targets = f.unit.targets
    if index.uniform:
        cases = [f.fresh("case") for _ in targets]
        b.line(
            f"switch i32 {index.name}, label %{cases[-1]} ["
            + " ".join(f"i32 {k}, label %{c}" for k, c in enumerate(cases))
            + "]"
        )
        for c, t in zip(cases, targets, strict=True):
            b.label(c)
            f.jump(t)
        return
    # One group after the other is queued; what the runtime hands back is carried to the next step.
    b.line("store i32 -1, ptr %next, align 4")
    mask_at = f.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['mask'][0]}")
    rank: Val = const(-1, "i32")
    lanes: Val = const(0, "i32")
    active = f.active
    done: Val = const(0, "i32")
    for k, t in enumerate(targets):
        p = b.cmp("eq", index, const(k, "i32")) if k < len(targets) - 1 else b.cmp("uge", index, const(k, "i32"))
        mine = b.op("and", b.bits(p), active)
        mine = b.op("and", mine, b.op("xor", done, const(-1, "i32")))
        done = b.op("or", done, mine)
        empty, first, more, skip = (f.fresh(s) for s in ("empty", "first", "more", "skip"))
        b.line(f"br i1 {b.cmp('eq', mine, const(0, 'i32')).name}, label %{empty}, label %{first}")
        b.label(empty)
        b.line(f"br label %{skip}")
        b.label(first)
        both = f.fresh("both")
        b.line(f"br i1 {b.cmp('eq', lanes, const(0, 'i32')).name}, label %{both}, label %{more}")
        b.label(both)
        b.line(f"store i32 {mine.name}, ptr {mask_at}, align 4")
        b.line(f"br label %{skip}")
        b.label(more)
        r = f.runtime(
            "ws_diverge",
            "i32",
            "ptr %w",
            "ptr %g",
            f"i32 {rank.name}",
            f"i32 {lanes.name}",
            f"i32 {t}",
            f"i32 {mine.name}",
        )
        assert r is not None
        b.line(f"br label %{skip}")
        b.label(skip)
        rank = b.raw("i32", True, f"phi i32 [{rank.name}, %{empty}], [{t}, %{both}], [{r.name}, %{more}]")
        lanes = b.raw("i32", True, f"load i32, ptr {mask_at}, align 4")
        none_yet = b.cmp("eq", done, const(0, "i32"))
        lanes = b.select(none_yet, const(0, "i32"), lanes)
    # If nobody else waits at a smaller rank, go; the runtime decides.
    r = f.runtime("ws_dispatch", "i32", "ptr %w", "ptr %g", f"i32 {rank.name}", f"i32 {lanes.name}")
    assert r is not None
    f.switch(r)


@lowers("trap", "brkpt")
def lower_trap(f: FunctionLowering, i: Instruction) -> None:
    """trap: the launch ends with an error.  brkpt without a debugger does the same."""
    fail(f, i, abi.ERRORS["trap"], "trap instruction" if i.opcode == "trap" else "breakpoint without a debugger")
    if i.guard is None:
        f.b.line("unreachable")
        f.b.label(f.fresh("after_trap"))


def fail(f: FunctionLowering, i: Instruction, code: int, message: str) -> None:
    """End the launch with a report if any lane executes this."""
    b = f.b
    mask = f.mask
    text = f.kernel_string(message)
    bad, good = f.fresh("fail"), f.fresh("fine")
    b.line(f"br i1 {b.cmp('ne', mask, const(0, 'i32')).name}, label %{bad}, label %{good}")
    b.label(bad)
    f.runtime("ws_fail", "void", "ptr %w", f"i32 {f.site(i)}", f"i32 {mask.name}", f"i32 {code}", f"ptr {text}")
    b.line(f"br label %{good}")
    b.label(good)


@lowers("bar", "barrier")
def lower_barrier(f: FunctionLowering, i: Instruction) -> None:
    """bar, barrier: warps of a block (or lanes of a warp) wait for each other (PTX ISA 9.7.13.1, .3)."""
    if i.has("cluster"):
        raise Unsupported(f"{i.text}: thread block clusters are not emulated yet", i)
    if i.has("warp"):
        lower_syncwarp(f, i)
        return
    kind = "arrive" if i.has("arrive") else next((m for m in i.mods if m in ("popc", "and", "or")), "sync")
    ops = list(i.operands)
    dest = ops.pop(0) if i.has("red") else None
    value = const(0, "i32")
    if i.has("red"):
        value = f.b.bits(f.src(ops.pop(), "pred"))
    number = f.first(f.src(ops[0], "b32")) if ops else const(0, "i32")
    count = f.first(f.src(ops[1], "b32")) if len(ops) > 1 else const(-1, "i32")
    site = f.site(i)
    b = f.b
    if f.unit.parted and kind == "sync":
        f.flush()
        parted, whole = f.fresh("parted"), f.fresh("whole")
        b.line(f"br i1 {f.waiting().name}, label %{parted}, label %{whole}")
        b.label(parted)
        r = f.runtime("ws_barrier_parted", "i32", "ptr %w", "ptr %g", f"i32 {number.name}", f"i32 {count.name}", f"i32 {f.active.name}", f"i32 {f.unit.targets[-1]}", f"i32 {site}")  # fmt: skip
        assert r is not None
        f.switch(r)
        b.label(whole)
    r = f.runtime("ws_barrier", "i32", "ptr %w", "ptr %g", f"i32 {abi.BARRIER_KINDS[kind]}", f"i32 {number.name}", f"i32 {count.name}", f"i32 {f.active.name}", f"i32 {value.name}", f"i32 {site}")  # fmt: skip
    assert r is not None
    if dest is not None:
        f.dst(dest, r if kind == "popc" else b.cmp("ne", r, const(0, "i32")))


def lower_syncwarp(f: FunctionLowering, i: Instruction) -> None:
    """bar.warp.sync: where lanes may be apart, wait for those named; elsewhere they are here already."""
    if not f.unit.parted:
        return
    f.flush()
    wait, here, members = missing_lanes(f, f.src(i.operands[0], "b32"))
    f.b.label(wait)
    r = f.runtime(
        "ws_syncwarp",
        "i32",
        "ptr %w",
        "ptr %g",
        f"i32 {members.name}",
        f"i32 {f.active.name}",
        f"i32 {f.unit.targets[-1]}",
        f"i32 {f.site(i)}",
    )
    assert r is not None
    f.switch(r)
    f.b.label(here)


def missing_lanes(f: FunctionLowering, members: Val) -> tuple[str, str, Val]:
    """Branch on whether live lanes that ``members`` names are elsewhere: labels (if so, if not), the mask."""
    b = f.b
    if not members.uniform:
        mine = b.select(b.lanes(f.mask), members, const(0, "i32"))
        b.declare("llvm.vector.reduce.or.v32i32", "declare i32 @llvm.vector.reduce.or.v32i32(<32 x i32>)")
        members = b.raw("i32", True, f"call i32 @llvm.vector.reduce.or.v32i32({mine.typed})")
    missing = b.op("and", b.op("and", members, f.field("live")), b.op("xor", f.active, const(-1, "i32")))
    wait, here = f.fresh("wait"), f.fresh("here")
    b.line(f"br i1 {b.cmp('eq', missing, const(0, 'i32')).name}, label %{here}, label %{wait}, !prof !2")
    return wait, here, members


def meet(f: FunctionLowering, i: Instruction, members: Val) -> None:
    """Before a ``.sync`` instruction: if live lanes that it names are elsewhere, wait for them here.

    Only needed where lanes may be apart; there the instruction starts its block (see ``plan``)."""
    if not f.unit.parted:
        return
    wait, here, members = missing_lanes(f, members)
    f.b.label(wait)
    r = f.runtime(
        "ws_rendezvous",
        "i32",
        "ptr %w",
        "ptr %g",
        f"i32 {members.name}",
        f"i32 {f.active.name}",
        f"i32 {f.unit.rank}",
        f"i32 {f.site(i)}",
    )
    assert r is not None
    f.switch(r)
    f.b.label(here)


@lowers("nanosleep")
def lower_nanosleep(f: FunctionLowering, i: Instruction) -> None:
    """nanosleep: give way to whoever is being waited for."""
    t = f.first(f.src(i.operands[0], "u32"))
    f.runtime("ws_pause", "void", "ptr %w", "ptr %g", f"i32 {t.name}", f"i32 {f.site(i)}")


@lowers("pmevent", "griddepcontrol", "setmaxnreg", "pragma")
def lower_hint(f: FunctionLowering, i: Instruction) -> None:
    """Instructions without an effect on results in this emulator.

    ``griddepcontrol``: launches run one after the other, so a grid's prerequisites are complete
    when it starts.  ``setmaxnreg`` moves registers between warps; here every warp has its own.
    """


@lowers("$param")
def lower_param_move(f: FunctionLowering, i: Instruction) -> None:
    """What inline.py makes of ld.param and st.param around an expanded call: a move."""
    f.dst(i.operands[0], f.src(i.operands[1], i.type), signed=i.type[0] == "s")
