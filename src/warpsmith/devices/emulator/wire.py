"""The pieces of a message: the counterpart of ``cudart/wire.h``."""

from __future__ import annotations


class Reader:
    """A message, from its beginning on.  One that is too short raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise ValueError("a message of the program is too short")
        self._at += size
        return self._data[self._at - size : self._at]

    def u32(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self._take(8), "little")

    def blob(self) -> bytes:
        return self._take(self.u32())

    def text(self) -> str:
        return self.blob().decode("utf-8", "surrogateescape")


class Writer:
    """Builds a message."""

    def __init__(self) -> None:
        self.data = b""

    def u32(self, value: int) -> Writer:
        self.data += value.to_bytes(4, "little")
        return self

    def i32(self, value: int) -> Writer:
        self.data += value.to_bytes(4, "little", signed=True)
        return self

    def u64(self, value: int) -> Writer:
        self.data += value.to_bytes(8, "little")
        return self

    def i64(self, value: int) -> Writer:
        self.data += value.to_bytes(8, "little", signed=True)
        return self

    def u8(self, value: int) -> Writer:
        self.data += value.to_bytes(1, "little")
        return self

    def blob(self, value: bytes) -> Writer:
        self.data += len(value).to_bytes(4, "little") + value
        return self

    def text(self, value: str) -> Writer:
        return self.blob(value.encode("utf-8", "surrogateescape"))
