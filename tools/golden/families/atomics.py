"""atom and red of every type on global, shared and generic addresses: each thread on memory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Form, form, reg

OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "inc": ("u32",), "dec": ("u32",), "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "exch": ("b32", "b64"),
}  # fmt: skip
FLOATS = {
    "add": "f32",
    "add.f64": "f64",
    "add.noftz": "f16",
    "add.noftz.f16x2": "f16x2",
    "add.noftz.bf16": "bf16",
    "add.noftz.bf16x2": "bf16x2",
}
FLOATING = (
    ("add", "f32"),
    ("add", "f64"),
    ("add.noftz", "f16"),
    ("add.noftz", "f16x2"),
    ("add.noftz", "bf16"),
    ("add.noftz", "bf16x2"),
)

#: Space of the instruction -> space of the plain accesses, address.
SPACES = {
    "global": ("global", "$m"),
    "shared": ("shared", "$s"),
    "generic.global": ("global", "g"),
    "generic.shared": ("shared", "g"),
}


def around(space: str, t: str, middle: str, ins: str, outs: str) -> Form:
    """Store $a, run the instruction on ``@``, load what is in memory then."""
    plain, address = SPACES[space]
    size = reg(t)[1:]
    own = "$m" if plain == "global" else "$s"
    head = ""
    if address == "g":
        head = ".reg .b64 g, h; " + (
            "mov.b64 g, $m;" if plain == "global" else "cvt.u64.u32 h, $s; cvta.shared.u64 g, h;"
        )
    last = "$d1" if len(outs.split()) > 1 else "$d"
    body = f"st.volatile.{plain}.b{size} [{own}], $a; {middle.replace('@', address)} ld.volatile.{plain}.b{size} {last}, [{own}];"
    return form(f"{{{head} {body}}}", ins, outs)


def register(t: str) -> str:
    return t if t in ("f32", "f64") else reg(t)


def atomics() -> Iterator[Form]:
    for space in SPACES:
        dot = "" if space.startswith("generic") else f".{space}"
        for op, types in OPERATIONS.items():
            for t in types:
                yield around(space, t, f"atom{dot}.{op}.{t} $d, [@], $b;", f"{t} {t}", f"{t} {t}")
                if op != "exch":
                    yield around(space, t, f"red{dot}.{op}.{t} [@], $b;", f"{t} {t}", t)
        for op, t in FLOATING:
            r = register(t)
            yield around(space, t, f"atom{dot}.{op}.{t} $d, [@], $b;", f"{t} {t}", f"{r} {r}")
            yield around(space, t, f"red{dot}.{op}.{t} [@], $b;", f"{t} {t}", r)
        for t in ("b16", "b32", "b64"):
            yield around(space, t, f"atom{dot}.cas.{t} $d, [@], $b, $c;", f"{t} {t} {t}", f"{t} {t}")
            # a comparison that succeeds
            yield around(space, t, f"atom{dot}.cas.{t} $d, [@], $a, $b;", f"{t} {t}", f"{t} {t}")
    for sem, scope in product(("relaxed", "acquire", "release", "acq_rel"), ("cta", "gpu", "sys")):
        yield around("global", "u32", f"atom.{sem}.{scope}.global.add.u32 $d, [@], $b;", "u32 u32", "u32 u32")
    for space, own in (("global", "$m"), ("shared", "$s")):
        yield form(
            f"{{.reg .b128 x, y, z; st.volatile.{space}.v2.b64 [{own}], {{$a, $b}}; mov.b128 x, {{$b, $c}}; atom.{space}.exch.b128 y, [{own}], x;"
            f" mov.b128 {{$d, $d1}}, y; ld.volatile.{space}.v2.b64 {{$d2, $d3}}, [{own}];}}",
            "b64 b64 b64",
            "b64 b64 b64 b64",
        )
        for first in ("$a", "$c"):
            yield form(
                f"{{.reg .b128 x, y, z; st.volatile.{space}.v2.b64 [{own}], {{$a, $b}}; mov.b128 x, {{{first}, $b}}; mov.b128 z, {{$c, $c}};"
                f" atom.{space}.cas.b128 y, [{own}], x, z; mov.b128 {{$d, $d1}}, y; ld.volatile.{space}.v2.b64 {{$d2, $d3}}, [{own}];}}",
                "b64 b64 b64",
                "b64 b64 b64 b64",
            )
    yield from vectors()
    yield from shared_by_a_warp()


def vectors() -> Iterator[Form]:
    """Several neighbours at once (global memory, sm_90)."""
    yield form(
        "{st.volatile.global.v2.f32 [$m], {$a, $b}; atom.global.v2.f32.add {$d, $d1}, [$m], {$b, $c}; ld.volatile.global.v2.f32 {$d2, $d3}, [$m];}",
        "f32 f32 f32",
        "f32 f32 f32 f32",
    )
    yield form(
        "{st.volatile.global.v4.f32 [$m], {$a, $b, $c, $a}; red.global.v4.f32.add [$m], {$b, $c, $a, $a}; ld.volatile.global.v4.f32 {$d, $d1, $d2, $d3}, [$m];}",
        "f32 f32 f32",
        "f32 f32 f32 f32",
    )
    for t, op in product(("f16", "bf16"), ("add", "min", "max")):
        yield form(
            f"{{st.volatile.global.v2.b16 [$m], {{$a, $b}}; atom.global.v2.{t}.{op}.noftz {{$d, $d1}}, [$m], {{$b, $c}};"
            " ld.volatile.global.v2.b16 {$d2, $d3}, [$m];}",
            f"{t} {t} {t}",
            "b16 b16 b16 b16",
        )
        yield form(
            f"{{st.volatile.global.v2.b32 [$m], {{$a, $b}}; red.global.v2.{t}x2.{op}.noftz [$m], {{$b, $c}}; ld.volatile.global.v2.b32 {{$d, $d1}}, [$m];}}",
            f"{t}x2 {t}x2 {t}x2",
            "b32 b32",
        )


def shared_by_a_warp() -> Iterator[Form]:
    """All lanes of a warp on one place (16 bytes of its first lane): the final value does not depend on their order."""
    for space, own in (("global", "$m"), ("shared", "$s")):
        n, t = (64, "b64") if space == "global" else (32, "b32")
        first = f".reg .{t} p; .reg .b32 l; mov.u32 l, %laneid; mul.lo.u32 l, l, 16; " + (
            "{.reg .b64 w; cvt.u64.u32 w, l; sub.u64 p, $m, w;}" if n == 64 else "sub.u32 p, $s, l;"
        )
        for op, kind in (
            ("add", "u32"),
            ("min", "s32"),
            ("max", "u32"),
            ("and", "b32"),
            ("or", "b32"),
            ("xor", "b32"),
            ("add", "u64"),
            ("min", "s64"),
        ):
            size = kind[1:]
            yield form(
                f"{{{first} st.volatile.{space}.b{size} [{own}], $a; bar.warp.sync -1; red.{space}.{op}.{kind} [p], $b; bar.warp.sync -1;"
                f" ld.volatile.{space}.b{size} $d, [p]; bar.warp.sync -1;}}",
                f"{kind} {kind}",
                kind,
            )
