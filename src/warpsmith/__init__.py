"""warpsmith: learn, check, profile and improve GPU kernels, on any machine.

    import warpsmith
    dev = warpsmith.device("emulator", chip="h200")

Importing this package loads neither numpy nor LLVM; what needs them loads them when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .chips import Chip
    from .devices.base import Device


def device(kind: str = "emulator", chip: str | Chip = "h200", **options: Any) -> Device:
    """A device to compile for and to launch kernels on; ``warpsmith chips`` lists the chips."""
    made: Device = import_module("warpsmith.devices").device(kind, chip=chip, **options)
    return made


def __getattr__(name: str) -> Any:
    """Public errors by their short way: ``warpsmith.CompileError``."""
    errors = import_module("warpsmith.errors")
    if name == "errors":
        return errors
    try:
        return getattr(errors, name)
    except AttributeError:
        raise AttributeError(f"module 'warpsmith' has no attribute {name!r}") from None
