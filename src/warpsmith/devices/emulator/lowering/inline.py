"""Direct calls expanded in place, and their .param variables turned into registers.

A called function runs to its end before its caller goes on, for the lanes that called it.  Lanes that spin in
the callee for one that has already returned would wait for ever; expanded in place they are
ordinary groups of one function, and every lane makes progress.  So calls are expanded unless they
recurse, go through a pointer, or make the function too big.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ....ptx.ast import (
    TYPE_BITS,
    Addr,
    Function,
    Guard,
    Instruction,
    Label,
    LabelDef,
    Module,
    Not,
    Operand,
    Pair,
    Reg,
    Statement,
    Sym,
    TensorAddr,
    Variable,
    Vec,
)
from .library import LIBRARY

#: Instructions that a function may have after expansion.
LIMIT = 6000


def expand_calls(module: Module, function: Function) -> Function:
    """The function with its direct, non-recursive calls expanded in place."""
    recursive = recursive_functions(module)
    result = function
    for n in range(200):
        found = _first_call(module, result, recursive)
        if found is None:
            break
        at, callee = found
        if len(result.body or ()) + len(callee.body or ()) > LIMIT:
            break
        result = _expand(result, at, callee, f"@call{n}")
    return promote_params(result)


def recursive_functions(module: Module) -> frozenset[str]:
    """Functions that can reach themselves by direct calls."""
    calls = {
        f.name: {o.name for i in f.instructions() if i.opcode == "call" and isinstance(o := i.operands[1], Sym)}
        for f in module.functions.values()
    }
    out = set()
    for name in calls:
        todo, seen = list(calls[name]), set()
        while todo:
            c = todo.pop()
            if c not in seen:
                seen.add(c)
                todo += calls.get(c, ())
        if name in seen:
            out.add(name)
    return frozenset(out)


def _first_call(module: Module, function: Function, recursive: frozenset[str]) -> tuple[int, Function] | None:
    for at, s in enumerate(function.body or ()):
        if not isinstance(s, Instruction) or s.opcode != "call" or s.guard is not None:
            continue
        returns, callee, args, _ = s.operands
        if not isinstance(callee, Sym) or callee.name in LIBRARY or callee.name in recursive:
            continue
        target = module.functions.get(module.aliases.get(callee.name, callee.name))
        given = [*(returns.items if isinstance(returns, Vec) else ()), *(args.items if isinstance(args, Vec) else ())]
        if target is None or target.body is None or not all(isinstance(g, Sym) for g in given):
            continue
        if any(p.is_reg for p in (*target.params, *target.returns)) or len(given) != len(target.params) + len(
            target.returns
        ):
            continue
        return at, target
    return None


def rename(
    op: Operand | None, reg: Callable[[str], str], sym: Callable[[str], str], label: Callable[[str], str]
) -> Operand | None:
    """An operand with its registers, symbols and labels renamed."""

    def r(o: Operand) -> Operand:
        out = rename(o, reg, sym, label)
        assert out is not None
        return out

    match op:
        case Reg():
            return Reg(reg(op.name), op.type)
        case Not():
            return Not(Reg(reg(op.reg.name), op.reg.type))
        case Sym():
            return Sym(sym(op.name), op.offset)
        case Label():
            return Label(label(op.name))
        case Addr():
            base = r(op.base) if op.base is not None else None
            assert base is None or isinstance(base, Reg | Sym)
            return Addr(base, op.offset)
        case Vec():
            return Vec(tuple(r(o) for o in op.items))
        case Pair():
            first, second = r(op.first), r(op.second)
            return Pair(first, second)  # type: ignore[arg-type]
        case TensorAddr():
            base = r(op.base)
            assert isinstance(base, Addr)
            return dataclasses.replace(
                op, base=base, coords=tuple(r(o) for o in op.coords), extra=tuple(r(o) for o in op.extra)
            )
    return op


def _expand(function: Function, at: int, callee: Function, tag: str) -> Function:
    """The call at body[at] replaced by the callee's body, with fresh names and the caller's .param variables."""
    body = list(function.body or ())
    call = body[at]
    assert isinstance(call, Instruction)
    returns, _, args, _ = call.operands
    names: dict[str, str] = {}
    for params, given in ((callee.returns, returns), (callee.params, args)):
        for p, g in zip(params, given.items if isinstance(given, Vec) else (), strict=True):
            assert isinstance(g, Sym)
            names[p.name] = g.name
    variables = []
    for v in callee.variables:
        if v.space in ("local", "param"):
            names[v.name] = v.name + tag
            variables.append(dataclasses.replace(v, name=v.name + tag))
        else:
            variables.append(v)

    def reg(n: str) -> str:
        return n if n == "%cc" else n + tag

    def sym(n: str) -> str:
        return names.get(n, n)

    def label(n: str) -> str:
        return n + tag

    end = label("$return")
    inner: list[Statement] = []
    for s in callee.body or ():
        if isinstance(s, LabelDef):
            inner.append(LabelDef(label(s.name), s.line))
            continue
        guard = Guard(Reg(reg(s.guard.reg.name), s.guard.reg.type), s.guard.negated) if s.guard else None
        if s.opcode == "ret":
            inner.append(Instruction("bra", (), (Label(end),), guard, s.line, s.loc))
        else:
            inner.append(
                dataclasses.replace(s, operands=tuple(rename(o, reg, sym, label) for o in s.operands), guard=guard)
            )
    inner.append(LabelDef(end, call.line))
    known = {v.name for v in function.variables}
    return dataclasses.replace(
        function,
        body=[*body[:at], *inner, *body[at + 1 :]],
        registers={**function.registers, **{n + tag: t for n, t in callee.registers.items()}},
        variables=[*function.variables, *(v for v in variables if v.name not in known)],
        branch_targets={
            **function.branch_targets,
            **{label(k): tuple(label(t) for t in v) for k, v in callee.branch_targets.items()},
        },
        call_targets={**function.call_targets, **{label(k): v for k, v in callee.call_targets.items()}},
        prototypes={**function.prototypes, **{label(k): v for k, v in callee.prototypes.items()}},
    )


def promote_params(function: Function) -> Function:
    """.param variables that only ld.param and st.param touch, always in the same pieces, become registers."""
    candidates = {v.name: v for v in function.variables if v.space == "param"}
    pieces: dict[str, dict[int, int]] = {n: {} for n in candidates}  # name -> byte offset -> bits

    def symbols(op: Operand | None) -> set[str]:
        match op:
            case Sym():
                return {op.name}
            case Addr() | Reg() if isinstance(op, Addr):
                return symbols(op.base)
            case Vec():
                return {n for o in op.items for n in symbols(o)}
            case TensorAddr():
                return symbols(op.base)
        return set()

    for i in function.instructions():
        plain = access(i, candidates)
        for n in {n for o in i.operands for n in symbols(o)} & set(candidates):
            if plain is None or plain[0] != n:
                candidates.pop(n, None)
                continue
            _, offset, bits, count = plain
            for k in range(count):
                at = offset + k * bits // 8
                if pieces[n].setdefault(at, bits) != bits:
                    candidates.pop(n, None)
    for n in list(candidates):
        end = 0
        for at, bits in sorted(pieces[n].items()):
            if at < end:
                candidates.pop(n, None)
                break
            end = at + bits // 8
    if not candidates:
        return function
    registers = dict(function.registers)
    body: list[Statement] = []
    for s in function.body or ():
        plain = access(s, candidates) if isinstance(s, Instruction) else None
        if not isinstance(s, Instruction) or plain is None:
            body.append(s)
            continue
        name, offset, bits, count = plain
        value = s.operands[0 if s.opcode == "ld" else 1]
        items = value.items if isinstance(value, Vec) else (value,)
        for k, item in enumerate(items):
            r = Reg(f"{name}+{offset + k * bits // 8}", f"b{bits}")
            registers[r.name] = r.type
            signed = s.type[0] == "s" and s.opcode == "ld"
            operands = (item, r) if s.opcode == "ld" else (r, item)
            body.append(Instruction("$param", (f"{'s' if signed else 'b'}{bits}",), operands, s.guard, s.line, s.loc))
    return dataclasses.replace(
        function, body=body, registers=registers, variables=[v for v in function.variables if v.name not in candidates]
    )


def access(i: Instruction, variables: dict[str, Variable]) -> tuple[str, int, int, int] | None:
    """ld.param / st.param of one of these variables at a constant offset: name, offset, bits, elements."""
    if i.opcode not in ("ld", "st") or not any(m.partition("::")[0] == "param" for m in i.mods):
        return None
    place = i.operands[1 if i.opcode == "ld" else 0]
    if isinstance(place, Sym):
        place = Addr(place)
    if not isinstance(place, Addr) or not isinstance(place.base, Sym) or place.base.name not in variables:
        return None
    count = next((int(m[1]) for m in i.mods if m in ("v2", "v4")), 1)
    return place.base.name, place.base.offset + place.offset, TYPE_BITS[i.type], count
