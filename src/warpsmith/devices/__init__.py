"""Where kernels run.  ``device("emulator", chip="h200")`` is the emulated GPU of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError

if TYPE_CHECKING:
    from ..chips import Chip
    from .base import Device


def device(kind: str = "emulator", chip: str | Chip = "h200", **options: Any) -> Device:
    """Make a device.

    ``kind``: "emulator".  ``chip``: a name from ``warpsmith chips`` (decides the limits and the compile
    target) or a Chip.  Options of the emulator: ``mode`` ("check": every access is verified; "fast"),
    ``threads`` (0: all cores), ``order`` ("ascending", "descending", "random") and ``seed`` of the
    order in which blocks start.

    Raises UsageError for an unknown kind, UnknownChipError for an unknown chip.
    """
    if kind == "emulator":
        from .emulator.device import Emulator

        return Emulator(chip, **options)
    raise UsageError(f"there is no device {kind!r}; this version has: 'emulator'")
