"""``warpsmith ptx``: what is in a PTX file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, PtxError
from ..ptx import ast
from .output import Clock, dump_json, duration, size, table
from .parsing import Parser

EXAMPLES = """
  $ws ptx kernel.ptx
  $ws compile kernel.cu | $ws ptx -
  $ws ptx kernel.ptx --opcodes
"""


def main(arguments: Sequence[str]) -> int:
    parser = Parser("ptx", examples=EXAMPLES)
    parser.add_argument("file", help='a PTX file, "-" for stdin')
    parser.add_argument("--opcodes", action="store_true", help="how often each instruction stands in it")
    parser.json()
    options = parser.parse_args(arguments)
    text = _read(options.file)
    clock = Clock()
    from ..ptx.parser import parse

    try:
        module = parse(text, options.file)
    except ast.PtxError as error:
        raise PtxError(str(error)) from None
    seconds = clock.seconds
    data = summary(module)
    if options.json:
        print(dump_json(data))
        return 0
    print(_overview(options.file, text, data, seconds))
    if options.opcodes:
        rows = [(str(count), text) for text, count in data["opcodes"].items()]
        print("\n" + table([("count", "instruction"), *rows], right=[0]))
    return 0


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(errors="replace")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None


def summary(module: ast.Module) -> dict[str, Any]:
    """The module in plain data."""
    opcodes = Counter(i.text for f in module.functions.values() for i in f.instructions())
    return {
        "version": ".".join(map(str, module.version)),
        "target": list(module.target),
        "kernels": [_function(f) for f in module.kernels.values()],
        "functions": [_function(f) for f in module.functions.values() if not f.is_entry and f.body is not None],
        "variables": [
            {"name": v.name, "space": v.space, "bytes": v.size} for v in module.variables.values()
        ],
        "files": list(module.files.values()),
        "opcodes": dict(opcodes.most_common()),
    }  # fmt: skip


def _function(function: ast.Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "instructions": sum(1 for _ in function.instructions()),
        "registers": len(function.registers),
        "parameters": [{"type": p.type, "bytes": p.size} for p in function.params],
        "shared": sum(v.size for v in function.variables if v.space == "shared"),
        "local": sum(v.size for v in function.variables if v.space == "local"),
        "directives": {name: list(values) for name, values in function.directives.items()},
    }


def _overview(file: str, text: str, data: dict[str, Any], seconds: float) -> str:
    rows = [("", "instructions", "registers", "parameters", "shared", "local")]
    for kind in ("kernels", "functions"):
        for f in data[kind]:
            rows.append(
                (
                    ("kernel " if kind == "kernels" else "function ") + f["name"],
                    str(f["instructions"]),
                    str(f["registers"]),
                    str(len(f["parameters"])),
                    f"{f['shared']} B",
                    f"{f['local']} B",
                )
            )
    variables = [(f"{v['space']} {v['name']}", f"{v['bytes']} B") for v in data["variables"]]
    target = ", ".join(data["target"])
    lines = [
        f"{file}: PTX {data['version']} for {target}, {size(len(text))}, parsed in {duration(seconds)}",
        *(f"from {name}" for name in data["files"]),
        "",
        table(rows, right=[1, 2, 3, 4, 5]) if len(rows) > 1 else "no functions",
    ]
    if variables:
        lines += ["", table(variables, right=[1])]
    return "\n".join(lines)
