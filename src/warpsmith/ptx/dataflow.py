"""Which registers are live where; with ``effects`` and ``divergence``, all that is known of the data flow."""

from __future__ import annotations

from dataclasses import dataclass

from .ast import Function, Instruction
from .cfg import Cfg
from .divergence import Uniformity, uniformity
from .effects import CARRY, has_destination, reads, writes

__all__ = ["CARRY", "Liveness", "Uniformity", "has_destination", "liveness", "reads", "step", "uniformity", "writes"]


@dataclass(slots=True)
class Liveness:
    """Live registers at the start and end of every block.

    A register is live where some lane may still read its value.  A guarded write does not end the life of the
    old value, because lanes whose guard is false keep it.  Sets are kept as bits of Python integers, bit ``k`` for
    ``names[k]``: a function may have 10,000 registers and 1,000 blocks.
    """

    names: tuple[str, ...]
    inputs: list[int]
    outputs: list[int]

    def live_in(self, block: int) -> set[str]:
        """Names of the registers live at the start of a block."""
        return self._names(self.inputs[block])

    def live_out(self, block: int) -> set[str]:
        """Names of the registers live at the end of a block."""
        return self._names(self.outputs[block])

    def _names(self, bits: int) -> set[str]:
        result = set()
        while bits:
            low = bits & -bits
            result.add(self.names[low.bit_length() - 1])
            bits ^= low
        return result


def liveness(function: Function, cfg: Cfg) -> Liveness:
    """Liveness at block boundaries.  Results returned in registers are live at the end of blocks that return."""
    names = (*function.registers, CARRY)
    bit = {name: 1 << k for k, name in enumerate(names)}
    returned = 0
    for param in function.returns:
        if param.is_reg:
            returned |= bit.get(param.name, 0)
    used, killed = [], []
    for block in cfg.blocks:
        use = kill = 0
        for i in block.instructions:
            for name in reads(i):
                use |= bit[name] & ~kill
            if i.guard is None:
                for name in writes(i):
                    kill |= bit[name]
        used.append(use)
        killed.append(kill)
    inputs, outputs = list(used), [returned if block.leaves else 0 for block in cfg.blocks]
    todo = list(range(len(cfg.blocks)))  # taken from the end: information flows backwards
    waiting = set(todo)
    while todo:
        k = todo.pop()
        waiting.discard(k)
        out = outputs[k]
        for t in cfg.blocks[k].successors:
            out |= inputs[t]
        outputs[k] = out
        new = used[k] | (out & ~killed[k])
        if new != inputs[k]:
            inputs[k] = new
            fresh = [p for p in cfg.blocks[k].predecessors if p not in waiting]
            todo += fresh
            waiting.update(fresh)
    return Liveness(names, inputs, outputs)


def step(i: Instruction, live: set[str]) -> set[str]:
    """Go backwards over one instruction: changes ``live`` (what is live after it) to what is live before it."""
    if i.guard is None:
        live.difference_update(writes(i))
    live.update(reads(i))
    return live
