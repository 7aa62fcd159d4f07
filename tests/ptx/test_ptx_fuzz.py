"""No text makes the parser, or what is built on it, crash or hang."""

from __future__ import annotations

import re
import time
from random import Random

import ptx_samples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpsmith.ptx import PtxError, cfg, dataflow, parse

TOKEN = re.compile(r"[\w$%.]+|\s+|.", re.DOTALL)
TEXTS = [ptx_samples.text(name) for name in sorted(ptx_samples.COUNTS)]
TOKENS = [TOKEN.findall(text) for text in TEXTS]
FRAGMENTS = [
    "{", "}", "[", "]", "(", ")", ";", ",", '"', "/*", "*/", "//", "@", "!", "|", "-", "~", "?", ":", "::", "+", "/", "%", "<", ">",
    "\0", "\x0c", "é", "\ud800", "0x", "1e", "0f", "_|", ".x", "WARP_SZ", "(.s64)", "generic(", "0xff(", '"\\x', "%r1", "%p1",
    ".reg .b32 %x<3>;", ".loc 1 2 3", ".loc 1 2 3, function_name f, inlined_at 1 2 3", "L:", "bra L;", "ret;", "trap;", "brx.idx %r1, L;",
    ".param", ".section", ".v4", ".entry k() {", ".func f(", ".pragma", ".branchtargets L;", ".callprototype", "call f;", "call (",
]  # fmt: skip


def check(text: str) -> bool:
    """Parse, analyse; True if it was good PTX.  Only PtxError may come out, with one sentence and a line."""
    error = None
    try:
        module = parse(text)
        for function in module.functions.values():
            if function.body is not None:
                graph = cfg.build(function)
                dataflow.liveness(function, graph)
                dataflow.uniformity(function, graph, module)
    except PtxError as e:
        error = e
    if error is not None:
        assert error.line > 0
        assert error.message
        assert "\n" not in error.message
    return error is None


def mutate(tokens: list[str], random: Random) -> str:
    """A sample with a few tokens deleted, doubled, moved, replaced or turned to rubbish."""
    result = list(tokens)
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        k = random.randrange(len(result))
        kind = random.randrange(6)
        if kind == 0:
            del result[k : k + random.choice([1, 1, 3, 30])]
        elif kind == 1:
            result.insert(k, random.choice(FRAGMENTS))
        elif kind == 2:
            result[k:k] = result[k : k + random.choice([1, 2, 10, 100])]
        elif kind == 3:
            result[k] = random.choice(result)
        elif kind == 4:
            result[k] = random.choice(FRAGMENTS)
        else:
            result[k] = "".join(chr(random.randrange(256)) for _ in range(3))
        result = result or ["x"]
    return "".join(result)


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**32))
def test_mutated_samples(seed: int) -> None:
    random = Random(seed)
    text = mutate(random.choice(TOKENS), random)
    start = time.process_time()
    check(text)
    assert time.process_time() - start < 5


def test_mutations_break_and_spare() -> None:
    """The mutations above reach both sides: most are noticed, some change nothing that matters."""
    random = Random(0)
    results = [check(mutate(random.choice(TOKENS), random)) for _ in range(200)]
    assert 10 < sum(results) < 150


@settings(max_examples=200, deadline=None)
@given(st.text())
@example("\0")
@example(".version 9.0\n\ud800")
def test_any_text(text: str) -> None:
    check(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS)), st.booleans())
def test_any_tokens(tokens: list[str], inside: bool) -> None:
    header = ".version 9.0\n.target sm_90\n"
    check(header + (".entry k() { .reg .b32 %r<3>; .reg .pred %p<3>;" if inside else "") + " ".join(tokens))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_truncated_samples(seed: int) -> None:
    """Cut anywhere: an error, or a shorter text that is complete."""
    random = Random(seed)
    text = random.choice(TEXTS)
    check(text[: random.randrange(len(text))])


@settings(max_examples=100, deadline=None)
@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    """Bytes as they come from a file, well-formed or not."""
    check(".version 9.0\n.target sm_90\n.entry k() { " + data.decode("utf-8", "surrogateescape"))
