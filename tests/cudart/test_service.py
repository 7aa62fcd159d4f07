"""Programs and the process that compiles for them: started by hand, by Ctrl-C ended, crashed, of the wrong kind."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpsmith.chips import load
from warpsmith.devices.emulator import service
from warpsmith.devices.emulator.locate import locate
from warpsmith.devices.emulator.programs import Programs
from warpsmith.devices.emulator.service import RunOptions, Session, run_program
from warpsmith.devices.emulator.wire import Reader, Writer
from warpsmith.errors import InputError, UsageError
from warpsmith.toolchains import nvcc
from warpsmith.toolchains.options import parse
from warpsmith.toolchains.toolkit import host_compiler, toolkit

HELLO = """
#include <cstdio>
__global__ void hello(int n) { if (threadIdx.x == 0) printf("kernel %d\\n", n); }
int main() {
  cudaDeviceProp p;
  if (cudaError_t e = cudaGetDeviceProperties(&p, 0)) return printf("%s\\n", cudaGetErrorName(e)), 1;
  hello<<<1, 32>>>(7);
  printf("%s: %s\\n", p.name, cudaGetErrorName(cudaDeviceSynchronize()));
}
"""
LONG = """
#include <cstdio>
__global__ void forever(float* p) { float x = *p; for (long long i = 0; i < 1ll << 60; ++i) x = x * 0.999f + i; *p = x; }
int main() {
  float* d;
  cudaMalloc(&d, 4);
  printf("started\\n");
  fflush(stdout);
  forever<<<1, 1>>>(d);
  cudaDeviceSynchronize();
}
"""


def build(folder: Path, text: str) -> Path:
    source = folder / "program.cu"
    source.write_text(text)
    return nvcc.build(parse([str(source)]), "h200").path


def by_hand(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    names = ("WARPSMITH_SERVICE", "WARPSMITH_PYTHON", "PYTHONPATH")
    clean = {k: v for k, v in os.environ.items() if k not in names}
    return subprocess.run([str(program)], env={**clean, **environment}, capture_output=True, text=True, timeout=120)


def test_started_by_hand(tmp_path: Path) -> None:
    program = build(tmp_path, HELLO)
    ran = by_hand(program, WARPSMITH_PYTHON=sys.executable)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("kernel 7\nNVIDIA H200: cudaSuccess\n", "", 0)
    ran = by_hand(program, WARPSMITH_PYTHON=sys.executable, WARPSMITH_CHIP="rtx4090", WARPSMITH_MODE="fast")
    # The device code was compiled for the H200.
    assert ran.stdout.startswith("NVIDIA GeForce RTX 4090: ")
    assert "compile with -gencode arch=compute_89,code=compute_89" in ran.stderr


def test_started_by_hand_without_python(tmp_path: Path) -> None:
    program = build(tmp_path, HELLO)
    ran = by_hand(program, WARPSMITH_PYTHON="/no/such/python")
    assert ran.stdout == "cudaErrorInitializationError\n"
    assert ran.stderr.count("\n") == 1
    assert "set WARPSMITH_PYTHON to a Python in which warpsmith is installed" in ran.stderr


def test_started_by_hand_with_wrong_settings(tmp_path: Path) -> None:
    program = build(tmp_path, HELLO)
    ran = by_hand(program, WARPSMITH_PYTHON=sys.executable, WARPSMITH_CHIP="h2000")
    assert ran.stdout == "cudaErrorInitializationError\n"
    assert ran.stderr.startswith("warpsmith: there is no chip 'h2000' (did you mean h200?)")
    ran = by_hand(program, WARPSMITH_PYTHON=sys.executable, WARPSMITH_MODE="slow")
    assert ran.stderr.startswith("warpsmith: mode must be one of check, fast, not 'slow'")


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C goes to the whole process group, as from a terminal."""
    source = tmp_path / "program.cu"
    source.write_text(LONG)
    command = [sys.executable, "-m", "warpsmith", "run", str(source)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    time.sleep(1.5)
    start = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert time.monotonic() - start < 5
    assert running.returncode == 130
    assert "interrupted while forever ran" in err
    assert "Traceback" not in err


def test_crash_of_the_program(tmp_path: Path) -> None:
    program = build(
        tmp_path, "__global__ void k() {}\nint main() { k<<<1, 1>>>(); cudaDeviceSynchronize(); __builtin_trap(); }"
    )
    result = run_program(program, [], load("h200"))
    assert result.returncode in (-signal.SIGILL, -signal.SIGTRAP)
    assert [k.name for k in result.kernels] == ["k"]


def test_machine_code_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A program that was not built by warpsmith."""
    source, program = tmp_path / "program.cu", tmp_path / "program"
    source.write_text(HELLO)
    lib = nvcc.CUDART
    command = [
        str(toolkit().nvcc), "-ccbin", host_compiler(), "-cudart", "none", "-gencode", "arch=compute_90,code=sm_90",
        str(source), str(lib), "-Xlinker", f"-rpath={lib.parent}", "-o", str(program),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    result = run_program(program, [], load("h200"))
    out, err = capfd.readouterr()
    assert out == "NVIDIA H200: cudaSuccess\n"
    assert err.count("\n") == 1
    assert "machine code for sm_90 and no PTX" in err
    assert [p["kind"] for p in result.problems] == ["compile"]


def test_compressed_device_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, program = tmp_path / "program.cu", tmp_path / "program"
    source.write_text(HELLO)
    lib = nvcc.CUDART
    for mode in ("default", "speed"):
        command = [
            str(toolkit().nvcc), "-ccbin", host_compiler(), "-cudart", "none", "-arch=compute_90", f"--compress-mode={mode}",
            str(source), str(lib), "-Xlinker", f"-rpath={lib.parent}", "-o", str(program),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        assert run_program(program, [], load("h200")).returncode == 0
        assert capfd.readouterr().out == "kernel 7\nNVIDIA H200: cudaSuccess\n"


def test_no_such_program(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be started"):
        run_program(tmp_path / "nothing", [], load("h200"))


def test_wrong_options() -> None:
    with pytest.raises(UsageError, match="mode must be one of"):
        RunOptions(mode="quick")
    with pytest.raises(UsageError, match="order must be one of"):
        RunOptions(order="sideways")


def test_service_by_hand_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        assert service.main([]) == UsageError.code
        assert service.main(["x"]) == UsageError.code
    finally:
        signal.signal(signal.SIGINT, before)
    assert "not by hand" in capsys.readouterr().err


def session() -> tuple[Session, socket.socket]:
    chip, (ours, theirs) = load("h200"), socket.socketpair()
    return Session(ours, Programs(chip, check=True), chip, RunOptions()), theirs


@pytest.mark.parametrize(
    ("kind", "payload", "code"),
    [
        (service.HELLO, Writer().u32(99).data, 3),
        (service.MODULE, Writer().u32(1).blob(b"not a fat binary at all").data, 200),
        (service.MODULE, b"\1", 999),
        (service.KERNEL, Writer().u32(5).text("k").data, 999),
        (77, b"", 999),
    ],
)
def test_nonsense_is_refused(kind: int, payload: bytes, code: int) -> None:
    serving, _ = session()
    answer = serving._handle(kind, payload)
    assert answer is not None
    r = Reader(answer)
    assert r.u32() == code
    assert r.text()


def test_connection_that_breaks_off() -> None:
    serving, theirs = session()
    theirs.sendall(struct.pack("<II", service.MODULE, 1000) + b"half")
    theirs.close()
    serving.serve()


def test_locate_skips_wrappers(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("int cudaThing(void) { return 1; }\nint mine(void) { return 2; }\nint main(void) { return 0; }\n")
    for debug, expected in (("-g", f"at {source}:2"), ("-g0", "in mine")):
        subprocess.run([host_compiler(), "-x", "c", debug, "-no-pie", str(source), "-o", str(program)], check=True)
        table = subprocess.run(["nm", str(program)], check=True, capture_output=True, text=True).stdout
        at = {line.split()[-1]: int(line.split()[0], 16) for line in table.splitlines() if len(line.split()) == 3}
        places = [(str(program), at["cudaThing"] + 4), (str(program), at["mine"] + 4), (str(program), at["main"] + 4)]
        assert locate(places).replace(os.path.relpath(source), str(source)) == expected
    assert locate([("/no/such/file", 4)]) == ""
