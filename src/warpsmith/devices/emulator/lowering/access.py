"""How the lanes of a warp reach memory: the IR functions behind loads and stores.

Every kind of access (state space, width, vector length) is one internal function, made on first use: it checks the
addresses of the 32 lanes against the range in which this instruction's last access was found good, then takes
the cheapest way that they allow: one vector load for consecutive lanes, one scalar load for a common
address, whole lines and a permutation for lanes that are close together, else a gather.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....ptx.ast import Instruction
from .. import abi
from ..ir import LANES, Val, const
from . import host

if TYPE_CHECKING:
    from .function import FunctionLowering

SPACES = {"generic": 0, "global": 1, "shared": 2, "local": 3, "const": 4, "param": 5}
WINDOWS = {"shared": abi.SHARED_WINDOW, "local": abi.LOCAL_WINDOW, "param": abi.PARAM_WINDOW}
#: Param memory of a kernel: the runtime's buffer has at least this size.
PARAM_MASK = 0x7FFF


def _vector(ty: str) -> str:
    return f"<{LANES} x {ty}>"


def _check(f: FunctionLowering, space: str, kind: int, size: int, aty: str) -> str:
    """IR that verifies ``%a`` ([32] addresses of type aty) for lanes ``%mask``: labels checked after it."""
    if space in ("global", "const"):
        if not f.kernel.check:
            return "  br label %checked\n"
        f.b.declare("ws_check", "declare void @ws_check(ptr, i32, i32, i32, i32, ptr, i32)")
        aligned = f"""  %al = and {_vector(aty)} %a, splat ({aty} {size - 1})
  %alok = icmp eq {_vector(aty)} %al, zeroinitializer
  %ok2 = and <32 x i1> %ok, %alok
""" if size > 1 else "  %ok2 = or <32 x i1> %ok, zeroinitializer\n"  # fmt: skip
        return f"""  %cache.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["cache"][0]}
  %cache = load ptr, ptr %cache.p, align 8
  %site64 = zext i32 %site to i64
  %e = getelementptr {{i64, i64}}, ptr %cache, i64 %site64
  %base = load i64, ptr %e, align 8
  %e2 = getelementptr i8, ptr %e, i64 8
  %limit = load i64, ptr %e2, align 8
  %base.i = insertelement <32 x i64> poison, i64 %base, i64 0
  %base.v = shufflevector <32 x i64> %base.i, <32 x i64> poison, <32 x i32> zeroinitializer
  %limit.i = insertelement <32 x i64> poison, i64 %limit, i64 0
  %limit.v = shufflevector <32 x i64> %limit.i, <32 x i64> poison, <32 x i32> zeroinitializer
  %d = sub <32 x i64> %a, %base.v
  %ok = icmp ult <32 x i64> %d, %limit.v
{aligned}  %okm = bitcast <32 x i1> %ok2 to i32
  %nok = xor i32 %okm, -1
  %bad = and i32 %nok, %mask
  %good = icmp eq i32 %bad, 0
  br i1 %good, label %checked, label %slow, !prof !2
slow:
  %spill = alloca [32 x i64], align 64
  store <32 x i64> %a, ptr %spill, align 64
  call void @ws_check(ptr %w, i32 %site, i32 {SPACES[space]}, i32 {kind}, i32 {size}, ptr %spill, i32 %mask)
  br label %checked
"""
    # shared, local: the size is known, always checked (a wild offset would corrupt this process)
    f.b.declare("ws_check", "declare void @ws_check(ptr, i32, i32, i32, i32, ptr, i32)")
    size_field = abi.WARP_FIELDS["shared_size" if space == "shared" else "local_size"][0]
    al = f"""  %al = and <32 x i32> %a, splat (i32 {size - 1})
  %alok = icmp eq <32 x i32> %al, zeroinitializer
  %ok2 = and <32 x i1> %ok, %alok
""" if size > 1 else "  %ok2 = or <32 x i1> %ok, zeroinitializer\n"  # fmt: skip
    f.b.declare("llvm.usub.sat.i32", "declare i32 @llvm.usub.sat.i32(i32, i32)")
    inside, flights = "checked", ""
    if space == "shared" and f.kernel.copies:
        f.b.declare("ws_in_flight", "declare void @ws_in_flight(ptr, i32, i32, i32, ptr, i32)")
        inside, flights = (
            "inside",
            f"""inside:
  %flights.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["in_flight"][0]}
  %flights = load i32, ptr %flights.p, align 4
  %calm = icmp eq i32 %flights, 0
  br i1 %calm, label %checked, label %busy
busy:
  %offsets = alloca [32 x i32], align 64
  store <32 x i32> %a, ptr %offsets, align 64
  call void @ws_in_flight(ptr %w, i32 %site, i32 {kind}, i32 {size}, ptr %offsets, i32 %mask)
  br label %checked
""",
        )
    return f"""  %size.p = getelementptr i8, ptr %w, i64 {size_field}
  %size = load i32, ptr %size.p, align 4
  %limit = call i32 @llvm.usub.sat.i32(i32 %size, i32 {size - 1})
  %limit.i = insertelement <32 x i32> poison, i32 %limit, i64 0
  %limit.v = shufflevector <32 x i32> %limit.i, <32 x i32> poison, <32 x i32> zeroinitializer
  %ok = icmp ult <32 x i32> %a, %limit.v
{al}  %okm = bitcast <32 x i1> %ok2 to i32
  %nok = xor i32 %okm, -1
  %bad = and i32 %nok, %mask
  %good = icmp eq i32 %bad, 0
  br i1 %good, label %{inside}, label %slow, !prof !2
slow:
  %spill = alloca [32 x i64], align 64
  %a64 = zext <32 x i32> %a to <32 x i64>
  store <32 x i64> %a64, ptr %spill, align 64
  call void @ws_check(ptr %w, i32 %site, i32 {SPACES[space]}, i32 {kind}, i32 {size}, ptr %spill, i32 %mask)
  unreachable
{flights}"""


def _pointers(f: FunctionLowering, space: str) -> str:
    """IR that makes ``%p`` (32 host pointers) and, except for local, ``%b`` (what lane addresses are relative to)."""
    if space in ("global", "const"):
        return f"""  %delta.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["delta"][0]}
  %delta = load i64, ptr %delta.p, align 8
  %b = inttoptr i64 %delta to ptr
  %p = getelementptr i8, ptr %b, <32 x i64> %a
"""
    if space == "shared":
        return f"""  %b.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["shared"][0]}
  %b = load ptr, ptr %b.p, align 8
  %p = getelementptr i8, ptr %b, <32 x i32> %a
"""
    if space == "local":
        lanes = "<" + ", ".join(f"i32 {n}" for n in range(LANES)) + ">"
        return f"""  %b.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["local"][0]}
  %b = load ptr, ptr %b.p, align 8
  %stride.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["local_size"][0]}
  %stride = load i32, ptr %stride.p, align 4
  %stride.i = insertelement <32 x i32> poison, i32 %stride, i64 0
  %stride.v = shufflevector <32 x i32> %stride.i, <32 x i32> poison, <32 x i32> zeroinitializer
  %lane.o = mul <32 x i32> %stride.v, {lanes}
  %off = add <32 x i32> %lane.o, %a
  %p = getelementptr i8, ptr %b, <32 x i32> %off
"""
    return f"""  %b.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["params"][0]}
  %b = load ptr, ptr %b.p, align 8
  %am = and <32 x i32> %a, splat (i32 {PARAM_MASK})
  %p = getelementptr i8, ptr %b, <32 x i32> %am
"""


def _gather(f: FunctionLowering, name: str, ptrs: str, ty: str, k: int, n: int) -> str:
    """IR that sets ``%{name}`` to element k (of n bytes) of what the lanes point to."""
    bits = 8 * n
    out = ""
    if k:
        out += f"  %{name}.q = getelementptr i8, <32 x ptr> {ptrs}, i64 {k * n}\n"
        ptrs = f"%{name}.q"
    if n >= 4:
        f.b.declare(
            f"llvm.masked.gather.v32{ty}.v32p0",
            f"declare {_vector(ty)} @llvm.masked.gather.v32{ty}.v32p0(<32 x ptr>, i32, <32 x i1>, {_vector(ty)})",
        )
        return (
            out
            + f"  %{name} = call {_vector(ty)} @llvm.masked.gather.v32{ty}.v32p0(<32 x ptr> {ptrs}, i32 {n}, <32 x i1> %m, {_vector(ty)} zeroinitializer)\n"
        )
    # Bytes and halves: gather the aligned word around them (never crosses a page), then shift.
    f.b.declare(
        "llvm.masked.gather.v32i32.v32p0",
        "declare <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x i32>)",
    )
    return (
        out
        + f"""  %{name}.i = ptrtoint <32 x ptr> {ptrs} to <32 x i64>
  %{name}.w = and <32 x i64> %{name}.i, splat (i64 -4)
  %{name}.wp = inttoptr <32 x i64> %{name}.w to <32 x ptr>
  %{name}.g = call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> %{name}.wp, i32 4, <32 x i1> %m, <32 x i32> zeroinitializer)
  %{name}.l = trunc <32 x i64> %{name}.i to <32 x i32>
  %{name}.b = and <32 x i32> %{name}.l, splat (i32 3)
  %{name}.s = shl <32 x i32> %{name}.b, splat (i32 3)
  %{name}.h = lshr <32 x i32> %{name}.g, %{name}.s
  %{name} = trunc <32 x i32> %{name}.h to <32 x i{bits}>
"""
    )


def _first_lane(aty: str) -> str:
    return f"""  %lane0 = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %lane = and i32 %lane0, 31
  %a0 = extractelement <32 x {aty}> %a, i32 %lane
  %a0.i = insertelement <32 x {aty}> poison, {aty} %a0, i64 0
  %a0.v = shufflevector <32 x {aty}> %a0.i, <32 x {aty}> poison, <32 x i32> zeroinitializer
"""


#: Lines after which scattered lanes are gathered one by one, by the words (32 bits) that each lane loads.
_MOST_LINES = {1: 4, 2: 6, 4: 8}


def _by_lines(f: FunctionLowering, n: int, v: int, aty: str, give: Callable[[list[str]], str]) -> str:
    """IR for scattered lanes: a few times, load a whole 128-byte line and pick from it all lanes that it serves.

    Tiles, strides and broadcasts touch few lines, and a permutation is several times cheaper than a gather.
    A line never crosses a page, so reading all of it is safe, and an aligned access never crosses a line.  What
    is left after some lines is gathered.  ``give`` writes the return of the ``v`` results (``n`` bytes each).
    """
    b = f.b
    words = max(n * v // 4, 1)
    b.declare(
        "llvm.x86.avx512.vpermi2var.d.512",
        "declare <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(<16 x i32>, <16 x i32>, <16 x i32>)",
    )
    b.declare(
        "llvm.masked.gather.v32i32.v32p0",
        "declare <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x i32>)",
    )
    low = ", ".join(f"i32 {k}" for k in range(16))
    high = ", ".join(f"i32 {k}" for k in range(16, 32))
    both = ", ".join(f"i32 {k}" for k in range(32))
    narrow = "" if aty == "i32" else "  %l.d = trunc <32 x i64> %l.dw to <32 x i32>\n"
    dname = "%l.d" if aty == "i32" else "%l.dw"
    base = "" if aty == "i64" else "  %line = trunc i64 %line.w to i32\n"
    accumulators = "".join(
        f"  %acc{k} = phi <32 x i32> [zeroinitializer, %run.no], [%new{k}, %line.more]\n" for k in range(words)
    )
    picks = "".join(
        f"""  %idx{k} = add <32 x i32> %idx, splat (i32 {k})
  %lo{k} = shufflevector <32 x i32> %idx{k}, <32 x i32> poison, <16 x i32> <{low}>
  %hi{k} = shufflevector <32 x i32> %idx{k}, <32 x i32> poison, <16 x i32> <{high}>
  %pl{k} = call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(<16 x i32> %w0, <16 x i32> %lo{k}, <16 x i32> %w1)
  %ph{k} = call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(<16 x i32> %w0, <16 x i32> %hi{k}, <16 x i32> %w1)
  %picked{k} = shufflevector <16 x i32> %pl{k}, <16 x i32> %ph{k}, <32 x i32> <{both}>
  %new{k} = select <32 x i1> %l.in, <32 x i32> %picked{k}, <32 x i32> %acc{k}
"""
        for k in range(words)
    )
    gathers = "".join(
        f"""  %pp{k} = getelementptr i8, <32 x ptr> %pp, i64 {4 * k}
  %g{k} = call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> %pp{k}, i32 4, <32 x i1> %rm, <32 x i32> %new{k})
"""
        for k in range(words)
    )
    results = "".join(f"  %word{k} = phi <32 x i32> [%new{k}, %line.loop], [%g{k}, %scattered]\n" for k in range(words))
    out = f"""  %as = alloca [32 x {aty}], align 64
  store <32 x {aty}> %a, ptr %as, align 64
  %bi = ptrtoint ptr %b to i64
  %some = icmp ne i32 %mask, 0
  br i1 %some, label %line.loop, label %nothing
nothing:
{give(["zeroinitializer"] * v)}line.loop:
  %left = phi i32 [%mask, %run.no], [%rest, %line.more]
{accumulators}  %k = phi i32 [0, %run.no], [%k1, %line.more]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %ap = getelementptr {aty}, ptr %as, i32 %lane
  %a0 = load {aty}, ptr %ap, align {4 if aty == "i32" else 8}
  %a0.w = {"zext i32 %a0 to i64" if aty == "i32" else "add i64 %a0, 0"}
  %host = add i64 %bi, %a0.w
  %aligned = and i64 %host, -128
  %q0 = inttoptr i64 %aligned to ptr
  %line.w = sub i64 %aligned, %bi
{base}  %line.i = insertelement <32 x {aty}> poison, {aty} {"%line" if aty == "i32" else "%line.w"}, i64 0
  %line.v = shufflevector <32 x {aty}> %line.i, <32 x {aty}> poison, <32 x i32> zeroinitializer
  {dname} = sub <32 x {aty}> %a, %line.v
  %l.in = icmp ult <32 x {aty}> {dname}, splat ({aty} 128)
{narrow}  %idx = lshr <32 x i32> %l.d, splat (i32 2)
  %w0 = load <16 x i32>, ptr %q0, align 64
  %q1 = getelementptr i8, ptr %q0, i64 64
  %w1 = load <16 x i32>, ptr %q1, align 64
{picks}  %l.inm = bitcast <32 x i1> %l.in to i32
  %out = xor i32 %l.inm, -1
  %rest = and i32 %left, %out
  %end = icmp eq i32 %rest, 0
  br i1 %end, label %finish, label %line.more
line.more:
  %k1 = add i32 %k, 1
  %many = icmp eq i32 %k1, {_MOST_LINES[words]}
  br i1 %many, label %scattered, label %line.loop
scattered:
  %rm = bitcast i32 %rest to <32 x i1>
  %pi = ptrtoint <32 x ptr> %p to <32 x i64>
  %pw = and <32 x i64> %pi, splat (i64 -4)
  %pp = inttoptr <32 x i64> %pw to <32 x ptr>
{gathers}  br label %finish
finish:
{results}"""
    if n == 4:
        return out + give([f"%word{k}" for k in range(v)])
    if n == 8:
        for k in range(v):
            out += f"""  %z{k}.l = zext <32 x i32> %word{2 * k} to <32 x i64>
  %z{k}.h = zext <32 x i32> %word{2 * k + 1} to <32 x i64>
  %z{k}.s = shl <32 x i64> %z{k}.h, splat (i64 32)
  %z{k} = or <32 x i64> %z{k}.l, %z{k}.s
"""
        return out + give([f"%z{k}" for k in range(v)])
    # The bytes of a lane within its word: from the host address, as lines and words are aligned there.
    out += f"""  %hp = ptrtoint <32 x ptr> %p to <32 x i64>
  %hl = trunc <32 x i64> %hp to <32 x i32>
  %hb = and <32 x i32> %hl, splat (i32 3)
  %hs = shl <32 x i32> %hb, splat (i32 3)
  %hw = lshr <32 x i32> %word0, %hs
  %hr = trunc <32 x i32> %hw to <32 x i{8 * n}>
"""
    return out + give(["%hr"])


def load_function(f: FunctionLowering, space: str, n: int, v: int) -> str:
    """The IR function that loads ``v`` elements of ``n`` bytes for each lane of a mask."""
    name = f"ld.{space}.{8 * n}x{v}"
    if name in f.kernel.helpers:
        return "@" + name
    ty = f"i{8 * n}"
    aty = "i64" if space in ("generic", "global", "const") else "i32"
    ret = _vector(ty) if v == 1 else "{" + ", ".join([_vector(ty)] * v) + "}"
    head = f"define internal {ret} @{name}(ptr %w, i32 %site, i32 %mask, <32 x {aty}> %a) #0 {{\n"

    def ret_struct(names: list[str]) -> str:
        if v == 1:
            return f"  ret {ret} {names[0]}\n"
        out, prev = "", "poison"
        for k, item in enumerate(names):
            cur = f"%r.{names[0][1:].replace('.', '_')}.{k}"
            out += f"  {cur} = insertvalue {ret} {prev}, {_vector(ty)} {item}, {k}\n"
            prev = cur
        return out + f"  ret {ret} {prev}\n"

    if space == "generic":
        return f.helper(name, head + _generic_dispatch(f, n, v, ret, load=True) + "}\n")

    f.b.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    size = n * v
    body = (_check(f, space, 0, size, aty) if space != "param" else "  br label %checked\n") + "checked:\n"
    body += "  %m = bitcast i32 %mask to <32 x i1>\n" + _pointers(f, space)
    if space == "local":
        body += "".join(_gather(f, f"g{k}", "%p", ty, k, n) for k in range(v))
        return f.helper(name, head + body + ret_struct([f"%g{k}" for k in range(v)]) + "}\n")
    steps = "<" + ", ".join(f"{aty} {k * size}" for k in range(LANES)) + ">"
    body += f"""  %full = icmp eq i32 %mask, -1
  %first = extractelement <32 x {aty}> %a, i64 0
  %first.i = insertelement <32 x {aty}> poison, {aty} %first, i64 0
  %first.v = shufflevector <32 x {aty}> %first.i, <32 x {aty}> poison, <32 x i32> zeroinitializer
  %run = add <32 x {aty}> %first.v, {steps}
  %runs = icmp eq <32 x {aty}> %a, %run
  %runsm = bitcast <32 x i1> %runs to i32
  %isrun = icmp eq i32 %runsm, -1
  %fast = and i1 %isrun, %full
  br i1 %fast, label %run.yes, label %run.no
run.yes:
  %q = extractelement <32 x ptr> %p, i64 0
"""
    if v == 1:
        body += f"  %rv = load {_vector(ty)}, ptr %q, align {n}\n  ret {ret} %rv\n"
    else:
        body += f"  %all = load <{LANES * v} x {ty}>, ptr %q, align {n}\n"
        for k in range(v):
            idx = ", ".join(f"i32 {lane * v + k}" for lane in range(LANES))
            body += (
                f"  %s{k} = shufflevector <{LANES * v} x {ty}> %all, <{LANES * v} x {ty}> poison, <32 x i32> <{idx}>\n"
            )
        body += ret_struct([f"%s{k}" for k in range(v)])
    body += "run.no:\n"
    if (v == 1 or (8 <= n * v <= 16 and n >= 4)) and host.is_x86_with("avx512f"):
        return f.helper(name, head + body + _by_lines(f, n, v, aty, ret_struct) + "}\n")
    body += _first_lane(aty)
    body += f"""  %same = icmp ne <32 x {aty}> %a, %a0.v
  %samem = bitcast <32 x i1> %same to i32
  %differ = and i32 %samem, %mask
  %one = icmp eq i32 %differ, 0
  %some = icmp ne i32 %mask, 0
  %bcast = and i1 %one, %some
  br i1 %bcast, label %one.yes, label %one.no
one.yes:
  %q1 = extractelement <32 x ptr> %p, i32 %lane
"""
    for k in range(v):
        body += f"""  %o{k}.p = getelementptr i8, ptr %q1, i64 {k * n}
  %o{k}.s = load {ty}, ptr %o{k}.p, align {n}
  %o{k}.i = insertelement {_vector(ty)} poison, {ty} %o{k}.s, i64 0
  %o{k} = shufflevector {_vector(ty)} %o{k}.i, {_vector(ty)} poison, <32 x i32> zeroinitializer
"""
    body += ret_struct([f"%o{k}" for k in range(v)])
    body += "one.no:\n" + "".join(_gather(f, f"g{k}", "%p", ty, k, n) for k in range(v))
    return f.helper(name, head + body + ret_struct([f"%g{k}" for k in range(v)]) + "}\n")


def _generic_dispatch(f: FunctionLowering, n: int, v: int, ret: str, load: bool) -> str:
    """Generic addresses: almost always all global; else one access a space that occurs, merged."""
    ty = f"i{8 * n}"
    out = """  %hi = lshr <32 x i64> %a, splat (i64 32)
  %lo = trunc <32 x i64> %a to <32 x i32>
"""
    values = "" if load else "".join(f", {_vector(ty)} %x{k}" for k in range(v))
    for s, base in WINDOWS.items():
        out += f"""  %is.{s} = icmp eq <32 x i64> %hi, splat (i64 {base >> 32})
  %isb.{s} = bitcast <32 x i1> %is.{s} to i32
  %m.{s} = and i32 %isb.{s}, %mask
"""
    out += """  %any.1 = or i32 %m.shared, %m.local
  %any = or i32 %any.1, %m.param
  %none = icmp eq i32 %any, 0
  br i1 %none, label %plain, label %mixed
plain:
"""
    fn = load_function if load else store_function
    g = fn(f, "global", n, v)
    if load:
        out += f"  %rp = call {ret} {g}(ptr %w, i32 %site, i32 %mask, <32 x i64> %a)\n  ret {ret} %rp\n"
    else:
        out += f"  call void {g}(ptr %w, i32 %site, i32 %mask, <32 x i64> %a{values})\n  ret void\n"
    out += "mixed:\n  %many = xor i32 %any, -1\n  %m.global = and i32 %many, %mask\n"
    spaces = ["shared", "local", *(["param"] if load else [])]
    if load:
        out += f"  %r.global = call {ret} {g}(ptr %w, i32 %site, i32 %m.global, <32 x i64> %a)\n"
        for s in spaces:
            out += f"  %r.{s} = call {ret} {fn(f, s, n, v)}(ptr %w, i32 %site, i32 %m.{s}, <32 x i32> %lo)\n"
        for k in range(v):
            for s in ("global", *spaces):
                if v > 1:
                    out += f"  %e.{s}.{k} = extractvalue {ret} %r.{s}, {k}\n"
            name = {s: (f"%e.{s}.{k}" if v > 1 else f"%r.{s}") for s in ("global", *spaces)}
            prev = name["global"]
            for s in spaces:
                out += f"  %t.{s}.{k} = select <32 x i1> %is.{s}, {_vector(ty)} {name[s]}, {_vector(ty)} {prev}\n"
                prev = f"%t.{s}.{k}"
        last = spaces[-1]
        if v == 1:
            return out + f"  ret {ret} %t.{last}.0\n"
        prev = "poison"
        for k in range(v):
            out += f"  %z{k} = insertvalue {ret} {prev}, {_vector(ty)} %t.{last}.{k}, {k}\n"
            prev = f"%z{k}"
        return out + f"  ret {ret} {prev}\n"
    out += f"  call void {g}(ptr %w, i32 %site, i32 %m.global, <32 x i64> %a{values})\n"
    for s in spaces:
        out += f"  call void {fn(f, s, n, v)}(ptr %w, i32 %site, i32 %m.{s}, <32 x i32> %lo{values})\n"
    return out + "  ret void\n"


def store_function(f: FunctionLowering, space: str, n: int, v: int) -> str:
    """The IR function that stores ``v`` elements of ``n`` bytes from each lane of a mask."""
    name = f"st.{space}.{8 * n}x{v}"
    if name in f.kernel.helpers:
        return "@" + name
    ty = f"i{8 * n}"
    aty = "i64" if space in ("generic", "global", "const") else "i32"
    values = "".join(f", {_vector(ty)} %x{k}" for k in range(v))
    head = f"define internal void @{name}(ptr %w, i32 %site, i32 %mask, <32 x {aty}> %a{values}) #0 {{\n"
    if space == "generic":
        return f.helper(name, head + _generic_dispatch(f, n, v, "void", load=False) + "}\n")
    size = n * v
    body = _check(f, space, 1, size, aty) + "checked:\n  %m = bitcast i32 %mask to <32 x i1>\n" + _pointers(f, space)
    if space != "local":
        steps = "<" + ", ".join(f"{aty} {k * size}" for k in range(LANES)) + ">"
        body += f"""  %full = icmp eq i32 %mask, -1
  %first = extractelement <32 x {aty}> %a, i64 0
  %first.i = insertelement <32 x {aty}> poison, {aty} %first, i64 0
  %first.v = shufflevector <32 x {aty}> %first.i, <32 x {aty}> poison, <32 x i32> zeroinitializer
  %run = add <32 x {aty}> %first.v, {steps}
  %runs = icmp eq <32 x {aty}> %a, %run
  %runsm = bitcast <32 x i1> %runs to i32
  %isrun = icmp eq i32 %runsm, -1
  %fast = and i1 %isrun, %full
  br i1 %fast, label %run.yes, label %run.no
run.yes:
  %q = extractelement <32 x ptr> %p, i64 0
"""
        if v == 1:
            body += f"  store {_vector(ty)} %x0, ptr %q, align {n}\n  ret void\n"
        else:
            # concatenate pairwise, then one shuffle that interleaves
            level = [f"%x{k}" for k in range(v)]
            width, step = LANES, 0
            while len(level) > 1:
                nxt = []
                for j in range(0, len(level), 2):
                    idx = ", ".join(f"i32 {x}" for x in range(2 * width))
                    body += f"  %cat{step}.{j} = shufflevector <{width} x {ty}> {level[j]}, <{width} x {ty}> {level[j + 1]}, <{2 * width} x i32> <{idx}>\n"
                    nxt.append(f"%cat{step}.{j}")
                level, width, step = nxt, 2 * width, step + 1
            idx = ", ".join(f"i32 {k * LANES + lane}" for lane in range(LANES) for k in range(v))
            body += f"  %inter = shufflevector <{width} x {ty}> {level[0]}, <{width} x {ty}> poison, <{width} x i32> <{idx}>\n"
            body += f"  store <{width} x {ty}> %inter, ptr %q, align {n}\n  ret void\n"
        body += "run.no:\n"
    if n >= 4:
        f.b.declare(
            f"llvm.masked.scatter.v32{ty}.v32p0",
            f"declare void @llvm.masked.scatter.v32{ty}.v32p0({_vector(ty)}, <32 x ptr>, i32, <32 x i1>)",
        )
        for k in range(v):
            ptrs = "%p"
            if k:
                body += f"  %p{k} = getelementptr i8, <32 x ptr> %p, i64 {k * n}\n"
                ptrs = f"%p{k}"
            body += f"  call void @llvm.masked.scatter.v32{ty}.v32p0({_vector(ty)} %x{k}, <32 x ptr> {ptrs}, i32 {n}, <32 x i1> %m)\n"
        return f.helper(name, head + body + "  ret void\n}\n")
    # Bytes and halves: lane by lane.
    f.b.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    body += "  %ps = alloca [32 x ptr], align 64\n  store <32 x ptr> %p, ptr %ps, align 64\n"
    for k in range(v):
        body += f"  %xs{k} = alloca [32 x {ty}], align 64\n  store {_vector(ty)} %x{k}, ptr %xs{k}, align 64\n"
    body += """  %any = icmp ne i32 %mask, 0
  br i1 %any, label %loop.pre, label %end
loop.pre:
  br label %loop
loop:
  %left = phi i32 [%mask, %loop.pre], [%rest, %loop]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %l64 = zext i32 %lane to i64
  %pp = getelementptr ptr, ptr %ps, i64 %l64
  %ptr = load ptr, ptr %pp, align 8
"""
    for k in range(v):
        body += f"""  %xp{k} = getelementptr {ty}, ptr %xs{k}, i64 %l64
  %xv{k} = load {ty}, ptr %xp{k}, align {n}
  %to{k} = getelementptr i8, ptr %ptr, i64 {k * n}
  store {ty} %xv{k}, ptr %to{k}, align {n}
"""
    body += """  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %loop, label %end
end:
"""
    return f.helper(name, head + body + "  ret void\n}\n")


def check_one_function(f: FunctionLowering, kind: int, size: int) -> str:
    """IR function that checks one global address shared by all running lanes."""
    name = f"check.{kind}.{size}"
    f.b.declare("ws_check", "declare void @ws_check(ptr, i32, i32, i32, i32, ptr, i32)")
    return f.helper(
        name,
        f"""define internal void @{name}(ptr %w, i32 %site, i32 %mask, i64 %a) #0 {{
  %cache.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS["cache"][0]}
  %cache = load ptr, ptr %cache.p, align 8
  %site64 = zext i32 %site to i64
  %e = getelementptr {{i64, i64}}, ptr %cache, i64 %site64
  %base = load i64, ptr %e, align 8
  %e2 = getelementptr i8, ptr %e, i64 8
  %limit = load i64, ptr %e2, align 8
  %d = sub i64 %a, %base
  %in = icmp ult i64 %d, %limit
  %low = and i64 %a, {size - 1}
  %al = icmp eq i64 %low, 0
  %ok = and i1 %in, %al
  br i1 %ok, label %good, label %slow, !prof !2
slow:
  %i = insertelement <32 x i64> poison, i64 %a, i64 0
  %v = shufflevector <32 x i64> %i, <32 x i64> poison, <32 x i32> zeroinitializer
  %spill = alloca [32 x i64], align 64
  store <32 x i64> %v, ptr %spill, align 64
  call void @ws_check(ptr %w, i32 %site, i32 1, i32 {kind}, i32 {size}, ptr %spill, i32 %mask)
  br label %good
good:
  ret void
}}
""",
    )


# ---- using them ---------------------------------------------------------------------------------------


def load(f: FunctionLowering, i: Instruction, space: str, addr: Val, n: int, v: int) -> list[Val]:
    """Load ``v`` elements of ``n`` bytes; the results are integers of that width."""
    ty = f"i{8 * n}"
    b = f.b
    if addr.uniform and f.guard is None and space in ("global", "const", "param", "shared"):
        return load_uniform(f, i, space, addr, n, v)
    name = load_function(f, space, n, v)
    if space not in ("generic", "global", "const"):
        addr = b.cast("trunc", addr, "i32")
    ret = _vector(ty) if v == 1 else "{" + ", ".join([_vector(ty)] * v) + "}"
    call = f"call {ret} {name}(ptr %w, i32 {f.site(i)}, i32 {f.mask.name}, {b.vec(addr).typed})"
    if v == 1:
        return [b.raw(ty, False, call)]
    s = b.raw(ty, False, call)
    return [b.raw(ty, False, f"extractvalue {ret} {s.name}, {k}") for k in range(v)]


def load_uniform(f: FunctionLowering, i: Instruction, space: str, addr: Val, n: int, v: int) -> list[Val]:
    """All running lanes load from one address: scalar loads."""
    ty, b = f"i{8 * n}", f.b
    if space in ("global", "const"):
        if f.kernel.check:
            fn = check_one_function(f, 0, n * v)
            b.line(f"call void {fn}(ptr %w, i32 {f.site(i)}, i32 {f.active.name}, i64 {addr.name})")
        host = b.op("add", addr, f.field("delta"))
        base = f.pointer(f"inttoptr i64 {host.name} to ptr")
    elif space == "shared":
        check_shared(f, i, addr, n * v, 0)
        base = f.pointer(f"getelementptr i8, ptr {f.field('shared').name}, i64 {addr.name}")
    else:
        if not addr.name.lstrip("-").isdigit():
            addr = b.op("and", addr, const(PARAM_MASK, "i64"))
        base = f.pointer(f"getelementptr i8, ptr {f.field('params').name}, i64 {addr.name}")
    hint = ", !invariant.load !0" if space == "param" else ""
    out = []
    for k in range(v):
        at = f.pointer(f"getelementptr i8, ptr {base}, i64 {k * n}") if k else base
        out.append(b.raw(ty, True, f"load {ty}, ptr {at}, align {n if space != 'param' else 1}{hint}"))
    return out


def check_shared(f: FunctionLowering, i: Instruction, addr: Val, size: int, kind: int) -> None:
    """A uniform shared address: refuse it out of line when it is outside or misaligned."""
    b = f.b
    limit = b.raw("i32", True, f"call i32 @llvm.usub.sat.i32(i32 {f.field('shared_size').name}, i32 {size - 1})")
    b.declare("llvm.usub.sat.i32", "declare i32 @llvm.usub.sat.i32(i32, i32)")
    inside = b.cmp("ult", addr, b.cast("zext", limit, "i64"))
    aligned = b.cmp("eq", b.op("and", addr, const(size - 1, "i64")), const(0, "i64"))
    ok = b.op("and", inside, aligned)
    bad, good = f.fresh("bad"), f.fresh("good")
    b.line(f"br i1 {ok.name}, label %{good}, label %{bad}, !prof !2")
    b.label(bad)
    f.runtime(
        "ws_check",
        "void",
        "ptr %w",
        f"i32 {f.site(i)}",
        "i32 2",
        f"i32 {kind}",
        f"i32 {size}",
        f"ptr {f.spill(addr)}",
        f"i32 {f.active.name}",
    )
    b.line("unreachable")
    b.label(good)
    if not f.kernel.copies:
        return
    busy, calm = f.fresh("busy"), f.fresh("calm")
    b.line(f"br i1 {b.cmp('eq', f.field('in_flight'), const(0, 'i32')).name}, label %{calm}, label %{busy}")
    b.label(busy)
    f.runtime(
        "ws_in_flight",
        "void",
        "ptr %w",
        f"i32 {f.site(i)}",
        f"i32 {kind}",
        f"i32 {size}",
        f"ptr {f.spill(b.cast('trunc', addr, 'i32'))}",
        f"i32 {f.active.name}",
    )
    b.line(f"br label %{calm}")
    b.label(calm)


def store(f: FunctionLowering, i: Instruction, space: str, addr: Val, values: list[Val], n: int) -> None:
    """Store elements of ``n`` bytes (integers of that width) for the lanes that execute the instruction."""
    b = f.b
    name = store_function(f, space, n, len(values))
    if space not in ("generic", "global", "const"):
        addr = b.cast("trunc", addr, "i32")
    args = "".join(f", {b.vec(x).typed}" for x in values)
    b.line(f"call void {name}(ptr %w, i32 {f.site(i)}, i32 {f.mask.name}, {b.vec(addr).typed}{args})")
