"""Names: nested scopes of a function body, flattened into one name space."""

from __future__ import annotations

import re
from collections.abc import Container

from .ast import Guard, Operand, Reg, Special, Sym, Vec

#: Special registers (PTX ISA 10); everything else that starts with % must be declared.
_SPECIAL = re.compile(
    r"""%(?: (?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?
    | laneid | warpid | nwarpid | smid | nsmid | gridid | is_explicit_cluster | cluster_ctarank | cluster_nctarank
    | lanemask_(?:eq|le|lt|ge|gt) | clock | clock_hi | clock64 | pm[0-7](?:_64)? | envreg(?:[0-2]?\d|3[01])
    | globaltimer | globaltimer_lo | globaltimer_hi | reserved_smem_offset_(?:begin|end|cap|0|1)
    | total_smem_size | aggr_smem_size | dynamic_smem_size | current_graph_exec )""",
    re.VERBOSE | re.ASCII,
)
_COMPONENTS = "xyzw"
_MAX_RANGE_DIGITS = 10


class Scope:
    """One ``{ }``: what it declares, and the operands already parsed in it.

    ``suffix`` makes the flattened names; it is "" for the body itself and "@k" for the k-th inner scope (``@``
    cannot occur in a PTX name).  ``cache`` maps operand text, exactly as written, to the operand; a declaration
    empties it because the same text may now mean something else.
    """

    __slots__ = ("cache", "depth", "guards", "labels", "names", "parent", "pending", "ranges", "registers", "suffix")

    def __init__(self, parent: Scope | None, suffix: str, registers: dict[str, str]) -> None:
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.suffix = suffix
        self.registers = registers  # of the function: flattened name -> type, those that are used
        self.names: dict[str, Operand] = {}
        self.ranges: dict[str, tuple[int, str, int]] = {}  # prefix -> count, type, vector width
        self.labels: dict[str, str] = {}
        self.pending: list[tuple[str, int, LabelUse]] = []  # label uses not resolved yet: name, position, user
        self.cache: dict[str, Operand] = {}
        self.guards: dict[str, Guard] = {}

    def declare_register(self, name: str, type_: str, vector: int, count: int | None) -> bool:
        """Declare a register, or ``count`` of them (``%r<count>``); False if the name is taken."""
        self.cache.clear()
        self.guards.clear()
        if count is not None:
            if name in self.ranges:
                return False
            self.ranges[name] = (count, type_, vector)
            return True
        if name in self.names or (self.ranges and self._from_range(name)):
            return False
        self._add_register(name, type_, vector)
        return True

    def declare_symbol(self, name: str) -> str | None:
        """Declare a variable or parameter and return its flattened name; None if the name is taken."""
        if name in self.names:
            return None
        self.cache.clear()
        self.names[name] = Sym(name + self.suffix)
        return name + self.suffix

    def _add_register(self, name: str, type_: str, vector: int) -> Operand:
        flat = name + self.suffix
        if vector == 1:
            self.names[name] = reg = Reg(flat, type_)
            return reg
        items = tuple(Reg(f"{flat}.{c}", type_) for c in _COMPONENTS[:vector])
        for item, component in zip(items, _COMPONENTS, strict=False):
            self.names[f"{name}.{component}"] = item
        self.names[name] = whole = Vec(items)
        return whole

    def _from_range(self, name: str) -> Operand | None:
        base = name.partition(".")[0]
        for digits in range(1, min(len(base), _MAX_RANGE_DIGITS + 1)):
            if not base[-digits].isdigit():
                return None
            entry = self.ranges.get(base[:-digits])
            number = base[-digits:]
            if entry and int(number) < entry[0] and (digits == 1 or number[0] != "0"):
                self._add_register(base, entry[1], entry[2])
                return self.names.get(name)
        return None

    def lookup(self, name: str, module: Container[str]) -> Operand | None:
        """What a name means here: a register, a symbol, a special register, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name) or (scope._from_range(name) if scope.ranges else None)
            if found is not None:
                for reg in found.items if isinstance(found, Vec) else (found,):
                    if isinstance(reg, Reg):
                        self.registers[reg.name] = reg.type
                return found
            scope = scope.parent
        if name in module:
            return Sym(name)
        return Special(name) if _SPECIAL.fullmatch(name) else None

    def use_label(self, name: str, pos: int, user: LabelUse) -> None:
        """Resolve a label now, or when this scope or one around it ends: labels may follow their uses."""
        self.pending.append((name, pos, user))

    def close(self) -> list[tuple[str, int, LabelUse]]:
        """Resolve the label uses; those that nothing here defines are returned or go to the parent."""
        rest = []
        for use in self.pending:
            flat = self.labels.get(use[0])
            if flat is None:
                rest.append(use)
            else:
                use[2].resolve(flat)
        if self.parent is None:
            return rest
        self.parent.pending.extend(rest)
        return []


class LabelUse:
    """A place that names a label."""

    def resolve(self, flat: str) -> None:
        raise NotImplementedError
