"""The cache: never stale, never half written, never larger than it may be."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from warpsmith.errors import CacheError
from warpsmith.toolchains import cache, recorded
from warpsmith.toolchains.cache import Cache


def test_store_and_load(tmp_path: Path) -> None:
    store = Cache(tmp_path)
    name = cache.key("a", b"b", 3)
    assert store.load("ptx", name) is None
    store.store("ptx", name, b"text")
    assert store.load("ptx", name) == b"text"
    assert store.load("object", name) is None
    made = tmp_path / "made"
    made.write_bytes(b"\x7fELF")
    path = store.store_file("object", name, made)
    assert path == store.find_file("object", name)
    assert path.read_bytes() == b"\x7fELF"
    assert store.usage().entries == 2
    assert store.clear().entries == 2
    assert store.load("ptx", name) is None
    assert store.find_file("object", name) is None


def test_keys_know_boundaries_and_order() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("a", "b") != cache.key("b", "a")
    assert cache.key("a", "") != cache.key("a")


def test_a_damaged_entry_counts_as_absent(tmp_path: Path) -> None:
    store = Cache(tmp_path)
    store.store("ptx", "ab" * 32, b"text" * 100)
    path = tmp_path / "ptx" / "ab" / ("ab" * 31)
    path.write_bytes(path.read_bytes()[:-10])
    assert store.load("ptx", "ab" * 32) is None
    assert not path.exists()


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = Cache(tmp_path, limit=10_000)
    names = [cache.key(i) for i in range(20)]
    for i, name in enumerate(names):
        store.store("ptx", name, bytes(1000))
        path = tmp_path / "ptx" / name[:2] / name[2:]
        os.utime(path, (time.time() - 100 + i,) * 2)
    store.load("ptx", names[0])  # used again: it stays
    store.trim()
    assert store.usage().bytes <= 10_000
    kept = [i for i, name in enumerate(names) if store.find_file("ptx", name)]
    assert kept[0] == 0
    assert kept[1:] == list(range(20 - len(kept) + 1, 20))


def test_it_stays_within_its_limit_by_itself(tmp_path: Path) -> None:
    store = Cache(tmp_path, limit=1 << 20)
    for i in range(300):
        store.store("ptx", cache.key(i), bytes(1 << 20))
    assert store.usage().bytes < (1 << 20) + (65 << 20)


def _writer(root: Path, seed: int) -> None:
    store = Cache(root, limit=200_000)
    for i in range(150):
        name = cache.key((i * 7 + seed) % 40)
        found = store.load("ptx", name)
        assert found is None or found == name.encode() * 100
        store.store("ptx", name, name.encode() * 100)
        if i % 50 == 0:
            store.trim()


def test_many_processes_share_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_writer, args=(tmp_path, seed)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0


def test_a_folder_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(CacheError, match="set WARPSMITH_CACHE"):
        Cache(file / "below").store("ptx", "ab" * 32, b"")


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE", str(tmp_path))
    assert cache.default_root() == tmp_path
    monkeypatch.delenv("WARPSMITH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.default_root() == Path("/somewhere/warpsmith")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache.default_root() == Path("/home/me/.cache/warpsmith")


def test_a_result_holds_while_its_files_are_unchanged(tmp_path: Path) -> None:
    store = Cache(tmp_path / "cache")
    header = tmp_path / "a.h"
    header.write_text("1")
    old = time.time() - 10
    os.utime(header, (old, old))
    recorded.record(store, "k" * 64, [str(header)], ["/usr/"], recorded.Result("one", "log"), time.time())
    assert recorded.recall(store, "k" * 64, ["/usr/"]) == ("one", "log")
    header.write_text("2")
    assert recorded.recall(store, "k" * 64, ["/usr/"]) is None
    os.utime(header, (old, old))
    recorded.record(store, "k" * 64, [str(header)], ["/usr/"], recorded.Result("two", ""), time.time())
    assert recorded.recall(store, "k" * 64, ["/usr/"]) == ("two", "")
    header.write_text("1")  # back again: the first result is still there
    assert recorded.recall(store, "k" * 64, ["/usr/"]) == ("one", "log")
    header.unlink()
    assert recorded.recall(store, "k" * 64, ["/usr/"]) is None


def test_what_changed_while_it_was_compiled_is_not_remembered(tmp_path: Path) -> None:
    store = Cache(tmp_path / "cache")
    header = tmp_path / "a.h"
    started = time.time() - 1
    header.write_text("1")
    recorded.record(store, "k" * 64, [str(header)], [], recorded.Result("one", ""), started)
    assert recorded.recall(store, "k" * 64, []) is None


def test_dependency_files(tmp_path: Path) -> None:
    rule = tmp_path / "x.d"
    rule.write_text("x.o : a.cu \\\n    /usr/include/stdio.h \\\n    with\\ space.h\n")
    assert recorded.dependencies(rule) == ["a.cu", "/usr/include/stdio.h", "with space.h"]
