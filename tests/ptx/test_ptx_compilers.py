"""PTX of today's nvcc from our own sources, in the variants that change its form."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from warpsmith.ptx import cfg, dataflow, parse
from warpsmith.ptx.ast import Module
from warpsmith.toolchains.toolkit import toolkit

SOURCES = Path(__file__).parent / "sources"


def compile(source: str, folder: Path, *options: str) -> Module:
    tools = toolkit()
    out = folder / "out.ptx"
    includes = [f"-I{path}" for path in tools.includes]
    command = [
        str(tools.nvcc),
        "-ptx",
        *(() if "-arch" in " ".join(options) else ("-arch=compute_90",)),
        *options,
        *includes,
        str(SOURCES / source),
        "-o",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return parse(out.read_text(errors="surrogateescape"), source)


@pytest.mark.parametrize(
    "options",
    [("-lineinfo",), ("-G",), ("-rdc=true",), ("-Xcicc", "-O0"), ("-std=c++20", "--use_fast_math"), ("-lineinfo", "-arch=compute_100")],
    ids=lambda o: o[-1].strip("-"),
)  # fmt: skip
def test_language_features(options: tuple[str, ...], tmp_path: Path) -> None:
    """Virtual functions, function pointers, recursion, switches, packed structures, strings, textures, printf."""
    module = compile("features.cu", tmp_path, *options)
    assert set(module.kernels) >= {"everything", "textures"}
    for function in module.functions.values():
        if function.body is not None:
            graph = cfg.build(function)
            assert dataflow.liveness(function, graph).live_in(0) == set()
            dataflow.uniformity(function, graph, module)
    everything = module.functions["everything"]
    assert everything.prototypes
    assert set(everything.prototypes) == {
        i.operands[3].name for i in everything.instructions() if i.opcode == "call" and i.operands[3]
    }
    packed = next(v for name, v in module.variables.items() if "packed" in name)
    assert packed.init is not None
    assert packed.init[0] == 1
    assert [(offset, generic) for offset, _, _, generic in packed.relocs] == [(1, True)]
    managed = next(v for name, v in module.variables.items() if "managed" in name)
    assert managed.attributes == ("managed",)


def test_line_information(tmp_path: Path) -> None:
    """Positions of inlined functions lead back to the call, with the functions' names."""
    module = compile("features.cu", tmp_path, "-lineinfo")
    lines = (SOURCES / "features.cu").read_text().splitlines()
    assert any(name.endswith("features.cu") for name in module.files.values())
    chains = []
    for i in module.functions["everything"].instructions():
        loc, chain = i.loc, []
        while loc is not None:
            chain.append(loc)
            loc = loc.inlined_at
        chains.append(chain)
    inner = [c for c in chains if c and c[0].function and "squared_plus_one" in c[0].function]
    assert inner
    for chain in inner:
        assert "return a * a" in lines[chain[0].line - 1]
        assert "twice" in (chain[1].function or "")
        assert "squared_plus_one" in lines[chain[1].line - 1]
        assert "twice" in lines[chain[2].line - 1]
        assert len(chain) == 3
