"""Several PTX modules -> one: what separate compilation of device code (-rdc=true) needs.

The modules are put together as text, so that everything that reads one module (the parser, the emulator, ptxas)
reads a linked one as well.  As a linker does, a name that one module defines and others only declare
becomes the same thing; names without linkage stay private, and get another spelling where two modules use
the same; of several weak definitions one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .ast import PtxError
from .source import Source

__all__ = ["Summary", "link", "summarize"]

_WORD = re.compile(r"\s*\.(\w+)", re.ASCII)
#: The end of a function's head or of a variable; strings are stepped over.
_STOP = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{;]')
_BRACE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_FUNCTION = re.compile(r"\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)", re.ASCII)
_ATTRIBUTE = re.compile(r"\.attribute\s*\([^)]*\)|\.[\w:]+")
_NAME = re.compile(r"(?<![\w$.%])[A-Za-z_$][\w$]*", re.ASCII)
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\b")
_FILE = re.compile(r'\.file\s+(\d+)\s+("(?:[^"\\\n]|\\.)*")')
_POSITION = re.compile(r"(\.loc\s+|\binlined_at\s+)(\d+)", re.ASCII)
_STRING_LABEL = re.compile(r"\$L__info_string(?=\d)")
_ALIGN = re.compile(r"\.align\s+(\d+)")
#: Directives that end with their line.
_LINES = frozenset(["version", "target", "address_size", "file", "loc"])


@dataclass
class _Item:
    """One declaration or definition at module level."""

    kind: str  # function, variable, alias
    name: str
    linkage: str  # "", visible, extern, weak, common
    text: str
    body: str = ""  # of a function that is defined
    entry: bool = False
    shared: bool = False

    @property
    def defines(self) -> bool:
        return bool(self.body) if self.kind == "function" else self.linkage != "extern"


@dataclass
class _Module:
    version: tuple[int, int] = (0, 0)
    target: str = ""
    items: list[_Item] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # number -> quoted path
    strings: str = ""  # inside of .debug_str


@dataclass(frozen=True)
class Summary:
    """What a module gives to others and what it needs from them."""

    defines: frozenset[str]
    needs: frozenset[str]


def summarize(text: str, name: str = "<ptx>") -> Summary:
    """The names with linkage in a module; functions that the system has (printf, malloc) are not needed."""
    items = _read(text, name).items
    defined = {i.name for i in items if i.defines}
    needed = {i.name for i in items if not i.defines and not i.shared} - defined - SYSTEM
    # An alias counts as a definition, and a declaration that nothing uses is no need.
    bodies = "\n".join(i.text + i.body for i in items if i.defines)
    used = set(_NAME.findall(bodies))
    return Summary(
        frozenset(i.name for i in items if i.defines and (i.linkage in ("visible", "weak", "common") or i.entry)),
        frozenset(n for n in needed if n in used),
    )


#: Functions that the device has of itself.
SYSTEM = frozenset(["vprintf", "malloc", "free", "__assertfail", "__assert_fail", "memcpy", "memset", "memmove"])


def link(texts: Sequence[str]) -> str:
    """One module out of several; raises PtxError if two of them define the same name."""
    if len(texts) == 1:
        return texts[0]
    modules = [_read(text, f"<module {i}>") for i, text in enumerate(texts)]
    owners = _owners(modules)
    files: dict[str, int] = {}
    variables: dict[str, str] = {}
    prototypes: dict[str, str] = {}
    bodies: list[str] = []
    aliases: list[str] = []
    strings: list[str] = []
    private: set[str] = set()
    for number, module in enumerate(modules):
        spell = _Spelling(number, module, _renames(number, module, owners, private), files)
        if module.strings:
            strings.append(spell(module.strings))
        for item in module.items:
            name = spell.name(item.name)
            if item.kind == "alias":
                aliases.append(spell(item.text))
            elif item.kind == "variable":
                _variable(variables, name, item, spell(item.text), owners.get(item.name), number)
            elif item.defines:
                if item.linkage and owners[item.name] != number:
                    continue
                head = spell(item.text)
                if not item.entry:
                    prototypes[name] = f"{head};"
                bodies.append(head + spell(item.body))
            elif not item.entry:
                prototypes.setdefault(name, spell(item.text))
    newest = max(modules, key=lambda m: _arch(m.target))
    version = max(m.version for m in modules)
    parts = [f".version {version[0]}.{version[1]}", f".target {newest.target}", ".address_size 64"]
    parts += [*variables.values(), *prototypes.values(), *bodies, *aliases]
    parts += [f"\t.file\t{number} {path}" for path, number in files.items()]
    if strings:
        parts.append("\t.section\t.debug_str\n\t{\n" + "\n".join(strings) + "\n\t}")
    return "\n".join(parts) + "\n"


def _variable(variables: dict[str, str], name: str, item: _Item, text: str, owner: int | None, number: int) -> None:
    if item.defines and item.linkage and owner != number:
        return  # another module's weak definition was chosen
    old = variables.get(name)
    if old is None or item.defines:
        variables[name] = text
    elif item.shared and _alignment(text) > _alignment(old):
        variables[name] = text  # the dynamic shared memory: as aligned as any module wants it


def _alignment(text: str) -> int:
    found = _ALIGN.search(text)
    return int(found[1]) if found else 1


def _arch(target: str) -> tuple[int, str]:
    found = re.search(r"(\d+)(\w?)", target)
    return (int(found[1]), found[2]) if found else (0, "")


def _owners(modules: Sequence[_Module]) -> dict[str, int]:
    """The module whose definition of a name with linkage counts."""
    owners: dict[str, int] = {}
    strong: set[str] = set()
    for number, module in enumerate(modules):
        for item in module.items:
            if not item.defines or (not item.linkage and not item.entry):
                continue
            firm = item.linkage not in ("weak", "common")
            if firm and item.name in strong:
                raise PtxError(f"{item.name} is defined in two of the modules that are linked", 0, "device link")
            if firm or item.name not in owners:
                owners[item.name] = number
            if firm:
                strong.add(item.name)
    return owners


def _renames(number: int, module: _Module, owners: dict[str, int], private: set[str]) -> dict[str, str]:
    """New names for what is private here and named like something elsewhere."""
    renames = {}
    for item in module.items:
        if not item.defines or item.linkage or item.entry:
            continue
        if item.name in owners or item.name in private:
            renames[item.name] = f"{item.name}$module{number}"
        private.add(item.name)
    return renames


class _Spelling:
    """Rewrites the text of one module for the linked one."""

    def __init__(self, number: int, module: _Module, renames: dict[str, str], files: dict[str, int]) -> None:
        self.number, self.renames = number, renames
        self.files = {n: files.setdefault(path, len(files) + 1) for n, path in module.files.items()}
        self.names = re.compile(rf"(?<![\w$.%])(?:{'|'.join(map(re.escape, renames))})(?![\w$])") if renames else None

    def __call__(self, text: str) -> str:
        text = _POSITION.sub(lambda m: f"{m[1]}{self.files.get(m[2], m[2])}", text)
        text = _STRING_LABEL.sub(f"$L__info_string{self.number}_", text)
        return self.names.sub(lambda m: self.renames[m[0]], text) if self.names else text

    def name(self, name: str) -> str:
        return self.renames.get(name, name)


# ---- reading -------------------------------------------------------------------------------------------


def _read(text: str, name: str) -> _Module:
    """The items of a module; what is inside them is left to the parser."""
    src = Source(text, name)
    module = _Module()
    for word, piece, body in _pieces(src):
        if word == "version":
            found = re.search(r"(\d+)\.(\d+)", piece)
            module.version = (int(found[1]), int(found[2])) if found else (0, 0)
        elif word == "target":
            module.target = piece.split(None, 1)[1].strip()
        elif word == "file":
            if found := _FILE.search(piece):
                module.files[found[1]] = found[2]
        elif word == "section":
            if ".debug_str" in piece:
                module.strings = body.strip()[1:-1]
        elif word == "alias":
            module.items.append(_Item("alias", "", "", piece + ";"))
        elif word not in (*_LINES, "pragma"):
            module.items += _declared(piece, body)
    if module.version == (0, 0):
        src.error(len(src.text), "no '.version' directive: this is not PTX")
    return module


def _declared(head: str, body: str) -> Iterable[_Item]:
    linkage = _LINKAGE.search(head)
    kind = linkage[1] if linkage else ""
    if found := _FUNCTION.search(head):
        entry = ".entry" in head[: found.end()]
        return [_Item("function", found[1], kind, head if body else head + ";", body, entry)]
    names = _NAME.findall(_ATTRIBUTE.sub(" ", head.partition("=")[0].partition("[")[0]))
    return [_Item("variable", names[0], kind, head + ";", shared=".shared" in head)] if names else []


def _pieces(src: Source) -> Iterator[tuple[str, str, str]]:
    """(first word, text up to its ";" or "{", text in braces)."""
    text, at = src.text, 0
    while (at := src.skip(at)) < len(text):
        word = _WORD.match(text, at)
        if word is None:
            if text[at] == ";":
                at += 1
                continue
            src.expected(at, "a directive")
        if word[1] in _LINES:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            yield word[1], text[at:end], ""
            at = end
            continue
        stop = _next(_STOP, text, at)
        if stop is None:
            src.error(at, "the declaration that begins here does not end")
        head = text[at : stop.start()]
        if stop[0] == "{" and ("=" in head and ".func" not in head and ".entry" not in head):
            # an initial value in braces
            end = text.find(";", _close(src, stop.start()))
            if end < 0:
                src.error(at, "the declaration that begins here does not end")
            yield word[1], text[at:end], ""
            at = end + 1
        elif stop[0] == "{":
            end = _close(src, stop.start())
            yield word[1], head, text[stop.start() : end]
            at = end
        else:
            yield word[1], head, ""
            at = stop.end()


def _next(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    return next((m for m in pattern.finditer(text, at) if m[0][0] != '"'), None)


def _close(src: Source, start: int) -> int:
    """The position after the brace that closes the one at ``start``."""
    depth = 0
    for found in _BRACE.finditer(src.text, start):
        if found[0][0] != '"':
            depth += 1 if found[0] == "{" else -1
            if depth == 0:
                return found.end()
    src.error(start, "'{' without a matching '}'")
