"""The emulator against recordings of an H200: every instruction form, bit for bit (tools/golden, tests/golden/h200).

What a failure prints is the form, the first operands, the emulator's result and the GPU's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warpsmith.devices.emulator.lowering import host

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from golden import accuracy, forms, operands, report

#: Families whose code depends on what the processor can do.
FLOATING = ("singles", "doubles", "halves", "from_integers", "to_integers", "between_floats")


@pytest.mark.parametrize("family", [name for name in forms.FAMILIES if name != "approximations"])
def test_bit_for_bit(family: str) -> None:
    found = accuracy.differences(family)
    assert not found, "\n".join([f"{len(found)} forms differ", *map(str, found[:20])])


def test_approximations() -> None:
    """Within the documented error, and special values (NaN, infinities, zeros) equal."""
    for m in accuracy.approximations():
        print(" | ".join(report.approximation(m)))
        assert not m.broken, "\n".join(m.broken)


@pytest.mark.parametrize("family", forms.FAMILIES)
def test_every_form_was_recorded(family: str) -> None:
    """Or refused by ptxas for this chip; with the inputs that are generated now."""
    about = accuracy.index()["families"][family]
    known = {d["form"] for d in about["forms"]} | set(about["refused"])
    missing = [f.text for f in forms.family(family) if f.key not in known]
    assert not missing, f"record these on a GPU, see tools/golden/record.py: {missing[:10]}"
    for names, digest in about["inputs"].items():
        assert operands.digest(tuple(names.split())) == digest, f"the inputs ({names}) are not those of the recording"


def test_report_is_up_to_date() -> None:
    text = report.report(dict.fromkeys(forms.FAMILIES, 0), accuracy.approximations())
    assert report.REPORT.read_text() == text, "run: PYTHONPATH=src:tools python -m golden.report --write"


@pytest.fixture
def _older_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE", str(tmp_path))  # what is compiled here must not be found by others
    monkeypatch.setattr(host, "has", lambda feature: False)


@pytest.mark.usefixtures("_older_processor")
@pytest.mark.parametrize("family", FLOATING)
def test_older_processors(family: str) -> None:
    """The same without fused multiply-add, f16 conversions, rounding instructions or AVX-512."""
    found = accuracy.differences(family)
    assert not found, "\n".join([f"{len(found)} forms differ", *map(str, found[:20])])
