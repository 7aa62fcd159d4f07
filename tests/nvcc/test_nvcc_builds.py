"""Builds that were made for nvcc: their executables run on the emulator."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

NUMBERS = "1.23099e+06 2110 3125 sum 1.33446e+06\ncalls 41\n"


def test_make_with_separate_compilation(sh: Run, project: Path) -> None:
    built = sh('make NVCC="$ws nvcc"')
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    assert "matrix.cuh" in (project / "main.d").read_text()
    assert sh("./app x").stdout == f"{NUMBERS}NVIDIA H200 x\n"
    assert sh("./app", WARPSMITH_CHIP="a100", WARPSMITH_MODE="fast").stdout == f"{NUMBERS}NVIDIA A100-SXM4-80GB \n"
    # Code for a newer chip than the one to run on.
    refused = sh("./app", WARPSMITH_CHIP="t4")
    assert "for sm_80, which the" in refused.stderr and "compute_75" in refused.stderr
    ran = sh("$ws run --chip rtx4090 ./app --mode y")
    assert ran.stdout == f"{NUMBERS}NVIDIA GeForce RTX 4090 --mode\n"
    assert "fill_kernel" in ran.stderr and "no problems found" in ran.stderr
    # The same objects again, now with a change: make rebuilds what is needed and no more.
    assert sh('touch report.cpp; make NVCC="$ws nvcc"').stdout.count("nvcc") == 1


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_cmake(sh: Run, project: Path) -> None:
    configured = sh('cmake -B build -DCMAKE_CUDA_COMPILER="$($ws nvcc --toolkit)/bin/nvcc"')
    assert configured.returncode == 0, configured.stderr + configured.stdout
    assert "The CUDA compiler identification is NVIDIA 13.0" in configured.stdout
    built = sh("cmake --build build")
    assert built.returncode == 0, built.stderr + built.stdout
    assert sh("build/app x").stdout == f"{NUMBERS}NVIDIA H200 x\n"
    assert sh("build/plain").stdout == "plain 31\n"
    assert sh("build/host_only").stdout == "devices 1\n"


def test_one_command_and_shared_libraries(sh: Run, project: Path) -> None:
    built = sh(
        "$ws nvcc -rdc=true -o whole main.cu scale.cu offsets.cu report.cpp && ./whole"
        " && $ws nvcc -shared -Xcompiler -fPIC -rdc=true -o libparts.so scale.cu offsets.cu report.cpp"
        " && nm -D libparts.so | grep -q total_calls"
    )
    assert built.returncode == 0, built.stderr
    assert built.stdout == f"{NUMBERS}NVIDIA H200 \n"


def test_gpp_links_with_the_toolkit_folder(sh: Run, project: Path) -> None:
    built = sh(
        "$ws nvcc -c plain.cu -o plain.o && tk=$($ws nvcc --toolkit) && g++ plain.o -L$tk/lib64 -lcudart -o plain"
        " && ./plain && $tk/bin/nvcc -run plain.cu -o again"
    )
    assert built.returncode == 0, built.stderr
    assert built.stdout == "plain 31\nplain 31\n"


def test_separate_device_link(sh: Run, project: Path) -> None:
    """The three steps one by one, as some Makefiles have them."""
    built = sh(
        "$ws nvcc -dc main.cu scale.cu offsets.cu && $ws nvcc -dlink main.o scale.o offsets.o -o link.o"
        " && g++ -c report.cpp && tk=$($ws nvcc --toolkit)"
        " && g++ main.o scale.o offsets.o report.o link.o -L$tk/lib64 -lcudart_static -o app && ./app"
    )
    assert built.returncode == 0, built.stderr
    assert built.stdout == f"{NUMBERS}NVIDIA H200 \n"


def test_run_links_several_files(sh: Run, project: Path) -> None:
    ran = sh("$ws run -q -rdc=true main.cu scale.cu offsets.cu report.cpp -- z")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{NUMBERS}NVIDIA H200 z\n"


def test_device_names_that_nobody_defines(sh: Run, project: Path) -> None:
    built = sh("$ws nvcc -rdc=true -o app main.cu scale.cu report.cpp")
    assert built.returncode == 84
    assert len(built.stderr.splitlines()) == 1
    assert "its device code uses offset_of(int)" in built.stderr
    built = sh("$ws run -rdc=true main.cu scale.cu report.cpp")
    assert built.returncode == 84
    assert built.stderr.splitlines()[-1].startswith("warpsmith: main.cu: its device code uses offset_of(int)")


def test_missing_libraries_have_a_name(sh: Run, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("#include <cublas_v2.h>\nint main() {}\n")
    (tmp_path / "b.cu").write_text("int main() {}\n")
    for command in ("$ws nvcc -c a.cu", "$ws run a.cu"):
        done = sh(command)
        assert done.returncode == 85
        (line,) = done.stderr.splitlines()
        assert line.startswith("warpsmith: a.cu:1: includes cublas_v2.h of NVIDIA's library cuBLAS, which")
    for command in ("$ws nvcc b.cu -lcurand", "$ws run b.cu -lcurand"):
        done = sh(command)
        assert done.returncode == 85
        assert (
            done.stderr
            == "warpsmith: -lcurand: the program needs NVIDIA's library cuRAND, which warpsmith does not have\n"
        )


def test_nvcc_speaks_for_itself(sh: Run, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("__global__ void k(int* p) { *p = WRONG; }\nint main() {}\n")
    assert "Cuda compiler driver" in sh("$ws nvcc --version").stdout
    wrong = sh("$ws nvcc -c a.cu")
    assert wrong.returncode == 2 and 'a.cu(1): error: identifier "WRONG" is undefined' in wrong.stderr
    ptx = sh("$ws nvcc -ptx -arch=sm_90a -DWRONG=1 a.cu -o - ; cat a.ptx -")
    assert ".target sm_90a" in sh("$ws nvcc -ptx -arch=sm_90a -DWRONG=1 a.cu -o a.ptx; cat a.ptx").stdout, ptx.stderr
    assert (
        "arch=compute_90" in sh("$ws nvcc -dryrun -DWRONG=1 a.cu").stderr
        or "compute_90" in sh("$ws nvcc -dryrun -DWRONG=1 a.cu").stderr
    )
    assert "#include" not in sh("$ws nvcc -M -DWRONG=1 a.cu").stdout
    assert "usage: " in sh("$ws help nvcc").stdout
