"""The commands, as a person meets them: what they say and how they end."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import warpsmith
from warpsmith import chips, errors
from warpsmith.cli.help import exit_codes
from warpsmith.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
KERNEL = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1.0f; }\n'


class Run:
    """Runs a command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        try:
            code = main(arguments)
        except SystemExit as end:  # argparse after --help
            code = int(end.code or 0)
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        return code


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    from warpsmith.toolchains import cache

    monkeypatch.setenv("WARPSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WARPSMITH_PROGRAM", raising=False)
    cache.default_cache.cache_clear()
    monkeypatch.chdir(tmp_path)
    return Run(capsys)


def test_alone_it_says_what_it_is_and_what_to_try(run: Run) -> None:
    assert run() == 0
    assert "runs CUDA programs on any machine" in run.out
    for command in COMMANDS:
        assert f"\n  {command} " in run.out
    assert run("--help") == 0
    assert run("help") == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(command: str, run: Run) -> None:
    assert run(command, "--help") == 0
    assert "warpsmith " + command in run.out
    if command not in ("version", "help"):
        assert "examples:" in run.out
        assert COMMANDS[command] in run.out


def test_unknown_commands(run: Run) -> None:
    assert run("chps") == 2
    assert run.err == "warpsmith: there is no command chps (did you mean chips?); warpsmith help lists them\n"
    assert run("saxpy.cu") == 2
    assert "to run a program: warpsmith run saxpy.cu" in run.err
    assert run("chips", "--frobnicate") == 2
    assert "see warpsmith chips --help" in run.err
    assert run("help", "nonsense") == 2


def test_version(run: Run) -> None:
    assert run("--version") == 0
    assert run.out.startswith(f"warpsmith {warpsmith.__version__}, python 3.")
    assert run("version", "--json") == 0
    assert json.loads(run.out)["nvcc"].startswith("13.0.")


def test_chips(run: Run) -> None:
    assert run("chips") == 0
    assert len(run.out.splitlines()) == len(chips.ids()) + 3
    assert run("chips", "RTX 4090") == 0
    assert "compute capability 8.9" in run.out
    assert run("chips", "--json") == 0
    assert [chip["id"] for chip in json.loads(run.out)] == chips.ids()
    assert run("chips", "h200", "--json") == 0
    assert json.loads(run.out)["sm_count"] == 132
    assert run("chips", "h20") == 88
    assert run.err.startswith("warpsmith: there is no chip 'h20' (did you mean h200?)")


def test_occupancy(run: Run) -> None:
    assert run("occupancy", "--threads", "256", "--registers", "40", "--shared", "16384") == 0
    assert "6 blocks of 256 threads on an SM, 48 of 64 warps: 75.0 %, limited by registers" in run.out
    assert run("occupancy", "--sweep", "--chip", "t4") == 0
    assert len(run.out.splitlines()) == 33
    assert run("occupancy", "--json") == 0
    assert json.loads(run.out)["limiters"] == ["warps per SM"]
    assert run("occupancy", "--shared", "999999") == 0
    assert "does not fit on an SM (shared memory)" in run.out
    assert run("occupancy", "--threads", "0") == 2
    assert run("occupancy", "--threads", "many") == 2


def test_compile(run: Run, tmp_path: Path) -> None:
    Path("k.cu").write_text(KERNEL)
    assert run("compile", "k.cu", "--chip", "a100") == 0
    assert ".target sm_80" in run.out
    assert run("compile", "k.cu", "-o", "k.ptx", "-DN=1", "-O3", "-I.", "--use_fast_math") == 0
    assert run.out == ""
    assert ".entry add" in Path("k.ptx").read_text()
    assert run("compile", "k.cu", "-o", "none/k.ptx") == 94
    assert run("compile", "none.cu") == 80
    assert run("compile") == 2
    assert run("compile", "k.cu", "--frobnicate") == 2
    Path("bad.cu").write_text("__global__ void k() {\n  x = 1;\n}\n")
    assert run("compile", "bad.cu") == 82
    assert run.err.startswith('bad.cu(2): error: identifier "x" is undefined\n')


def test_compile_turns_to_nvcc_for_host_code(run: Run) -> None:
    Path("p.cu").write_text("#include <vector>\n" + KERNEL + "int main() { add<<<1, 1>>>(nullptr); }\n")
    assert run("compile", "p.cu", "-std=c++20", "-fmad=false") == 0
    assert ".entry add" in run.out
    assert run("compile", "p.cu", "--toolchain", "nvrtc") == 82


def test_ptx(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("k.cu").write_text(KERNEL)
    assert run("compile", "k.cu", "-o", "k.ptx") == 0
    assert run("ptx", "k.ptx", "--opcodes") == 0
    assert "kernel add" in run.out
    assert "ld.global.f32" in run.out
    assert run("ptx", "k.ptx", "--json") == 0
    data = json.loads(run.out)
    assert data["kernels"][0]["name"] == "add"
    assert data["opcodes"]["add.f32"] == 1
    Path("bad.ptx").write_text(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k( {\n")
    assert run("ptx", "bad.ptx") == 89
    assert re.fullmatch(r"warpsmith: bad\.ptx:4: .*\n", run.err)
    assert run("ptx", "none.ptx") == 80


def test_cache(run: Run) -> None:
    Path("k.cu").write_text(KERNEL)
    assert run("compile", "k.cu", "-o", "k.ptx") == 0
    assert run("cache", "--json") == 0
    assert json.loads(run.out)["entries"] == 1
    assert run("cache", "--clear") == 0
    assert "removed 1 entries" in run.out
    assert run("cache") == 0
    assert ": 0 entries, 0 B of at most 2 GiB" in run.out


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpsmith.toolchains import toolkit

    run("doctor", "--json")
    findings = {finding["what"]: finding for finding in json.loads(run.out)}
    for what in ("python", "numpy", "llvmlite", "ml_dtypes", "CUDA compilers", "C++ compiler", "cache"):
        assert findings[what]["ok"], findings[what]
    monkeypatch.setenv("PATH", "/nowhere")
    toolkit.host_compiler.cache_clear()
    try:
        assert run("doctor") == 86
    finally:
        toolkit.host_compiler.cache_clear()
    assert "sudo apt install g++" in run.out


def test_run_checks_its_input_before_anything_else(run: Run) -> None:
    Path("k.cu").write_text(KERNEL)
    assert run("run") == 2
    assert "no source file given" in run.err
    assert run("run", "nope.cu") == 80
    assert run("run", "k.cu", "--chip", "h300") == 88
    assert run("run", "k.cu", "--mode", "slow") == 2
    assert run("run", "k.cu", "--chip") == 2
    assert run("run", "k.cu", "-c") == 2
    Path("notes.txt").write_text("")
    assert run("run", "notes.txt") == 81
    assert "is not CUDA" in run.err
    Path("bad.cu").write_text("int main() { return x; }\n")
    assert run("run", "bad.cu") == 82
    assert run.err.startswith('bad.cu(1): error: identifier "x" is undefined')


def test_missing_packages_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpsmith.toolchains import toolkit

    monkeypatch.setattr(toolkit, "_candidates", lambda: iter(()))
    toolkit.toolkit.cache_clear()
    try:
        Path("k.cu").write_text(KERNEL)
        for command in ("compile", "run"):
            assert run(command, "k.cu") == 86
            assert run.err == 'warpsmith: the CUDA compilers are not installed; pip install "warpsmith[cuda]"\n'
        assert run("version") == 0
    finally:
        toolkit.toolkit.cache_clear()


def test_codes_are_distinct_and_documented(run: Run) -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    codes = [kind.code for kind in kinds if issubclass(kind, errors.WarpsmithError)]
    assert len(codes) == len(set(codes))
    assert run("help", "exit-codes") == 0
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    for code, meaning in exit_codes():
        assert f"| {code} | {meaning} |" in page
        assert meaning in run.out


# ---- as processes ---------------------------------------------------------------------------------------


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-P", "-m", "warpsmith", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


def test_listing_loads_no_heavy_library() -> None:
    code = (
        "import sys; from warpsmith.cli.main import main; main({arguments!r});"
        "print([m for m in ('numpy', 'llvmlite', 'ml_dtypes', 'importlib.metadata') if m in sys.modules])"
    )
    for arguments in (["chips"], ["occupancy"], ["cache"], ["version"], ["help"], []):
        done = subprocess.run(
            [sys.executable, "-c", code.format(arguments=arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        assert done.stdout.splitlines()[-1] == "[]", (arguments, done.stdout, done.stderr)


def test_importing_the_package_is_nearly_free() -> None:
    code = "import sys; before = set(sys.modules); import warpsmith; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert not {"numpy", "llvmlite", "json", "tomllib", "warpsmith.chips"} & set(eval(done.stdout))


def test_it_starts_fast() -> None:
    def seconds() -> float:
        """Of processor time, which other work on the machine leaves alone."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert process("chips").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


def test_a_reader_that_leaves_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    line = f"{sys.executable} -m warpsmith chips --json | head -c 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("[", "")


def test_an_unwritable_cache_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "file").write_text("")
    os.environ["WARPSMITH_CACHE"] = str(tmp_path / "file" / "below")
    try:
        done = process("compile", "k.cu", cwd=tmp_path)
    finally:
        del os.environ["WARPSMITH_CACHE"]
    assert done.returncode == 95
    assert done.stderr.count("\n") == 1
    assert "set WARPSMITH_CACHE to another folder" in done.stderr
