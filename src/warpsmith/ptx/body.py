"""Bodies of functions: statements, scopes, labels.

One compiled pattern recognises an ordinary instruction; its operands are looked up by their text in a cache of the
current scope, so that the parser proper runs once for each different operand.  Everything else (labels, braces,
directives, calls) takes the slower road, which is also the one that words the errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from . import constants, data, debug
from .ast import (
    Function,
    Guard,
    Instruction,
    Label,
    LabelDef,
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
from .debug import Positions
from .function import LINKAGES, directives, pragma, signature
from .operands import Operands
from .scope import LabelUse, Scope
from .source import Source

_GUARD = r"(@\s*+!?\s*+[\w$%]++)"
_OPCODE = r"([a-z]\w*+(?:(?:\.|::)\w++)*+)"
#: guard, opcode and operand text of an instruction that ends in the semicolon it should
_INSTRUCTION = re.compile(rf"\s*+(?:{_GUARD}\s++)?{_OPCODE}(?=[\s\[{{(;])([^;:]*+);", re.ASCII)
_HEAD = re.compile(rf"\s*+(?:{_GUARD}\s*+)?{_OPCODE}(?=[\s\[{{(;]|\Z)", re.ASCII)
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*+)\s*+:(?!:)", re.ASCII)
#: operands, where a comma inside brackets does not separate
_PARTS = re.compile(r"(?:\[[^\[\]]*+\]|\{[^{}]*+\}|[^,])++")
_MAX_SCOPES = 100
_MAX_RANGE = 1 << 31


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


class Body:
    """The inside of a function; ``names`` are the source names of inlined functions by label."""

    def __init__(
        self, src: Source, module: Module, symbols: Mapping[str, Variable | Function], function: Function,
        opcodes: dict[str, tuple[str, tuple[str, ...]]], names: dict[str, str],
    ) -> None:  # fmt: skip
        self.src, self.module, self.symbols, self.function = src, module, symbols, function
        self.opcodes = opcodes  # of the whole module, by their text
        self.body: list[Statement] = []
        self.scope = Scope(None, "", function.registers)
        self.scopes = 0
        self.operands = Operands(self.src, symbols, self.scope)
        self.positions = Positions(src, names)
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
        match, opcodes = _INSTRUCTION.match, self.opcodes
        positions, line = self.positions, src.line
        special = {"bra": self._branch, "brx": self._branch, "call": self._call}
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
                instruction = Instruction(opcode[0], opcode[1], (), guard, line(start), positions.current)
                special[opcode[0]](instruction, m.start(3))
                body.append(instruction)
                pos = m.end()
                continue
            if not rest or rest.isspace():
                body.append(Instruction(opcode[0], opcode[1], (), guard, line(start), positions.current))
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
            body.append(Instruction(opcode[0], opcode[1], tuple(operands), guard, line(start), positions.current))
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
        instruction = Instruction(opcode, tuple(mods), (), guard, src.line(head.start(2)), self.positions.current)
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
            end = directives(self.src, end, prototype)
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
            elif name not in self.symbols:
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
        callee = self.operands.scope.lookup(name, self.symbols)
        if callee is None and name in self.module.aliases:
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
            return self.positions.directive(after)
        if name == "reg":
            return self._registers(after)
        if name == "pragma":
            pragmas, after = pragma(src, after)
            self.function.pragmas += pragmas
            return after
        linkage = None
        if name in LINKAGES:
            linkage, word = name, src.directive(after)
            if word is None:
                src.expected(after, "a state space")
            name, after = word
        if name in data.STATE_SPACES:
            return self._variables(after, name, linkage)
        if name == "file":
            number, path, end = debug.file(src, after)
            self.module.files[number] = path
            return end
        if name == "section":
            return debug.section(src, after)
        src.error(pos, f"unknown directive '.{name}'")

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
