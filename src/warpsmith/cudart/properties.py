"""What cudaDeviceGetAttribute says of a chip, by attribute number."""

from __future__ import annotations

from ..chips import Chip

#: The same on every chip since compute capability 7.5, as an H200 with driver 580 says it: sizes of textures
#: and surfaces, alignments, and what the driver can do.
_COMMON = {
    10: 32, 11: 2147483647, 14: 512, 15: 1, 17: 0, 18: 0, 19: 1, 20: 0, 21: 131072, 22: 131072, 23: 65536, 24: 16384,
    25: 16384, 26: 16384, 27: 32768, 28: 32768, 29: 2048, 30: 512, 31: 1, 35: 0, 41: 1, 42: 32768, 43: 2048, 44: 1,
    45: 32768, 46: 32768, 47: 8192, 48: 8192, 49: 32768, 51: 32, 52: 32768, 53: 32768, 54: 2046, 55: 32768, 56: 131072,
    57: 65536, 58: 16384, 59: 16384, 60: 16384, 61: 32768, 62: 2048, 63: 32768, 64: 32768, 65: 2048, 66: 32768,
    67: 32768, 68: 2046, 69: 268435456, 70: 131072, 71: 65000, 72: 2097120, 73: 32768, 74: 32768, 77: 32768, 78: 1,
    79: 1, 80: 1, 83: 1, 84: 0, 85: 0, 86: 0, 88: 0, 89: 1, 90: 1, 91: 1, 92: 0, 93: 0, 94: 0, 95: 1, 96: 1, 98: 0,
    99: 1, 100: 0, 101: 0, 102: 1, 103: 1, 104: 0, 105: 0, 107: 1, 110: 1, 112: 1, 113: 1, 114: 1, 115: 1, 116: 1,
    117: 1, 118: 100, 119: 9, 121: 1, 122: 1, 123: 1, 124: 1, 125: 1, 126: 4, 127: 1, 128: 1, 129: 1, 130: 0, 131: -1,
    132: 0, 133: 0, 134: 0, 135: 0, 136: 0, 137: 0, 138: 0, 141: 1, 142: 1, 143: 0, 144: 1, 145: 1, 146: 0, 147: 0,
}  # fmt: skip

#: Where the card is plugged in.
_PLACE = {33: 1, 34: 0, 50: 0, 139: 0, 140: 0}


def attributes(chip: Chip) -> dict[int, int]:
    """All attributes of CUDA 13.0."""
    return {
        **_COMMON,
        **_PLACE,
        1: chip.threads_per_block,
        **dict(zip((2, 3, 4), chip.max_block, strict=True)),
        **dict(zip((5, 6, 7), chip.max_grid, strict=True)),
        8: chip.shared_per_block,
        9: chip.constant_memory,
        12: chip.registers_per_block,
        13: chip.clock_khz,
        16: chip.sm_count,
        32: int(chip.ecc),
        36: chip.memory_clock_khz,
        37: chip.memory_bus_bits,
        38: chip.l2_cache,
        39: chip.threads_per_sm,
        40: chip.copy_engines,
        75: chip.compute[0],
        76: chip.compute[1],
        81: chip.shared_per_sm,
        82: chip.registers_per_sm,
        87: chip.fp32_lanes // max(chip.fp64_lanes, 1),
        97: chip.shared_per_block_optin,
        106: chip.blocks_per_sm,
        108: chip.l2_persisting,
        109: 128 << 20 if chip.l2_persisting else 0,
        111: chip.shared_reserved,
        120: int(chip.clusters),
    }
