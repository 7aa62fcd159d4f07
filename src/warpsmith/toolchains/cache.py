"""The cache of compiled things: content-addressed files, safe to share between processes.

An entry's name is a hash of everything that it was made from, so it can only be absent, never stale.
Entries appear by renaming (a reader sees all of one or nothing) and the least recently used go when the
folder grows over its limit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import CacheError

LIMIT = 2 << 30
_TRIM_EVERY_SECONDS = 600
_TRIM_EVERY_BYTES = 64 << 20
_DIGEST = 32


class Usage(NamedTuple):
    entries: int
    bytes: int


def key(*parts: object) -> str:
    """A name for what is made from ``parts``; order and boundaries count."""
    total = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


class Cache:
    """Entries live in ``root/<kind>/<first two digits>/<rest>``."""

    def __init__(self, root: Path, limit: int = LIMIT) -> None:
        self.root, self.limit = root, limit
        self._stored = 0

    def load(self, kind: str, name: str) -> bytes | None:
        """The bytes stored under this name; a damaged entry counts as absent."""
        path = self._path(kind, name)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            path.unlink(missing_ok=True)
            return None
        _touch(path)
        return data[_DIGEST:]

    def store(self, kind: str, name: str, data: bytes) -> None:
        path = self._path(kind, name)
        scratch = self._scratch(path)
        try:
            scratch.write_bytes(hashlib.sha256(data).digest() + data)
            self._admit(scratch, path)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise _unusable(self.root, error) from None

    def find_file(self, kind: str, name: str) -> Path | None:
        """The entry as a file to be used by its path (an object file, a program)."""
        path = self._path(kind, name)
        return path if _touch(path) else None

    def store_file(self, kind: str, name: str, made: Path) -> Path:
        """Move a finished file into the cache; gives back where it is now."""
        path = self._path(kind, name)
        scratch = self._scratch(path)
        try:
            shutil.move(made, scratch)
            self._admit(scratch, path)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise _unusable(self.root, error) from None
        return path

    def usage(self) -> Usage:
        files = list(self._files())
        return Usage(len(files), sum(size for _, size, _ in files))

    def clear(self) -> Usage:
        """Remove every entry; says what went."""
        gone = self.usage()
        for path, _, _ in self._files():
            path.unlink(missing_ok=True)
        return gone

    def trim(self) -> None:
        """Delete what was used least recently until the rest takes at most nine tenths of the limit."""
        files = sorted(self._files(), key=lambda file: file[2])
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for path, size, _ in files:
            if total <= self.limit * 9 // 10:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _path(self, kind: str, name: str) -> Path:
        return self.root / kind / name[:2] / name[2:]

    def _scratch(self, path: Path) -> Path:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        except OSError as error:
            raise _unusable(self.root, error) from None
        os.close(handle)
        return Path(name)

    def _admit(self, scratch: Path, path: Path) -> None:
        self._stored += scratch.stat().st_size
        os.replace(scratch, path)
        stamp = self.root / ".trimmed"
        try:
            recent = time.time() - stamp.stat().st_mtime < _TRIM_EVERY_SECONDS
        except OSError:
            recent = False
        if not recent or self._stored > _TRIM_EVERY_BYTES:
            self._stored = 0
            stamp.touch()
            self.trim()

    def _files(self) -> Iterable[tuple[Path, int, float]]:
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder) / name
                if path.parent == self.root:
                    continue
                try:
                    stat = path.stat()
                except OSError:  # another process was quicker
                    continue
                # What a process that died left half written goes first.
                dead = name.startswith(".new-") and time.time() - stat.st_mtime > 3600
                yield path, stat.st_size, 0.0 if dead else stat.st_mtime


def _touch(path: Path) -> bool:
    """Mark as used now; False if it is not there."""
    try:
        os.utime(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _unusable(root: Path, error: OSError) -> CacheError:
    return CacheError(
        f"the cache folder {root} cannot be written ({error.strerror}); set WARPSMITH_CACHE to another folder"
    )


def default_root() -> Path:
    """$WARPSMITH_CACHE, else warpsmith/ in the user's cache folder."""
    if given := os.environ.get("WARPSMITH_CACHE"):
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path there is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "warpsmith"


@cache
def default_cache() -> Cache:
    given = os.environ.get("WARPSMITH_CACHE_LIMIT", str(LIMIT))
    if not given.isdecimal():
        raise CacheError(f"WARPSMITH_CACHE_LIMIT is a number of bytes, not {given!r}")
    return Cache(default_root(), int(given))
