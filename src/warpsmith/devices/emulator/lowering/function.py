"""One PTX function -> one LLVM function that runs a warp.

How the state of a warp is kept:

- Inside a basic block a register is an SSA value, one scalar when all lanes agree (*uniform*), else 32 lanes.
- Between blocks it lives in the *register file*, an area of the function's stack frame.  Values of lanes
  that wait at another block are kept by blending on the store.  Not promoting the register file to SSA
  form keeps blocks independent, so compile time is linear in the code, and lets the runtime compare
  the state of a spinning warp with what it was a round earlier (deadlock detection).
- Lanes that part form groups (block rank, mask), kept by the runtime (``runtime/groups.cpp``).
  Where the analyses prove that nobody can be waiting elsewhere, a jump is a plain branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....ptx.ast import TYPE_BITS, Function, Imm, Instruction, Not, Operand, Reg, Sink, Special, Sym
from .. import abi
from ..ir import BITS, LANES, Builder, Val, const, fconst
from . import Handler, Unsupported, handlers
from .inline import expand_calls
from .kernel import DYNAMIC_SHARED, MOST_BYTES, KernelLowering, Site, align, param_layout
from .plan import Unit, asks_the_world, branch_around, plan
from .special import special_register

FLOAT_TYPES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def lane_type(ptx_type: str) -> str:
    """The IR type of one lane for a PTX type; packed types are one integer."""
    if ptx_type == "pred":
        return "i1"
    return FLOAT_TYPES.get(ptx_type) or f"i{max(TYPE_BITS[ptx_type], 8)}"


@dataclass(slots=True)
class Slot:
    offset: int
    ty: str  # i1 is stored as a 32-bit mask
    uniform: bool


class FunctionLowering:
    """Lowers one function; handlers (the other files of this folder) see it as ``f``."""

    ctx = "%w"

    def __init__(self, kernel: KernelLowering, function: Function) -> None:
        self.kernel, self.module = kernel, kernel.module
        self.function = expand_calls(kernel.module, branch_around(function))
        self.b = Builder()
        self.b.declared = kernel.declared
        self.entry: list[str] = []  # allocas and set-up
        self.values: dict[str, Val] = {}
        self.dirty: set[str] = set()
        self.slots: dict[str, Slot] = {}
        self.guard: Val | None = None
        self.instruction: Instruction | None = None
        self._sites: dict[int, int] = {}
        self._buffers: dict[str, list[str]] = {}
        self._used_buffers: dict[str, int] = {}
        self.labels = 0
        self.memo: dict[str, object] = {}  # what instruction families remember
        self.stack_room = 0  # bytes of areas of theirs in the stack frame
        self.may_dispatch = False
        self.locals: dict[str, int] = {}  # local variables, call parameters -> offset in the frame
        self.local_size = 0
        self.place_locals()

    # ---- frame -----------------------------------------------------------------------------------
    def place_locals(self) -> None:
        """Lay out the local memory of the function: parameters, results, then its own variables."""
        f = self.function
        if not f.is_entry:
            for p in (*f.returns, *f.params):
                self.local_size = align(self.local_size, max(p.align, 8))
                self.locals[p.name] = self.local_size
                self.local_size += p.size
        own = []
        for v in f.variables:
            if v.space == "shared":
                self.kernel.place_shared(v)
            elif v.space in ("local", "param"):
                own.append(v)
        # Local arrays come last, and the last of them ends where the frame ends: who writes past it is found.
        for v in sorted(own, key=lambda v: v.space == "local"):
            self.local_size = align(self.local_size, max(v.align, 8))
            self.locals[v.name] = self.local_size
            self.local_size += v.size
            if self.local_size > MOST_BYTES:
                raise Unsupported(f"{self.local_size} bytes of local memory a thread, with variable {v.name}")
        room = -self.local_size % 16
        if arrays := [v for v in own if v.space == "local"]:
            self.locals[arrays[-1].name] += room - room % max(arrays[-1].align, 8)
        self.local_size += room

    def local_address(self, name: str, offset: int = 0) -> Val:
        """Offset of a local variable in the lane's local memory (uniform i32)."""
        at = self.locals[name] + offset
        if self.function.is_entry:
            return const(at, "i32")
        return self.b.raw("i32", True, f"add i32 %frame, {at}")

    # ---- operands --------------------------------------------------------------------------------
    def src(self, op: Operand | None, ptx_type: str) -> Val:
        """An operand as a value of this PTX type (see ``lane_type``)."""
        ty = lane_type(ptx_type)
        if isinstance(op, Reg):
            return self.fit(self.read(op), ty)
        if isinstance(op, Imm):
            return self.immediate(op, ptx_type)
        if isinstance(op, Special):
            return self.fit(special_register(self, op.name), ty)
        if isinstance(op, Not):
            if op.reg.type != "pred" or ty != "i1":
                raise Unsupported(f"!{op.reg.name}, which is no predicate, in {self.where()}", self.instruction)
            v = self.read(op.reg)
            return self.b.op("xor", v, const(1, "i1"))
        if isinstance(op, Sym):
            return self.fit(self.symbol(op), ty)
        raise Unsupported(f"operand {op!r} of {self.where()}", self.instruction)

    def immediate(self, op: Imm, ptx_type: str) -> Val:
        ty = lane_type(ptx_type)
        if op.kind == "int":
            if ty in ("float", "double"):
                return fconst(float(op.value), ty)
            if ty in ("half", "bfloat"):
                return Val(f"bitcast (i16 {const(op.value, 'i16').name} to {ty})", ty, True)
            return const(op.value, ty)
        bits = op.value
        if op.kind == "f32":
            if ty == "float":
                return Val(f"bitcast (i32 {const(bits, 'i32').name} to float)", ty, True)
            if ty == "double":
                return self.b.cast("fpext", self.immediate(op, "f32"), "double")
            return const(bits, ty)
        if ty == "double":
            return Val(f"bitcast (i64 {const(bits, 'i64').name} to double)", ty, True)
        if ty == "float":
            import struct

            return fconst(struct.unpack("<d", struct.pack("<Q", bits))[0])
        return const(bits, ty)

    def fit(self, v: Val, ty: str) -> Val:
        """Reinterpret or truncate a value to a lane type; integers that are too narrow are zero-extended."""
        have, want = BITS[v.ty], BITS[ty]
        if have == want:
            return self.b.bitcast(v, ty)
        if v.ty == "i1" or ty == "i1":
            if ty == "i1":
                return self.b.cmp("ne", v, const(0, v.ty))
            return self.b.cast("zext", v, ty) if ty[0] == "i" else self.fit(self.b.cast("zext", v, f"i{want}"), ty)
        if v.ty[0] != "i":
            v = self.b.bitcast(v, f"i{have}")
        v = self.b.cast("trunc" if have > want else "zext", v, f"i{want}")
        return self.b.bitcast(v, ty)

    def read(self, reg: Reg) -> Val:
        """The current value of a register, in its stored type (integers of its width, ``i1`` for predicates)."""
        v = self.values.get(reg.name)
        if v is not None:
            return v
        slot = self.slots.get(reg.name)
        if slot is None or reg.name not in self.unit.live_in:
            v = const(0, storage(reg.type))  # never written before: any value will do
        else:
            v = self.load_slot(slot)
        self.values[reg.name] = v
        return v

    def dst(self, op: Operand | None, val: Val, signed: bool = False) -> None:
        """Write a register: extend to its width, keep the old value of lanes that the guard excludes."""
        if isinstance(op, Sink) or op is None:
            return
        if not isinstance(op, Reg):
            raise Unsupported(f"destination {op!r} of {self.where()}", self.instruction)
        ty = storage(op.type)
        if val.ty != ty:
            have, want = BITS[val.ty], BITS[ty]
            if val.ty[0] != "i":
                val = self.b.bitcast(val, f"i{have}")
            if have < want:
                val = self.b.cast("sext" if signed else "zext", val, ty)
            elif have > want:
                val = self.b.cast("trunc", val, ty) if ty != "i1" else self.b.cmp("ne", val, const(0, val.ty))
        if self.guard is not None:
            val = self.b.select(self.guard, val, self.read(op))
        self.values[op.name] = val
        self.dirty.add(op.name)

    def symbol(self, op: Sym) -> Val:
        """The address of a variable or function, as the PTX ISA has it: in its own state space."""
        name = op.name
        if name in self.kernel.shared:
            return const(self.kernel.shared[name] + op.offset, "i64")
        if name in self.locals:
            return self.b.cast("zext", self.local_address(name, op.offset), "i64")
        if self.function.is_entry and any(p.name == name for p in self.function.params):
            return const(self.param_offset(name) + op.offset, "i64")
        variable = self.module.variables.get(name) or next((v for v in self.function.variables if v.name == name), None)
        if variable is not None:
            if variable.space == "shared" and variable.linkage == "extern":
                self.kernel.dynamic_align = max(self.kernel.dynamic_align, variable.align)
                v = self.b.raw("i64", True, f"load i64, ptr {DYNAMIC_SHARED}, !invariant.load !0")
                return self.b.op("add", v, const(op.offset, "i64")) if op.offset else v
            if variable.space == "shared":
                return const(self.kernel.place_shared(variable) + op.offset, "i64")
            index = self.kernel.vars.setdefault(name, len(self.kernel.vars))
            table = self.field("vars")
            at = self.pointer(f"getelementptr i64, ptr {table.name}, i64 {index}")
            v = self.b.raw("i64", True, f"load i64, ptr {at}, !invariant.load !0")
            return self.b.op("add", v, const(op.offset, "i64")) if op.offset else v
        if name in self.module.functions:
            return const(abi.FUNCTION_BASE + 16 * self.kernel.addressed.index(name), "i64")
        raise Unsupported(f"unknown symbol {name}", self.instruction)

    def param_offset(self, name: str) -> int:
        """Where a kernel parameter lies in the parameter buffer."""
        return param_layout(self.function)[0][name]

    # ---- register file ---------------------------------------------------------------------------
    def load_slot(self, slot: Slot) -> Val:
        at = self.slot_pointer(slot)
        if slot.ty == "i1":
            m = self.b.raw("i32", True, f"load i32, ptr {at}, align 4")
            return self.b.cmp("ne", m, const(0, "i32")) if slot.uniform else self.b.lanes(m)
        full = slot.ty if slot.uniform else f"<{LANES} x {slot.ty}>"
        return self.b.raw(slot.ty, slot.uniform, f"load {full}, ptr {at}, align {8 if slot.uniform else 64}")

    def slot_pointer(self, slot: Slot) -> str:
        return self.pointer(f"getelementptr i8, ptr %regs, i64 {slot.offset}")

    def store_slot(self, reg: str, v: Val) -> None:
        slot = self.slots[reg]
        at = self.slot_pointer(slot)
        if slot.uniform:
            if not v.uniform:
                v = self.first(v)
            if slot.ty == "i1":
                v = self.b.cast("zext", v, "i32")
            self.b.line(f"store {v.typed}, ptr {at}, align {4 if slot.ty == 'i1' else 8}")
        elif slot.ty == "i1":
            m = self.b.bits(v)
            if self.unit.parted:
                old = self.b.raw("i32", True, f"load i32, ptr {at}, align 4")
                keep = self.b.op("and", old, self.b.op("xor", self.active, const(-1, "i32")))
                m = self.b.op("or", self.b.op("and", m, self.active), keep)
            self.b.line(f"store {m.typed}, ptr {at}, align 4")
        else:
            if self.unit.parted:
                old = self.b.raw(slot.ty, False, f"load <{LANES} x {slot.ty}>, ptr {at}, align 64")
                v = self.b.select(self.b.lanes(self.active), v, old)
            self.b.line(f"store {self.b.vec(v).typed}, ptr {at}, align 64")

    def flush(self) -> None:
        """Write the block's results that are live after it to the register file."""
        for reg in sorted(self.dirty):
            if reg in self.slots and reg in self.unit.live_out:
                self.store_slot(reg, self.values[reg])
        self.dirty.clear()

    def first(self, v: Val) -> Val:
        """The value of the first running lane, as a uniform."""
        if v.uniform:
            return v
        lane = self.b.call("llvm.cttz", self.mask, const(0, "i1"))
        lane = self.b.op("and", lane, const(31, "i32"))
        if v.ty == "i1":
            shifted = self.b.op("lshr", self.b.bits(v), lane)
            return self.b.cast("trunc", shifted, "i1")
        return self.b.lane(v, lane)

    # ---- lanes -----------------------------------------------------------------------------------
    @property
    def active(self) -> Val:
        """Lanes that run this block (uniform i32)."""
        return self._active

    @property
    def mask(self) -> Val:
        """Lanes that execute this instruction: those that run and whose guard holds (uniform i32)."""
        if self.guard is None:
            return self._active
        if self.guard.uniform:
            return self.b.select(self.guard, self._active, const(0, "i32"))
        return self.b.op("and", self._active, self.b.bits(self.guard))

    # ---- calls into the runtime ------------------------------------------------------------------
    def pointer(self, text: str) -> str:
        name = self.b.new()
        self.b.line(f"{name} = {text}")
        return name

    def field(self, name: str) -> Val:
        """A scalar field of ws_warp."""
        offset, ty = abi.WARP_FIELDS[name]
        at = self.pointer(f"getelementptr i8, ptr %w, i64 {offset}")
        return self.b.raw(ty, True, f"load {ty}, ptr {at}")

    def site(self, i: Instruction) -> int:
        """Index of an instruction in the table that run-time reports read."""
        n = self._sites.get(id(i))
        if n is None:
            n = self._sites[id(i)] = len(self.kernel.sites)
            self.kernel.sites.append(Site(i, self.function.name))
        return n

    def runtime(self, name: str, ret: str, *args: str) -> Val | None:
        """Call a C function of the runtime; ``args`` are typed IR operands, ``ret`` a lane type or "void"."""
        types = ", ".join(a.rsplit(" ", 1)[0] for a in args)
        self.b.declare(name, f"declare {ret} @{name}({types})")
        call = f"call {ret} @{name}({', '.join(args)})"
        if ret == "void":
            self.b.line(call)
            return None
        return self.b.raw(ret, True, call)

    def buffer(self, ty: str) -> str:
        """A [32 x ty] area of the stack, free to use until the end of the instruction."""
        if ty == "i1":
            ty = "i8"
        n = self._used_buffers.get(ty, 0)
        self._used_buffers[ty] = n + 1
        pool = self._buffers.setdefault(ty, [])
        if n == len(pool):
            pool.append(f"%buf.{ty}.{n}")
            self.entry.append(f"  %buf.{ty}.{n} = alloca [{LANES} x {ty}], align 64")
        return pool[n]

    def spill(self, v: Val) -> str:
        """Write 32 lanes to memory for a C function; returns the pointer's name."""
        if v.ty == "i1":
            v = self.b.cast("zext", v, "i8")
        p = self.buffer(v.ty)
        self.b.line(f"store {self.b.vec(v).typed}, ptr {p}, align 64")
        return p

    def reload(self, pointer: str, ty: str) -> Val:
        if ty == "i1":
            return self.b.cast("trunc", self.reload(pointer, "i8"), "i1")
        return self.b.raw(ty, False, f"load <{LANES} x {ty}>, ptr {pointer}, align 64")

    def lanewise(self, name: str, ty: str, *vals: Val) -> Val:
        """``void name(T* out, const A* a, ...)`` over 32 lanes -> a value of lane type ``ty``."""
        uniform = all(v.uniform for v in vals)
        args = [f"ptr {self.spill(v)}" for v in vals]
        out = self.buffer(ty)
        self.runtime(name, "void", f"ptr {out}", *args)
        v = self.reload(out, ty)
        return self.b.lane(v, 0) if uniform else v

    def helper(self, name: str, text: str) -> str:
        """Add an internal IR function to the object, once."""
        self.kernel.helpers.setdefault(name, text)
        return "@" + name

    def kernel_string(self, text: str) -> str:
        """A constant C string in the object; returns its name."""
        return self.kernel.string(text)

    def carry(self) -> Val:
        """The condition code of add.cc and its kin (CC.CF)."""
        return self.read(Reg("%cc", "pred"))

    def set_carry(self, v: Val) -> None:
        self.dst(Reg("%cc", "pred"), v)

    def where(self) -> str:
        i = self.instruction
        return f"{i.text} (PTX line {i.line})" if i else "?"

    def fresh(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}.{self.labels}"

    # ---- control flow ----------------------------------------------------------------------------
    def jump(self, rank: int) -> None:
        """End the block: all running lanes go to ``rank``."""
        back = rank <= self.unit.rank
        if back:
            # A budget of back-edges lets other groups, warps and an interrupt in.
            at = self.pointer(f"getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS['budget'][0]}")
            n = self.b.raw("i32", True, f"load i32, ptr {at}")
            n = self.b.op("sub", n, const(1, "i32"))
            self.b.line(f"store i32 {n.name}, ptr {at}")
            out = self.b.cmp("eq", n, const(0, "i32"))
            spent, go = self.fresh("spent"), self.fresh("go")
            self.b.line(f"br i1 {out.name}, label %{spent}, label %{go}, !prof !1")
            self.b.label(spent)
            site = self.site(self.unit.instructions[-1]) if self.unit.instructions else 0
            if not self.unit.waits and any(
                asks_the_world(i) for u in self.units[rank : self.unit.rank + 1] for i in u.instructions
            ):
                site -= 1 << 31  # the registers are not the whole state of this loop: no proof of a deadlock
            where = ("ptr %w", "ptr %g", f"i32 {rank}", f"i32 {self.active.name}", f"i32 {site}")
            if self.unit.waits:
                r = self.runtime("ws_yield", "i32", *where)
                assert r is not None
                self.switch(r)
            else:
                self.runtime("ws_rest", "void", *where)
                self.b.line(f"br label %{go}")
            self.b.label(go)
        if not self.unit.parted:
            self.b.line(f"br label %b{rank}")
            return
        at = self.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['frontier'][0]}")
        frontier = self.b.raw("i32", True, f"load i32, ptr {at}")
        first = self.b.cmp("ugt", frontier, const(rank, "i32"))
        meet = self.fresh("meet")
        self.b.line(f"br i1 {first.name}, label %b{rank}, label %{meet}")
        self.b.label(meet)
        r = self.runtime("ws_dispatch", "i32", "ptr %w", "ptr %g", f"i32 {rank}", f"i32 {self.active.name}")
        assert r is not None
        self.switch(r)

    def switch(self, rank: Val) -> None:
        """End the block: continue at a rank that the runtime chose."""
        self.may_dispatch = True
        self.b.line(f"store i32 {rank.name}, ptr %next, align 4")
        self.b.line("br label %dispatch")

    def set_active(self, mask: Val) -> None:
        at = self.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['mask'][0]}")
        self.b.line(f"store i32 {mask.name}, ptr {at}, align 4")
        self._active = mask

    def waiting(self) -> Val:
        """True if other groups of the warp wait or are parked in this activation."""
        at = self.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['waiting'][0]}")
        n = self.b.raw("i32", True, f"load i32, ptr {at}")
        return self.b.cmp("ne", n, const(0, "i32"))

    def leave(self) -> None:
        """End the block: the running lanes return (or exit, in an entry)."""
        if self.function.is_entry and self.unit.parted:
            self.runtime("ws_exit", "void", "ptr %w", f"i32 {self.active.name}")
        if not self.unit.parted:
            self.b.line("br label %finish")  # of an entry: the runtime takes it as the exit of all lanes
            return
        r = self.runtime("ws_next", "i32", "ptr %w", "ptr %g")
        assert r is not None
        self.switch(r)

    # ---- the whole function ----------------------------------------------------------------------
    def lower(self) -> str:
        """The IR text of the function."""
        planned = plan(self.function, self.module)
        units, self.exit_ranks = planned.units, planned.exits
        self.units = units
        self.assign_slots(units, planned.uniform)
        table = handlers()
        body_builder = self.b
        for unit in units:
            self.lower_unit(unit, table)
        lines = body_builder.lines
        head = self.prologue(len(units))
        tail = []
        if self.may_dispatch:
            tail += ["dispatch:", "  %rank = load i32, ptr %next, align 4", "  switch i32 %rank, label %finish ["]
            tail += [f"    i32 {u.rank}, label %b{u.rank}" for u in units]
            tail += ["  ]"]
        tail += ["finish:", "  store ptr %outer, ptr %top.p, align 8", "  ret void"]
        self.kernel.frame[self.function.name] = self.local_size
        biggest = max((len(u.instructions) for u in units), default=0)
        self.kernel.stack[self.function.name] = self.file_size + self.stack_room + min(256 * biggest, 1 << 20) + 8192
        return "\n".join([*head, *lines, *tail, "}"])

    def prologue(self, ranks: int) -> list[str]:
        f = self.function
        name = f'@"kernel.{f.name}"' if f.is_entry else f'@"fn.{f.name}"'
        args = "ptr %w" if f.is_entry else "ptr %w, i32 %mask, i32 %frame"
        offsets = abi.GROUP_FIELDS
        out = [f"define internal void {name}({args}) #0 {{", "start:", *self.entry]
        out.append(f"  %regs = alloca [{max(self.file_size, 64)} x i8], align 64")
        out.append(f"  %g = alloca [{abi.GROUP_SIZE} x i8], align 64")
        out.append("  %next = alloca i32, align 4")
        out.append(f"  %wait = alloca [{ranks} x i32], align 64")
        if f.is_entry:
            out.append(f"  %live.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS['live'][0]}")
            out.append("  %mask = load i32, ptr %live.p, align 4")

        def put(fieldname: str, value: str) -> None:
            out.append(f"  %g.{fieldname} = getelementptr i8, ptr %g, i64 {offsets[fieldname][0]}")
            out.append(f"  store {value}, ptr %g.{fieldname}, align 4")

        put("mask", "i32 %mask")
        put("frontier", "i32 -1")
        put("waiting", "i32 0")
        put("parked", "i32 0")
        put("passed", "i32 0")
        put("streak", "i32 0")
        put("ranks", f"i32 {ranks}")
        put("state", "ptr %regs")
        put("state_size", f"i32 {self.file_size}")
        put("wait", "ptr %wait")
        # Activations are linked, so that the state of a waiting warp is that of its callers too.
        out.append(f"  %top.p = getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS['top'][0]}")
        out.append("  %outer = load ptr, ptr %top.p, align 8")
        put("outer", "ptr %outer")
        out.append("  store ptr %g, ptr %top.p, align 8")
        if self.may_dispatch:
            out.append(f"  call void @llvm.memset.p0.i64(ptr align 64 %wait, i8 0, i64 {4 * ranks}, i1 false)")
            self.b.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        out.append("  br label %b0")
        return out

    def assign_slots(self, units: list[Unit], uniform: frozenset[str]) -> None:
        """A place in the register file for every register that is live between blocks."""
        live: set[str] = set()
        for u in units:
            live |= u.live_in | u.observed
        registers = {**self.function.registers, "%cc": "pred"}
        offset = 0
        vectors: list[tuple[str, str]] = []
        for name in sorted(live):
            ty = storage(registers[name])
            if name in uniform:
                self.slots[name] = Slot(offset, ty, True)
                offset += 16 if ty == "i128" else 8
            elif ty == "i1":
                self.slots[name] = Slot(offset, ty, False)
                offset += 8
            else:
                vectors.append((name, ty))
        offset = align(offset, 64)
        for name, ty in vectors:
            self.slots[name] = Slot(offset, ty, False)
            offset += align(LANES * BITS[ty] // 8, 64)
        self.file_size = offset

    def lower_unit(self, unit: Unit, table: dict[str, Handler]) -> None:
        self.unit = unit
        self.values = {}
        self.dirty = set()
        self.b.label(f"b{unit.rank}")
        at = self.pointer(f"getelementptr i8, ptr %g, i64 {abi.GROUP_FIELDS['mask'][0]}")
        self._active = self.b.raw("i32", True, f"load i32, ptr {at}, align 4")
        if unit.instructions:
            at = self.pointer(f"getelementptr i8, ptr %w, i64 {abi.WARP_FIELDS['instructions'][0]}")
            n = self.b.raw("i64", True, f"load i64, ptr {at}, align 8")
            n = self.b.op("add", n, const(len(unit.instructions), "i64"))
            self.b.line(f"store i64 {n.name}, ptr {at}, align 8")
        self.ended = False
        for i in unit.instructions:
            self.lower_instruction(i, table)
        if not self.ended:
            self.flush()
            if unit.targets:
                self.jump(unit.targets[-1])
            else:
                self.leave()

    def lower_instruction(self, i: Instruction, table: dict[str, Handler]) -> None:
        handler = table.get(i.opcode)
        self.instruction = i
        if handler is None:
            raise Unsupported(f"{i.text} is not implemented", i)
        self._used_buffers.clear()
        self.guard = None
        if i.guard is not None and i.opcode not in ("bra", "ret", "exit", "brx"):
            p = self.read(i.guard.reg)
            self.guard = self.b.op("xor", p, const(1, "i1")) if i.guard.negated else p
        try:
            handler(self, i)
        except (IndexError, ValueError, KeyError, TypeError, AttributeError) as e:
            # Handlers count on the operands that the PTX ISA gives an instruction.
            raise Unsupported(f"{i.text} with these operands or modifiers", i) from e
        self.guard = None


def storage(ptx_type: str) -> str:
    """The IR type in which a register of this type is kept: integers of its width; ``i1`` for predicates."""
    return "i1" if ptx_type == "pred" else f"i{max(TYPE_BITS[ptx_type], 8)}"
