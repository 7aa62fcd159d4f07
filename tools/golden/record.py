"""Run every form on the first GPU and write its results.

    PYTHONPATH=tools python3 -m golden.record --to FOLDER [--family NAME]...

Needs Python, numpy and NVIDIA's driver; ptxas is used where there is one, else the driver's own compiler.
Every kernel is compiled with and without optimisation and launched twice; where that changes a result, it is noted.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from . import forms, operands, store, toolchain
from .forms import Form
from .kernels import Kernel, results
from .nvidia import Gpu
from .operands import Array

LEVELS = (3, 0)
Built = tuple[list[Kernel], bytes | c_void_p, dict[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="golden.record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where to write")
    parser.add_argument(
        "--family", action="append", choices=forms.FAMILIES, help="only these families; the others stay as they are"
    )
    parser.add_argument(
        "--driver-compiler", action="store_true", help="compile with the driver, even if there is a ptxas"
    )
    chosen = parser.parse_args()
    families = tuple(chosen.family or forms.FAMILIES)
    chosen.to.mkdir(parents=True, exist_ok=True)
    gpu = Gpu()
    ptxas = None if chosen.driver_compiler else toolchain.find_ptxas()
    built = build(gpu, ptxas, families)
    index: dict[str, Any] = {
        **gpu.describe(),
        "ptxas": toolchain.ptxas_version(ptxas) if ptxas else "the driver's",
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python3", "-m", "golden.record", *sys.argv[1:]]),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "families": {},
    }
    if chosen.family and (chosen.to / store.INDEX).exists():
        index["families"] = store.read_index(chosen.to)["families"]
    for family in families:
        start = time.perf_counter()
        index["families"][family] = record(gpu, family, built, chosen.to)
        f = index["families"][family]
        print(
            f"{family}: {len(f['forms']) - len(f['by_level'])} forms, {f['sets']} operand sets, {len(f['refused'])} refused,"
            f" {len(f['by_level'])} depend on the optimisation level, {time.perf_counter() - start:.1f} s"
        )
    order = [name for name in forms.FAMILIES if name in index["families"]]
    index["families"] = {name: index["families"][name] for name in order}
    store.write_index(chosen.to, index)


def build(gpu: Gpu, ptxas: str | None, families: tuple[str, ...]) -> dict[tuple[str, int], Built]:
    """Machine code of every family at every level."""
    wanted = [(family, level) for family in families for level in LEVELS]
    if ptxas is None:
        out: dict[tuple[str, int], Built] = {}
        for family, level in wanted:
            # the driver gives a module, not bytes: the last one compiled is the one without refused forms
            modules: list[c_void_p] = []

            def compile_text(text: str, level: int = level, modules: list[c_void_p] = modules) -> bytes:
                modules.append(gpu.compile(text, level))
                return b""

            kernels, _, refused = toolchain.build(family, compile_text)
            out[family, level] = kernels, modules[-1] if modules else b"", refused
        return out

    def one(key: tuple[str, int]) -> Built:
        return toolchain.build(key[0], lambda text: toolchain.assemble(ptxas, text, key[1]))

    with ThreadPoolExecutor() as pool:
        return dict(zip(wanted, pool.map(one, wanted), strict=True))


def record(gpu: Gpu, family: str, built: dict[tuple[str, int], Built], folder: Path) -> dict[str, Any]:
    """Run a family and write its file; gives its part of the index."""
    found = {level: launch(gpu, *built[family, level][:2]) for level in LEVELS}
    first, second = (found[level] for level in LEVELS)
    rows = list(first.values())
    differ = {}
    for key, (form, values) in first.items():
        other = second[key][1]
        count = int(sum(np.count_nonzero(a != b) for a, b in zip(values, other, strict=True)))
        if count:
            differ[key] = count
            rows.append((form.unoptimised, other))
    return {
        "sets": sum(f.sets for f, _ in first.values()),
        "inputs": {" ".join(ins): operands.digest(ins) for ins in dict.fromkeys(f.ins for f, _ in rows)},
        "refused": built[family, LEVELS[0]][2],
        "by_level": differ,
        "forms": store.save(folder, family, rows) if rows else [],
    }


def launch(gpu: Gpu, kernels: list[Kernel], code: bytes | c_void_p) -> dict[str, tuple[Form, tuple[Array, ...]]]:
    if not kernels:
        return {}
    module = gpu.load(code) if isinstance(code, bytes) else code
    found = {}
    for kernel in kernels:
        data = gpu.launch(module, kernel)
        if gpu.launch(module, kernel) != data:
            raise SystemExit(f"{kernel.name}: two launches gave different results")
        for form, values in results(kernel, data):
            found[form.key] = form, values
    return found


if __name__ == "__main__":
    main()
