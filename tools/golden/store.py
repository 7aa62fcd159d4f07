"""Recorded results as small files: one .npz a family, described by recording.json.

Results of neighbouring forms are much alike (add.rz and add.rn, mostly in the last bit), so an array is
kept as the difference (exclusive or) to an earlier one of the same operands and size, cut into planes of
one byte each, which zlib then packs well.  Reading undoes that; nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .forms import Form
from .operands import Array

Results = dict[str, tuple[Array, ...]]
INDEX = "recording.json"


def cost(values: Array) -> int:
    """A guess at the packed size: bytes that are not zero."""
    return int(np.count_nonzero(values.view(np.uint8)))


def packed(family: list[tuple[Form, tuple[Array, ...]]]) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """The arrays of a file, and a description of each form: for every result the array, the first of its planes,
    their number, and the earlier result (-1: none) that it is the difference to."""
    groups: dict[str, list[Array]] = {}
    rows: dict[str, int] = {}
    earlier: dict[tuple[tuple[str, ...], int, int], list[tuple[int, Array]]] = {}
    described, number = [], 0
    for form, results in family:
        entries = []
        for values in results:
            name = f"{len(values)}"
            near = earlier.setdefault((form.ins, len(values), values.itemsize), [])
            base, best = -1, values
            for at, other in near[-8:]:
                difference = values ^ other
                if cost(difference) < cost(best):
                    base, best = at, difference
            planes = best.view(np.uint8).reshape(-1, values.itemsize).T
            groups.setdefault(name, []).append(planes)
            entries.append([name, rows.get(name, 0), values.itemsize, base])
            rows[name] = rows.get(name, 0) + values.itemsize
            near.append((number, values))
            number += 1
        described.append({"form": form.key, "results": entries})
    return {name: np.ascontiguousarray(np.concatenate(planes)) for name, planes in groups.items()}, described


def unpacked(arrays: dict[str, Array], described: list[dict[str, Any]]) -> Results:
    """The results of every form, by key."""
    done: list[Array] = []
    out: Results = {}
    for d in described:
        mine = []
        for name, row, size, base in d["results"]:
            values = np.ascontiguousarray(arrays[name][row : row + size].T).view(f"<u{size}").reshape(-1)
            if base >= 0:
                values = values ^ done[base]
            done.append(values)
            mine.append(values)
        out[d["form"]] = tuple(mine)
    return out


def save(folder: Path, family: str, results: list[tuple[Form, tuple[Array, ...]]]) -> list[dict[str, Any]]:
    arrays, described = packed(results)
    np.savez_compressed(folder / f"{family}.npz", **arrays)  # type: ignore[arg-type]
    return described


def load(folder: Path, family: str, described: list[dict[str, Any]]) -> Results:
    with np.load(folder / f"{family}.npz") as file:
        return unpacked({name: file[name] for name in file.files}, described)


def write_index(folder: Path, index: dict[str, Any]) -> None:
    """JSON with one form a line, so that changes can be read."""
    families = index.pop("families")
    text = json.dumps(index, indent=1)[:-2] + ',\n "families": {\n'
    parts = []
    for name, f in families.items():
        inside = ",\n".join(f"   {json.dumps(d, separators=(',', ':'))}" for d in f["forms"])
        head = {k: v for k, v in f.items() if k != "forms"}
        parts.append(f'  {json.dumps(name)}: {json.dumps(head)[:-1]}, "forms": [\n{inside}\n  ]}}')
    (folder / INDEX).write_text(text + ",\n".join(parts) + "\n }\n}\n")


def read_index(folder: Path) -> dict[str, Any]:
    index: dict[str, Any] = json.loads((folder / INDEX).read_text())
    return index


def families(index: dict[str, Any]) -> Iterator[str]:
    yield from index["families"]
