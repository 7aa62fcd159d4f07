"""The control-flow graph: small functions with known graphs, and random ones against the definitions."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_programs import function, random_function

from warpsmith.ptx import PtxError, cfg
from warpsmith.ptx.ast import Function, Instruction


def shape(f: Function) -> dict[str, list[int]]:
    """First label (or rank) -> successors."""
    return {b.label or f"#{b.index}": b.successors for b in cfg.build(f).blocks}


def test_straight_line() -> None:
    graph = cfg.build(function("mov.u32 %r1, 0; ret;"))
    assert [b.successors for b in graph.blocks] == [[]]
    assert graph.blocks[0].leaves
    assert not graph.blocks[0].only_leaves
    assert (graph.idom, graph.ipdom, graph.loops) == ([0], [1], [])


def test_if_then_else() -> None:
    f = function("@%p0 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B: mov.u32 %r2, %r1; ret;")
    graph = cfg.build(f)
    assert [b.successors for b in graph.blocks] == [[2, 1], [3], [3], []]
    assert [b.predecessors for b in graph.blocks] == [[], [0], [0], [1, 2]]
    assert graph.idom == [0, 0, 0, 0]
    assert graph.ipdom == [3, 3, 3, 4]
    assert graph.labels == {"A": 2, "B": 3}


def test_the_end_of_the_text_returns() -> None:
    graph = cfg.build(function("@%p0 bra A; A: @%p1 bra A;"))
    assert graph.blocks[-1].instructions[0].text == "ret"
    assert cfg.build(function("")).blocks[0].only_leaves
    assert cfg.build(function("bra A; A:")).blocks[0].successors == [1]


def test_a_branch_to_the_next_instruction_has_two_successors() -> None:
    assert cfg.build(function("@%p0 bra A; A: mov.u32 %r0, 0; ret;")).blocks[0].successors == [1, 1]


def test_guarded_return_goes_on() -> None:
    graph = cfg.build(function("@%p0 ret; mov.u32 %r0, 0; @%p1 exit; mov.u32 %r1, 0; @%p1 trap; ret;"))
    assert [b.successors for b in graph.blocks] == [[1], [2], [3], []]


def test_trap_ends() -> None:
    graph = cfg.build(function("@%p0 bra A; trap; A: mov.u32 %r0, 0; ret;"))
    assert [b.successors for b in graph.blocks] == [[2, 1], [], []]
    assert graph.ipdom[0] == 3


def test_indexed_branch_keeps_its_list() -> None:
    f = function("T: .branchtargets A, B, A; brx.idx %r0, T; B: mov.u32 %r1, 1; ret; A: mov.u32 %r1, 2; ret;")
    assert cfg.build(f).blocks[0].successors == [2, 1, 2]


def test_unreachable_code_is_dropped() -> None:
    graph = cfg.build(function("bra A; mov.u32 %r0, 1; B: bra B; A: mov.u32 %r0, 2; ret;"))
    assert [b.labels for b in graph.blocks] == [(), ("A",)]


def test_loop_comes_before_what_follows_it() -> None:
    """The exit of the loop stands first in the text, yet all of the loop has smaller ranks."""
    f = function("bra H; E: mov.u32 %r0, 0; ret; H: @%p0 bra E; mov.u32 %r1, 1; @%p1 bra E; mov.u32 %r2, 2; bra H;")
    graph = cfg.build(f)
    (loop,) = graph.loops
    assert sorted(loop.blocks) == [1, 2, 3]
    assert (loop.header, loop.latches) == (1, (3,))
    assert graph.labels["E"] == 4
    assert graph.back_edges == {(3, 1)}


def test_exits_of_a_loop_do_not_split_it() -> None:
    """Two exits with code of their own, on both arms of a branch inside: neither comes between the loop's blocks."""
    f = function("""
        H: @%p0 bra B;
        A: mov.u32 %r0, 0; @%p1 bra EA; bra L;
        B: mov.u32 %r0, 1; @%p1 bra EB;
        L: mov.u32 %r1, 0; @%p2 bra H;
        mov.u32 %r2, 0; ret;
        EA: mov.u32 %r2, 1; ret;
        EB: mov.u32 %r2, 2; ret;""")
    graph = cfg.build(f)
    (loop,) = graph.loops
    assert sorted(loop.blocks) == list(range(loop.header, loop.header + len(loop.blocks)))


def test_several_back_edges_meet_in_a_latch() -> None:
    f = function("H: mov.u32 %r0, 0; @%p0 bra H; mov.u32 %r1, 0; @%p1 bra H; mov.u32 %r2, 0; ret;")
    graph = cfg.build(f)
    (loop,) = graph.loops
    assert [b.successors for b in graph.blocks] == [[2, 1], [2, 3], [0], []]
    assert graph.blocks[2].instructions == []
    assert loop.latches == (2,)


def test_nested_loops() -> None:
    f = function("O: mov.u32 %r0, 0; I: mov.u32 %r1, 0; @%p0 bra I; mov.u32 %r2, 0; @%p1 bra O; mov.u32 %r3, 0; ret;")
    outer, inner = cfg.build(f).loops
    assert (outer.header, sorted(outer.blocks), outer.parent) == (0, [0, 1, 2], None)
    assert (inner.header, sorted(inner.blocks), inner.parent) == (1, [1], outer)


def test_blocks_that_only_leave_stand_behind_their_jumps() -> None:
    f = function("@%p0 bra E; mov.u32 %r0, 0; @%p1 bra A; bra E; A: mov.u32 %r1, 0; E: ret;")
    graph = cfg.build(f)
    for block in graph.blocks:
        for t in block.successors:
            if graph.blocks[t].only_leaves:
                assert t == block.index + 1
                assert graph.blocks[t].predecessors == [block.index]
    assert len({id(b.instructions[0]) for b in graph.blocks if b.only_leaves}) == 1


def test_irreducible_code_has_a_back_edge() -> None:
    graph = cfg.build(function("@%p0 bra B; A: mov.u32 %r0, 0; B: mov.u32 %r1, 0; @%p1 bra A; mov.u32 %r2, 0; ret;"))
    assert graph.back_edges == {(2, 1)}
    assert graph.loops == []


def test_list_that_is_not_a_list() -> None:
    with pytest.raises(PtxError, match=r"'A' is not a list of branch targets"):
        cfg.build(function("A: brx.idx %r0, A;"))


def test_branch_to_a_list() -> None:
    with pytest.raises(PtxError, match=r"'T' is not the label of an instruction"):
        cfg.build(function("T: .branchtargets A; A: bra T;"))


def reaches(edges: list[list[int]], start: int, without: int) -> set[int]:
    seen: set[int] = set()
    todo = [start] if start != without else []
    while todo:
        b = todo.pop()
        if b not in seen:
            seen.add(b)
            todo += [t for t in edges[b] if t != without]
    return seen


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_random_graphs(seed: int) -> None:
    """Dominators by their definition, the order by its promises."""
    f = random_function(Random(seed))
    graph = cfg.build(f)
    edges = [b.successors for b in graph.blocks]
    everything = reaches(edges, 0, -1)
    assert everything == set(range(len(edges)))
    for a in everything:
        cut = everything - reaches(edges, 0, a)
        assert cut == {b for b in everything if graph.dominates(a, b)}
    for loop in graph.loops:
        inside = range(min(loop.blocks), max(loop.blocks) + 1)
        assert loop.header == inside[0]
        assert all(k in loop.blocks or graph.blocks[k].only_leaves for k in inside)
        assert len(loop.latches) == 1
        assert loop.parent is None or loop.blocks < loop.parent.blocks
    natural = {(latch, loop.header) for loop in graph.loops for latch in loop.latches}
    assert natural <= graph.back_edges
    irreducible = graph.back_edges - natural
    assert not any(graph.dominates(t, b) for b, t in irreducible)
    # every instruction that can run is there, in the order of its block
    lines = [i for b in graph.blocks for i in b.instructions]
    assert {id(i) for i in lines} <= {id(i) for i in f.instructions()} | {id(i) for i in lines if i.text == "ret"}


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_random_post_dominators(seed: int) -> None:
    """Without the edges on which lanes only leave, in graphs where every block comes to an end."""
    graph = cfg.build(random_function(Random(seed)))
    n = len(graph.blocks)
    edges = [list(graph.kept_successors(b)) or [n] for b in graph.blocks] + [[]]
    if any(n not in reaches(edges, b, -1) for b in range(n)):
        return
    for b in range(n):
        must = {a for a in range(n) if a != b and n not in reaches(edges, b, a)}
        chain, k = set(), graph.ipdom[b]
        while k != n:
            chain.add(k)
            k = graph.ipdom[k]
        assert chain == must


def test_big_function_is_fast() -> None:
    """10,000 blocks: a loop of diamonds."""
    body = (
        "H:"
        + "".join(f"@%p0 bra A{k}; mov.u32 %r0, 1; A{k}: mov.u32 %r1, 1;" for k in range(5000))
        + "@%p1 bra H; ret;"
    )
    graph = cfg.build(function(body))
    assert len(graph.blocks) == 10_002
    assert len(graph.loops) == 1


def test_deep_nest_of_loops_does_not_recurse() -> None:
    body = (
        "".join(f"A{k}: mov.u32 %r0, 1;" for k in range(300))
        + "".join(f"@%p0 bra A{k};" for k in reversed(range(300)))
        + "ret;"
    )
    assert len(cfg.build(function(body)).loops) == 300


def test_instructions_are_shared_with_the_function() -> None:
    f = function("mov.u32 %r0, 0; ret;")
    assert [id(i) for i in cfg.build(f).blocks[0].instructions] == [
        id(s) for s in f.body or () if isinstance(s, Instruction)
    ]
