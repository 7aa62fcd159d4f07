"""Control-flow graph of a function, its blocks in the order in which a warp's parted lanes should run.

A block's number is its *rank*.  Of the groups of lanes of a warp that are at different blocks, the one at the
smallest rank runs first ("thread frontiers": G. Diamos et al., SIMD Re-Convergence at Thread Frontiers, MICRO
2011).  Lanes meet again as early as this order allows, so it matters:

- it is topological apart from back edges, and the blocks of a loop follow each other without a gap, so lanes
  that have left a loop wait until those inside are done;
- a loop with several back edges gets an empty *latch* block through which they all go: without one, lanes that
  come back first would run ahead into the next round;
- a block that only leaves (``ret``) is copied for every ``bra`` to it and every block that falls into it, and the copy
  stands right behind: lanes that leave then do so at once instead of waiting for the end of the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .ast import Function, Instruction, Label, LabelDef, PtxError

_LEAVING = frozenset(("ret", "exit"))
_ENDING = frozenset(("bra", "brx", "ret", "exit", "trap"))


@dataclass(slots=True)
class Block:
    """A basic block.

    ``successors`` are ranks: the targets of the last instruction in its order (for ``brx.idx`` one for each entry
    of the list, repeated as there), and last the block that follows, if control can reach it.  A guarded ``bra``
    therefore always has two, the target and the fall-through, even if they are the same.
    """

    index: int
    instructions: list[Instruction]
    labels: tuple[str, ...] = ()
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)

    @property
    def label(self) -> str | None:
        return self.labels[0] if self.labels else None

    @property
    def terminator(self) -> Instruction | None:
        """The last instruction if it can change the flow of control."""
        last = self.instructions[-1] if self.instructions else None
        return last if last and last.opcode in _ENDING else None

    @property
    def leaves(self) -> bool:
        """True if lanes may leave the function at its end."""
        return (t := self.terminator) is not None and t.opcode in _LEAVING

    @property
    def only_leaves(self) -> bool:
        """True for a block that is nothing but an unguarded ``ret`` or ``exit``."""
        return len(self.instructions) == 1 and self.leaves and self.instructions[0].guard is None


@dataclass(slots=True)
class Loop:
    """A natural loop: ``header`` dominates ``blocks``; ``latches`` jump back to it."""

    header: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    parent: Loop | None = None


@dataclass(slots=True)
class Cfg:
    """``blocks[k].index == k``; the entry is block 0.

    ``idom[k]``: immediate dominator (the entry's is itself).  ``ipdom[k]``: immediate post-dominator, where
    ``len(blocks)`` stands for the end of the function; edges on which lanes only leave do not count, because nobody
    waits for those lanes (see ``kept_successors``).  ``loops`` are in order of their headers, outer ones first.
    ``back_edges`` are all edges to the same or a smaller rank, in irreducible code too.
    """

    blocks: list[Block]
    labels: dict[str, int]
    idom: list[int]
    ipdom: list[int]
    loops: list[Loop]
    back_edges: frozenset[tuple[int, int]]

    def dominates(self, a: int, b: int) -> bool:
        """True if every path from the entry to ``b`` goes through ``a``."""
        while b != a and b != self.idom[b]:
            b = self.idom[b]
        return a == b

    def kept_successors(self, block: Block) -> list[int]:
        """Successors without those to which a guarded ``bra`` sends lanes that then only leave."""
        last = block.terminator
        if last is None or last.opcode != "bra" or last.guard is None:
            return block.successors
        return [t for t in block.successors if not self.blocks[t].only_leaves]


def build(function: Function) -> Cfg:
    """The graph of a function's body; code that cannot be reached is dropped."""
    blocks = _split(function)
    _connect(function, blocks)
    private = _copy_exits(blocks)
    _add_latches(blocks)
    copies = {copy for those in private.values() for copy in those}
    order: list[int] = []
    for b in _order(blocks):
        if b not in copies:
            order += [b, *private.get(b, ())]
    return _finish(blocks, order)


def _split(function: Function) -> list[Block]:
    """Blocks in the order of the text, without edges.  The end of the text returns."""
    blocks = [Block(0, [])]
    for statement in function.body or ():
        last = blocks[-1]
        if isinstance(statement, LabelDef):
            if last.instructions:
                last = Block(len(blocks), [])
                blocks.append(last)
            last.labels = (*last.labels, statement.name)
        else:
            last.instructions.append(statement)
            if statement.opcode in _ENDING:
                blocks.append(Block(len(blocks), []))
    if not blocks[-1].instructions:
        before = blocks[-2].instructions[-1] if len(blocks) > 1 else None
        blocks[-1].instructions.append(
            Instruction("ret", (), (), None, before.line if before else function.line, before.loc if before else None)
        )
    elif (t := blocks[-1].terminator) is None or t.guard is not None:
        end = Block(len(blocks), [Instruction("ret", (), (), None, blocks[-1].instructions[-1].line)])
        blocks.append(end)
    return blocks


def _connect(function: Function, blocks: list[Block]) -> None:
    labels = {label: b.index for b in blocks for label in b.labels}
    for block in blocks:
        last = block.terminator
        if last is not None and last.opcode in ("bra", "brx"):
            label = last.operands[-1]
            assert isinstance(label, Label)
            names = (label.name,) if last.opcode == "bra" else function.branch_targets.get(label.name)
            if names is None:
                raise PtxError(f"'{label.name}' is not a list of branch targets", last.line)
            for name in names:
                if name not in labels:
                    raise PtxError(f"'{name}' is not the label of an instruction", last.line)
            block.successors = [labels[name] for name in names]
        if last is None or last.guard is not None:
            block.successors.append(block.index + 1)


def _copy_exits(blocks: list[Block]) -> dict[int, list[int]]:
    """Give every block that goes on to one that only leaves a copy of that; block -> copies."""
    private: dict[int, list[int]] = {}
    for block in list(blocks):
        if (last := block.terminator) is not None and last.opcode == "brx":
            continue
        for target in dict.fromkeys(block.successors):
            if blocks[target].only_leaves:
                copy = Block(len(blocks), blocks[target].instructions)
                blocks.append(copy)
                block.successors = [copy.index if t == target else t for t in block.successors]
                private.setdefault(block.index, []).append(copy.index)
    return private


def _add_latches(blocks: list[Block]) -> None:
    idom = dominators([b.successors for b in blocks], 0)
    tree = _Tree(idom, 0)
    sources: dict[int, list[int]] = {}
    for block in blocks:
        if idom[block.index] is None:
            continue
        for target in dict.fromkeys(block.successors):
            if tree.dominates(target, block.index):
                sources.setdefault(target, []).append(block.index)
    for header, latches in sources.items():
        if len(latches) > 1:
            latch = Block(len(blocks), [], (), [header])
            blocks.append(latch)
            for source in latches:
                blocks[source].successors = [latch.index if t == header else t for t in blocks[source].successors]


def dominators(successors: Sequence[Sequence[int]], entry: int) -> list[int | None]:
    """Immediate dominators (Cooper, Harvey, Kennedy, 2001); None for what cannot be reached."""
    order = list(reversed(_postorder(successors, entry)))
    number = {b: k for k, b in enumerate(order)}
    before: list[list[int]] = [[] for _ in order]
    for k, b in enumerate(order):
        for t in successors[b]:
            before[number[t]].append(k)
    idom: list[int] = [0] + [-1] * (len(order) - 1)
    changed = True
    while changed:
        changed = False
        for k in range(1, len(order)):
            new = -1
            for p in before[k]:
                if idom[p] < 0:
                    continue
                a, b = p, new
                while b >= 0 and a != b:
                    if a > b:
                        a = idom[a]
                    else:
                        b = idom[b]
                new = a
            if idom[k] != new:
                idom[k], changed = new, True
    result: list[int | None] = [None] * len(successors)
    for k, b in enumerate(order):
        result[b] = order[idom[k]]
    return result


def _postorder(successors: Sequence[Sequence[int]], entry: int) -> list[int]:
    """Depth first without recursion; the successor that is first in the text is visited last, so that the
    reverse of the result keeps the order of the text where it can."""
    seen = {entry}
    stack: list[tuple[int, Iterator[int]]] = [(entry, iter(sorted(successors[entry], reverse=True)))]
    result = []
    while stack:
        node, rest = stack[-1]
        for t in rest:
            if t not in seen:
                seen.add(t)
                stack.append((t, iter(sorted(successors[t], reverse=True))))
                break
        else:
            stack.pop()
            result.append(node)
    return result


class _Tree:
    """A dominator tree that answers "does a dominate b" at once."""

    def __init__(self, idom: Sequence[int | None], entry: int) -> None:
        children: list[list[int]] = [[] for _ in idom]
        for b, d in enumerate(idom):
            if d is not None and b != entry:
                children[d].append(b)
        preorder, todo = [], [entry]
        while todo:
            b = todo.pop()
            preorder.append(b)
            todo += children[b]
        self.first = [-1] * len(idom)  # place in preorder; a subtree is contiguous there
        self.size = [1] * len(idom)
        for k, b in enumerate(preorder):
            self.first[b] = k
        for b in reversed(preorder[1:]):
            d = idom[b]
            assert d is not None
            self.size[d] += self.size[b]

    def dominates(self, a: int, b: int) -> bool:
        return self.first[a] <= self.first[b] < self.first[a] + self.size[a]


def _natural_loops(successors: Sequence[Sequence[int]]) -> list[Loop]:
    """Loops by header, outer before inner, with their parents."""
    idom = dominators(successors, 0)
    tree = _Tree(idom, 0)
    before: list[list[int]] = [[] for _ in successors]
    latches: dict[int, list[int]] = {}
    for b, targets in enumerate(successors):
        if idom[b] is None:
            continue
        for t in dict.fromkeys(targets):
            before[t].append(b)
            if tree.dominates(t, b):
                latches.setdefault(t, []).append(b)
    loops = []
    for header, sources in latches.items():
        inside = {header}
        todo = list(sources)
        while todo:
            b = todo.pop()
            if b not in inside:
                inside.add(b)
                todo += before[b]
        loops.append(Loop(header, frozenset(inside), tuple(sources)))
    loops.sort(key=lambda loop: -len(loop.blocks))
    innermost: dict[int, Loop] = {}
    for loop in loops:
        loop.parent = innermost.get(loop.header)
        for b in loop.blocks:
            innermost[b] = loop
    return loops


def _order(blocks: list[Block]) -> list[int]:
    """Blocks in rank order: every loop is sorted on its own, then stands as one node in the loop around it."""
    successors = [b.successors for b in blocks]
    loops = _natural_loops(successors)
    innermost: dict[int, Loop] = {}
    for loop in loops:
        for b in loop.blocks:
            innermost[b] = loop

    def within(b: int, region: Loop | None) -> int:
        """What stands for a block in a region: itself, or the header of the loop directly inside that holds it."""
        loop, node = innermost.get(b), b
        while loop is not region:
            assert loop is not None
            node, loop = loop.header, loop.parent
        return node

    edges: dict[int, dict[int, list[int]]] = {}  # region (header, or -1 for the function) -> graph
    for b in _postorder(successors, 0):
        for t in successors[b]:
            region = innermost.get(b)
            while region is not None and t not in region.blocks:
                region = region.parent
            if region is None or t != region.header:
                graph = edges.setdefault(region.header if region else -1, {})
                graph.setdefault(within(b, region), []).append(within(t, region))
    sorted_loops: dict[int, list[int]] = {}

    def expand(region: Loop | None, start: int) -> list[int]:
        graph = edges.get(region.header if region else -1, {})
        nodes = _reverse_postorder_of(graph, start)
        result: list[int] = []
        for node in nodes:
            own = region is not None and node == region.header
            result += [node] if own or node not in sorted_loops else sorted_loops[node]
        return result

    for loop in reversed(loops):
        sorted_loops[loop.header] = expand(loop, loop.header)
    return expand(None, within(0, None))


def _reverse_postorder_of(graph: dict[int, list[int]], start: int) -> list[int]:
    nodes = sorted({start, *graph, *(t for targets in graph.values() for t in targets)})
    number = {node: k for k, node in enumerate(nodes)}
    dense = [[number[t] for t in graph.get(node, ())] for node in nodes]
    return [nodes[k] for k in reversed(_postorder(dense, number[start]))]


def _finish(blocks: list[Block], order: list[int]) -> Cfg:
    """Renumber by rank and compute what the graph offers."""
    rank = {b: k for k, b in enumerate(order)}
    result = [
        Block(k, blocks[b].instructions, blocks[b].labels, [rank[t] for t in blocks[b].successors])
        for k, b in enumerate(order)
    ]
    for block in result:
        for t in dict.fromkeys(block.successors):
            result[t].predecessors.append(block.index)
    successors = [b.successors for b in result]
    idom = [k if d is None else d for k, d in enumerate(dominators(successors, 0))]
    back = frozenset((b.index, t) for b in result for t in b.successors if t <= b.index)
    labels = {label: b.index for b in result for label in b.labels}
    loops = sorted(_natural_loops(successors), key=lambda loop: loop.header)
    cfg = Cfg(result, labels, idom, [], loops, back)
    cfg.ipdom = _post_dominators(cfg)
    return cfg


def _post_dominators(cfg: Cfg) -> list[int]:
    """Immediate post-dominators; blocks that never come to the end get an edge to it, last block first."""
    n = len(cfg.blocks)
    backwards: list[list[int]] = [[] for _ in range(n + 1)]
    for block in cfg.blocks:
        kept = cfg.kept_successors(block)
        for t in dict.fromkeys(kept):
            backwards[t].append(block.index)
        if not kept:
            backwards[n].append(block.index)
    reached: set[int] = set()
    _reach(backwards, n, reached)
    for b in reversed(range(n)):
        if b not in reached:
            backwards[n].append(b)
            _reach(backwards, b, reached)
    return [n if d is None else d for d in dominators(backwards, n)[:n]]


def _reach(edges: Sequence[Sequence[int]], start: int, seen: set[int]) -> None:
    """Add to ``seen`` everything that can be reached."""
    todo = [start]
    while todo:
        b = todo.pop()
        if b not in seen:
            seen.add(b)
            todo += edges[b]
