"""The containers in which nvcc puts device code into a program ("fat binaries").

A container is a header and entries, each one PTX text or machine code for one architecture, possibly
compressed.  What is read here is the PTX that a chip can run.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")  # magic, version, size of this header, size of what follows
# kind, version, header size, payload size, compressed size, options, minor, major, architecture, name, flags, -, full size
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _LZ4, _ZSTD, _ARCH_SPECIFIC, _FAMILY_SPECIFIC = 1, 0x2000, 0x8000, 0x100000, 0x200000
#: Far more than any module is; a wrong size in a damaged file must not take all memory.
_MOST = 1 << 30


class FatbinError(ValueError):
    """Not a readable container: one sentence."""


@dataclass(frozen=True)
class Entry:
    """One piece of device code."""

    is_ptx: bool
    arch: int  # 90
    suffix: str  # "", "a" (this architecture only) or "f" (this family)
    flags: int
    payload: bytes
    size: int  # uncompressed

    @property
    def target(self) -> str:
        return f"sm_{self.arch}{self.suffix}"

    def text(self) -> str:
        """The PTX."""
        data = self.payload
        if self.flags & _LZ4:
            data = lz4(data, self.size)
        elif self.flags & _ZSTD:
            data = zstd(data, self.size)
        return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def entries(data: bytes) -> Iterator[Entry]:
    """All code in a container (or in several, one after the other)."""
    at = 0
    while at + _HEADER.size <= len(data):
        magic, _, header, rest = _HEADER.unpack_from(data, at)
        if magic != MAGIC:
            if at == 0:
                raise FatbinError("the device code of the program is not a fat binary")
            return
        end = at + header + rest
        if end > len(data) or header < _HEADER.size:
            raise FatbinError("the device code of the program is cut off")
        yield from _entries(data, at + header, end)
        at = end + (-end) % 8


def _entries(data: bytes, at: int, end: int) -> Iterator[Entry]:
    while at < end:
        # The last three fields are there only in entries that need them.
        shortest = _ENTRY.size - 24
        if at + shortest > end:
            raise FatbinError("the device code of the program is cut off")
        fields = _ENTRY.unpack(data[at : at + _ENTRY.size].ljust(_ENTRY.size, b"\0"))
        kind, _, header, payload, compressed, _, _, _, arch, _, _, flags, _, size = fields
        start = at + header
        if header < shortest or start + payload > end:
            raise FatbinError("the device code of the program is damaged")
        suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
        packed = bool(flags & (_LZ4 | _ZSTD))
        body = data[start : start + (compressed if packed and compressed <= payload else payload)]
        yield Entry(kind == _PTX, arch, suffix, flags, body, size if packed else len(body))
        at = start + payload


def choose(found: list[Entry], compute: tuple[int, int]) -> Entry | None:
    """The newest PTX that a chip of this compute capability can run."""
    chip = compute[0] * 10 + compute[1]

    def runs(entry: Entry) -> bool:
        if entry.suffix == "a":
            return entry.arch == chip
        if entry.suffix == "f":
            return entry.arch // 10 == compute[0] and entry.arch <= chip
        return entry.arch <= chip

    candidates = [entry for entry in found if entry.is_ptx and runs(entry)]
    return max(candidates, key=lambda entry: (entry.arch, entry.suffix), default=None)


def explain(found: list[Entry], chip: str, target: str) -> str:
    """Why nothing in a container runs on a chip: one sentence."""
    ptx = sorted({entry.target for entry in found if entry.is_ptx})
    wanted = target.replace("sm_", "compute_")
    how = f"compile with -gencode arch={wanted},code={wanted}"
    if ptx:
        return f"the program's device code is for {', '.join(ptx)}, which the {chip} ({target}) does not run; {how}"
    code = sorted({entry.target for entry in found})
    what = f"machine code for {', '.join(code)} and no PTX" if code else "no device code"
    return f"the program holds {what}, and the emulator needs PTX; {how}"


# ---- compression ---------------------------------------------------------------------------------------


def lz4(data: bytes, size: int) -> bytes:
    """Decode an LZ4 block of ``size`` bytes."""
    if size > _MOST:
        raise FatbinError("the compressed device code of the program is damaged")
    out = bytearray()
    at = 0
    try:
        while at < len(data):
            token = data[at]
            at += 1
            length, at = _length(data, at, token >> 4)
            out += data[at : at + length]
            at += length
            if at >= len(data):
                break
            offset = data[at] | data[at + 1] << 8
            length, at = _length(data, at + 2, token & 15)
            length += 4
            if not 0 < offset <= len(out) or len(out) + length > size:
                raise FatbinError("the compressed device code of the program is damaged")
            # A match may reach into what it writes: then its bytes repeat.
            piece = bytes(out[-offset:][:length])
            out += (piece * (length // len(piece) + 1))[:length]
    except IndexError:
        raise FatbinError("the compressed device code of the program is cut off") from None
    if len(out) != size:
        raise FatbinError("the compressed device code of the program is cut off")
    return bytes(out)


def _length(data: bytes, at: int, length: int) -> tuple[int, int]:
    """A length that goes on in further bytes while they are 255."""
    if length == 15:
        while data[at] == 255:
            length += 255
            at += 1
        length += data[at]
        at += 1
    return length, at


def zstd(data: bytes, size: int) -> bytes:
    """Decode with whatever zstd there is: Python's own (3.14), a package, the system's library."""
    if size > _MOST:
        raise FatbinError("the compressed device code of the program is damaged")
    for decode in (_zstd_module("compression.zstd"), _zstd_module("backports.zstd"), _zstandard(), _libzstd()):
        if decode is None:
            continue
        try:
            out = decode(data, size)
        except Exception as error:  # each library has its own
            raise FatbinError(f"the compressed device code of the program is damaged ({error})") from None
        if len(out) != size:
            raise FatbinError("the compressed device code of the program is cut off")
        return out
    raise FatbinError(
        "the program's device code is compressed in a way that this Python cannot read: compile with --no-compress,"
        " or pip install zstandard"
    )


Decoder = Callable[[bytes, int], bytes]


def _zstd_module(name: str) -> Decoder | None:
    try:
        module = import_module(name)
    except ImportError:
        return None
    return lambda data, size: bytes(module.decompress(data))


def _zstandard() -> Decoder | None:
    try:
        module = import_module("zstandard")
    except ImportError:
        return None
    return lambda data, size: bytes(module.ZstdDecompressor().decompress(data, max_output_size=size))


def _libzstd() -> Decoder | None:
    for name in ("libzstd.so.1", ctypes.util.find_library("zstd")):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            library = None
        if library is not None:
            return lambda data, size: _call_libzstd(library, data, size)
    return None


def _call_libzstd(library: ctypes.CDLL, data: bytes, size: int) -> bytes:
    function = library.ZSTD_decompress
    function.restype = ctypes.c_size_t
    function.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    out = ctypes.create_string_buffer(size)
    done: int = function(out, size, data, len(data))
    if done > size:  # error codes are huge
        raise FatbinError("zstd refuses it")
    return out.raw[:done]
