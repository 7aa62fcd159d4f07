"""Our C++ libraries: built once, rebuilt when something changed, never half."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.toolchains import native


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two small libraries where ours would be, one needing the other."""
    package = tmp_path / "src" / "warpsmith"
    runtime, cudart = package / "devices/emulator/runtime", package / "cudart"
    runtime.mkdir(parents=True)
    cudart.mkdir()
    (runtime / "api.h").write_text('#define API extern "C" __attribute__((visibility("default")))\nAPI int one();\n')
    (runtime / "a.cpp").write_text('#include "api.h"\nint one() { return 1; }\n')
    (runtime / "b.cpp").write_text('#include "api.h"\nAPI int two() { return one() + 1; }\n')
    (cudart / "c.cpp").write_text('#include "api.h"\nAPI int three() { return one() + 2; }\n')
    return package


def times(package: Path) -> dict[str, int]:
    build = package.parent.parent / "build"
    files = [*build.rglob("*.o"), *package.rglob("*.so")]
    return {file.name: file.stat().st_mtime_ns for file in files}


def test_built_and_loaded(package: Path) -> None:
    runtime, cudart = native.build(package)
    assert runtime.name == "libwarpsmith_runtime.so"
    # In a process of its own: where our real runtime is loaded, the loader takes that one for its namesake.
    program = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).three(), ctypes.CDLL(sys.argv[2]).two())"
    done = subprocess.run([sys.executable, "-c", program, cudart, runtime], capture_output=True, text=True, check=True)
    assert done.stdout == "3 2\n"  # the second finds the first by itself


def test_only_what_changed_is_built_again(package: Path) -> None:
    native.build(package)
    first = times(package)
    native.build(package)
    assert times(package) == first
    (package / "devices/emulator/runtime/b.cpp").write_text('#include "api.h"\nAPI int two() { return one() + 5; }\n')
    native.build(package)
    second = times(package)
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {"b.o", "libwarpsmith_runtime.so", "libwarpsmith_cudart.so"}


def test_a_header_counts(package: Path) -> None:
    native.build(package)
    first = times(package)
    header = package / "devices/emulator/runtime/api.h"
    header.write_text(header.read_text() + "API int four();\n")
    native.build(package)
    second = times(package)
    assert all(first[name] != second[name] for name in ("a.o", "b.o", "c.o"))


def test_a_loaded_library_is_replaced_not_overwritten(package: Path) -> None:
    runtime = native.build(package)[0]
    loaded = ctypes.CDLL(str(runtime))
    inode = runtime.stat().st_ino
    (package / "devices/emulator/runtime/a.cpp").write_text('#include "api.h"\nint one() { return 7; }\n')
    native.build(package)
    assert runtime.stat().st_ino != inode
    assert loaded.one() == 1


def test_errors_are_the_compilers(package: Path) -> None:
    (package / "cudart/c.cpp").write_text("int three() { return four(); }\n")
    with pytest.raises(native.BuildError, match="four"):
        native.build(package)


def test_a_missing_function_is_found_when_linking(package: Path) -> None:
    (package / "cudart/c.cpp").write_text("int four();\nint three() { return four(); }\n")
    with pytest.raises(native.BuildError, match="undefined reference"):
        native.build(package)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CXX", "")
    with pytest.raises(native.BuildError, match="sudo apt install g"):
        native.build(package)


def test_ours_are_up_to_date_or_can_be_built() -> None:
    assert native.PACKAGE.name == "warpsmith"
    for library in native.present():
        assert os.path.isdir(native.PACKAGE / library.folder)
