"""Loads and stores of every width and vector length, in every space, for the address patterns that real kernels have.

The lowering takes different ways for consecutive lanes, common addresses, lanes within a few lines and scattered
lanes, with all or some lanes running: every way must give what numpy's indexing gives.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import warpsmith

SIZE = 4096  # bytes of the array that is accessed
WIDTHS = [(8, 1), (8, 2), (8, 4), (16, 1), (16, 2), (16, 4), (32, 1), (32, 2), (32, 4), (64, 1), (64, 2)]


def patterns(unit: int) -> dict[str, np.ndarray]:
    """Byte offsets of 32 lanes, multiples of ``unit``."""
    lane = np.arange(32)
    rng = np.random.default_rng(unit)
    slots = SIZE // unit
    named = {
        "consecutive": lane,
        "consecutive from an odd place": lane + 5,
        "backwards": 31 - lane,
        "one address": np.full(32, 7),
        "two rows of a tile": lane % 16 + lane // 16 * 24,
        "two addresses": 3 + lane // 16 * 40,
        "pairs": lane // 2,
        "every third": lane * 3,
        "columns": lane * (slots // 32),
        "scattered": rng.integers(0, slots, 32),
        "few lines": rng.integers(0, 64, 32),
        "lane 0 elsewhere": np.where(lane == 0, slots - 1, lane),
    }
    return {name: (offsets % slots) * unit for name, offsets in named.items()}


MASKS = [0xFFFFFFFF, 0x0000FFFF, 0xFFFFFFFE, 0x00000001, 0x80000000, 0xA5A5F00F, 0]


def module(space: str, op: str) -> str:
    """A kernel a width: every lane in a mask loads or stores at an offset of its own."""
    kernels = []
    for bits, v in WIDTHS:
        letter = "d" if bits == 64 else ("h" if bits <= 16 else "r")
        regs = [f"%{letter}{k}" for k in range(v)]
        group = regs[0] if v == 1 else "{" + ", ".join(regs) + "}"
        vec = "" if v == 1 else f".v{v}"
        base = {
            "global": "mov.u64 %a0, %in;",
            "generic": "mov.u64 %a0, %in;",
            "shared": "mov.u64 %a0, box;",
            "shared_generic": "mov.u64 %a0, box; cvta.shared.u64 %a0, %a0;",
            "local": "mov.u64 %a0, mine;",
        }[space]
        where = {"global": ".global", "shared": ".shared", "local": ".local"}.get(space, "")
        inner = {"shared": ".shared", "shared_generic": ".shared", "local": ".local"}.get(space)
        fill = drain = ""
        if (
            inner
        ):  # copy the array in before, and out after: by all lanes in shared, by each lane in its own local memory
            who = "%lane" if inner == ".shared" else "0"
            step = 32 if inner == ".shared" else 1
            symbol = "box" if inner == ".shared" else "mine"
            for name, source, target in (
                ("fill", ("%in", ".global"), (symbol, inner)),
                ("drain", (symbol, inner), ("%res", ".global")),
            ):
                text = f"""
  mov.u32 %i, {who}; mov.u64 %p0, {source[0]}; mov.u64 %p1, {target[0]};
{name}_loop:
  mul.wide.u32 %p2, %i, 4; add.s64 %p3, %p0, %p2; ld{source[1]}.u32 %t, [%p3]; add.s64 %p3, %p1, %p2; st{target[1]}.u32 [%p3], %t;
  add.u32 %i, %i, {step}; setp.lt.u32 %q, %i, {SIZE // 4}; @%q bra {name}_loop;"""
                if name == "fill":
                    fill = text + " bar.sync 0;"
                elif inner == ".shared":
                    drain = " bar.sync 0;" + text
        if op == "ld":
            act = f"@%m ld{where}{vec}.b{bits} {group}, [%at];"
            after = f"@%m st.global{vec}.b{bits} [%slot], {group};"
        else:
            act = f"ld.global{vec}.b{bits} {group}, [%slot]; @%m st{where}{vec}.b{bits} [%at], {group};"
            after = drain
            if space == "local":  # each lane shows its own copy
                after = f"@%m ld.local{vec}.b{bits} {group}, [%at]; @%m st.global{vec}.b{bits} [%slot2], {group};"
        kernels.append(f"""
.visible .entry k{bits}x{v}(.param .u64 pin, .param .u64 pres, .param .u64 poff, .param .u64 pslot, .param .u32 pmask) {{
  .reg .pred %m, %q; .reg .b32 %r<4>, %lane, %i, %t, %bit; .reg .b64 %d<4>, %in, %res, %off, %slots, %at, %a0, %slot, %slot2, %p<4>;
  .reg .b16 %h<4>; .shared .align 16 .b8 box[{SIZE}]; .local .align 16 .b8 mine[{SIZE}];
  ld.param.u64 %in, [pin]; ld.param.u64 %res, [pres]; ld.param.u64 %off, [poff]; ld.param.u64 %slots, [pslot]; ld.param.u32 %t, [pmask];
  mov.u32 %lane, %tid.x; shr.u32 %bit, %t, %lane; and.b32 %bit, %bit, 1; setp.ne.u32 %m, %bit, 0;
  {fill}
  mul.wide.u32 %p0, %lane, 4; add.s64 %p0, %off, %p0; ld.global.u32 %t, [%p0]; cvt.u64.u32 %p0, %t;
  {base} add.s64 %at, %a0, %p0;
  mul.wide.u32 %p0, %lane, {bits * v // 8}; add.s64 %slot, %slots, %p0; add.s64 %slot2, %res, %p0;
  {act}
  {after}
  ret;
}}""")
    return ".version 9.0\n.target sm_90\n.address_size 64\n" + "".join(kernels).replace("fill_loop", "$F").replace(
        "drain_loop", "$D"
    )


def lanes_of(mask: int) -> np.ndarray:
    return np.array([mask >> k & 1 for k in range(32)], bool)


@pytest.mark.parametrize("mode", ["check", "fast"])
@pytest.mark.parametrize("space", ["global", "generic", "shared", "shared_generic", "local"])
def test_loads(space, mode):
    program = warpsmith.device("emulator", mode=mode).compile(module(space, "ld"))
    data = np.random.default_rng(1).integers(0, 256, SIZE, dtype=np.uint8)
    for (bits, v), mask in itertools.product(WIDTHS, MASKS):
        unit = bits * v // 8
        for name, offsets in patterns(unit).items():
            out = np.full((32, unit), 0xEE, np.uint8)
            program[f"k{bits}x{v}"](1, 32, data, data, offsets.astype(np.uint32), out, mask)
            want = np.where(lanes_of(mask)[:, None], data[offsets[:, None] + np.arange(unit)], 0xEE)
            assert np.array_equal(out, want), (bits, v, hex(mask), name)


@pytest.mark.parametrize("mode", ["check", "fast"])
@pytest.mark.parametrize("space", ["global", "generic", "shared", "shared_generic", "local"])
def test_stores(space, mode):
    program = warpsmith.device("emulator", mode=mode).compile(module(space, "st"))
    rng = np.random.default_rng(2)
    for (bits, v), mask in itertools.product(WIDTHS, MASKS):
        unit = bits * v // 8
        for name, offsets in patterns(unit).items():
            data = rng.integers(0, 256, SIZE, dtype=np.uint8)
            values = rng.integers(0, 256, (32, unit), dtype=np.uint8)
            want = data.copy()
            for lane in np.flatnonzero(lanes_of(mask)):  # of lanes at one address, the last one's value stays
                want[offsets[lane] : offsets[lane] + unit] = values[lane]
            result = np.zeros(SIZE, np.uint8)
            before = values.copy()
            target = data if space in ("global", "generic") else result
            program[f"k{bits}x{v}"](1, 32, data, result, offsets.astype(np.uint32), values, mask)
            if space == "local":
                shown = result[: 32 * unit].reshape(32, unit)
                assert np.array_equal(shown, np.where(lanes_of(mask)[:, None], before, 0)), (bits, v, hex(mask), name)
            else:
                assert np.array_equal(target, want), (bits, v, hex(mask), name)
