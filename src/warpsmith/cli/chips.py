"""``warpsmith chips``: the list, or everything about one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from .. import chips
from .output import dump_json, size, table
from .parsing import Parser

EXAMPLES = """
  $ws chips
  $ws chips rtx4090
  $ws chips h200 --json
"""


def main(arguments: Sequence[str]) -> int:
    parser = Parser("chips", examples=EXAMPLES)
    parser.add_argument("name", nargs="?", help="everything about this one")
    parser.json()
    options = parser.parse_args(arguments)
    if options.name:
        chip = chips.load(options.name)
        print(dump_json(asdict(chip)) if options.json else _details(chip))
    elif options.json:
        print(dump_json([asdict(chip) for chip in chips.every()]))
    else:
        print(_list())
    return 0


def _list() -> str:
    head = ("chip", "name", "architecture", "target", "SMs", "memory", "bandwidth", "fp32")
    rows = [
        (
            chip.id + (" *" if chip.id == chips.DEFAULT else ""),
            chip.name,
            chip.architecture,
            chip.target,
            str(chip.sm_count),
            size(chip.global_memory),
            f"{chip.bandwidth / 1e9:.0f} GB/s",
            f"{chip.fp32_flops / 1e12:.1f} TFLOP/s",
        )
        for chip in chips.every()
    ]
    return table([head, *rows], right=[4, 5, 6, 7]) + "\n\n* is used when --chip is not given"


def _details(chip: chips.Chip) -> str:
    rows = [
        ("name", chip.name),
        ("also called", ", ".join(chip.aliases) or "-"),
        ("architecture", f"{chip.architecture}, compute capability {chip.compute[0]}.{chip.compute[1]}"),
        ("compiled for", chip.target),
        ("SMs", f"{chip.sm_count} at {chip.clock_khz / 1e6:.2f} GHz"),
        ("an SM holds", f"{chip.warps_per_sm} warps ({chip.threads_per_sm} threads), {chip.blocks_per_sm} blocks"),
        ("registers", f"{chip.registers_per_sm} an SM, at most {chip.registers_per_thread} a thread"),
        (
            "shared memory",
            f"{chip.shared_per_sm // 1024} KiB an SM; a block: {chip.shared_per_block // 1024} KiB,"
            f" {chip.shared_per_block_optin // 1024} KiB after cudaFuncSetAttribute",
        ),
        ("block", f"at most {chip.threads_per_block} threads, {' x '.join(map(str, chip.max_block))}"),
        ("cluster", f"up to {chip.max_cluster} blocks" if chip.clusters else "none"),
        ("memory", f"{size(chip.global_memory)}, {chip.bandwidth / 1e9:.0f} GB/s, {chip.memory_bus_bits} bits wide"),
        ("L2 cache", size(chip.l2_cache)),
        ("fp32, fp64", f"{chip.fp32_flops / 1e12:.1f}, {chip.fp64_flops / 1e12:.2f} TFLOP/s without tensor cores"),
    ]
    return table(rows)
