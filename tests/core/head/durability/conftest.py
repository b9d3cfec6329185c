"""Files in memory, and records to fill them with."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

import msgspec
import pytest

from plimsoll.core.head.durability.records import Checkpoint, DiskRecord, EpochBegan, Logged, PublisherKnown
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

BODY = msgspec.Raw(wire.encode(msg.Body({"k": 1}, b"x" * 40)))


@dataclass
class MemoryFiles:
    """`LogFiles` in a dictionary. `is_full`: no file can be made. `settled`: files made safe, as they were then."""

    files: dict[str, bytearray] = field(default_factory=dict)
    is_full: bool = False
    settled: list[tuple[str, bytes]] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        return sorted(self.files)

    def size(self, name: str) -> int:
        return len(self.files[name])

    def read(self, name: str, start: int, size: int) -> bytes:
        return bytes(self.files[name][start : start + size])

    def create(self, name: str, size: int) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "full")
        self.files[name] = bytearray(size)

    def write(self, name: str, start: int, data: bytes) -> None:
        self.files[name][start : start + len(data)] = data

    def note(self, name: str, data: bytes) -> None:
        self.write(name, 0, data)

    def settle(self, name: str) -> None:
        self.settled.append((name, bytes(self.files[name])))

    def erase(self, name: str, start: int, size: int) -> None:
        self.files[name][start : start + size] = bytes(size)

    def truncate(self, name: str, size: int) -> None:
        del self.files[name][size:]

    def remove(self, name: str) -> None:
        del self.files[name]

    def set_aside(self, name: str) -> None:
        self.remove(name)
        self.aside.append(name)

    def keep_aside(self, name: str, data: bytes) -> None:
        self.aside.append(name)

    def bound_aside(self, most_bytes: int) -> None:
        pass


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def pub(position: int, offset: int, head: str = "h", epoch: int = 1, seq: int = 0, flags: int = 0) -> bytes:
    """A publication as it travels."""
    return wire.encode(msg.Pub(position, head, epoch, offset, "p", 1, seq or offset, flags, 0, BODY))


def own(position: int, offset: int, flags: int = 0) -> Logged:
    return Logged(pub(position, offset, flags=flags))


EMPTY = Checkpoint([], [], [], [], [])
BEGAN: list[DiskRecord] = [EpochBegan(1, 1, 1), PublisherKnown("p", 1, "id")]
