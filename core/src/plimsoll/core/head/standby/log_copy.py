"""A head that keeps its log in memory, and gets a standby: the log is written into segments beside the traffic.

Slice by slice what the log has goes into the segments; then, within one round, the head gets a journal, and a new
segment begins with the state behind all of it. From then on it is like a head that has had a standby from its start,
in the same epoch: it forgets nothing, and no peer notices anything.

A neighbour never sends again what was acknowledged to it. So there is no journal before all that was acknowledged to
neighbours has been dealt with; from the beginning of the copy on nothing is acknowledged to them sooner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durability.durable_log import DurableLog
from plimsoll.core.head.durability.journal import LogJournal, RecoveredLog
from plimsoll.core.head.durability.log_state import LogState
from plimsoll.core.head.durability.records import Checkpoint, DiskRecord, Logged
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.record_input import QueuedRecord
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.protocol.origins import Origin, raise_to
from plimsoll.core.transport.link import Link

SLICE_BYTES: Final = 512 * 1024
"""Of the log that one round copies: some milliseconds, in which publications wait."""


class CopiedHead(Protocol):
    """The parts of a head that its log depends on."""

    name: str
    epoch: int
    config: BrokerConfig
    log: Log
    journal: LogJournal | None
    distributor: Distributor
    continuation: EpochContinuation
    outboxes: Outboxes
    server: ServiceQueue[QueuedRecord]
    startup: StartupBarrier


class LogCopy:
    """The copy of the log of `head` into `store`, which is empty. `entries_bytes`: what may stay at hand beside it."""

    def __init__(self, head: CopiedHead, store: LogStore, entries_bytes: int) -> None:
        self.head, self.store, self.entries_bytes = head, store, entries_bytes
        recovered = RecoveredLog(store, 1, {}, LogState(head.name))
        self._journal = LogJournal(recovered, head.name, head.epoch, has_neighbors=bool(head.config.neighbors))
        self._journal.take()  # every checkpoint says that the epoch has begun
        self._offsets: dict[Origin, int] = {}
        self._owed: dict[Link, tuple[int, int]] = {}
        self._log: DurableLog | None = None

    @property
    def is_behind(self) -> bool:
        """Whether there is more to copy at once."""
        return self._log is not None and self.store.position < self._log.last

    def step(self, slice_bytes: int = SLICE_BYTES) -> bool:
        """Copy a slice at the end of a round; whether the head has a journal now.

        A head that has just started waits for what its edges and neighbours hold first.
        """
        if self.head.startup.is_starting:
            return False
        log = self._log or self._begin()
        self._copy(log, min(slice_bytes, self.store.segment_bytes // 4))
        if self.store.position < log.last or not self._has_dealt():
            return False
        self._adopt()
        return True

    def _begin(self) -> DurableLog:
        """Let the log go by what the segments have; what it has evicted is remembered as before."""
        head = self.head
        self.store.position = head.log.first - 1
        self._offsets = dict(head.log.gone)
        self._log = log = DurableLog.of(head.log, self.entries_bytes, self.store)
        head.log = head.outboxes.log = log
        for outbox in head.outboxes.by_key.values():
            if outbox.is_head:
                link = outbox.link
                link.acks_dealt = True
                self._owed[link] = (link.id, link.expected - 1)
        return log

    def _copy(self, log: DurableLog, slice_bytes: int) -> None:
        records: list[DiskRecord] = []
        source_of = self.head.distributor.source_of
        for position, entry in self._entries(log, slice_bytes):
            if self.store.is_full and not records:
                self._begin_segment(log, self._so_far())
            records.append(Logged(entry.record, source_of(position, entry)))
            raise_to(self._offsets, entry.last)
        if records:
            self.store.write(records)
            log.wrote(self.store.position)

    def _entries(self, log: DurableLog, slice_bytes: int) -> Iterator[tuple[int, LogEntry]]:
        size = 0
        for position, entry in log.after(self.store.position):
            yield position, entry
            size += len(entry.record)
            if size >= slice_bytes:
                return

    def _begin_segment(self, log: DurableLog, checkpoint: Checkpoint) -> None:
        self.store.settle()
        self.store.remove_old()
        self.store.begin(checkpoint)
        log.removed(self.store.first, self.store.offsets_before())

    def _so_far(self) -> Checkpoint:
        """The state behind what has been copied, as far as the entries say it; the last checkpoint says the rest."""
        offsets = [(*origin, offset) for origin, offset in sorted(self._offsets.items())]
        return Checkpoint(list(self._journal.epochs.epochs), offsets, [], [], [])

    def _has_dealt(self) -> bool:
        """Whether all that was acknowledged to neighbours when the copy began has been dealt with."""
        self._owed = {
            link: (number, frames) for link, (number, frames) in self._owed.items()
            if link.id == number and link.dealt < frames
        }  # fmt: skip
        queued = (each.item for each in self.head.server.queue)
        return not self._owed and all(link.id == number for link, number, _, _ in queued)

    def _adopt(self) -> None:
        """The head has a journal from here on, behind a segment that says all that the entries do not."""
        head = self.head
        head.continuation.begin(self._journal)
        if self._log is not None:
            self._begin_segment(self._log, head.continuation.checkpoint())
