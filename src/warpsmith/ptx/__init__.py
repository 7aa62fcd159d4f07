"""PTX: text to typed module, control flow, analyses.  Imports nothing else of this package."""

from .ast import Module, PtxError
from .parser import parse

__all__ = ["Module", "PtxError", "parse"]
