"""The options of nvcc that people give to ``warpsmith run`` and ``compile``: which go where.

Programs are built for the emulator, so the options that choose an architecture or a CUDA runtime are
accepted and have no effect: a command line that was made for nvcc should work as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError, NotCudaError, UsageError

#: Long spellings -> short ones.
_LONG = {
    "--include-path": "-I", "--system-include": "-isystem", "--define-macro": "-D", "--undefine-macro": "-U",
    "--pre-include": "-include", "--library-path": "-L", "--library": "-l", "--std": "-std", "--optimize": "-O",
    "--compiler-options": "-Xcompiler", "--linker-options": "-Xlinker", "--ptxas-options": "-Xptxas",
    "--nvlink-options": "-Xnvlink", "--cudafe-options": "-Xcudafe", "--compiler-bindir": "-ccbin",
    "--gpu-architecture": "-arch", "--gpu-code": "-code", "--generate-code": "-gencode",
    "--output-file": "-o", "--relocatable-device-code": "-rdc", "--maxrregcount": "-maxrregcount",
    "--threads": "-t", "--cudart": "-cudart", "--machine": "-m", "--debug": "-g", "--device-debug": "-G",
    "--generate-line-info": "-lineinfo", "--compile": "-c", "--ptx": "-ptx", "--cubin": "-cubin", "--fatbin": "-fatbin",
    "--device-c": "-dc", "--preprocess": "-E", "--link": "-link", "--run": "-run", "--x": "-x",
    "--default-stream": "-default-stream", "--ftz": "-ftz", "--prec-div": "-prec-div", "--prec-sqrt": "-prec-sqrt",
    "--fmad": "-fmad", "--use_fast_math": "-use_fast_math", "--extended-lambda": "-extended-lambda",
    "--expt-relaxed-constexpr": "-expt-relaxed-constexpr", "--diag-suppress": "-diag-suppress",
    "--disable-warnings": "-w", "--Werror": "-Werror", "--optimization-info": "-opt-info",
    "--allow-unsupported-compiler": "-allow-unsupported-compiler", "--resource-usage": "-res-usage",
    "--source-in-ptx": "-src-in-ptx", "--keep": "-keep", "--verbose": "-v", "--dryrun": "-dryrun",
}  # fmt: skip
#: Options with a value, which may stand behind "=" or in the next argument (some: behind the letter).
_VALUED = frozenset(
    "-I -isystem -D -U -include -L -l -std -O -Xcompiler -Xlinker -Xptxas -Xnvlink -Xcudafe -ccbin -arch -code -gencode"
    " -o -rdc -maxrregcount -t -cudart -m -x -default-stream -ftz -prec-div -prec-sqrt -fmad -diag-suppress -Werror"
    " -opt-info".split()
)
#: Of these, the value may follow at once: -Ifolder, -DN=4, -O3, -lm.
_GLUED = ("-I", "-D", "-U", "-L", "-l", "-O", "-m", "-t", "-o")
_LINK = frozenset(["-L", "-l", "-Xlinker"])
_WITHOUT_EFFECT = frozenset(
    "-arch -code -gencode -o -t -cudart -m -Xptxas -Xnvlink -ccbin -lineinfo -allow-unsupported-compiler"
    " -res-usage -src-in-ptx -opt-info -link -run -m64 -keep".split()
)
_OTHER_JOBS = frozenset("-c -ptx -cubin -fatbin -dc -E -v -dryrun".split())
#: Libraries of the CUDA toolkit for which warpsmith has its own code.
_OURS = frozenset(["cudart", "cudart_static", "cudadevrt"])

SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c++", ".C", ".c")
_OBJECTS = (".o", ".a", ".so")


@dataclass
class Options:
    """A command line, taken apart."""

    sources: list[str] = field(default_factory=list)
    compile: list[str] = field(default_factory=list)  # for every source
    link: list[str] = field(default_factory=list)
    relocatable: bool = False  # -rdc=true
    fast_math: bool = False

    @property
    def folders(self) -> list[str]:
        """Where #include looks."""
        return [option[2:] for option in self.compile if option.startswith("-I")]


def parse(arguments: Sequence[str]) -> Options:
    """Sort nvcc's options and the sources among them; raises UsageError for what cannot be meant."""
    out = Options()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            _input(out, word)
            continue
        name, value = _split(word)
        if name in _VALUED and value is None:
            if not rest:
                raise UsageError(f"the option {word} needs a value")
            value = rest.pop(0)
        _option(out, name, value, word)
    return out


def _split(word: str) -> tuple[str, str | None]:
    """-Ifoo -> -I, foo;  --std=c++17 -> -std, c++17;  -I -> -I, None."""
    head, equals, tail = word.partition("=")
    name = _LONG.get(head, head)
    if name in _VALUED and equals:
        # -D=... would be a macro without a name; -DN=4 does not come here, as "-DN" has no value
        return name, tail
    if name not in _VALUED and not word.startswith("--"):
        for short in _GLUED:
            if word.startswith(short) and not _known(head):
                return short, word[len(short) :]
    return name, tail if equals else None


def _known(head: str) -> bool:
    """Long options with one dash that begin like a glued short one: -lineinfo, -include, -maxrregcount..."""
    return head in _WITHOUT_EFFECT or head in _VALUED or head in _OTHER_JOBS or head in _LONG.values()


def _option(out: Options, name: str, value: str | None, word: str) -> None:
    if name in _OTHER_JOBS:
        raise UsageError(f"{word} asks for something other than a program; see warpsmith compile --help")
    if name in _WITHOUT_EFFECT:
        return
    if name == "-rdc":
        out.relocatable = value == "true"
    elif name == "-l":
        if value not in _OURS:
            out.link.append(f"-l{value}")
    elif name == "-Xcompiler":
        # The host compiler's options count when linking too (-fopenmp, -pthread).
        out.compile += ["-Xcompiler", value or ""]
        out.link += (value or "").split(",")
    elif name == "-Xlinker":
        out.link += [f"-Wl,{value}"]
    elif name in _LINK:
        out.link.append(f"{name}{value}")
    elif name in _VALUED and name in _GLUED:
        out.compile.append(f"{name}{value}")
    elif name in _VALUED:
        apart = name in ("-isystem", "-include", "-x")
        out.compile += [name, value or ""] if apart else [f"{name}={value}"]
    elif word.startswith("-Wl,"):
        out.link.append(word)
    elif name in ("-pthread", "-fopenmp", "-static-libstdc++", "-static-libgcc") or word.startswith(
        ("-W", "-f", "-march")
    ):
        # Not nvcc's, but what people mean is clear.
        out.compile += ["-Xcompiler", word]
        out.link.append(word)
    else:
        out.fast_math |= name == "-use_fast_math"
        out.compile.append(word)


def _input(out: Options, word: str) -> None:
    (out.link if word.endswith(_OBJECTS) else out.sources).append(word)


def check_sources(sources: Iterable[str], suffixes: Sequence[str] = SOURCES) -> None:
    """Every file is there, can be read and is a kind of source that we compile."""
    for name in sources:
        path = Path(name)
        if odd := re.search(r'[\x00-\x1f"$,\udc80-\udcff]', name):
            raise InputError(
                f"{name.encode(errors='replace').decode()!r}: the compilers cannot take {odd[0]!a} in a file name"
            )
        if path.is_dir():
            raise InputError(f"{name} is a folder, not a source file")
        if not path.exists():
            near = [p.name for p in path.parent.glob("*") if p.name.lower() == path.name.lower()]
            hint = f" (there is {near[0]})" if near else ""
            if not near and not name.endswith(SOURCES):
                hint = "; a program's own arguments stand after --"
            raise InputError(f"there is no file {name}{hint}")
        if not path.is_file():
            raise InputError(f"{name} is a pipe or a device, not a source file")
        if not name.endswith(tuple(suffixes)):
            raise NotCudaError(f"{name} is not CUDA: {_instead(path)}")
        try:
            start = path.open("rb").read(4096)
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}") from None
        if b"\0" in start:
            raise NotCudaError(f"{name} is not CUDA: it is not text")


def _instead(path: Path) -> str:
    if path.suffix == ".py":
        return f"it is Python; run it with python3 {path} (warpsmith.device(...) launches kernels from there)"
    if path.suffix == ".ptx":
        return "it is PTX, which has no main; launch its kernels from Python with warpsmith.device(...).compile(text)"
    if path.suffix in (".cuh", ".h", ".hpp"):
        return "it is a header; give the source that includes it"
    return f"the name must end in one of {' '.join(SOURCES)}"
