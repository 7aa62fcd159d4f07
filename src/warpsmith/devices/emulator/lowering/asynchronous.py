"""Copies that happen behind a thread's back, and the barriers that count them.

cp.async and cp.async.bulk (PTX ISA 9.7.9.25), mbarrier (9.7.13.15).  A copy takes effect when a wait of its thread covers
it, or when somebody waits for the mbarrier that it reports to: see runtime/async.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import Imm, Instruction, Not, Operand, Reg, Sink
from ..ir import Val, const
from . import Unsupported, lowers
from .common import missing
from .matrix import shared_offsets
from .memory import CACHE_HINTS, address

if TYPE_CHECKING:
    from .function import FunctionLowering

#: WS_ARRIVE_DROP, WS_ARRIVE_STAY
_DROP, _STAY = 1, 2
#: ws_cp_async_wait: all copies, whether they are in a group or not.
_ALL = -1
_MOST_GROUPS = 1 << 20
#: A cluster has one block, so its shared memory is the block's.
_SHARED = frozenset(("shared", "shared::cta", "shared::cluster"))
_ORDERS = frozenset(("release", "acquire", "relaxed", "cta", "cluster"))
_COMPLETE = "mbarrier::complete_tx::bytes"


# ---- pieces --------------------------------------------------------------------------------------------


def _known(i: Instruction, *names: str, hints: bool = False) -> None:
    """Refuse modifiers other than these."""
    for m in i.mods:
        if m not in names and not (hints and m in CACHE_HINTS):
            raise missing(i)


def _offsets(f: FunctionLowering, i: Instruction, op: Operand | None) -> str:
    """An address operand in shared memory as a pointer to 32 offsets."""
    if i.has(*_SHARED):
        return f.spill(f.b.cast("trunc", address(f, op), "i32"))
    return f.spill(shared_offsets(f, i, op))


def _words(f: FunctionLowering, op: Operand | None) -> str:
    """A 32-bit operand as a pointer to 32 lanes, or null if there is none."""
    return "null" if op is None else f.spill(f.src(op, "b32"))


def _constant(i: Instruction, op: Operand | None, *choices: int) -> int:
    """An operand that must be a constant: one of these, or a number of groups."""
    if not isinstance(op, Imm) or not (op.value in choices if choices else op.value >= 0):
        which = f"one of {', '.join(map(str, choices))}" if choices else "a constant"
        raise Unsupported(f"{i.text}: operand must be {which}", i)
    return min(op.value, _MOST_GROUPS)


def _call(f: FunctionLowering, name: str, *args: str, ret: str = "void") -> Val | None:
    """Call the runtime for the lanes that execute the instruction."""
    return f.runtime(name, ret, "ptr %w", *args, f"i32 {f.mask.name}")


# ---- cp.async ------------------------------------------------------------------------------------------


@lowers("cp")
def lower_copy(f: FunctionLowering, i: Instruction) -> None:
    """cp.async and cp.async.bulk, their groups and waits."""
    if i.mods[:1] != ("async",) or i.has("tensor"):
        raise missing(i)
    if i.has("bulk"):
        lower_bulk(f, i)
    elif i.has("commit_group"):
        _known(i, "async", "commit_group")
        _call(f, "ws_cp_async_commit")
    elif i.has("wait_all"):
        _known(i, "async", "wait_all")
        _call(f, "ws_cp_async_wait", f"i32 {_ALL}")
    elif i.has("wait_group"):
        _known(i, "async", "wait_group")
        _call(f, "ws_cp_async_wait", f"i32 {_constant(i, i.operands[0])}")
    elif i.has("mbarrier"):
        _known(i, "async", "mbarrier", "arrive", "noinc", "shared", "shared::cta", "b64")
        at = _offsets(f, i, i.operands[0])
        _call(f, "ws_cp_async_arrive", f"i32 {f.site(i)}", f"ptr {at}", f"i32 {int(i.has('noinc'))}")
    else:
        lower_small_copy(f, i)


def lower_small_copy(f: FunctionLowering, i: Instruction) -> None:
    """cp.async: 4, 8 or 16 bytes a lane, of which the first ``src-size`` are read and the rest is zero."""
    _known(i, "async", "ca", "cg", "shared", "shared::cta", "global", hints=True)
    if not i.has("global") or i.has("ca") == i.has("cg"):
        raise missing(i)
    operands = list(i.operands)
    if i.has("L2::cache_hint"):
        operands.pop()
    to, source, size, *more = operands
    n = _constant(i, size, *((16,) if i.has("cg") else (4, 8, 16)))
    valid = "null"
    if more:
        if isinstance(more[0], Not) or (isinstance(more[0], Reg) and more[0].type == "pred"):  # the source is not read
            valid = f.spill(f.b.select(f.src(more[0], "pred"), const(0, "i32"), const(n, "i32")))
        else:
            valid = _words(f, more[0])
    at = _offsets(f, i, to)
    read = f.spill(address(f, source))
    _call(f, "ws_cp_async", f"i32 {f.site(i)}", f"i32 {n}", f"ptr {at}", f"ptr {read}", f"ptr {valid}")


def lower_bulk(f: FunctionLowering, i: Instruction) -> None:
    """cp.async.bulk of one dimension: a thread copies any number of bytes."""
    if i.has("commit_group"):
        _known(i, "async", "bulk", "commit_group")
        _call(f, "ws_bulk_commit")
    elif i.has("wait_group"):
        _known(i, "async", "bulk", "wait_group", "read")
        allowed = _constant(i, i.operands[0])
        _call(f, "ws_bulk_wait", f"i32 {allowed}", f"i32 {int(i.has('read'))}")
    elif i.has("prefetch"):
        _known(i, "async", "bulk", "prefetch", "L2", "global", "L2::cache_hint")
    elif i.mods[2:4] in (("shared::cluster", "global"), ("shared::cta", "global")):
        _known(i, "async", "bulk", "shared::cluster", "shared::cta", "global", _COMPLETE, "L2::cache_hint")
        to, source, size, barrier = i.operands[:4]
        at, read, n, report = _offsets(f, i, to), f.spill(address(f, source)), _words(f, size), _offsets(f, i, barrier)
        _call(f, "ws_bulk_load", f"i32 {f.site(i)}", f"ptr {at}", f"ptr {read}", f"ptr {n}", f"ptr {report}")
    elif i.mods[2:4] == ("global", "shared::cta"):
        _known(i, "async", "bulk", "global", "shared::cta", "bulk_group", "L2::cache_hint")
        to, source, size = i.operands[:3]
        at, read, n = f.spill(address(f, to)), _offsets(f, i, source), _words(f, size)
        _call(f, "ws_bulk_store", f"i32 {f.site(i)}", f"ptr {at}", f"ptr {read}", f"ptr {n}")
    else:
        raise missing(i)


# ---- mbarrier ------------------------------------------------------------------------------------------


@lowers("mbarrier")
def lower_mbarrier(f: FunctionLowering, i: Instruction) -> None:
    """mbarrier.*: a barrier in shared memory, with a state of its own that threads hand around."""
    what = i.mods[0] if i.mods else ""
    ops = i.operands
    if what == "pending_count":
        _known(i, what, "b64")
        out = f.buffer("i32")
        f.runtime("ws_mbarrier_pending", "void", f"ptr {f.spill(f.src(ops[1], 'b64'))}", f"ptr {out}")
        f.dst(ops[0], f.reload(out, "i32"))
        return
    if what not in ("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait"):
        raise missing(i)
    has_result = what in ("arrive", "arrive_drop", "test_wait", "try_wait")
    if has_result and not isinstance(ops[0], Reg | Sink):  # arrive without a result on a remote mbarrier
        ops = (Sink(), *ops)
    known = {
        "arrive": ("expect_tx", "noComplete"), "arrive_drop": ("expect_tx", "noComplete"),
        "test_wait": ("parity",), "try_wait": ("parity",),
    }.get(what, ())  # fmt: skip
    _known(i, what, *known, *_SHARED, *_ORDERS, "b64")
    site, at = f"i32 {f.site(i)}", f"ptr {_offsets(f, i, ops[1 if has_result else 0])}"
    if what == "init":
        _call(f, "ws_mbarrier_init", site, at, f"ptr {_words(f, ops[1])}")
    elif what == "inval":
        _call(f, "ws_mbarrier_inval", site, at)
    elif what in ("expect_tx", "complete_tx"):
        _call(f, "ws_mbarrier_bytes", site, at, f"ptr {_words(f, ops[1])}", f"i32 {int(what == 'complete_tx')}")
    elif what in ("arrive", "arrive_drop"):
        lower_arrive(f, i, ops, site, at)
    else:
        lower_wait(f, i, ops, site, at)


def lower_arrive(f: FunctionLowering, i: Instruction, ops: tuple[Operand | None, ...], site: str, at: str) -> None:
    """mbarrier.arrive, mbarrier.arrive_drop: the state is that before the arrival."""
    how = _DROP * i.has("arrive_drop") | _STAY * i.has("noComplete")
    number = _words(f, ops[2] if len(ops) > 2 else None)
    count, expected = ("null", number) if i.has("expect_tx") else (number, "null")
    state = "null" if isinstance(ops[0], Sink) else f.buffer("i64")
    _call(f, "ws_mbarrier_arrive", site, f"i32 {how}", at, f"ptr {count}", f"ptr {expected}", f"ptr {state}")
    if state != "null":
        f.dst(ops[0], f.reload(state, "i64"))


def lower_wait(f: FunctionLowering, i: Instruction, ops: tuple[Operand | None, ...], site: str, at: str) -> None:
    """mbarrier.test_wait, mbarrier.try_wait: is the phase complete?  How long to wait for it is up to us."""
    if i.has("parity"):
        which = ("ptr null", f"ptr {_words(f, ops[2])}")
    else:
        which = (f"ptr {f.spill(f.src(ops[2], 'b64'))}", "ptr null")
    done = _call(f, "ws_mbarrier_wait", "ptr %g", site, at, *which, ret="i32")
    assert done is not None
    f.dst(ops[0], f.b.lanes(done))
