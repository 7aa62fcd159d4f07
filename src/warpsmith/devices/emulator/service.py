"""Runs whole programs on the emulator, and compiles their kernels for them.

A program links ``cudart/libwarpsmith_cudart.so``, which has no compiler in it.  It connects to a socket
(``$WARPSMITH_SERVICE``) of the process that started it and asks there: what is in my fat binary, where is the
native code of this kernel.  Messages are those of ``cudart/wire.h``.

A program that was started by hand starts ``python -m warpsmith.devices.emulator.service FD`` for itself; chip
and mode are then taken from the environment (``WARPSMITH_CHIP``, ``WARPSMITH_MODE``...).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from ...chips import DEFAULT, Chip, load
from ...errors import InputError, OutOfMemoryError, UsageError, WarpsmithError
from .programs import Programs, Refusal
from .wire import Reader, Writer

HELLO, MODULE, KERNEL, REGISTERS, LOCATE, PROBLEM, SUMMARY = range(1, 8)
PROTOCOL = 2
MODES = ("check", "fast")
ORDERS = ("ascending", "descending", "random")
_HEAD = struct.Struct("<II")
_BUG = "this is a bug in warpsmith, not in your program; please report it with the lines above"
#: How long to wait for the last words of processes that a program left behind.
_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True)
class RunOptions:
    """``mode``: "check" verifies every access, "fast" relies on page protection.  ``order`` (and ``seed``):
    in which blocks start.  ``threads``: cores to use, 0 for all.  ``leaks``: memory that the program did not free
    is a problem, too."""

    mode: str = "check"
    order: str = "ascending"
    seed: int = 0
    threads: int = 0
    leaks: bool = False

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if self.order not in ORDERS:
            raise UsageError(f"order must be one of {', '.join(ORDERS)}, not {self.order!r}")


@dataclass(frozen=True)
class KernelRun:
    """What all launches of one kernel did together."""

    name: str
    launches: int
    blocks: int
    threads: int
    instructions: int
    nanoseconds: int


@dataclass(frozen=True)
class RunResult:
    """How a program ended.  ``returncode`` is negative for a signal; ``problems`` are what went wrong on the
    device and in calls of the runtime, with at least "kind" and "message"; ``notes`` are only worth knowing."""

    returncode: int
    kernels: tuple[KernelRun, ...] = ()
    problems: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    memory_peak: int = 0
    seconds: float = 0.0


def run_program(executable: Path, args: Sequence[str], chip: Chip, options: RunOptions | None = None) -> RunResult:
    """Run a program in this folder, with this process's streams, and wait for it."""
    options = options or RunOptions()
    start = time.perf_counter()
    with Host(chip, options) as host:
        returncode = _run([str(executable), *args], host.environment)
        host.finish()
        return host.result(returncode, time.perf_counter() - start)


def _run(command: list[str], environment: dict[str, str]) -> int:
    try:
        process = subprocess.Popen(command, env=environment)
    except MemoryError:
        raise OutOfMemoryError(f"{command[0]} cannot be started: out of memory") from None
    except OSError as error:
        raise InputError(f"{command[0]} cannot be started: {error.strerror}") from None
    with _signals(process):
        return process.wait()


@contextlib.contextmanager
def _signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The terminal sends Ctrl-C to the program as well, so only wait for it; a second one is meant for sure."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            process.kill()

    def forward(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {signal.SIGINT: signal.signal(signal.SIGINT, interrupt)}
    before |= {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Host:
    """The listening side: serves the program and all processes that it starts."""

    def __init__(self, chip: Chip, options: RunOptions) -> None:
        self.chip, self.options = chip, options
        self.programs = Programs(chip, check=options.mode == "check")
        self.sessions: list[Session] = []
        self._threads: list[threading.Thread] = []
        self._folder = tempfile.mkdtemp(prefix="warpsmith-", dir=_short_temporary())
        self.path = os.path.join(self._folder, "service")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen()
        note_interpreter()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def environment(self) -> dict[str, str]:
        own = {"WARPSMITH_SERVICE": self.path, "WARPSMITH_PYTHON": sys.executable}
        if self.options.leaks:
            own["WARPSMITH_LEAKS"] = "1"
        return {**os.environ, **own}

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed: the program has ended
                return
            session = Session(connection, self.programs, self.chip, self.options)
            self.sessions.append(session)
            thread = threading.Thread(target=session.serve, daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self) -> None:
        """Take no more connections, and hear out those that there are."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(_PATIENCE_SECONDS)
        until = time.monotonic() + _PATIENCE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def result(self, returncode: int, seconds: float) -> RunResult:
        problems = [p for s in self.sessions for p in s.problems]
        return RunResult(
            returncode,
            _kernels([s.summary for s in self.sessions]),
            tuple(p for p in problems if p.get("kind") != "note"),
            tuple(str(p.get("message")) for p in problems if p.get("kind") == "note"),
            max((int(s.summary.get("memory_peak", 0)) for s in self.sessions), default=0),
            seconds,
        )

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        shutil.rmtree(self._folder, ignore_errors=True)


def note_interpreter() -> None:
    """Where programs that are started by hand find a Python that has warpsmith (see ``cudart/service.cpp``)."""
    from ... import cudart

    note = Path(cudart.__file__).with_name("interpreter")
    with contextlib.suppress(OSError):  # a read-only installation: then the library has to guess
        if not note.exists() or note.read_text() != sys.executable:
            note.write_text(sys.executable)


def _short_temporary() -> str:
    """The path of a socket may have 107 characters."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 60 else "/tmp"


def _kernels(summaries: Sequence[dict[str, Any]]) -> tuple[KernelRun, ...]:
    """The kernels of all processes, by name, in the order in which they were first seen."""
    total: dict[str, list[int]] = {}
    keys = ("launches", "blocks", "threads", "instructions", "nanoseconds")
    for summary in summaries:
        for kernel in summary.get("kernels", ()):
            sums = total.setdefault(str(kernel["name"]), [0] * len(keys))
            for i, key in enumerate(keys):
                sums[i] += int(kernel[key])
    return tuple(KernelRun(name, *sums) for name, sums in total.items())


@dataclass
class Session:
    """One connection: one process that uses the emulated device."""

    connection: socket.socket
    programs: Programs
    chip: Chip
    options: RunOptions
    problems: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    def serve(self) -> None:
        """Answer until the other side closes."""
        with self.connection:
            try:
                while (head := self._read(_HEAD.size)) is not None:
                    kind, size = _HEAD.unpack(head)
                    payload = self._read(size) if size else b""
                    if payload is None:
                        return
                    answer = self._handle(kind, payload)
                    if answer is not None:
                        self.connection.sendall(len(answer).to_bytes(4, "little") + answer)
            except OSError:
                return  # the process died in the middle of a message

    def _read(self, size: int) -> bytes | None:
        out = bytearray()
        while len(out) < size:
            piece = self.connection.recv(min(size - len(out), 1 << 20))
            if not piece:
                return None
            out += piece
        return bytes(out)

    def _handle(self, kind: int, payload: bytes) -> bytes | None:
        if kind == PROBLEM:
            self.problems.append(json.loads(payload.decode("utf-8", "replace")))
            return None
        if kind == SUMMARY:
            self.summary = json.loads(payload.decode("utf-8", "replace"))
            return None
        try:
            return self._answer(kind, Reader(payload))
        except Refusal as refusal:
            return Writer().u32(refusal.code).text(refusal.message).data
        except WarpsmithError as error:
            return Writer().u32(Refusal.INVALID_PTX).text(str(error)).data
        except Exception:
            import traceback

            traceback.print_exc()
            return Writer().u32(Refusal.UNKNOWN).text(_BUG).data

    def _answer(self, kind: int, r: Reader) -> bytes:
        if kind == HELLO:
            return hello(r.u32(), self.chip, self.options)
        if kind == MODULE:
            number, body = self.programs.add([r.blob() for _ in range(r.u32())])
            return Writer().u32(0).text("").u32(number).data + body
        if kind == KERNEL:
            path, symbol = self.programs.kernel(r.u32(), r.text())
            return Writer().u32(0).text(str(path)).text(symbol).data
        if kind == REGISTERS:
            return Writer().u32(self.programs.registers(r.u32(), r.text())).data
        if kind == LOCATE:
            from .locate import locate

            return Writer().text(locate([(r.text(), r.u64()) for _ in range(r.u32())])).data
        raise Refusal(Refusal.UNKNOWN, f"the program asks something unknown ({kind})")


def hello(protocol: int, chip: Chip, options: RunOptions) -> bytes:
    """The chip, the options and the attributes of the device."""
    from ...cudart.properties import attributes
    from .native import POISON

    if protocol != PROTOCOL:
        raise Refusal(Refusal.INITIALIZATION, "the program was linked with another version of warpsmith; link it again")
    w = Writer().u32(0).text(chip.name)
    for n in (
        chip.sm_count, chip.threads_per_block, chip.warps_per_sm, chip.blocks_per_sm, chip.registers_per_sm,
        chip.shared_per_sm, chip.shared_per_block, chip.shared_per_block_optin,
    ):  # fmt: skip
        w.u32(n)
    w.u64(chip.global_memory)
    for n in (*chip.max_grid, *chip.max_block):
        w.u32(n)
    check = options.mode == "check"
    order = ORDERS.index(options.order)
    for n in (options.threads, int(check), order, options.seed & 0xFFFFFFFF, POISON if check else 0, 0):
        w.u32(n)
    table = attributes(chip)
    w.u32(len(table))
    for attribute, value in table.items():
        w.u32(attribute).i32(value)
    return w.data


def environment_options() -> tuple[Chip, RunOptions]:
    """What a program that is started by hand runs with."""
    get = os.environ.get
    try:
        options = RunOptions(
            get("WARPSMITH_MODE", "check"),
            get("WARPSMITH_ORDER", "ascending"),
            int(get("WARPSMITH_SEED", "0")),
            int(get("WARPSMITH_CORES", "0")),
        )
    except ValueError as error:
        raise UsageError(f"WARPSMITH_SEED and WARPSMITH_CORES are whole numbers ({error})") from None
    return load(get("WARPSMITH_CHIP", DEFAULT)), options


def main(arguments: Sequence[str]) -> int:
    """Serve one program through an inherited socket, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the program; its end ends us, too
    try:
        connection = socket.socket(fileno=int(arguments[0]))
    except (IndexError, ValueError, OSError):
        print("warpsmith: this is started by programs that warpsmith compiled, not by hand", file=sys.stderr)
        return UsageError.code
    try:
        chip, options = environment_options()
        programs = Programs(chip, check=options.mode == "check")
        Session(connection, programs, chip, options).serve()
    except WarpsmithError as error:
        print(f"warpsmith: {error}", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
