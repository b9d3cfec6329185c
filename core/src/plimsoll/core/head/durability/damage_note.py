"""What starts of a head have found damaged, noted beside the segments until it is known to be known elsewhere.

A start mends what it finds, so the next one finds a log without damage: of a process that ends before anyone has read
its status, this note is all that is left of it. It is written before any file of the log is changed, and goes when a
later start is given a position that the log has come to after the note: that was read together with the damage.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

import msgspec

from plimsoll.core.head.durability.segments import LogFiles

DAMAGE_NOTE: Final = "damage-found"
"""The file beside the segments."""

ROOM: Final = 4096
TEXTS: Final = 8
"""Of the newest damage; more is counted only."""
TEXT_LENGTH: Final = 400

_NUMBER_BYTES: Final = 4
_HEADER_BYTES: Final = 2 * _NUMBER_BYTES


class FoundDamage(NamedTuple):
    """`parts`: of the log that were given up; `texts`: the newest of them.

    `epoch` and `position`: of the log when it was found, or of the head's first life that says it; 0 before that one
    has begun. `is_whole`: nothing was missing at the end of the log.
    """

    epoch: int = 0
    position: int = 0
    is_whole: bool = True
    parts: int = 0
    texts: tuple[str, ...] = ()


UNREADABLE: Final = FoundDamage(
    is_whole=False, parts=1, texts=("what an earlier start had found damaged is noted, and cannot be read",)
)
"""Rather a gap that is not needed than a loss without one."""


class DamageNote:
    """The note in these files. `fault`: why it could not be written. `epoch`: of this life, once the log has it."""

    def __init__(self, files: LogFiles) -> None:
        self.files = files
        self.found = FoundDamage()
        self.fault = ""
        self.epoch = 0

    def read(self) -> FoundDamage:
        """What earlier starts have noted.

        Raises:
            OSError: the file cannot be read.

        """
        self.found = _read(self.files)
        return self.found

    def forget_known(self, epoch: int, position: int) -> None:
        """Remove the note if what is known elsewhere was read from the head after the damage, and with it.

        Raises:
            OSError: the file cannot be read or removed.

        """
        if DAMAGE_NOTE not in self.files.names():
            return
        noted = _read(self.files)
        if not noted.parts or (noted.epoch and (epoch, position) > (noted.epoch, noted.position)):
            self.files.remove(DAMAGE_NOTE)

    def add(self, text: str, position: int, *, is_whole: bool = True) -> None:
        """Note another damage, before the log is changed for it. What a start finds once more is noted once."""
        before, shown = self.found, text.encode("ascii", "backslashreplace").decode()[:TEXT_LENGTH]
        if not self.epoch and not before.epoch and shown in before.texts:
            self.found = before._replace(is_whole=before.is_whole and is_whole)
        else:
            texts = (*before.texts, shown)[-TEXTS:]
            at = (self.epoch, position if self.epoch else 0)
            self.found = FoundDamage(*at, before.is_whole and is_whole, before.parts + 1, texts)
        if self.found != before or self.fault:
            self._write(is_settled=True)

    def began(self, epoch: int) -> None:
        """The log has the beginning of this life of the head, with its gap: from here on others are told.

        A later sync takes that along. An epoch is less than a noted one only if the clock was set back.
        """
        self.epoch = epoch
        if self.found.parts and not 0 < self.found.epoch <= epoch:
            self.found = self.found._replace(epoch=epoch, position=0)
            self._write(is_settled=bool(self.fault))

    def try_again(self) -> None:
        """Write what could not be written before."""
        if self.fault:
            self._write(is_settled=True)

    def _write(self, *, is_settled: bool) -> None:
        """A disk without room is no reason to stop: the damage is said by this process, as long as it runs."""
        try:
            if DAMAGE_NOTE not in self.files.names():
                self.files.create(DAMAGE_NOTE, ROOM)
            self.files.write(DAMAGE_NOTE, 0, _encoded(self.found))
            if is_settled:
                self.files.settle(DAMAGE_NOTE)
        except OSError as error:
            self.fault = error.strerror or str(error)
        else:
            self.fault = ""


def _encoded(found: FoundDamage) -> bytes:
    """The whole file: it is written in place, so one that is torn has another checksum."""
    data = msgspec.msgpack.encode(found)
    header = len(data).to_bytes(_NUMBER_BYTES, "big") + zlib.crc32(data).to_bytes(_NUMBER_BYTES, "big")
    return (header + data).ljust(ROOM, b"\0")


def _read(files: LogFiles) -> FoundDamage:
    """Nothing if the file was made and never written: then the log had not been changed yet."""
    file = files.read(DAMAGE_NOTE, 0, ROOM) if DAMAGE_NOTE in files.names() else b""
    if not any(file):
        return FoundDamage()
    length, checksum = (int.from_bytes(file[at : at + _NUMBER_BYTES], "big") for at in (0, _NUMBER_BYTES))
    data = file[_HEADER_BYTES : _HEADER_BYTES + length]
    if zlib.crc32(data) != checksum:
        return UNREADABLE
    try:
        return msgspec.msgpack.decode(data, type=FoundDamage)
    except msgspec.MsgspecError:
        return UNREADABLE
