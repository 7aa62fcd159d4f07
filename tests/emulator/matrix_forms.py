"""The forms of the warp-level matrix instructions, as test kernels and as data for them.

A kernel runs one instruction on raw registers: block ``i`` (one warp) loads its operands from ``a[i][register][lane]``
and so on, and stores ``d[i][register][lane]``.  Inputs are made from a seed with integer arithmetic only, so that the
same ones can be made anywhere, and what a GPU answered can be stored without them.

The layouts here are written down from the PTX ISA (9.7.14), one function an operand, and share no code with the emulator.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Width of an element in a matrix operand.
BITS = {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64}  # fmt: skip
#: Kinds of inputs, see ``inputs``.
CATEGORIES = ("normal", "wide", "cancel", "bits", "tiny", "special", "huge", "probe", "zero")
#: Exponent and mantissa bits.
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2), "f32": (8, 23), "f64": (11, 52)}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One instruction form.  ``a``, ``b``, ``c``, ``d``: element types; ``*_regs``: registers a lane (of 64 bits for
    f64, else of 32); ``selector``: of a sparse form."""

    opcode: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    a_regs: int
    b_regs: int
    c_regs: int
    d_regs: int
    selector: int | None = None
    warps: int = 1

    def __str__(self) -> str:
        return self.opcode if self.selector is None else f"{self.opcode}[{self.selector}]"

    @property
    def integer(self) -> bool:
        return self.c == "s32"

    @property
    def lanes(self) -> int:
        return 32 * self.warps


def registers(rows: int, columns: int, element: str, lanes: int = 32) -> int:
    return max(1, rows * columns * BITS[element] // lanes // (64 if element == "f64" else 32))


def dense(shape: str, mods: str, a: str, b: str, c: str, d: str) -> Form:
    """``mods``: what follows the types, ``.satfinite`` before them is written as a leading word."""
    m, n, k = sizes(shape)
    before, _, after = mods.partition("|")
    opcode = f"mma.sync.aligned.{shape}.row.col{before}.{d}.{a}.{b}.{c}{after}"
    return Form(
        opcode, m, n, k, a, b, c, d, registers(m, k, a), registers(k, n, b), registers(m, n, c), registers(m, n, d)
    )


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def sparse(shape: str, mods: str, a: str, b: str, c: str, d: str, selector: int, ordered: bool) -> Form:
    m, n, k = sizes(shape)
    before, _, after = mods.partition("|")
    sp = "sp::ordered_metadata" if ordered else "sp"
    opcode = f"mma.{sp}.sync.aligned.{shape}.row.col{before}.{d}.{a}.{b}.{c}{after}"
    return Form(
        opcode, m, n, k, a, b, c, d, registers(m, k // 2, a), registers(k, n, b), registers(m, n, c), registers(m, n, d), selector
    )  # fmt: skip


def mma_forms() -> Iterator[Form]:
    """mma.sync of sm_80 to sm_90, but for m8n8k4.f16."""
    for shape in ("m16n8k8", "m16n8k16"):
        for acc in ("f16", "f32"):
            yield dense(shape, "", "f16", "f16", acc, acc)
        yield dense(shape, "", "bf16", "bf16", "f32", "f32")
    for shape in ("m16n8k4", "m16n8k8"):
        yield dense(shape, "", "tf32", "tf32", "f32", "f32")
    for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
        yield dense(shape, "", "f64", "f64", "f64", "f64")
    for shape in ("m16n8k16", "m16n8k32"):
        for acc in ("f32", "f16"):
            for a in ("e4m3", "e5m2"):
                for b in ("e4m3", "e5m2"):
                    yield dense(shape, "", a, b, acc, acc)
    for bits, shapes in ((8, ("m8n8k16", "m16n8k16", "m16n8k32")), (4, ("m8n8k32", "m16n8k32", "m16n8k64"))):
        for shape in shapes:
            for sat in ("", ".satfinite"):
                for a in "su":
                    for b in "su":
                        yield dense(shape, sat, f"{a}{bits}", f"{b}{bits}", "s32", "s32")
    for shape in ("m8n8k128", "m16n8k128", "m16n8k256"):
        for op in ("xor", "and"):
            yield dense(shape, f"|.{op}.popc", "b1", "b1", "s32", "s32")


def sparse_forms() -> Iterator[Form]:
    """mma.sp: all selectors of one type of each shape."""
    shapes = [
        ("m16n8k16", "f16", "f16", "f32", 4), ("m16n8k16", "f16", "f16", "f16", 1), ("m16n8k16", "bf16", "bf16", "f32", 1),
        ("m16n8k32", "f16", "f16", "f32", 2), ("m16n8k32", "f16", "f16", "f16", 1), ("m16n8k32", "bf16", "bf16", "f32", 1),
        ("m16n8k8", "tf32", "tf32", "f32", 4), ("m16n8k16", "tf32", "tf32", "f32", 2),
        ("m16n8k32", "s8", "s8", "s32", 2), ("m16n8k32", "u8", "s8", "s32", 1), ("m16n8k64", "s8", "u8", "s32", 1),
        ("m16n8k64", "u8", "u8", "s32", 1), ("m16n8k64", "s4", "s4", "s32", 2), ("m16n8k128", "u4", "s4", "s32", 1),
        ("m16n8k64", "e4m3", "e5m2", "f32", 1), ("m16n8k64", "e4m3", "e4m3", "f32", 1),
    ]  # fmt: skip
    for shape, a, b, acc, selectors in shapes:
        for selector in range(selectors):
            yield sparse(shape, "", a, b, acc, acc, selector, False)
        yield sparse(shape, "", a, b, acc, acc, selectors - 1, True)
    yield sparse("m16n8k32", ".satfinite", "s8", "u8", "s32", "s32", 0, False)
    yield sparse("m16n8k128", ".satfinite", "s4", "s4", "s32", "s32", 0, True)


def quad_forms() -> Iterator[Form]:
    """mma.m8n8k4 of f16: four products of 8x8x4 at once, one a quad pair."""
    for la in ("row", "col"):
        for lb in ("row", "col"):
            for d, c in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
                regs = {"f16": 4, "f32": 8}
                yield Form(
                    f"mma.sync.aligned.m8n8k4.{la}.{lb}.{d}.f16.f16.{c}",
                    8,
                    8,
                    4,
                    "f16",
                    "f16",
                    c,
                    d,
                    2,
                    2,
                    regs[c],
                    regs[d],
                )


#: Registers of wmma fragments: (shape, type) -> a, b.
WMMA_REGS = {
    ("m16n16k16", "f16"): (8, 8), ("m32n8k16", "f16"): (8, 8), ("m8n32k16", "f16"): (8, 8),
    ("m16n16k16", "bf16"): (4, 4), ("m32n8k16", "bf16"): (8, 2), ("m8n32k16", "bf16"): (2, 8),
    ("m16n16k8", "tf32"): (4, 4), ("m8n8k4", "f64"): (1, 1),
    ("m16n16k16", "s8"): (2, 2), ("m32n8k16", "s8"): (4, 1), ("m8n32k16", "s8"): (1, 4),
    ("m8n8k32", "s4"): (1, 1), ("m8n8k128", "b1"): (1, 1),
}  # fmt: skip
for (_shape, _type), _regs in list(WMMA_REGS.items()):
    if _type in ("s8", "s4"):
        WMMA_REGS[_shape, "u" + _type[1]] = _regs


def wmma_c_regs(shape: str, element: str) -> int:
    m, n, _ = sizes(shape)
    return m * n // 32 // (2 if element == "f16" else 1)


def wmma_forms() -> Iterator[Form]:
    def form(shape: str, layouts: str, types: str, a: str, b: str, c: str, d: str, op: str = "") -> Form:
        m, n, k = sizes(shape)
        opcode = f"wmma.mma{op}.sync.aligned.{layouts}.{shape}.{types}"
        return Form(
            opcode, m, n, k, a, b, c, d, WMMA_REGS[shape, a][0], WMMA_REGS[shape, b][1], wmma_c_regs(shape, c), wmma_c_regs(shape, d)
        )  # fmt: skip

    layouts = [f"{a}.{b}" for a in ("row", "col") for b in ("row", "col")]
    for shape in ("m16n16k16", "m32n8k16", "m8n32k16"):
        for lay in layouts:
            for d in ("f16", "f32"):
                for c in ("f16", "f32"):
                    yield form(shape, lay, f"{d}.{c}", "f16", "f16", c, d)
            yield form(shape, lay, "f32.bf16.bf16.f32", "bf16", "bf16", "f32", "f32")
            for t in ("s8", "u8"):
                for sat in ("", ".satfinite"):
                    yield form(shape, lay, f"s32.{t}.{t}.s32{sat}", t, t, "s32", "s32")
    for lay in layouts:
        yield form("m16n16k8", lay, "f32.tf32.tf32.f32", "tf32", "tf32", "f32", "f32")
        yield form("m8n8k4", lay, "f64.f64.f64.f64", "f64", "f64", "f64", "f64")
    for t in ("s4", "u4"):
        for sat in ("", ".satfinite"):
            yield form("m8n8k32", "row.col", f"s32.{t}.{t}.s32{sat}", t, t, "s32", "s32")
    for op in (".xor.popc", ".and.popc"):
        yield form("m8n8k128", "row.col", "s32.b1.b1.s32", "b1", "b1", "s32", "s32", op)


def wgmma_forms() -> Iterator[Form]:
    """wgmma with A in registers and N = 8: for its arithmetic only."""
    for k, a, b, acc in (
        (16, "f16", "f16", "f32"), (16, "f16", "f16", "f16"), (16, "bf16", "bf16", "f32"), (8, "tf32", "tf32", "f32"),
        (32, "e4m3", "e4m3", "f32"), (32, "e5m2", "e5m2", "f32"), (32, "e4m3", "e5m2", "f16"),
    ):  # fmt: skip
        opcode = f"wgmma.mma_async.sync.aligned.m64n8k{k}.{acc}.{a}.{b}"
        regs = 4 if acc == "f32" else 2
        yield Form(opcode, 64, 8, k, a, b, acc, acc, 4, 2, regs, regs, None, 4)


@dataclass(frozen=True)
class Group:
    """Forms whose answers are recorded in one file, with so many inputs each."""

    file: str
    forms: tuple[Form, ...]
    count: int
    floats: tuple[str, ...]

    def categories(self, form: Form) -> tuple[str, ...]:
        return ("normal", "bits") if form.integer else self.floats


def groups() -> list[Group]:
    few = ("wide", "bits", "tiny")
    return [
        Group("mma", tuple(mma_forms()), 2, CATEGORIES),
        Group("mma_sparse", tuple(sparse_forms()), 2, CATEGORIES),
        Group("mma_quad", tuple(quad_forms()), 1, CATEGORIES),
        Group("mma_wmma", tuple(wmma_forms()), 1, few),
        Group("mma_wgmma", tuple(wgmma_forms()), 2, CATEGORIES),
    ]


# ---- kernels ---------------------------------------------------------------------------------------------
HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def register_type(element: str) -> str:
    return element if element in ("f32", "f64") else "b32"


def kernel(form: Form, name: str = "k") -> str:
    """PTX of the kernel that runs one form (without the header)."""
    lines = [
        ".reg .b32 %lane, %cta, %warp, %e;",
        ".reg .b64 %p<9>;",
        "mov.u32 %lane, %tid.x;",
        "mov.u32 %cta, %ctaid.x;",
    ]
    operands = [("a", form.a, form.a_regs), ("b", form.b, form.b_regs), ("c", form.c, form.c_regs)]
    for x, element, count in (*operands, ("d", form.d, form.d_regs)):
        lines.append(f".reg .{register_type(element)} %{x}<{count}>;")

    def move(x: str, element: str, count: int, number: int, load: bool) -> None:
        size = 8 if element == "f64" else 4
        lines.append(f"ld.param.u64 %p{number}, [p{number}];")
        lines.append(f".reg .b32 %i{number}; mad.lo.u32 %i{number}, %cta, {count * form.lanes}, %lane;")
        lines.append(f"mad.wide.u32 %p{number}, %i{number}, {size}, %p{number};")
        for r in range(count):
            at = f"[%p{number}+{r * form.lanes * size}]"
            ty = register_type(element)
            lines.append(f"ld.global.{ty} %{x}{r}, {at};" if load else f"st.global.{ty} {at}, %{x}{r};")

    def vec(x: str, count: int) -> str:
        return "{" + ", ".join(f"%{x}{r}" for r in range(count)) + "}"

    for number, (x, element, count) in enumerate(operands):
        if not (form.warps > 1 and x == "b"):
            move(x, element, count, number, True)
    if form.selector is not None:
        lines += ["ld.param.u64 %p4, [p4];", ".reg .b32 %ie; mad.lo.u32 %ie, %cta, 32, %lane;"]
        lines += ["mad.wide.u32 %p4, %ie, 4, %p4;", "ld.global.b32 %e, [%p4];"]
    a, b, c, d = (vec(x, n) for x, n in zip("abcd", (form.a_regs, form.b_regs, form.c_regs, form.d_regs), strict=True))
    if form.warps > 1:
        lines += wgmma_body(form, a, d)
    else:
        extra = "" if form.selector is None else f", %e, {form.selector}"
        lines.append(f"{form.opcode} {d}, {a}, {b}, {c}{extra};")
    move("d", form.d, form.d_regs, 3, False)
    params = ", ".join(f".param .u64 p{n}" for n in range(5))
    body = "\n".join(lines)
    return f".visible .entry {name}({params})\n{{\n{body}\nret;\n}}\n"


def wgmma_body(form: Form, a: str, d: str) -> list[str]:
    """B (64 words a block: [n][k], 16 bytes of every row in one part, then the others) to shared memory; then the product."""
    lines = [
        ".shared .align 128 .b8 tile[256];", ".reg .pred %q, %s;", ".reg .b32 %t, %v, %g;", ".reg .b64 %desc;",
        "setp.lt.u32 %q, %lane, 64;", "ld.param.u64 %p1, [p1];", "mad.lo.u32 %g, %cta, 64, %lane;",
        "mad.wide.u32 %p1, %g, 4, %p1;", "mov.u32 %t, tile;", "mad.lo.u32 %g, %lane, 4, %t;",
        "@%q ld.global.b32 %v, [%p1];", "@%q st.shared.b32 [%g], %v;", "fence.proxy.async.shared::cta;", "bar.sync 0;",
        "shr.u32 %t, %t, 4;", "cvt.u64.u32 %desc, %t;", f"or.b64 %desc, %desc, {8 << 16 | 16 << 32};", "setp.eq.u32 %s, 0, 0;",
    ]  # fmt: skip
    lines += [f"mov.{register_type(form.c)} %d{r}, %c{r};" for r in range(form.d_regs)]
    trans = ", 0" if form.a in ("f16", "bf16") else ""
    lines += ["wgmma.fence.sync.aligned;", f"{form.opcode} {d}, {a}, %desc, %s, 1, 1{trans};"]
    return [*lines, "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]


# ---- layouts ---------------------------------------------------------------------------------------------
Place = tuple[int, int]


def a_place(form: Form, reg: int, lane: int, i: int) -> Place:
    """Row and column in A of element ``i`` of a register (of a sparse A: column among the stored elements)."""
    per, (group, t) = elements(form.a), divmod(lane % 32, 4)
    high = form.m // 8 if form.warps == 1 else 2
    row = group + 8 * (reg % high) + 16 * (lane // 32)
    return row, (reg // high) * 4 * per + t * per + i


def b_place(form: Form, reg: int, lane: int, i: int) -> Place:
    per, (group, t) = elements(form.b), divmod(lane, 4)
    return reg * 4 * per + t * per + i, group


def c_place(form: Form, element: str, reg: int, lane: int, i: int) -> Place:
    group, t = divmod(lane % 32, 4)
    number = reg * 2 + i if element == "f16" else reg
    return group + 8 * (number // 2) + 16 * (lane // 32), 2 * t + number % 2


def elements(element: str) -> int:
    """Elements in a register."""
    return max(1, 32 // BITS[element])


def places(form: Form, which: str) -> Array:
    """``[register][lane][element] -> (row, column)`` of an operand, as an integer array with a last axis of two."""
    element, count = {"a": (form.a, form.a_regs), "b": (form.b, form.b_regs), "c": (form.c, form.c_regs), "d": (form.d, form.d_regs)}[which]  # fmt: skip
    place: Callable[[int, int, int], Place]
    if which == "a":
        place = lambda r, lane, i: a_place(form, r, lane, i)  # noqa: E731
    elif which == "b":
        place = lambda r, lane, i: b_place(form, r, lane, i)  # noqa: E731
    else:
        place = lambda r, lane, i: c_place(form, element, r, lane, i)  # noqa: E731
    lanes = form.lanes if which != "b" else 32
    return np.array(
        [[[place(r, lane, i) for i in range(elements(element))] for lane in range(lanes)] for r in range(count)]
    )


def pack(values: Array, where: Array, element: str) -> Array:
    """Element bit patterns ``[instance][row][column]`` -> registers ``[instance][register][lane]``."""
    bits = BITS[element]
    chosen = values[:, where[..., 0], where[..., 1]]
    if bits == 64:
        return np.ascontiguousarray(chosen[..., 0].astype(np.uint64))
    shifts = np.arange(where.shape[2], dtype=np.uint64) * np.uint64(bits)
    words: Array = (chosen.astype(np.uint64) << shifts).sum(-1, dtype=np.uint64)
    return np.ascontiguousarray(words.astype(np.uint32))


def unpack(regs: Array, where: Array, element: str, shape: tuple[int, int]) -> Array:
    """The inverse of ``pack``."""
    bits = BITS[element]
    out = np.zeros((len(regs), *shape), np.uint64)
    for i in range(where.shape[2]):
        part = (regs.astype(np.uint64) >> np.uint64(bits * i % 64)) & np.uint64((1 << bits) - 1)
        out[:, where[:, :, i, 0], where[:, :, i, 1]] = part
    return out


# ---- data ------------------------------------------------------------------------------------------------
class Stream:
    """Random numbers that are the same everywhere (SplitMix64 of a counter)."""

    def __init__(self, seed: str) -> None:
        self.state = np.uint64(zlib.crc32(seed.encode())) << np.uint64(32)

    def bits(self, *shape: int) -> Array:
        n = int(np.prod(shape))
        with np.errstate(over="ignore"):
            z = (self.state + np.arange(1, n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            self.state += np.uint64(n)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out: Array = (z ^ (z >> np.uint64(31))).reshape(shape)
        return out

    def below(self, n: int, *shape: int) -> Array:
        return (self.bits(*shape) >> np.uint64(11)) % np.uint64(n)


def number(s: Stream, fmt: str, exponents: Array) -> Array:
    """Bit patterns with given exponents (cut to the normal range), random signs and mantissas."""
    e, m = FORMATS[fmt]
    bias = (1 << (e - 1)) - 1
    field = np.clip(exponents.astype(np.int64) + bias, 1, (1 << e) - 2).astype(np.uint64)
    r = s.bits(*exponents.shape)
    value: Array = (r >> np.uint64(63)) << np.uint64(e + m) | field << np.uint64(m) | r & np.uint64((1 << m) - 1)
    return value << np.uint64(13) if fmt == "tf32" else value


def normal(s: Stream, fmt: str, *shape: int, scale: int = 0) -> Array:
    """About as a normal distribution has them: every smaller exponent half as often."""
    r = s.below(1 << 20, *shape)
    fall = np.full(shape, 20, np.int64)
    for k in reversed(range(20)):
        fall[(r >> np.uint64(k) & np.uint64(1)) != 0] = k
    return number(s, fmt, scale - fall)


def wide(s: Stream, fmt: str, low: int, high: int, *shape: int) -> Array:
    return number(s, fmt, s.below(high - low + 1, *shape).astype(np.int64) + low)


REACH = {"f16": 12, "bf16": 30, "tf32": 30, "e4m3": 6, "e5m2": 13, "f32": 40, "f64": 40}


def sign_bit(fmt: str) -> np.uint64:
    e, m = FORMATS[fmt]
    return np.uint64(1 << (31 if fmt == "tf32" else e + m))


def inputs(form: Form, category: str, count: int) -> tuple[Array, Array, Array, Array]:
    """Bit patterns of A (stored elements), B, C ``[instance][row][column]`` and metadata ``[instance][lane]``."""
    s = Stream(f"{form} {category}")
    ka = form.k // 2 if form.selector is not None else form.k
    sa, sb, sc = (count, form.m, ka), (count, form.k, form.n), (count, form.m, form.n)
    meta = metadata(s, form, count)
    if form.integer or category == "bits":
        a, b, c = (s.bits(*shape) for shape in (sa, sb, sc))
        cut = [np.uint64((1 << BITS[t]) - 1) for t in (form.a, form.b, form.c)]
        a, b, c = a & cut[0], b & cut[1], c & cut[2]
        if form.integer and category == "normal":
            c = (c & np.uint64(0xFFFF)) - np.uint64(0x8000) & np.uint64(0xFFFFFFFF)
        return a, b, c, meta
    a, b, c = normal(s, form.a, *sa), normal(s, form.b, *sb), normal(s, form.c, *sc, scale=1)
    ra, rb, rc = REACH[form.a], REACH[form.b], REACH[form.c]
    if category == "wide":
        a, b, c = wide(s, form.a, -ra, ra, *sa), wide(s, form.b, -rb, rb, *sb), wide(s, form.c, -rc, rc, *sc)
        c[: count // 4] = 0
    elif category == "cancel":
        a[:, :, 1::2] = a[:, :, 0::2]
        b[:, 1::2] = b[:, 0::2] ^ sign_bit(form.b)
        tweak = s.below(8, *sb) == 0
        b = np.where(tweak, b ^ np.uint64(1 << 13 if form.b == "tf32" else 1), b)
        c = wide(s, form.c, -rc // 2, 2, *sc)
        c[::3] = 0
    elif category == "tiny":
        ea, eb = FORMATS[form.a][0], FORMATS[form.b][0]
        low_a, low_b = -(1 << (ea - 1)) + 2, -(1 << (eb - 1)) + 2
        a, b = wide(s, form.a, low_a, low_a + 6, *sa), wide(s, form.b, low_b, low_b + 6, *sb)
        a, b = denormal(s, form.a, a), denormal(s, form.b, b)
        half = count // 2
        b[half:] = normal(s, form.b, count - half, *sb[1:])
        ec = FORMATS[form.c][0]
        c = denormal(s, form.c, wide(s, form.c, -(1 << (ec - 1)) + 2, -(1 << (ec - 1)) + 30, *sc))
        c[::2] = 0
    elif category == "special":
        for v, fmt, shape in ((a, form.a, sa), (b, form.b, sb), (c, form.c, sc)):
            some = s.below(form.k * 3, *shape) == 0
            v[some] = specials(s, fmt, *shape)[some]
    elif category == "huge":
        ea, eb, ec = (1 << (FORMATS[t][0] - 1) for t in (form.a, form.b, form.c))
        a, b = wide(s, form.a, ea - 6, ea, *sa), wide(s, form.b, eb - 6, eb, *sb)
        b[count // 2 :] = wide(s, form.b, -4, 2, count - count // 2, *sb[1:])
        c = wide(s, form.c, ec - 4, ec, *sc)
    elif category == "probe":
        a, b, c = wide(s, form.a, -ra, ra, *sa), wide(s, form.b, -rb, rb, *sb), wide(s, form.c, -rc // 2, rc // 2, *sc)
        keep = s.below(form.k, count, 1, ka) < 3
        a = np.where(keep, a, np.uint64(0))
        c[::4] = 0
    elif category == "zero":
        a[: count // 2] = 0
        c = s.bits(*sc) & np.uint64((1 << BITS[form.c]) - 1)
        c[::4] &= sign_bit(form.c)
    return a, b, c, meta


def denormal(s: Stream, fmt: str, v: Array) -> Array:
    """Half of the values with the exponent field cleared."""
    e, m = FORMATS[fmt]
    mask = np.uint64(((1 << e) - 1) << (23 if fmt == "tf32" else m))
    return np.where(s.below(2, *v.shape) == 0, v & ~mask, v)


def specials(s: Stream, fmt: str, *shape: int) -> Array:
    """Infinities, NaN, zeros, the largest number."""
    e, m = FORMATS[fmt]
    top = ((1 << e) - 1) << m
    if fmt == "e4m3":
        values = [top | 7, top | 7, 0, top | 6]
    else:
        values = [top, top, top | 1 << (m - 1), top | 1, 0, top - 1]
    table = np.array(values, np.uint64)
    r = s.below(2 * len(values), *shape)
    v = table[(r >> np.uint64(1)).astype(np.int64)] | (r & np.uint64(1)) << np.uint64(e + m)
    return v << np.uint64(13) if fmt == "tf32" else v


def metadata(s: Stream, form: Form, count: int) -> Array:
    """Random valid metadata for every lane."""
    if form.selector is None:
        return np.zeros((count, 32), np.uint32)
    if form.a == "tf32":  # 1:2: a nibble says which half: 0b1110 the upper, 0b0100 the lower
        nibbles = np.array([0b0100, 0b1110], np.uint64)
    else:
        nibbles = np.array([lo | hi << 2 for lo in range(4) for hi in range(lo + 1, 4)], np.uint64)
    pick = nibbles[s.below(len(nibbles), count, 32, 8).astype(np.int64)]
    words: Array = (pick << (np.arange(8, dtype=np.uint64) * np.uint64(4))).sum(-1, dtype=np.uint64)
    return words.astype(np.uint32)


def operands(form: Form, category: str, count: int) -> list[Array]:
    """Registers of A, B, C ``[instance][register][lane]`` and the metadata: what the kernel takes."""
    a, b, c, meta = inputs(form, category, count)
    if form.opcode.startswith("wmma") or ("m8n8k4" in form.opcode and form.a == "f16"):
        return [*raw_operands(form, category, count), meta]
    if form.warps > 1:
        wb = np.ascontiguousarray(np.swapaxes(b, 1, 2)).astype(
            {8: np.uint8, 16: np.uint16, 32: np.uint32}[BITS[form.b]]
        )
        tile = wb.view(np.uint32).reshape(count, 8, 2, 4).swapaxes(1, 2)
        return [
            pack(a, places(form, "a"), form.a),
            np.ascontiguousarray(tile).reshape(count, 64),
            pack(c, places(form, "c"), form.c),
            meta,
        ]
    return [*(pack(v, places(form, x), t) for v, x, t in ((a, "a", form.a), (b, "b", form.b), (c, "c", form.c))), meta]


def raw_operands(form: Form, category: str, count: int) -> list[Array]:
    """Registers filled with elements of a category, whatever place in the matrix they have."""
    a, b, c, _ = inputs(form, category, count)
    out = []
    for v, element, regs in ((a, form.a, form.a_regs), (b, form.b, form.b_regs), (c, form.c, form.c_regs)):
        per = elements(element)
        need = regs * 32 * per
        flat = np.tile(v.reshape(count, -1), (1, -(-need // (v.shape[1] * v.shape[2]))))[:, :need]
        where = np.arange(need).reshape(regs, 32, per)
        out.append(pack(flat[:, None, :], np.stack([np.zeros_like(where), where], -1), element))
    return out


def result_array(form: Form, count: int) -> Array:
    return np.zeros((count, form.d_regs, form.lanes), np.uint64 if form.d == "f64" else np.uint32)


def checksum(arrays: list[Array]) -> int:
    crc = 0
    for v in arrays:
        crc = zlib.crc32(np.ascontiguousarray(v).tobytes(), crc)
    return crc


# ---- recorded answers --------------------------------------------------------------------------------------
def save_answers(path: Path, answers: dict[str, tuple[Array, int]]) -> None:
    """Results of kernels, each with the checksum of its inputs, as few arrays: names and headers would be most of it."""
    data = [np.ascontiguousarray(d).view(np.uint8).reshape(-1) for d, _ in answers.values()]
    np.savez_compressed(
        path,
        names=np.array(list(answers)),
        checksums=np.array([crc for _, crc in answers.values()], np.uint32),
        ends=np.cumsum([len(d) for d in data]),
        data=np.concatenate(data),
    )


def load_answers(path: Path) -> dict[str, tuple[Array, int]]:
    """What ``save_answers`` wrote: results as bytes, and checksums."""
    with np.load(path) as file:
        names, checksums, ends, data = (file[k] for k in ("names", "checksums", "ends", "data"))
    starts = [0, *ends[:-1].tolist()]
    return {
        str(name): (data[start:end], int(crc))
        for name, start, end, crc in zip(names, starts, ends.tolist(), checksums, strict=True)
    }
