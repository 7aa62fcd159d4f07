"""``warpsmith nvcc`` as builds call it: a command of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WARPSMITH = [sys.executable, "-m", "warpsmith"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sh(tmp_path: Path) -> Run:
    """``sh(command, NAME=value...)``: runs it in the test's folder; ``$ws`` in it is warpsmith."""

    def run(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "ws": shlex.join(WARPSMITH), **variables}
        return subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of project/ in the test's folder."""
    shutil.copytree(Path(__file__).parent / "project", tmp_path, dirs_exist_ok=True)
    return tmp_path
