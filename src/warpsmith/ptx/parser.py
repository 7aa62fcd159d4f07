"""PTX text -> ``ast.Module``.

One compiled pattern recognises an ordinary instruction; its operands are looked up by their text in a cache of the
current scope, so that the parser proper runs once for each different operand.  Everything else (labels, braces,
directives, calls) takes the slower road, which is also the one that words the errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import constants, data
from .ast import (
    Function,
    Guard,
    Instruction,
    Label,
    LabelDef,
    Loc,
    Module,
    Operand,
    Param,
    PtxError,
    Reg,
    Statement,
    Sym,
    Variable,
    Vec,
)
from .operands import Operands
from .scope import LabelUse, Scope
from .source import Source

__all__ = ["PtxError", "parse"]

_GUARD = r"(@\s*+!?\s*+[\w$%]++)"
_OPCODE = r"([a-z]\w*+(?:(?:\.|::)\w++)*+)"
#: guard, opcode and operand text of an instruction that ends in the semicolon it should
_INSTRUCTION = re.compile(rf"\s*+(?:{_GUARD}\s++)?{_OPCODE}(?=[\s\[{{(;])([^;:]*+);", re.ASCII)
_HEAD = re.compile(rf"\s*+(?:{_GUARD}\s*+)?{_OPCODE}(?=[\s\[{{(;]|\Z)", re.ASCII)
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*+)\s*+:(?!:)", re.ASCII)
#: operands, where a comma inside brackets does not separate
_PARTS = re.compile(r"(?:\[[^\[\]]*+\]|\{[^{}]*+\}|[^,])++")
_LOC = re.compile(r"\s++(\d{1,9})\s++(\d{1,9})(?:\s++(\d{1,9}))?(?=[\s,])", re.ASCII)
_INLINED = re.compile(
    r"\s*+,\s*+function_name\s++([\w$]++)(?:\s*+\+\s*+(\d{1,9}))?"
    r"\s*+,\s*+inlined_at\s++(\d{1,9})\s++(\d{1,9})(?:\s++(\d{1,9}))?",
    re.ASCII,
)
_DEBUG_STR = re.compile(r"\.section\s++\.debug_str\s*+\{", re.ASCII)
_STR_LABEL = re.compile(r"([\w$]++)\s*+:", re.ASCII)
_STR_BYTE = re.compile(r"(?<![\w.])\d{1,3}(?![\w.])", re.ASCII)

_VERSION = re.compile(r"\s*+(\d{1,4})\.(\d{1,4})(?!\S)", re.ASCII)
_LINKAGES = frozenset(("extern", "visible", "weak", "common"))
#: directives between the head of a function and its body: how many numbers they may take
_FUNCTION_DIRECTIVES = {
    "maxntid": 3, "reqntid": 3, "minnctapersm": 1, "maxnctapersm": 1, "maxnreg": 1, "maxclusterrank": 1,
    "reqnctapercluster": 3, "explicitcluster": 0, "blocksareclusters": 0, "noreturn": 0, "abi_preserve": 1,
    "abi_preserve_control": 1,
}  # fmt: skip
_MAX_SCOPES = 100
_MAX_INLINED = 64
_MAX_RANGE = 1 << 31


def parse(text: str, name: str = "<ptx>") -> Module:
    """Parse a PTX translation unit; ``name`` stands in error messages.  Raises PtxError and nothing else."""
    return _Parser(Source(text, name)).module_()


class _OperandLabel(LabelUse):
    """A label as an operand of an instruction."""

    __slots__ = ("index", "instruction")

    def __init__(self, instruction: Instruction, index: int) -> None:
        self.instruction, self.index = instruction, index

    def resolve(self, flat: str) -> None:
        operands = list(self.instruction.operands)
        operands[self.index] = Label(flat)
        self.instruction.operands = tuple(operands)


class _TargetLabel(LabelUse):
    """A label in a list of branch targets."""

    __slots__ = ("index", "targets")

    def __init__(self, targets: list[str], index: int) -> None:
        self.targets, self.index = targets, index

    def resolve(self, flat: str) -> None:
        self.targets[self.index] = flat


class _Parser:
    """The module level."""

    def __init__(self, src: Source) -> None:
        self.src = src
        self.module = Module()
        self.symbols: dict[str, Variable | Function] = {}
        self.strings = _debug_strings(src)
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def module_(self) -> Module:
        src, pos = self.src, 0
        handlers: dict[str, Callable[[int], int]] = {
            "version": self._version, "target": self._target, "address_size": self._address_size, "file": self._file,
            "section": self._section, "alias": self._alias, "pragma": self._pragma, "loc": self._loc,
        }  # fmt: skip
        while (pos := src.skip(pos)) < len(src.text):
            word = src.directive(pos)
            if word is None:
                if src.text[pos] == ";":
                    pos += 1
                    continue
                src.expected(pos, "a directive")
            name, after = word
            if self.module.version == (0, 0) and name != "version":
                src.error(pos, "PTX must start with '.version'")
            handler = handlers.get(name)
            pos = handler(after) if handler else self._declaration(pos)
        if self.module.version == (0, 0):
            src.error(len(src.text), "no '.version' directive: this is not PTX")
        self._check_addresses()
        return self.module

    def _version(self, pos: int) -> int:
        match = _VERSION.match(self.src.text, pos)
        if match is None:
            self.src.expected(pos, "a version such as 9.0")
        self.module.version = (int(match[1]), int(match[2]))
        return match.end()

    def _target(self, pos: int) -> int:
        names = []
        while True:
            name, pos = self.src.ident(pos, "a target such as sm_90")
            names.append(name)
            if self.src.peek(pos) != ",":
                self.module.target = tuple(names)
                return pos
            pos = self.src.skip(pos) + 1

    def _address_size(self, pos: int) -> int:
        start = pos
        size, pos = constants.integer(self.src, pos, "32 or 64")
        if size not in (32, 64):
            self.src.error(self.src.skip(start), f"address size is 32 or 64, not {size}")
        self.module.address_size = size
        return pos

    def _file(self, pos: int) -> int:
        src = self.src
        number, pos = constants.integer(src, pos, "a file number")
        name, pos = src.string(pos)
        self.module.files[number] = name
        while src.peek(pos) == ",":
            _, pos = constants.integer(src, src.skip(pos) + 1)
        return pos

    def _section(self, pos: int) -> int:
        """Debug data; nothing but ``.debug_str`` (already read) is of use here."""
        start = src_pos = self.src.text.find("{", pos)
        if start < 0:
            self.src.expected(pos, "'{'")
        end = self.src.text.find("}", src_pos)
        if end < 0:
            self.src.error(start, "'{' without a matching '}'")
        return end + 1

    def _alias(self, pos: int) -> int:
        src = self.src
        alias, pos = src.ident(pos, "a function name")
        target, end = src.ident(src.expect(pos, ","), "a function name")
        if not isinstance(self.symbols.get(target), Function):
            src.error(pos, f"'.alias' to '{target}', which is not a function")
        self.module.aliases[alias] = target
        return src.expect(end, ";")

    def _pragma(self, pos: int) -> int:
        return pragma(self.src, pos)[1]

    def _loc(self, pos: int) -> int:
        match = _LOC.match(self.src.text, pos)
        if match is None:
            self.src.expected(pos, "file, line and column")
        inlined = _INLINED.match(self.src.text, match.end())
        return inlined.end() if inlined else match.end()

    def _declaration(self, pos: int) -> int:
        """A variable or a function, after its linkage."""
        src, linkage = self.src, None
        while True:
            word = src.directive(pos)
            if word is None:
                src.expected(pos, "a declaration")
            name, after = word
            if name in _LINKAGES:
                linkage = name
            elif name in data.STATE_SPACES:
                declared, pos = data.variables(src, after, name, linkage)
                for variable in declared:
                    self._declare(pos, variable)
                return pos
            elif name in ("entry", "func"):
                return self._function(after, name == "entry", linkage)
            else:
                src.error(src.skip(pos), f"unknown directive '.{name}'")
            pos = after

    def _declare(self, pos: int, variable: Variable) -> None:
        old = self.symbols.get(variable.name)
        if old is not None:
            tentative = ("extern", "common", "weak")
            if not isinstance(old, Variable) or not (old.linkage in tentative or variable.linkage in tentative):
                raise PtxError(f"'{variable.name}' is declared twice", variable.line, self.src.name)
            if old.linkage != "extern":
                return
        self.symbols[variable.name] = self.module.variables[variable.name] = variable

    def _check_addresses(self) -> None:
        """Addresses in initial values may name what is declared later, so they are looked up at the end."""
        everything = list(self.module.variables.values())
        for function in self.module.functions.values():
            everything += function.variables
        for variable in everything:
            for _, symbol, _, _ in variable.relocs:
                if symbol not in self.symbols and symbol not in self.module.aliases:
                    raise PtxError(
                        f"initialiser of '{variable.name}' names '{symbol}', which is not declared",
                        variable.line,
                        self.src.name,
                    )

    def _function(self, pos: int, is_entry: bool, linkage: str | None) -> int:
        src = self.src
        start = src.skip(pos)
        function, pos = signature(src, pos, is_entry)
        function.linkage, function.line = linkage, src.line(start)
        pos = self._function_directives(pos, function)
        has_body = src.peek(pos) == "{"
        if not has_body:
            pos = src.expect(pos, ";")
        old = self.symbols.get(function.name)
        if isinstance(old, Variable):
            src.error(start, f"'{function.name}' is declared twice")
        if old is not None and old.body is not None:
            if has_body:
                src.error(start, f"function '{function.name}' is defined twice")
            return pos
        self.symbols[function.name] = self.module.functions[function.name] = function
        return _Body(self, function).parse(src.skip(pos) + 1) if has_body else pos

    def _function_directives(self, pos: int, function: Function) -> int:
        src = self.src
        while (word := src.directive(pos)) is not None:
            name, after = word
            if name == "pragma":
                pragmas, pos = pragma(src, after)
                function.pragmas += pragmas
                continue
            if name == "attribute":
                _, pos = data.attribute(src, after)
                continue
            most = _FUNCTION_DIRECTIVES.get(name)
            if most is None:
                src.error(src.skip(pos), f"unknown directive '.{name}'")
            values: list[int] = []
            pos = after
            while most and len(values) < most:
                value, pos = constants.integer(src, pos)
                values.append(value)
                if src.peek(pos) != ",":
                    break
                pos = src.skip(pos) + 1
            function.directives[name] = tuple(values)
        return pos


def pragma(src: Source, pos: int) -> tuple[list[str], int]:
    """``.pragma "nounroll";`` after the word itself."""
    result = []
    while True:
        text, pos = src.string(pos)
        result.append(text)
        if src.peek(pos) != ",":
            return result, src.expect(pos, ";")
        pos = src.skip(pos) + 1


def signature(src: Source, pos: int, is_entry: bool) -> tuple[Function, int]:
    """``(returns) name (params)``; both lists may be missing."""
    while (word := src.directive(pos)) is not None and word[0] == "attribute":
        _, pos = data.attribute(src, word[1])
    returns: tuple[Param, ...] = ()
    if not is_entry and src.peek(pos) == "(":
        returns, pos = data.parameters(src, src.skip(pos) + 1)
    name, pos = src.ident(pos, "a function name")
    params: tuple[Param, ...] = ()
    if src.peek(pos) == "(":
        params, pos = data.parameters(src, src.skip(pos) + 1)
    return Function(name, is_entry, params, returns), pos


def _debug_strings(src: Source) -> dict[str, str]:
    """Label -> text of ``.debug_str``, where function names of inlined positions are."""
    section = _DEBUG_STR.search(src.text)
    if section is None:
        return {}
    end = src.text.find("}", section.end())
    pieces = _STR_LABEL.split(src.text[section.end() : end if end >= 0 else len(src.text)])
    result = {}
    for label, data_ in zip(pieces[1::2], pieces[2::2], strict=True):
        raw = bytes(int(v) & 255 for v in _STR_BYTE.findall(data_))
        result[label] = raw.split(b"\0")[0].decode("utf-8", "replace")
    return result


class _Body:
    """The inside of a function."""

    def __init__(self, parser: _Parser, function: Function) -> None:
        self.parser, self.src, self.function = parser, parser.src, function
        self.body: list[Statement] = []
        self.scope = Scope(None, "", function.registers)
        self.scopes = 0
        self.operands = Operands(self.src, parser.symbols, self.scope)
        self.loc: Loc | None = None
        self.locs: dict[tuple[int, int, int], tuple[Loc, int]] = {}
        self.targets: list[tuple[dict[str, tuple[str, ...]], str, list[str]]] = []
        for param in (*function.returns, *function.params):
            self._declare_param(param)

    def _declare_param(self, param: Param) -> None:
        taken = (
            not self.scope.declare_register(param.name, param.type, 1, None)
            if param.is_reg
            else self.scope.declare_symbol(param.name) is None
        )
        if taken:
            raise PtxError(f"parameter '{param.name}' is declared twice", self.function.line, self.src.name)

    def parse(self, pos: int) -> int:
        """Parse up to the closing brace of the function; ``pos`` is after the opening one."""
        src, text, body = self.src, self.src.text, self.body
        match, opcodes = _INSTRUCTION.match, self.parser.opcodes
        line, special = src.line, {"bra": self._branch, "brx": self._branch, "call": self._call}
        self.function.body = body
        while True:
            m = match(text, pos)
            if m is None:
                pos = self._other(src.skip(pos))
                if pos < 0:
                    return -pos
                continue
            guard_text, opcode_text, rest = m.groups()
            opcode = opcodes.get(opcode_text)
            if opcode is None:
                head, *mods = opcode_text.split(".")
                opcode = opcodes[opcode_text] = (head, tuple(mods))
            guard = None
            if guard_text is not None:
                guard = self.scope.guards.get(guard_text) or self._guard(m.start(1), guard_text)
            start = m.start(2)
            if opcode[0] in special:
                instruction = Instruction(opcode[0], opcode[1], (), guard, line(start), self.loc)
                special[opcode[0]](instruction, m.start(3))
                body.append(instruction)
                pos = m.end()
                continue
            if not rest or rest.isspace():
                body.append(Instruction(opcode[0], opcode[1], (), guard, line(start), self.loc))
                pos = m.end()
                continue
            if "{" in rest or "[" in rest:
                parts = _PARTS.findall(rest)
                if sum(map(len, parts)) + len(parts) - 1 != len(rest):
                    src.expected(m.start(3) + _first_empty(rest), "an operand")
            else:
                parts = rest.split(",")
            cache = self.scope.cache
            operands: list[Operand] = []
            for part in parts:
                operand = cache.get(part)
                if operand is None:
                    operands = self._operands(parts, m.start(3))
                    break
                operands.append(operand)
            body.append(Instruction(opcode[0], opcode[1], tuple(operands), guard, line(start), self.loc))
            pos = m.end()

    def _operands(self, parts: list[str], pos: int) -> list[Operand]:
        """Operands of which some are new; ``pos`` is where the first part starts."""
        cache, src = self.scope.cache, self.src
        result: list[Operand] = []
        for part in parts:
            operand = cache.get(part)
            if operand is None:
                operand, end = self.operands.parse(pos)
                if src.skip(end) != pos + len(part):
                    src.expected(end, "',' or ';'")
                cache[part] = operand
            result.append(operand)
            pos += len(part) + 1
        return result

    def _guard(self, pos: int, text: str) -> Guard:
        name = text.lstrip("@! \t\r\n\f\v")
        reg = self.operands.register(pos, name)
        if reg.type != "pred":
            self.src.error(pos, f"guard '{name}' is not a predicate")
        self.scope.guards[text] = guard = Guard(reg, "!" in text)
        return guard

    # -- everything that is not an ordinary instruction ---------------------------------------------------------

    def _other(self, pos: int) -> int:
        """A label, brace, directive or malformed statement.  Minus the position after the function at its end."""
        src, text = self.src, self.src.text
        first = text[pos : pos + 1]
        if first == "{":
            return self._open(pos)
        if first == "}":
            return self._close(pos)
        if first == ";":
            return pos + 1
        if first == ".":
            return self._directive(pos)
        label = _LABEL.match(text, pos)
        if label:
            return self._label(pos, label[1], label.end())
        head = _HEAD.match(text, pos)
        if head:
            return self._odd_instruction(head)
        if first == "":
            src.error(pos, f"function '{self.function.name}' is not closed: a '}}' is missing")
        src.expected(pos, "an instruction")

    def _open(self, pos: int) -> int:
        if self.scope.depth >= _MAX_SCOPES:
            self.src.error(pos, f"more than {_MAX_SCOPES} nested scopes")
        self.scopes += 1
        self.scope = self.operands.scope = Scope(self.scope, f"@{self.scopes}", self.function.registers)
        return pos + 1

    def _close(self, pos: int) -> int:
        rest = self.scope.close()
        if self.scope.parent is not None:
            self.scope = self.operands.scope = self.scope.parent
            return pos + 1
        if rest:
            self.src.error(rest[0][1], f"label '{rest[0][0]}' is not defined")
        for table, label, targets in self.targets:
            table[label] = tuple(targets)
        return -(pos + 1)

    def _odd_instruction(self, head: re.Match[str]) -> int:
        """An instruction that the fast pattern does not take: an operand with ``?:``, or a malformed one."""
        src = self.src
        opcode, *mods = head[2].split(".")
        guard = self._guard(head.start(1), head[1]) if head[1] else None
        instruction = Instruction(opcode, tuple(mods), (), guard, src.line(head.start(2)), self.loc)
        self.body.append(instruction)
        pos = head.end()
        if opcode in ("bra", "brx"):
            return src.expect(self._branch(instruction, pos), ";")
        if opcode == "call":
            return src.expect(self._call(instruction, pos), ";")
        operands: list[Operand] = []
        while src.peek(pos) != ";" or operands:
            operand, pos = self.operands.parse(pos)
            operands.append(operand)
            if src.peek(pos) != ",":
                break
            pos = src.skip(pos) + 1
        instruction.operands = tuple(operands)
        if src.peek(pos) != ";":
            src.expected(pos, "',' or ';'" if operands else "';'")
        return src.skip(pos) + 1

    def _label(self, pos: int, name: str, end: int) -> int:
        word = self.src.directive(end)
        if name in self.scope.labels:
            self.src.error(pos, f"label '{name}' is defined twice")
        flat = self.scope.labels[name] = name + self.scope.suffix
        if word is not None and word[0] in ("branchtargets", "calltargets"):
            return self._target_list(word[1], flat, branches=word[0] == "branchtargets")
        if word is not None and word[0] == "callprototype":
            prototype, end = signature(self.src, word[1], is_entry=False)
            prototype.line = self.src.line(pos)
            end = self.parser._function_directives(end, prototype)
            self.function.prototypes[flat] = prototype
            return self.src.expect(end, ";")
        self.body.append(LabelDef(flat, self.src.line(pos)))
        return end

    def _target_list(self, pos: int, flat: str, *, branches: bool) -> int:
        src, names = self.src, list[str]()
        while True:
            pos = src.skip(pos)
            name, end = src.ident(pos, "a target")
            if branches:
                self.scope.use_label(name, pos, _TargetLabel(names, len(names)))
            elif name not in self.parser.symbols:
                src.error(pos, f"'{name}' is not declared")
            names.append(name)
            if src.peek(end) != ",":
                break
            pos = src.skip(end) + 1
        self.targets.append((self.function.branch_targets if branches else self.function.call_targets, flat, names))
        return src.expect(end, ";")

    def _branch(self, instruction: Instruction, pos: int) -> int:
        """``bra label`` and ``brx.idx index, list``."""
        src = self.src
        operands: list[Operand | None] = []
        if instruction.opcode == "brx":
            index, pos = self.operands.parse(pos)
            operands.append(index)
            pos = src.expect(pos, ",")
        pos = src.skip(pos)
        name, end = src.ident(pos, "a label")
        instruction.operands = (*operands, Label(name))
        self.scope.use_label(name, pos, _OperandLabel(instruction, len(operands)))
        if src.peek(end) != ";":
            src.expected(end, "';'")
        return end

    def _call(self, instruction: Instruction, pos: int) -> int:
        """``call (returns), callee, (arguments), prototype``."""
        src = self.src
        returns = arguments = None
        if src.peek(pos) == "(":
            returns, pos = self._call_list(src.skip(pos) + 1)
            pos = src.expect(pos, ",")
        pos = src.skip(pos)
        name, end = src.ident(pos, "a function")
        callee = self.operands.scope.lookup(name, self.parser.symbols)
        if callee is None and name in self.parser.module.aliases:
            callee = Sym(name)
        if not isinstance(callee, Reg | Sym):
            src.error(pos, f"function '{name}' is not declared")
        pos, label = end, None
        if src.peek(pos) == ",":
            pos = src.skip(pos) + 1
            if src.peek(pos) == "(":
                arguments, pos = self._call_list(src.skip(pos) + 1)
                if src.peek(pos) == ",":
                    pos = src.skip(pos) + 1
                    label = src.ident(pos, "a prototype or list of targets")
            else:
                label = src.ident(pos, "arguments in parentheses or a label")
        instruction.operands = (returns, callee, arguments, Label(label[0]) if label else None)
        if label:
            self.scope.use_label(label[0], pos, _OperandLabel(instruction, 3))
            pos = label[1]
        if src.peek(pos) != ";":
            src.expected(pos, "';'")
        return pos

    def _call_list(self, pos: int) -> tuple[Vec, int]:
        src = self.src
        items: list[Operand] = []
        if src.peek(pos) == ")":
            return Vec(()), src.skip(pos) + 1
        while True:
            operand, pos = self.operands.parse(pos)
            items.append(operand)
            if src.peek(pos) != ",":
                return Vec(tuple(items)), src.expect(pos, ")")
            pos = src.skip(pos) + 1

    # -- directives ----------------------------------------------------------------------------------------------

    def _directive(self, pos: int) -> int:
        src = self.src
        word = src.directive(pos)
        if word is None:
            src.expected(pos, "a directive")
        name, after = word
        if name == "loc":
            return self._loc(after)
        if name == "reg":
            return self._registers(after)
        if name == "pragma":
            pragmas, after = pragma(src, after)
            self.function.pragmas += pragmas
            return after
        linkage = None
        if name in _LINKAGES:
            linkage, word = name, src.directive(after)
            if word is None:
                src.expected(after, "a state space")
            name, after = word
        if name in data.STATE_SPACES:
            return self._variables(after, name, linkage)
        if name == "file":
            return self.parser._file(after)
        if name == "section":
            return self.parser._section(after)
        src.error(pos, f"unknown directive '.{name}'")

    def _loc(self, pos: int) -> int:
        text = self.src.text
        match = _LOC.match(text, pos)
        if match is None:
            self.src.expected(pos, "file, line and column")
        file, line, column = int(match[1]), int(match[2]), int(match[3] or 0)
        end = match.end()
        inlined = _INLINED.match(text, end) if text[self.src.skip(end) : self.src.skip(end) + 1] == "," else None
        if inlined is None:
            loc, depth = Loc(file, line, column), 0
        else:
            end = inlined.end()
            where = int(inlined[3]), int(inlined[4]), int(inlined[5] or 0)
            parent, depth = self.locs.get(where) or (Loc(*where), 0)
            function = self.parser.strings.get(inlined[1], inlined[1])
            if depth < _MAX_INLINED:
                loc, depth = Loc(file, line, column, function, parent), depth + 1
            else:
                loc, depth = Loc(file, line, column, function), 0
        self.loc = loc
        self.locs[file, line, column] = loc, depth
        return end

    def _registers(self, pos: int) -> int:
        """``.reg .b32 %r<10>, %x;`` after the word ``.reg``."""
        src = self.src
        declarator, pos = data.prefix(src, pos)
        while True:
            start = src.skip(pos)
            name, pos = src.ident(pos, "a register name")
            count = None
            if src.peek(pos) == "<":
                count, pos = constants.literal_int(src, src.skip(pos) + 1)
                if count >= _MAX_RANGE:
                    src.error(start, f"{count} registers are too many")
                pos = src.expect(pos, ">")
            if not self.scope.declare_register(name, declarator.type, declarator.vector, count):
                src.error(start, f"register '{name}' is declared twice")
            if src.peek(pos) != ",":
                return src.expect(pos, ";")
            pos = src.skip(pos) + 1

    def _variables(self, pos: int, space: str, linkage: str | None) -> int:
        declared, end = data.variables(self.src, pos, space, linkage)
        for variable in declared:
            flat = self.scope.declare_symbol(variable.name)
            if flat is None:
                raise PtxError(f"'{variable.name}' is declared twice", variable.line, self.src.name)
            if flat != variable.name:
                variable.alias, variable.name = variable.name, flat
            self.function.variables.append(variable)
            self.operands.variables[flat] = variable
        return end


def _first_empty(rest: str) -> int:
    """Where an operand is missing between commas."""
    at = 0
    for match in re.finditer(r"(?:\[[^\[\]]*+\]|\{[^{}]*+\}|[^,])*+,?+", rest):
        if match[0] in (",", ""):
            return match.start()
        at = match.end()
    return at

