"""The small interface behind which every device stands, emulated or real."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..chips import Chip

Dim = int | tuple[int, ...]


@dataclass(frozen=True)
class LaunchResult:
    """What a launch did.

    ``instructions``: warp instructions (PTX level).  ``seconds``: wall time of the launch on this machine;
    on the emulator it says nothing about the time that a GPU would take.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks: int
    threads: int
    warps: int
    instructions: int
    seconds: float


@dataclass(frozen=True)
class Problem:
    """What went wrong in a launch, for programs; ``message`` is the whole report for people."""

    kind: str
    message: str
    kernel: str
    file: str | None = None
    line: int | None = None
    ptx_line: int | None = None
    instruction: str | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    lanes: int = 0
    address: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


class DeviceArray(ABC):
    """An array in device memory; pass it to a launch, copy with ``numpy()`` and ``set()``."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int

    @abstractmethod
    def numpy(self) -> NDArray[Any]:
        """A copy in host memory, of the same shape and dtype."""

    @abstractmethod
    def set(self, values: Any) -> None:
        """Overwrite from anything that numpy can read, of the same shape and dtype."""

    @abstractmethod
    def free(self) -> None:
        """Give the memory back; done too when the array is collected."""


class Kernel(ABC):
    """A kernel of a program, ready to launch."""

    name: str

    @abstractmethod
    def __call__(self, grid: Dim, block: Dim, *args: Any, shared: int = 0, cooperative: bool = False) -> LaunchResult:
        """Launch and wait.

        ``grid`` and ``block``: 1 to 3 sizes, in blocks and threads.  ``shared``: bytes of dynamic shared memory.
        Arguments: host arrays (passed as pointers; copied in, and back), DeviceArrays, Python or numpy numbers (turned
        into the parameter's type where PTX tells it), and for structures passed by value ``bytes``, numpy records or
        ctypes.Structures.

        Raises LaunchError when the launch cannot be made, KernelError when the kernel does something wrong.
        """


class Program(ABC):
    """Compiled source: a set of kernels."""

    kernels: Sequence[str]

    @abstractmethod
    def __getitem__(self, kernel: str) -> Kernel: ...


class Device(ABC):
    """A chip to compile for and to launch on."""

    chip: Chip

    @abstractmethod
    def compile(
        self, source: str, *, language: str | None = None, options: Sequence[str] = (), name: str = ""
    ) -> Program:
        """Compile CUDA C++ or PTX text (told apart by its ``.version`` line unless ``language`` says so)."""

    @abstractmethod
    def array(self, values: Any) -> DeviceArray:
        """Copy a host array to the device."""

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: Any = "float32") -> DeviceArray:
        """Device memory without defined contents."""
