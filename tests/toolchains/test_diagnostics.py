"""Messages of the compilers, as data."""

from __future__ import annotations

import pytest

from warpsmith.toolchains import Diagnostic, diagnostics


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('k.cu(3): error: identifier "x" is undefined', ("k.cu", 3, 0, "error", 'identifier "x" is undefined')),
        ("k.cu(3): warning #177-D: variable unused", ("k.cu", 3, 0, "warning", "variable unused")),
        ("a b/k.cu(1): catastrophic error: cannot open", ("a b/k.cu", 1, 0, "error", "cannot open")),
        ("k.cu:3:5: error: expected ';'", ("k.cu", 3, 5, "error", "expected ';'")),
        ("k.cu:7: fatal error: x.h: No such file", ("k.cu", 7, 0, "error", "x.h: No such file")),
        ("k.cu:3:5: note: declared here", ("k.cu", 3, 5, "note", "declared here")),
        ("ptxas k.ptx, line 12; error   : Unknown symbol", ("k.ptx", 12, 0, "error", "Unknown symbol")),
    ],
)
def test_one_line(line: str, expected: tuple[object, ...]) -> None:
    assert list(diagnostics(f"\n{line}\n      ^\n")) == [Diagnostic(*expected)]  # type: ignore[arg-type]


def test_nothing_else_is_a_message() -> None:
    log = '  int a = b;\n          ^\n1 error detected in the compilation of "k.cu".\nRemark: The warnings can be...\n'
    assert list(diagnostics(log)) == []
