"""How the commands speak: results on stdout, everything else on stderr, tables in columns."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ResultError


def say(text: str) -> None:
    """One message for the person, on stderr."""
    print(f"warpsmith: {text}", file=sys.stderr)


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns as wide as their widest cell; the columns in ``right`` are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def dump_json(value: Any) -> str:
    import json

    return json.dumps(value, indent=2)


def write_text(path: str, text: str) -> None:
    """To a file, or to stdout for "-"."""
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise ResultError(f"{path} cannot be written: {error.strerror}") from None


def size(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1024
    raise AssertionError


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


class Progress:
    """Tells what goes on: at once on a terminal (in one line that goes away again), elsewhere only what
    takes longer than two seconds."""

    PATIENCE = 2.0

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = False
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __call__(self, step: str) -> None:
        with self._lock:
            if self._terminal:
                print(f"\r\033[Kwarpsmith: {step} ...", end="", file=sys.stderr, flush=True)
                self._shown = True
                return
            if self._timer:
                self._timer.cancel()
            self._timer = threading.Timer(self.PATIENCE, say, [f"{step} ..."])
            self._timer.daemon = True
            self._timer.start()

    def done(self) -> None:
        with self._lock:
            if self._timer:
                self._timer.cancel()
            if self._shown:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
                self._shown = False


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start
