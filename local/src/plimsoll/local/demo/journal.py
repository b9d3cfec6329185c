"""What each process saw, in a file of its own: compact, in the order in which it was seen, and complete to the last.

A delivery is a fixed record of 49 bytes, since there are millions of them; names stand in a table inside the file.
Everything else is a line of JSON as `plimsoll.core.verify` writes it. Reading gives that module's observations back,
and between them where each subscriber was attached, which the audit does not ask for and the report does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from plimsoll.core.verify import Observation, decode_line, encode_line
from plimsoll.core.verify.observations import Delivered, Identity, Origin

MAGIC: Final = b"plimsoll-journal-1\n"
BUFFER_BYTES: Final = 256 * 1024
# `D`, subscriber, publisher, its number, head, offset, stream, position, seconds. Names are indexes into the table.
_DELIVERY: Final = struct.Struct("<cIIQIQIQd")
_LENGTH: Final = struct.Struct("<cI")
Named = tuple[str, int]
"""A name and its incarnation or epoch."""


class Attached(msgspec.Struct, array_like=True, frozen=True):
    """From here on this edge serves the subscriber. `at`: as in observations."""

    subscriber: str
    edge: str
    at: float


class JournalError(ValueError):
    """A file that is no journal, or ends in the middle of a record."""


class Journal:
    """One process's file. Use it in a `with`; what was noted is in the file when that ends."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=BUFFER_BYTES)
        self._file.write(MAGIC)
        self._names: dict[Named, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def flush(self) -> None:
        """Hand all over to the system, so that it outlives this process however that ends."""
        self._file.flush()

    def note(self, seen: Observation) -> None:
        """Write an observation that is not a delivery."""
        line = encode_line(seen)
        self._file.write(_LENGTH.pack(b"J", len(line)) + line)

    def attached(self, seen: Attached) -> None:
        """Write where a subscriber is served from now on."""
        line = msgspec.json.encode(seen)
        self._file.write(_LENGTH.pack(b"A", len(line)) + line)

    def delivered(self, reader: Named, publication: Identity, origin: Origin, place: Origin, at: float) -> None:
        """Write a delivery: who had which publication, accepted where, at which place of which head's log, when."""
        number = self._number
        record = _DELIVERY.pack(
            b"D", number(reader), number(publication[:2]), publication[2], number(origin[:2]), origin[2],
            number(place[:2]), place[2], at,
        )  # fmt: skip
        self._file.write(record)

    def _number(self, name: Named) -> int:
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._names)
            text = msgspec.json.encode(name)
            self._file.write(_LENGTH.pack(b"N", len(text)) + text)
        return number


def read(path: Path) -> Iterator[Observation | Attached]:
    """What a file holds, in its order.

    Raises:
        JournalError: naming the file and the place.

    """
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise JournalError(f"{path} is not a journal of this demo")
    names: list[Named] = []
    at = len(MAGIC)
    try:
        while at < len(data):
            if data[at] == 0x44:
                yield _delivery(data, at, names)
                at += _DELIVERY.size
                continue
            kind, length = _LENGTH.unpack_from(data, at)
            text = data[at + _LENGTH.size : at + _LENGTH.size + length]
            if kind not in (b"J", b"N", b"A") or len(text) != length:
                raise JournalError(f"{path}: record at byte {at} is of no known kind, or cut off")
            at += _LENGTH.size + length
            if kind == b"N":
                names.append(msgspec.json.decode(text, type=tuple[str, int]))
            else:
                yield decode_line(text) if kind == b"J" else msgspec.json.decode(text, type=Attached)
    except (struct.error, IndexError) as error:
        raise JournalError(f"{path}: record at byte {at} is cut off or wrong: {error}") from error


def _delivery(data: bytes, at: int, names: list[Named]) -> Delivered:
    _, reader, publisher, seq, head, offset, stream, position, seconds = _DELIVERY.unpack_from(data, at)
    subscriber, life = names[reader]
    publication, origin, place = (*names[publisher], seq), (*names[head], offset), (*names[stream], position)
    return Delivered(subscriber, life, publication, origin, seconds, place)
