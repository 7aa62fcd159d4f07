"""The same kernels on the emulator."""

from __future__ import annotations

from functools import cache

import numpy as np

import warpsmith
from warpsmith.devices.base import Device

from .forms import Form
from .kernels import Kernel, inputs, kernels, module, results
from .operands import BLOCK, Array


@cache
def device() -> Device:
    return warpsmith.device("emulator", chip="h200")


def launch(kernel: Kernel) -> bytes:
    """What a kernel writes."""
    program = device().compile(module([kernel]), language="ptx")
    # Read-only arrays are not copied back.
    operands = inputs(kernel)
    for column in operands:
        column.flags.writeable = False
    out = np.zeros(max(kernel.size, 1), np.uint8)
    scratch = np.zeros(16 * kernel.sets, np.uint8)
    program[kernel.name](kernel.blocks, BLOCK, *operands, out, scratch)
    return out.tobytes()


def run(family: str, without: frozenset[str] = frozenset()) -> dict[str, tuple[Form, tuple[Array, ...]]]:
    """The results of a family's forms, by key."""
    found = {}
    for kernel in kernels(family, without):
        for form, values in results(kernel, launch(kernel)):
            found[form.key] = form, values
    return found
