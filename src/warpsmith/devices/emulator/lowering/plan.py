"""From a function's PTX to the units that are lowered: basic blocks with ranks, live registers, and what is known of the lanes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from ....ptx import cfg as graphs
from ....ptx import dataflow
from ....ptx.ast import Function, Guard, Instruction, Label, LabelDef, Module, Special, Statement

#: Opcodes at which lanes wait for each other: in code where lanes may be apart they start a unit, so that a
#: group can wait there for the others.
MEETING = frozenset(
    {"shfl", "vote", "match", "redux", "elect", "ldmatrix", "stmatrix", "movmatrix", "mma", "wmma", "wgmma"}
)
#: Opcodes after which a parked group goes on: in such code they end a unit.
PARKING = frozenset({"bar", "barrier"})
#: Opcodes that cannot be predicated lane by lane: ``@p call`` becomes a branch around the call.
BRANCHING = frozenset({"bar", "barrier", "call", "brx"})


@dataclass(slots=True)
class Unit:
    """A stretch of code without a branch: its rank, and what it knows of the lanes.

    ``targets``: ranks of the successors, the branch's own first, the fall-through last.
    ``parted``: other lanes of the warp may be waiting elsewhere while it runs.  ``waits``: it may wait for what
    other lanes of the warp do elsewhere (a lock, a flag).  ``observed``: registers that hold what such a unit got from
    memory or a clock; they are kept in the register file, so that a warp that spins for a value that does change is
    not taken for one that spins in vain.
    """

    rank: int
    instructions: list[Instruction]
    targets: list[int] = field(default_factory=list)
    live_in: frozenset[str] = frozenset()
    live_out: frozenset[str] = frozenset()
    parted: bool = False
    waits: bool = False
    observed: frozenset[str] = frozenset()


@dataclass(slots=True)
class Plan:
    """``uniform``: registers that have one value for all lanes.  ``exits``: ranks of units that only leave."""

    units: list[Unit]
    uniform: frozenset[str]
    exits: frozenset[int]


def results_of_the_world(i: Instruction) -> tuple[str, ...]:
    """Registers that an instruction sets to something that is not a function of other registers."""
    from_memory = i.opcode in ("ld", "ldu", "atom", "mbarrier", "call") and not i.has("param", "const", "param::entry")
    clock = i.opcode == "mov" and any(
        isinstance(o, Special) and ("clock" in o.name or "timer" in o.name) for o in i.operands
    )
    return dataflow.writes(i) if from_memory or clock else ()


def asks_the_world(i: Instruction) -> bool:
    """True if the registers do not tell what this instruction will do next time."""
    return bool(results_of_the_world(i)) or i.opcode in ("call", "atom", "ld", "mbarrier")


def branch_around(function: Function) -> Function:
    """Guarded instructions that cannot be predicated lane by lane, as branches around them."""
    body: list[Statement] = []
    for s in function.body or ():
        if isinstance(s, Instruction) and s.guard is not None and s.opcode in BRANCHING:
            label = f"$around.{len(body)}"
            around = Guard(s.guard.reg, not s.guard.negated)
            body.append(Instruction("bra", (), (Label(label),), around, s.line, s.loc))
            body.append(dataclasses.replace(s, guard=None))
            body.append(LabelDef(label, s.line))
        else:
            body.append(s)
    return dataclasses.replace(function, body=body)


def pieces(instructions: list[Instruction], parted: bool) -> list[list[Instruction]]:
    """Cut a block where lanes that are apart may have to wait for each other."""
    if not parted:
        return [instructions]
    out: list[list[Instruction]] = [[]]
    for i in instructions:
        if i.opcode in MEETING and i.has("sync") and out[-1]:
            out.append([])
        out[-1].append(i)
        if i.opcode in PARKING:
            out.append([])
    if not out[-1] and len(out) > 1 and instructions[-1].opcode not in PARKING:
        out.pop()
    return out


def plan(function: Function, module: Module) -> Plan:
    """Blocks, in rank order, cut into units; ranks stay in the order of the blocks."""
    function = branch_around(function)
    cfg = graphs.build(function)
    live = dataflow.liveness(function, cfg)
    lanes = dataflow.uniformity(function, cfg, module)
    cut = [pieces(b.instructions, b.index in lanes.parted_blocks) for b in cfg.blocks]
    first: dict[int, int] = {}
    rank = 0
    for b, parts in zip(cfg.blocks, cut, strict=True):
        first[b.index] = rank
        rank += len(parts)
    units: list[Unit] = []
    for b, parts in zip(cfg.blocks, cut, strict=True):
        after = live.live_out(b.index)
        todo: list[Unit] = []
        for k in reversed(range(len(parts))):
            before = set(after)
            for i in reversed(parts[k]):
                dataflow.step(i, before)
            last = k == len(parts) - 1
            targets = [first[t] for t in b.successors] if last else [first[b.index] + k + 1]
            parted, waits = b.index in lanes.parted_blocks, b.index in lanes.waiting_blocks
            observed = frozenset(n for i in parts[k] for n in results_of_the_world(i)) if waits else frozenset()
            live_out = frozenset(after) | observed
            todo.append(
                Unit(first[b.index] + k, parts[k], targets, frozenset(before), live_out, parted, waits, observed)
            )
            after = before
        units += reversed(todo)
    exits = frozenset(
        u.rank
        for u in units
        if len(u.instructions) == 1 and u.instructions[0].opcode in ("ret", "exit") and u.instructions[0].guard is None
    )
    return Plan(units, frozenset(lanes.uniform_registers), exits)
