"""``warpsmith occupancy``: the theoretical occupancy of a block, with the sum that leads to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..chips import Chip, load
from ..chips.occupancy import Occupancy, by_block_size, occupancy
from ..errors import UsageError
from .output import dump_json, table
from .parsing import Parser

EXAMPLES = """
  $ws occupancy --threads 256 --registers 40 --shared 16384
  $ws occupancy --registers 64 --sweep             every block size
  $ws occupancy --threads 512 --chip rtx4090 --json
"""


def main(arguments: Sequence[str]) -> int:
    parser = Parser("occupancy", examples=EXAMPLES)
    parser.add_argument("--threads", type=int, default=256, metavar="N", help="a block (256)")
    parser.add_argument("--registers", type=int, default=0, metavar="N", help="a thread (0: not counted)")
    parser.add_argument("--shared", type=int, default=0, metavar="BYTES", help="a block, static and dynamic (0)")
    parser.add_argument("--sweep", action="store_true", help="for every block size instead of --threads")
    parser.chip()
    parser.json()
    options = parser.parse_args(arguments)
    chip = load(options.chip)
    if options.threads < 1 or options.registers < 0 or options.shared < 0:
        raise UsageError("--threads must be at least 1, --registers and --shared at least 0")
    if options.sweep:
        steps = list(by_block_size(chip, options.registers, options.shared))
        if options.json:
            print(dump_json([{"threads": step.threads, **_data(step.result)} for step in steps]))
        else:
            rows = [(str(s.threads), str(s.result.blocks), _percent(s.result), _limits(s.result)) for s in steps]
            print(table([("threads", "blocks", "occupancy", "limited by"), *rows], right=[0, 1, 2]))
        return 0
    result = occupancy(chip, options.threads, options.registers, options.shared)
    print(dump_json(_data(result)) if options.json else _sum(chip, options.threads, result))
    return 0


def _data(result: Occupancy) -> dict[str, Any]:
    return {**asdict(result), "fraction": result.fraction, "limiters": result.limiters}


def _percent(result: Occupancy) -> str:
    return f"{100 * result.fraction:.1f} %"


def _limits(result: Occupancy) -> str:
    return ", ".join(result.limiters)


def _sum(chip: Chip, threads: int, result: Occupancy) -> str:
    if result.blocks == 0:
        return f"{chip.name}: such a block does not fit on an SM ({_limits(result)})"
    rows = [
        ("limit", "blocks"),
        ("blocks per SM", str(result.by_blocks)),
        (f"warps per SM ({-(-threads // chip.warp_size)} a block)", str(result.by_warps)),
        ("registers", str(result.by_registers)),
        ("shared memory", str(result.by_shared)),
    ]
    return (
        f"{chip.name}: {result.blocks} blocks of {threads} threads on an SM, {result.warps} of {result.of_warps} warps:"
        f" {_percent(result)}, limited by {_limits(result)}\n\n{table(rows, right=[1])}"
    )
