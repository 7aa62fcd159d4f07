"""What instructions read and write, liveness, and where lanes agree."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_programs import HEADER, Machine, Unsound, function, module, random_function

from warpsmith.ptx import cfg, dataflow, divergence, effects, parse
from warpsmith.ptx.ast import Function, Instruction


def one(text: str) -> Instruction:
    declared = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b128 %q<3>;"
    m = parse(f"{HEADER}.extern .func (.param .b32 r) f(.param .b32 a); .entry k() {{ {declared} A: {text} }}")
    (i,) = m.functions["k"].instructions()
    return i


EFFECTS = [
    # text, reads, writes
    ("mov.b32 %r1, %r2;", "%r2", "%r1"),
    ("mov.b64 {%r1, %r2}, %rd1;", "%rd1", "%r1 %r2"),
    ("mov.b64 %rd1, {%r1, %r2};", "%r1 %r2", "%rd1"),
    ("@%p1 mov.b32 %r1, %r2;", "%p1 %r2", "%r1"),
    ("@!%p1 bra A;", "%p1", ""),
    ("mov.u32 %r1, %tid.x;", "", "%r1"),
    ("setp.lt.s32 %p1|%p2, %r1, %r2;", "%r1 %r2", "%p1 %p2"),
    ("setp.lt.and.s32 %p1, %r1, %r2, !%p3;", "%r1 %r2 %p3", "%p1"),
    ("add.cc.u32 %r1, %r2, %r3;", "%r2 %r3", "%r1 %cc"),
    ("addc.cc.u32 %r1, %r2, %r3;", "%r2 %r3 %cc", "%r1 %cc"),
    ("subc.u32 %r1, %r2, %r3;", "%r2 %r3 %cc", "%r1"),
    ("madc.hi.u32 %r1, %r2, %r3, %r4;", "%r2 %r3 %r4 %cc", "%r1"),
    ("ld.global.v4.b32 {%r1, _, %r2, %r3}, [%rd1+16];", "%rd1", "%r1 %r2 %r3"),
    ("st.global.v2.b32 [%rd1], {%r1, %r2};", "%rd1 %r1 %r2", ""),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", "%r1 %r2 %r3", ""),
    ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "%rd1 %r2 %r3", "%r1"),
    ("red.global.add.u32 [%rd1], %r1;", "%rd1 %r1", ""),
    ("prefetch.global.L2 [%rd1];", "%rd1", ""),
    ("cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;", "%r1 %rd1 %r2", ""),
    ("cp.async.wait_group 1;", "", ""),
    ("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];", "%r1 %rd1 %r2 %r3 %r4", ""),
    ("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, %r3;", "%r2 %r3", "%r1 %p1"),
    ("vote.sync.ballot.b32 %r1, %p1, %r2;", "%p1 %r2", "%r1"),
    ("elect.sync _|%p1, %r1;", "%r1", "%p1"),
    ("bar.sync %r1, 64;", "%r1", ""),
    ("bar.red.popc.u32 %r1, %r2, %p1;", "%r2 %p1", "%r1"),
    ("barrier.cta.red.and.pred %p1, %r2, %p2;", "%r2 %p2", "%p1"),
    ("call (%r1), f, (%r2);", "%r2", "%r1"),
    ("call (%r1), %rd1, (%r2), A;", "%rd1 %r2", "%r1"),
    ("mbarrier.init.shared.b64 [%r1], %r2;", "%r1 %r2", ""),
    ("mbarrier.arrive.shared.b64 %rd1, [%r1];", "%r1", "%rd1"),
    ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;", "%r1 %r2", ""),
    ("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;", "%r1 %r2", "%p1"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2};", "%r1 %r2 %f2", "%f1"),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, %p1, 1, 1, 0, 1;", "%f1 %f2 %rd1 %rd2 %p1", "%f1 %f2"),
    ("wgmma.wait_group.sync.aligned 0;", "", ""),
    ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2}, [%rd1], %r3;", "%rd1 %r3", "%r1 %r2"),
    ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1}, %r3;", "%rd1 %f1 %r3", ""),
    ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];", "%r3", "%r1 %r2"),
    ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], {%r1, %r2};", "%r3 %r1 %r2", ""),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];", "%r2", "%r1"),
    ("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1};", "%r2 %r1", ""),
    ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;", "%r1", ""),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "%r1 %rd1 %rd2 %r2 %p1", ""),
    ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", "%rd1 %f5 %f6", "%f1 %f2 %f3 %f4"),
    ("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};", "%rd1 %r1 %r2 %r3", ""),
    ("vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1;", "%r2 %r3", "%r1"),
    ("nanosleep.u32 %r1;", "%r1", ""),
    ("setmaxnreg.inc.sync.aligned.u32 128;", "", ""),
    ("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;", "%q1", "%p1"),
    ("stackrestore.u64 %rd1;", "%rd1", ""),
    ("membar.gl;", "", ""),
    ("ret;", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reads", "writes"), EFFECTS)
def test_effects(text: str, reads: str, writes: str) -> None:
    i = one(text)
    assert (set(dataflow.reads(i)), set(dataflow.writes(i))) == (set(reads.split()), set(writes.split()))


class TestLiveness:
    def test_loop(self) -> None:
        f = function(
            "mov.u32 %r0, 0; mov.u32 %r1, 9; H: add.u32 %r0, %r0, %r1; setp.lt.u32 %p0, %r0, 5; @%p0 bra H; st.global.u32 [0], %r0; ret;"
        )
        live = dataflow.liveness(f, cfg.build(f))
        assert [live.live_in(k) for k in range(3)] == [set(), {"%r0", "%r1"}, {"%r0"}]
        assert [live.live_out(k) for k in range(3)] == [{"%r0", "%r1"}, {"%r0", "%r1"}, set()]

    def test_guarded_write_does_not_end_a_life(self) -> None:
        f = function("bra A; A: @%p0 mov.u32 %r0, 1; st.global.u32 [0], %r0; ret;")
        assert dataflow.liveness(f, cfg.build(f)).live_in(1) == {"%p0", "%r0"}
        f = function("bra A; A: mov.u32 %r0, 1; st.global.u32 [0], %r0; ret;")
        assert dataflow.liveness(f, cfg.build(f)).live_in(1) == set()

    def test_carry_lives_between_blocks(self) -> None:
        f = function("add.cc.u32 %r0, %r1, %r2; bra A; A: addc.u32 %r3, %r3, 0; ret;")
        assert dataflow.CARRY in dataflow.liveness(f, cfg.build(f)).live_out(0)

    def test_results_in_registers_are_live_at_the_end(self) -> None:
        f = function("bra A; A: add.u32 v, a, %r1; ret;", ".func (.reg .b32 v) f(.reg .b32 a)")
        live = dataflow.liveness(f, cfg.build(f))
        assert live.live_out(1) == {"v"}
        assert live.live_in(1) == {"a", "%r1"}

    def test_step(self) -> None:
        f = function("add.u32 %r0, %r1, %r2; @%p0 mov.u32 %r0, %r3; ret;")
        first, second, _ = f.instructions()
        after = {"%r0"}
        before_second = dataflow.step(second, set(after))
        assert before_second == {"%r0", "%r3", "%p0"}
        assert dataflow.step(first, before_second) == {"%r1", "%r2", "%r3", "%p0"}

    def test_many_registers_and_blocks(self) -> None:
        body = ".reg .b32 %x<10000>;" + "".join(
            f"B{k}: add.u32 %x{k * 10}, %x{(k * 7919) % 10000}, %x{(k * 31) % 10000}; @%p0 bra B{(k * 37) % 1000};"
            for k in range(1000)
        )
        f = function(body)
        graph = cfg.build(f)
        live = dataflow.liveness(f, graph)
        assert len(graph.blocks) > 1000
        assert max(map(int.bit_count, live.inputs)) > 500


def facts(f: Function) -> divergence.Uniformity:
    return dataflow.uniformity(f, cfg.build(f))


def uniform(body: str, head: str = ".visible .entry k(.param .u32 n)") -> set[str]:
    return set(facts(function(body, head)).uniform_registers)


class TestUniformity:
    @pytest.mark.parametrize(
        "text",
        [
            "mov.u32 %r1, 5;", "mov.u32 %r1, %ctaid.x;", "mov.u32 %r1, %ntid.y;", "ld.param.u32 %r1, [n];", "mov.u32 %r1, %warpid;",
            "ld.global.u32 %r1, [64];", "ld.const.u32 %r1, [%r2];", "ld.shared.u32 %r1, [8];", "add.u32 %r1, %r2, %r3;",
            "mov.b64 {%r1, %r2}, 7;", "setp.eq.u32 %p1, %r2, 0;", "@%p1 mov.u32 %r1, 3;", "mov.u32 %r1, %cluster_ctarank;",
        ],
    )  # fmt: skip
    def test_same_in_all_lanes(self, text: str) -> None:
        f = function(text + " ret;")
        assert set(dataflow.writes(next(f.instructions()))) <= facts(f).uniform_registers

    @pytest.mark.parametrize(
        "text",
        [
            "mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.z;", "mov.u32 %r1, %laneid;", "mov.u32 %r1, %lanemask_lt;", "mov.u32 %r1, %clock;",
            "ld.local.u32 %r1, [8];", "ld.u32 %r1, [8];", "ld.volatile.global.u32 %r1, [8];", "ld.acquire.gpu.global.u32 %r1, [8];",
            "ld.relaxed.cta.shared.u32 %r1, [8];", "atom.global.add.u32 %r1, [8], 1;", "shfl.sync.idx.b32 %r1, 5, 0, 31, -1;",
            "vote.sync.ballot.b32 %r1, %p1, -1;", "activemask.b32 %r1;", "elect.sync %r1|%p1, -1;", "some.future.u32 %r1, 5;",
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [0];", "mma.sync.aligned.m8n8k4.x {%r1}, {%r2}, {%r2}, {%r2};",
            "mbarrier.test_wait.shared.b64 %p1, [0], 5;",
        ],
    )  # fmt: skip
    def test_own_in_every_lane(self, text: str) -> None:
        f = function(text + " ret;")
        assert not set(dataflow.writes(next(f.instructions()))) & facts(f).uniform_registers

    def test_what_is_computed_from_lanes_differs(self) -> None:
        found = uniform(
            "mov.u32 %r0, %tid.x; add.u32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 3; @%p0 mov.u32 %r2, 5; mov.u32 %r3, 5; ld.global.u32 %r4, [%r0]; ret;"
        )
        assert not found & {"%r0", "%r1", "%p0", "%r2", "%r4"}
        assert "%r3" in found

    def test_parameters_of_kernels_only(self) -> None:
        assert "%r0" in uniform("ld.param.u32 %r0, [n]; ret;")
        assert "%r0" not in uniform("ld.param.u32 %r0, [n]; ret;", ".func f(.param .u32 n)")
        assert "%r0" not in uniform(".param .b32 v; ld.param.u32 %r0, [v]; ret;")  # what a call returned
        assert "a" not in uniform("add.u32 %r0, a, 1; ret;", ".func f(.reg .u32 a)")

    def test_carry(self) -> None:
        assert dataflow.CARRY in uniform("add.cc.u32 %r0, 1, 2; addc.u32 %r1, 0, 0; ret;")
        found = uniform("mov.u32 %r2, %tid.x; add.cc.u32 %r0, %r2, 2; addc.u32 %r1, 0, 0; ret;")
        assert not found & {dataflow.CARRY, "%r1"}

    def test_uniform_loop_counter(self) -> None:
        f = function("mov.u32 %r0, 0; H: add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 9; @%p0 bra H; ret;")
        assert {"%r0", "%p0"} <= facts(f).uniform_registers
        assert not facts(f).divergent_branches

    def test_value_after_a_loop_that_lanes_leave_one_by_one(self) -> None:
        """The counter is the same for all lanes in a round, but they leave in different rounds."""
        f = function(
            "mov.u32 %r1, %tid.x; mov.u32 %r0, 0; H: add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, %r1; @%p0 bra H; st.global.u32 [0], %r0; ret;"
        )
        found = facts(f)
        assert "%r0" not in found.uniform_registers
        assert found.divergent_branches == {1}
        assert found.parted_blocks == {1}

    def test_branch_parts_lanes_until_its_arms_meet(self) -> None:
        f = function("""
            mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 2; mov.u32 %r1, 0;
            @%p0 bra A; mov.u32 %r1, 1; mov.u32 %r2, 5; bra B;
            A: mov.u32 %r3, 2; add.u32 %r4, %r1, 1; B: mov.u32 %r5, 3; add.u32 %r6, %r6, 1; st.global.u32 [0], %r1; ret;""")
        found = facts(f)
        assert found.parted_blocks == {1, 2}
        assert found.frontiers == [0, 1 << 2 | 0, 1 << 3, 0]
        assert not found.uniform_registers & {"%r1", "%r4"}
        assert {"%r2", "%r3", "%r5", "%r6"} <= found.uniform_registers  # %r2, %r3: invariant
        assert {"%r2", "%r3", "%r5"} <= found.invariant_registers
        assert "%r6" not in found.invariant_registers

    def test_uniform_branch_parts_nobody(self) -> None:
        f = function(
            "ld.param.u32 %r0, [n]; setp.lt.u32 %p0, %r0, 2; @%p0 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B: st.global.u32 [0], %r1; ret;"
        )
        assert "%r1" in facts(f).uniform_registers
        assert not facts(f).parted_blocks

    @pytest.mark.parametrize("leave", ["@%p0 bra E;", "@%p0 ret;", "@%p0 exit;"])
    def test_lanes_that_leave_are_not_waited_for(self, leave: str) -> None:
        f = function(
            f"mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 2; {leave} mov.u32 %r1, 1; add.u32 %r2, %r2, 1; bar.sync 0; E: ret;"
        )
        assert {"%r1", "%r2"} <= facts(f).uniform_registers
        assert not facts(f).parted_blocks

    def test_lanes_that_all_leave_may_leave_others_waiting(self) -> None:
        """Some lanes have left the loop for X; those inside all leave at the top, and then it is X's turn."""
        f = function("""
            mov.u32 %r0, %tid.x; mov.u32 %r2, 0;
            H: ld.global.u32 %r1, [0]; setp.lt.u32 %p1, %r1, %r2; @%p1 bra E;
            setp.eq.u32 %p0, %r2, %r0; @%p0 bra X; add.u32 %r2, %r2, 1; bra H;
            X: st.global.u32 [0], %r2; E: ret;""")
        found = facts(f)
        header, leaving = 1, 2
        assert cfg.build(f).blocks[leaving].only_leaves
        assert {header, leaving} <= found.parted_blocks

    def test_invariant_in_a_parted_block(self) -> None:
        f = function(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 2; @%p0 bra A; ld.param.u32 %r1, [n]; add.u32 %r2, %r1, 4; ld.global.u32 %r3, [%r2]; A: mov.u32 %r4, 0; ret;"
        )
        found = facts(f)
        assert {"%r1", "%r2"} <= found.invariant_registers
        assert "%r3" not in found.uniform_registers

    def test_two_definitions_are_not_invariant(self) -> None:
        assert "%r1" not in facts(function("mov.u32 %r1, 1; mov.u32 %r1, 1; ret;")).invariant_registers
        assert "%r1" not in facts(function("@%p0 mov.u32 %r1, 1; ret;")).invariant_registers


class TestWaiting:
    PARTED = "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 2; @%p0 bra A; "

    def test_lanes_that_wait_may_be_overtaken(self) -> None:
        """While some lanes wait at a barrier in one arm, the others run on past the place where the arms meet."""
        for inside, parted in (
            ("mov.u32 %r1, 1;", {1}),
            ("bar.warp.sync -1;", {1, 2}),
            ("bar.sync 0;", {1, 2}),
            ("bar.arrive 0, 64;", {1}),
        ):
            f = function(f"{self.PARTED} {inside} A: mov.u32 %r2, 1; add.u32 %r3, %r3, 1; ret;")
            found = facts(f)
            assert found.parted_blocks == parted
            assert ("%r3" in found.uniform_registers) == (2 not in parted)

    def test_barrier_that_everybody_meets(self) -> None:
        f = function(f"{self.PARTED} mov.u32 %r1, 1; A: bar.sync 0; add.u32 %r3, %r3, 1; ret;")
        assert facts(f).parted_blocks == {1}
        assert facts(f).waiting_blocks == {2}

    @pytest.mark.parametrize(
        ("loop", "waits"),
        [
            ("atom.global.cas.b32 %r1, [0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra H;", True),
            ("ld.volatile.global.u32 %r1, [0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra H;", True),
            ("mbarrier.try_wait.shared.b64 %p1, [0], 5; @!%p1 bra H;", True),
            ("nanosleep.u32 20; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra H;", True),
            ("atom.global.cas.b32 %r1, [0], 0, 1; @%p2 bra X; setp.eq.u32 %p2, %r1, 0; X: @!%p2 bra H;", True),
            ("atom.global.cas.b32 %r1, [0], 0, 1; st.local.u32 [4], %r1; ld.local.u32 %r2, [4]; setp.ne.u32 %p1, %r2, 0; @%p1 bra H;", True),
            ("atom.global.add.u32 %r1, [0], 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r0; @%p1 bra H;", False),
            ("ld.global.u32 %r1, [0]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, %r0; @%p1 bra H;", False),
        ],
    )  # fmt: skip
    def test_loops_that_poll(self, loop: str, waits: bool) -> None:
        f = function(f"mov.u32 %r0, %tid.x; H: {loop} mov.u32 %r7, 0; ret;")
        assert bool(facts(f).waiting_blocks) == waits

    def test_loop_around_a_polling_loop(self) -> None:
        """The outer loop counts; only the inner one waits."""
        f = function(
            "O: add.u32 %r0, %r0, 1; I: mbarrier.try_wait.shared.b64 %p1, [0], 5; @!%p1 bra I; setp.lt.u32 %p0, %r0, 9; @%p0 bra O; ret;"
        )
        assert facts(f).waiting_blocks == {1}

    def test_calls(self) -> None:
        m = module("""
            .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b); .extern .func unknown;
            .func quiet() { ret; } .func waits() { bar.sync 0; ret; } .func both() { call quiet; call waits; ret; }
            .func again() { call again; call quiet; ret; }
            .entry k() { .reg .b64 %rd<2>; P: .callprototype () _ (); .param .b32 r;
              call (r), vprintf, (1, 2); call unknown; call quiet; call waits; call both; call again; call %rd1, P; ret; }""")
        calls = [i for i in m.functions["k"].instructions() if i.opcode == "call"]
        assert [divergence.may_wait(i, m) for i in calls] == [False, True, False, True, True, False, True]
        assert [divergence.may_wait(i) for i in calls] == [False, True, True, True, True, True, True]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs_keep_the_promises(seed: int) -> None:
    """A warp run lane by lane finds uniform registers uniform, unparted blocks whole, and dead registers unread."""
    random = Random(seed)
    f = random_function(random)
    for _ in range(3):
        Machine(f, random).run()


def broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a mistake in the analyses."""
    if name == "values after a loop":
        monkeypatch.setattr(divergence._Analysis, "_part", lambda self, block: None)
    elif name == "overtaking":
        monkeypatch.setattr(divergence._Analysis, "_overtake", lambda self, blocks: None)
    elif name == "guarded writes":
        monkeypatch.setattr(divergence, "reads", lambda i: effects.reads(i)[i.guard is not None :])
    elif name == "lane numbers":
        monkeypatch.setattr(divergence, "_UNIFORM_PREFIXES", (*divergence._UNIFORM_PREFIXES, "%tid"))
    elif name == "loads are constant":
        monkeypatch.setattr(divergence, "_PARAM_SPACES", frozenset(("param", "global")))
    elif name == "dead registers":
        monkeypatch.setattr(dataflow, "reads", lambda i: effects.reads(i)[:1])


@pytest.mark.parametrize(
    "name",
    ["values after a loop", "overtaking", "guarded writes", "lane numbers", "loads are constant", "dead registers"],
)
def test_machine_finds_planted_mistakes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The property above is able to fail."""
    broken(name, monkeypatch)
    loop = function("""
        mov.u32 %r0, 0; H: add.u32 %r0, %r0, 1; ld.global.u32 %r1, [64]; setp.lt.u32 %p0, %r0, %tid.x; @%p0 bra H;
        st.global.u32 [64], %r1; ret;""")
    with pytest.raises(Unsound):
        run_many(loop)


def run_many(first: Function) -> None:
    Machine(first, Random(0)).run()
    for seed in range(2000):
        random = Random(seed)
        Machine(random_function(random), random).run()
