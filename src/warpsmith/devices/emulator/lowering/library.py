"""Functions that the CUDA device run-time library provides to PTX: printf, assert, malloc, free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....ptx.ast import Instruction, Operand, Reg, Sym
from ..ir import Val, const

if TYPE_CHECKING:
    from .function import FunctionLowering

Call = Callable[["FunctionLowering", Instruction, "list[Operand]", "list[Operand]"], None]
LIBRARY: dict[str, Call] = {}


def provides(*names: str) -> Callable[[Call], Call]:
    def register(handler: Call) -> Call:
        LIBRARY.update(dict.fromkeys(names, handler))
        return handler

    return register


def argument(f: FunctionLowering, i: Instruction, op: Operand, n: int) -> Val:
    """An argument of n bytes, from a .param variable or a register."""
    from .access import load

    if isinstance(op, Sym) and op.name in f.locals:
        return load(f, i, "local", f.b.cast("zext", f.local_address(op.name), "i64"), n, 1)[0]
    return f.src(op, f"b{8 * n}")


def result(f: FunctionLowering, i: Instruction, outs: list[Operand], v: Val) -> None:
    from .access import store

    for op in outs[:1]:
        if isinstance(op, Sym) and op.name in f.locals:
            n = {"i32": 4, "i64": 8}[v.ty]
            store(f, i, "local", f.b.cast("zext", f.local_address(op.name), "i64"), [v], n)
        elif isinstance(op, Reg):
            f.dst(op, v)


@provides("vprintf")
def lower_vprintf(f: FunctionLowering, i: Instruction, outs: list[Operand], ins: list[Operand]) -> None:
    """int vprintf(const char* format, void* arguments)"""
    fmt, args = (f.spill(argument(f, i, op, 8)) for op in ins)
    out = f.buffer("i32")
    f.runtime(
        "ws_vprintf",
        "void",
        "ptr %w",
        f"i32 {f.site(i)}",
        f"ptr {fmt}",
        f"ptr {args}",
        f"ptr {out}",
        f"i32 {f.mask.name}",
    )
    result(f, i, outs, f.reload(out, "i32"))


@provides("__assertfail", "__assert_fail")
def lower_assertfail(f: FunctionLowering, i: Instruction, outs: list[Operand], ins: list[Operand]) -> None:
    """void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t charsize)"""
    message, file = (f.spill(argument(f, i, op, 8)) for op in ins[:2])
    line = f.spill(argument(f, i, ins[2], 4))
    function = f.spill(argument(f, i, ins[3], 8))
    f.runtime("ws_assertfail", "void", "ptr %w", f"i32 {f.site(i)}", f"ptr {message}", f"ptr {file}", f"ptr {line}", f"ptr {function}", f"i32 {f.mask.name}")  # fmt: skip


@provides("malloc")
def lower_malloc(f: FunctionLowering, i: Instruction, outs: list[Operand], ins: list[Operand]) -> None:
    """void* malloc(size_t): from the device heap."""
    size = f.spill(argument(f, i, ins[0], 8))
    out = f.buffer("i64")
    f.runtime("ws_device_malloc", "void", "ptr %w", f"ptr {size}", f"ptr {out}", f"i32 {f.mask.name}")
    result(f, i, outs, f.reload(out, "i64"))


@provides("free")
def lower_free(f: FunctionLowering, i: Instruction, outs: list[Operand], ins: list[Operand]) -> None:
    """void free(void*)"""
    p = f.spill(argument(f, i, ins[0], 8))
    f.runtime("ws_device_free", "void", "ptr %w", f"i32 {f.site(i)}", f"ptr {p}", f"i32 {f.mask.name}")


@provides("cudaGetDevice")
def lower_get_device(f: FunctionLowering, i: Instruction, outs: list[Operand], ins: list[Operand]) -> None:
    """cudaError_t cudaGetDevice(int*): device 0."""
    from .access import store

    store(f, i, "generic", argument(f, i, ins[0], 8), [const(0, "i32")], 4)
    result(f, i, outs, const(0, "i32"))
