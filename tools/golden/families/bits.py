"""Logic, shifts, counts, fields, byte permutation."""

from __future__ import annotations

from collections.abc import Iterator

from ..forms import Form, call, form

TABLES = (0x00, 0xFF, 0xF0, 0xCC, 0xAA, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0xE2, 0x1A, 0x40, 0x2D, 0x7B, 0x69, 0x16, 0x81)
FIELDS = ((0, 8), (8, 8), (5, 27), (24, 8), (31, 1), (0, 32), (31, 5), (33, 4), (3, 0), (0, 255), (255, 4), (20, 200))
SELECTORS = (0x3210, 0x5410, 0x7632, 0x0123, 0x4567, 0x8888, 0xBA98, 0xFEDC, 0x9140, 0xFFFF, 0x12345410)


def bits() -> Iterator[Form]:
    yield from logic()
    yield from shifts()
    yield from counts()
    yield from fields()
    yield from permutations()


def logic() -> Iterator[Form]:
    for t in ("b16", "b32", "b64"):
        for op in ("and", "or", "xor"):
            yield call(f"{op}.{t}", f"{t} {t}", t)
        yield call(f"not.{t}", t, t)
        yield call(f"cnot.{t}", t, t)
    for op in ("and", "or", "xor"):
        yield call(f"{op}.pred", "pred pred", "pred")
    yield call("not.pred", "pred", "pred")
    for table in TABLES:
        yield form(f"lop3.b32 $d, $a, $b, $c, {table:#x};", "b32 b32 b32", "b32")
    yield form("lop3.or.b32 $d|$d1, $a, $b, $c, 0x80, $e;", "lane lane lane pred", "b32 pred")
    yield form("lop3.and.b32 $d|$d1, $a, $b, $c, 0x3c, $e;", "lane lane lane pred", "b32 pred")


def shifts() -> Iterator[Form]:
    for n in (16, 32, 64):
        yield call(f"shl.b{n}", f"b{n} amount", f"b{n}")
        for k in "bus":
            yield call(f"shr.{k}{n}", f"{k}{n} amount", f"{k}{n}")
        for by in (0, 1, n - 1, n, n + 1, 0xFFFFFFFF):
            yield form(f"shl.b{n} $d, $a, {by};", f"b{n}", f"b{n}")
            yield form(f"shr.u{n} $d, $a, {by};", f"u{n}", f"u{n}")
            yield form(f"shr.s{n} $d, $a, {by};", f"s{n}", f"s{n}")
    for mode in ("wrap", "clamp"):
        for side in "lr":
            yield call(f"shf.{side}.{mode}.b32", "b32 b32 amount", "b32")
            for by in (0, 7, 32, 45):
                yield form(f"shf.{side}.{mode}.b32 $d, $a, $b, {by};", "b32 b32", "b32")


def counts() -> Iterator[Form]:
    for n in (32, 64):
        yield call(f"popc.b{n}", f"b{n}", "u32")
        yield call(f"clz.b{n}", f"b{n}", "u32")
        yield call(f"brev.b{n}", f"b{n}", f"b{n}")
        for k in "us":
            yield call(f"bfind.{k}{n}", f"{k}{n}", "u32")
            yield call(f"bfind.shiftamt.{k}{n}", f"{k}{n}", "u32")
    yield call("fns.b32", "b32 lane rank", "b32")


def fields() -> Iterator[Form]:
    for n in (32, 64):
        for k in "us":
            yield call(f"bfe.{k}{n}", f"{k}{n} amount amount", f"{k}{n}")
            for at, length in FIELDS:
                yield form(f"bfe.{k}{n} $d, $a, {at}, {length};", f"{k}{n}", f"{k}{n}")
        yield call(f"bfi.b{n}", f"b{n} b{n} amount amount", f"b{n}")
        for at, length in FIELDS:
            yield form(f"bfi.b{n} $d, $a, $b, {at}, {length};", f"b{n} b{n}", f"b{n}")
    for mode in ("wrap", "clamp"):
        yield call(f"bmsk.{mode}.b32", "amount amount", "b32")
        for t in ("u32", "s32"):
            yield call(f"szext.{mode}.{t}", f"{t} amount", t)


def permutations() -> Iterator[Form]:
    yield call("prmt.b32", "b32 b32 b32", "b32")
    for c in SELECTORS:
        yield form(f"prmt.b32 $d, $a, $b, {c:#x};", "b32 b32", "b32")
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield call(f"prmt.b32.{mode}", "b32 b32 b32", "b32")
