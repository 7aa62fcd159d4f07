"""What real compilers emit: every sample parses, and nothing in it is lost."""

from __future__ import annotations

import csv
from collections import Counter

import ptx_samples
import pytest

from warpsmith.ptx import cfg, dataflow, parse
from warpsmith.ptx.ast import Instruction, Label, Module, Reg, Special, Sym, Vec


def instructions(module: Module) -> list[Instruction]:
    return [i for f in module.functions.values() for i in f.instructions()]


@pytest.mark.parametrize("name", sorted(ptx_samples.COUNTS))
def test_counts(name: str) -> None:
    """As many instructions and opcodes as were counted independently."""
    found = instructions(parse(ptx_samples.text(name), name))
    assert (len(found), len({i.text for i in found})) == ptx_samples.COUNTS[name]


def test_opcodes_agree_with_the_histogram() -> None:
    """Every full opcode as often, and in as many files, as in the recorded histogram."""
    counts: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for name in ptx_samples.COUNTS:
        found = Counter(i.text for i in instructions(parse(ptx_samples.text(name))))
        counts.update(found)
        files.update(found.keys())
    with (ptx_samples.FOLDER / "opcodes.tsv").open() as f:
        rows = {r["opcode"]: (int(r["count"]), int(r["n_files"])) for r in csv.DictReader(f, delimiter="\t")}
    assert {op: (n, files[op]) for op, n in counts.items()} == rows


@pytest.mark.parametrize("name", sorted(ptx_samples.COUNTS))
def test_every_operand_is_resolved(name: str) -> None:
    """Registers are declared with their type, labels defined, symbols known."""
    module = parse(ptx_samples.text(name), name)

    def check(operand: object) -> None:
        if isinstance(operand, Reg):
            assert function.registers[operand.name] == operand.type
        elif isinstance(operand, Label):
            assert operand.name in labels | function.branch_targets.keys() | function.prototypes.keys()
        elif isinstance(operand, Sym):
            assert operand.name in symbols
        elif isinstance(operand, Special):
            assert operand.name.startswith("%")
        elif isinstance(operand, Vec):
            for item in operand.items:
                check(item)

    for function in module.functions.values():
        labels = {s.name for s in function.body or () if not isinstance(s, Instruction)}
        symbols = {*module.variables, *module.functions, *(v.name for v in function.variables)}
        symbols |= {p.name for p in (*function.params, *function.returns)}
        for i in function.instructions():
            for operand in i.operands:
                check(operand)


@pytest.mark.parametrize("name", sorted(ptx_samples.COUNTS))
def test_graph_keeps_the_code(name: str) -> None:
    """All instructions are in the graph (compilers leave no dead code), and nothing is read before it is written."""
    for function in parse(ptx_samples.text(name), name).functions.values():
        if function.body is None:
            continue
        graph = cfg.build(function)
        placed = {id(i) for b in graph.blocks for i in b.instructions}
        assert {id(i) for i in function.instructions()} <= placed
        undefined = dataflow.liveness(function, graph).live_in(0)
        # wgmma reads its accumulators, which a first step with scale-d = 0 ignores
        accumulators = {n for i in function.instructions() if i.opcode == "wgmma" for n in dataflow.writes(i)}
        assert undefined <= accumulators


def test_module_facts() -> None:
    module = parse(ptx_samples.text("debugfn.sm80"))
    assert module.version == (9, 0)
    assert module.target == ("sm_80",)
    assert module.address_size == 64
    assert list(module.kernels) == ["debugfn"]
    assert module.functions["vprintf"].body is None
    assert module.functions["vprintf"].linkage == "extern"
    assert module.variables["$str"].init == b"n > 0"
    assert module.variables["$str"].size == 6
    assert module.variables["dyn"].size == 0
    calls = [i for i in module.functions["debugfn"].instructions() if i.opcode == "call"]
    assert [c.operands[1] for c in calls] == [Sym("__assertfail"), Sym("_Z4polyfPKfi"), Sym("vprintf")]
    assert calls[0].operands[0] is None
    params = [v for v in module.functions["debugfn"].variables if v.space == "param"]
    assert len({v.name for v in params}) == len(params) == 12
    assert {v.alias for v in params} == {"param0", "param1", "param2", "param3", "param4", "retval0"}


def test_cluster_and_size_directives() -> None:
    kernel = parse(ptx_samples.text("warp_special.sm90a")).kernels["warp_special"]
    assert kernel.directives == {"maxntid": (256, 1, 1), "explicitcluster": (), "reqnctapercluster": (2, 1, 1)}
    kernel = next(iter(parse(ptx_samples.text("triton_matmul_tma_ws.sm100")).kernels.values()))
    assert kernel.directives == {"reqntid": (256,), "maxnreg": (256,)}
    assert kernel.branch_targets == {"JTI0_0": ("$L__BB0_7", "$L__BB0_16", "$L__BB0_20", "$L__BB0_5")}
    assert (kernel.params[0].size, kernel.params[0].align) == (128, 64)
