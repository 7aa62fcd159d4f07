"""Whole programs, compiled by nvcc and run; each file says in its last comment what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Runner

FOLDER = Path(__file__).parent / "programs"
MORE = {"launches": ["launches_other.cu"]}
OPTIONS = {"calls": ["-extended-lambda"]}
NAMES = sorted(p.stem for p in FOLDER.glob("*.cu") if "// output:" in p.read_text())


def expected(path: Path) -> str:
    """The lines after "// output:"."""
    _, _, text = path.read_text().partition("// output:\n")
    return "".join(line.removeprefix("// ") + "\n" for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_output(run: Runner, name: str) -> None:
    files = [FOLDER / f"{name}.cu", *(FOLDER / other for other in MORE.get(name, ()))]
    ran = run(files, *OPTIONS.get(name, ()))
    assert ran.out == expected(files[0])
    assert ran.err == ""
    assert ran.result.returncode == 0
    assert ran.result.problems == ()


@pytest.mark.parametrize("name", ["launches", "order", "symbols"])
def test_per_thread_default_stream(run: Runner, name: str) -> None:
    """This option makes programs call functions of other names (..._ptsz, ..._ptds)."""
    files = [FOLDER / f"{name}.cu", *(FOLDER / other for other in MORE.get(name, ()))]
    ran = run(files, "--default-stream=per-thread")
    assert ran.out == expected(files[0])


def test_fast_mode_and_one_core(run: Runner) -> None:
    path = FOLDER / "memory.cu"
    ran = run(path, mode="fast", threads=1)
    assert ran.out == expected(path)
    assert ran.result.problems == ()


def test_arguments_input_and_exit_code(run: Runner) -> None:
    ran = run(
        """
        #include <cstdio>
        #include <unistd.h>
        int main(int argc, char** argv) {
          for (int i = 1; i < argc; ++i) puts(argv[i]);
          return 42;
        }
        """,
        args=["a b", "", "--c"],
    )
    assert ran.out == "a b\n\n--c\n"
    assert ran.result.returncode == 42


def test_summary(run: Runner) -> None:
    ran = run(
        """
        #include <cuda_runtime.h>
        namespace app { template <class T> __global__ void twice(T* p) { p[threadIdx.x] *= 2; } }
        __global__ void once(int* p) { *p = 1; }
        int main() {
          int* d;
          cudaMalloc(&d, 1000);
          for (int i = 0; i < 30; ++i) app::twice<int><<<1, 64>>>(d);
          once<<<2, 1>>>(d);
          cudaDeviceSynchronize();
        }
        """
    )
    kernels = {k.name: k for k in ran.result.kernels}
    assert list(kernels) == ["app::twice<int>", "once"]
    twice = kernels["app::twice<int>"]
    assert (twice.launches, twice.blocks, twice.threads) == (30, 30, 30 * 64)
    assert twice.instructions > 30 * 2 * 5
    assert twice.nanoseconds > 0
    assert ran.result.memory_peak == 1000
    assert kernels["once"].blocks == 2


def test_summary_of_a_program_that_leaves_without_a_word(run: Runner) -> None:
    ran = run(
        """
        #include <cuda_runtime.h>
        #include <unistd.h>
        __global__ void once() {}
        int main() { once<<<1, 1>>>(); _exit(3); }
        """
    )
    assert ran.result.returncode == 3
    assert [k.launches for k in ran.result.kernels] == [1]


def test_printf_without_waiting_is_shown_with_a_note(run: Runner) -> None:
    ran = run(
        """
        #include <cstdio>
        __global__ void say() { printf("from the kernel\\n"); }
        int main() { say<<<1, 1>>>(); printf("from the host\\n"); }
        """
    )
    assert ran.out == "from the host\nfrom the kernel\n"
    assert ran.result.problems == ()
    assert len(ran.result.notes) == 1
    assert "cudaDeviceSynchronize" in ran.err
