"""Compiles and runs whole programs, as ``warpsmith run`` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from warpsmith.chips import load
from warpsmith.devices.emulator.service import RunOptions, RunResult, run_program
from warpsmith.toolchains import nvcc
from warpsmith.toolchains.options import parse


@dataclass
class Ran:
    out: str
    err: str
    result: RunResult


Runner = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Runner:
    """``run(source text or paths, *compiler options, args=..., chip=..., mode=...)``."""

    def runner(
        source: str | Path | Sequence[Path],
        *options: str,
        args: Sequence[str] = (),
        chip: str = "h200",
        mode: str = "check",
        threads: int = 0,
    ) -> Ran:
        if isinstance(source, str):
            path = tmp_path / "program.cu"
            path.write_text(source)
            source = path
        files = [source] if isinstance(source, Path) else list(source)
        program = nvcc.build(parse([*map(str, files), *options]), chip)
        sys.stdout.flush()
        capfd.readouterr()
        result = run_program(program.path, list(args), load(chip), RunOptions(mode=mode, threads=threads))
        out, err = capfd.readouterr()
        return Ran(out, err, result)

    return runner
