"""Whole programs as people write them, through the public command; and programs with planted mistakes.

A program's first lines may say ``// options: ...`` (for the compiler) and ``// refused: N`` (so many of its calls are wrong on
purpose, and are reported).  Next to it stands ``NAME.out`` with what it prints, if it does not judge itself: its last
line then begins with PASS.  All of them have run on an H200, which prints the same.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUGS = HERE / "bugs"
CASES: list[dict[str, Any]] = tomllib.loads((BUGS / "cases.toml").read_text())["case"]
#: Each file is a program, and each folder of several.
PROGRAMS = {p.stem: [p] for p in HERE.iterdir() if p.suffix in (".cu", ".cpp")} | {
    name: sorted(p for p in (HERE / name).iterdir() if p.suffix in (".cu", ".cpp"))
    for name in ("two_files", "separate_compilation")
}
SEGMENTATION_FAULT, KERNEL_ERROR = 139, 92


@dataclass
class Ran:
    returncode: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def problems(self) -> list[dict[str, Any]]:
        return list(self.report["problems"])


Runner = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """``run(paths, *options, args=[...])``: ``warpsmith run`` as a process."""

    def runner(paths: list[Path], *options: str, args: list[str] | None = None) -> Ran:
        report = tmp_path / "report.json"
        command = [sys.executable, "-P", "-m", "warpsmith", "run", *map(str, paths), *options, "--json", str(report)]
        done = subprocess.run(
            [*command, "--", *(args or [])],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            cwd=tmp_path,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert report.exists(), done.stderr
        return Ran(done.returncode, done.stdout, done.stderr, json.loads(report.read_text()))

    return runner


def header(path: Path, name: str) -> str:
    found = re.search(rf"^// {name}: (.*)$", path.read_text(), re.MULTILINE)
    return found[1] if found else ""


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str, run: Runner) -> None:
    paths = PROGRAMS[name]
    options = " ".join(header(p, "options") for p in paths).split()
    refused = int(header(paths[0], "refused") or 0)
    ran = run(paths, *options)
    said = ran.out + ran.err
    expected = paths[0].with_suffix(".out")
    if expected.exists():
        assert ran.out == expected.read_text(), said
    else:
        assert ran.out.splitlines()[-1:] and ran.out.splitlines()[-1].startswith("PASS"), said
    assert ran.report["program_exit_code"] == 0, said
    assert len(ran.problems) == refused, said
    assert ran.returncode == 0 or (refused and ran.returncode == KERNEL_ERROR), said


@pytest.mark.parametrize(
    "name", ["reduction_steps", "radix_sort", "locks_and_queues", "cooperative_groups", "half_precision"]
)
def test_without_checks_in_another_order(name: str, run: Runner) -> None:
    ran = run(PROGRAMS[name], "--mode", "fast", "--order", "random", "--seed", "7")
    assert ran.out.startswith("PASS"), ran.out + ran.err
    assert (ran.returncode, ran.problems) == (0, [])


def test_there_are_many_programs() -> None:
    assert len(PROGRAMS) >= 40
    assert {case["program"] for case in CASES} == {p.stem for p in BUGS.glob("*.cu")}


def line_number(case: dict[str, Any]) -> int:
    """Where the case's line stands in its program: there and nowhere else."""
    lines = (BUGS / f"{case['program']}.cu").read_text().splitlines()
    (number,) = [i for i, text in enumerate(lines, 1) if text.strip() == case["line"]]
    return number


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['program']}-{case['name']}")
def test_planted_bug(case: dict[str, Any], run: Runner) -> None:
    ran = run([BUGS / f"{case['program']}.cu"], "--cores", "1", args=[case["name"]])
    if case["kind"] == "signal":
        assert ran.returncode == SEGMENTATION_FAULT
        message = ran.err
    else:
        assert ran.returncode == KERNEL_ERROR, ran.err
        (problem,) = ran.problems
        message = problem["message"]
        assert problem["kind"] == case["kind"], message
        if "line" in case:
            assert Path(problem["file"]).name == f"{case['program']}.cu"
            assert problem["line"] == line_number(case), message
        if "thread" in case:
            assert (problem["block"], problem["thread"]) == (case["block"], case["thread"]), message
    if "error" in case:
        assert ran.out == case["error"] + "\n"
    for part in case.get("says", ()):
        assert part in message


@pytest.mark.parametrize("program", sorted({case["program"] for case in CASES}))
def test_correct_look_alikes_are_not_accused(program: str, run: Runner) -> None:
    by_program = {key: list(cases) for key, cases in groupby(CASES, key=lambda case: case["program"])}
    names = [f"{case['name']}_right" for case in by_program[program]]
    ran = run([BUGS / f"{program}.cu"], args=names)
    assert (ran.returncode, ran.problems) == (0, []), ran.out + ran.err
    assert ran.out.splitlines().count("cudaSuccess") == len(names)
