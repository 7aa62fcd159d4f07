"""What the machine that runs the compiled code can do.

Handlers ask before they use an operation that LLVM would turn into a call of a C library function
where the processor has no instruction for it: kernels must not depend on anything but the runtime.
"""

from __future__ import annotations

import platform
from functools import cache


@cache
def has(feature: str) -> bool:
    """True if the processor has this x86 extension (``fma``, ``f16c``, ``sse4.1``) or always has its like."""
    if not is_x86():
        return True  # 64-bit Arm has fused multiply-add, half conversion and rounding in its base set
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get(feature, False))


def is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def is_x86_with(feature: str) -> bool:
    """True on an x86 processor that has this extension: for instructions that only x86 has."""
    return is_x86() and has(feature)
