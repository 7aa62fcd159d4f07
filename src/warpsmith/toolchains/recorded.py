"""Remembers what a compiler made, for compilers that tell which files they read (-MD).

The first key is what is known before compiling: the source, the options, the compilers' versions.  Under it
stand the results of earlier runs, each with the files that were read then; a result holds while all of those
are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .cache import Cache

#: Results kept under one first key, so that going back and forth between two headers stays fast.
_VARIANTS = 8


class Result(NamedTuple):
    name: str  # of the entry that holds what was made
    log: str  # what the compiler said


def recall(cache: Cache, key: str, trusted: Iterable[str]) -> Result | None:
    """The result whose files are all unchanged.  Below ``trusted`` folders (the system's and the toolkit's),
    size and time are proof enough; everywhere else the content is compared."""
    trusted = tuple(trusted)
    for variant in _variants(cache, key):
        if all(_state(path, trusted) == state for path, state in variant["files"]):
            return Result(variant["name"], variant["log"])
    return None


def record(cache: Cache, key: str, files: Iterable[str], trusted: Iterable[str], result: Result, since: float) -> None:
    """``since``: when the compiler started.  A file that changed after that may not be what it read, so
    nothing is remembered then."""
    trusted = tuple(trusted)
    states = []
    for path in sorted(set(files)):
        state = _state(path, trusted)
        if state is None or os.stat(path).st_mtime >= since:
            return
        states.append([path, state])
    variant = {"files": states, "name": result.name, "log": result.log}
    kept = [old for old in _variants(cache, key) if old["name"] != result.name][: _VARIANTS - 1]
    cache.store("deps", key, json.dumps([variant, *kept]).encode())


def dependencies(file: Path) -> list[str]:
    """The files that a make rule written by -MD names after its target."""
    _, _, names = file.read_text(errors="surrogateescape").replace("\\\n", " ").partition(" : ")
    # Spaces in names are written with a backslash.
    return [name.replace("\0", " ") for name in names.replace("\\ ", "\0").split()]


def _variants(cache: Cache, key: str) -> list[dict[str, Any]]:
    found = cache.load("deps", key)
    variants: list[dict[str, Any]] = json.loads(found) if found else []
    return variants


def _state(path: str, trusted: tuple[str, ...]) -> str | None:
    try:
        if path.startswith(trusted):
            stat = os.stat(path)
            return f"{stat.st_size} {stat.st_mtime_ns}"
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None
