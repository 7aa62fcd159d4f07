"""What can go wrong for a user, each kind with an exit code of its own.

A message is one sentence that says what, where and what to do.  The command line prints it and ends with
the code; docs/exit-codes.md is made from this table (``warpsmith help exit-codes``).
"""

from __future__ import annotations

from typing import ClassVar


class WarpsmithError(Exception):
    """Base of all errors that are the input's or the machine's, not ours."""

    code: ClassVar[int] = 1
    meaning: ClassVar[str] = "anything else that went wrong"


class UsageError(WarpsmithError):
    code = 2
    meaning = "the command line cannot be understood"


class InputError(WarpsmithError):
    code = 80
    meaning = "an input file does not exist or cannot be read"


class NotCudaError(WarpsmithError):
    code = 81
    meaning = "an input file is not a kind of source that warpsmith compiles"


class CompileError(WarpsmithError):
    """``log`` is the compiler's own text; there is nothing of ours around it."""

    code = 82
    meaning = "the compiler found errors in the source"

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(log)


class NoMainError(WarpsmithError):
    code = 83
    meaning = "the program has no main function"


class LinkError(WarpsmithError):
    code = 84
    meaning = "the program cannot be linked"


class UnsupportedApiError(LinkError):
    code = 85
    meaning = "the program calls a function that warpsmith's CUDA runtime does not have yet"


class MissingToolError(WarpsmithError):
    code = 86
    meaning = "a compiler or Python package that is needed is not installed"


class HostCompilerError(MissingToolError):
    code = 87
    meaning = "there is no C++ compiler (g++)"


class UnknownChipError(WarpsmithError):
    code = 88
    meaning = "there is no chip of that name"


class PtxError(WarpsmithError):
    code = 89
    meaning = "the PTX text is malformed"


class UnsupportedInstructionError(WarpsmithError):
    code = 90
    meaning = "the emulator does not have an instruction that the kernel uses"


class OutOfMemoryError(WarpsmithError):
    code = 91
    meaning = "out of memory"


class KernelError(WarpsmithError):
    code = 92
    meaning = "a kernel did something wrong (bad access, deadlock, trap...) and the program itself ended with 0"


class LaunchError(WarpsmithError):
    code = 93
    meaning = "a kernel cannot be launched as asked (too many threads, too much shared memory, wrong arguments...)"


class ResultError(WarpsmithError):
    code = 94
    meaning = "a file or stream for the results cannot be written"


class CacheError(WarpsmithError):
    code = 95
    meaning = "the cache folder cannot be used"
