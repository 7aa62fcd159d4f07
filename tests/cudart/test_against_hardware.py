"""The answers of the runtime API, compared with what an H200 gave to the same programs."""

from __future__ import annotations

import struct
from pathlib import Path

from conftest import Runner

GOLDEN = Path(__file__).parent / "golden"


def recorded(name: str) -> list[str]:
    return (GOLDEN / f"{name}.h200.txt").read_text().splitlines()


def test_errors(run: Runner) -> None:
    ran = run(GOLDEN / "errors.cu", "-w")
    assert ran.out.splitlines() == recorded("errors")
    assert ran.result.returncode == 0


def test_capture_of_streams(run: Runner) -> None:
    assert run(GOLDEN / "capture.cu", "-w").out.splitlines() == recorded("capture")


def test_properties(run: Runner) -> None:
    """All but where the card is plugged in."""
    place = ("pciBusID", "pciDeviceID", "gpuPciDeviceID", "gpuPciSubsystemID", "33", "34", "139", "140")

    def chip(lines: list[str]) -> list[str]:
        return [line for line in lines if line.split()[1] not in place]

    assert chip(run(GOLDEN / "properties.cu").out.splitlines()) == chip(recorded("properties"))


def test_order_of_output(run: Runner) -> None:
    """What kernels print comes out where the host waits.  What is left at the end is lost on a GPU, shown here."""
    assert run(GOLDEN / "order.cu").out.splitlines() == [*recorded("order"), "kernel 8 thread 0"]


def test_other_chips_have_their_own_limits(run: Runner) -> None:
    source = """
        #include <cstdio>
        #include <cuda_runtime.h>
        __global__ void empty() {}
        int main() {
          cudaDeviceProp p;
          cudaGetDeviceProperties(&p, 0);
          printf("%s %d.%d %d %zu\\n", p.name, p.major, p.minor, p.multiProcessorCount, p.sharedMemPerBlockOptin);
          for (int kib : {64, 65, 99, 100}) {
            cudaFuncSetAttribute(empty, cudaFuncAttributeMaxDynamicSharedMemorySize, kib << 10);
            printf("%d %s\\n", kib, cudaGetErrorName(cudaGetLastError()));
          }
          int n;
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, empty, 256, 0);
          printf("%d\\n", n);
        }
    """
    ok, bad = "cudaSuccess", "cudaErrorInvalidValue"
    assert run(source, chip="rtx4090").out.splitlines() == [
        "NVIDIA GeForce RTX 4090 8.9 128 101376", f"64 {ok}", f"65 {ok}", f"99 {ok}", f"100 {bad}", "6",
    ]  # fmt: skip
    assert run(source, chip="t4").out.splitlines() == [
        "Tesla T4 7.5 40 65536", f"64 {ok}", f"65 {bad}", f"99 {bad}", f"100 {bad}", "4",
    ]  # fmt: skip


def test_textures(run: Runner) -> None:
    """Bit for bit, but for some roundings: of weights in three dimensions, and of filtered signed bytes."""

    def numbers(words: list[str]) -> list[float]:
        return [float(struct.unpack("<f", int(word, 16).to_bytes(4, "little"))[0]) for word in words]

    ours, theirs = run(GOLDEN / "textures.cu", "-w").out.splitlines(), recorded("textures")
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        loose = 0.03 if b.startswith("3d") and " linear " in b else 0.004 if b.startswith("s8") else 0
        if not loose:
            assert a == b
            continue
        head = len(b.split()) - 64
        pairs = list(zip(numbers(a.split()[head:]), numbers(b.split()[head:]), strict=True))
        assert all(abs(x - y) <= loose for x, y in pairs)
        assert sum(x != y for x, y in pairs) <= (3 if b.startswith("3d") else 9)
