"""The observations of each process, in a file of its own: compact, in order, and complete to the last.

A delivery is a fixed record of 49 bytes, since there are millions of them; names are in a table inside the file.
Everything else is a line of JSON as `plimsoll.core.verify` writes it. Reading returns the observations of that module,
and between them where each subscriber was attached, which the report needs and the audit does not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from plimsoll.core.verify import Observation, decode_line, encode_line
from plimsoll.core.verify.observations import DeliveryObserved, LogPosition, PublicationIdentity

MAGIC: Final = b"plimsoll-journal-1\n"
BUFFER_BYTES: Final = 256 * 1024
# `D`, subscriber, publisher, its number, head, offset, stream, position, seconds. Names are indexes into the table.
_DELIVERY: Final = struct.Struct("<cIIQIQIQd")
_LENGTH: Final = struct.Struct("<cI")
PartyId = tuple[str, int]
"""A name and its incarnation or epoch."""


class JournalAttachment(msgspec.Struct, array_like=True, frozen=True):
    """From here on this edge serves the subscriber. `at`: as in observations."""

    subscriber: str
    edge: str
    at: float


class DeliveryJournalError(ValueError):
    """The file is no journal, or ends in the middle of a record."""


class DeliveryJournal:
    """One process's file. Use it in a `with`; everything noted is in the file when that ends."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=BUFFER_BYTES)
        self._file.write(MAGIC)
        self._names: dict[PartyId, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def flush(self) -> None:
        """Flush everything to the operating system, so that it outlives this process however that ends."""
        self._file.flush()

    def note(self, seen: Observation) -> None:
        """Write an observation that is not a delivery."""
        line = encode_line(seen)
        self._file.write(_LENGTH.pack(b"J", len(line)) + line)

    def attached(self, seen: JournalAttachment) -> None:
        """Write which edge serves a subscriber from now on."""
        line = msgspec.json.encode(seen)
        self._file.write(_LENGTH.pack(b"A", len(line)) + line)

    def delivered(
        self, reader: PartyId, publication: PublicationIdentity, origin: LogPosition, place: LogPosition, at: float
    ) -> None:
        """Write a delivery: subscriber, publication, the place of its acceptance, its position in which head's log, and
        time.
        """
        number = self._number
        record = _DELIVERY.pack(
            b"D", number(reader), number(publication[:2]), publication[2], number(origin[:2]), origin[2],
            number(place[:2]), place[2], at,
        )  # fmt: skip
        self._file.write(record)

    def _number(self, name: PartyId) -> int:
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._names)
            text = msgspec.json.encode(name)
            self._file.write(_LENGTH.pack(b"N", len(text)) + text)
        return number


def read_journal(path: Path) -> Iterator[Observation | JournalAttachment]:
    """The contents of a file, in order.

    Raises:
        JournalError: naming the file and the place.

    """
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise DeliveryJournalError(f"{path} is not a journal of this demo")
    names: list[PartyId] = []
    at = len(MAGIC)
    try:
        while at < len(data):
            if data[at] == 0x44:
                yield _decode_delivery(data, at, names)
                at += _DELIVERY.size
                continue
            kind, length = _LENGTH.unpack_from(data, at)
            text = data[at + _LENGTH.size : at + _LENGTH.size + length]
            if kind not in (b"J", b"N", b"A") or len(text) != length:
                raise DeliveryJournalError(f"{path}: record at byte {at} is of no known kind, or cut off")
            at += _LENGTH.size + length
            if kind == b"N":
                names.append(msgspec.json.decode(text, type=tuple[str, int]))
            else:
                yield decode_line(text) if kind == b"J" else msgspec.json.decode(text, type=JournalAttachment)
    except (struct.error, IndexError) as error:
        raise DeliveryJournalError(f"{path}: record at byte {at} is cut off or wrong: {error}") from error


def _decode_delivery(data: bytes, at: int, names: list[PartyId]) -> DeliveryObserved:
    _, reader, publisher, seq, head, offset, stream, position, seconds = _DELIVERY.unpack_from(data, at)
    subscriber, life = names[reader]
    publication, origin, place = (*names[publisher], seq), (*names[head], offset), (*names[stream], position)
    return DeliveryObserved(subscriber, life, publication, origin, seconds, place)
