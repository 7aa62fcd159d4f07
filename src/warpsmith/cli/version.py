"""``warpsmith version``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import MissingToolError
from .output import dump_json
from .parsing import Parser


def main(arguments: Sequence[str]) -> int:
    parser = Parser("version")
    parser.json()
    options = parser.parse_args(arguments)
    found = versions()
    if options.json:
        print(dump_json(found))
    else:
        print(", ".join(f"{name} {version}" for name, version in found.items() if version))
    return 0


def versions() -> dict[str, str | None]:
    """Ours, Python's, and those of the compilers that are installed."""
    out: dict[str, str | None] = {"warpsmith": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    try:
        from ..toolchains.toolkit import toolkit

        kit = toolkit()
        out["nvcc"] = kit.version("nvidia-cuda-nvcc")
        out["nvrtc"] = kit.version("nvidia-cuda-nvrtc")
    except MissingToolError:
        out["nvcc"] = out["nvrtc"] = None
    return out
