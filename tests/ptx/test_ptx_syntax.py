"""The syntax of PTX, one thing at a time."""

from __future__ import annotations

import struct

import pytest

from warpsmith.ptx import parse
from warpsmith.ptx.ast import (
    Addr,
    Element,
    Function,
    Guard,
    Imm,
    Instruction,
    Label,
    LabelDef,
    Loc,
    Module,
    Not,
    Operand,
    Pair,
    Reg,
    Sink,
    Special,
    Sym,
    TensorAddr,
    Variable,
    Vec,
)

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
DECLARATIONS = """
.reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b16 %rs<4>; .reg .b128 %rq<2>;
"""


def module(text: str) -> Module:
    return parse(HEADER + text)


def kernel(body: str, before: str = "") -> Function:
    return module(
        f"{before}\n.visible .entry k(.param .u64 k_0, .param .b32 k_1)\n{{{DECLARATIONS}{body}\n}}"
    ).functions["k"]


def instruction(text: str, before: str = "") -> Instruction:
    (i,) = kernel(text, before).instructions()
    return i


def operand(text: str, before: str = "") -> Operand | None:
    """The last operand of a ``mov``-like instruction."""
    return instruction(f"op.b32 %r0, {text};", before).operands[-1]


def variable(text: str) -> Variable:
    return list(module(text).variables.values())[-1]


R1, R2, RD1 = Reg("%r1", "b32"), Reg("%r2", "b32"), Reg("%rd1", "b64")
P1, P2 = Reg("%p1", "pred"), Reg("%p2", "pred")


class TestOperands:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("%r1", R1),
            ("_", Sink()),
            ("%tid.x", Special("%tid.x")),
            ("%laneid", Special("%laneid")),
            ("%envreg31", Special("%envreg31")),
            ("%cluster_ctarank", Special("%cluster_ctarank")),
            ("WARP_SZ", Imm(32)),
            ("WARP_SZ - 1", Imm(31)),
            ("!%p1", Not(P1)),
            ("%p1|%p2", Pair(P1, P2)),
            ("%r1|%p1", Pair(R1, P1)),
            ("%r1 | %p1", Pair(R1, P1)),
            ("_|%p1", Pair(Sink(), P1)),
            ("%r1|_", Pair(R1, Sink())),
            ("{%r1, %r2}", Vec((R1, R2))),
            ("{%r1,_, 5 , -1}", Vec((R1, Sink(), Imm(5), Imm(-1)))),
            ("{ %r1 }", Vec((R1,))),
            ("[%rd1]", Addr(RD1)),
            ("[%rd1+8]", Addr(RD1, 8)),
            ("[%rd1+-8]", Addr(RD1, -8)),
            ("[%rd1-8]", Addr(RD1, -8)),
            ("[ %rd1 + 0x10 ]", Addr(RD1, 16)),
            ("[%rd1 + -4]", Addr(RD1, -4)),
            ("[%rd1+(1+2)*4]", Addr(RD1, 12)),
            ("[64]", Addr(None, 64)),
            ("[0x40+8]", Addr(None, 72)),
            ("[k_0]", Addr(Sym("k_0"))),
            ("[k_0+4]", Addr(Sym("k_0"), 4)),
            ("[%rd1, {%r1, %r2}]", TensorAddr(Addr(RD1), (R1, R2))),
            ("[%rd1, {0, %r2}]", TensorAddr(Addr(RD1), (Imm(0), R2))),
            ("[%rd1, %r2]", TensorAddr(Addr(RD1), (R2,))),
            ("[%rd1, {%r1}, {%rs1, 2}]", TensorAddr(Addr(RD1), (R1,), (Reg("%rs1", "b16"), Imm(2)))),
            ("%r1.b3", Element(R1, 3, "b")),
            ("%r1.h1", Element(R1, 1, "h")),
        ],
    )
    def test_form(self, text: str, expected: Operand) -> None:
        assert operand(text) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("g", Sym("g")),
            ("g+8", Sym("g", 8)),
            ("g - 8", Sym("g", -8)),
            ("f", Sym("f")),
            ("a[3]", Sym("a", 24)),
            ("[a[3]]", Addr(Sym("a"), 24)),
            ("[a[1]+4]", Addr(Sym("a"), 12)),
            ("[g+8]", Addr(Sym("g"), 8)),
            ("[m[1]]", Addr(Sym("m"), 20)),
            ("[t, s, {%f1, %f2}]", TensorAddr(Addr(Sym("t")), (Reg("%f1", "f32"), Reg("%f2", "f32")), (), Sym("s"))),
        ],
    )
    def test_symbol(self, text: str, expected: Operand) -> None:
        before = ".global .b32 g; .extern .func f; .global .b64 a[9]; .global .f32 m[3][5]; .global .texref t; .global .samplerref s;"
        assert operand(text, before) == expected

    def test_long_vector(self) -> None:
        found = operand("{" + ", ".join(f"%r{k % 10}" for k in range(128)) + "}")
        assert isinstance(found, Vec)
        assert [r.name for r in found.items if isinstance(r, Reg)] == [f"%r{k % 10}" for k in range(128)]

    def test_vector_register_is_its_elements(self) -> None:
        f = kernel(
            ".reg .v4 .f32 %v; .reg .v2 .b32 %w<3>; mov.v4.f32 %v, {%f1, %f2, %f3, %f4}; add.f32 %f1, %v.y, %v.w; mov.b32 %r1, %w2.x;"
        )
        first, second, third = f.instructions()
        assert first.operands[0] == Vec(tuple(Reg(f"%v.{c}", "f32") for c in "xyzw"))
        assert second.operands[1:] == (Reg("%v.y", "f32"), Reg("%v.w", "f32"))
        assert third.operands[1] == Reg("%w2.x", "b32")
        assert f.registers["%v.z"] == "f32"
        assert "%w2.y" not in f.registers  # never used


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0", 0), ("42", 42), ("42U", 42), ("-1", -1), ("0x1F", 31), ("0XffU", 255), ("0b101", 5), ("0B11U", 3),
            ("017", 15), ("017U", 15), ("-0x10", -16), ("0xffffffffffffffff", 2**64 - 1), ("18446744073709551615", 2**64 - 1),
            ("-9223372036854775808", -(2**63)), ("1+2*3", 7), ("(1+2)*3", 9), ("7/2", 3), ("-7/2", -3), ("-7%3", -1),
            ("7%3", 1), ("1<<4", 16), ("-16>>2", -4), ("0xf0&0x3c", 0x30), ("1|6", 7), ("5^1", 4), ("~0", -1), ("!5", 0),
            ("!0", 1), ("1 ? 2 : 3", 2), ("0 ? 2 : 3", 3), ("1<2", 1), ("2<=1", 0), ("2>1", 1), ("1>=1", 1), ("1==1", 1),
            ("1!=1", 0), ("1&&0", 0), ("0||3", 1), ("1 ? 0 : 1 ? 5 : 6", 0), ("~0U", 2**64 - 1), ("0U-1", 2**64 - 1),
            ("-1/2U", (2**64 - 1) // 2), ("(.u64)-1", 2**64 - 1), ("(.s64)0xffffffffffffffff", -1), ("2+3<<1", 10),
            ("6&3==3", 0), ("- - 5", 5), ("-(-(5))", 5), ("0x7fffffffffffffff + 1", -(2**63)), ("1<<64", 0), ("- 4", -4),
            ("0x1e+5", 35), ("(.s64)2.9", 2),
        ],
    )  # fmt: skip
    def test_integer(self, text: str, value: int) -> None:
        assert operand(text) == Imm(value)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1.5", 1.5),
            ("-1.5", -1.5),
            ("1e3", 1000.0),
            ("1.5E-2", 0.015),
            ("2.", 2.0),
            ("1.5+2", 3.5),
            ("1.0/4", 0.25),
            ("0.5*-2", -1.0),
            ("1e999", float("inf")),
        ],
    )
    def test_decimal_float_is_a_double(self, text: str, value: float) -> None:
        assert operand(text) == Imm(int.from_bytes(struct.pack("<d", value), "little"), "f64")

    def test_bit_patterns_keep_their_bits(self) -> None:
        assert operand("0f3F800000") == Imm(0x3F800000, "f32")
        assert operand("0F7fc00001") == Imm(0x7FC00001, "f32")
        assert operand("0d7FF0000000000001") == Imm(0x7FF0000000000001, "f64")
        assert operand("-0f3F800000") == Imm(0xBF800000, "f32")
        assert operand("0d3FF0000000000000 + 1") == Imm(0x4000000000000000, "f64")


class TestInstructions:
    def test_modifiers_stay_in_order_with_their_colons(self) -> None:
        i = instruction("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];")
        assert (i.opcode, i.mods) == ("ld", ("global", "nc", "L1::no_allocate", "L2::128B", "v4", "f32"))
        assert i.text == "ld.global.nc.L1::no_allocate.L2::128B.v4.f32"
        assert i.type == "f32"
        assert i.has("nc", "volatile")
        assert not i.has("volatile")

    def test_opcode_with_colons_in_the_middle(self) -> None:
        i = instruction("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];")
        assert i.mods == ("commit", "cta_group::1", "mbarrier::arrive::one", "shared::cluster", "b64")

    @pytest.mark.parametrize("text", ["@%p1 ret;", "@ %p1 ret;", "@%p1\nret;"])
    def test_guard(self, text: str) -> None:
        assert instruction(text).guard == Guard(P1)

    @pytest.mark.parametrize("text", ["@!%p1 ret;", "@ ! %p1 ret;"])
    def test_negated_guard(self, text: str) -> None:
        assert instruction(text).guard == Guard(P1, negated=True)

    def test_several_on_a_line_and_one_on_several(self) -> None:
        f = kernel("mov.b32 %r1, 1; mov.b32 %r2, 2; L: add.s32\n%r3,\n  %r1\n,%r2\n;ret;;")
        assert [i.text for i in f.instructions()] == ["mov.b32", "mov.b32", "add.s32", "ret"]
        assert f.body is not None
        assert isinstance(f.body[2], LabelDef)

    def test_comments_everywhere(self) -> None:
        f = kernel("/* a; */ mov.b32 /* { */ %r1 // }\n, /* \n\n */ 1; // mov.b32 %r2, 2;\n/**/ret/*;*/;")
        first, second = f.instructions()
        assert first.operands == (R1, Imm(1))
        assert second.line == first.line + 4

    def test_carriage_returns_and_tabs(self) -> None:
        text = HEADER + ".visible .entry k()\n{\n\t.reg .b32 \t%r<3>;\n\tmov.u32 \t%r1, 5;\n\tret;\n}\n"
        a, b = parse(text), parse(text.replace("\n", "\r\n"))
        assert a == b
        assert [i.line for i in a.functions["k"].instructions()] == [7, 8]

    def test_text_after_zero_byte_at_the_end(self) -> None:
        assert parse(HEADER + ".visible .entry k() { ret; }\n\0").kernels

    def test_non_ascii_in_comments_and_strings(self) -> None:
        m = parse("// f\xfcr \u4e16\n" + HEADER + '.file 1 "\xfcber/\u4e16.cu"\n.global .b8 s[] = "\xe9";')
        assert m.files == {1: "\xfcber/\u4e16.cu"}
        assert m.variables["s"].init == b"\xc3\xa9\0"

    def test_bytes_that_are_no_text(self) -> None:
        m = parse(HEADER + '.global .b8 s[] = "' + b"\xff\x80".decode("utf-8", "surrogateescape") + '\\xfe";')
        assert m.variables["s"].init == b"\xff\x80\xfe\0"

    def test_setp_with_two_results_and_a_negated_source(self) -> None:
        i = instruction("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p1;")
        assert i.operands == (Pair(P1, P2), R1, R2, Not(P1))

    def test_lines(self) -> None:
        f = kernel("\n\nmov.b32 %r1, 1;\n\n@%p1\n  mov.b32 %r1, 1;")
        first, second = f.instructions()
        assert second.line == first.line + 3  # the line of the opcode

    def test_no_operands(self) -> None:
        assert instruction("membar.gl ;").operands == ()

    def test_operand_right_after_the_opcode(self) -> None:
        assert instruction("st.b32[%rd1], %r1;").operands == (Addr(RD1), R1)
        assert instruction("mov.b64{%r1,%r2}, %rd1;").operands == (Vec((R1, R2)), RD1)


class TestLabelsAndBranches:
    def test_branch_forward_and_back(self) -> None:
        f = kernel("A: bra B; B: @%p1 bra.uni A;")
        assert [i.operands for i in f.instructions()] == [(Label("B"),), (Label("A"),)]

    def test_labels_of_scopes_are_told_apart(self) -> None:
        f = kernel("{ L: bra L; } { bra L; L: } L: bra L; { bra L; }")
        assert f.body is not None
        labels = [s.name for s in f.body if isinstance(s, LabelDef)]
        targets = [i.operands[0].name for i in f.instructions() if isinstance(i.operands[0], Label)]
        assert len(set(labels)) == 3
        assert targets == [labels[0], labels[1], labels[2], labels[2]]
        assert labels[2] == "L"

    def test_label_and_directive_on_one_line(self) -> None:
        f = kernel("T: .branchtargets A, B, A; brx.idx %r1, T; A: ret; B: exit;")
        assert f.branch_targets == {"T": ("A", "B", "A")}
        assert next(f.instructions()).operands == (R1, Label("T"))

    def test_branch_targets_in_a_scope(self) -> None:
        f = kernel("{ ts: .branchtargets A, B; brx.idx.uni %r1, ts; A: ret; } B: ret;")
        ((name, targets),) = f.branch_targets.items()
        assert next(f.instructions()).operands == (R1, Label(name))
        assert targets[1] == "B"
        assert targets[0] != "A"


class TestScopes:
    def test_registers_of_scopes_are_told_apart(self) -> None:
        f = kernel(
            "{ .reg .pred p; setp.eq.s32 p, %r1, 0; } { .reg .b64 p; mov.b64 p, 1; { .reg .f32 p; mov.f32 p, 0f00000000; } mov.b64 p, 2; }"
        )
        found = [i.operands[0] for i in f.instructions()]
        assert [r.type for r in found if isinstance(r, Reg)] == ["pred", "b64", "f32", "b64"]
        assert found[1] == found[3]
        assert len(set(found)) == 3
        assert all(r.name in f.registers for r in found if isinstance(r, Reg))

    def test_inner_range_hides_outer_register(self) -> None:
        f = kernel("mov.b32 %r1, 0; { .reg .b64 %r<3>; mov.b64 %r1, %rd1; mov.b32 %r5, 1; } mov.b32 %r1, 2;")
        types = [i.operands[0].type for i in f.instructions() if isinstance(i.operands[0], Reg)]
        assert types == ["b32", "b64", "b32", "b32"]

    def test_declaration_after_use_of_the_outer_name(self) -> None:
        f = kernel("{ mov.b32 %r1, 0; .reg .b64 %r1; mov.b64 %r1, 0; }")
        types = [i.operands[0].type for i in f.instructions() if isinstance(i.operands[0], Reg)]
        assert types == ["b32", "b64"]

    def test_call_parameters_are_told_apart(self) -> None:
        f = kernel(
            "{ .param .b32 a; st.param.b32 [a+0], %r1; } { .param .align 8 .b8 a[16]; st.param.b64 [a+8], %rd1; }"
        )
        first, second = f.variables
        assert (first.alias, second.alias) == ("a", "a")
        assert [i.operands[0] for i in f.instructions()] == [Addr(Sym(first.name)), Addr(Sym(second.name), 8)]
        assert (first.size, second.size, second.align) == (4, 16, 8)

    def test_only_used_registers_of_a_range_exist(self) -> None:
        f = kernel(".reg .b32 %x<2000000000>; mov.b32 %x1999999999, %x0;")
        assert {n for n in f.registers if n.startswith("%x")} == {"%x1999999999", "%x0"}

    def test_range_whose_prefix_ends_in_a_digit(self) -> None:
        assert instruction(".reg .b16 %q1<12>; mov.b16 %q111, 1;").operands[0] == Reg("%q111", "b16")

    def test_percent_is_optional(self) -> None:
        assert instruction(".reg .b32 tmp, $x, _y; add.u32 tmp, $x, _y;").operands == tuple(
            Reg(n, "b32") for n in ("tmp", "$x", "_y")
        )

    def test_local_variable_hides_module_variable(self) -> None:
        f = kernel(".shared .align 4 .b8 g[64]; mov.u32 %r1, g;", before=".global .b32 g;")
        assert f.variables[0].space == "shared"
        assert next(f.instructions()).operands[1] == Sym("g")


class TestCalls:
    DECLARED = (
        ".extern .func (.param .b32 r) f(.param .b64 a, .param .b32 b); .extern .func g; .extern .func h(.reg .b32 x);"
    )

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("call g;", (None, Sym("g"), None, None)),
            ("call.uni g, ();", (None, Sym("g"), Vec(()), None)),
            ("call (%r1), f, (%rd1, %r2);", (Vec((R1,)), Sym("f"), Vec((RD1, R2)), None)),
            ("call.uni (%r1),\n f,\n (\n%rd1\n,\n 5\n)\n;", (Vec((R1,)), Sym("f"), Vec((RD1, Imm(5))), None)),
            ("call (_), f, (%rd1, 1);", (Vec((Sink(),)), Sym("f"), Vec((RD1, Imm(1))), None)),
            ("call h, (%r1);", (None, Sym("h"), Vec((R1,)), None)),
            (
                "P: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _);\ncall (%r1), %rd1, (%rd1, %r2), P;",
                (Vec((R1,)), RD1, Vec((RD1, R2)), Label("P")),
            ),
            ("P: .callprototype ()_();call %rd1, P;", (None, RD1, None, Label("P"))),
            ("P: .calltargets f, g;\ncall %rd1, (), P;", (None, RD1, Vec(()), Label("P"))),
        ],
    )
    def test_form(self, text: str, expected: tuple[object, ...]) -> None:
        f = kernel(text, self.DECLARED)
        assert next(f.instructions()).operands == expected

    def test_prototype(self) -> None:
        f = kernel(
            "{ p: .callprototype (.param .align 8 .b8 _[16]) _ (.param .b64 _) .noreturn; call (%rq1), %rd1, (%rd1), p; }"
        )
        ((name, prototype),) = f.prototypes.items()
        assert next(f.instructions()).operands[3] == Label(name)
        assert (prototype.returns[0].size, prototype.params[0].size, prototype.directives) == (16, 8, {"noreturn": ()})

    def test_call_targets(self) -> None:
        assert kernel("T: .calltargets f, g; call %rd1, T;", self.DECLARED).call_targets == {"T": ("f", "g")}

    def test_function_calls_itself(self) -> None:
        m = module(".func (.reg .b32 r) fac(.reg .b32 n) { .reg .b32 t; call (t), fac, (n); mov.b32 r, t; ret; }")
        f = m.functions["fac"]
        assert [p.is_reg for p in (*f.params, *f.returns)] == [True, True]
        assert next(f.instructions()).operands == (Vec((Reg("t", "b32"),)), Sym("fac"), Vec((Reg("n", "b32"),)), None)

    def test_alias(self) -> None:
        m = module(".visible .func f() { ret; } .visible .func g(); .alias g, f; .entry k() { call g; ret; }")
        assert m.aliases == {"g": "f"}


class TestFunctions:
    def test_directives_in_any_order(self) -> None:
        for text in (".maxntid 128, 2 .minnctapersm 3 .maxnreg 64", ".maxnreg 64\n.minnctapersm 3\n.maxntid 128,2"):
            f = module(f'.entry k() {text} .pragma "nounroll"; {{ ret; }}').functions["k"]
            assert f.directives == {"maxntid": (128, 2), "minnctapersm": (3,), "maxnreg": (64,)}
            assert f.pragmas == ["nounroll"]

    def test_pragma_in_the_body(self) -> None:
        assert kernel('.pragma "used_bytes_mask 0xfff", "x"; ret;').pragmas == ["used_bytes_mask 0xfff", "x"]

    def test_entry_without_parameters(self) -> None:
        assert module(".entry k { ret; }").functions["k"].params == ()

    def test_parameters(self) -> None:
        f = module(
            ".entry k(.param .u64 .ptr .global .align 16 a, .param .align 64 .b8 b[128], .param .u64 .ptr .align 1 c, "
            ".param .f32 d, .param .v4 .f32 e, .param .b64 .ptr .shared f) { ret; }"
        ).functions["k"]
        assert [(p.name, p.size, p.align) for p in f.params] == [
            ("a", 8, 8), ("b", 128, 64), ("c", 8, 8), ("d", 4, 4), ("e", 16, 16), ("f", 8, 8),
        ]  # fmt: skip

    def test_linkage(self) -> None:
        m = module(
            ".extern .func a; .weak .func b { ret; } .visible .entry c { ret; } .func d { ret; } .weak .global .b32 w; .common .global .b32 x[2];"
        )
        assert [f.linkage for f in m.functions.values()] == ["extern", "weak", "visible", None]
        assert [v.linkage for v in m.variables.values()] == ["weak", "common"]

    def test_declaration_then_definition(self) -> None:
        m = module(
            ".visible .func f(.param .b32 a); .visible .func f(.param .b32 a) { ret; } .extern .func f(.param .b32 a);"
        )
        assert m.functions["f"].body is not None

    def test_noreturn_and_attributes(self) -> None:
        f = module(
            ".func .attribute(.unified_func(1, 2)) f(.param .b32 a) .noreturn .abi_preserve 8 { trap; }"
        ).functions["f"]
        assert f.directives == {"noreturn": (), "abi_preserve": (8,)}


class TestVariables:
    def test_shapes(self) -> None:
        m = module(
            ".global .f32 a, b[3], c[2][5]; .const .align 16 .v4 .f32 d[2]; .extern .shared .b8 e[]; .shared .b8 f[0];"
        )
        assert {v.name: v.size for v in m.variables.values()} == {"a": 4, "b": 12, "c": 40, "d": 32, "e": 0, "f": 0}
        assert [v.align for v in m.variables.values()] == [4, 4, 4, 16, 1, 1]

    @pytest.mark.parametrize(
        ("text", "init"),
        [
            (".global .b32 x = 5;", b"\5\0\0\0"),
            (".global .b32 x = -1;", b"\xff\xff\xff\xff"),
            (".global .b8 x[4] = {1, 0x2, 03, -1};", b"\1\2\3\xff"),
            (".global .b8 x[4] = {1, 2,};", b"\1\2"),
            (".global .b16 x[2] = {1, 0xffff};", b"\1\0\xff\xff"),
            (".global .b64 x = 1 << 40;", (1 << 40).to_bytes(8, "little")),
            (".global .f32 x = 1.5;", struct.pack("<f", 1.5)),
            (".global .f32 x[3] = {0f3F800000, -2.5, 3};", struct.pack("<3f", 1, -2.5, 3)),
            (".global .f64 x[2] = {0d3FF0000000000000, 1};", struct.pack("<2d", 1, 1)),
            (".global .f64 x[2] = {0f3F800000, 1 + 1};", struct.pack("<2d", 1, 2)),
            (".global .b32 x[1] = {0f3F800000};", struct.pack("<f", 1)),
            (".global .f16 x[2] = {1.0, -2.0};", struct.pack("<2e", 1, -2)),
            ('.global .b8 x[] = "hi\\n\\"\\x41";', b'hi\n"A\0'),
            ('.global .b8 x[2] = "hi";', b"hi"),
            ('.global .b8 x[2][3] = {"ab", "c"};', b"ab\0c\0"),
            (".global .b8 x[2][3] = {{1}, {2, 3}};", b"\1\0\0\2\3\0"),
            (".global .b8 x[2][3] = {1, 2, 3, 4, 5};", b"\1\2\3\4\5"),
            (".global .b8 x[][2] = {{1}, {2, 3}, {4}};", b"\1\0\2\3\4\0"),
            (".global .v2 .b16 x[2] = {{1, 2}, {3, 4}};", b"\1\0\2\0\3\0\4\0"),
            (".global .v4 .f32 x = {1.0, 2.0, 3.0, 4.0};", struct.pack("<4f", 1, 2, 3, 4)),
            (".global .b32 x[] = {WARP_SZ, (1+2)*3};", struct.pack("<2i", 32, 9)),
            (".const .b8 x[3] = {};", b""),
        ],
    )
    def test_initial_bytes(self, text: str, init: bytes) -> None:
        assert variable(text).init == init

    def test_open_dimension_is_counted(self) -> None:
        assert variable(".global .b32 x[] = {1, 2, 3};").dims == (3,)
        assert variable(".global .b8 x[][2] = {{1}, {2}, {3}};").dims == (3, 2)
        assert variable(".global .b8 x[][4] = {1, 2, 3, 4, 5};").dims == (2, 4)

    @pytest.mark.parametrize(
        ("text", "relocs"),
        [
            (".global .u64 x = g;", ((0, "g", 0, False),)),
            (".global .u64 x = g+4;", ((0, "g", 4, False),)),
            (".global .u64 x[3] = {0, generic(g), generic(g+4)-1};", ((8, "g", 0, True), (16, "g", 3, True))),
            (".global .u64 x[2] = {f, generic(g)+8};", ((0, "f", 0, False), (8, "g", 8, True))),
            (".global .u32 x = g;", ((0, "g", 0, False),)),
            (
                ".global .align 1 .u8 x[10] = {1, 0XFF(generic(g)), 0xFF00(generic(g)), 0xFF0000(generic(g)), 0xFF000000(generic(g)), "
                "0xFF00000000(generic(g)), 0xFF0000000000(generic(g)), 0xFF000000000000(generic(g)), 0xFF00000000000000(generic(g)), 7};",
                ((1, "g", 0, True),),
            ),
            (".global .u32 x[3] = {9, 0xFFFFFFFF(g+4), 0xFFFFFFFF00000000(g+4)};", ((4, "g", 4, False),)),
        ],
    )
    def test_addresses(self, text: str, relocs: tuple[tuple[int, str, int, bool], ...]) -> None:
        found = variable(f".global .b32 g; .extern .func f; {text}")
        assert found.relocs == relocs
        assert found.init is not None
        assert len(found.init) == found.size

    def test_managed(self) -> None:
        assert variable(".visible .global .attribute(.managed) .align 4 .u32 x = 7;").attributes == ("managed",)
        assert variable(".global .attribute(.managed, .unified(1, 2)) .u32 x;").attributes == (
            "managed",
            "unified(1,2)",
        )

    def test_sampler(self) -> None:
        found = variable(".global .samplerref s = { addr_mode_0 = wrap, force_unnormalized_coords = 1 };")
        assert found.attributes == ("addr_mode_0=wrap", "force_unnormalized_coords=1")

    def test_definition_replaces_extern(self) -> None:
        m = module(".extern .global .b32 x; .visible .global .b32 x = 4;")
        assert m.variables["x"].init == b"\4\0\0\0"
        m = module(".visible .global .b32 x = 4; .extern .global .b32 x;")
        assert m.variables["x"].init == b"\4\0\0\0"

    def test_big_table(self) -> None:
        values = [k * 37 % 256 for k in range(100_000)]
        assert variable(f".const .align 4 .b8 t[100000] = {{{', '.join(map(str, values))}}};").init == bytes(values)


class TestPositions:
    def test_loc(self) -> None:
        f = kernel(".loc 1 10 5\nmov.b32 %r1, 0; mov.b32 %r2, 0;\n.loc\t2 11\nret;")
        assert [i.loc for i in f.instructions()] == [Loc(1, 10, 5), Loc(1, 10, 5), Loc(2, 11, 0)]

    def test_no_loc_yet(self) -> None:
        assert instruction("ret;").loc is None

    def test_inlined_functions_are_chained_and_named(self) -> None:
        text = """
        .file 1 "a.cu", 12, 345
        .visible .entry k() {
        .loc 1 20 3
        .loc 1 10 2, function_name $L__info_string0, inlined_at 1 20 3
        .loc 1 5 1, function_name $L__info_string1, inlined_at 1 10 2
        ret;
        }
        .section .debug_str {
        $L__info_string0:
        .b8 95,90,49,102,118
        .b8 0
        $L__info_string1:
        .b8 103,0
        }"""
        m = module(text)
        (i,) = m.functions["k"].instructions()
        outer = Loc(1, 10, 2, "_Z1fv", Loc(1, 20, 3))
        assert i.loc == Loc(1, 5, 1, "g", outer)
        assert m.files == {1: "a.cu"}

    def test_position_inlined_into_itself_ends(self) -> None:
        f = kernel(".loc 1 1 1, function_name f, inlined_at 1 1 1\nret;\n" * 500)
        depth, loc = 0, list(f.instructions())[-1].loc
        while loc is not None:
            depth, loc = depth + 1, loc.inlined_at
        assert depth < 100

    def test_sections_are_skipped(self) -> None:
        m = module(
            ".section .debug_abbrev {\n.b8 1\n.b32 .debug_str+4\n}\n.entry k() { ret; }\n.section .debug_loc { }"
        )
        assert list(m.functions) == ["k"]
