"""What an instruction reads and writes among the registers, and whether lanes may wait in it."""

from __future__ import annotations

from collections.abc import Iterator

from .ast import Addr, Element, Instruction, Not, Operand, Pair, Reg, TensorAddr, Vec

#: The condition code of ``add.cc`` and its kin, as one more register of every function.
CARRY = "%cc"

#: Opcodes whose first operand is a source although it is not an address.
_NO_DESTINATION = frozenset((
    "bra", "brx", "ret", "exit", "trap", "brkpt", "membar", "fence", "nanosleep", "pmevent", "setmaxnreg",
    "griddepcontrol", "stackrestore", "cp", "st", "red", "sust", "sured", "stmatrix", "prefetch", "prefetchu",
    "discard", "applypriority", "tensormap",
))  # fmt: skip
_CARRY_READERS = frozenset(("addc", "subc", "madc"))
#: Accumulate into their first operand.
_ACCUMULATING = frozenset(("wgmma",))
_ORDERED_LOADS = frozenset(("volatile", "relaxed", "acquire", "mmio"))


def _registers(operand: Operand | None) -> Iterator[str]:
    """Names of all registers in an operand."""
    if isinstance(operand, Reg):
        yield operand.name
    elif isinstance(operand, Addr):
        if isinstance(operand.base, Reg):
            yield operand.base.name
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, Pair):
        for part in (operand.first, operand.second):
            if isinstance(part, Reg):
                yield part.name
    elif isinstance(operand, Not):
        yield operand.reg.name
    elif isinstance(operand, Element):
        yield from _registers(operand.base)
    elif isinstance(operand, TensorAddr):
        yield from _registers(operand.base)
        yield from _registers(operand.sampler)
        for item in (*operand.coords, *operand.extra):
            yield from _registers(item)


def has_destination(i: Instruction) -> bool:
    """True if the first operand is a result.

    It is, unless it is an address or the opcode is one of those that have none."""
    if not i.operands or isinstance(i.operands[0], Addr | TensorAddr) or i.opcode in _NO_DESTINATION:
        return False
    if i.opcode in ("bar", "barrier"):
        return "red" in i.mods
    if i.opcode == "wgmma":
        return "mma_async" in i.mods
    if i.opcode == "tcgen05":
        return "ld" in i.mods
    if i.opcode == "wmma":
        return "store" not in i.mods
    return True


def writes(i: Instruction) -> tuple[str, ...]:
    """Names of the registers that an instruction writes (with a guard: may write)."""
    result = tuple(_registers(i.operands[0])) if has_destination(i) else ()
    return (*result, CARRY) if "cc" in i.mods else result


def reads(i: Instruction) -> tuple[str, ...]:
    """Names of the registers that an instruction reads, its guard's included."""
    result: list[str] = [i.guard.reg.name] if i.guard else []
    first = i.operands[0] if i.operands else None
    if not has_destination(i) or i.opcode in _ACCUMULATING or isinstance(first, Element):
        result += _registers(first)
    for operand in i.operands[1:]:
        result += _registers(operand)
    if i.opcode in _CARRY_READERS:
        result.append(CARRY)
    return tuple(result)


def is_synchronising(i: Instruction) -> bool:
    """True if lanes may wait in this instruction for others of their warp or block."""
    if i.opcode in ("bar", "barrier"):
        return "arrive" not in i.mods
    return "sync" in i.mods


def is_polling(i: Instruction) -> bool:
    """True if another thread decides what this instruction returns: loops around it may wait for that thread."""
    if i.opcode == "mbarrier":
        return i.has("test_wait", "try_wait")
    if i.opcode in ("ld", "multimem"):
        return not _ORDERED_LOADS.isdisjoint(i.mods)
    return i.opcode in ("atom", "nanosleep")
