"""Code addresses of a host program -> places in its source, through binutils' addr2line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

# What stands between the user's code and the runtime: wrappers in NVIDIA's headers, the C and C++ libraries; and nvcc's
# own version of the source, which the host compiler names for templates instead of the user's.
_NOT_THE_USERS = re.compile(r"(^|/)cuda\w*\.h$|\.cudafe1\.\w+$|^/usr/include/|/c\+\+/\d+/|/include/cccl/")
_SYSTEM = re.compile(r"^/(usr/)?lib(32|64)?/")


def locate(addresses: Sequence[tuple[str, int]]) -> str:
    """Addresses from the inside out, as (file, address in it): "at prog.cu:31" for the innermost place that the
    user wrote, "in main" if only the function is known, or nothing."""
    tool = shutil.which("addr2line")
    if tool is None:
        return ""
    for file, address in addresses:
        if _SYSTEM.match(file) or not os.path.isfile(file):
            continue
        command = [tool, "-e", file, "-f", "-C", "-i", hex(address)]
        lines = subprocess.run(command, capture_output=True, text=True, errors="replace").stdout.splitlines()
        for name, place in zip(lines[::2], lines[1::2], strict=False):
            path, _, number = place.rpartition(":")
            number = number.split(" ")[0]
            function = name.partition("(")[0].split(" ")[-1]
            if _NOT_THE_USERS.search(path) or function in ("??", "_start") or function.startswith(("cuda", "__cuda")):
                continue
            return f"at {_short(path)}:{number}" if number.isdigit() and number != "0" else f"in {function}"
    return ""


def _short(path: str) -> str:
    """Relative to this folder where that is shorter."""
    here = os.path.relpath(path)
    return here if not here.startswith("..") else path
