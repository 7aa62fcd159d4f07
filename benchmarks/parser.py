"""Speed of the PTX front end: megabytes of PTX parsed a second on one core, and the time of the analyses.

The text is every sample of tests/ptx several times over, as one module (names made different), so it has the mix of
nvcc, Triton, CuTe, Numba and Mojo.  More files can be given:  python benchmarks/parser.py [FILE.ptx ...]
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from warpsmith.ptx import cfg, dataflow, parse
from warpsmith.ptx.ast import Module

ROOT = Path(__file__).parent.parent
REPEATS = 5


def renamed(text: str, suffix: str) -> str:
    """A sample without its header, its functions and variables under other names."""
    module = parse(text)
    names = {*module.functions, *module.variables} - {"vprintf", "__assertfail"}
    body = text[re.search(r"\.address_size\s+64", text).end() :]  # type: ignore[union-attr]
    if not names:
        return body
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<![\w$%])({words})(?![\w$])", rf"\g<1>{suffix}", body)


def big() -> str:
    samples = [p.read_text() for p in sorted((ROOT / "tests" / "ptx" / "samples").glob("*.ptx"))]
    parts = [renamed(text, f"_{k}_{n}") for k in range(REPEATS) for n, text in enumerate(samples)]
    return ".version 9.0\n.target sm_100a\n.address_size 64\n" + "\n".join(parts)


def measure(name: str, text: str) -> None:
    times = []
    for _ in range(3):
        start = time.process_time()
        module = parse(text, name)
        times.append(time.process_time() - start)
    best, size = min(times), len(text) / 1e6
    functions = [f for f in module.functions.values() if f.body is not None]
    count = sum(1 for f in functions for _ in f.instructions())
    analysis = analyse(module)
    print(f"{name}: {size:.2f} MB, {count} instructions: {size / best:.1f} MB/s, {best / max(count, 1) * 1e6:.1f} us an "
          f"instruction; graph, liveness and uniformity {analysis / max(count, 1) * 1e6:.1f} us an instruction")  # fmt: skip


def analyse(module: Module) -> float:
    start = time.process_time()
    for function in module.functions.values():
        if function.body is not None:
            graph = cfg.build(function)
            dataflow.liveness(function, graph)
            dataflow.uniformity(function, graph, module)
    return time.process_time() - start


if __name__ == "__main__":
    measure("samples", big())
    for path in sys.argv[1:]:
        measure(Path(path).name, Path(path).read_text(errors="surrogateescape"))
