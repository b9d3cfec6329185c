"""A head's log that a standby has as well: what a round has to say is held until the standby has what it depends on.

The log underneath is on a disk or in memory, and has its own say first.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from plimsoll.broker.storage.log_disk import LogDisk, RoundOutput
from plimsoll.broker.storage.memory_log import MemoryLog
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_feed import START, LogFeed, LogPlace
from plimsoll.core.transport.link import Peer

LAST_WORD_SECONDS: Final = 2.0
"""How long a head that leaves waits for its standby to have the end of its log."""


class ReplicatedLog:
    """`feed` is begun when the head is there: it has its epoch. `log` may have been in use without a standby before.

    `may_lag`: whether a standby's word is enough, without the disk's.
    """

    def __init__(self, log: LogDisk | MemoryLog, *, may_lag: bool) -> None:
        self.log, self.may_lag = log, may_lag
        self.feed: LogFeed | None = None
        self._places: deque[LogPlace] = deque([START] * log.rounds_held)
        self._held: deque[tuple[LogPlace, RoundOutput]] = deque()

    @property
    def descriptor(self) -> int:
        """As `LogDisk.descriptor`."""
        return self.log.descriptor

    def clear(self) -> None:
        self.log.clear()

    def recover(self, *, is_replica: bool = False) -> RecoveredLog:
        """As `LogDisk.recover`."""
        return self.log.recover(is_replica=is_replica)

    def attach(self, head: Head, now: float) -> None:
        """As `LogDisk.attach`."""
        self.log.attach(head, now)

    def begin_feed(self, feed: LogFeed) -> None:
        """Send the log to whichever standby asks for it, as soon as all of it is in segments."""
        self.feed = feed
        self._begin_to_send(feed)

    def _begin_to_send(self, feed: LogFeed) -> None:
        if feed.store is None and self.log.commit is not None:
            feed.begin(self.log.store)

    def confirm(self, *, may_lag: bool) -> bool:
        """From the next round on a standby's word is enough, or not without the disk's; whether this is a change.

        A log in memory has no disk.
        """
        if not isinstance(self.log, LogDisk) or may_lag == self.may_lag:
            return False
        self.may_lag = may_lag
        self.log.confirm(may_lag=may_lag)
        return True

    # -- rounds

    def end_round(self, output: RoundOutput, now: float) -> None:
        """Write what the round has logged, and take what it has to say.

        Raises:
            LogDiskError: the disk has failed.

        """
        feed = self.feed
        if feed is None:
            raise RuntimeError("a log with a standby has no feed")
        is_relaxed = self.may_lag and feed.in_sync > 0
        if self.log.is_relaxed and not is_relaxed:
            self.log.wait_for_all()
        self.log.is_relaxed = is_relaxed
        self.log.end_round(output, now)
        self._begin_to_send(feed)
        if output:
            self._places.append(feed.end)
        feed.poll(now)

    def released(self) -> list[RoundOutput]:
        """The output that may be sent now, in order.

        Raises:
            LogDiskError: the disk has failed.

        """
        for output in self.log.released():
            self._held.append((self._places.popleft(), output))
        found = []
        while self._held and (self.feed is None or self.feed.is_safe(self._held[0][0])):
            found.append(self._held.popleft()[1])
        return found

    def await_safe(self, seconds: float) -> bool:
        """As `LogDisk.await_safe`; the standby may still miss it."""
        return self.log.await_safe(seconds)

    @property
    def is_behind(self) -> bool:
        """Whether the next round is due at once: a part of a log that is taken over is still to be written."""
        return self.log.is_behind

    @property
    def is_waiting(self) -> bool:
        """Whether something is held."""
        return bool(self._held or self._places)

    def flush(self) -> list[RoundOutput]:
        """All that may be sent when the head leaves; the rest no other process has been told of.

        Raises:
            LogDiskError: the disk has failed.

        """
        for output in self.log.flush():
            self._held.append((self._places.popleft(), output))
        return self.released()

    def close(self) -> None:
        self.log.close()

    def status(self) -> dict[str, Any]:
        """Scalars about log and standby."""
        feed = {} if self.feed is None else self.feed.status()
        confirm = {"log_confirm": "Either" if self.may_lag else "Both"} if isinstance(self.log, LogDisk) else {}
        return {**self.log.status(), **confirm, **feed, "standby_rounds_held": len(self._held)}

    # -- the standby's link

    def claims(self, peer: Peer, frames: list[bytes]) -> bool:
        """Whether these frames are for the feed."""
        return self.feed is not None and self.feed.claims(peer, frames)
