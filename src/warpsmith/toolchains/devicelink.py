"""The device half of linking: what nvcc's "-dlink" step does, for objects whose device code is PTX.

An object of separate compilation (-rdc=true) holds its PTX in the section ``__nv_relfatbin`` and calls, when
the program starts, a function ``__cudaRegisterLinkedBinary_<its number>`` that the device linker makes.
Here these functions pass the PTX on to our CUDA runtime, which puts the modules of a program together
(``ptx/link.py``) when the first of them is used.  That makes the host's linker the one that decides which
members of a static library belong to the program; what is left to do here is to ask it for those whose
device code is needed, and to say which names nobody defines.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..cudart.fatbin import Entry, FatbinError, entries
from ..errors import InputError, LinkError
from ..ptx import link as ptx_link
from ..ptx.ast import PtxError

_REGISTER, _WRAP = "__cudaRegisterLinkedBinary", "__fatbinwrap"
_SECTION = "__nv_relfatbin"


@dataclass(frozen=True)
class DeviceObject:
    """An object file with relocatable device code."""

    name: str  # for messages: "scan.o", "libscan.a(scan.o)"
    ids: tuple[str, ...]  # "_1751c1ad_4_a_cu_mine"
    code: bytes
    optional: bool  # a member of a static library

    @cached_property
    def summary(self) -> ptx_link.Summary:
        found = [entry for entry in self.entries if entry.is_ptx]
        if not found:
            targets = ", ".join(sorted({entry.target for entry in self.entries})) or "nothing"
            raise LinkError(
                f"{self.name} holds device code for {targets} and no PTX, which the emulator needs;"
                " compile it with warpsmith nvcc"
            )
        newest = max(found, key=lambda entry: (entry.arch, entry.suffix))
        try:
            return ptx_link.summarize(newest.text(), self.name)
        except PtxError as error:
            raise LinkError(f"{self.name}: its device code cannot be read: {error}") from None

    @cached_property
    def entries(self) -> list[Entry]:
        try:
            return list(entries(self.code))
        except FatbinError as error:
            raise LinkError(f"{self.name}: {error}") from None


def stub(inputs: Iterable[str], *, strict: bool = True) -> str | None:
    """C source that registers the device code of all objects and libraries; None if there is nothing to register.

    ``strict``: names that are used and nowhere defined are an error."""
    objects = [found for path in inputs for found in device_objects(path)]
    if not objects:
        return None
    provided = {name for found in objects for name in found.summary.defines}
    if strict:
        for found in objects:
            missing = sorted(found.summary.needs - provided)
            if missing and not found.optional:
                raise LinkError(_undefined(found, missing))
    needed = {name for found in objects for name in found.summary.needs}
    pulled = [found for found in objects if found.optional and found.summary.defines & needed]
    lines = [
        "void __warpsmithRegisterLinkedBinary(void*** group, const void* wrapper, void (*callback)(void**));",
        "static void** group;",
    ]
    for number in dict.fromkeys(number for found in objects for number in found.ids):
        lines.append(
            f"void {_REGISTER}{number}(void (*callback)(void**), void* wrapper, void* name, void (*unused)(void*)) {{\n"
            "  (void)name, (void)unused;\n"
            "  __warpsmithRegisterLinkedBinary(&group, wrapper, callback);\n}"
        )
    wanted = list(dict.fromkeys(number for found in pulled for number in found.ids))
    lines += [f"extern const char {_WRAP}{number}[];" for number in wanted]
    if wanted:
        # Naming them makes the host's linker take the members of libraries that only device code asks for.
        list_ = ", ".join(f"{_WRAP}{number}" for number in wanted)
        lines.append(f"__attribute__((used)) static const char* const pulled[] = {{{list_}}};")
    return "\n".join(lines) + "\n"


def _undefined(found: DeviceObject, missing: Sequence[str]) -> str:
    from .nvcc import demangle

    names = ", ".join(demangle(name) for name in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return (
        f"{found.name}: its device code uses {names}{more}, which no object or library that is linked defines;"
        " is a source file or a library missing?"
    )


def device_objects(path: str) -> Iterator[DeviceObject]:
    """The relocatable device code in an object file or a static library; nothing for any other file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    for name, member, optional in _members(path, data):
        try:
            found = _object(name, member, optional)
        except (struct.error, IndexError):
            continue  # the host's linker says what is wrong with it
        if found:
            yield found


def _object(name: str, data: bytes, optional: bool) -> DeviceObject | None:
    if data[:6] != b"\x7fELF\x02\x01" or _SECTION.encode() not in data:
        return None
    sections = list(_sections(data))
    code = b"".join(body for section, _, body, _ in sections if section == _SECTION)
    ids: list[str] = []
    for _, kind, body, link in sections:
        if kind == 2:  # SHT_SYMTAB
            strings = sections[link][2]
            for at in range(0, len(body), 24):
                start, _, _, index = struct.unpack_from("<IBBH", body, at)
                symbol = strings[start : strings.index(b"\0", start)].decode("utf-8", "replace")
                if symbol.startswith(_WRAP + "_") and index:
                    ids.append(symbol.removeprefix(_WRAP))
    return DeviceObject(name, tuple(ids), code, optional) if ids and code else None


def _sections(data: bytes) -> Iterator[tuple[str, int, bytes, int]]:
    """(name, type, content, link) of every section of a 64-bit ELF file."""
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    if offset and not count:
        (count,) = struct.unpack_from("<Q", data, offset + 32)  # more than a 16-bit number can count
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    if names == 0xFFFF:
        names = headers[0][6]
    strings = data[headers[names][4] :][: headers[names][5]] if headers else b""
    for head in headers:
        name = strings[head[0] : strings.index(b"\0", head[0])].decode("utf-8", "replace")
        body = b"" if head[1] == 8 else data[head[4] : head[4] + head[5]]  # SHT_NOBITS has no content
        yield name, head[1], body, head[6]


def _members(path: str, data: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """(name, content, is it a library's) of the objects in a file."""
    thin = data.startswith(b"!<thin>\n")
    if not thin and not data.startswith(b"!<arch>\n"):
        yield path, data, False
        return
    at, long_names = 8, b""
    while at + 60 <= len(data):
        name = data[at : at + 16].decode("latin-1").rstrip()
        found = re.match(rb"\d+", data[at + 48 : at + 58])
        size = int(found[0]) if found else 0
        body = data[at + 60 : at + 60 + size]
        at += 60
        if name in ("/", "/SYM64/", "//"):
            long_names = body if name == "//" else long_names
            at += size + size % 2
            continue
        if re.fullmatch(r"/\d+", name):
            start = int(name[1:])
            name = long_names[start : long_names.index(b"\n", start)].decode("utf-8", "replace")
        name = name.removesuffix("/")
        if thin:
            outside = Path(path).parent / name
            body = outside.read_bytes() if outside.exists() else b""
        else:
            at += size + size % 2
        yield f"{path}({Path(name).name})", body, True
