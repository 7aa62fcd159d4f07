"""CUDA C++ -> PTX with NVRTC."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warpsmith import chips
from warpsmith.errors import CompileError, UnknownChipError, UsageError
from warpsmith.toolchains import nvrtc

ADD = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1.0f; }\n'


def test_a_kernel_becomes_ptx_for_the_chip() -> None:
    made = nvrtc.compile(ADD, chip="a100")
    assert ".entry add" in made.text
    assert ".target sm_80" in made.text
    assert ".version 9.0" in made.text  # newer PTX would be refused by drivers of CUDA 13.0
    assert made.toolchain.startswith("nvrtc 13.0")
    assert not made.cached
    assert ".target sm_90a" in nvrtc.compile(ADD).text
    assert ".target sm_86" in nvrtc.compile(ADD, target="sm_86").text


@pytest.mark.parametrize("chip", chips.every(), ids=lambda chip: chip.id)
def test_every_chip_can_be_compiled_for(chip: chips.Chip) -> None:
    assert f".target {chip.target}" in nvrtc.compile(ADD, chip=chip).text


def test_lines_are_those_of_the_source_under_the_name_given() -> None:
    text = nvrtc.compile("\n\n" + ADD, name="some/kernel.cu").text
    assert '.file\t1 "some/kernel.cu"' in text
    assert re.search(r"\.loc\t1 3 \d+", text)


def test_what_was_compiled_is_remembered() -> None:
    first = nvrtc.compile(ADD, options=["-DA=1"])
    again = nvrtc.compile(ADD, options=["-DA=1"])
    assert (first.cached, again.cached) == (False, True)
    assert first.text == again.text
    assert not nvrtc.compile(ADD, options=["-DA=2"]).cached
    assert not nvrtc.compile(ADD, options=["-DA=1"], name="other.cu").cached
    assert not nvrtc.compile(ADD, options=["-DA=1"], chip="t4").cached
    assert not nvrtc.compile(ADD, options=["-DA=1"], cached=False).cached


def test_a_changed_header_counts_however_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    inner = tmp_path / "include" / "inner.h"
    inner.write_text("#define STEP 1.0f\n")
    source = '#include "outer.h"\nextern "C" __global__ void add(float* x) { *x += STEP; }\n'
    monkeypatch.chdir(tmp_path)

    def compiled() -> nvrtc.Artifact:
        return nvrtc.compile(source, name="k.cu", include=["include"])

    assert not compiled().cached
    assert compiled().cached
    inner.write_text("#define STEP 2.0f\n")
    changed = compiled()
    assert not changed.cached
    assert "0f40000000" in changed.text
    # A header of the same name that is found earlier counts as well.
    (tmp_path / "inner.h").write_text("#define STEP 4.0f\n")
    assert "0f40800000" in compiled().text


def test_a_computed_include_is_never_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.h").write_text("#define STEP 1.0f\n")
    monkeypatch.chdir(tmp_path)
    source = '#define HEADER "a.h"\n#include HEADER\nextern "C" __global__ void add(float* x) { *x += STEP; }\n'
    nvrtc.compile(source, name="k.cu")
    (tmp_path / "a.h").write_text("#define STEP 2.0f\n")
    assert "0f40000000" in nvrtc.compile(source, name="k.cu").text


def test_errors_are_the_compilers_own_words() -> None:
    with pytest.raises(CompileError) as error:
        nvrtc.compile("__global__ void k() {\n  int a = b;\n}\n", name="dir/my.cu")
    assert str(error.value).startswith('dir/my.cu(2): error: identifier "b" is undefined\n')
    assert "warpsmith" not in str(error.value)


def test_warnings_come_with_the_result_cached_or_not() -> None:
    source = "__global__ void k() {\n  int unused;\n}\n"
    for cached in (False, True):
        made = nvrtc.compile(source, name="w.cu")
        assert made.cached is cached
        (warning,) = made.diagnostics
        assert (warning.file, warning.line, warning.severity) == ("w.cu", 2, "warning")
        assert '"unused"' in warning.text


def test_template_instances_get_their_names() -> None:
    source = "template <class T> __global__ void fill(T* x, T v) { *x = v; }\n"
    for _ in range(2):
        made = nvrtc.compile(source, names=["fill<float>", "fill<int>"])
        assert set(made.kernels) == {"fill<float>", "fill<int>"}
        for name in made.kernels.values():
            assert f".entry {name}(" in made.text


def test_unknown_options_and_chips() -> None:
    with pytest.raises(UsageError, match="-frobnicate"):
        nvrtc.compile(ADD, options=["-frobnicate"])
    with pytest.raises(UnknownChipError):
        nvrtc.compile(ADD, chip="h20")


HEADERS = """
    stdint.h stddef.h stdio.h stdlib.h string.h assert.h math.h float.h limits.h inttypes.h stdbool.h time.h
    cstdint cstddef cstdio cstdlib cstring cassert cmath cfloat climits cinttypes type_traits limits utility
    algorithm initializer_list new array tuple functional bit complex iterator optional span variant numeric cuda.h
    cuda_fp16.h cuda_bf16.h cuda_fp8.h mma.h cooperative_groups.h cuda_runtime.h cuda/pipeline cuda/barrier cuda/atomic
    cub/block/block_reduce.cuh
"""


def test_headers_that_kernels_include_are_there() -> None:
    """All at once (each alone takes seconds in all), in two orders: they must not contradict each other."""
    headers = HEADERS.split()
    headers.remove("cuda.h")  # the toolkit's own headers include the driver's, which NVRTC does not take
    for order in (headers, headers[::-1]):
        source = "".join(f"#include <{header}>\n" for header in order) + ADD
        made = nvrtc.compile(source)
        assert [d for d in made.diagnostics if d.severity == "error"] == []


@pytest.mark.parametrize("header", ["stdint.h", "cstdio", "math.h", "cuda.h", "assert.h", "new", "climits"])
def test_headers_stand_alone(header: str) -> None:
    assert nvrtc.compile(f"#include <{header}>\n{ADD}").log == ""


def test_what_those_headers_declare() -> None:
    source = """
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <cuda.h>
static_assert(sizeof(std::int64_t) == 8 && sizeof(uint8_t) == 1 && sizeof(uintptr_t) == 8 && sizeof(size_t) == 8);
static_assert(INT_MIN == std::numeric_limits<int>::min() && UINT64_MAX == ~0ull && LONG_MAX == INT64_MAX);
static_assert(FLT_MAX == std::numeric_limits<float>::max() && DBL_MAX == std::numeric_limits<double>::max());
static_assert(FLT_EPSILON == std::numeric_limits<float>::epsilon() && FLT_MIN == std::numeric_limits<float>::min());
extern "C" __global__ void k(float* x, const __grid_constant__ CUtensorMap map) {
  assert(x[0] < INFINITY && x[1] != NAN);
  std::printf("%f %d\\n", x[0], INT_MAX);
  x[2] = std::sqrt(x[3]) + M_PI;
  memcpy(x, x + 8, sizeof(float) * offsetof(struct float4, y));
}
"""
    text = nvrtc.compile(source).text
    assert "vprintf" in text
    assert "__assertfail" in text


def test_threads_may_compile_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda n: nvrtc.compile(ADD.replace("1.0f", f"{n}.0f")).text, range(8)))
    assert len(set(texts)) == 8


def test_it_is_fast() -> None:
    nvrtc.compile(ADD)  # loads the library
    start = time.process_time()
    nvrtc.compile(ADD.replace("1.0f", "7.0f"))
    compiled = time.process_time()
    assert nvrtc.compile(ADD.replace("1.0f", "7.0f")).cached
    assert compiled - start < 0.3
    assert time.process_time() - compiled < 0.05
