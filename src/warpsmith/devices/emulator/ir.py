"""A small writer of LLVM IR text for 32-lane code.

A value is either *uniform* (one scalar for all lanes of the warp) or a ``<32 x T>`` vector; every
operation takes both and stays scalar while all its operands are.  Text is written directly: it is an
order of magnitude faster than building an object tree, and compile time is what a person waits for.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

LANES = 32
FULL = "-1"


class Val(NamedTuple):
    """An IR value: ``name`` is a register or constant, ``ty`` the lane type (``i32``, ``float``, ``i1``...)."""

    name: str
    ty: str
    uniform: bool = False

    @property
    def full(self) -> str:
        """The IR type."""
        return self.ty if self.uniform else f"<{LANES} x {self.ty}>"

    @property
    def typed(self) -> str:
        return f"{self.full} {self.name}"


BITS = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "i128": 128,
    "half": 16,
    "bfloat": 16,
    "float": 32,
    "double": 64,
}


def const(value: int, ty: str) -> Val:
    """A uniform integer constant, wrapped to the type's width."""
    bits = BITS[ty]
    value &= (1 << bits) - 1
    if ty == "i1":
        return Val("true" if value else "false", ty, True)
    if value >> (bits - 1):
        value -= 1 << bits
    return Val(str(value), ty, True)


def fconst(value: float, ty: str = "float") -> Val:
    """A uniform float or double constant (exact: a float is written by its bits)."""
    if ty == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return Val(f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}", ty, True)


class Builder:
    """Appends instructions to the current block of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.n = 0
        self.declared: dict[str, str] = {}  # external symbols: name -> declaration
        self.splats: dict[Val, Val] = {}  # of the current block

    # -- plumbing ----------------------------------------------------------------------------------
    def new(self) -> str:
        self.n += 1
        return f"%v{self.n}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        """Start a new basic block."""
        self.lines.append(f"{name}:")
        self.splats = {}

    def declare(self, name: str, declaration: str) -> str:
        """Declare an external function once; returns its name with the sigil."""
        self.declared.setdefault(name, declaration)
        return "@" + name

    def raw(self, ty: str, uniform: bool, text: str) -> Val:
        """One instruction written out in full."""
        name = self.new()
        self.lines.append(f"  {name} = {text}")
        return Val(name, ty, uniform)

    # -- lanes -------------------------------------------------------------------------------------
    def vec(self, v: Val) -> Val:
        """The value as a vector (splat when uniform)."""
        if not v.uniform:
            return v
        hit = self.splats.get(v)
        if hit is None:
            if v.name in ("0", "false", "zeroinitializer") or v.name == "0x0000000000000000":
                return Val("zeroinitializer", v.ty)
            if v.name[0] != "%":
                return Val(f"splat ({v.ty} {v.name})", v.ty)
            one = self.raw(v.ty, False, f"insertelement <{LANES} x {v.ty}> poison, {v.ty} {v.name}, i64 0")
            hit = self.raw(
                v.ty,
                False,
                f"shufflevector <{LANES} x {v.ty}> {one.name}, <{LANES} x {v.ty}> poison, <{LANES} x i32> zeroinitializer",
            )
            self.splats[v] = hit
        return hit

    def same(self, *vs: Val) -> list[Val]:
        """All operands uniform, or all vectors."""
        return list(vs) if all(v.uniform for v in vs) else [self.vec(v) for v in vs]

    def lane(self, v: Val, index: Val | int) -> Val:
        """One lane of a value, as a uniform."""
        if v.uniform:
            return v
        i = f"i64 {index}" if isinstance(index, int) else index.typed
        return self.raw(v.ty, True, f"extractelement {v.typed}, {i}")

    # -- operations --------------------------------------------------------------------------------
    def op(self, name: str, a: Val, b: Val) -> Val:
        """A binary instruction (``add``, ``shl``, ``fmul``...)."""
        a, b = self.same(a, b)
        v = self.raw(a.ty, a.uniform, f"{name} {a.typed}, {b.name}")
        if name == "mul" and not v.uniform and v.ty in ("i32", "i64"):
            # LLVM 22's x86 back end turns shifted and truncated products of extended 16-bit values into pmulhw with
            # a wrong shift.  It does not look through this fence, which costs no instruction.
            float_type = {"i32": "float", "i64": "double"}[v.ty]
            v = self.bitcast(self.call("llvm.arithmetic.fence", self.bitcast(v, float_type)), v.ty)
        return v

    def unary(self, name: str, a: Val) -> Val:
        return self.raw(a.ty, a.uniform, f"{name} {a.typed}")

    def cmp(self, pred: str, a: Val, b: Val) -> Val:
        """icmp (``eq``, ``slt``, ``ult``...) for integers, fcmp (``oeq``, ``ult``, ``uno``...) for floats: by the type."""
        a, b = self.same(a, b)
        return self.raw("i1", a.uniform, f"{'icmp' if a.ty[0] == 'i' else 'fcmp'} {pred} {a.typed}, {b.name}")

    def select(self, c: Val, a: Val, b: Val) -> Val:
        if c.uniform:
            if c.name == "true":
                return a
            if c.name == "false":
                return b
            a, b = self.same(a, b)
        else:
            a, b = self.vec(a), self.vec(b)
        return self.raw(a.ty, a.uniform, f"select {c.typed}, {a.typed}, {b.typed}")

    def cast(self, name: str, a: Val, ty: str) -> Val:
        """``zext``, ``sext``, ``trunc``, ``fpext``, ``fptosi``... to lane type ``ty``."""
        if a.ty == ty:
            return a
        to = ty if a.uniform else f"<{LANES} x {ty}>"
        return self.raw(ty, a.uniform, f"{name} {a.typed} to {to}")

    def bitcast(self, a: Val, ty: str) -> Val:
        return self.cast("bitcast", a, ty)

    def call(self, intrinsic: str, *args: Val, ty: str | None = None) -> Val:
        """An LLVM intrinsic that is overloaded on its lane type: ``call("llvm.fma", a, b, c)``.

        ``ty`` is the result's lane type (default: that of the first operand).  Operands of type i1
        that are flags of the intrinsic (``llvm.ctlz``) are passed through as scalars.
        """
        flags = {i for i, a in enumerate(args) if a.ty == "i1" and a.name in ("true", "false")}
        vals = [a for i, a in enumerate(args) if i not in flags]
        vals = self.same(*vals)
        it = iter(vals)
        ops = [args[i] if i in flags else next(it) for i in range(len(args))]
        rty, uni = ty or ops[0].ty, vals[0].uniform
        mangle = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}
        name = f"{intrinsic}.{'' if uni else f'v{LANES}'}{mangle.get(ops[0].ty, ops[0].ty)}"
        ret = rty if uni else f"<{LANES} x {rty}>"
        self.declare(name, f"declare {ret} @{name}({', '.join(o.full for o in ops)})")
        return self.raw(rty, uni, f"call {ret} @{name}({', '.join(o.typed for o in ops)})")

    # -- masks -------------------------------------------------------------------------------------
    def bits(self, p: Val) -> Val:
        """A predicate as a 32-bit lane mask (uniform i32): bit i is lane i."""
        if p.uniform:
            return self.raw("i32", True, f"select i1 {p.name}, i32 -1, i32 0")
        return self.raw("i32", True, f"bitcast {p.typed} to i32")

    def lanes(self, mask: Val) -> Val:
        """A 32-bit lane mask as a predicate vector."""
        if mask.name == "-1":
            return Val("splat (i1 true)", "i1")
        return self.raw("i1", False, f"bitcast i32 {mask.name} to <{LANES} x i1>")
