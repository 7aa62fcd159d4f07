"""Command lines of nvcc, taken apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.chips import load
from warpsmith.toolchains import libraries
from warpsmith.toolchains.dropin import architecture, parse


def test_words() -> None:
    c = parse(
        "-O3 --std=c++17 -std c++14 -Ia -I b -DN=4 -D M -lineinfo -c x.cu -o x.o -Xcompiler=-Wall,-fopenmp -x cu"
        " --generate-code=arch=compute_80,code=[compute_80,sm_80] -gencode arch=compute_90a,code=sm_90a --maxrregcount=32"
        " -isystem=/usr/x -MD -MT t -MF f.d -forward-unknown-to-host-compiler -Wl,-z,now -L lib -lm -lcudart".split()
    )
    assert (c.action, c.output, c.inputs, c.language) == ("-c", "x.o", ["x.cu"], "cu")
    assert c.architectures == ["80", "80", "80", "90a", "90a"]
    assert c.link == ["\0x.cu", "-fopenmp", "-Wl,-z,now", "-Llib", "-lm"]
    for word in ("-O3", "-Ia", "-Ib", "-DN=4", "-DM", "-lineinfo", "-MD", "-forward-unknown-to-host-compiler"):
        assert word in c.compile
    for pair in (["-std", "c++17"], ["-Xcompiler", "-Wall,-fopenmp"], ["-MF", "f.d"], ["-isystem", "/usr/x"]):
        assert any(c.compile[i : i + 2] == pair for i in range(len(c.compile)))


def test_files_of_options(tmp_path: Path) -> None:
    (tmp_path / "o").write_text('-I"a b" x.o\n-lz')
    c = parse(["--options-file", str(tmp_path / "o"), "-shared", "-cudart=none", "-rdc=true"])
    assert (c.inputs, c.compile[0], c.runtime, c.relocatable) == (["x.o"], "-Ia b", False, True)
    assert c.link == ["x.o", "-lz", "-shared"]


@pytest.mark.parametrize(
    ("asked", "chip", "chosen"),
    [
        ([], "h200", "90"),
        (["70", "80"], "h200", "80"),
        (["80", "90a"], "h200", "90a"),
        (["90a"], "b200", "100"),
        (["70"], "t4", "75"),
        (["80"], "t4", "75"),
        (["100f", "90"], "b200", "100f"),
    ],
)
def test_architectures(asked: list[str], chip: str, chosen: str) -> None:
    assert architecture(asked, load(chip)) == chosen


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("cublas_v2.h", "cuBLAS"), ("cublas", "cuBLAS"), ("cublas_static", "cuBLAS"), ("cublasLt.h", "cuBLASLt"),
        ("curand.h", "cuRAND"), ("curand_kernel.h", "cuRAND"), ("cufft.h", "cuFFT"), ("cufftXt.h", "cuFFT"),
        ("cudnn.h", "cuDNN"), ("cudnn_ops_infer", "cuDNN"), ("cusolverDn.h", "cuSOLVER"), ("nccl.h", "NCCL"),
        ("nvtx3/nvToolsExt.h", "NVTX"), ("cuda", "the CUDA driver API"), ("nppi_filtering_functions.h", "NPP"),
        ("m", None), ("cudart", None), ("cuda_utils.h", None), ("helper_cuda.h", None), ("curl", None), ("cudf", None),
    ],
)  # fmt: skip
def test_libraries(name: str, library: str | None) -> None:
    assert libraries.library(name) == library
