"""``warpsmith run`` on whole programs, from the source to the exit code."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.cu"))

HELLO = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
__global__ void twice(int* x) { x[threadIdx.x] *= 2; }
int main(int argc, char** argv) {
  int value = 0;
  if (std::scanf("%d", &value) != 1) value = 21;
  int* device;
  cudaMalloc(&device, sizeof(int));
  cudaMemcpy(device, &value, sizeof(int), cudaMemcpyHostToDevice);
  twice<<<1, 1>>>(device);
  cudaMemcpy(&value, device, sizeof(int), cudaMemcpyDeviceToHost);
  char folder[4096];
  std::printf("%d %s", value, std::strrchr(getcwd(folder, sizeof folder), '/') + 1);
  for (int i = 1; i < argc; i++) std::printf(" [%s]", argv[i]);
  std::printf("\\n");
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


class Program:
    """Runs ``warpsmith run`` in a folder, as a process."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WARPSMITH_CACHE": str(cache)}

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-P", "-m", "warpsmith", "run", *map(str, arguments)]

    def __call__(self, *arguments: str | Path, input: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            input=input,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "Traceback" not in done.stderr
        # On a busy machine compiling may take long enough to be announced.
        lines = [line for line in done.stderr.splitlines(keepends=True) if not line.endswith(" ...\n")]
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, "".join(lines))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        os.utime(self.folder / name, (time.time() - 10,) * 2)


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> Program:
    folder = tmp_path / "here"
    folder.mkdir()
    return Program(folder, cache)


@pytest.fixture(scope="session")
def hello(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Program:
    """HELLO, compiled, in a folder named "here"."""
    folder = tmp_path_factory.mktemp("shared") / "here"
    folder.mkdir()
    program = Program(folder, cache)
    program.write("p.cu", HELLO)
    assert program("p.cu").returncode == 0
    return program


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_pass(example: Path, run: Program) -> None:
    done = run(example, "--order", "random", "--seed", "3")
    assert (done.returncode, done.stdout.splitlines()[-1][:5]) == (0, "PASS:"), done.stderr
    assert done.stderr.endswith("no problems found\n")


@pytest.mark.parametrize("chip", ["t4", "a100", "rtx4090", "b200", "rtx5090"])
def test_on_other_chips(chip: str, run: Program) -> None:
    done = run(ROOT / "examples" / "vector_add.cu", "--chip", chip, "--mode", "fast", "--", "5000")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PASS")


def test_output_input_folder_arguments_and_exit_code_are_the_programs_own(hello: Program) -> None:
    done = hello("p.cu", "--", "7", "a b", "--chip", "-x", input="100\n")
    assert done.stdout == "200 here [7] [a b] [--chip] [-x]\n"
    assert done.returncode == 7
    assert hello("p.cu").stdout == "42 here\n"


def test_the_summary_goes_to_stderr_or_nowhere(hello: Program) -> None:
    done = hello("p.cu")
    lines = done.stderr.splitlines()
    assert lines[-4] == "--- warpsmith: NVIDIA H200, emulated, mode check ---"
    assert lines[-3].split() == ["kernel", "launches", "blocks", "threads", "warp", "instructions", "time", "here"]
    assert lines[-2].split()[:4] == ["twice", "1", "1", "1"]
    assert lines[-1] == "no problems found"
    assert hello("p.cu", "-q").stderr == ""


def test_the_summary_as_json(hello: Program) -> None:
    done = hello("p.cu", "--json", "report.json", "--", "3")
    assert (done.returncode, done.stderr) == (3, "")
    report = json.loads((hello.folder / "report.json").read_text())
    assert (report["chip"], report["mode"], report["exit_code"], report["program_exit_code"]) == ("h200", "check", 3, 3)
    (kernel,) = report["kernels"]
    assert (kernel["launches"], kernel["threads"], report["problems"]) == (1, 1, [])
    assert json.loads(hello("p.cu", "--json", "-").stderr)["chip"] == "h200"
    assert hello("p.cu", "--json", "none/report.json").returncode == 94


def test_several_sources_and_compiler_options(run: Program) -> None:
    (run.folder / "include").mkdir()
    run.write("include/shared.h", 'int launch(int);\nextern "C" int helper(int);\n')
    run.write(
        "kernel.cu",
        '#include "shared.h"\n#include <cmath>\n__device__ int result;\n'
        "__global__ void k(int x) { result = x * FACTOR; }\n"
        "int launch(int x) {\n  k<<<1, 1>>>(x);\n  int r;\n  cudaMemcpyFromSymbol(&r, result, 4);\n"
        "  return r + (int)sqrt(4.0 * x);\n}\n",
    )
    run.write(
        "main.cpp",
        '#include <iostream>\n#include "shared.h"\nint main() { std::cout << helper(launch(9)) << std::endl; }\n',
    )
    run.write("helper.c", "int helper(int class) { return class + 1; }\n")
    line = (
        "kernel.cu main.cpp helper.c -Iinclude -DFACTOR=3 -std=c++20 -O3 -Xcompiler -Wall,-Wextra -lm -arch=sm_80 -o x"
    )
    done = run(*line.split())
    assert (done.returncode, done.stdout) == (0, "34\n"), done.stderr
    assert not (run.folder / "x").exists()


def test_a_kernel_that_writes_out_of_bounds(run: Program) -> None:
    run.write(
        "p.cu",
        "__global__ void bad(int* x) {\n  x[blockIdx.x * blockDim.x + threadIdx.x] = 1;\n}\n"
        "int main() { int* p; cudaMalloc(&p, 4000); bad<<<4, 256>>>(p); cudaDeviceSynchronize(); }\n",
    )
    done = run("p.cu", "--json", "report.json")
    assert done.returncode == 92  # the program looked at no error and ended with 0
    (problem,) = json.loads((run.folder / "report.json").read_text())["problems"]
    assert (problem["line"], problem["kernel"]) == (2, "bad")
    assert "out-of-bounds write of 4 bytes" in done.stderr
    assert "p.cu:2" in done.stderr
    assert "thread (232,0,0) of block (3,0,0)" in done.stderr


def test_a_null_pointer_and_an_error_that_the_program_sees(run: Program) -> None:
    run.write(
        "p.cu",
        "#include <cstdio>\n__global__ void bad(int* x) { *x = 1; }\n"
        "int main() {\n  bad<<<1, 1>>>(nullptr);\n  puts(cudaGetErrorName(cudaDeviceSynchronize()));\n  return 5;\n}\n",
    )
    done = run("p.cu")
    assert (done.returncode, done.stdout) == (5, "cudaErrorIllegalAddress\n")
    assert "null" in done.stderr
    assert done.stderr.endswith("1 problem found (see above)\n")


def test_a_failing_assertion(run: Program) -> None:
    done = run(ROOT / "examples" / "printf_assert.cu", "--", "5")
    assert done.returncode == 1
    assert done.stdout == "FAIL: the kernel ended with: device-side assert triggered\n"
    assert "printf_assert.cu:22" in done.stderr


def test_a_deadlock_is_reported_not_waited_for(run: Program) -> None:
    run.write(
        "p.cu",
        "__global__ void k(volatile int* flag) {\n  while (*flag == 0) {\n  }\n}\n"
        "int main() {\n  int* f;\n  cudaMalloc(&f, 4);\n  cudaMemset(f, 0, 4);\n  k<<<1, 32>>>(f);\n"
        "  return cudaDeviceSynchronize();\n}\n",
    )
    start = time.perf_counter()
    done = run("p.cu")
    assert done.returncode not in (0, 92)
    assert time.perf_counter() - start < 60
    assert "p.cu:2" in done.stderr


def test_host_code_that_uses_device_memory(run: Program) -> None:
    run.write("p.cu", "int main() { int* p; cudaMalloc(&p, 4); *p = 1; }\n")
    done = run("p.cu")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "host" in done.stderr
    assert "SIGSEGV" in done.stderr.splitlines()[-1]


def test_link_time_messages(run: Program) -> None:
    run.write("nomain.cu", "__global__ void k() {}\n")
    done = run("nomain.cu")
    assert done.returncode == 83
    assert done.stderr.endswith("(grid, block, arrays...)\n")
    run.write("api.cu", "int main() { return cudaIpcCloseMemHandle(0); }\n")
    done = run("api.cu")
    assert done.returncode == 85
    assert done.stderr == (
        "warpsmith: api.cu:1: uses cudaIpcCloseMemHandle, which warpsmith's CUDA runtime does not have yet\n"
    )


def test_ctrl_c_ends_a_running_kernel_at_once(run: Program) -> None:
    run.write(
        "p.cu",
        "#include <cstdio>\n"
        "__global__ void k(unsigned* x) { for (unsigned i = 0; i != 4000000000u; i++) atomicAdd(x, i); }\n"
        'int main() { unsigned* p; cudaMalloc(&p, 4); puts("started"); fflush(stdout); k<<<1, 32>>>(p);\n'
        "  cudaDeviceSynchronize(); }\n",
    )
    process = subprocess.Popen(
        run.command("p.cu"),
        cwd=run.folder,
        env=run.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)
    start = time.perf_counter()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of the foreground
    _, err = process.communicate(timeout=20)
    assert time.perf_counter() - start < 5
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_second_run_starts_fast(hello: Program) -> None:
    def seconds() -> float:
        """Of processor time, which other work on the machine leaves alone."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert hello("p.cu").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.7
