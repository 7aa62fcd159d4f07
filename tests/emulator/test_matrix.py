"""Matrix instructions: bit for bit as an H200 answers, and against numpy with layouts written down a second time.

What the H200 answered is in tests/golden/h200/mma*.npz, recorded by tools/golden/record_matrix.py; the kernels and their
inputs come from matrix_forms.py.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import matrix_forms as forms
import numpy as np
import pytest

import warpsmith
from warpsmith.errors import KernelError, UnsupportedInstructionError

GOLDEN = Path(__file__).parent.parent / "golden" / "h200"
GROUPS = {g.file: g for g in forms.groups() if g.file != "mma_wgmma"}
Array = np.ndarray[Any, Any]


@cache
def device(numerics: str = "hardware") -> Any:
    return warpsmith.device("emulator", mode="check", numerics=numerics)


@cache
def program(group: str, numerics: str = "hardware") -> Any:
    text = "".join(forms.kernel(form, f"k{n}") for n, form in enumerate(GROUPS[group].forms))
    return device(numerics).compile(forms.HEADER + text)


def run(group: str, form: forms.Form, args: list[Array], numerics: str = "hardware") -> Array:
    a, b, c, e = args
    d = forms.result_array(form, len(a))
    program(group, numerics)[f"k{GROUPS[group].forms.index(form)}"](len(a), form.lanes, a, b, c, d, e)
    return d


# ---- as the hardware ---------------------------------------------------------------------------------------
def different(form: forms.Form, got: Array, want: Array) -> Array:
    """Where two results differ; one NaN of type f64 is as good as another."""
    if form.d != "f64":
        return got != want
    nan = [np.isnan(v.view(np.float64)) for v in (got, want)]
    return (got != want) & ~(nan[0] & nan[1])


def check_group(name: str) -> None:
    group = GROUPS[name]
    answers = forms.load_answers(GOLDEN / f"{name}.npz")
    for form in group.forms:
        for category in group.categories(form):
            raw, crc = answers[f"{form}|{category}"]
            args = forms.operands(form, category, group.count)
            assert forms.checksum(args) == crc, "these are not the inputs that were recorded"
            got = run(name, form, args)
            want = raw.view(got.dtype).reshape(got.shape)
            wrong = different(form, got, want)
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0])
                raise AssertionError(
                    f"{form}, {category} inputs: {wrong.sum()} of {wrong.size} registers differ from the H200's, first "
                    f"[instance, register, lane] {at}: {int(got[at]):#x}, the H200 has {int(want[at]):#x}"
                )


@pytest.mark.parametrize("name", GROUPS)
def test_as_an_h200(name: str) -> None:
    check_group(name)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "base"])
def test_as_an_h200_on_older_processors(cpu: str) -> None:
    code = "import test_matrix as t; t.check_group('mma'); t.check_group('mma_sparse')"
    paths = [str(Path(__file__).parent), *sys.path]
    env = {**os.environ, "WARPSMITH_CPU": cpu, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


# ---- against numpy -----------------------------------------------------------------------------------------
def numbers(bits: Array, element: str) -> Array:
    """Bit patterns as float64 or int64."""
    if element in forms.FORMATS:
        e, m = forms.FORMATS[element]
        v = bits.astype(np.int64) >> (13 if element == "tf32" else 0)
        if element == "f64":
            return bits.view(np.float64)
        field, fraction = v >> m & (1 << e) - 1, v & (1 << m) - 1
        bias = (1 << (e - 1)) - 1
        value = np.where(
            field > 0, np.ldexp((1 << m | fraction) / (1 << m), field - bias), np.ldexp(fraction / (1 << m), 1 - bias)
        )
        return np.where(v >> (e + m) & 1, -value, value)
    width = forms.BITS[element]
    v = bits.astype(np.int64)
    return np.where(v >> (width - 1) & 1, v - (1 << width), v) if element[0] == "s" else v


def expected(form: forms.Form, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """A x B + C in float64 (integers: wrapped or saturated), and the sum of the absolute terms."""
    x, y, z = numbers(a, form.a), numbers(b, form.b), numbers(c, form.c)
    if form.a == "b1":
        terms = (a[:, :, :, None] & b[:, None]) if ".and" in form.opcode else (a[:, :, :, None] ^ b[:, None])
        total = terms.sum(2).astype(np.int64) + z
    else:
        total = np.einsum("imk,ikn->imn", x, y) + z
    if form.integer:
        limit = (-(2**31), 2**31 - 1)
        total = np.clip(total, *limit) if "satfinite" in form.opcode else (total + 2**31) % 2**32 - 2**31
        return total, np.zeros_like(total)
    return total, np.einsum("imk,ikn->imn", np.abs(x), np.abs(y)) + np.abs(z)


DENSE = list(forms.mma_forms())


@pytest.mark.parametrize("numerics", ["hardware", "fast"])
def test_products_against_numpy(numerics: str) -> None:
    for form in DENSE:
        a, b, c, _ = forms.inputs(form, "normal", 4)
        d = run("mma", form, forms.operands(form, "normal", 4), numerics)
        got = numbers(forms.unpack(d, forms.places(form, "d"), form.d, (form.m, form.n)), form.d)
        want, size = expected(form, a, b, c)
        if form.integer:
            assert np.array_equal(got, want), form
            continue
        bits = {"f16": 11, "f32": 22, "f64": 52}[form.d]
        # f16 sums are rounded twice where fp8 goes through f16
        assert (np.abs(got - want) <= 2.0**-bits * (2 * np.abs(want) + size)).all(), form


def test_layouts_by_identities() -> None:
    """A x I = A and I x B = B, element by element: for every form, with no arithmetic that could hide a wrong place."""
    for form in DENSE:
        one = {"f16": 0x3C00, "bf16": 0x3F80, "tf32": 0x3F800000, "f64": 0x3FF0 << 48, "e4m3": 0x38, "e5m2": 0x3C}.get(
            form.b, 1
        )
        s = forms.Stream(str(form))
        a = (
            forms.normal(s, form.a, 1, form.m, form.k)
            if form.a in forms.FORMATS
            else s.below(1 << forms.BITS[form.a], 1, form.m, form.k)
        )
        b = np.zeros((1, form.k, 8), np.uint64)
        c = np.zeros((1, form.m, 8), np.uint64)
        for first in range(0, form.k, 8):  # eight columns of A at a time
            b[:] = 0
            for n in range(min(8, form.k - first)):
                b[0, first + n, n] = one
            regs = [
                forms.pack(v, forms.places(form, x), t)
                for v, x, t in ((a, "a", form.a), (b, "b", form.b), (c, "c", form.c))
            ]
            d = run("mma", form, [*regs, np.zeros((1, 32), np.uint32)])
            got = numbers(forms.unpack(d, forms.places(form, "d"), form.d, (form.m, 8)), form.d)
            want = numbers(a, form.a)[:, :, first : first + 8]
            if ".xor" in form.opcode:
                want = numbers(a, form.a).sum(2, keepdims=True) + 1 - 2 * want
            assert np.array_equal(got[:, :, : want.shape[2]], want), (form, first)


# ---- wmma ----------------------------------------------------------------------------------------------------
def test_wmma_layouts() -> None:
    """Every fragment holds what it holds on an H200, loaded from and stored to rows and columns."""
    import importlib.util

    path = Path(__file__).parent.parent.parent / "tools" / "golden" / "record_matrix.py"
    spec = importlib.util.spec_from_file_location("record_matrix", path)
    assert spec is not None and spec.loader is not None
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)

    class Emulated:
        def module(self, ptx: str) -> Any:
            return device().compile(ptx)

        def launch(self, program: Any, kernel: str, grid: int, block: int, arrays: list[Array]) -> None:
            program[kernel](grid, block, *arrays)

    got = recorder.layouts(Emulated())
    with np.load(GOLDEN / "mma_layouts.npz") as want:
        assert set(got) == set(want.files)
        assert [name for name in got if not np.array_equal(got[name], want[name])] == []


WMMA_SHARED = """
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 p2)
{
.shared .align 128 .b8 tile[4096];
.reg .b64 %p<4>; .reg .b32 %r<3>; .reg .f32 %f<8>; .reg .b32 %t, %n, %s;
ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u32 %s, [p2];
mov.u32 %t, %tid.x; mov.u32 %n, 0;
COPY:
mad.lo.u32 %r0, %n, 32, %t;
mad.wide.u32 %p2, %r0, 4, %p0;
ld.global.b32 %r1, [%p2];
shl.b32 %r0, %r0, 2;
mov.u32 %r2, tile;
add.u32 %r0, %r0, %r2;
st.shared.b32 [%r0], %r1;
add.u32 %n, %n, 1;
.reg .pred %q; setp.lt.u32 %q, %n, 32;
@%q bra COPY;
bar.warp.sync -1;
mov.u64 %p3, tile; cvta.shared.u64 %p3, %p3;
wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%p3+64], %s;
wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%p1], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16;
ret;
}
"""


def test_wmma_from_shared_memory_and_by_columns() -> None:
    x = np.arange(1024, dtype=np.float32)
    out = np.zeros((16, 16), np.float32)
    k = device().compile(forms.HEADER + WMMA_SHARED)["k"]
    k(1, 32, x, out, 24)
    want = np.array([[x[16 + row * 24 + col] for col in range(16)] for row in range(16)])
    assert np.array_equal(out.T, want)
    with pytest.raises(
        KernelError, match=r"out-of-bounds read of 4 bytes at 0x.* in shared memory, of which the block has 4096 bytes"
    ):
        k(1, 32, x, out, 72)


def test_wmma_out_of_bounds() -> None:
    k = device().compile(
        forms.HEADER
        + """.visible .entry k(.param .u64 p0) { .reg .b64 %p; .reg .b32 %r<8>; ld.param.u64 %p, [p0];
        wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%p], 16; ret; }"""
    )["k"]
    k(1, 32, np.zeros(256, np.float16))
    with pytest.raises(
        KernelError, match=r"out-of-bounds read of 4 bytes .*just past the end of the 480-byte allocation"
    ):
        k(1, 32, np.zeros(240, np.float16))


# ---- ldmatrix, stmatrix, movmatrix -----------------------------------------------------------------------------
def matrix_kernel(count: int, transposed: bool, store: bool, generic: bool = False) -> str:
    """Shared memory from p0, addresses of the lanes from p1; ldmatrix to p2, or stmatrix from p2 and shared memory back."""
    regs = ", ".join(f"%x{r}" for r in range(count))
    space = "" if generic else ".shared"
    instruction = f"sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}{space}.b16"
    address = "[%g]" if generic else "[%a]"
    body = []
    for r in range(count):
        body.append(f"ld.global.b32 %x{r}, [%q+{128 * r}];" if store else f"st.global.b32 [%q+{128 * r}], %x{r};")
    act = (
        f"stmatrix.{instruction} {address}, {{{regs}}};" if store else f"ldmatrix.{instruction} {{{regs}}}, {address};"
    )
    steps = [*body, act] if store else [act, *body]
    back = "ld.shared.b32 %v, [%o]; st.global.b32 [%p], %v;" if store else ""
    return f"""{forms.HEADER}.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)
{{
.shared .align 16 .b8 tile[1024];
.reg .b64 %p, %q, %g; .reg .b32 %t, %a, %o, %v, %i, %x<{count}>; .reg .pred %c;
mov.u32 %t, %tid.x;
ld.param.u64 %p, [p1]; mad.wide.u32 %p, %t, 4, %p; ld.global.b32 %a, [%p];
mov.u32 %o, tile; add.u32 %a, %a, %o;
cvt.u64.u32 %g, %a; cvta.shared.u64 %g, %g;
ld.param.u64 %q, [p2]; mad.wide.u32 %q, %t, 4, %q;
ld.param.u64 %p, [p0]; mad.wide.u32 %p, %t, 4, %p;
mad.lo.u32 %o, %t, 4, %o; mov.u32 %i, 0;
IN: ld.global.b32 %v, [%p]; st.shared.b32 [%o], %v; add.u64 %p, %p, 128; add.u32 %o, %o, 128; add.u32 %i, %i, 1;
setp.lt.u32 %c, %i, 8; @%c bra IN;
bar.warp.sync -1;
{" ".join(steps)}
bar.warp.sync -1;
mov.u32 %i, 0;
OUT: sub.u64 %p, %p, 128; sub.u32 %o, %o, 128; {back} add.u32 %i, %i, 1; setp.lt.u32 %c, %i, 8; @%c bra OUT;
ret;
}}
"""


FORMS = list(itertools.product((1, 2, 4), (False, True)))


@pytest.mark.parametrize(("count", "transposed"), FORMS)
@pytest.mark.parametrize("generic", [False, True])
def test_ldmatrix(count: int, transposed: bool, generic: bool) -> None:
    rng = np.random.default_rng(count)
    memory = rng.integers(0, 1 << 16, 512).astype(np.uint16)
    rows = rng.integers(0, 64, 32)
    address = (16 * rows).astype(np.uint32)
    address[8 * count :] = 3  # of lanes that do not matter
    out = np.zeros((count, 32), np.uint32)
    device().compile(matrix_kernel(count, transposed, False, generic))["k"](1, 32, memory, address, out)
    for j in range(count):
        matrix = memory.reshape(64, 8)[rows[8 * j : 8 * j + 8]]
        if transposed:
            matrix = matrix.T
        assert np.array_equal(np.ascontiguousarray(out[j]).view(np.uint16).reshape(8, 8), matrix)


@pytest.mark.parametrize(("count", "transposed"), FORMS)
def test_stmatrix(count: int, transposed: bool) -> None:
    rng = np.random.default_rng(count)
    memory = rng.integers(0, 1 << 16, (64, 8)).astype(np.uint16)
    rows = rng.permutation(64)[:32]
    registers = rng.integers(0, 1 << 32, (count, 32)).astype(np.uint32)
    want = memory.copy()
    for j in range(count):
        matrix = registers[j].view(np.uint16).reshape(8, 8)
        want[rows[8 * j : 8 * j + 8]] = matrix.T if transposed else matrix
    device().compile(matrix_kernel(count, transposed, True))["k"](
        1, 32, memory, (16 * rows).astype(np.uint32), registers
    )
    assert np.array_equal(memory, want)


def test_rows_of_matrices_must_be_aligned_and_inside() -> None:
    k = device().compile(matrix_kernel(4, False, False))["k"]
    memory, out = np.zeros(512, np.uint16), np.zeros((4, 32), np.uint32)
    address = np.full(32, 16, np.uint32)
    address[5] = 8
    with pytest.raises(
        KernelError, match=r"misaligned read of 16 bytes at 0x8 in shared memory(.|\n)*ldmatrix(.|\n)*thread \(5,0,0\)"
    ):
        k(1, 32, memory, address, out)
    address[5] = 1024
    with pytest.raises(KernelError, match="out-of-bounds read of 16 bytes at 0x400 in shared memory"):
        k(1, 32, memory, address, out)


def test_ldmatrix_of_an_address_elsewhere() -> None:
    k = device().compile(
        forms.HEADER
        + """.visible .entry k(.param .u64 p0) { .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p0];
        ldmatrix.sync.aligned.m8n8.x1.b16 {%r}, [%p]; ret; }"""
    )["k"]
    with pytest.raises(KernelError, match=r"works in shared memory, but 0x.* is not an address in it"):
        k(1, 32, np.zeros(64, np.uint32))


def test_movmatrix() -> None:
    k = device().compile(
        forms.HEADER
        + """.visible .entry k(.param .u64 p0) { .reg .b64 %p; .reg .b32 %r, %t; ld.param.u64 %p, [p0]; mov.u32 %t, %tid.x;
        mad.wide.u32 %p, %t, 4, %p; ld.global.b32 %r, [%p]; movmatrix.sync.aligned.m8n8.trans.b16 %r, %r; st.global.b32 [%p], %r; ret; }"""
    )["k"]
    x = np.random.default_rng(1).integers(0, 1 << 16, (8, 8)).astype(np.uint16)
    y = x.copy()
    k(1, 32, y)
    assert np.array_equal(y, x.T)


# ---- who executes them ---------------------------------------------------------------------------------------
PARTED = """
.visible .entry k(.param .u64 p0)
{
.reg .b64 %p; .reg .b32 %a<4>, %b<2>, %t; .reg .f32 %c<4>; .reg .pred %q;
ld.param.u64 %p, [p0]; mov.u32 %t, %tid.x;
mad.wide.u32 %p, %t, 16, %p;
mov.b32 %a0, 0x3c003c00; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0;
mov.f32 %c0, 0f00000000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0;
and.b32 %b0, %t, 1; setp.eq.u32 %q, %b0, 0;
@%q bra EVEN;
mov.b32 %b0, 0x3c003c00; mov.b32 %b1, %b0;
bra.uni PRODUCT;
EVEN:
mov.b32 %b0, 0x40004000; mov.b32 %b1, %b0;
PRODUCT:
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};
st.global.v4.f32 [%p], {%c0, %c1, %c2, %c3};
ret;
}
"""


def test_lanes_that_were_apart_meet() -> None:
    out = np.zeros((32, 4), np.float32)
    device().compile(forms.HEADER + PARTED)["k"](1, 32, out)
    assert (out == 8 * (1 + 2)).all()  # K is spread over four lanes, of which every other has ones and twos


def test_a_warp_that_is_not_whole() -> None:
    with pytest.raises(
        KernelError, match=r"needs all 32 lanes of the warp, but only lanes 0-15 execute it(.|\n)*mma\.sync"
    ):
        device().compile(forms.HEADER + PARTED)["k"](1, 16, np.zeros((32, 4), np.float32))


def test_guarded_product() -> None:
    """A guard must be the same for all lanes; then it works as everywhere."""
    text = PARTED.replace(
        "mad.wide.u32 %p", ".reg .b32 %z; mov.u32 %z, %ctaid.x; mad.lo.u32 %t, %z, 32, %t; mad.wide.u32 %p"
    )
    text = text.replace("mma.sync", "setp.ne.u32 %q, %z, 0; @%q mma.sync")
    out = np.full((64, 4), -1, np.float32)
    device().compile(forms.HEADER + text)["k"](2, 32, out)
    assert (out[:32] == 0).all() and (out[32:] == 24).all()


# ---- refused ---------------------------------------------------------------------------------------------------
REFUSED = [
    ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};", "is not implemented"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};", "is not implemented"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};", "is not implemented"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2}, {%r4, %r5}, {%f0, %f1, %f2, %f3};", "an operand has 3 registers, 4 are needed"),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%f0, %f1, %f2, %f3}, %r0, 2;", "must be a constant less than 2"),
    ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];", "only matrices of 8x8 elements of 16 bits are"),
    ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r0}, [%r2];", "only matrices of 8x8 elements of 16 bits are"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.s8.s32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, {%r0, %r1}, {%r0, %r1}, {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7};", "is not implemented"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_refused_forms(text: str, why: str) -> None:
    opcode = text.split()[0]
    body = f"{{ .reg .b32 %r<8>; .reg .f32 %f<8>; {text} ret; }}"
    with pytest.raises(UnsupportedInstructionError) as error:
        device().compile(f"{forms.HEADER}.visible .entry k() {body}")["k"]
    assert opcode in str(error.value) and why in str(error.value)


def test_numerics_must_exist() -> None:
    from warpsmith.errors import UsageError

    with pytest.raises(UsageError, match="numerics must be one of hardware, fast, not 'exact'"):
        warpsmith.device("emulator", numerics="exact")
