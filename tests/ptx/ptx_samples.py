"""The 34 PTX files of our own kernels, from seven compilers, and what is known about them."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "samples"

#: name: (instructions, distinct full opcodes), counted when the samples were made, by other means than our parser
COUNTS = {
    "cluster_dsmem.sm90a": (32, 21), "coop_groups.sm80": (145, 43), "cub_block.sm80": (243, 37),
    "cutedsl_mma.sm90a": (119, 17), "debugfn.sm80": (173, 55), "gluon_tmacopy_sm90": (32, 22),
    "gluon_wgmma_sm90": (345, 27), "histogram.sm80": (96, 43), "mathfn.sm80": (736, 135),
    "mma_cpasync.sm80": (385, 32), "mma_types.sm90a": (77, 36), "mojo_vadd.sm90a": (24, 13),
    "numba_matmul.sm80": (168, 31), "numba_vadd.sm80": (36, 15), "pipeline_barrier.sm80": (275, 64),
    "pipeline_barrier.sm90a": (182, 57), "scan.sm80": (103, 26), "sgemm_tiled.sm80": (403, 27),
    "softmax.sm80": (258, 38), "tcgen05_alloc.sm100a": (21, 17), "tma_mbarrier.sm90a": (63, 29),
    "triton_add.sm80": (51, 13), "triton_add.sm90": (51, 13), "triton_matmul.sm80": (451, 40),
    "triton_matmul.sm90": (344, 42), "triton_matmul_tma.sm90": (272, 39), "triton_matmul_tma_ws.sm100": (518, 56),
    "triton_softmax.sm80": (122, 27), "triton_softmax.sm90": (122, 27), "vadd.sm80": (22, 13),
    "warp_reduce.sm80": (160, 49), "warp_special.sm90a": (129, 48), "wgmma.sm90a": (332, 33), "wmma_gemm.sm80": (123, 26),
}  # fmt: skip


def text(name: str) -> str:
    return (FOLDER / f"{name}.ptx").read_text()
