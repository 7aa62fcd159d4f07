"""What the functions of one compiled object share: its strings, sites, variables and shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from ....ptx import ast
from ....ptx.ast import Function, Instruction, Module, Sym
from . import Unsupported

#: More shared or local memory than any GPU has: sizes stay far from what 32 bits can hold.
MOST_BYTES = 1 << 26
#: IR constant: where dynamic shared memory starts.  It is known when all functions are lowered.
DYNAMIC_SHARED = "@dynamic.shared"


@dataclass
class Site:
    instruction: Instruction
    function: str


class KernelLowering:
    """What the functions of one compiled object share."""

    def __init__(self, module: Module, check: bool = True, numerics: str = "hardware") -> None:
        self.module, self.check, self.numerics = module, check, numerics
        self.declared: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.sites: list[Site] = []
        self.strings: dict[str, str] = {}
        self.vars: dict[str, int] = {}  # module variables named, in order
        self.pending: list[str] = []  # device functions to lower
        self.seen: set[str] = set()
        self.shared: dict[str, int] = {}  # static shared variables -> offset
        self.shared_size = 0
        self.dynamic_align = 1  # of the dynamic shared memory, which starts behind all that is static
        self.uses_grid_sync = False
        self.indirect = False  # calls through pointers: any function whose address is taken may be the target
        # Copies behind the backs of threads: in check mode, accesses to shared memory are compared with them.
        self.copies = check and any(
            i.opcode == "cp" and i.has("async") for fn in module.functions.values() for i in fn.instructions()
        )
        self.bodies: list[str] = []
        self.frame: dict[str, int] = {}  # local bytes a lane, by function
        self.stack: dict[str, int] = {}  # native stack bytes, by function
        self.calls: dict[str, set[str]] = {}

    def place_shared(self, v: ast.Variable) -> int:
        """Give a static shared variable its offset."""
        if v.name not in self.shared:
            self.shared_size = align(self.shared_size, max(v.align, 1))
            self.shared[v.name] = self.shared_size
            self.shared_size += v.size
            if self.shared_size > MOST_BYTES:
                raise Unsupported(f"{self.shared_size} bytes of shared memory, with variable {v.name}")
        return self.shared[v.name]

    def end_of_shared(self) -> int:
        """When all functions are lowered: the static size, with what it takes to align the dynamic memory behind it."""
        self.shared_size = align(self.shared_size, self.dynamic_align)
        return self.shared_size

    def string(self, text: str) -> str:
        """A constant C string; equal strings share one."""
        if text not in self.strings:
            self.strings[text] = f"@str.{len(self.strings)}"
        return self.strings[text]

    def need(self, function: str) -> str:
        """The IR name of a device function, lowered later if it is not yet."""
        if function not in self.seen:
            self.seen.add(function)
            self.pending.append(function)
        return f'@"fn.{function}"'

    @property
    def addressed(self) -> list[str]:
        """Functions whose address the module takes, in the order that gives them their device address."""
        if not hasattr(self, "_addressed"):
            self._addressed = addressed_functions(self.module)
        return self._addressed


def addressed_functions(module: Module) -> list[str]:
    """Device functions whose address is taken anywhere in the module, sorted by name."""
    found: set[str] = set()
    for v in module.variables.values():
        found |= {symbol for _, symbol, _, _ in v.relocs if symbol in module.functions}
    for f in module.functions.values():
        for i in f.instructions():
            if i.opcode != "call":
                found |= {o.name for o in i.operands if isinstance(o, Sym) and o.name in module.functions}
    return sorted(found)


def align(n: int, to: int) -> int:
    return (n + to - 1) // to * to


def param_layout(function: Function) -> tuple[dict[str, int], int]:
    """Offsets of the parameters of a kernel in its parameter buffer, and the buffer's size."""
    at, offsets = 0, {}
    for p in function.params:
        at = align(at, max(p.align, 1))
        offsets[p.name] = at
        at += p.size
    return offsets, at
