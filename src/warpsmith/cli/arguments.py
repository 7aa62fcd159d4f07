"""Separates our own options from the compiler's, which are far too many to name, and from the program's."""

from __future__ import annotations

from collections.abc import Sequence

from .parsing import Parser


def split(parser: Parser, arguments: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """(ours, the compiler's and the sources, what follows "--")."""
    ours: list[str] = []
    rest: list[str] = []
    words = list(arguments)
    program: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, program = words[:at], words[at + 1 :]
    actions = parser._option_string_actions  # argparse knows our options; it has no public table of them
    while words:
        word = words.pop(0)
        name = word.partition("=")[0]
        action = actions.get(name)
        if action is None:
            rest.append(word)
        else:
            ours.append(word)
            if action.nargs is None and "=" not in word and words:
                ours.append(words.pop(0))
    return ours, rest, program
