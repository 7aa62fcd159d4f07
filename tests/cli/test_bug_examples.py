"""The programs of examples/bugs, as the README shows them: each bug is named with its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BUGS = Path(__file__).resolve().parents[2] / "examples" / "bugs"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "off_by_one",
            92,
            [
                "out-of-bounds read of 4 bytes",
                "off_by_one.cu:7",
                "7 |   x[i] = x[i] * x[i];",
                "likely: ",
                "thread (232,0,0) of block (3,0,0)",
            ],
        ),
        ("divergent_barrier", 92, ["deadlock", "divergent_barrier.cu:9", "64 of 128 threads have come"]),
        ("host_reads_device", 139, ["the host program touched device memory", "12 bytes into the 128-byte allocation"]),
    ],
)
def test_bug_is_named(name: str, code: int, said: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "warpsmith", "run", str(BUGS / f"{name}.cu")], capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    for text in said:
        assert text in done.stderr
