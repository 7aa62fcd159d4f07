"""Loads and stores that extend, cut or come in vectors; moves that pack and unpack."""

from __future__ import annotations

from collections.abc import Iterator

from ..forms import Form, form


def memory() -> Iterator[Form]:
    for space, own in (("global", "$m"), ("shared", "$s")):
        for t in ("u8", "s8", "b8", "u16", "s16", "u32", "s32"):
            for out in ("b32", "b64") if t[1:] != "32" else ("b64",):
                yield form(f"st.volatile.{space}.b64 [{own}], $a; ld.{space}.{t} $d, [{own}];", "b64", out)
        for n in (8, 16, 32):
            yield form(
                f"st.volatile.{space}.b64 [{own}], $b; st.{space}.b{n} [{own}+{n // 8}], $a; ld.volatile.{space}.b64 $d, [{own}];",
                "b64 b64",
                "b64",
            )
        yield form(
            f"st.{space}.v4.b16 [{own}], {{$c, $a, $b, $a}}; ld.volatile.{space}.b64 $d, [{own}];", "b16 b16 b16", "b64"
        )
        yield form(
            f"st.{space}.v2.b64 [{own}], {{$a, $b}}; ld.{space}.v4.b32 {{$d, $d1, $d2, $d3}}, [{own}];",
            "b64 b64",
            "b32 b32 b32 b32",
        )
        yield form(
            f"st.{space}.v2.b64 [{own}], {{$a, $b}}; ld.{space}.v4.s8 {{$d, $d1, $d2, $d3}}, [{own}+4];",
            "b64 b64",
            "b32 b32 b32 b32",
        )
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64", "pred"):
        yield form(f"mov.{t} $d, $a;", t, t)
    yield form("mov.b32 $d, {$a, $b};", "b16 b16", "b32")
    yield form("mov.b64 $d, {$a, $b};", "b32 b32", "b64")
    yield form("mov.b64 $d, {$a, $b, $c, $e};", "b16 b16 b16 b16", "b64")
    yield form("mov.b32 {$d, $d1}, $a;", "b32", "b16 b16")
    yield form("mov.b64 {$d, $d1}, $a;", "f64", "b32 f32")
    yield form("mov.b64 {$d, $d1, $d2, $d3}, $a;", "b64", "b16 b16 b16 b16")
    yield form("{.reg .b8 p, q; mov.b16 {p, q}, $a; mov.b16 $d, {q, p};}", "b16", "b16")
    yield form("{.reg .b8 p, q, r, s; mov.b32 {p, q, r, s}, $a; mov.b32 $d, {s, r, q, p};}", "b32", "b32")
    yield form("{.reg .b128 q; mov.b128 q, {$a, $b}; mov.b128 {$d1, $d}, q;}", "b64 b64", "b64 b64")
    yield form(
        "{.reg .b64 g; .reg .b64 h; cvt.u64.u32 h, $s; cvta.shared.u64 g, h; st.volatile.b32 [g], $a; ld.volatile.shared.b32 $d, [$s];}",
        "b32",
        "b32",
    )
    yield form(
        "{.reg .b64 g, h; cvt.u64.u32 h, $s; cvta.shared.u64 g, h; isspacep.shared $d, g; isspacep.global $d1, g; isspacep.global $d2, $m;}",
        "b32",
        "pred pred pred",
    )
