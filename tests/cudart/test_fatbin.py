"""The containers of device code: read what the toolkit writes, in every compression, and survive damage."""

from __future__ import annotations

import contextlib
import struct
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.cudart.fatbin import Entry, FatbinError, choose, entries, explain, lz4
from warpsmith.toolchains.toolkit import host_compiler, toolkit

SOURCE = "__global__ void kernel(float* p, int n) { for (int i = 0; i < n; ++i) p[i] += 1; }\n"


@cache
def container(*options: str) -> bytes:
    with TemporaryDirectory() as folder:
        source, made = Path(folder) / "k.cu", Path(folder) / "k.fatbin"
        source.write_text(SOURCE)
        command = [str(toolkit().nvcc), "-ccbin", host_compiler(), "-fatbin", *options, str(source), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True)
        return made.read_bytes()


def gencode(*pairs: str) -> list[str]:
    return [f"-gencode=arch=compute_{arch},code={code}" for arch, code in (pair.split(":") for pair in pairs)]


@pytest.mark.parametrize("mode", ["none", "speed", "default", "balance", "size"])
def test_every_compression(mode: str) -> None:
    found = list(entries(container(*gencode("90:compute_90"), f"--compress-mode={mode}")))
    assert [(e.is_ptx, e.target) for e in found] == [(True, "sm_90")]
    text = found[0].text()
    assert ".target sm_90" in text
    assert ".visible .entry _Z6kernelPfi" in text
    assert text.rstrip().endswith("}")


SEVERAL = gencode("80:compute_80", "90:[compute_90,sm_90]", "90a:compute_90a", "100f:compute_100f", "120:compute_120")


def test_choice() -> None:
    found = list(entries(container(*SEVERAL)))
    assert sorted(e.target for e in found if e.is_ptx) == ["sm_100f", "sm_120", "sm_80", "sm_90", "sm_90a"]
    chosen = {
        chip: choose(found, chip) for chip in [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]
    }
    assert {chip: entry and entry.target for chip, entry in chosen.items()} == {
        (7, 5): None, (8, 0): "sm_80", (8, 9): "sm_80", (9, 0): "sm_90a", (10, 0): "sm_100f", (10, 3): "sm_100f",
        (12, 0): "sm_120", (12, 1): "sm_120",
    }  # fmt: skip
    for chip, entry in chosen.items():
        if entry:
            assert f".target {entry.target}" in entry.text(), chip


def test_why_nothing_fits() -> None:
    code = list(entries(container(*gencode("90:sm_90"))))
    assert choose(code, (9, 0)) is None
    assert "machine code for sm_90 and no PTX" in explain(code, "NVIDIA H200", "sm_90a")
    newer = [e for e in entries(container(*SEVERAL)) if e.arch > 90]
    message = explain(newer, "NVIDIA H200", "sm_90a")
    assert "sm_100f, sm_120" in message
    assert "-gencode arch=compute_90a,code=compute_90a" in message
    assert "no device code" in explain([], "x", "sm_75")


def test_not_a_container() -> None:
    for data in (b"\x7fELF" + bytes(100), bytes(100), b"junk" * 10):
        with pytest.raises(FatbinError):
            list(entries(data))
    assert list(entries(b"")) == []


@given(st.data())
def test_damage_is_one_clear_error(data: st.DataObject) -> None:
    whole = container(
        *gencode("90:compute_90"), f"--compress-mode={data.draw(st.sampled_from(['none', 'speed', 'default']))}"
    )
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if damaged:
            damaged[data.draw(st.integers(0, min(len(damaged), 120) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FatbinError):
        for entry in entries(bytes(damaged)):
            entry.text()


def encode(data: bytes) -> bytes:
    """A plain LZ4 block: the longest match in what came before, or literals."""
    out, at, start = bytearray(), 0, 0

    def length(n: int) -> bytes:
        return b"" if n < 15 else bytes([255] * ((n - 15) // 255) + [(n - 15) % 255])

    def sequence(literals: bytes, match: int, offset: int) -> None:
        out.append(min(len(literals), 15) << 4 | (min(match - 4, 15) if match else 0))
        out.extend(length(len(literals)) + literals)
        if match:
            out.extend(struct.pack("<H", offset) + length(match - 4))

    while at < len(data) - 4:
        before = data.rfind(data[at : at + 4], 0, at + 3)
        if before < 0 or at - before > 65535:
            at += 1
            continue
        n = 4
        while at + n < len(data) and data[before + n] == data[at + n]:
            n += 1
        sequence(data[start:at], n, at - before)
        at += n
        start = at
    sequence(data[start:], 0, 0)
    return bytes(out)


@given(st.lists(st.sampled_from([b"a", b"bc", b"xyzzy", bytes(300), b"ld.global.f32 "]), max_size=60).map(b"".join))
def test_lz4_round_trip(data: bytes) -> None:
    assert lz4(encode(data), len(data)) == data


@given(st.binary(max_size=200), st.integers(0, 400))
def test_lz4_of_anything(data: bytes, size: int) -> None:
    with contextlib.suppress(FatbinError):
        assert len(lz4(data, size)) == size


def test_entry_of_text_with_padding() -> None:
    assert Entry(True, 90, "", 0, b".version 9.0\n\0\0\0", 16).text() == ".version 9.0\n"
