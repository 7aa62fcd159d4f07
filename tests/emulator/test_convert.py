"""cvt and cvt.pack against exact arithmetic and ml_dtypes; all inputs where the source has 16 bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import ieee
import ml_dtypes
import numpy as np
import pytest
from floats import Array, LaneForms, check_lanes, spread, through
from harness import Form, Forms, check, operand_sets, signed
from ieee import BF16, F16, F32, FORMATS, MODES, Format

Oracle = Callable[..., int]
INTEGERS = [f"{k}{n}" for n in (8, 16, 32, 64) for k in "su"]
INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def register(ty: str) -> str:
    """8-bit values live in 16-bit registers: an operand's upper byte does not count, a result is extended."""
    return {"s8": "s16", "u8": "u16"}.get(ty, ty)


def one(name: str, of: str, to: str) -> Form:
    return Form(f"{name} $d, $a;", (register(of),), (register(to),))


def width(ty: str) -> int:
    return int(ty[1:])


def number(u: int, ty: str) -> int:
    """The integer in the low bits of a pattern."""
    u &= (1 << width(ty)) - 1
    return signed(u, width(ty)) if ty[0] == "s" else u


def limits(ty: str) -> tuple[int, int]:
    n = width(ty)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if ty[0] == "s" else (0, (1 << n) - 1)


def clamp(v: int, ty: str) -> int:
    return min(max(v, limits(ty)[0]), limits(ty)[1])


# ---- integers ----------------------------------------------------------------------------------------
WHOLE: dict[Form, Oracle] = {}
for to, of, sat in product(INTEGERS, INTEGERS, (False, True)):
    if sat and limits(to)[0] <= limits(of)[0] and limits(of)[1] <= limits(to)[1]:
        continue  # nothing to saturate: ptxas refuses it
    WHOLE[one(f"cvt{'.sat' * sat}.{to}.{of}", of, to)] = lambda u, to=to, of=of, sat=sat: (
        clamp(number(u, of), to) if sat else number(number(u, of), to)
    )
# into a register that is wider than the type: extended by the type's sign
WHOLE[one("cvt.s8.s32", "s32", "s32")] = lambda u: signed(u & 0xFF, 8)
WHOLE[one("cvt.u8.s32", "s32", "u64")] = lambda u: u & 0xFF
WHOLE[one("cvt.s16.u64", "u64", "s64")] = lambda u: signed(u & 0xFFFF, 16)
WHOLE[one("cvt.s64.s8", "s32", "s64")] = lambda u: signed(u & 0xFF, 8)


def packed(a: int, b: int, c: int, kind: str) -> int:
    n = width(kind)
    a, b = (clamp(signed(v, 32), kind) & ((1 << n) - 1) for v in (a, b))
    return a << n | b | (c << 2 * n if n < 16 else 0)


for kind in ("s16", "u16", "s8", "u8", "s4", "u4", "s2", "u2"):
    small = width(kind) < 16
    text = f"cvt.pack.sat.{kind}.s32{'.b32' * small} $d, $a, $b{', $c' * small};"
    WHOLE[Form(text, ("s32", "s32", "b32")[: 2 + small], ("b32",))] = lambda a, b, c=0, kind=kind: packed(a, b, c, kind)

# ---- between integers and floating point -----------------------------------------------------------------
CROSS: dict[Form, Oracle] = {}
for to, of, mode in product(INTEGERS, FORMATS, INTEGRAL):

    def to_integer(u: int, to: str = to, of: str = of, mode: str = mode) -> int:
        t = FORMATS[of]
        if ieee.is_nan(u, t):
            return number(1 << (width(to) - 1), to) if of == "f64" or width(to) == 64 else 0
        if ieee.is_infinite(u, t):
            return limits(to)[not u & t.sign]
        return clamp(ieee.integer(ieee.value(u, t), INTEGRAL[mode]), to)

    CROSS[one(f"cvt.{mode}.{to}.{of}", of, to)] = to_integer
    if of == "f32" and mode in ("rni", "rpi"):
        CROSS[one(f"cvt.{mode}.ftz.sat.{to}.f32", of, to)] = lambda u, to_integer=to_integer: to_integer(
            ieee.flush(u, F32)
        )
for to, of, mode in product(FORMATS, INTEGERS, MODES):

    def from_integer(u: int, to: str = to, of: str = of, mode: str = mode) -> int:
        return ieee.encode(Fraction(number(u, of)), FORMATS[to], mode)

    CROSS[one(f"cvt.{mode}.{to}.{of}", of, to)] = from_integer
    if mode == "rn" and to != "bf16":
        CROSS[one(f"cvt.rn.sat.{to}.{of}", of, to)] = lambda u, from_integer=from_integer, to=to: ieee.saturate(
            from_integer(u), FORMATS[to]
        )


# ---- floating point -----------------------------------------------------------------------------------------
def nan_of(u: int, of: str, to: str, modified: bool) -> int:
    """What becomes of a NaN: mostly the NaN of the target."""
    source, target = FORMATS[of], FORMATS[to]
    if of == "f64" and to != "f64":  # sign and upper bits of the payload stay, and it is quiet
        sign = target.sign if u & source.sign else 0
        quiet = 1 << (target.mantissa - 1)
        return sign | target.infinity | quiet | u >> (52 - target.mantissa) & ((1 << target.mantissa) - 1)
    if not modified and (of, to) == ("bf16", "f32"):
        return u << 16
    return u if not modified and of == to and to in ("f32", "f64") else target.nan


FLOATING: dict[Form, Oracle] = {}
for to, of in product(FORMATS, FORMATS):
    exact = FORMATS[to].mantissa >= FORMATS[of].mantissa and FORMATS[to].exponent >= FORMATS[of].exponent
    for mode, ftz, sat in product(("",) if exact else MODES, (False, True), (False, True)):
        if (ftz and "f32" not in (to, of)) or (sat and "bf16" in (to, of)):
            continue

        def between(
            u: int, to: str = to, of: str = of, mode: str = mode or "rn", ftz: bool = ftz, sat: bool = sat
        ) -> int:
            source, target = FORMATS[of], FORMATS[to]
            u = ieee.flush(u, source) if ftz and of == "f32" and to != "f16" else u
            r = ieee.convert(u, source, target, mode)
            if ieee.is_nan(u, source):
                r = nan_of(u, of, to, ftz or sat)
            elif ftz and to == "f32":
                r = ieee.flush_result(
                    lambda x, t, mode: ieee.convert(x, source, t, mode), (u,), r, target, mode, source
                )
            return ieee.saturate(r, target) if sat else r

        FLOATING[one(f"cvt{'.' * bool(mode)}{mode}{'.ftz' * ftz}{'.sat' * sat}.{to}.{of}", of, to)] = between
for to, of in (("f16", "bf16"), ("bf16", "f16")):  # ptxas takes these without a rounding mode
    FLOATING[one(f"cvt.{to}.{of}", of, to)] = lambda u, to=to, of=of: ieee.convert(u, FORMATS[of], FORMATS[to])
for ty, mode in product(FORMATS, INTEGRAL):

    def integral(u: int, ty: str = ty, mode: str = mode) -> int:
        t = FORMATS[ty]
        if ieee.is_nan(u, t) or ieee.is_infinite(u, t):
            return t.nan if ieee.is_nan(u, t) else u
        return (
            ieee.encode(Fraction(ieee.integer(ieee.value(u, t), INTEGRAL[mode])), t, "rn", bool(u & t.sign))
            | u & t.sign
        )

    FLOATING[one(f"cvt.{mode}.{ty}.{ty}", ty, ty)] = integral
    if ty == "f32":
        FLOATING[one(f"cvt.{mode}.ftz.sat.f32.f32", ty, ty)] = lambda u, integral=integral: ieee.saturate(
            integral(ieee.flush(u, F32)), F32
        )


def limited(u: int, t: Format, mode: str, relu: bool, finite: bool) -> int:
    """f32 to a 16-bit type with .relu and .satfinite."""
    r = ieee.convert(u, F32, t, mode)
    if finite and ieee.is_infinite(r, t):
        r -= 1
    return ieee.relu(r, t) if relu else r


for (ty, t), mode, relu, finite in product((("f16", F16), ("bf16", BF16)), ("rn", "rz"), (False, True), (False, True)):
    name = f"cvt.{mode}{'.relu' * relu}{'.satfinite' * finite}.{ty}"
    FLOATING[one(f"{name}.f32", "f32", ty)] = lambda u, t=t, mode=mode, relu=relu, finite=finite: limited(
        u, t, mode, relu, finite
    )
    FLOATING[Form(f"{name}x2.f32 $d, $a, $b;", ("f32", "f32"), (f"{ty}x2",))] = (
        lambda a, b, t=t, mode=mode, relu=relu, finite=finite: (
            limited(a, t, mode, relu, finite) << 16 | limited(b, t, mode, relu, finite)
        )
    )
TF32 = Format(8, 10, 0x7FFFFFFF >> 13)


def nan_of_tf32(u: int, mode: str, finite: bool) -> int:
    """.rna cuts it like a number, and takes the next lower pattern if the result has to be finite."""
    return (u & ~0x1FFF) - 0x2000 * finite if mode == "rna" else F32.nan & ~0x1FFF


for mode, relu, finite in product(("rn", "rz", "rna"), (False, True), (False, True)):
    if mode != "rna" or not relu:
        FLOATING[one(f"cvt.{mode}{'.relu' * relu}{'.satfinite' * finite}.tf32.f32", "f32", "b32")] = (
            lambda u, mode=mode, relu=relu, finite=finite: (
                nan_of_tf32(u, mode, finite) if ieee.is_nan(u, F32) else limited(u, TF32, mode, relu, finite) << 13
            )
        )

# ---- 8, 6 and 4 bits --------------------------------------------------------------------------------------
SMALL = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 8), "e5m2": (ml_dtypes.float8_e5m2, 8), "e2m3": (ml_dtypes.float6_e2m3fn, 8),
    "e3m2": (ml_dtypes.float6_e3m2fn, 8), "e2m1": (ml_dtypes.float4_e2m1fn, 4),
}  # fmt: skip


def small_form(name: str, mods: str, to: bool, of: str = "f32") -> Form:
    """To or from a pair of small numbers; the 8 bits of an e2m1 pair need a register of their own."""
    kind = f"{name}x2"
    text = f"cvt.{mods}.{kind}.{of}" if to else f"cvt.{mods}.f16x2.{kind}"
    sources = "$a, $b" if to and of == "f32" else "$a"
    ins, out = (("f32", "f32") if of == "f32" else (of,), "b16") if to else (("b16",), "f16x2")
    if SMALL[name][1] == 8:
        return Form(f"{text} $d, {sources};", ins, (out,))
    if to:
        return Form(f"{{.reg .b8 %t; {text} %t, {sources}; cvt.u16.u8 $d, %t;}}", ins, (out,))
    return Form(f"{{.reg .b8 %t; cvt.u8.u16 %t, $a; {text} $d, %t;}}", ins, (out,))


TO_SMALL: dict[tuple[str, bool, str], Form] = {}
FROM_SMALL: dict[tuple[str, bool], Form] = {}
SCALES: dict[tuple[str, str, str], Form] = {}
for name, relu in product(SMALL, (False, True)):
    for of in ("f32", "f16x2") if name in ("e4m3", "e5m2", "e2m1") else ("f32",):
        TO_SMALL[name, relu, of] = small_form(name, f"rn.satfinite{'.relu' * relu}", True, of)
    FROM_SMALL[name, relu] = small_form(name, f"rn{'.relu' * relu}", False)
for mode, sat in product(("rz", "rp"), ("", ".satfinite")):
    text = f"cvt.{mode}{sat}.ue8m0x2.f32 $d, $a, $b;"
    SCALES["f32", mode, sat] = Form(text, ("f32", "f32"), ("b16",))
    SCALES["bf16x2", mode, sat] = one(f"cvt.{mode}{sat}.ue8m0x2.bf16x2", "bf16x2", "b16")
FROM_SCALE = one("cvt.rn.bf16x2.ue8m0x2", "b16", "bf16x2")
#: Forms of one rounding mode run under guards and on shared operands too, the others on lanes only.
MODES_IN_FULL = ("rn.", "rn.relu", "rzi.", "sat.", "pack.")
FULL = Forms([f for f in (*WHOLE, *CROSS, *FLOATING) if f.text.startswith(tuple(f"cvt.{m}" for m in MODES_IN_FULL))])
ALL = LaneForms(
    [*WHOLE, *CROSS, *FLOATING, *TO_SMALL.values(), *FROM_SMALL.values(), *SCALES.values(), FROM_SCALE],
)


def checked(which: Form, oracle: Oracle, rows: list[tuple[int, ...]]) -> None:
    if which in FULL.names:
        check(FULL, which, oracle, rows, shares=2)
    else:
        check_lanes(ALL, which, oracle, rows)


@pytest.mark.parametrize("which", WHOLE, ids=str)
def test_integers(which: Form) -> None:
    checked(which, WHOLE[which], list(operand_sets(which.ins)))


def middles(t: Format) -> list[int]:
    """Patterns halfway between two numbers of each narrower format, and right beside."""
    rng = random.Random(6)
    out = []
    for narrower in FORMATS.values():
        for _ in range(40 if narrower.mantissa < t.mantissa else 0):
            u = rng.randrange(narrower.infinity - 1)
            middle = ieee.encode((ieee.value(u, narrower) + ieee.value(u + 1, narrower)) / 2, t)
            out += [(middle + beside) | s for beside in (-1, 0, 1) for s in (0, t.sign)]
    return [u for u in out if u >= 0]


LIMITS = [Fraction(2) ** n for n in (0, 1, 7, 8, 15, 16, 31, 32, 63, 64)]
BESIDE = [Fraction(n, 2) for n in (0, 1, -1, 2, -2, 3)]


def rows_of(which: Form) -> list[tuple[int, ...]]:
    """Random operands and, for a floating-point source, numbers around the limits of the integer types and halves."""
    rows = list(operand_sets(which.ins, 512))
    if which.ins[0] in FORMATS:
        t = FORMATS[which.ins[0]]
        rows += [(ieee.encode(s * (limit + beside), t),) for limit in LIMITS for beside in BESIDE for s in (1, -1)]
        rows += [(ieee.encode(s * (n + beside), t),) for n in range(8) for beside in BESIDE for s in (1, -1)]
        rows += [(u,) for u in middles(t)]
    elif width(which.ins[0]) == 64 and which.outs[0] in FORMATS:
        rng = random.Random(7)
        kept = FORMATS[which.outs[0]].mantissa + 1
        for _ in range(64):  # one bit more than fits, and numbers right beside
            middle = (1 << kept | rng.getrandbits(kept) | 1) << rng.randrange(63 - kept)
            rows += [(v & 0xFFFF_FFFF_FFFF_FFFF,) for b in (-1, 0, 1) for v in (middle + b, -middle - b)]
    rows += rows[: -len(rows) % 128]
    return rows


@pytest.mark.parametrize("which", CROSS, ids=str)
def test_integers_and_floats(which: Form) -> None:
    checked(which, CROSS[which], rows_of(which))


@pytest.mark.parametrize("which", FLOATING, ids=str)
def test_floats(which: Form) -> None:
    rows = list(operand_sets(which.ins)) if len(which.ins) > 1 else rows_of(which)
    if which.text.startswith("cvt") and ("f64" in which.outs or which.ins == ("f64",)):
        # the NaN of f64 results is not documented
        rows = [r for r in rows if not ("f64" in which.outs and ieee.is_nan(r[0], FORMATS[which.ins[0]]))]
        rows = [*rows, *rows[: -len(rows) % 128]]
    checked(which, FLOATING[which], rows)


EVERY = [f for f in FLOATING if f.text.split()[0] in {f"cvt{m}.{to}.{of}" for of in ("f16", "bf16")
         for m, to in (("", "f32"), (".rn", "f16"), (".rn", "bf16"), (".rz", "bf16"), (".rni", of))}]  # fmt: skip
EVERY += [
    f
    for f in CROSS
    if f.text.split()[0] in ("cvt.rni.s32.f16", "cvt.rzi.u64.f16", "cvt.rmi.s8.f16", "cvt.rpi.u16.bf16")
]


@pytest.mark.parametrize("which", EVERY, ids=str)
def test_every_16_bit_input(which: Form) -> None:
    """Some of the forms, each with all inputs."""
    table = CROSS if which in CROSS else FLOATING
    check_lanes(ALL, which, table[which], [(u,) for u in range(65536)])


def halves(v: Array, n: int) -> Array:
    """Upper then lower numbers of packed results."""
    mask = (1 << n) - 1
    return np.concatenate([v >> n & mask, v & mask])


def small_codes(name: str, x: Array, relu: bool) -> Array:
    """Codes by ml_dtypes, saturated as the PTX ISA says."""
    kind, _ = SMALL[name]
    largest = np.float32(ml_dtypes.finfo(kind).max)
    x = np.where(x <= 0, np.float32(0), x) if relu else x  # -0 becomes +0 as well
    codes = np.clip(x, -largest, largest).astype(np.float32).astype(kind).view(np.uint8)
    top = np.array([largest], np.float32).astype(kind).view(np.uint8)[0]
    return np.where(np.isnan(x), 0x7F if name in ("e4m3", "e5m2") else top, codes)


@pytest.mark.parametrize("key", TO_SMALL, ids=str)
def test_to_small(key: tuple[str, bool, str]) -> None:
    name, relu, of = key
    which = TO_SMALL[key]
    if of == "f32":
        rng = np.random.default_rng(4)
        random = rng.integers(0, 1 << 32, 1 << 15, np.uint32).view(np.float32)
        every = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)  # all middles between codes
        beside = np.nextafter(every, np.float32(np.inf)), np.nextafter(every, np.float32(-np.inf))
        a = np.concatenate(
            [random, every, *beside, spread(-500, 500, 1 << 15), np.float32([np.inf, -np.inf, np.nan, -np.nan])]
        )
        b = np.roll(a, 1234)
        inputs, numbers = [a, b], np.concatenate([a, b])
    else:
        x = np.arange(65536, dtype=np.uint32)
        x = x << 16 | (x * 40503 + 12345 & 0xFFFF)
        inputs, numbers = [x], halves(x, 16).astype(np.uint16).view(np.float16).astype(np.float32)
    got = halves(through(ALL, which, *inputs)[0], SMALL[name][1])
    want = small_codes(name, numbers, relu)
    wrong = np.flatnonzero(got != want)
    assert not len(wrong), (
        f"{which}: {len(wrong)} wrong, first {numbers[wrong[0]]!r}: {got[wrong[0]]:#x}, expected {want[wrong[0]]:#x}"
    )


@pytest.mark.parametrize("key", FROM_SMALL, ids=str)
def test_from_small(key: tuple[str, bool]) -> None:
    name, relu = key
    which, (kind, n) = FROM_SMALL[key], SMALL[name]
    codes = np.arange(65536 if n == 8 else 256, dtype=np.uint16)
    bits = 8 if name in ("e4m3", "e5m2") else 6 if n == 8 else 4
    if bits == 6:
        codes = codes[(codes & 0xC0C0) == 0]  # the two upper bits are zero
    got = halves(through(ALL, which, codes)[0], 16).astype(np.uint16)
    exact = halves(codes, n).astype(np.uint8).view(kind).astype(np.float16)
    want = exact.view(np.uint16)
    if relu:
        want = np.where(exact < 0, 0, want) & ~np.where(want == 0x8000, 0x8000, 0)
    want = np.where(np.isnan(exact), 0x7FFF, want)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("key", SCALES, ids=str)
def test_scales(key: tuple[str, str, str]) -> None:
    """ue8m0: the power of two at or below (rz) or above (rp) the magnitude, from 2^-127 to 2^127."""
    of, mode, sat = key
    if of == "f32":
        x = np.random.default_rng(5).integers(0, 1 << 32, 1 << 14, np.uint32)
        x[:12] = (
            0,
            1,
            0x400000,
            0x400001,
            0x7FFFFF,
            0x800000,
            0x800001,
            0x7F000000,
            0x7F000001,
            0x7F7FFFFF,
            0x7F800000,
            0x7FC00000,
        )
        inputs, numbers = [x.view(np.float32), np.roll(x, 99).view(np.float32)], np.concatenate([x, np.roll(x, 99)])
    else:
        x = np.arange(65536, dtype=np.uint32)
        x = x << 16 | (x * 40503 + 12345 & 0xFFFF)
        inputs, numbers = [x], halves(x, 16) << 16
    got = halves(through(ALL, SCALES[key], *inputs)[0], 8)
    for u, g in zip((numbers & 0x7FFFFFFF).tolist(), got.tolist(), strict=True):
        if u > 0x7F800000:
            want = 255
        elif u == 0x7F800000:
            want = 254 if sat else 255
        else:
            number = ieee.value(u, F32)
            power = ieee.exponent_of(number) if number else -127
            power += mode == "rp" and number > Fraction(2) ** power
            want = min(max(power, -127) + 127, 254 if sat else 255)
        assert g == want, f"{SCALES[key]}: {u:#x} -> {g}, expected {want}"


def test_from_scales() -> None:
    codes = np.arange(65536, dtype=np.uint16)
    got = halves(through(ALL, FROM_SCALE, codes)[0], 16).astype(np.uint16)
    want = halves(codes, 8).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(ml_dtypes.bfloat16)
    assert np.array_equal(got, np.where(np.isnan(want.astype(np.float32)), 0x7FFF, want.view(np.uint16)))


REFUSED = {
    "cvt.f16.f32 $d, $a;": ("f32", "f16"),
    "cvt.s32.f32 $d, $a;": ("f32", "s32"),
    "cvt.f32.s32 $d, $a;": ("s32", "f32"),
    "cvt.rna.f16.f32 $d, $a;": ("f32", "f16"),
    "cvt.rni.f16.f32 $d, $a;": ("f32", "f16"),
    "cvt.rn.e4m3x2.f32 $d, $a, $a;": ("f32", "b16"),
    "cvt.rn.bf16x2.bf16 $d, $a;": ("bf16", "b32"),
    "cvt.rm.tf32.f32 $d, $a;": ("f32", "b32"),
    "cvt.rs.f16x2.f32 $d, $a, $a, 5;": ("f32", "b32"),
    "cvt.pack.sat.u8.s32 $d, $a, $a;": ("s32", "b32"),
    "cvt.rn.relu.s32.f32 $d, $a;": ("f32", "s32"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_unknown_forms_are_refused(text: str) -> None:
    of, to = REFUSED[text]
    bad = Forms([Form(text, (of,), (to,))])
    with pytest.raises(Exception, match=text.split(maxsplit=1)[0].replace(".", r"\.")):
        through(bad, bad.forms[0], np.zeros(128, f"u{FORMATS[of].width // 8}" if of in FORMATS else np.uint32))
