"""What a chip is: limits and ceilings, one TOML file a chip.

>>> load("h200").sm_count
132
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError, UnknownChipError

DEFAULT = "h200"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Chip:
    """A GPU.  What has a value here is the same on every chip since compute capability 7.5."""

    id: str
    name: str  # as cudaGetDeviceProperties says it
    architecture: str
    compute: tuple[int, int]
    target: str  # sm_90a: what to compile for
    aliases: tuple[str, ...]

    sm_count: int
    fp32_lanes: int  # an SM
    fp64_lanes: int
    warps_per_sm: int
    blocks_per_sm: int

    shared_per_sm: int  # bytes
    shared_per_block_optin: int
    shared_reserved: int  # a block, for the system
    shared_unit: int  # allocation granularity
    shared_carveouts: tuple[int, ...]  # KiB an SM that may be configured

    global_memory: int
    l2_cache: int
    l2_persisting: int
    memory_bus_bits: int
    memory_clock_khz: int
    clock_khz: int
    copy_engines: int
    ecc: bool

    max_cluster: int = 0  # blocks, portable; 0: no clusters
    max_cluster_optin: int = 0
    tensor_memory_columns: int = 0

    warp_size: int = 32
    partitions: int = 4  # of an SM, each with its scheduler and registers
    registers_per_sm: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256  # a warp
    threads_per_block: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2147483647, 65535, 65535)
    shared_per_block: int = 49152
    constant_memory: int = 65536

    @property
    def threads_per_sm(self) -> int:
        return self.warps_per_sm * self.warp_size

    @property
    def clusters(self) -> bool:
        return self.max_cluster > 0

    @property
    def bandwidth(self) -> float:
        """Bytes a second that the memory can move at most (double data rate)."""
        return 2.0 * self.memory_clock_khz * 1000 * self.memory_bus_bits / 8

    @property
    def fp32_flops(self) -> float:
        """Floating-point operations a second without tensor cores; a fused multiply-add counts two."""
        return 2.0 * self.sm_count * self.fp32_lanes * self.clock_khz * 1000

    @property
    def fp64_flops(self) -> float:
        return 2.0 * self.sm_count * self.fp64_lanes * self.clock_khz * 1000


def load(name: str) -> Chip:
    """The chip of that id, alias or full name; or the one that a .toml file describes."""
    if name.endswith(".toml"):
        return _read(Path(name))
    if found := _names().get(_plain(name)):
        return _read(_FOLDER / f"{found}.toml")
    near = get_close_matches(_plain(name), _names(), n=1)
    hint = f" (did you mean {_names()[near[0]]}?)" if near else ""
    raise UnknownChipError(f"there is no chip {name!r}{hint}; known are {', '.join(ids())}")


def ids() -> list[str]:
    """All chips, oldest architecture first."""
    return [chip.id for chip in every()]


@cache
def every() -> tuple[Chip, ...]:
    return tuple(sorted(map(_read, _FOLDER.glob("*.toml")), key=lambda chip: (chip.compute, chip.id)))


@cache
def _names() -> dict[str, str]:
    """Every way to say a chip -> its id."""
    return {_plain(name): chip.id for chip in every() for name in (chip.id, chip.name, *chip.aliases)}


def _plain(name: str) -> str:
    """ "RTX 4090", "rtx-4090" and "rtx4090" are the same."""
    return "".join(c for c in name.lower() if c.isalnum())


def _read(path: Path) -> Chip:
    try:
        data = tomllib.loads(path.read_text())
        return Chip(id=path.stem, **{key: _frozen(value) for key, value in data.items()})
    except OSError as error:
        raise InputError(f"the chip file {path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the chip file {path} is not TOML: {error}") from None
    except TypeError:
        known = {field.name for field in fields(Chip)} - {"id"}
        wrong = sorted(set(data) - known)
        missing = sorted({f.name for f in fields(Chip) if f.default is f.default_factory} - {"id"} - set(data))
        what = f"does not know {', '.join(wrong)}" if wrong else f"needs {', '.join(missing)}"
        raise InputError(f"the chip file {path} is wrong: a chip {what}") from None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
