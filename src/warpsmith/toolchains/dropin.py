"""What ``warpsmith nvcc`` does: nvcc's command lines, with executables for the emulator as their result.

The real nvcc compiles, with the architectures of the command line replaced by one for which it writes PTX;
linking, of the host and of the device code, is done here.  A folder that looks like a CUDA toolkit is kept for
builds that want one (CMake, CUDA_HOME): its nvcc is this one, its libcudart is ours.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..chips import DEFAULT, Chip, load
from ..errors import InputError, MissingToolError, UnsupportedApiError, UsageError
from . import libraries
from .nvcc import CUDART, device_stub, library_files, link_failure
from .toolkit import Toolkit, host_compiler, toolkit

#: nvcc's options with a value, short and long; the value follows "=" or is the next word.
_SHORT = {
    "--output-file": "-o", "--x": "-x", "--pre-include": "-include", "--library": "-l", "--define-macro": "-D",
    "--undefine-macro": "-U", "--include-path": "-I", "--system-include": "-isystem", "--library-path": "-L",
    "--output-directory": "-odir", "--dependency-output": "-MF", "--dependency-target-name": "-MT",
    "--compiler-bindir": "-ccbin", "--cudart": "-cudart", "--std": "-std", "--optimize": "-O", "--machine": "-m",
    "--compiler-options": "-Xcompiler", "--linker-options": "-Xlinker", "--archive-options": "-Xarchive",
    "--ptxas-options": "-Xptxas", "--nvlink-options": "-Xnvlink", "--cudafe-options": "-Xcudafe",
    "--gpu-architecture": "-arch", "--gpu-code": "-code", "--generate-code": "-gencode",
    "--relocatable-device-code": "-rdc", "--maxrregcount": "-maxrregcount", "--threads": "-t",
    "--split-compile": "-split-compile", "--keep-dir": "-keep-dir", "--default-stream": "-default-stream",
    "--ftz": "-ftz", "--prec-div": "-prec-div", "--prec-sqrt": "-prec-sqrt", "--fmad": "-fmad", "--Werror": "-Werror",
    "--diag-error": "-diag-error", "--diag-suppress": "-diag-suppress", "--diag-warn": "-diag-warn",
    "--optimization-info": "-opt-info", "--options-file": "-optf", "--run-args": "-run-args", "--time": "-time",
    "--library-device": "-ldir", "--target-directory": "-target-dir", "--dopt": "-dopt", "--fatbin-options": "-Xfatbin",
    "--split-compile-extended": "-split-compile-extended", "--minimal": "-minimal", "--brief-diagnostics": "-brief-diag",
}  # fmt: skip
_VALUED = frozenset(_SHORT.values()) | {"-MQ"}
#: Options without a value that choose what is made.
_ACTIONS = {
    "--compile": "-c", "--device-c": "-dc", "--device-w": "-dw", "--ptx": "-ptx", "--cubin": "-cubin",
    "--fatbin": "-fatbin", "--preprocess": "-E", "--generate-dependencies": "-M",
    "--generate-nonsystem-dependencies": "-MM", "--device-link": "-dlink", "--lib": "-lib", "--link": "-link",
    "--run": "-run", "--cuda": "-cuda", "--optix-ir": "-optix-ir", "--ltoir": "-ltoir",
}  # fmt: skip
_ACTION_NAMES = frozenset(_ACTIONS.values())
_FLAGS = {
    "--verbose": "-v",
    "--dryrun": "-dryrun",
    "--shared": "-shared",
    "--keep": "-keep",
    "--dlink-time-opt": "-dlto",
}
_LINKING = frozenset(["", "-link", "-run"])
_SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c++", ".C", ".c", ".ii", ".i", ".cup")
_LINKABLE = (".o", ".obj", ".a", ".so", ".lib")
#: The host compiler's options, which -forward-unknown-to-host-compiler lets through.
_HOST = ("-f", "-march", "-mtune", "-W", "-pthread", "-pg")
_RUNTIME = frozenset(["cudart", "cudart_static", "cudadevrt"])
#: Words with one dash that begin like an option with its value glued on, and are not: -lineinfo, -Og is one.
_NOT_GLUED = re.compile(
    r"-(?:lineinfo|link|lib|ltoir|ldir|dlink|dlto|dc|dw|dryrun|include|isystem|opt|odir|maxrregcount|time|m64$)"
)


@dataclass
class Command:
    """A command line of nvcc, taken apart."""

    action: str = ""  # "" links
    output: str | None = None
    inputs: list[str] = field(default_factory=list)
    compile: list[str] = field(default_factory=list)  # everything but inputs, output, action, architectures
    link: list[str] = field(default_factory=list)  # for the host's linker, in order, objects among them
    architectures: list[str] = field(default_factory=list)  # 80, 90a
    relocatable: bool = False
    runtime: bool = True  # -cudart none: without ours
    language: str = ""
    verbose: bool = False
    dry: bool = False
    host: str = ""  # -ccbin
    folder: str = ""  # -odir


def parse(arguments: Sequence[str]) -> Command:
    """Never refuses what nvcc might know: that is nvcc's to say."""
    out = Command()
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            _input(out, word)
            continue
        name, value = _split(word)
        if name in _VALUED and value is None:
            if not words:
                raise UsageError(f"nvcc: the option {word} needs a value")
            value = words.pop(0)
        if name == "-optf":
            words[:0] = [w for file in (value or "").split(",") for w in _read_words(file)]
        elif name in _VALUED:
            _valued(out, name, value or "")
        else:
            _plain(out, name, word)
    return out


def _split(word: str) -> tuple[str, str | None]:
    head, equals, tail = word.partition("=")
    name = _SHORT.get(head) or _ACTIONS.get(head) or _FLAGS.get(head) or head
    if name in _VALUED:
        return name, tail if equals else None
    if not word.startswith("--") and not _NOT_GLUED.match(word):
        for short in ("-I", "-D", "-U", "-L", "-l", "-O", "-t", "-o", "-x"):
            if word.startswith(short):
                return short, word[len(short) :]
    return name, tail if equals else None


def _read_words(file: str) -> list[str]:
    try:
        return shlex.split(Path(file).read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"the file of options {file} cannot be read: {error}") from None


def _input(out: Command, word: str) -> None:
    out.inputs.append(word)
    if word.endswith(_LINKABLE) or re.search(r"\.so(\.\d+)*$", word):
        out.link.append(word)
    else:
        out.link.append(f"\0{word}")  # the place of its object among the others


def _valued(out: Command, name: str, value: str) -> None:
    if name == "-o":
        out.output = value
    elif name in ("-arch", "-code", "-gencode"):
        out.architectures += re.findall(r"(?:compute|sm|lto)_(\d+[af]?)", value)
    elif name == "-rdc":
        out.relocatable = value == "true"
        out.compile.append(f"-rdc={value}")
    elif name == "-cudart":
        out.runtime = value != "none"
    elif name in ("-l", "-L"):
        for one in value.split(","):
            if name == "-L" or one not in _RUNTIME:
                out.link.append(f"{name}{one}")
    elif name == "-Xlinker":
        out.link += [f"-Wl,{value}"]
    elif name == "-Xcompiler":
        out.compile += ["-Xcompiler", value]
        out.link += [
            word for word in value.split(",") if not word.startswith(("-W", "-D", "-I", "-O")) or word.startswith("-Wl")
        ]
    elif name == "-ccbin":
        out.host = value
    elif name == "-odir":
        out.folder = value
        out.compile += ["-odir", value]
    elif name == "-O" or name in ("-I", "-D", "-U", "-t"):
        out.compile.append(f"{name}{value}" if value else name)
    elif name == "-m":
        out.compile.append(f"-m{value}")
    else:
        out.language = value if name == "-x" else out.language
        out.compile += [name, value]


def _plain(out: Command, name: str, word: str) -> None:
    if name in ("-v", "-dryrun"):
        out.verbose |= name == "-v"
        out.dry |= name == "-dryrun"
        out.compile.append(name)
    elif name in _ACTION_NAMES:
        out.action = name
        out.relocatable |= name == "-dc"
    elif name in ("-dlto", "-link"):
        pass  # nothing is left to optimise when PTX is linked as it is
    elif (
        name == "-shared"
        or word.startswith("-Wl,")
        or name in ("-static-libstdc++", "-static-libgcc", "-rdynamic", "-s")
    ):
        out.link.append(word)
        if name == "-shared":
            out.compile.append("-shared")
    elif word.startswith(_HOST) and not word.startswith("-forward"):
        out.compile.append(word)
        if not word.startswith("-W"):
            out.link.append(word)
    else:
        out.compile.append(word)
        if name in ("-g", "-pg"):
            out.link.append(word)


def architecture(asked: Sequence[str], chip: Chip) -> str:
    """The one to compile for: of those asked for, the newest that the chip runs; else the chip's own."""
    own = chip.compute[0] * 10 + chip.compute[1]

    def runs(arch: str) -> bool:
        number, suffix = int(re.sub(r"\D", "", arch)), re.sub(r"\d", "", arch)
        if number < 75 or number > own:  # the compiler of CUDA 13 starts at 75
            return False
        return number == own if suffix == "a" else number // 10 == own // 10 if suffix == "f" else True

    usable = [arch for arch in asked if runs(arch)]
    return max(usable, key=lambda arch: (int(re.sub(r"\D", "", arch)), arch), default=str(own))


# ---- doing it ------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Do what a command line says; gives back the exit code."""
    kit = toolkit()
    command = parse(arguments)
    if any(word in ("--version", "-V", "--help", "-h", "--list-gpu-arch", "--list-gpu-code") for word in arguments):
        return subprocess.run([str(kit.nvcc), *arguments]).returncode
    chip = load(os.environ.get("WARPSMITH_CHIP", DEFAULT))
    arch = architecture(command.architectures, chip)
    common = _common(command, arch)
    if command.action == "-cubin" or not command.inputs:
        return _nvcc(kit, list(arguments), command)
    strange = [name for name in command.inputs if not name.endswith((*_SOURCES, *_LINKABLE, ".ptx"))]
    if strange and not command.language and not any(".so." in name for name in strange):
        words = [*common, *command.inputs, *([command.action] if command.action else [])]
        return _nvcc(kit, words, command)
    if command.dry:
        return _dry_run(kit, command, common)
    if command.action == "-lib":
        return _archive(kit, command, common)
    if command.action in _LINKING or command.action == "-dlink":
        return _link(kit, command, common)
    output = ["-o", command.output] if command.output else []
    return _nvcc(kit, [*common, command.action, *output, *command.inputs], command)


def _common(command: Command, arch: str) -> list[str]:
    """The options of every compilation."""
    own = ["-gencode", f"arch=compute_{arch},code=compute_{arch}", "--no-compress", "-Wno-deprecated-gpu-targets"]
    own += ["-allow-unsupported-compiler", "-ccbin", command.host or host_compiler()]
    if not any(word in ("-G", "--device-debug", "-lineinfo", "--generate-line-info") for word in command.compile):
        own.append("-lineinfo")
    return [*own, *command.compile]


def _nvcc(kit: Toolkit, words: Sequence[str], command: Command) -> int:
    """Run the real one; what it says of itself is made to fit our toolkit, and what is missing gets a name."""
    process = subprocess.Popen(
        [str(kit.nvcc), *words], stderr=subprocess.PIPE, text=True, errors="replace", env=_environment()
    )
    said = ""
    talks = command.verbose or command.dry
    assert process.stderr is not None
    for line in process.stderr:
        said += line
        if talks:
            sys.stderr.write(_our_toolkit(line))
            sys.stderr.flush()
    code = process.wait()
    if code and (missing := libraries.missing_header(said)):
        raise UnsupportedApiError(missing)  # which says it all
    if not talks:
        sys.stderr.write(said)
    return code


def _environment() -> dict[str, str]:
    """Without what would add architectures to the command line again."""
    return {**os.environ, "NVCC_APPEND_FLAGS": _without_architectures("NVCC_APPEND_FLAGS"),
            "NVCC_PREPEND_FLAGS": _without_architectures("NVCC_PREPEND_FLAGS")}  # fmt: skip


def _without_architectures(name: str) -> str:
    words = shlex.split(os.environ.get(name, ""))
    kept: list[str] = []
    while words:
        word = words.pop(0)
        head, value = _split(word)
        if head in ("-arch", "-code", "-gencode"):
            words = words if value is not None else words[1:]
        else:
            kept.append(word)
    return shlex.join(kept)


def _our_toolkit(line: str) -> str:
    """In what "nvcc -v" tells of itself: where the toolkit and its libraries are."""
    if line.startswith("#$ LIBRARIES="):
        return f"#$ LIBRARIES=  {_libraries()}\n"
    if line.startswith("#$ TOP="):
        return f"#$ TOP={folder()}\n"
    return line


def _libraries() -> str:
    return f'"-L{folder() / "lib64"}"'


def _compiled(kit: Toolkit, command: Command, common: Sequence[str], scratch: Path) -> tuple[int, dict[str, str]]:
    """The objects of the sources on a command line that links."""
    objects: dict[str, str] = {}
    for number, source in enumerate(command.inputs):
        if source.endswith(_LINKABLE) or ".so." in source:
            continue
        made = str(scratch / f"{number}-{Path(source).stem}.o")
        words = [word for word in common if word != "-shared"]
        if code := _nvcc(kit, [*words, "-c", "-o", made, source], command):
            return code, {}
        objects[source] = made
    return 0, objects


def _link(kit: Toolkit, command: Command, common: Sequence[str]) -> int:
    for word in command.link:
        if word.startswith("-l") and (missing := libraries.missing_library(word[2:])):
            raise UnsupportedApiError(missing)
    if not CUDART.exists():
        raise MissingToolError(f"warpsmith's CUDA runtime is not built ({CUDART}); install the package again")
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as name:
        scratch = Path(name)
        code, objects = _compiled(kit, command, common, scratch)
        if code:
            return code
        words = [objects.get(word[1:], word[1:]) if word.startswith("\0") else word for word in command.link]
        files = library_files(words)
        if command.action == "-dlink":
            return _device_link(command, files, scratch)
        output = command.output or os.path.join(command.folder, "a.out")
        host = _host_linker(command.host)
        ours = [str(CUDART)] if command.runtime else []
        linking = [host, "-o", output, *device_stub(files, scratch), *words, *ours, "-lpthread", "-ldl", "-lrt"]
        if command.verbose:
            # As nvcc would say it: builds look here for the libraries that a program needs.
            shown = " ".join(f'"{word}"' if word.endswith(".o") else word for word in words)
            system = "-lcudadevrt -lcudart_static -lrt -lpthread -ldl"
            print(f'#$ {host} -m64 {shown} {_libraries()} {system} -o "{output}"', file=sys.stderr)
        done = subprocess.run(
            linking, stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"}
        )
        if done.returncode:
            sources = [source for source in command.inputs if source in objects]
            raise link_failure(done.stderr, [Path(objects[s]) for s in sources], sources)
        sys.stderr.write(done.stderr)
        if command.action == "-run":
            return subprocess.run([os.path.abspath(output)]).returncode
    return 0


def _device_link(command: Command, files: Sequence[str], scratch: Path) -> int:
    made = Path(command.output or "a_dlink.o")
    if not device_stub(files, scratch, made):
        # Nothing to register; builds want the file all the same.
        (scratch / "empty.c").write_text("")
        subprocess.run([host_compiler(), "-x", "c", "-c", str(scratch / "empty.c"), "-o", str(made)], check=True)
    return 0


def _host_linker(given: str) -> str:
    """g++, or what -ccbin says: a compiler or the folder of one; gcc links C++ only when called g++."""
    if not given:
        return host_compiler()
    path = os.path.join(given, "g++") if os.path.isdir(given) else given
    name = os.path.basename(path)
    if re.fullmatch(r"(.*-)?gcc(-\d+)?", name):
        better = path[: len(path) - len(name)] + name.replace("gcc", "g++")
        return better if shutil.which(better) else path
    return path


def _archive(kit: Toolkit, command: Command, common: Sequence[str]) -> int:
    """-lib: a static library of all inputs."""
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as name:
        code, objects = _compiled(kit, command, common, Path(name))
        if code:
            return code
        members = [objects.get(word, word) for word in command.inputs]
        output = command.output or "a.a"
        Path(output).unlink(missing_ok=True)
        return subprocess.run([shutil.which("ar") or "ar", "cqs", output, *members]).returncode


def _dry_run(kit: Toolkit, command: Command, common: Sequence[str]) -> int:
    action = [command.action] if command.action else []
    output = ["-o", command.output] if command.output else []
    return _nvcc(kit, [*common, *action, *output, *command.inputs], command)


# ---- the toolkit ---------------------------------------------------------------------------------------


def folder() -> Path:
    """A folder that looks like a CUDA toolkit, with this nvcc and this CUDA runtime; made when it is not there."""
    kit = toolkit()
    package = Path(__file__).resolve().parent.parent
    which = hashlib.sha256(f"{package}\0{sys.executable}\0{kit.root}".encode()).hexdigest()[:8]
    base = os.environ.get("XDG_DATA_HOME", "")
    root = (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "warpsmith" / f"cuda-{which}"
    if not (root / "complete").exists():
        try:
            _make_folder(root, package, kit)
        except OSError as error:
            raise MissingToolError(
                f"the folder {root} cannot be made ({error.strerror}); set XDG_DATA_HOME to another folder"
            ) from None
    return root


def _make_folder(root: Path, package: Path, kit: Toolkit) -> None:
    for part in ("bin", "lib64"):
        (root / part).mkdir(parents=True, exist_ok=True)
    for tool in (kit.root / "bin").iterdir():
        if tool.name not in ("nvcc", "nvcc.profile"):
            _point(root / "bin" / tool.name, tool)
    for part in ("include", "nvvm"):
        _point(root / part, kit.root / part)
    code = "import sys; sys.path.insert(0, {!r}); from warpsmith.cli.main import main; sys.exit(main())"
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(code.format(str(package.parent)))} nvcc "$@"\n'
    (root / "bin" / "nvcc").write_text(script)
    (root / "bin" / "nvcc").chmod(0o755)
    # ld reads these as scripts, whatever their names.
    for name in ("libcudart.so", "libcudart_static.a"):
        (root / "lib64" / name).write_text(f"/* GNU ld script */\nINPUT({CUDART})\n")
    (root / "lib64" / "libcudadevrt.a").write_bytes(b"!<arch>\n")
    _point(root / "lib", root / "lib64")
    (root / "complete").write_text("")


def _point(link: Path, target: Path) -> None:
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target)
