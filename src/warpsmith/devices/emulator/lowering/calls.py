"""Calls (PTX ISA 9.7.12, call) that are not expanded in place: recursive ones, and those through pointers.

Arguments and results travel in local memory: a callee's frame starts where its caller's ends, results
first, then parameters, then its own variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ptx.ast import Function, Instruction, Label, Param, Reg, Special, Sym, Vec
from .. import abi
from ..ir import Val, const
from . import Unsupported, lowers
from .access import load, store
from .control import fail
from .library import LIBRARY

if TYPE_CHECKING:
    from .function import FunctionLowering


def area(params: tuple[Param, ...], at: int) -> tuple[list[int], int]:
    """Offsets of parameters laid out one after the other from ``at``, and the end."""
    offsets = []
    for p in params:
        size_align = max(p.align, 8)
        at = (at + size_align - 1) // size_align * size_align
        offsets.append(at)
        at += p.size
    return offsets, at


@lowers("call")
def lower_call(f: FunctionLowering, i: Instruction) -> None:
    """call: direct (also recursive), through a pointer, or one of the functions that the device library provides."""
    returns, callee, args, prototype = i.operands
    outs = returns.items if isinstance(returns, Vec) else ()
    ins = args.items if isinstance(args, Vec) else ()
    if isinstance(callee, Sym) and callee.name in LIBRARY:
        LIBRARY[callee.name](f, i, list(outs), list(ins))
        return
    if isinstance(callee, Sym):
        target = f.module.functions.get(f.module.aliases.get(callee.name, callee.name))
        if target is None or target.body is None:
            raise Unsupported(f"call of {callee.name}, which this PTX does not define", i)
        base = pass_arguments(f, i, target, list(ins))
        f.kernel.calls.setdefault(f.function.name, set()).add(target.name)
        f.b.line(f"call void {f.kernel.need(target.name)}(ptr %w, i32 {f.active.name}, i32 {base.name})")
        after_call(f)
        fetch_results(f, i, target, list(outs))
        return
    if isinstance(callee, Reg | Special):
        if not isinstance(prototype, Label):
            raise Unsupported(f"{i.text} through a pointer without a prototype", i)
        lower_indirect(f, i, callee, prototype.name, list(outs), list(ins))
        return
    raise Unsupported(f"{i.text} of {callee!r}", i)


def lower_indirect(
    f: FunctionLowering, i: Instruction, callee: Reg | Special, label: str, outs: list[object], ins: list[object]
) -> None:
    """Lanes that call the same function go together, one function after the other."""
    b = f.b
    shape = f.function.prototypes.get(label)
    candidates = [f.module.functions[n] for n in f.kernel.addressed if f.module.functions[n].body is not None]
    if shape is None:
        names = f.function.call_targets.get(label, ())
        candidates = [f.module.functions[n] for n in names if n in f.module.functions]
        shape = candidates[0] if candidates else None
    if shape is None:
        raise Unsupported(f"{i.text}: no prototype named {label}", i)

    def sizes(fn: Function) -> tuple[list[int], list[int]]:
        return [p.size for p in fn.returns], [p.size for p in fn.params]

    candidates = [c for c in candidates if sizes(c) == sizes(shape)]
    no_function = "call through a pointer that is not a function of this module with these parameters"
    if not candidates:
        fail(f, i, abi.ERRORS["call"], no_function)
        return
    base = pass_arguments(f, i, shape, ins)
    target = f.src(callee, "u64")
    vector = b.vec(target)
    f.entry.append(f"  %left.{f.labels} = alloca i32, align 4")
    left = f"%left.{f.labels}"
    b.line(f"store i32 {f.active.name}, ptr {left}, align 4")
    loop, done, bad, step = (f.fresh(s) for s in ("calls", "called", "nofunction", "step"))
    b.line(f"br label %{loop}")
    b.label(loop)
    rest = b.raw("i32", True, f"load i32, ptr {left}, align 4")
    lane = b.op("and", b.call("llvm.cttz", rest, const(0, "i1")), const(31, "i32"))
    address = b.lane(Val(vector.name, vector.ty), lane)
    same = b.op("and", b.bits(b.cmp("eq", Val(vector.name, vector.ty), address)), rest)
    cases = [
        (f.kernel.addressed.index(c.name) if c.name in f.kernel.addressed else None, c, f.fresh("callee"))
        for c in candidates
    ]
    table = " ".join(f"i64 {abi.FUNCTION_BASE + 16 * n}, label %{lab}" for n, _, lab in cases if n is not None)
    b.line(f"switch i64 {address.name}, label %{bad} [{table}]")
    for n, c, lab in cases:
        if n is None:
            continue
        b.label(lab)
        f.kernel.calls.setdefault(f.function.name, set()).add(c.name)
        b.line(f"call void {f.kernel.need(c.name)}(ptr %w, i32 {same.name}, i32 {base.name})")
        b.line(f"br label %{step}")
    b.label(bad)
    text = f.kernel_string(no_function)
    f.runtime(
        "ws_fail", "void", "ptr %w", f"i32 {f.site(i)}", f"i32 {same.name}", f"i32 {abi.ERRORS['call']}", f"ptr {text}"
    )
    b.line(f"br label %{step}")
    b.label(step)
    now = b.op("xor", b.raw("i32", True, f"load i32, ptr {left}, align 4"), same)
    b.line(f"store i32 {now.name}, ptr {left}, align 4")
    b.line(f"br i1 {b.cmp('eq', now, const(0, 'i32')).name}, label %{done}, label %{loop}")
    b.label(done)
    after_call(f)
    fetch_results(f, i, shape, outs)


def callee_frame(f: FunctionLowering) -> Val:
    """Where the local frame of a function called from here starts."""
    if f.function.is_entry:
        return const(f.local_size, "i32")
    return f.b.raw("i32", True, f"add i32 %frame, {f.local_size}")


def pass_arguments(f: FunctionLowering, i: Instruction, shape: Function, ins: list[object]) -> Val:
    """Copy arguments from the caller's .param variables (or registers) to the callee's frame."""
    _, at = area(shape.returns, 0)
    offsets, end = area(shape.params, at)
    if len(ins) != len(shape.params):
        raise Unsupported(f"{i.text} of {shape.name} with {len(ins)} arguments instead of {len(shape.params)}", i)
    base = callee_frame(f)
    if not f.function.is_entry:
        check_depth(f, i, base, f.local_size if shape.name == f.function.name else end)
    for op, p, offset in zip(ins, shape.params, offsets, strict=True):
        to = f.b.cast("zext", f.b.op("add", base, const(offset, "i32")), "i64")
        if isinstance(op, Sym) and op.name in f.locals:
            copy_local(f, i, f.b.cast("zext", f.local_address(op.name), "i64"), to, p.size)
        else:
            v = f.fit(f.src(op, p.type), f"i{8 * p.size}")  # type: ignore[arg-type]
            store(f, i, "local", to, [v], p.size)
    return base


def check_depth(f: FunctionLowering, i: Instruction, base: Val, size: int) -> None:
    """Stop where the callee's frame, or what is known of its size, would not fit the lanes' local memory any more."""
    b = f.b
    deep = b.cmp("ugt", b.op("add", base, const(size, "i32")), f.field("local_size"))
    over, fits = f.fresh("over"), f.fresh("fits")
    b.line(f"br i1 {deep.name}, label %{over}, label %{fits}, !prof !1")
    b.label(over)
    text = f.kernel_string(
        "device stack overflow: the calls of this kernel are nested too deeply (or recursion does not end)"
    )
    where = ("ptr %w", f"i32 {f.site(i)}", f"i32 {f.active.name}")
    f.runtime("ws_fail", "void", *where, f"i32 {abi.ERRORS['stack']}", f"ptr {text}")
    b.line(f"br label %{fits}")
    b.label(fits)


def fetch_results(f: FunctionLowering, i: Instruction, shape: Function, outs: list[object]) -> None:
    """Copy results from the callee's frame to the caller's .param variables (or registers)."""
    offsets, _ = area(shape.returns, 0)
    base = callee_frame(f)
    for op, p, offset in zip(outs, shape.returns, offsets, strict=False):
        source = f.b.cast("zext", f.b.op("add", base, const(offset, "i32")), "i64")
        if isinstance(op, Sym) and op.name in f.locals:
            copy_local(f, i, source, f.b.cast("zext", f.local_address(op.name), "i64"), p.size)
        elif isinstance(op, Reg):
            f.dst(op, load(f, i, "local", source, p.size, 1)[0])


def copy_local(f: FunctionLowering, i: Instruction, source: Val, to: Val, size: int) -> None:
    """Copy bytes within each lane's local memory."""

    done = 0
    while done < size:
        n = next(k for k in (8, 4, 2, 1) if size - done >= k)
        v = load(f, i, "local", f.b.op("add", source, const(done, "i64")), n, 1)
        store(f, i, "local", f.b.op("add", to, const(done, "i64")), v, n)
        done += n


def after_call(f: FunctionLowering) -> None:
    """Lanes that executed ``exit`` in the callee are gone."""
    b = f.b
    left = b.op("and", f.active, f.field("live"))
    gone, stay, last = f.fresh("gone"), f.fresh("stay"), f.fresh("last")
    b.line(f"br i1 {b.cmp('eq', left, f.active).name}, label %{stay}, label %{gone}, !prof !2")
    b.label(gone)
    at = f.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['mask'][0]}")
    b.line(f"store i32 {left.name}, ptr {at}, align 4")
    b.line(f"br i1 {b.cmp('eq', left, const(0, 'i32')).name}, label %{last}, label %{stay}")
    b.label(last)
    r = f.runtime("ws_next", "i32", "ptr %w", "ptr %g")
    assert r is not None
    f.switch(r)
    b.label(stay)
    at = f.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['mask'][0]}")
    f._active = b.raw("i32", True, f"load i32, ptr {at}, align 4")
