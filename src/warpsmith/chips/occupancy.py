"""How many blocks of a kernel one SM holds at once, and what stops it from holding more.

The rules are those of NVIDIA's ``cuda_occupancy.h``; tests compare the two, and with what an H200 says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import Chip


@dataclass(frozen=True)
class Occupancy:
    """The blocks of a kernel that one SM can hold, in total and by each limit alone."""

    blocks: int
    warps: int
    of_warps: int  # that the SM has room for
    by_blocks: int
    by_warps: int
    by_registers: int
    by_shared: int

    @property
    def fraction(self) -> float:
        return self.warps / self.of_warps

    @property
    def limiters(self) -> tuple[str, ...]:
        """What to use less of for one block more (several: all of them)."""
        limits = {
            "blocks per SM": self.by_blocks,
            "warps per SM": self.by_warps,
            "registers": self.by_registers,
            "shared memory": self.by_shared,
        }
        return tuple(name for name, limit in limits.items() if limit == self.blocks)


def occupancy(chip: Chip, threads: int, registers: int = 0, shared: int = 0) -> Occupancy:
    """For blocks of ``threads`` threads with ``registers`` a thread (0: they do not limit) and ``shared``
    bytes of shared memory, static and dynamic together."""
    warps = ceil_div(threads, chip.warp_size)
    fits = 0 < threads <= chip.threads_per_block
    by_warps = chip.warps_per_sm // warps if fits else 0
    by_registers = _by_registers(chip, warps, registers) if fits else 0
    by_shared = _by_shared(chip, shared)
    blocks = min(chip.blocks_per_sm, by_warps, by_registers, by_shared)
    return Occupancy(blocks, blocks * warps, chip.warps_per_sm, chip.blocks_per_sm, by_warps, by_registers, by_shared)


def _by_registers(chip: Chip, warps: int, registers: int) -> int:
    """Registers belong to one of the SM's partitions, and a warp's come in units."""
    if registers == 0:
        return chip.blocks_per_sm
    if registers > chip.registers_per_thread:
        return 0
    of_a_warp = round_up(registers * chip.warp_size, chip.register_unit)
    # A block is launched only if it would fit with its warps spread over all partitions.
    if of_a_warp * round_up(warps, chip.partitions) > chip.registers_per_block:
        return 0
    warps_that_fit = chip.registers_per_sm // chip.partitions // of_a_warp * chip.partitions
    return warps_that_fit // warps


def _by_shared(chip: Chip, shared: int) -> int:
    if shared > chip.shared_per_block_optin:
        return 0
    of_a_block = round_up(shared + chip.shared_reserved, chip.shared_unit)
    return chip.shared_per_sm // of_a_block if of_a_block else chip.blocks_per_sm


@dataclass(frozen=True)
class Step:
    """Occupancy at one block size."""

    threads: int
    result: Occupancy


def by_block_size(chip: Chip, registers: int = 0, shared: int = 0, shared_per_thread: int = 0) -> Iterator[Step]:
    """The same kernel at every block size that is a whole number of warps."""
    for threads in range(chip.warp_size, chip.threads_per_block + 1, chip.warp_size):
        yield Step(threads, occupancy(chip, threads, registers, shared + shared_per_thread * threads))


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, unit: int) -> int:
    return ceil_div(a, unit) * unit
