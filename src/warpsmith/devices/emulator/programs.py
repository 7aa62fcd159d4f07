"""The device code of programs: fat binary -> variables and kernels -> native code, each done once."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ...chips import Chip
from ...cudart.fatbin import FatbinError, choose, entries, explain
from ...errors import CacheError, HostCompilerError, MissingToolError
from ...toolchains.cache import Cache, default_cache, key
from .compiler import CompileOptions, compile_kernel, digest
from .wire import Writer

if TYPE_CHECKING:
    from ...ptx.ast import Module, Variable


class Refusal(Exception):
    """An answer that is an error of the runtime API, with one sentence for the user."""

    INITIALIZATION, INVALID_IMAGE, NO_IMAGE, INVALID_PTX, UNKNOWN = 3, 200, 209, 218, 999

    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


@dataclass
class Image:
    """The PTX of one fat binary."""

    text: str
    target: str  # sm_90a

    @cached_property
    def module(self) -> Module:
        from ...ptx import ast
        from ...ptx.parser import parse

        try:
            return parse(self.text)
        except ast.PtxError as error:
            raise Refusal(Refusal.INVALID_PTX, f"the program's PTX is malformed: {error}") from None

    @cached_property
    def version(self) -> int:
        """90 for PTX ISA 9.0."""
        found = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", self.text, re.MULTILINE)
        return int(found[1]) * 10 + int(found[2]) if found else 0


class Programs:
    """What the processes of one run have loaded."""

    def __init__(self, chip: Chip, *, check: bool) -> None:
        self.chip = chip
        self.options = CompileOptions(check=check)
        self._images: list[Image] = []
        self._lock = threading.RLock()
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def add(self, containers: Sequence[bytes]) -> tuple[int, bytes]:
        """A fat binary, or several that are one program: its number here, and the description that
        ``cudart/code.cpp`` reads."""
        image = self._linked([self._image(container) for container in containers])
        with self._lock:
            # The same code in several processes: parsed once.
            number = next((i for i, known in enumerate(self._images) if known.text == image.text), len(self._images))
            if number == len(self._images):
                self._images.append(image)
            return number, self._description(self._images[number])

    def _image(self, container: bytes) -> Image:
        try:
            found = list(entries(container))
            entry = choose(found, self.chip.compute)
            if entry is None:
                raise Refusal(Refusal.NO_IMAGE, explain(found, self.chip.name, self.chip.target))
            return Image(entry.text(), entry.target)
        except FatbinError as error:
            raise Refusal(Refusal.INVALID_IMAGE, str(error)) from None

    def _linked(self, images: Sequence[Image]) -> Image:
        if len(images) == 1:
            return images[0]
        from ...ptx.ast import PtxError
        from ...ptx.link import link

        try:
            text = link([image.text for image in images])
        except PtxError as error:
            raise Refusal(Refusal.INVALID_PTX, f"the program's device code cannot be linked: {error}") from None
        return Image(text, max((image.target for image in images), key=lambda t: (int(re.sub(r"\D", "", t)), t)))

    def _description(self, image: Image) -> bytes:
        from .compiler import _sources_digest

        store = default_cache()
        name = key("description", image.text.encode("utf-8", "surrogateescape"), image.target, _sources_digest())
        if (known := store.load("description", name)) is not None:
            return known
        made = describe(image)
        try:
            store.store("description", name, made)
        except CacheError:
            pass  # only time is lost
        return made

    def kernel(self, number: int, name: str) -> tuple[Path, str]:
        """A shared object with the native code of a kernel, and the symbol that describes it."""
        with self._lock:
            image = self._images[number]
            unique = digest(image.text, name, self.options)
            symbol = f"ws_info_{unique[:24]}"
            store = default_cache()
            if path := store.find_file("shared-object", unique):
                return path, symbol
            compiled = compile_kernel(image.module, name, self.options, text=image.text)
            return self._link(store, unique, compiled.object), compiled.info_symbol

    def _link(self, store: Cache, unique: str, code: bytes) -> Path:
        """An object file -> a shared object that a program can load."""
        linker = shutil.which("ld")
        if linker is None:
            raise HostCompilerError(
                "kernels of whole programs need a linker (ld), and none was found; install binutils"
            )
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            source, made = Path(folder) / "kernel.o", Path(folder) / "kernel.so"
            source.write_bytes(code)
            command = [linker, "-shared", "-z", "noexecstack", "--hash-style=gnu", "-o", str(made), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
            if done.returncode:
                raise Refusal(Refusal.UNKNOWN, f"a compiled kernel cannot be linked: {done.stderr.strip()}")
            try:
                return store.store_file("shared-object", unique, made)
            except CacheError:
                # Without a cache folder it must still live as long as this run.
                if self._scratch is None:
                    self._scratch = tempfile.TemporaryDirectory(prefix="warpsmith-")
                return Path(shutil.copy(made, Path(self._scratch.name) / f"{unique}.so"))

    def registers(self, number: int, name: str) -> int:
        """Registers a thread, as the real compiler allocates them for this chip; 0 if it is not installed."""
        from ...toolchains.toolkit import toolkit

        image = self._images[number]
        try:
            kit = toolkit()
        except MissingToolError:
            return 0
        ptxas = kit.root / "bin" / "ptxas"
        if not ptxas.exists():
            return 0
        text = image.text.encode("utf-8", "surrogateescape")
        arch = image.target if image.target[-1].isalpha() else f"sm_{self.chip.compute[0]}{self.chip.compute[1]}"
        store = default_cache()
        unique = key("registers", text, name, arch, kit.version("nvidia-cuda-nvcc"))
        if (known := store.load("registers", unique)) is not None:
            return int(known)
        count = _allocated(ptxas, text, name, arch)
        try:
            store.store("registers", unique, str(count).encode())
        except CacheError:
            pass
        return count


def _allocated(ptxas: Path, text: bytes, name: str, arch: str) -> int:
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        source = Path(folder) / "module.ptx"
        source.write_bytes(text)
        command = [str(ptxas), f"-arch={arch}", "-v", "-e", name, str(source), "-o", str(Path(folder) / "out")]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    found = re.search(r"Used (\d+) registers", done.stdout + done.stderr)
    return int(found[1]) if found else 0


# ---- descriptions --------------------------------------------------------------------------------------


def describe(image: Image) -> bytes:
    """Variables and kernels of a module, for ``read_variable`` and ``read_kernel`` of ``cudart/code.cpp``."""
    from .lowering.kernel import addressed_functions, param_layout

    module = image.module
    variables = list(module.variables.values())
    for function in module.functions.values():
        variables += function.variables
    placed = [v for v in variables if v.space in ("global", "const") and v.linkage != "extern"]
    functions = {name: str(i) for i, name in enumerate(addressed_functions(module))}
    arch = int("".join(c for c in image.target if c.isdigit()))
    parts = [Writer().i32(image.version).i32(arch).u32(len(placed)).data]
    parts += [_variable(v, functions) for v in placed]
    parts.append(Writer().u32(len(module.kernels)).data)
    for name, function in module.kernels.items():
        offsets, size = param_layout(function)
        w = Writer().text(name).u32(size).u32(len(function.params))
        for p in function.params:
            w.u32(offsets[p.name]).u32(p.size)
        parts.append(w.data)
    return b"".join(parts)


def _variable(v: Variable, functions: dict[str, str]) -> bytes:
    w = Writer().text(v.name).u64(v.size).u8(v.space == "const").u8("managed" in v.attributes)
    w.blob(v.init or b"").u32(len(v.relocs))
    for offset, symbol, addend, _ in v.relocs:
        w.u64(offset).u8(symbol in functions).text(functions.get(symbol, symbol)).i64(addend)
    return w.data
