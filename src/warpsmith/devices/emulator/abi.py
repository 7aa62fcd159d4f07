"""The layout of the runtime's structures (runtime/abi.h) for the code that we generate.

The fields are written down once more here, in the order of the header, and laid out by C's rules; a
test compares every offset with what the compiled runtime says of itself (``ws_abi_layout``).
"""

from __future__ import annotations

from typing import Final

ABI_VERSION: Final = 1
LANES: Final = 32
DONE: Final = 0xFFFFFFFF

FUNCTION_BASE: Final = 0x7E0000000000
SHARED_WINDOW: Final = 0x7F0000000000
LOCAL_WINDOW: Final = 0x7F0100000000
#: Kernel parameters seen through generic addresses (cvta.param); only loads know it.
PARAM_WINDOW: Final = 0x7F0200000000
WINDOW_SIZE: Final = 0x100000000

Fields = dict[str, tuple[int, str]]

_SIZES: Final = {"i32": 4, "i64": 8, "ptr": 8}


def _layout(*declarations: tuple[str, str, int]) -> tuple[Fields, int]:
    """Offsets of ``(name, type, count)`` in order, each aligned to its type; and the size of the whole."""
    fields: Fields = {}
    offset = align = 0
    for name, ty, count in declarations:
        size = _SIZES[ty]
        align = max(align, size)
        offset = -(-offset // size) * size
        fields[name] = (offset, ty)
        offset += size * count
    return fields, -(-offset // align) * align


def _axes(fields: Fields, *names: str) -> Fields:
    """Adds ``name.x``, ``name.y``, ``name.z`` for the fields that are arrays of three scalars."""
    for name in names:
        offset, ty = fields[name]
        for i, axis in enumerate("xyz"):
            fields[f"{name}.{axis}"] = (offset + i * _SIZES[ty], ty)
    return fields


_warp, WARP_SIZE = _layout(
    ("live", "i32", 1),
    ("budget", "i32", 1),
    ("params", "ptr", 1),
    ("shared", "ptr", 1),
    ("shared_size", "i32", 1),
    ("warp_id", "i32", 1),
    ("local", "ptr", 1),
    ("local_size", "i32", 1),
    ("in_flight", "i32", 1),
    ("vars", "ptr", 1),
    ("delta", "i64", 1),
    ("instructions", "i64", 1),
    ("cache", "ptr", 1),
    ("tid", "i32", 3 * LANES),
    ("ntid", "i32", 3),
    ("ctaid", "i32", 3),
    ("nctaid", "i32", 3),
    ("dynamic_shared", "i32", 1),
    ("smid", "i32", 1),
    ("nsmid", "i32", 1),
    ("gridid", "i64", 1),
    ("top", "ptr", 1),
    ("block", "ptr", 1),
)
WARP_FIELDS: Final[Fields] = _axes(_warp, "ntid", "ctaid", "nctaid")
# tid is three vectors of 32 lanes.
for _i, _axis in enumerate("xyz"):
    WARP_FIELDS[f"tid.{_axis}"] = (WARP_FIELDS["tid"][0] + 4 * LANES * _i, "i32")

PARK_FIELDS, PARK_SIZE = _layout(
    ("rank", "i32", 1),
    ("mask", "i32", 1),
    ("kind", "i32", 1),
    ("id", "i32", 1),
    ("count", "i32", 1),
    ("site", "i32", 1),
    ("ticket", "i64", 1),
)
# park is opaque to compiled code: as many 8-byte words as it takes.
GROUP_FIELDS, GROUP_SIZE = _layout(
    ("frontier", "i32", 1),
    ("waiting", "i32", 1),
    ("mask", "i32", 1),
    ("ranks", "i32", 1),
    ("state", "ptr", 1),
    ("state_size", "i32", 1),
    ("parked", "i32", 1),
    ("passed", "i32", 1),
    ("streak", "i32", 1),
    ("park", "i64", LANES * PARK_SIZE // 8),
    ("wait", "ptr", 1),
    ("outer", "ptr", 1),
)
RANGE_FIELDS, RANGE_SIZE = _layout(("base", "i64", 1), ("limit", "i64", 1))
SITE_FIELDS, SITE_SIZE = _layout(
    ("ptx_line", "i32", 1), ("line", "i32", 1), ("file", "ptr", 1), ("text", "ptr", 1), ("function", "ptr", 1)
)
_info, INFO_SIZE = _layout(
    ("abi", "i32", 1),
    ("param_bytes", "i32", 1),
    ("static_shared", "i32", 1),
    ("local_bytes", "i32", 1),
    ("stack_bytes", "i32", 1),
    ("site_count", "i32", 1),
    ("var_count", "i32", 1),
    ("uses_grid_sync", "i32", 1),
    ("reqntid", "i32", 3),
    ("maxntid", "i32", 3),
    ("name", "ptr", 1),
    ("entry", "ptr", 1),
    ("sites", "ptr", 1),
    ("vars", "ptr", 1),
    ("function_count", "i32", 1),
    ("pad", "i32", 1),
    ("functions", "ptr", 1),
)
INFO_FIELDS: Final[Fields] = _axes(_info, "reqntid", "maxntid")

SPACES: Final = {"generic": 0, "global": 1, "shared": 2, "local": 3, "const": 4, "param": 5}
LOAD, STORE, ATOMIC = 0, 1, 2
BARRIER_KINDS: Final = {"sync": 0, "arrive": 1, "popc": 2, "and": 3, "or": 4}

ATOMIC_OPS: Final = {
    name: i for i, name in enumerate(("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"))
}
ATOMIC_TYPES: Final = {
    name: i
    for i, name in enumerate(
        ("b16", "b32", "b64", "b128", "u32", "s32", "u64", "s64", "f16", "bf16", "f16x2", "bf16x2", "f32", "f64")
    )
}

ERRORS: Final = {
    name: i + 1
    for i, name in enumerate(
        (
            "trap",
            "assert",
            "oob",
            "misaligned",
            "null",
            "deadlock",
            "barrier",
            "stack",
            "call",
            "unsupported",
            "interrupt",
            "launch",
            "memory",
            "segv",
            "readonly",
            "sync",
            "async",
        )
    )
}

MATRIX_TYPES: Final = {
    name: i
    for i, name in enumerate(("f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "s8", "u8", "s4", "u4", "b1", "s32"))
}
#: WS_LEFT_BYTES, WS_RIGHT_BYTES
LEFT_BYTES, RIGHT_BYTES = 2176, 1152
MMA_SATURATE, MMA_AND, MMA_SPARSE, MMA_QUADS, MMA_A_COLUMNS, MMA_B_ROWS, MMA_EXACT = (1 << n for n in range(7))
