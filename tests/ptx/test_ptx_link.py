"""Several modules of PTX -> one."""

from __future__ import annotations

import pytest

from warpsmith.ptx.ast import PtxError
from warpsmith.ptx.link import link, summarize
from warpsmith.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
A = (
    HEAD
    + """
.extern .func (.param .b32 r) twice (.param .b32 x);
.extern .global .align 4 .u32 shared_value;
.extern .shared .align 4 .b8 dynamic[];
.global .align 4 .u32 hidden = 1;
.visible .global .align 8 .u64 table[2] = {shared_value, generic(hidden)};
.weak .func (.param .b32 r) inline_one (.param .b32 x) { .reg .b32 %r1; mov.b32 %r1, hidden; st.param.b32 [r], %r1; ret; }
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	.loc 1 10 3
	ld.global.u32 %r1, [hidden];
	.loc 2 4 1, function_name $L__info_string0, inlined_at 1 11 5
	ld.global.u32 %r2, [hidden+4];
	ret;
}
	.file 1 "/src/hidden/a.cu"
	.file 2 "/src/both.h"
	.section .debug_str {
$L__info_string0:
.b8 97
.b8 0
	}
"""
)
B = (
    HEAD.replace("8.0", "8.3").replace("sm_80", "sm_90a")
    + """
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .u32 hidden = 2; // another one
.visible .global .align 4 .u32 shared_value = 5;
.weak .func (.param .b32 r) inline_one (.param .b32 x) { ret; }
.func private_one () { ret; }
.visible .func (.param .b32 r) twice (.param .b32 x)
{
	.reg .b32 %r<9>;
	.loc 1 7 3, function_name $L__info_string0, inlined_at 2 11 5
	ld.global.u32 %r1, [hidden];
	ret;
}
	.file 1 "/src/both.h"
	.file 2 "/src/b.cu"
	.section .debug_str {
$L__info_string0:
.b8 98
.b8 0
	}
"""
)
C = HEAD + ".func private_one () { ret; }\n.global .align 4 .u32 hidden = 3;\n"


def test_modules_become_one() -> None:
    module = parse(link([A, B, C]))
    assert (module.version, module.target) == ((8, 3), ("sm_90a",))
    values = {name: v.init for name, v in module.variables.items()}
    assert values["hidden"] == b"\1\0\0\0" and values["hidden$module1"][:1] == b"\2"  # type: ignore[index]
    assert values["hidden$module2"][:1] == b"\3" and values["shared_value"][:1] == b"\5"  # type: ignore[index]
    assert module.variables["dynamic"].align == 16
    assert [symbol for _, symbol, _, _ in module.variables["table"].relocs] == ["shared_value", "hidden"]
    assert set(module.functions) == {"k", "twice", "inline_one", "private_one", "private_one$module2"}
    assert all(f.body is not None for f in module.functions.values())
    assert next(str(i.operands[1]) for i in module.functions["twice"].instructions() if i.opcode == "ld").count(
        "module1"
    )
    # The first weak definition is the one that counts.
    assert len(list(module.functions["inline_one"].instructions())) == 3


def test_positions_keep_their_files() -> None:
    module = parse(link([A, B, C]))
    assert sorted(module.files.values()) == ["/src/b.cu", "/src/both.h", "/src/hidden/a.cu"]

    def places(name: str) -> list[tuple[str, int, str | None]]:
        locs = [i.loc for i in module.functions[name].instructions() if i.loc]
        return [(module.files[x.file], x.line, x.function) for x in locs]

    assert places("k")[:2] == [("/src/hidden/a.cu", 10, None), ("/src/both.h", 4, "a")]
    assert places("twice")[0] == ("/src/both.h", 7, "b")
    twice = next(module.functions["twice"].instructions())
    assert twice.loc and twice.loc.inlined_at and module.files[twice.loc.inlined_at.file] == "/src/b.cu"


def test_what_modules_need() -> None:
    a = summarize(A)
    assert a.needs == {"shared_value"}  # twice is declared and not used
    assert a.defines == {"table", "inline_one", "k"}
    assert summarize(B).needs == set()


def test_two_definitions() -> None:
    with pytest.raises(PtxError, match="shared_value is defined in two"):
        link([B, B])
    weak = HEAD + ".weak .global .u32 shared_value = 9;\n"
    assert parse(link([weak, B])).variables["shared_value"].init == b"\5\0\0\0"


@pytest.mark.parametrize("text", ["", "junk", HEAD + ".visible .entry k(", HEAD + ".global .u32 x = {1", HEAD + "x;"])
def test_damaged_modules(text: str) -> None:
    with pytest.raises(PtxError):
        parse(link([A, text]))
