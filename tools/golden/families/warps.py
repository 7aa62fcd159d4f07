"""Instructions in which lanes see each other: shfl, vote, match, redux, elect, barriers with a reduction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..forms import Form, form

#: Lanes that the mask does not name stay away, by guard; their results are what was there before.
MEMBER = "mov.u32 t, %laneid; shr.u32 t, $c, t; and.b32 t, t, 1; setp.ne.b32 q, t, 0;"


def cleared(outs: str) -> str:
    return " ".join(f"mov.{o} $d{k or ''}, 0;" for k, o in enumerate(outs.split()))


def guarded(text: str, ins: str, outs: str, mask: str = "$c") -> Form:
    """Lanes of the mask run ``text`` under the predicate q."""
    clear = cleared(outs)
    return form(f"{{.reg .pred q; .reg .b32 t; {MEMBER.replace('$c', mask)} {clear} @q {text}}}", ins, outs)


def branched(text: str, ins: str, outs: str, mask: str = "$c") -> Form:
    """Lanes that the mask does not name jump over ``text``."""
    clear = cleared(outs)
    return form(
        f"{{.reg .pred q; .reg .b32 t; {MEMBER.replace('$c', mask)} {clear} @!q bra $l; {text} $l: }}", ins, outs
    )


def warps() -> Iterator[Form]:
    for mode in ("idx", "up", "down", "bfly"):
        yield form(f"shfl.sync.{mode}.b32 $d|$d1, $a, $b, $c, -1;", "word lane segment", "b32 pred")
        yield form(f"shfl.sync.{mode}.b32 $d|$d1, $a, $b, $c, -1;", "word amount segment", "b32 pred")
        yield form(f"shfl.sync.{mode}.b32 $d, $a, 3, {0 if mode == 'up' else 31}, -1;", "word", "b32")
        yield form(f"shfl.sync.{mode}.b32 $d|$d1, $a, 5, {0x1800 if mode == 'up' else 0x181F}, -1;", "word", "b32 pred")
    # the leader's value to all lanes of a mask
    yield form(
        f"{{.reg .pred q; .reg .b32 t, s; {MEMBER} mov.b32 $d, 7; brev.b32 s, $c; clz.b32 s, s; @q shfl.sync.idx.b32 $d, $a, s, 31, $c;}}",
        "word word mask",
        "b32",
    )
    for mode, out in (("all.pred", "pred"), ("any.pred", "pred"), ("uni.pred", "pred"), ("ballot.b32", "b32")):
        yield form(f"vote.sync.{mode} $d, $a, -1;", "pred", out)
        yield form(f"vote.sync.{mode} $d, !$a, -1;", "pred", out)
        rare = "{.reg .pred r; setp.lt.u32 r, $a, $b; vote.sync.MODE $d, r, -1;}".replace("MODE", mode)
        yield form(rare, "few32 word", out)
        yield guarded(f"vote.sync.{mode} $d, $a, $c;", "pred word mask", out)
        yield branched(f"vote.sync.{mode} $d, $a, $c;", "pred word mask", out)
    for n in (32, 64):
        yield form(f"match.any.sync.b{n} $d, $a, -1;", f"few{n}", "b32")
        yield form(f"match.all.sync.b{n} $d|$d1, $a, -1;", f"few{n}", "b32 pred")
        yield guarded(f"match.any.sync.b{n} $d, $a, $c;", f"few{n} word mask", "b32")
        yield guarded(f"match.all.sync.b{n} $d|$d1, $a, $c;", f"few{n} word mask", "b32 pred")
    for op, t in (*product(("add", "min", "max"), ("u32", "s32")), *product(("and", "or", "xor"), ("b32",))):
        yield form(f"redux.sync.{op}.{t} $d, $a, -1;", "u32", "b32")
        yield guarded(f"redux.sync.{op}.{t} $d, $a, $c;", "u32 word mask", "b32")
    yield form("elect.sync $d|$d1, -1;", "word", "b32 pred")
    yield guarded("elect.sync $d|$d1, $c;", "word word mask", "b32 pred")
    for op, out in (("popc.u32", "u32"), ("and.pred", "pred"), ("or.pred", "pred")):
        yield form(f"barrier.sync 0; barrier.red.{op} $d, 0, $a;", "pred", out)
        yield form(f"{{.reg .pred r; setp.lt.u32 r, $a, $b; barrier.red.{op} $d, 1, 128, !r;}}", "few32 word", out)
    for register in (
        "laneid",
        "lanemask_eq",
        "lanemask_lt",
        "lanemask_le",
        "lanemask_gt",
        "lanemask_ge",
        "tid.x",
        "ntid.x",
        "ctaid.x",
        "nctaid.x",
        "tid.y",
        "ntid.z",
    ):
        yield form(f"mov.u32 $d, %{register};", "", "u32")
