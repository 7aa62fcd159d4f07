"""Special registers (PTX ISA 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import abi
from ..ir import LANES, Val, const
from . import Unsupported

if TYPE_CHECKING:
    from .function import FunctionLowering

AXES = {"x": 0, "y": 1, "z": 2}
_LANE_MASKS = {
    "%lanemask_eq": lambda n: 1 << n,
    "%lanemask_lt": lambda n: (1 << n) - 1,
    "%lanemask_le": lambda n: (2 << n) - 1,
    "%lanemask_gt": lambda n: 0xFFFFFFFF & ~((2 << n) - 1),
    "%lanemask_ge": lambda n: 0xFFFFFFFF & ~((1 << n) - 1),
}
#: Scalars that ws_warp holds: name -> field, IR type of the special register.
_FIELDS = {
    **{f"%{r}.{a}": f"{r}.{a}" for r in ("ntid", "ctaid", "nctaid") for a in "xyz"},
    "%warpid": "warp_id", "%smid": "smid", "%nsmid": "nsmid", "%gridid": "gridid",
    "%dynamic_smem_size": "dynamic_shared",
}  # fmt: skip
#: One cluster is one block until clusters are emulated.
_CONSTANTS = {
    **{f"%clusterid.{a}": f"ctaid.{a}" for a in "xyz"},
    **{f"%nclusterid.{a}": f"nctaid.{a}" for a in "xyz"},
}


def lane_constants(values: list[int], ty: str = "i32") -> Val:
    """A constant vector."""
    return Val("<" + ", ".join(f"{ty} {const(v, ty).name}" for v in values) + ">", ty)


def special_register(f: FunctionLowering, name: str) -> Val:
    """The value of a special register."""
    if name.startswith("%tid."):
        offset = abi.WARP_FIELDS["tid"][0] + AXES[name[-1]] * 4 * LANES
        at = f.pointer(f"getelementptr i8, ptr %w, i64 {offset}")
        return f.b.raw("i32", False, f"load <{LANES} x i32>, ptr {at}, align 4, !invariant.load !0")
    if name == "%laneid":
        return lane_constants(list(range(LANES)))
    if name in _LANE_MASKS:
        return lane_constants([_LANE_MASKS[name](n) for n in range(LANES)])
    if name in _FIELDS:
        return f.field(_FIELDS[name])
    if name in _CONSTANTS:
        return f.field(_CONSTANTS[name])
    if name in ("%clock", "%clock64", "%clock_hi"):
        v = f.runtime("ws_clock", "i64", "ptr %w")
        assert v is not None
        if name == "%clock":
            return f.b.cast("trunc", v, "i32")
        return v if name == "%clock64" else f.b.cast("trunc", f.b.op("lshr", v, const(32, "i64")), "i32")
    if name in ("%globaltimer", "%globaltimer_lo", "%globaltimer_hi"):
        v = f.runtime("ws_globaltimer", "i64", "ptr %w")
        assert v is not None
        if name == "%globaltimer_hi":
            v = f.b.op("lshr", v, const(32, "i64"))
        return v if name == "%globaltimer" else f.b.cast("trunc", v, "i32")
    if name.startswith("%envreg"):
        v = f.runtime("ws_envreg", "i64", "ptr %w", f"i32 {int(name[7:])}")
        assert v is not None
        return f.b.cast("trunc", v, "i32")
    if name == "%nwarpid":
        n = f.b.op("mul", f.b.op("mul", f.field("ntid.x"), f.field("ntid.y")), f.field("ntid.z"))
        return f.b.op("lshr", f.b.op("add", n, const(31, "i32")), const(5, "i32"))
    if name in ("%total_smem_size", "%aggr_smem_size"):
        return f.field("shared_size")
    if name in ("%cluster_ctarank", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"):
        return const(0, "i32")
    if name in ("%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z"):
        return const(1, "i32")
    if name == "%is_explicit_cluster":
        return const(0, "i1")
    if name == "%current_graph_exec":
        return const(0, "i64")
    raise Unsupported(f"special register {name}", f.instruction)
