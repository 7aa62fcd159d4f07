"""Whole programs with nvcc, linked against a stand-in for our CUDA runtime that does nothing."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from warpsmith.chips import load
from warpsmith.errors import (
    CompileError,
    HostCompilerError,
    InputError,
    LinkError,
    MissingToolError,
    NoMainError,
    UnsupportedApiError,
    UsageError,
)
from warpsmith.toolchains import auto, nvcc, toolkit
from warpsmith.toolchains.options import parse

STUB = """
#include <stdio.h>
extern "C" {
void** __cudaRegisterFatBinary(void*) { static void* h; return &h; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __warpsmithRegisterLinkedBinary(void***, void*, void (*)(void**)) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
unsigned __cudaPushCallConfiguration(...) { return 0; }
int __cudaPopCallConfiguration(...) { return 0; }
int __cudaLaunchKernel(...) { return 0; }
int __cudaGetKernel(...) { return 0; }
char __cudaInitModule(void**) { return 1; }
int cudaDeviceSynchronize() { return 0; }
}
"""
PROGRAM = """
#include <cstdio>
__global__ void nothing() {}
int main(int argc, char** argv) {
  nothing<<<1, 32>>>();
  cudaDeviceSynchronize();
  std::printf("%d arguments\\n", argc - 1);
}
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stub")
    source, library = folder / "stub.cpp", folder / "libstub.so"
    source.write_text(STUB)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, stub: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(nvcc, "CUDART", stub)
    return folder


def build(line: str, chip: str = "h200") -> nvcc.ProgramFile:
    return nvcc.build(parse(line.split()), chip)


def write(**files: str) -> None:
    """write(a_cu="...") makes a.cu; all are old enough to be remembered."""
    for name, text in files.items():
        path = Path(name.replace("_", "."))
        path.write_text(text)
        os.utime(path, (time.time() - 10,) * 2)


def test_a_program_is_built_and_remembered() -> None:
    write(p_cu=PROGRAM)
    steps: list[str] = []
    made = nvcc.build(parse(["p.cu"]), progress=steps.append)
    assert steps == ["compiling p.cu", "linking"]
    done = subprocess.run([made.path, "x", "y"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2 arguments\n")
    again = nvcc.build(parse(["p.cu"]), progress=steps.append)
    assert (again.path, again.cached) == (made.path, True)
    assert len(steps) == 2
    assert not build("p.cu", chip="a100").cached
    assert not build("p.cu -DX").cached


def test_several_sources_in_three_languages() -> None:
    write(
        a_cu='#include "h.h"\n__global__ void k() {}\nint twice(int x) { k<<<1, 1>>>(); return 2 * x; }\n',
        h_h='int twice(int);\nextern "C" int thrice(int);\n',
        b_cpp='#include "h.h"\n#include <cstdio>\nint main() { std::printf("%d %d\\n", twice(4), thrice(N)); }\n',
        c_c="int thrice(int x) { int new = 3; return new * x; }\n",
    )
    made = build("a.cu b.cpp c.c -DN=5 -std=c++20 -O2")
    assert subprocess.run([made.path], capture_output=True, text=True).stdout == "8 15\n"


def test_a_changed_header_builds_what_includes_it_again() -> None:
    write(h_h="#define N 1\n", a_cu='#include "h.h"\nint n() { return N; }\n')
    write(b_cu='#include <cstdio>\nint n();\nint main() { std::printf("%d", n()); }\n')
    steps: list[str] = []
    options = parse(["a.cu", "b.cu"])
    assert subprocess.run([nvcc.build(options).path], capture_output=True, text=True).stdout == "1"
    write(h_h="#define N 2\n")
    made = nvcc.build(options, progress=steps.append)
    assert subprocess.run([made.path], capture_output=True, text=True).stdout == "2"
    assert steps == ["compiling a.cu", "linking"]
    write(h_h="#define N 1\n")
    assert nvcc.build(options).cached


def test_compile_errors_are_the_compilers_own_words() -> None:
    write(p_cu="int main() {\n  int x = y;\n}\n")
    with pytest.raises(CompileError) as error:
        build("p.cu")
    assert str(error.value).startswith('p.cu(2): error: identifier "y" is undefined\n')
    write(q_cpp="int main() {\n  return z;\n}\n")
    with pytest.raises(CompileError, match=r"q.cpp:2:10: error: .z. was not declared"):
        build("q.cpp")


def test_warnings_are_given_every_time() -> None:
    write(
        p_cu=PROGRAM.replace("int argc", "int unused_variable")
        .replace("argc - 1", "0")
        .replace("{\n", "{\n int w;\n", 1)
    )
    for cached in (False, True):
        made = build("p.cu")
        assert made.cached is cached
        assert 'variable "w" was declared but never referenced' in made.log


def test_no_main() -> None:
    write(p_cu="__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n")
    with pytest.raises(NoMainError, match=r"p.cu: there is no main function.*from Python: warpsmith.device\(\)"):
        build("p.cu")


def test_functions_that_our_runtime_lacks_are_named() -> None:
    write(p_cu="int main() {\n  cudaStream_t s;\n  cudaStreamCreate(&s);\n  cudaStreamDestroy(s);\n}\n")
    with pytest.raises(UnsupportedApiError) as error:
        build("p.cu")
    assert str(error.value) == (
        "p.cu:3: uses cudaStreamCreate and cudaStreamDestroy, which warpsmith's CUDA runtime does not have yet"
    )
    assert error.value.code == 85


@pytest.mark.parametrize(("library", "name"), [("cublas", "cuBLAS"), ("curand", "cuRAND"), ("cuda", "the CUDA driver")])
def test_nvidias_other_libraries_are_named(library: str, name: str) -> None:
    write(p_cu=PROGRAM)
    with pytest.raises(UnsupportedApiError, match=f"NVIDIA's library {name}"):
        build(f"p.cu -l{library}")


def test_other_link_errors() -> None:
    write(p_cu="int helper(int);\nint main() { return helper(1); }\n")
    with pytest.raises(LinkError, match=r"nowhere defined: helper\(int\);"):
        build("p.cu")
    write(p_cu=PROGRAM, q_cu=PROGRAM.replace("nothing", "other"))
    with pytest.raises(LinkError, match="main is defined more than once"):
        build("p.cu q.cu")
    with pytest.raises(LinkError, match="the library nosuch"):
        build("p.cu -lnosuch")


def test_what_cannot_be_meant() -> None:
    with pytest.raises(InputError, match="there is no file nope"):
        build("nope.cu")
    with pytest.raises(UsageError, match="no source"):
        build("-O2")
    write(p_cu=PROGRAM, q_cu="")
    with pytest.raises(UsageError, match="frobnicate"):
        build("p.cu --frobnicate")
    assert build("p.cu q.cu -rdc=true").path.exists()


def test_no_host_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    write(p_cu=PROGRAM)
    monkeypatch.setenv("PATH", "/nowhere")
    toolkit.host_compiler.cache_clear()
    try:
        with pytest.raises(HostCompilerError, match="sudo apt install g"):
            build("p.cu")
    finally:
        toolkit.host_compiler.cache_clear()


def test_no_cuda_runtime_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(p_cu=PROGRAM)
    monkeypatch.setattr(nvcc, "CUDART", tmp_path / "none.so")
    with pytest.raises(MissingToolError, match="is not built"):
        build("p.cu")


def test_ptx_of_a_program_with_host_code() -> None:
    made = nvcc.ptx(PROGRAM, parse([]), "rtx4090", name="some/p.cu")
    assert ".entry _Z7nothingv" in made.text
    assert ".target sm_89" in made.text
    assert '.file\t1 "some/p.cu"' in made.text
    assert re.search(r"\.loc\t1 3 \d+", made.text)
    assert not made.cached
    assert nvcc.ptx(PROGRAM, parse([]), "rtx4090", name="some/p.cu").cached
    with pytest.raises(CompileError, match=r"^some/p.cu\(3\): error: "):
        nvcc.ptx(PROGRAM.replace("{}", "{ x; }"), parse([]), name="some/p.cu")


def test_the_compiler_that_takes_it() -> None:
    kernel = "__global__ void k(float* x) { *x = N; }\n"
    options = ["-DN=3", "-O3", "--use_fast_math", "-std=c++20", "-Xcompiler", "-Wall", "--expt-relaxed-constexpr", "-w"]
    assert auto.compile(kernel, options=options).toolchain.startswith("nvrtc")
    Path("n.h").write_text("#define N 4\n")
    for host in ("#include <vector>\n", "int main() { return 0; }\n", "std::string s;\n"):
        text = f'#include "n.h"\n#include <string>\n{host}{kernel}'
        made = auto.compile(text, name="p.cu", options=options[1:])
        assert made.toolchain.startswith("nvcc")
        assert "0f40800000" in made.text or ", 1082130432" in made.text
    with pytest.raises(CompileError, match=r"^p.cu\(1\): error: "):
        auto.compile("int main() { return x; }\n", name="p.cu")
    with pytest.raises(UsageError, match="frobnicate"):
        auto.compile(kernel, options=["--frobnicate"])


def test_without_a_host_compiler_nvrtc_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    toolkit.host_compiler.cache_clear()
    try:
        with pytest.raises(CompileError, match="cannot open source file"):
            auto.compile("#include <vector>\n")
    finally:
        toolkit.host_compiler.cache_clear()


@pytest.mark.parametrize("chip", ["t4", "rtx5090"])
def test_the_oldest_and_the_newest_chip(chip: str) -> None:
    made = nvcc.ptx(PROGRAM, parse([]), chip)
    assert f".target {load(chip).target}" in made.text
    assert made.log == ""
