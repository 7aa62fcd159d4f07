"""Compile examples of CUTLASS to PTX and parse them: the largest PTX that people meet.

    python benchmarks/cutlass_ptx.py SOURCE [FOLDER_WITH_CURAND_H]

SOURCE is a CUTLASS tree (the folder cutlass_library/source of the Python package nvidia-cutlass is one).  Takes
a minute or two and up to 4 GB an example.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from parser import measure

from warpsmith.toolchains.toolkit import toolkit

EXAMPLES = (
    ("compute_80", "14_ampere_tf32_tensorop_gemm/ampere_tf32_tensorop_gemm.cu"),
    ("compute_90a", "48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu"),
    ("compute_100a", "70_blackwell_gemm/70_blackwell_fp16_gemm.cu"),
    ("compute_100a", "70_blackwell_gemm/70_blackwell_fp8_gemm.cu"),
)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    root, extra = Path(sys.argv[1]), sys.argv[2:]
    tools = toolkit()
    includes = [
        root / "include",
        root / "tools/util/include",
        root / "examples/common",
        *map(Path, extra),
        *tools.includes,
    ]
    with tempfile.TemporaryDirectory() as folder:
        for arch, example in EXAMPLES:
            out = Path(folder) / "out.ptx"
            options = ["-ptx", f"-arch={arch}", "-std=c++17", "--expt-relaxed-constexpr", *(f"-I{i}" for i in includes)]
            command = [str(tools.nvcc), *options, str(root / "examples" / example), "-o", str(out)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{example}: nvcc failed: {done.stderr.strip().splitlines()[-1:]}")
                return 1
            measure(Path(example).name, out.read_text(errors="surrogateescape"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
