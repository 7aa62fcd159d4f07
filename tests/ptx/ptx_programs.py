"""Random PTX functions, and a small machine that runs a warp of them lane by lane under the scheduler's rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from warpsmith.ptx import cfg, dataflow, parse
from warpsmith.ptx.ast import Addr, Function, Imm, Instruction, Module, Operand, Reg, Special

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
DECLARATIONS = ".reg .b32 %r<12>; .reg .pred %p<4>;"
LANES = 4


def function(body: str, head: str = ".visible .entry k(.param .u32 n)") -> Function:
    (f,) = parse(f"{HEADER}{head}\n{{ {DECLARATIONS}\n{body}\n}}").functions.values()
    return f


def module(text: str) -> Module:
    return parse(HEADER + text)


def random_function(random: Random) -> Function:
    """Blocks of a few instructions with jumps to anywhere: loops, irreducible regions, early exits, waiting."""
    blocks = random.randint(2, 9)
    registers = random.choice([4, 8, 12])
    own = random.randrange(blocks)  # the block where lanes start to differ

    def reg() -> str:
        return f"%r{random.randrange(registers)}"

    def pred() -> str:
        return f"%p{random.randrange(3)}"

    def source() -> str:
        return random.choice(
            [reg(), reg(), reg(), str(random.randrange(3)), "%ctaid.x", random.choice(["%tid.x", "1"])]
        )

    def guard(chance: float) -> str:
        return f"@{random.choice(['', '!'])}{pred()} " if random.random() < chance else ""

    def simple() -> str:
        return guard(0.15) + random.choice(
            [
                f"mov.u32 {reg()}, {source()};",
                f"add.u32 {reg()}, {source()}, {source()};",
                f"and.b32 {reg()}, {reg()}, {random.choice([1, 3])};",
                f"setp.lt.u32 {pred()}, {source()}, {source()};",
                f"setp.eq.u32 {pred()}, {reg()}, {source()};",
                f"setp.lt.u32 {pred()}, {reg()}, %tid.x;",
                f"add.u32 {reg()}, {reg()}, 1;",
                "add.u32 %r0, %r0, 1;",
                f"selp.u32 {reg()}, {source()}, {source()}, {pred()};",
                f"ld.param.u32 {reg()}, [n];",
                f"ld.global.u32 {reg()}, [{random.choice(['64', reg()])}];",
                f"st.global.u32 [64], {reg()};",
            ]
        )

    def end() -> str:
        target = f"L{random.randrange(blocks)}"
        if random.random() < 0.1:
            return f"brx.idx {reg()}, T;"
        return random.choice(
            [f"@{pred()} bra {target};", f"@!{pred()} bra {target};", f"bra {target};", "", guard(0.5) + "ret;"]
        )

    lines = [f"mov.u32 %r{k}, 0;" for k in range(3)] + [f"setp.eq.u32 %p{k}, 0, 1;" for k in range(2)]
    lines.append(
        "T: .branchtargets " + ", ".join(f"L{random.randrange(blocks)}" for _ in range(random.randint(2, 3))) + ";"
    )
    waits = random.random() < 0.4
    for k in range(blocks):
        lines.append(f"L{k}:")
        lines += [simple() for _ in range(random.randint(0, 4))]
        if k == own:
            lines.append(f"setp.lt.u32 {pred()}, {random.choice([reg(), '2'])}, %tid.x;")
        if waits and random.random() < 0.2:
            lines.append(random.choice(["bar.warp.sync 15;", f"atom.global.add.u32 {reg()}, [64], 1;"]))
        lines.append(end())
    return function("\n".join(lines))


class Unsound(AssertionError):
    """An analysis promised what the machine did not find."""


@dataclass
class Group:
    """Lanes at an instruction of a block; in the middle of one only if parked there."""

    rank: int
    at: int
    lanes: frozenset[int]


@dataclass
class Machine:
    """Runs one warp and checks on the way what the analyses say.

    Registers are kept for every lane, and those said to be uniform in one slot as well; a read must find the same in
    both.  Registers that are not live at the start of a block are forgotten there.
    """

    function: Function
    random: Random
    steps: int = 150
    lanes: list[dict[str, int | None]] = field(default_factory=lambda: [{} for _ in range(LANES)])
    slots: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = cfg.build(self.function)
        self.facts = dataflow.uniformity(self.function, self.graph)
        live = dataflow.liveness(self.function, self.graph)
        self.live = [live.live_in(b.index) for b in self.graph.blocks]
        self.clock = 0

    def run(self) -> None:
        groups = [Group(0, 0, frozenset(range(LANES)))]
        while groups and self.steps > 0:
            self.steps -= 1
            choice = min(groups, key=lambda g: (g.rank, g.at))
            passed = [g for g in groups if g.rank < choice.rank or g is choice]
            # rule 2: groups in waiting blocks may be passed over
            while len(groups) > len(passed) and choice.rank in self.facts.waiting_blocks and self.random.random() < 0.5:
                rest = [g for g in groups if g not in passed]
                choice = min(rest, key=lambda g: (g.rank, g.at))
                passed.append(choice)
            groups.remove(choice)
            groups = self._merge(groups + self._block(choice, groups))

    @staticmethod
    def _merge(groups: list[Group]) -> list[Group]:
        merged: list[Group] = []
        for g in groups:
            other = next((m for m in merged if (m.rank, m.at) == (g.rank, g.at) and g.at == 0), None)
            if other:
                other.lanes |= g.lanes
            else:
                merged.append(g)
        return merged

    def _block(self, group: Group, others: list[Group]) -> list[Group]:
        """Run a block, or what is left of it; returns where its lanes are then."""
        if others and group.rank not in self.facts.parted_blocks:
            raise Unsound(f"block {group.rank} runs while lanes are at {[g.rank for g in others]}")
        block = self.graph.blocks[group.rank]
        if group.at == 0:
            for lane in group.lanes:
                for name in self.lanes[lane]:
                    if name not in self.live[group.rank]:
                        self.lanes[lane][name] = None
        leaving: set[int] = set()
        for k, i in enumerate(block.instructions[group.at :], group.at):
            self.clock += 1
            if i.opcode == "bar" and k > group.at and others and self.random.random() < 0.5:
                return [Group(group.rank, k, group.lanes)]
            active = {n for n in group.lanes if i.guard is None or self._predicate(n, i)}
            if i.opcode in ("bra", "brx"):
                return self._branch(block, i, group.lanes, active)
            if i.opcode == "ret":
                leaving |= active
            else:
                self._execute(i, active)
        stay = group.lanes - leaving
        return [Group(block.successors[-1], 0, stay)] if stay else []

    def _branch(self, block: cfg.Block, i: Instruction, lanes: frozenset[int], active: set[int]) -> list[Group]:
        where: dict[int, set[int]] = {}
        for n in lanes:
            if i.opcode == "brx":
                target = block.successors[self._value(n, i.operands[0]) % len(block.successors)]
            else:
                target = block.successors[0] if n in active else block.successors[-1]
            where.setdefault(target, set()).add(n)
        if len(where) > 1 and block.index not in self.facts.divergent_branches:
            raise Unsound(f"branch of block {block.index} parts lanes")
        # rule 3: lanes that only leave do so at once
        kept = self.graph.kept_successors(block)
        return [Group(t, 0, frozenset(g)) for t, g in where.items() if t in kept]

    def _predicate(self, lane: int, i: Instruction) -> bool:
        assert i.guard is not None
        return bool(self._value(lane, i.guard.reg)) != i.guard.negated

    def _value(self, lane: int, operand: Operand | None) -> int:
        if isinstance(operand, Imm):
            return operand.value
        if isinstance(operand, Special):
            return lane if operand.name == "%tid.x" else 2
        assert isinstance(operand, Reg)
        slot = self.slots.get(operand.name, 0) if operand.name in self.facts.uniform_registers else None
        if operand.name not in self.lanes[lane]:
            return slot or 0  # never written: anything will do
        value = self.lanes[lane][operand.name]
        if value is None:
            raise Unsound(f"{operand.name} is read but was said to be dead")
        if slot not in (None, value):
            raise Unsound(f"{operand.name} is {value} in lane {lane} and {slot} in its slot")
        return value

    def _execute(self, i: Instruction, active: set[int]) -> None:
        results = {n: self._result(n, i) for n in sorted(active)}
        if not dataflow.writes(i) or not results:
            return
        target = i.operands[0]
        assert isinstance(target, Reg)
        if target.name in self.facts.uniform_registers:
            if len(set(results.values())) > 1:
                raise Unsound(f"{i.text} at line {i.line} gives {results} to uniform {target.name}")
            self.slots[target.name] = results[min(results)]
        for n, value in results.items():
            self.lanes[n][target.name] = value

    def _result(self, lane: int, i: Instruction) -> int:
        if i.opcode in ("bar", "st"):
            for operand in i.operands[1:]:
                self._value(lane, operand)
            return 0
        if i.opcode == "ld":
            base = i.operands[1].base if isinstance(i.operands[1], Addr) else None
            address = self._value(lane, base) if isinstance(base, Reg) else 64
            return 7 if i.has("param") else address * 31 + self.clock  # memory that others change all the time
        if i.opcode == "atom":
            self.clock += 1
            return self.clock
        values = [self._value(lane, o) for o in i.operands[1:]]
        if i.opcode == "selp":
            return values[0] if values[2] else values[1]
        if i.opcode == "setp":
            return int(values[0] < values[1] if i.has("lt") else values[0] == values[1])
        a, b = (*values, 0)[:2]
        return {"mov": a, "add": a + b, "and": a & b}[i.opcode] & 0xFFFFFFFF
