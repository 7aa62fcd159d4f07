"""./ws: set-up from nothing, again, interrupted, twice at once, and on machines that lack something.

The real set-up takes a network and a quarter of a minute, and happens whenever the tests are started through
``./ws test``.  Here a stand-in for python3 takes note of what it is asked to do.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Says yes to the version question unless OLD; "-m venv X" makes X with a copy of itself; pip and the native
# build take SLOW seconds and fail when told so; "-m warpsmith" shows that it was reached.
PYTHON = r"""#!/bin/bash
echo "$(basename "$0") $*" >>"$LOG"
case "$*" in
  *"version_info < (3, 11)"*) [[ $OLD != *"$(basename "$0")"* || $0 == */.venv/* ]] ;;
  *"import venv, ensurepip"*) [[ -z $NO_VENV ]] ;;
  *"%d.%d-venv"*) echo python3.11-venv ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip --version") true ;;
  "-m pip install "*)
    echo "Collecting something"
    sleep "${SLOW:-0}"
    if [[ -n $FAIL_PIP ]]; then echo "ERROR: no network" >&2; exit 1; fi ;;
  *native.py) sleep "${SLOW:-0}"; if [[ -n $FAIL_NATIVE ]]; then echo "a.cpp:1: error: bad" >&2; exit 1; fi ;;
  *) echo "python runs: $*" ;;
esac
"""


class Machine:
    """A folder with ws and what its stamps are made of, and a PATH with nothing but a stand-in python3."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.bin, self.log = folder / "repo", folder / "bin", folder / "log"
        package = self.repository / "src" / "warpsmith"
        for part in ("toolchains", "devices/emulator/runtime", "cudart"):
            (package / part).mkdir(parents=True)
        for file in ("ws", "setup.py", "pyproject.toml", "src/warpsmith/toolchains/native.py"):
            shutil.copy(ROOT / file, self.repository / file)
        self.cpp = package / "devices/emulator/runtime/a.cpp"
        self.cpp.write_text("int a;\n")
        self.bin.mkdir()
        for tool in (
            "bash basename cat cp cut dirname env flock mkdir readlink rm sed sha256sum sleep tail tr"
        ).split():
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)
        self.program("g++", "#!/bin/bash\n")
        self.program("python3", PYTHON)
        self.environment = {"PATH": str(self.bin), "LOG": str(self.log), "HOME": str(folder)}

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        self.log.write_text("")
        return subprocess.Popen(
            [self.repository / "ws", *arguments],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    @property
    def steps(self) -> list[str]:
        """What python was asked to do besides answering questions."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if "-c import sys" not in line and "import venv" not in line]

    def did(self, what: str) -> bool:
        return any(what in step for step in self.steps)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_first_call_sets_up_and_the_second_only_runs(machine: Machine) -> None:
    first = machine("run", "a b.cu", "--", "x")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == "python runs: -P -m warpsmith run a b.cu -- x\n"
    assert machine.did("-m venv")
    assert machine.did("pip install")
    second = machine()
    assert second.stdout == "python runs: -P -m warpsmith\n"
    assert machine.steps == ["python -P -m warpsmith"]


def test_it_says_how_it_was_called(machine: Machine) -> None:
    machine.program("python3", PYTHON.replace('"python runs: $*"', '"$WARPSMITH_PROGRAM"'))
    assert machine().stdout == f"{machine.repository}/ws\n"


def test_the_program_gets_our_exit_code_and_input(machine: Machine) -> None:
    machine.program("python3", PYTHON.replace('echo "python runs: $*"', "cat; exit 77"))
    machine()
    done = subprocess.run(
        [machine.repository / "ws"], env=machine.environment, input="hello", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (77, "hello")


def test_changed_sources_are_built_changed_packages_installed(machine: Machine) -> None:
    machine()
    machine.cpp.write_text("int b;\n")
    assert machine().returncode == 0
    assert machine.did("native.py")
    assert not machine.did("pip install")
    with (machine.repository / "pyproject.toml").open("a") as file:
        file.write("\n[tool.ruff.format]\n")  # nothing that is installed
    machine()
    assert machine.steps == ["python -P -m warpsmith"]
    setup = machine.repository / "setup.py"
    setup.write_text(setup.read_text() + "\n# new\n")
    machine()
    assert machine.did("pip install")
    assert not machine.did("-m venv")


def test_a_moved_repository_is_installed_again(machine: Machine, tmp_path: Path) -> None:
    machine()
    machine.repository = machine.repository.rename(tmp_path / "moved")
    assert machine().returncode == 0
    assert machine.did("pip install")


def test_through_a_symbolic_link(machine: Machine, tmp_path: Path) -> None:
    machine()
    link = tmp_path / "bin" / "warpsmith-here"
    link.symlink_to(machine.repository / "ws")
    machine.log.write_text("")
    done = subprocess.run([link], env=machine.environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert machine.steps == ["python -P -m warpsmith"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_set_up_that_was_broken_off_is_made_anew(machine: Machine, number: int) -> None:
    process = machine.start(SLOW="30")
    until = time.monotonic() + 20
    while not machine.did("pip install") and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=20)
    assert process.returncode != 0
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert "interrupted" in err
    left = machine.repository / ".venv" / "left-behind"
    left.touch()
    assert machine().returncode == 0
    assert machine.did("-m venv")
    assert machine.did("pip install")
    assert not left.exists()


def test_a_failed_installation_shows_the_end_of_its_log_and_is_tried_again(machine: Machine) -> None:
    done = machine(FAIL_PIP="yes")
    assert done.returncode == 86
    assert done.stderr.splitlines()[0].startswith("warpsmith: installing into .venv")
    assert "failed; the last lines of" in done.stderr
    assert done.stderr.endswith("Collecting something\nERROR: no network\n")
    assert done.stdout == ""
    assert machine().returncode == 0
    assert machine.did("pip install")
    assert not machine.did("-m venv")  # pip ended by itself, so .venv is sound


def test_failed_libraries_show_the_compilers_words(machine: Machine) -> None:
    machine()
    machine.cpp.write_text("int c\n")
    done = machine(FAIL_NATIVE="yes")
    assert done.returncode == 86
    assert done.stderr.endswith("a.cpp:1: error: bad\n")
    assert machine().returncode == 0
    assert machine.did("native.py")


def test_progress_is_said_when_it_takes_long(machine: Machine) -> None:
    done = machine(SLOW="3")
    assert done.returncode == 0
    assert done.stderr == "warpsmith: installing into .venv (CUDA compilers and LLVM: about 400 MB, once) ...\n"


def test_two_calls_at_once_install_once(machine: Machine) -> None:
    first = machine.start("one", SLOW="2")
    time.sleep(0.5)
    second = subprocess.Popen(
        [machine.repository / "ws", "two"],
        env=machine.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = second.communicate(timeout=30)
    first.communicate(timeout=30)
    assert (first.returncode, second.returncode) == (0, 0)
    assert out == "python runs: -P -m warpsmith two\n"
    assert "waiting for another call" in err
    assert sum("pip install" in step for step in machine.steps) == 1


def test_an_environment_of_somebody_else_is_used_and_never_deleted(machine: Machine) -> None:
    bin = machine.repository / ".venv" / "bin"
    bin.mkdir(parents=True)
    (bin / "python").write_text(PYTHON)
    (bin / "python").chmod(0o755)
    mine = bin / "mine"
    mine.touch()
    assert machine().returncode == 0
    assert not machine.did("-m venv")
    process = machine.start(SLOW="30")
    process.communicate(timeout=20)
    setup = machine.repository / "setup.py"
    setup.write_text(setup.read_text() + "\n# new\n")
    process = machine.start(SLOW="30")
    time.sleep(1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert machine().returncode == 0
    assert mine.exists()
    (bin / "python").unlink()
    done = machine()
    assert done.returncode == 86
    assert "was not made by ./ws; remove or rename it" in done.stderr
    assert mine.exists()


def test_no_python(machine: Machine) -> None:
    (machine.bin / "python3").unlink()
    done = machine()
    assert done.returncode == 86
    assert done.stderr == (
        "warpsmith: Python 3.11 or newer is needed (looked for python3, python3.13, python3.12, python3.11)\n"
    )


def test_an_old_python3_beside_a_newer_one(machine: Machine) -> None:
    machine.program("python3.12", PYTHON)
    assert machine(OLD="python3").returncode == 0
    assert machine.did("python3.12 -m venv")


def test_a_python_that_went_away(machine: Machine) -> None:
    machine()
    (machine.repository / ".venv/bin/python").unlink()
    assert machine().returncode == 0
    assert machine.did("-m venv")


def test_only_an_old_python(machine: Machine) -> None:
    done = machine(OLD="python3")
    assert done.returncode == 86
    assert "Python 3.11 or newer is needed" in done.stderr


def test_no_venv_module(machine: Machine) -> None:
    done = machine(NO_VENV="yes")
    assert done.returncode == 86
    assert (
        done.stderr == "warpsmith: python3 has no venv module; on Debian or Ubuntu: sudo apt install python3.11-venv\n"
    )


def test_no_compiler(machine: Machine) -> None:
    (machine.bin / "g++").unlink()
    done = machine()
    assert done.returncode == 86
    assert done.stderr == "warpsmith: no C++ compiler found (g++); on Debian or Ubuntu: sudo apt install g++\n"


def test_without_flock(machine: Machine) -> None:
    (machine.bin / "flock").unlink()
    assert machine().returncode == 0


def test_tests_install_their_extra_once(machine: Machine) -> None:
    machine.program(
        "python3", PYTHON.replace('  *) echo "python runs: $*" ;;', '  *) echo "$*"; [[ "$*" != *"$BAD"* ]] ;;')
    )
    done = machine("test", BAD="nothing")
    assert done.returncode == 0
    assert any("[cuda,test]" in step for step in machine.steps)
    assert done.stdout.splitlines() == ["-m ruff check .", "-m mypy", "-m pytest -n 2"]
    done = machine("test", "tests/cli", "-k", "x", BAD="nothing")
    assert done.stdout == "-m pytest tests/cli -k x\n"
    assert not machine.did("pip install")
    for tool in ("ruff", "mypy", "pytest"):  # one that fails hides none of the others
        done = machine("test", BAD=tool)
        assert done.returncode == 1
        assert len(done.stdout.splitlines()) == 3


def test_benchmarks(machine: Machine) -> None:
    folder = machine.repository / "benchmarks"
    folder.mkdir()
    (folder / "speed.py").write_text("")
    assert machine("bench").stdout == "benchmarks:\n  ./ws bench speed\n"
    assert machine("bench", "speed", "--x").stdout == f"python runs: {folder}/speed.py --x\n"
    done = machine("bench", "none")
    assert (done.returncode, done.stderr) == (80, "warpsmith: there is no benchmark none; ./ws bench lists them\n")


def test_it_costs_next_to_nothing(machine: Machine) -> None:
    machine()

    def seconds() -> float:
        """Of processor time, which other work on the machine leaves alone."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        machine()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.1
