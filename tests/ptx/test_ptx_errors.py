"""Malformed PTX: one precise sentence, the right line, and never anything but PtxError."""

from __future__ import annotations

import contextlib
import time

import pytest

from warpsmith.ptx import PtxError, parse

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
BODY = HEADER + ".visible .entry k(.param .b32 a)\n{\n.reg .b32 %r<10>;\n.reg .pred %p<3>;\n"  # lines 4 to 7
LINE = 8


def error(text: str) -> tuple[int, str]:
    with pytest.raises(PtxError) as caught:
        parse(text, "file.ptx")
    e = caught.value
    assert str(e) == f"file.ptx:{e.line}: {e.message}"
    assert "\n" not in e.message
    return e.line, e.message


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("add.s32 %r1, %r2, %r3", "expected ',' or ';', found '}'"),
        ("add.s32 %r1, %r2 %r3;", "expected ',' or ';', found '%r3'"),
        ("add.s32 %r1,, %r3;", "expected an operand, found ','"),
        ("add.s32 %r1, ;", "expected an operand, found ';'"),
        ("add.s32 , %r1;", "expected an operand, found ','"),
        ("add.s32 %r1, %r2, %r10;", "'%r10' is not declared"),
        ("add.s32 %r1, %r2, %r03;", "'%r03' is not declared"),
        ("add.s32 %r1, %r2, foo;", "'foo' is not declared"),
        ("mov.u32 %r1, %tid.q;", "'%tid' has no part '.q'"),
        ("mov.u32 %r1, %lane;", "'%lane' is not declared"),
        ("mov.u32 %r1, %r2.x;", "'%r2' has no part '.x'"),
        ("bra nowhere;", "label 'nowhere' is not defined"),
        ("{ L: ret; } bra L;", "label 'L' is not defined"),
        ("bra ;", "expected a label, found ';'"),
        ("bra L, M; L:", "expected ';', found ','"),
        ("L: L: ret;", "label 'L' is defined twice"),
        ("brx.idx %r1, list;", "label 'list' is not defined"),
        ("brx.idx %r1;", "expected ',', found ';'"),
        ("@%r1 ret;", "guard '%r1' is not a predicate"),
        ("@%q ret;", "'%q' is not declared"),
        ("@5 ret;", "'5' is not declared"),
        ("5 ret;", "expected an instruction, found '5'"),
        (".reg .b32 %r<5>;", "register '%r' is declared twice"),
        (".reg .b32 x, x;", "register 'x' is declared twice"),
        (".reg .b32 %r3;", "register '%r3' is declared twice"),
        (".reg .b31 x;", "'.b31' is not a type"),
        (".reg x;", "expected a type, found 'x'"),
        (".reg .b32 x<y>;", "expected a number, found 'y'"),
        (".reg .b32 x<9999999999>;", "9999999999 registers are too many"),
        (".shared .b32 a;", "'a' is declared twice"),
        (".shared .align 3 .b32 s;", "alignment 3 is not a power of two"),
        (".nonsense 5;", "unknown directive '.nonsense'"),
        ("mov.u32 %r1, 12x;", "malformed number '12x'"),
        ("mov.u32 %r1, 0f3F80;", "malformed number '0f3F80'"),
        ("mov.u32 %r1, 0x;", "malformed number '0x'"),
        ("mov.u32 %r1, 089;", "malformed number '089'"),
        ("mov.u32 %r1, 18446744073709551616;", "number '18446744073709551616' does not fit in 64 bits"),
        ("mov.u32 %r1, 1/0;", "division by zero in a constant expression"),
        ("mov.u32 %r1, 1%0;", "division by zero in a constant expression"),
        ("mov.u32 %r1, 1.0/0;", "division by zero in a constant expression"),
        ("mov.u32 %r1, ~1.5;", "'~' needs an integer constant"),
        ("mov.u32 %r1, 1.5<<2;", "'<<' needs integer constants"),
        ("mov.u32 %r1, (1+2;", "expected ')', found ';'"),
        ("mov.u32 %r1, 1 ? 2;", "expected ':', found ';'"),
        ("mov.u32 %r1, (.s64)0d7FF0000000000000;", "a constant that is not finite cannot become an integer"),
        ("mov.u32 %r1, !%r2x;", "'%r2x' is not declared"),
        ("mov.u32 %r1, !a;", "'a' is not a register"),
        ("setp.eq.s32 %p1|5, %r1, 0;", "expected a register after '|', found '5'"),
        ("setp.eq.s32 %p1|a, %r1, 0;", "'a' is not a register"),
        ("ld.b32 %r1, [%r2+%r3];", "expected a number, found '%r3'"),
        ("ld.b32 %r1, [%r2+1.5];", "expected a constant offset, found '1.5'"),
        ("ld.b32 %r1, [%tid.x];", "'%tid.x' cannot be the base of an address"),
        ("ld.b32 %r1, [%r2;", "expected ',', found ';'"),
        ("ld.b32 %r1, [];", "expected a number, found ']'"),
        ("ld.b32 %r1, [a[%r1]];", "expected a number, found '%r1'"),
        ("ld.b32 %r1, [%r2, 5, 6];", "expected ']', found ','"),
        ("ld.v2.b32 {%r1, %r2, [%r3];", "'{' without a matching '}'"),
        ("ld.v2.b32 {%r1, {%r2}}, [%r3];", "expected a register or a constant, found '{'"),
        ("ld.v2.b32 {%r1, [%r2]}, [%r3];", "expected a register or a constant, found '['"),
        ("ld.v2.b32 {%r1 %r2}, [%r3];", "expected ',' or '}', found '%r2'"),
        ("ld.v2.b32 {%r1,}, [%r3];", "expected an operand, found '}'"),
        ("call f;", "function 'f' is not declared"),
        ("call k, (%r1;", "expected ')', found ';'"),
        ("call k, (%r1), p;", "label 'p' is not defined"),
        ("call (%r1) k;", "expected ',', found 'k'"),
        ("call k, ;", "expected arguments in parentheses or a label, found ';'"),
        ("P: .calltargets f;", "'f' is not declared"),
        (".loc x;", "expected file, line and column, found 'x'"),
        (".pragma nounroll;", "expected a string, found 'nounroll'"),
    ],
)
def test_statement(statement: str, message: str) -> None:
    assert error(BODY + statement + "\n}\n") == (LINE + (found_later(message)), message)


def found_later(message: str) -> int:
    """Lines from the statement to where the error is: only a missing semicolon is noticed on the next one."""
    return message == "expected ',' or ';', found '}'"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "no '.version' directive: this is not PTX"),
        ("\n\n// nothing\n", 4, "no '.version' directive: this is not PTX"),
        ("int main() { return 0; }", 1, "expected a directive, found 'int'"),
        ("\n.target sm_90", 2, "PTX must start with '.version'"),
        (".version nine", 1, "expected a version such as 9.0, found 'nine'"),
        (".version 9.0\n.target ,", 2, "expected a target such as sm_90, found ','"),
        (".version 9.0\n.address_size 16", 2, "address size is 32 or 64, not 16"),
        (HEADER + ".entry k() {\nret;\n", 6, "function 'k' is not closed: a '}' is missing"),
        (HEADER + ".entry k() {\n{\nret;\n}\n", 8, "function 'k' is not closed: a '}' is missing"),
        (HEADER + ".entry k() { ret; }\n}", 5, "expected a directive, found '}'"),
        (HEADER + "/* open\n\n", 4, "comment without a closing '*/'"),
        (HEADER + '.file 1 "open\n', 4, "string without a closing quote"),
        (HEADER + ".entry k() { ret; }\n.entry k() { ret; }", 5, "function 'k' is defined twice"),
        (HEADER + ".global .b32 k;\n.entry k() { ret; }", 5, "'k' is declared twice"),
        (HEADER + ".global .b32 k;\n.global .b32 k;", 5, "'k' is declared twice"),
        (HEADER + ".func f(.param .b32 a,\n.param .b32 a) { ret; }", 4, "parameter 'a' is declared twice"),
        (HEADER + ".func f(.param .b32) { ret; }", 4, "expected a parameter name, found ')'"),
        (HEADER + ".func f(.b32 a) { ret; }", 4, "expected '.param' or '.reg', found '.b32'"),
        (HEADER + ".entry k() .maxntid { ret; }", 4, "expected a number, found '{'"),
        (HEADER + ".entry k() .fast { ret; }", 4, "unknown directive '.fast'"),
        (HEADER + ".entry { ret; }", 4, "expected a function name, found '{'"),
        (HEADER + ".global .b32 x", 4, "expected ';', found the end of the text"),
        (HEADER + ".global .b32 x[-1];", 4, "array size -1 is negative"),
        (HEADER + ".global .b32 x[2][];", 4, "only the first dimension may be left open"),
        (HEADER + ".visible .global .b32 x[];", 4, "array 'x' has neither a size nor an initialiser"),
        (HEADER + ".global .b8 x[2] = {1,\n2, 3};", 5, "'x' has 2 bytes but its initialiser is longer"),
        (HEADER + '.global .b8 x[2] = "abc";', 4, "'x' has 2 bytes but its initialiser is longer"),
        (HEADER + ".global .b8 x[2][2] = {{1,2,3}};", 4, "too many values in the initialiser of 'x'"),
        (HEADER + ".global .b32 x = 1.5;", 4, "a floating-point constant does not fit type '.b32'"),
        (HEADER + ".global .f16 x = 1e9;", 4, "floating-point constant is too large for its type"),
        (HEADER + "\n.global .u64 x = y;", 5, "initialiser of 'x' names 'y', which is not declared"),
        (HEADER + ".global .b32 g;\n.global .u8 x[8] = {0xFF(g), 0xFF(g)};", 5, "only all bytes of the address of 'g' in order can be initial values"),
        (HEADER + ".alias f, g;", 4, "'.alias' to 'g', which is not a function"),
        (HEADER + ".section .debug_str {", 4, "'{' without a matching '}'"),
        (HEADER + ".global .attribute(.managed .b32 x;", 4, "'.attribute' without a closing ')'"),
    ],
)  # fmt: skip
def test_module(text: str, line: int, message: str) -> None:
    assert error(text) == (line, message)


def test_long_words_are_cut() -> None:
    _, message = error(BODY + "mov.u32 %r1, " + "x" * 10_000 + ";\n}")
    assert len(message) < 100


N = 100_000
HOSTILE = {
    "open comments": "/*" * N,
    "quotes": HEADER + '"' * N,
    "backslashes": HEADER + '"' + "\\" * N,
    "scopes": BODY + "{" * N,
    "closed scopes": BODY + "{}" * N + "}",
    "vectors": BODY + "mov.b32 %r1, " + "{" * N + ";",
    "brackets": BODY + "mov.b32 %r1, " + "[" * N + ";",
    "parentheses": BODY + "mov.b32 %r1, " + "(" * N + ";",
    "signs": BODY + "mov.b32 %r1, " + "-" * N + "1; }",
    "conditions": BODY + "mov.b32 %r1, " + "1?" * N + "1;",
    "digits": BODY + "mov.b32 %r1, " + "1" * N + ";",
    "decimals": BODY + "mov.b32 %r1, 1." + "1" * N + ";",
    "register digits": BODY + "mov.b32 %r1, %r" + "1" * N + ";",
    "modifiers": BODY + "add" + ".x" * N + " %r1, %r2; }",
    "colons": BODY + "a " + ": " * N,
    "commas": BODY + "mov.b32 " + "," * N + ";",
    "guards": BODY + "@%p1 " * N,
    "spaces": BODY + " " * N + "@" + " " * N,
    "labels": BODY + "".join(f"L{k}:" for k in range(N // 2)) + "}",
    "branches": BODY + "".join(f"bra L{k};" for k in range(N // 4)) + "}",
    "branches from scopes": BODY + ("{" * 50 + "bra X;" * 500 + "}" * 50) * 3 + "X: }",
    "debug sections": HEADER + ".section .debug_str {" * (N // 10),
    "initialiser braces": HEADER + ".global .b8 x[] = " + "{" * N,
    "initialiser with an error at its end": HEADER + ".global .b8 x[] = {" + "1," * N + "?};",
    "huge sparse initialiser": HEADER + ".global .b8 x[4294967296][4294967296] = {{1},{1}};",
    "many sparse initialisers": HEADER
    + "".join(f".global .b8 x{k}[4][16777216] = {{{{1}},{{1}}}};" for k in range(999)),
    "dimensions": HEADER + ".global .b8 x" + "[2]" * N + ";",
    "attribute": HEADER + ".global .attribute(" + "(" * N + " .b8 x;",
    "declarations": BODY + "".join(f".reg .b32 x{k}; mov.b32 x{k}, %r1;" for k in range(N // 20)) + "}",
    "ranges": BODY + "".join(f".reg .b32 y{k}<10>; mov.b32 y{k}3, %r1;" for k in range(N // 20)) + "}",
    "zero bytes": "\0" * N,
    "lines": "\n" * N + "x",
    "functions": HEADER + "".join(f".func f{k}(.param .b32 a) {{ ret; }}" for k in range(N // 20)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_fast(name: str) -> None:
    """Sizes at which anything quadratic would take minutes."""
    start = time.process_time()
    with contextlib.suppress(PtxError):
        parse(HOSTILE[name])
    assert time.process_time() - start < 10
