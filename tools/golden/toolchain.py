"""PTX -> machine code with ptxas, leaving out the forms that it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from .kernels import HEADER, Kernel, kernels, module

ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


class Refused(Exception):
    """A module that does not compile: the message of each line that is at fault."""

    def __init__(self, log: str) -> None:
        self.log = log
        self.lines = {int(m[1]): m[2].strip() for m in ERROR.finditer(log)}
        super().__init__(log.strip().splitlines()[0] if log.strip() else "no message")


def find_ptxas() -> str | None:
    """ptxas of $PTXAS, of the PATH, of $CUDA_HOME or of /usr/local/cuda."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    candidates = [os.environ.get("PTXAS"), shutil.which("ptxas"), *(f"{home}/bin/ptxas" for home in homes if home)]
    return next((c for c in candidates if c and Path(c).exists()), None)


def ptxas_version(ptxas: str) -> str:
    out = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    return str(re.findall(r"V[\d.]+", out)[-1])


def assemble(ptxas: str, text: str, level: int, arch: str = "sm_90a") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        command = [ptxas, f"-arch={arch}", f"-O{level}", str(source), "-o", str(target)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise Refused(run.stdout + run.stderr)
        return target.read_bytes()


def build(family: str, compile_text: Callable[[str], bytes]) -> tuple[list[Kernel], bytes, dict[str, str]]:
    """A family's kernels that compile, their machine code, and the messages for the forms that do not."""
    refused: dict[str, str] = {}
    while True:
        chosen = list(kernels(family, frozenset(refused)))
        if not chosen:
            return [], b"", refused
        try:
            return chosen, compile_text(module(chosen)), refused
        except Refused as e:
            blamed = blame(chosen, e)
            if not blamed:
                raise
            refused.update(blamed)


def blame(chosen: list[Kernel], error: Refused) -> dict[str, str]:
    """The forms on the lines that a compiler complains about."""
    found: dict[str, str] = {}
    line = HEADER.count("\n") + 1
    for k in chosen:
        owners = k.lines(line)
        for at, message in error.lines.items():
            if at in owners:
                found.setdefault(owners[at].key, message)
        line += k.text.count("\n")
    return found
