"""Typed PTX: what the parser makes and everything else reads.

The names are those of the PTX ISA.  Nested ``{ }`` scopes are flattened by the parser: a register,
variable or label declared in an inner scope gets a fresh name (``%r1@2``), so that a function has
one flat name space and no later stage has to know about scopes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

#: Width in bits of each fundamental type (PTX ISA 5.2.1); ``pred`` is one bit of a lane mask.
TYPE_BITS: dict[str, int] = {
    "pred": 1,
    **{f"{k}{n}": n for k in "sub" for n in (8, 16, 32, 64)},
    "b128": 128, "f16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16": 16, "bf16x2": 32,
    "tf32": 32, "e4m3": 8, "e5m2": 8, "e4m3x2": 16, "e5m2x2": 16, "u16x2": 32, "s16x2": 32, "f32x2": 64,
    "e2m1": 4, "e2m3": 8, "e3m2": 8, "ue8m0": 8, "e2m1x2": 8, "e2m3x2": 16, "e3m2x2": 16, "ue8m0x2": 16,
    "b1": 1, "u4": 4, "s4": 4, "b4": 4, "b6": 6,
    "texref": 64, "samplerref": 64, "surfref": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reg:
    """A declared register, by its flattened name."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as ``%tid.x`` or ``%laneid``; ``name`` keeps the percent sign."""

    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """A constant.  Integers are Python integers as written (may be negative); ``0f``/``0d`` literals
    keep their bits: ``kind`` is "int", "f32" or "f64" and ``value`` the integer or the bit pattern.
    Decimal floating-point literals are ``f64`` bits, as in the PTX ISA (4.5.2)."""

    value: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Sym:
    """A variable or function named as an operand (its address), with an optional offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target."""

    name: str


@dataclass(frozen=True, slots=True)
class Sink:
    """The ``_`` operand: a result nobody wants."""


@dataclass(frozen=True, slots=True)
class Addr:
    """``[base+offset]``; base is a register, a symbol, or None for an absolute address."""

    base: Reg | Sym | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TensorAddr:
    """``[base, {c0, c1}]``: a tensor map, texture or surface with coordinates (a scalar coordinate is a tuple
    of one); ``[base, {..}, {..}]`` with more numbers in ``extra``; ``[texture, sampler, {..}]``."""

    base: Addr
    coords: tuple[Operand, ...]
    extra: tuple[Operand, ...] = ()
    sampler: Reg | Sym | None = None


@dataclass(frozen=True, slots=True)
class Vec:
    """``{a, b, c, d}``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """``!%p`` as a source operand."""

    reg: Reg


@dataclass(frozen=True, slots=True)
class Pair:
    """``%p|%q`` or ``%r|%p``: two destinations in one operand."""

    first: Reg | Sink
    second: Reg | Sink


@dataclass(frozen=True, slots=True)
class Element:
    """``%r.b2`` / ``%r.h1``: one byte (``part`` "b") or half (``part`` "h") of a register in a video instruction.

    Elements of vector registers and arrays never come out of the parser: ``.reg .v4 .f32 %v`` is four
    registers ``%v.x`` ... ``%v.w`` (the operand ``%v`` a Vec of them) and ``a[3]`` a Sym or Addr with an offset."""

    base: Reg | Sym
    index: int
    part: str = ""


Operand = Reg | Special | Imm | Sym | Label | Sink | Addr | TensorAddr | Vec | Not | Pair | Element


@dataclass(frozen=True, slots=True)
class Guard:
    """``@%p`` or ``@!%p``."""

    reg: Reg
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Loc:
    """A ``.loc``: position in the source, and where it was inlined (innermost first)."""

    file: int
    line: int
    column: int = 0
    function: str | None = None
    inlined_at: Loc | None = None


@dataclass(slots=True)
class Instruction:
    """One instruction.

    ``opcode`` is the part before the first dot, ``mods`` the rest in order (``("rn", "f32")``;
    compound modifiers keep their colons: ``"L2::128B"``, ``"shared::cluster"``).
    ``call`` keeps its pieces in ``operands`` as (Vec of returns | None, callee, Vec of arguments |
    None, prototype or target-list Label | None).
    """

    opcode: str
    mods: tuple[str, ...]
    operands: tuple[Operand | None, ...]
    guard: Guard | None = None
    line: int = 0
    loc: Loc | None = None

    @property
    def text(self) -> str:
        """The full opcode as in the PTX ISA: ``ld.global.v4.f32``."""
        return ".".join((self.opcode, *self.mods))

    def has(self, *mods: str) -> bool:
        """True if any of these modifiers is present."""
        return any(m in self.mods for m in mods)

    @property
    def types(self) -> tuple[str, ...]:
        """The type modifiers in order (``("f16", "f32")`` for ``cvt.rn.f16.f32``)."""
        return tuple(m for m in self.mods if m in TYPE_BITS)

    @property
    def type(self) -> str:
        """The last type modifier; raises IndexError when there is none."""
        return self.types[-1]


@dataclass(slots=True)
class LabelDef:
    name: str
    line: int


Statement = Instruction | LabelDef


@dataclass(slots=True)
class Variable:
    """A variable in a state space (module level or hoisted from a function body).

    ``dims`` is () for a scalar; an unsized array has a first dimension of None.  ``init`` are the
    initial bytes (zero-padded by the reader to ``size``), ``relocs`` places an address:
    (byte offset, symbol, addend, generic), in 8 bytes, or in as many as the element type has if that is more
    than one.  ``alias`` is the name in the text when it was renamed.
    """

    space: str
    type: str
    name: str
    align: int
    dims: tuple[int | None, ...] = ()
    vector: int = 1
    init: bytes | None = None
    relocs: tuple[tuple[int, str, int, bool], ...] = ()
    linkage: str | None = None
    line: int = 0
    alias: str | None = None
    #: ``.attribute`` and sampler initialisers: "managed", "addr_mode_0=clamp_to_border"
    attributes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size in bytes; 0 for an unsized (extern) array."""
        n = max(TYPE_BITS[self.type], 8) // 8 * self.vector
        for d in self.dims:
            n *= d or 0
        return n

    @property
    def row(self) -> int:
        """Bytes from one element of the first dimension to the next."""
        n = max(TYPE_BITS[self.type], 8) // 8 * self.vector
        for d in self.dims[1:]:
            n *= d or 0
        return n


@dataclass(slots=True)
class Param:
    """A kernel or function parameter; ``size`` in bytes."""

    name: str
    type: str
    align: int
    size: int
    is_reg: bool = False  # ``.func (.reg .b32 r)``: parameters in registers


@dataclass(slots=True)
class Function:
    """An ``.entry`` or ``.func``.  ``body`` is None for a declaration."""

    name: str
    is_entry: bool
    params: tuple[Param, ...] = ()
    returns: tuple[Param, ...] = ()
    body: list[Statement] | None = None
    registers: dict[str, str] = field(default_factory=dict)  # flattened name -> type
    variables: list[Variable] = field(default_factory=list)  # .local/.shared/.param/.const in the body
    #: ``.branchtargets`` / ``.calltargets`` / ``.callprototype`` by label
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, Function] = field(default_factory=dict)
    #: maxntid, reqntid, minnctapersm, maxnreg, reqnctapercluster, explicitcluster, noreturn, ...
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    pragmas: list[str] = field(default_factory=list)
    linkage: str | None = None
    line: int = 0

    def instructions(self) -> Iterator[Instruction]:
        return (s for s in self.body or () if isinstance(s, Instruction))


@dataclass(slots=True)
class Module:
    """A translation unit."""

    version: tuple[int, int] = (0, 0)
    target: tuple[str, ...] = ()
    address_size: int = 64
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def kernels(self) -> dict[str, Function]:
        return {n: f for n, f in self.functions.items() if f.is_entry and f.body is not None}


class PtxError(ValueError):
    """Malformed PTX: ``line`` is the line in the PTX text, ``message`` one sentence."""

    def __init__(self, message: str, line: int = 0, name: str = "<ptx>") -> None:
        self.message, self.line, self.name = message, line, name
        super().__init__(f"{name}:{line}: {message}" if line else f"{name}: {message}")
