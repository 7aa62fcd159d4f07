"""Bit instructions against Python integers, mostly as the PTX ISA spells them out bit by bit."""

from __future__ import annotations

import pytest
from harness import Form, Forms, Oracle, check, check_refused, signed
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.devices.emulator.lowering import handlers

CASES: dict[Form, Oracle] = {}
MASK32 = 0xFFFFFFFF


def case(text: str, types: str, outs: str, oracle: Oracle, kinds: str = "") -> None:
    CASES[Form(text, tuple(types.split()), tuple(outs.split()), tuple(kinds.split()))] = oracle


def bit(v: int, k: int) -> int:
    return v >> k & 1


# ---- bitwise -----------------------------------------------------------------------------------------
for n in (16, 32, 64):
    t = f"b{n}"
    case(f"and.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b: a & b)
    case(f"or.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b: a | b)
    case(f"xor.{t} $d, $a, $b;", f"{t} {t}", t, lambda a, b: a ^ b)
    case(f"not.{t} $d, $a;", t, t, lambda a: ~a)
    case(f"cnot.{t} $d, $a;", t, t, lambda a: int(a == 0))
case("and.pred $d, $a, $b;", "pred pred", "pred", lambda a, b: a & b)
case("or.pred $d, $a, $b;", "pred pred", "pred", lambda a, b: a | b)
case("xor.pred $d, $a, $b;", "pred pred", "pred", lambda a, b: a ^ b)
case("not.pred $d, $a;", "pred", "pred", lambda a: 1 - a)
case("and.pred $d, $a, !$b;", "pred pred", "pred", lambda a, b: a & (1 - b))
case("and.b32 $d, $a, 0xFF00FF00;", "b32", "b32", lambda a: a & 0xFF00FF00)
case("xor.b64 $d, $a, -1;", "b64", "b64", lambda a: ~a)


def lut(table: int, a: int, b: int, c: int) -> int:
    """lop3 bit by bit."""
    return sum(bit(table, 4 * bit(a, k) + 2 * bit(b, k) + bit(c, k)) << k for k in range(32))


TABLES = [0x00, 0xFF, 0xF0, 0xCC, 0xAA, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0xE2, 0x1A, 0x40, 0x2D, 0x7B, 0x69, 0x16, 0x81]
for table in TABLES:
    case(f"lop3.b32 $d, $a, $b, $c, {table:#x};", "b32 b32 b32", "b32", lambda a, b, c, n=table: lut(n, a, b, c))
SPARSE = "lane lane lane pred"  # often without any common bit, so that the result is 0
case(
    "lop3.or.b32 $d|$d1, $a, $b, $c, 0x80, $e;",
    "b32 b32 b32 pred",
    "b32 pred",
    lambda a, b, c, e: (a & b & c, int(a & b & c != 0) | e),
    SPARSE,
)
case(
    "lop3.and.b32 $d|$d1, $a, $b, $c, 0x3c, $e;",
    "b32 b32 b32 pred",
    "b32 pred",
    lambda a, b, c, e: (a ^ b, int(a != b) & e),
    SPARSE,
)
case("lop3.and.b32 _|$d, $a, $b, $c, 0x3c, $e;", "b32 b32 b32 pred", "pred", lambda a, b, c, e: int(a != b) & e, SPARSE)


def test_every_table_of_lop3_has_a_formula() -> None:
    """The formulas found by search, evaluated on truth tables, are the tables themselves."""
    handlers()  # loads the families
    from warpsmith.devices.emulator.lowering.logic import formula

    operations = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}

    def evaluate(table: int) -> int:
        if table in (0x00, 0xFF, 0xF0, 0xCC, 0xAA):
            return table
        name, left, right = formula(table)
        return operations[name](evaluate(left), evaluate(right))

    assert all(evaluate(table) == table for table in range(256))


# ---- shifts ------------------------------------------------------------------------------------------
for n in (16, 32, 64):
    case(f"shl.b{n} $d, $a, $b;", f"b{n} u32", f"b{n}", lambda a, b: a << min(b, 64), f"b{n} amount")
    for k in "bus":
        t = f"{k}{n}"

        def shifted(a: int, b: int, n: int = n, k: str = k) -> int:
            return (signed(a, n) if k == "s" else a) >> min(b, 64)

        case(f"shr.{t} $d, $a, $b;", f"{t} u32", t, shifted, f"{t} amount")
        for by in (0, 1, n - 1, n, n + 1, 0xFFFFFFFF):
            case(f"shr.{t} $d, $a, {by};", t, t, lambda a, by=by, shifted=shifted: shifted(a, by))
    for by in (0, 1, n - 1, n, n + 1, 0xFFFFFFFF):
        case(f"shl.b{n} $d, $a, {by};", f"b{n}", f"b{n}", lambda a, by=by: a << min(by, 64))
    case(f"shl.b{n} $d, 1, $a;", "u32", f"b{n}", lambda b: 1 << min(b, 64), "amount")

for mode in ("wrap", "clamp"):

    def amount(c: int, mode: str = mode) -> int:
        return c & 31 if mode == "wrap" else min(c, 32)

    case(
        f"shf.l.{mode}.b32 $d, $a, $b, $c;",
        "b32 b32 u32",
        "b32",
        lambda a, b, c, amount=amount: (b << 32 | a) << amount(c) >> 32,
        "b32 b32 amount",
    )
    case(
        f"shf.r.{mode}.b32 $d, $a, $b, $c;",
        "b32 b32 u32",
        "b32",
        lambda a, b, c, amount=amount: (b << 32 | a) >> amount(c),
        "b32 b32 amount",
    )
    for by in (0, 7, 32, 45):
        case(
            f"shf.l.{mode}.b32 $d, $a, $b, {by};",
            "b32 b32",
            "b32",
            lambda a, b, by=by, amount=amount: (b << 32 | a) << amount(by) >> 32,
        )
        case(
            f"shf.r.{mode}.b32 $d, $a, $b, {by};",
            "b32 b32",
            "b32",
            lambda a, b, by=by, amount=amount: (b << 32 | a) >> amount(by),
        )


# ---- counts ------------------------------------------------------------------------------------------
def leading(a: int, n: int, is_signed: bool) -> int:
    """bfind: place of the highest bit that differs from the sign, -1 if there is none."""
    return (~a & ((1 << n) - 1) if is_signed and bit(a, n - 1) else a).bit_length() - 1


for n in (32, 64):
    case(f"popc.b{n} $d, $a;", f"b{n}", "u32", int.bit_count)
    case(f"clz.b{n} $d, $a;", f"b{n}", "u32", lambda a, n=n: n - a.bit_length())
    case(f"brev.b{n} $d, $a;", f"b{n}", f"b{n}", lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2))
    for k in "us":
        case(f"bfind.{k}{n} $d, $a;", f"{k}{n}", "u32", lambda a, n=n, k=k: leading(a, n, k == "s"))
        case(
            f"bfind.shiftamt.{k}{n} $d, $a;",
            f"{k}{n}",
            "u32",
            lambda a, n=n, k=k: -1 if leading(a, n, k == "s") < 0 else n - 1 - leading(a, n, k == "s"),
        )


def nth_set_bit(mask: int, base: int, offset: int) -> int:
    """fns as the PTX ISA has it."""
    offset = signed(offset, 32)
    if offset == 0:
        return base if bit(mask, base) else -1
    at, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= at < 32:
        if bit(mask, at):
            if count == 0:
                return at
            count -= 1
        at += step
    return -1


case("fns.b32 $d, $a, $b, $c;", "b32 b32 s32", "b32", nth_set_bit, "b32 lane rank")
case("fns.b32 $d, $a, 0, $b;", "b32 s32", "b32", lambda a, c: nth_set_bit(a, 0, c), "b32 rank")
case("fns.b32 $d, $a, 31, -3;", "b32", "b32", lambda a: nth_set_bit(a, 31, -3 & MASK32))


# ---- fields ------------------------------------------------------------------------------------------
def extracted(a: int, at: int, length: int, n: int, is_signed: bool) -> int:
    """bfe as the PTX ISA has it; operands beyond 255 as the hardware takes them."""
    if n == 32:
        at, length = at & 0xFF, length & 0xFF
    sign = bit(a, min(at + length - 1, n - 1)) if is_signed and length else 0
    return sum((bit(a, at + k) if k < length and at + k < n else sign) << k for k in range(n))


def inserted(a: int, b: int, at: int, length: int, n: int) -> int:
    """bfi as the PTX ISA has it; operands beyond 255 as the hardware takes them."""
    if n == 32:
        at, length = at & 0xFF, length & 0xFF
    for k in range(min(length, max(n - at, 0))):
        b = b & ~(1 << (at + k)) | bit(a, k) << (at + k)
    return b


FIELDS = [(0, 8), (8, 8), (5, 27), (24, 8), (31, 1), (0, 32), (31, 5), (33, 4), (3, 0), (0, 255), (255, 4), (20, 200)]
for n in (32, 64):
    for k in "us":
        t = f"{k}{n}"
        case(
            f"bfe.{t} $d, $a, $b, $c;",
            f"{t} u32 u32",
            t,
            lambda a, b, c, n=n, k=k: extracted(a, b, c, n, k == "s"),
            f"{t} amount amount",
        )
        for at, length in FIELDS:
            case(
                f"bfe.{t} $d, $a, {at}, {length};",
                t,
                t,
                lambda a, n=n, k=k, at=at, length=length: extracted(a, at, length, n, k == "s"),
            )
        case(
            f"bfe.{t} $d, $a, $b, 5;",
            f"{t} u32",
            t,
            lambda a, b, n=n, k=k: extracted(a, b, 5, n, k == "s"),
            f"{t} amount",
        )
    case(
        f"bfi.b{n} $d, $a, $b, $c, $e;",
        f"b{n} b{n} u32 u32",
        f"b{n}",
        lambda a, b, c, e, n=n: inserted(a, b, c, e, n),
        f"b{n} b{n} amount amount",
    )
    for at, length in FIELDS:
        case(
            f"bfi.b{n} $d, $a, $b, {at}, {length};",
            f"b{n} b{n}",
            f"b{n}",
            lambda a, b, n=n, at=at, length=length: inserted(a, b, at, length, n),
        )


def mask_of(a: int, b: int, mode: str) -> int:
    """bmsk as the PTX ISA has it."""
    start, count = a & 31, b & 31
    low, high = MASK32 << start, MASK32 << (start + count)
    if mode == "clamp" and a >= 32:
        low = 0
    if start + count >= 32 or (mode == "clamp" and (a >= 32 or b >= 32)):
        high = 0
    return low & ~high


def extended(a: int, b: int, mode: str, is_signed: bool) -> int:
    """szext as the PTX ISA has it."""
    n = b & 31
    large = b >= 32 and mode == "clamp"
    mask = 0 if large else MASK32 << n & MASK32
    sign = is_signed and not large and n > 0 and bit(a, n - 1)
    return a & ~mask | (mask if sign else 0)


for mode in ("wrap", "clamp"):
    case(f"bmsk.{mode}.b32 $d, $a, $b;", "u32 u32", "b32", lambda a, b, m=mode: mask_of(a, b, m), "amount amount")
    for at, length in FIELDS:
        case(f"bmsk.{mode}.b32 $d, $a, {length};", "u32", "b32", lambda a, m=mode, n=length: mask_of(a, n, m), "amount")
        case(f"bmsk.{mode}.b32 $d, {at}, $a;", "u32", "b32", lambda b, m=mode, n=at: mask_of(n, b, m), "amount")
    for t in ("u32", "s32"):
        case(
            f"szext.{mode}.{t} $d, $a, $b;",
            f"{t} u32",
            t,
            lambda a, b, m=mode, t=t: extended(a, b, m, t[0] == "s"),
            f"{t} amount",
        )
        for n in (0, 1, 8, 31, 32, 40):
            case(f"szext.{mode}.{t} $d, $a, {n};", t, t, lambda a, m=mode, t=t, n=n: extended(a, n, m, t[0] == "s"))


# ---- bytes -------------------------------------------------------------------------------------------
def permuted(a: int, b: int, c: int, mode: str = "") -> int:
    """prmt: the table of the PTX ISA, most significant byte first."""
    c &= 3 if mode else 0xFFFF
    source = (b << 32 | a).to_bytes(8, "little")
    modes = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    digits = modes[mode][c] if mode else f"{c:04x}"
    out = 0
    for digit in digits:
        n = int(digit, 16)
        byte = source[n & 7]
        if n & 8:
            byte = 0xFF if byte & 0x80 else 0
        out = out << 8 | byte
    return out


case("prmt.b32 $d, $a, $b, $c;", "b32 b32 b32", "b32", permuted)
SELECTORS = (
    0x3210,
    0x5410,
    0x7632,
    0x0123,
    0x4567,
    0x3330,
    0x8888,
    0xBA98,
    0xFEDC,
    0x9140,
    0x7531,
    0xFFFF,
    0x12345410,
    0x64,
)
for c in SELECTORS:
    case(f"prmt.b32 $d, $a, $b, {c:#x};", "b32 b32", "b32", lambda a, b, c=c: permuted(a, b, c))
case("prmt.b32 $d, $a, 0, 0x4140;", "b32", "b32", lambda a: permuted(a, 0, 0x4140))
for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
    case(f"prmt.b32.{mode} $d, $a, $b, $c;", "b32 b32 b32", "b32", lambda a, b, c, m=mode: permuted(a, b, c, m))
    for c in (0, 1, 2, 3, 6):
        case(f"prmt.b32.{mode} $d, $a, $b, {c};", "b32 b32", "b32", lambda a, b, c=c, m=mode: permuted(a, b, c, m))

FORMS = Forms(CASES)


@pytest.mark.parametrize("form", CASES, ids=str)
def test_form(form: Form) -> None:
    check(FORMS, form, CASES[form])


REFUSED = [
    Form(
        "and.u32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form(
        "lop3.b32 $d, $a, $b, $a, $b;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
    Form(
        "lop3.xor.b32 $d, $a, $b, $a, 1, 1;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
    Form(
        "shl.s32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form(
        "shf.l.b32 $d, $a, $b, $b;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
    Form("popc.u32 $d, $a;", ("u32",), ("u32",)),
    Form("bfind.b32 $d, $a;", ("b32",), ("u32",)),
    Form("bfe.b32 $d, $a, $a, $a;", ("b32",), ("b32",)),
    Form(
        "bmsk.b32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("b32",),
    ),
    Form(
        "szext.u32 $d, $a, $b;",
        (
            "u32",
            "u32",
        ),
        ("u32",),
    ),
    Form(
        "prmt.b32.xyz $d, $a, $b, $a;",
        (
            "b32",
            "b32",
        ),
        ("b32",),
    ),
]


@pytest.mark.parametrize("form", REFUSED, ids=str)
def test_refused(form: Form) -> None:
    check_refused(form)


PROPERTIES = [
    f for f in CASES if f.text.startswith(("bfe", "bfi", "fns", "shf", "prmt.b32 ", "bmsk")) and len(f.ins) > 2
]


@settings(max_examples=40, deadline=None, database=None)
@given(st.sampled_from(PROPERTIES), st.data())
def test_anything(form: Form, data: st.DataObject) -> None:
    """Operands of any size, not only those that make sense."""
    limits = {"b32 lane rank": (MASK32, 31, MASK32 >> 1)}.get(" ".join(form.kinds))
    sizes = limits or tuple((1 << int(t[1:])) - 1 for t in form.ins)
    row = data.draw(st.tuples(*(st.integers(0, top) for top in sizes)))
    check(FORMS, form, CASES[form], [row] * 128, shares=1)
