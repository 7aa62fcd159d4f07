"""Our own declarations of the CUDA runtime's types, compared with NVIDIA's headers by the C++ compiler."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import warpsmith.cudart
from warpsmith.toolchains.toolkit import host_compiler, toolkit

TYPES = Path(warpsmith.cudart.__file__).parent / "types.h"
ERRORS = TYPES.with_name("errors.h")
#: Ours -> NVIDIA's, where a macro or another name stands for the same number.
NAMES = {
    "kHostAllocPortable": "cudaHostAllocPortable",
    "kHostAllocMapped": "cudaHostAllocMapped",
    "kHostAllocWriteCombined": "cudaHostAllocWriteCombined",
    "kMemAttachGlobal": "cudaMemAttachGlobal",
    "kMemAttachHost": "cudaMemAttachHost",
    "kArrayLayered": "cudaArrayLayered",
    "kArraySurfaceLoadStore": "cudaArraySurfaceLoadStore",
    "kArrayCubemap": "cudaArrayCubemap",
    "kArrayTextureGather": "cudaArrayTextureGather",
    "kStreamNonBlocking": "cudaStreamNonBlocking",
    "kEventBlockingSync": "cudaEventBlockingSync",
    "kEventDisableTiming": "cudaEventDisableTiming",
    "kEventInterprocess": "cudaEventInterprocess",
    "kDeviceFlagsAll": "cudaDeviceMask",
}
#: Sums of several flags, or only in the driver's headers.
OURS = {"kHostRegisterAll", "kLimitSharedMemory"}


def structures(text: str) -> dict[str, list[str]]:
    """Name -> fields, of structures without nested ones."""
    out = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)\}[;\s]", text, re.MULTILINE | re.DOTALL):
        body = re.sub(r"union \{.*", "", body, flags=re.DOTALL)
        fields = []
        for declaration in body.split(";"):
            words = declaration.strip()
            if words:
                fields += [re.sub(r"\[.*|[*\s]", "", part.split()[-1]) for part in words.split(",")]
        out[name] = fields
    return out


def test_sizes_offsets_and_values(tmp_path: Path) -> None:
    text = TYPES.read_text()
    lines = []
    for name, fields in structures(text).items():
        lines.append(f'static_assert(sizeof(ours::{name}) == sizeof(::{name}), "{name}");')
        for f in fields:
            same = f"offsetof(ours::{name}, {f}) == offsetof(::{name}, {f})"
            size = f"sizeof(ours::{name}::{f}) == sizeof(::{name}::{f})"
            lines.append(f'static_assert({same} && {size}, "{name}.{f}");')
    lines.append(
        'static_assert(offsetof(ours::cudaLaunchAttribute, val) == offsetof(::cudaLaunchAttribute, val), "val");'
    )
    enumerators = re.findall(r"^  ?(?:\w.*\{ )?(cuda\w+|k[A-Z]\w+) = (0x\w+|\d+)", text, re.MULTILINE)
    enumerators += [pair for line in re.findall(r"^enum \w+ : int \{(.*)\};", text, re.MULTILINE)
                    for pair in re.findall(r"(\w+) = (\d+)", line)]  # fmt: skip
    enumerators += [(name, number) for number, name in re.findall(r"X\((\d+), (\w+),", ERRORS.read_text())]
    checked = [(n, v) for n, v in enumerators if n not in OURS]
    assert len(checked) > 190
    lines += [f'static_assert(int({NAMES.get(n, n)}) == {v}, "{n}");' for n, v in checked]
    source = tmp_path / "compare.cpp"
    source.write_text(
        "#include <cstddef>\n#include <cstdint>\nnamespace ours {\n"
        + re.sub(r"^#include <.*$", "", text, flags=re.MULTILINE)
        + "\n}\n#include <cuda_runtime_api.h>\n"
        + "\n".join(lines)
        + "\n"
    )
    includes = [f"-I{TYPES.parent}", *(f"-I{folder}" for folder in toolkit().includes)]
    done = subprocess.run(
        [host_compiler(), "-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof", *includes, str(source)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_field_of_the_device_properties_is_ours(tmp_path: Path) -> None:
    assert len(structures(TYPES.read_text())["cudaDeviceProp"]) == 93


def test_error_names_and_texts() -> None:
    """Against NVIDIA's own library, which needs no GPU for that."""
    theirs = ctypes.CDLL(str(toolkit()._library("libcudart.so.13")))
    names, texts = theirs.cudaGetErrorName, theirs.cudaGetErrorString
    names.restype = texts.restype = ctypes.c_char_p
    ours = {int(n): (name, text) for n, name, text in re.findall(r'X\((\d+), (\w+), "(.*?)"\)', ERRORS.read_text())}
    unknown = names(12345)
    known = {n: (names(n).decode(), texts(n).decode()) for n in [*range(1200), 10000] if names(n) != unknown}
    assert ours == known
