"""The code for processors without fused multiply-add, f16 conversions, rounding instructions or AVX-512."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ieee
import pytest
import test_convert
import test_floating
import test_half
from floats import LaneForms, check_lanes
from harness import Form, operand_sets

from warpsmith.devices.emulator.lowering import host

PLAIN = [f for f in test_floating.TABLE if ".ftz" not in f.text and ".sat" not in f.text and "x2" not in f.text]
ORACLES = {
    **{f: test_floating.TABLE[f] for f in PLAIN if f.text[:3] not in ("min", "max")},
    **{f: o for f, o in test_floating.DOUBLE.items() if f.text[:3] not in ("min", "max")},
    **{f: o for f, o in test_half.TABLE.items() if f.text.startswith(("fma", "add")) and "x2" not in f.text},
    **{f: o for f, o in test_convert.CROSS.items() if f.text.split()[0] in ("cvt.rni.s32.f16", "cvt.rpi.u64.f64")},
    **{f: o for f, o in test_convert.FLOATING.items() if {"f16"} & {*f.ins, *f.outs} and ".sat" not in f.text},
    **{f: o for f, o in test_convert.FLOATING.items() if ".rni." in f.text or ".rmi." in f.text},
}
FORMS = LaneForms(ORACLES)


@pytest.fixture(scope="module", autouse=True)
def _old_processor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")  # what is compiled here must not be found by others
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPSMITH_CACHE", str(folder))
        patch.setattr(host, "has", lambda feature: False)
        yield folder


@pytest.mark.parametrize("which", ORACLES, ids=str)
def test_without_extensions(which: Form) -> None:
    rows = operand_sets(which.ins)
    if "f64" in (*which.ins, *which.outs):  # NaN payloads are not documented
        rows = tuple(
            r
            for r in rows
            if not any(ieee.is_nan(x, ieee.FORMATS[t]) for x, t in zip(r, which.ins, strict=True) if t in ieee.FORMATS)
        )
    check_lanes(FORMS, which, ORACLES[which], rows)
