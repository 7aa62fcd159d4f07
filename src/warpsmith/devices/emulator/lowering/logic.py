"""Bits: logic, shifts, fields, counts and byte permutation."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ....ptx.ast import TYPE_BITS, Imm, Instruction, Pair
from ..ir import BITS, LANES, Builder, Val, const
from . import lowers
from .common import FALSE, accept, missing, number, parts, resize, shift, whole
from .integer import is_signed, sources

if TYPE_CHECKING:
    from .function import FunctionLowering

BITS_OR_PRED = frozenset({"pred", "b16", "b32", "b64"})
B32_B64 = frozenset({"b32", "b64"})


# ---- bitwise -----------------------------------------------------------------------------------------
@lowers("and", "or", "xor")
def bitwise(f: FunctionLowering, i: Instruction) -> None:
    accept(i, BITS_OR_PRED)
    a, b = sources(f, i, i.type, i.type)
    f.dst(i.operands[0], f.b.op(i.opcode, a, b))


@lowers("not")
def invert(f: FunctionLowering, i: Instruction) -> None:
    accept(i, BITS_OR_PRED)
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.op("xor", a, const(-1, a.ty)))


@lowers("cnot")
def logical_not(f: FunctionLowering, i: Instruction) -> None:
    accept(i, BITS_OR_PRED - {"pred"})
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.cast("zext", f.b.cmp("eq", a, const(0, a.ty)), a.ty))


@lowers("lop3")
def logic_of_three(f: FunctionLowering, i: Instruction) -> None:
    """Any function of three bits; with a Boolean operator also a predicate: (d != 0) op q."""
    accept(i, {"b32"}, {"and", "or"})
    table = i.operands[4] if len(i.operands) > 4 else None
    if not isinstance(table, Imm) or len(i.operands) != (6 if i.has("and", "or") else 5):
        raise missing(i)
    a, b, c = (f.src(op, "b32") for op in i.operands[1:4])
    r = lookup(f.b, table.value & 0xFF, a, b, c)
    target = i.operands[0]
    if not i.has("and", "or"):
        return f.dst(target, r)
    if not isinstance(target, Pair):
        raise missing(i)
    p = f.b.op("and" if i.has("and") else "or", f.b.cmp("ne", r, const(0, "i32")), f.src(i.operands[5], "pred"))
    f.dst(target.first, r)
    f.dst(target.second, p)


def lookup(b: Builder, table: int, x: Val, y: Val, z: Val) -> Val:
    """Bitwise function of three operands by its truth table (bit 4x + 2y + z)."""
    made: dict[int, Val] = {0xF0: x, 0xCC: y, 0xAA: z, 0x00: const(0, x.ty), 0xFF: const(-1, x.ty)}

    def make(t: int) -> Val:
        if t not in made:
            op, left, right = formula(t)
            made[t] = b.op(op, make(left), make(right))
        return made[t]

    return make(table)


@cache
def formula(table: int) -> tuple[str, int, int]:
    """The last operation of a shortest and/or/xor formula for a truth table, and the tables of its operands."""
    levels = [[0xF0, 0xCC, 0xAA, 0xFF]]  # tables by the number of operations that they need
    found: dict[int, tuple[str, int, int]] = {t: ("", t, t) for t in (0, *levels[0])}
    while table not in found:
        level = []
        for left in range((len(levels) + 1) // 2):
            for p in levels[left]:
                for q in levels[len(levels) - 1 - left]:
                    for op, r in (("and", p & q), ("or", p | q), ("xor", p ^ q)):
                        if r not in found:
                            found[r] = (op, p, q)
                            level.append(r)
        levels.append(level)
    return found[table]


# ---- shifts ------------------------------------------------------------------------------------------
@lowers("shl")
def shift_left(f: FunctionLowering, i: Instruction) -> None:
    accept(i, {"b16", "b32", "b64"})
    a, n = sources(f, i, i.type, "u32")
    f.dst(i.operands[0], shift(f.b, "shl", a, n))


@lowers("shr")
def shift_right(f: FunctionLowering, i: Instruction) -> None:
    accept(i, {f"{k}{n}" for k in "bus" for n in (16, 32, 64)})
    a, n = sources(f, i, i.type, "u32")
    f.dst(i.operands[0], shift(f.b, "ashr" if is_signed(i.type) else "lshr", a, n))


@lowers("shf")
def funnel_shift(f: FunctionLowering, i: Instruction) -> None:
    """32 bits of the pair b:a, shifted by c modulo 32 (.wrap) or by at most 32 (.clamp)."""
    accept(i, {"b32"}, {"l", "r", "wrap", "clamp"})
    if i.has("l") == i.has("r") or i.has("wrap") == i.has("clamp"):
        raise missing(i)
    a, b, n = sources(f, i, "b32", "b32", "u32")
    r = f.b.call("llvm.fshl" if i.has("l") else "llvm.fshr", b, a, n)
    if i.has("clamp"):
        r = f.b.select(f.b.cmp("ugt", n, const(31, "i32")), a if i.has("l") else b, r)
    f.dst(i.operands[0], r)


# ---- counts ------------------------------------------------------------------------------------------
@lowers("popc")
def population_count(f: FunctionLowering, i: Instruction) -> None:
    accept(i, B32_B64)
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.cast("trunc", f.b.call("llvm.ctpop", a), "i32"))


@lowers("clz")
def count_leading_zeros(f: FunctionLowering, i: Instruction) -> None:
    accept(i, B32_B64)
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.cast("trunc", f.b.call("llvm.ctlz", a, FALSE), "i32"))


@lowers("bfind")
def find_leading_bit(f: FunctionLowering, i: Instruction) -> None:
    """Place of the highest bit that is not a copy of the sign; all ones if there is none."""
    accept(i, {"u32", "u64", "s32", "s64"}, {"shiftamt"})
    (a,) = sources(f, i, i.type)
    top = const(BITS[a.ty] - 1, a.ty)
    if is_signed(i.type):
        a = f.b.op("xor", a, f.b.op("ashr", a, top))
    zeros = f.b.call("llvm.ctlz", a, FALSE)
    if i.has("shiftamt"):
        r = f.b.select(f.b.cmp("eq", a, const(0, a.ty)), const(-1, a.ty), zeros)
    else:
        r = f.b.op("sub", top, zeros)  # -1 when all bits are zeros
    f.dst(i.operands[0], f.b.cast("trunc", r, "i32"))


@lowers("brev")
def reverse_bits(f: FunctionLowering, i: Instruction) -> None:
    accept(i, B32_B64)
    (a,) = sources(f, i, i.type)
    f.dst(i.operands[0], f.b.call("llvm.bitreverse", a))


@lowers("fns")
def find_nth_set_bit(f: FunctionLowering, i: Instruction) -> None:
    """Place of the n-th set bit from a base upwards (offset n > 0) or downwards (n < 0), all ones if none."""
    accept(i, {"b32"})
    mask, base, offset = sources(f, i, "b32", "b32", "s32")
    b = f.b
    down = b.cmp("slt", offset, const(0, "i32"))
    # Downwards is upwards in the reversed mask; the bits before the base are shifted out.
    start = b.select(down, b.op("sub", const(31, "i32"), base), base)
    rest = shift(b, "lshr", b.select(down, b.call("llvm.bitreverse", mask), mask), start)
    n = b.call("llvm.abs", offset, FALSE)
    at_base = b.cmp("eq", n, const(0, "i32"))
    left = b.op("sub", b.call("llvm.umax", n, const(1, "i32")), const(1, "i32"))  # set bits still to skip
    at = const(0, "i32")
    for width in (16, 8, 4, 2, 1):
        below = b.call("llvm.ctpop", b.op("and", rest, const((1 << width) - 1, "i32")))
        beyond = b.cmp("uge", left, below)
        left = b.select(beyond, b.op("sub", left, below), left)
        rest = b.select(beyond, b.op("lshr", rest, const(width, "i32")), rest)
        at = b.select(beyond, b.op("add", at, const(width, "i32")), at)
    found = b.op("and", b.cmp("eq", left, const(0, "i32")), b.cast("trunc", rest, "i1"))
    # Offset 0 asks for the bit at the base itself.
    found = b.op("and", found, b.op("or", b.op("xor", at_base, const(1, "i1")), b.cmp("eq", at, const(0, "i32"))))
    place = b.select(down, b.op("sub", base, at), b.op("add", base, at))
    f.dst(i.operands[0], b.select(found, place, const(-1, "i32")))


# ---- fields ------------------------------------------------------------------------------------------
def low_ones(b: Builder, count: Val, ty: str) -> Val:
    """A mask of this many low bits, all of them if the count is the width or more."""
    return b.op("xor", shift(b, "shl", const(-1, ty), count), const(-1, ty))


def field_operand(f: FunctionLowering, op: Val, ty: str) -> Val:
    """A position or length of a field: of 32-bit values it counts modulo 256; 64-bit ones look at all bits.

    (The PTX ISA says 0 to 255; this is what the hardware and ptxas do beyond.)"""
    if ty == "i64":
        return op
    return f.b.op("and", op, const(0xFF, "i32")) if number(op) is None else const(int(op.name) & 0xFF, "i32")


@lowers("bfe")
def extract_field(f: FunctionLowering, i: Instruction) -> None:
    accept(i, {"u32", "u64", "s32", "s64"})
    a, at, length = sources(f, i, i.type, "u32", "u32")
    at, length = field_operand(f, at, a.ty), field_operand(f, length, a.ty)
    if not is_signed(i.type):
        r = f.b.op("and", shift(f.b, "lshr", a, at), low_ones(f.b, length, a.ty))
        return f.dst(i.operands[0], r)
    # What lies beyond the top is copies of the sign bit, as an arithmetic shift has it; the top bit of
    # the field is then its sign.
    width, fixed = TYPE_BITS[i.type], number(length)
    a = shift(f.b, "ashr", a, at)
    if fixed is not None:
        fixed &= 0xFFFFFFFF
        spare = const(width - min(fixed, width), a.ty)
        r = f.b.op("ashr", f.b.op("shl", a, spare), spare) if fixed else const(0, a.ty)
        return f.dst(i.operands[0], r)
    spare = resize(f.b, f.b.op("sub", const(width, "i32"), f.b.call("llvm.umin", length, const(width, "i32"))), a.ty)
    r = f.b.op("ashr", f.b.op("shl", a, spare), spare)  # too far only for length 0
    f.dst(i.operands[0], f.b.select(f.b.cmp("eq", length, const(0, "i32")), const(0, a.ty), r))


@lowers("bfi")
def insert_field(f: FunctionLowering, i: Instruction) -> None:
    accept(i, B32_B64)
    a, b, at, length = sources(f, i, i.type, i.type, "u32", "u32")
    at, length = field_operand(f, at, a.ty), field_operand(f, length, a.ty)
    field = shift(f.b, "shl", low_ones(f.b, length, a.ty), at)
    a = shift(f.b, "shl", a, at)
    f.dst(i.operands[0], f.b.op("xor", b, f.b.op("and", f.b.op("xor", a, b), field)))


@lowers("bmsk")
def bit_mask(f: FunctionLowering, i: Instruction) -> None:
    """Ones in bits a..a+b-1; both count modulo 32 (.wrap) or stop at 32 (.clamp)."""
    accept(i, {"b32"}, {"clamp", "wrap"})
    at, length = sources(f, i, "u32", "u32")
    if i.has("clamp") == i.has("wrap"):
        raise missing(i)
    if i.has("wrap"):
        at, length = (f.b.op("and", v, const(31, "i32")) for v in (at, length))
    f.dst(i.operands[0], shift(f.b, "shl", low_ones(f.b, length, "i32"), at))


@lowers("szext")
def extend_field(f: FunctionLowering, i: Instruction) -> None:
    """The low b bits of a, extended by sign or zeros; b counts modulo 32 (.wrap) or stops at 32 (.clamp)."""
    accept(i, {"u32", "s32"}, {"clamp", "wrap"})
    if i.has("clamp") == i.has("wrap"):
        raise missing(i)
    a, length = sources(f, i, i.type, "u32")
    if i.has("wrap"):
        length = f.b.op("and", length, const(31, "i32"))
    if not is_signed(i.type):
        return f.dst(i.operands[0], f.b.op("and", a, low_ones(f.b, length, "i32")))
    bits = const(32, "i32")
    spare = f.b.op("sub", bits, f.b.call("llvm.umin", length, bits))  # 32 when there is no bit to keep
    r = f.b.op("ashr", f.b.op("shl", a, spare), spare)
    f.dst(i.operands[0], f.b.select(f.b.cmp("eq", length, const(0, "i32")), const(0, "i32"), r))


# ---- bytes -------------------------------------------------------------------------------------------
#: Selectors of the special modes of prmt, by the two low bits of c (PTX ISA, table of prmt).
PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@lowers("prmt")
def permute_bytes(f: FunctionLowering, i: Instruction) -> None:
    """Four bytes out of the eight of b:a; without a mode each by a nibble of c, whose top bit asks for the sign."""
    accept(i, {"b32"}, PRMT_MODES)
    a, b, c = sources(f, i, "b32", "b32", "b32")
    mode = next((m for m in i.mods if m in PRMT_MODES), None)
    fixed = number(c)
    if fixed is not None:
        selector = fixed & 0xFFFF if mode is None else PRMT_MODES[mode][fixed & 3]
        r = fixed_permutation(f.b, a, b, selector)
    else:
        if mode is not None:
            c = mode_selector(f.b, PRMT_MODES[mode], c)
        r = permutation(f.b, a, b, c, signs=mode is None)
    f.dst(i.operands[0], r)


def fixed_permutation(b: Builder, x: Val, y: Val, selector: int) -> Val:
    """One shuffle of bytes."""
    x, y = b.same(x, y)
    lanes = 1 if x.uniform else LANES
    nibbles = [selector >> (4 * k) & 15 for k in range(4)]
    left, right = parts(b, x, "i8"), parts(b, y, "i8")
    order = [n & 3 | (4 * lanes if n & 4 else 0) for n in nibbles]
    mask = ", ".join(f"i32 {4 * lane + n}" for lane in range(lanes) for n in order)
    r = b.raw(left.ty, True, f"shufflevector {left.typed}, {right.typed}, <{4 * lanes} x i32> <{mask}>")
    if selector & 0x8888:
        # An arithmetic shift by 7 makes a byte of signs, by 0 leaves it.
        signs = ", ".join(f"i8 {7 if n & 8 else 0}" for _ in range(lanes) for n in nibbles)
        r = b.raw(r.ty, True, f"ashr {r.typed}, <{signs}>")
    return whole(b, r, x)


def mode_selector(b: Builder, selectors: tuple[int, ...], c: Val) -> Val:
    """The selector that a special mode stands for."""
    packed = sum(s << (16 * k) for k, s in enumerate(selectors))
    at = b.op("shl", b.op("and", resize(b, c, "i64"), const(3, "i64")), const(4, "i64"))
    return b.op("and", b.cast("trunc", b.op("lshr", const(packed, "i64"), at), "i32"), const(0xFFFF, "i32"))


def permutation(b: Builder, x: Val, y: Val, selector: Val, signs: bool) -> Val:
    """prmt with a selector that is known only at run time."""
    r: Val | None = None
    for k in range(4):
        nibble = b.op("lshr", selector, const(4 * k, "i32")) if k else selector
        source = b.select(b.cmp("ne", b.op("and", nibble, const(4, "i32")), const(0, "i32")), y, x)
        byte = b.op("lshr", source, b.op("shl", b.op("and", nibble, const(3, "i32")), const(3, "i32")))
        byte = b.op("and", byte, const(0xFF, "i32"))
        if signs:
            negative = b.op("and", b.op("lshr", byte, const(7, "i32")), const(1, "i32"))
            spread = b.op("mul", negative, const(0xFF, "i32"))
            byte = b.select(b.cmp("ne", b.op("and", nibble, const(8, "i32")), const(0, "i32")), spread, byte)
        byte = b.op("shl", byte, const(8 * k, "i32")) if k else byte
        r = byte if r is None else b.op("or", r, byte)
    assert r is not None
    return r
