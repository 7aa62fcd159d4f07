from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warpsmith.toolchains import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every test starts with an empty cache and leaves the user's alone."""
    folder = tmp_path / "cache-of-test"
    monkeypatch.setenv("WARPSMITH_CACHE", str(folder))
    cache.default_cache.cache_clear()
    yield folder
    cache.default_cache.cache_clear()
