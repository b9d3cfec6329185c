"""The writing side of a round: what the head has logged goes to its disk as one batch, and old segments go.

A shell calls `write` when the machine has dealt with a round, before anything of the round is sent.
"""

from __future__ import annotations

from typing import Final, Protocol

from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durability.durable_log import DurableLog
from plimsoll.core.head.durability.journal import LogJournal, RecoveredLog
from plimsoll.core.head.durability.recovery import Recovery
from plimsoll.core.head.durability.store import LogStore, NoRoomError
from plimsoll.core.head.log import Log

RETRY_SECONDS: Final = 1.0
"""After a segment could not be made."""


class DurableHead(Protocol):
    """What a shell needs of a head that keeps its log on a disk."""

    name: str
    log: Log
    journal: LogJournal | None
    continuation: EpochContinuation

    def set_refusal(self, why: str, now: float) -> None: ...


def recovered_log(
    store: LogStore, found: Recovery, *, is_synced: bool, boot: str = "", is_replica: bool = False
) -> RecoveredLog:
    """What a head begins with. `is_synced`: it will wait for syncs. `boot`: which start of the system this is.

    What was written and not synced outlasts the process, and is lost with the operating system. `is_replica`: a standby
    that was in sync has all that the head before it has told others.

    Raises:
        OSError: the beginning of the log cannot be read.

    """
    before = found.state.epochs[-1] if found.state.epochs else None
    was_safe = before is None or is_replica or before.is_synced or (bool(boot) and before.boot == boot)
    is_whole = was_safe and found.is_whole
    return RecoveredLog(store, store.first, store.offsets_before(), found.state, is_whole, is_synced, boot)


class RoundCommit:
    """Writes what a head has logged. `refused`: why no segment can be made, empty if one can.

    `is_binding`: whether the batch that was written last has to be safe before its round is sent, in any case.
    """

    def __init__(self, store: LogStore, head: DurableHead) -> None:
        if head.journal is None or not isinstance(head.log, DurableLog):
            raise TypeError(f"{head.name} keeps its log in memory")
        self.store, self.head, self.journal, self.log = store, head, head.journal, head.log
        self.refused = ""
        self.batches = 0
        self.is_binding = False
        self._retry_at = 0.0

    def write(self, now: float) -> bool:
        """Write this round's batch; False if there is nothing to write.

        Raises:
            OSError: it could not be written. What the machine holds is ahead of the disk, so the process has to end.

        """
        if not self.journal.pending:
            self._make_room(now)  # it could not be made before
            return False
        self.is_binding = self.journal.is_binding
        self.store.write(self.journal.take())
        self.log.wrote(self.store.position)
        self.batches += 1
        self._make_room(now)
        return True

    def checked(self, name: str, fault: str) -> None:
        """An older segment has been read in the background; what is damaged is given up with all before it.

        Raises:
            OSError: a file could not be removed, or the beginning of the log not be read.

        """
        if self.store.checked(name, fault):
            self.log.removed(self.store.first, self.store.offsets_before())

    def begin(self, now: float) -> None:
        """Begin the first segment of a new log.

        Raises:
            OSError: there is no room for it.

        """
        self._make_room(now)
        if self.refused:
            raise OSError(self.refused)

    def _make_room(self, now: float) -> None:
        if self.store.is_full and now >= self._retry_at:
            self._begin(now)

    def _begin(self, now: float) -> None:
        """Begin the next segment; without room for it publications are refused, and what is left is for relays.

        The checkpoint has the state behind what has been written; so nothing waits to be written, but at the start.

        Raises:
            OSError: the segment before it could not be synced, an old one not be removed, or this one not be written.

        """
        self.store.settle()
        self.store.remove_old()
        try:
            self.store.begin(self.head.continuation.checkpoint())
        except NoRoomError as error:
            self._retry_at = now + RETRY_SECONDS
            self.refused = f"the disk of {self.head.name} has no room for its log: {error}"
        else:
            self.refused = ""
            self.log.removed(self.store.first, self.store.offsets_before())
        self.head.set_refusal(self.refused, now)
