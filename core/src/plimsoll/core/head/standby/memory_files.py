"""The segments of a log in memory: a head without a disk keeps them for its standby, and so does the standby."""

from __future__ import annotations


class MemoryFiles:
    """`LogFiles` that end with the process. A segment takes the memory of what has been written into it."""

    def __init__(self) -> None:
        self._files: dict[str, bytearray] = {}

    def names(self) -> list[str]:
        return sorted(self._files)

    def size(self, name: str) -> int:
        """What has been written: a file in memory has no room beside that, so its segment gets no seal."""
        return len(self._file(name))

    def read(self, name: str, start: int, size: int) -> bytes:
        file = self._file(name)
        return bytes(memoryview(file)[start : start + size])

    def create(self, name: str, size: int) -> None:
        """A new segment; its memory is taken as it is written."""
        if name in self._files:
            raise FileExistsError(f"{name} exists")
        self._files[name] = bytearray()

    def write(self, name: str, start: int, data: bytes) -> None:
        file = self._file(name)
        if start > len(file):
            raise OSError(f"{name}: byte {start} lies {start - len(file)} bytes behind the end")
        file[start : start + len(data)] = data

    def note(self, name: str, data: bytes) -> None:
        self.write(name, 0, data)

    def settle(self, name: str) -> None:
        """Nothing is safer than it was."""
        self._file(name)

    def erase(self, name: str, start: int, size: int) -> None:
        del self._file(name)[start:]

    def truncate(self, name: str, size: int) -> None:
        del self._file(name)[size:]

    def remove(self, name: str) -> None:
        self._file(name)
        del self._files[name]

    def set_aside(self, name: str) -> None:
        """Nothing is kept in memory for a look at it later."""
        self.remove(name)

    def keep_aside(self, name: str, data: bytes) -> None:
        """As `set_aside`."""

    def bound_aside(self, most_bytes: int) -> None:
        """Nothing was set aside."""

    def _file(self, name: str) -> bytearray:
        try:
            return self._files[name]
        except KeyError:
            raise FileNotFoundError(f"{name} does not exist") from None
