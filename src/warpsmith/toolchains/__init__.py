"""Source in any language -> an artifact (PTX, program) with diagnostics; one file a toolchain."""

from __future__ import annotations

from .base import Artifact, Diagnostic, diagnostics

__all__ = ["Artifact", "Diagnostic", "diagnostics"]
