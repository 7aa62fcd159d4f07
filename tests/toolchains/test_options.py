"""nvcc's command line, taken apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.errors import InputError, NotCudaError, UsageError
from warpsmith.toolchains.options import check_sources, parse


@pytest.mark.parametrize(
    ("line", "sources", "compile", "link"),
    [
        ("a.cu", ["a.cu"], [], []),
        ("a.cu b.cpp c.o libd.a", ["a.cu", "b.cpp"], [], ["c.o", "libd.a"]),
        ("-Iinc -I inc --include-path inc --include-path=inc", [], ["-Iinc"] * 4, []),
        ("-DN=4 -D N=4 -DM --define-macro=N=4", [], ["-DN=4", "-DN=4", "-DM", "-DN=4"], []),
        ("-std=c++20 --std c++20 -std c++20", [], ["-std=c++20"] * 3, []),
        ("-O3 -O 3 --optimize=3", [], ["-O3"] * 3, []),
        ("-lm -l m --library=m -L/x -Xlinker --as-needed", [], [], ["-lm", "-lm", "-lm", "-L/x", "-Wl,--as-needed"]),
        ("-Xcompiler -Wall,-fopenmp", [], ["-Xcompiler", "-Wall,-fopenmp"], ["-Wall", "-fopenmp"]),
        ("--compiler-options=-Wall", [], ["-Xcompiler", "-Wall"], ["-Wall"]),
        ("-Wall -fopenmp", [], ["-Xcompiler", "-Wall", "-Xcompiler", "-fopenmp"], ["-Wall", "-fopenmp"]),
        ("-include pre.h -isystem sys", [], ["-include", "pre.h", "-isystem", "sys"], []),
        ("-x cu", [], ["-x", "cu"], []),
        ("-G -g -w --use_fast_math", [], ["-G", "-g", "-w", "--use_fast_math"], []),
        ("--expt-relaxed-constexpr --extended-lambda", [], ["--expt-relaxed-constexpr", "--extended-lambda"], []),
        ("-maxrregcount 32 --maxrregcount=32", [], ["-maxrregcount=32", "-maxrregcount=32"], []),
        ("-fmad=false --fmad false", [], ["-fmad=false", "-fmad=false"], []),
        # made for nvcc, without effect here
        ("a.cu -o a -arch=sm_80 -arch sm_80 -gencode arch=compute_80,code=sm_80", ["a.cu"], [], []),
        ("-oa -code=sm_80 -lineinfo -cudart shared -m64 -t4 -lcudart -lcudadevrt -Xptxas -v -ccbin g++", [], [], []),
    ],
)
def test_every_spelling(line: str, sources: list[str], compile: list[str], link: list[str]) -> None:
    found = parse(line.split())
    assert (found.sources, found.compile, found.link) == (sources, compile, link)


def test_relocatable_code() -> None:
    assert parse(["-rdc=true"]).relocatable
    assert parse(["--relocatable-device-code", "true"]).relocatable
    assert not parse(["-rdc=false"]).relocatable


@pytest.mark.parametrize("option", ["-c", "-ptx", "--cubin", "-E"])
def test_other_jobs_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match="something other than a program"):
        parse([option, "a.cu"])


def test_a_value_is_missing() -> None:
    with pytest.raises(UsageError, match="-I needs a value"):
        parse(["a.cu", "-I"])


def test_sources_are_looked_at_before_any_compiler(tmp_path: Path) -> None:
    def message(name: str, kind: type[Exception]) -> str:
        with pytest.raises(kind) as error:
            check_sources([str(tmp_path / name)])
        return str(error.value)

    (tmp_path / "Saxpy.cu").write_text("")
    check_sources([str(tmp_path / "Saxpy.cu")])
    assert "there is no file" in message("nope.cu", InputError)
    assert "(there is Saxpy.cu)" in message("saxpy.cu", InputError)
    assert message("1000", InputError).endswith("1000; a program's own arguments stand after --")
    (tmp_path / "folder.cu").mkdir()
    assert "is a folder" in message("folder.cu", InputError)
    for name, hint in [
        ("a.py", "it is Python"),
        ("a.ptx", "it is PTX"),
        ("a.cuh", "it is a header"),
        ("a", "must end"),
    ]:
        (tmp_path / name).write_text("")
        assert hint in message(name, NotCudaError)
    (tmp_path / "binary.cu").write_bytes(b"\x7fELF\0\0")
    assert "it is not text" in message("binary.cu", NotCudaError)
