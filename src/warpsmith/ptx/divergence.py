"""Which registers have one value for all lanes of a warp, and where lanes of a warp may be apart.

The analysis follows the way lanes are scheduled ("thread frontiers", see ``cfg``).  It is right if the scheduler
keeps these rules:

1. Of the groups of lanes of one activation, the one at the block of smallest rank runs; groups at the same
   block run as one.
2. A group is passed over, so that one of larger rank runs before it, only while it stands in a block of
   ``Uniformity.waiting_blocks``: at an instruction that waits for other lanes, or in a loop that polls what another
   thread writes.  Any other loop ends by itself, and the groups behind it can wait.
3. Lanes that a guarded ``bra`` sends to a block that only leaves, and lanes under the guard of ``ret`` or ``exit``,
   leave at once.  (Where all lanes of the group leave, others may be waiting all the same: it is their turn then.)

For every block the analysis collects its *frontier*: the blocks at whose start other lanes of the warp may be
waiting for their turn while it runs.  A branch that parts lanes puts its targets into the frontier of each other; a
block whose frontier is empty runs with all the lanes that are left.  Where lanes may be passed over (rule 2) the order
of ranks is lost, and everything that those lanes or the lanes in their frontier can still reach counts as parted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .ast import Addr, Function, Instruction, Module, Operand, Reg, Special, Sym, TensorAddr, Vec
from .cfg import Cfg, Loop
from .effects import CARRY, is_polling, is_synchronising, reads, writes

#: Functions of the result depend on nothing but the operands.
_PURE = frozenset((
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos",
    "createpolicy", "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "getctarank", "isspacep", "lg2", "lop3",
    "mad", "mad24", "madc", "mapa", "max", "min", "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp",
    "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "subc", "szext",
    "tanh", "testp", "xor",
))  # fmt: skip
#: Special registers that are the same in all lanes of a warp at any time.
_UNIFORM_SPECIALS = frozenset((
    "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%is_explicit_cluster", "%cluster_ctarank",
    "%cluster_nctarank", "%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size", "%current_graph_exec",
))  # fmt: skip
_UNIFORM_PREFIXES = (
    "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid", "%envreg",
    "%reserved_smem_offset_",
)  # fmt: skip
_LOAD_SPACES = frozenset(("global", "const", "shared", "shared::cta", "shared::cluster"))
_PARAM_SPACES = frozenset(("param", "param::entry", "param::func"))
_ORDERED = ("volatile", "relaxed", "acquire", "mmio")
#: Functions of the device library that never wait for other lanes.
_LIBRARY = frozenset(("vprintf", "__assertfail", "malloc", "free"))


@dataclass(slots=True)
class Uniformity:
    """What is known of the lanes of a warp in one function.

    ``uniform_registers`` hold, wherever they are live, one value for all lanes of the activation that are left: a
    scalar can stand for them.  ``invariant_registers`` are those of them that have only one value, whenever and
    by whichever lanes they are written.  ``divergent_branches``: blocks whose last instruction may part lanes.
    ``parted_blocks`` may run while other lanes of the activation wait elsewhere: ``frontiers[k]`` has bit ``m`` if
    they may wait at block ``m`` while block ``k`` runs, except that ``overtaken_blocks`` may run while others are
    anywhere.  ``waiting_blocks``: see rule 2 above.
    """

    uniform_registers: frozenset[str]
    invariant_registers: frozenset[str]
    divergent_branches: frozenset[int]
    parted_blocks: frozenset[int]
    waiting_blocks: frozenset[int]
    overtaken_blocks: frozenset[int]
    frontiers: list[int]


def uniformity(function: Function, cfg: Cfg, module: Module | None = None) -> Uniformity:
    """Analyse a function.  With its module, calls of functions that never wait are known to be harmless."""
    return _Analysis(function, cfg, module).run()


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction with its place and its effects."""

    block: int
    instruction: Instruction
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class _Analysis:
    def __init__(self, function: Function, cfg: Cfg, module: Module | None) -> None:
        self.function, self.cfg = function, cfg
        self.steps = [[_Step(b.index, i, reads(i), writes(i)) for i in b.instructions] for b in cfg.blocks]
        self.users: dict[str, list[_Step]] = {}
        self.definitions: dict[str, list[_Step]] = {}
        for step in (s for steps in self.steps for s in steps):
            for name in step.reads:
                self.users.setdefault(name, []).append(step)
            for name in step.writes:
                self.definitions.setdefault(name, []).append(step)
        self.params = frozenset(p.name for p in function.params)
        self.outside = frozenset(p.name for p in (*function.params, *function.returns) if p.is_reg)
        self.invariant = self._invariants()
        self.waiting = waiting_blocks(cfg, module)
        self.divergent: set[str] = set()
        self.branches: set[int] = set()
        self.frontiers = [0] * len(cfg.blocks)
        self.overtaken: set[int] = set()
        self.todo: list[_Step] = []

    def run(self) -> Uniformity:
        """Start from "everything is uniform" and take back what cannot be, until nothing changes."""
        for name in self.outside:
            self._mark(name)
        for step in (s for steps in self.steps for s in steps):
            self._visit(step)
        while self.todo:
            self._visit(self.todo.pop())
        names = (*self.function.registers, CARRY)
        return Uniformity(
            frozenset(name for name in names if name not in self.divergent),
            frozenset(self.invariant),
            frozenset(self.branches),
            frozenset(k for k in range(len(self.steps)) if self._is_parted(k)),
            self.waiting,
            frozenset(self.overtaken),
            self.frontiers,
        )

    def _mark(self, name: str) -> None:
        if name not in self.divergent and name not in self.invariant:
            self.divergent.add(name)
            self.todo += self.users.get(name, ())

    def _is_parted(self, block: int) -> bool:
        return block in self.overtaken or self.frontiers[block] != 0

    def _visit(self, step: _Step) -> None:
        i = step.instruction
        mixed = any(name in self.divergent for name in step.reads)
        if i.opcode in ("bra", "brx"):
            if mixed and step.block not in self.branches:
                self.branches.add(step.block)
                self._part(step.block)
        elif step.writes and (mixed or self._is_parted(step.block) or not self._is_uniform(i)):
            for name in step.writes:
                self._mark(name)

    def _part(self, block: int) -> None:
        """Spread the frontiers after a branch turned out to part lanes."""
        todo = {block}
        while todo:
            k = todo.pop()
            if k in self.overtaken:
                continue
            if self.frontiers[k] and k in self.waiting:
                self._overtake([*self.cfg.blocks[k].successors, *_bits(self.frontiers[k])])
                continue
            for n, more in self._flow(k):
                new = self.frontiers[n] | more
                if new != self.frontiers[n] and n not in self.overtaken:
                    self._parted(n)
                    self.frontiers[n] = new
                    todo.add(n)

    def _parted(self, block: int) -> None:
        """The writes of a block no longer reach all lanes."""
        if not self._is_parted(block):
            self.todo += self.steps[block]

    def _overtake(self, blocks: list[int]) -> None:
        """Lanes may come to these blocks, and to all behind them, in any order."""
        while blocks:
            k = blocks.pop()
            if k not in self.overtaken:
                self._parted(k)
                self.overtaken.add(k)
                blocks += self.cfg.blocks[k].successors

    def _flow(self, k: int) -> Iterator[tuple[int, int]]:
        """Blocks that may run next after block ``k``, with who may wait meanwhile."""
        block, frontier = self.cfg.blocks[k], self.frontiers[k]
        kept = set(self.cfg.kept_successors(block))
        targets = sum(1 << t for t in kept)
        leaving = block.leaves or not kept or len(kept) < len(set(block.successors))
        for n in _bits(frontier):
            if leaving or n < targets.bit_length():
                yield n, _above(n, frontier | targets)
        others = targets if k in self.branches else 0
        for t in kept:
            yield t, _above(t, frontier | others)
        for t in set(block.successors) - kept:
            yield t, _above(t, frontier)

    # -- values ------------------------------------------------------------------------------------------------

    def _is_uniform(self, i: Instruction) -> bool:
        """True if equal register operands give an equal result."""
        if i.opcode in _PURE:
            return all(_is_common(o) for o in i.operands[1:])
        return i.opcode in ("ld", "ldu") and self._is_uniform_load(i)

    def _is_uniform_load(self, i: Instruction) -> bool:
        address = i.operands[1] if len(i.operands) > 1 else None
        if not isinstance(address, Addr) or i.has(*_ORDERED):
            return False
        if not _PARAM_SPACES.isdisjoint(i.mods):
            of_call = isinstance(address.base, Sym) and address.base.name not in self.params
            return self.function.is_entry and not of_call
        return not _LOAD_SPACES.isdisjoint(i.mods)

    def _invariants(self) -> set[str]:
        """Registers with one unguarded definition from constants, kernel parameters and each other."""
        found: set[str] = set()
        todo = [d[0] for d in self.definitions.values() if len(d) == 1]
        while todo:
            step = todo.pop()
            i = step.instruction
            if i.guard is not None or not self._is_uniform(i) or any(name not in found for name in step.reads):
                continue
            if i.opcode in ("ld", "ldu") and not (i.has("const") or not _PARAM_SPACES.isdisjoint(i.mods)):
                continue
            for name in step.writes:
                if name not in found and name not in self.outside and len(self.definitions[name]) == 1:
                    found.add(name)
                    todo += self.users.get(name, ())
        return found


def _is_common(operand: Operand | None) -> bool:
    """True for operands that are the same in all lanes, apart from registers."""
    if isinstance(operand, Special):
        return operand.name in _UNIFORM_SPECIALS or operand.name.startswith(_UNIFORM_PREFIXES)
    if isinstance(operand, Vec):
        return all(_is_common(o) for o in operand.items)
    return not isinstance(operand, TensorAddr)


def _bits(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _above(n: int, bits: int) -> int:
    return bits >> (n + 1) << (n + 1)


# -- waiting -----------------------------------------------------------------------------------------------------


def waiting_blocks(cfg: Cfg, module: Module | None = None) -> frozenset[int]:
    """Blocks in which lanes may have to wait for what other lanes of their warp do elsewhere."""
    found = {b.index for b in cfg.blocks if any(may_wait(i, module) for i in b.instructions)}
    for loop in sorted(cfg.loops, key=lambda loop: len(loop.blocks)):
        if _is_polling_loop(cfg, loop, found):
            found |= loop.blocks
    return frozenset(found)


def may_wait(i: Instruction, module: Module | None = None) -> bool:
    """True if lanes may wait within this instruction."""
    return is_synchronising(i) or (i.opcode == "call" and _call_may_wait(i, module))


def _call_may_wait(call: Instruction, module: Module | None) -> bool:
    seen: set[str] = set()
    todo = [call]
    while todo:
        callee = todo.pop().operands[1]
        if not isinstance(callee, Sym):
            return True
        name = module.aliases.get(callee.name, callee.name) if module else callee.name
        if name in _LIBRARY or name in seen:
            continue
        seen.add(name)
        function = module.functions.get(name) if module else None
        if function is None or function.body is None:
            return True
        for i in function.instructions():
            if is_synchronising(i) or is_polling(i):
                return True
            if i.opcode == "call":
                todo.append(i)
    return False


def _is_polling_loop(cfg: Cfg, loop: Loop, known: set[int]) -> bool:
    """True if what a polling instruction returns can decide about a branch in the loop.

    Branches in blocks that are known to wait already (inner loops) do not count again.  A value that goes to memory or
    to a call may come back from there, so it counts as deciding."""
    inside = [i for b in sorted(loop.blocks) for i in cfg.blocks[b].instructions]
    if any(i.opcode == "nanosleep" for b in loop.blocks - known for i in cfg.blocks[b].instructions):
        return True
    polled = {name for i in inside if is_polling(i) for name in writes(i)}
    size = -1
    while len(polled) != size:
        size = len(polled)
        for i in inside:
            if not polled.isdisjoint(reads(i)):
                polled.update(writes(i))
    deciding = ("bra", "brx", "ret", "exit", "st", "call")
    return any(
        i.opcode in deciding and not polled.isdisjoint(_decides(i))
        for b in loop.blocks - known
        for i in cfg.blocks[b].instructions
    )


def _decides(i: Instruction) -> tuple[str, ...]:
    """Registers that matter for what happens next: of a store only the value."""
    if i.opcode == "st":
        value = i.operands[1] if len(i.operands) > 1 else None
        items = value.items if isinstance(value, Vec) else (value,)
        return tuple(o.name for o in items if isinstance(o, Reg))
    return reads(i)
