"""How long a head holds its output, and how long its syncs take: noted from outside, at one log.

Both are of the head alone, so they say more than delays of deliveries where many processes share few cores.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.storage.log_disk import LogDisk, RoundOutput


class HeldTimes:
    """Wraps the methods of this log. Times are in seconds."""

    def __init__(self, log: LogDisk | ReplicatedLog) -> None:
        self._since: dict[int, float] = {}  # by identity of the output, which the log keeps meanwhile
        self._held: list[float] = []
        self._syncs: list[float] = []
        self._end_round, self._released = log.end_round, log.released
        log.end_round, log.released = self._take, self._give
        disk = log.log if isinstance(log, ReplicatedLog) else log
        if isinstance(disk, LogDisk):
            self._sync: Any = disk.folder.sync
            disk.folder.sync = self._time_sync

    def _take(self, output: RoundOutput, now: float) -> None:
        self._end_round(output, now)
        if output.data:
            self._since[id(output)] = monotonic()

    def _give(self) -> list[RoundOutput]:
        found = self._released()
        now = monotonic()
        self._held += [now - self._since.pop(id(each)) for each in found if id(each) in self._since]
        return found

    def _time_sync(self, thread: int = 0) -> None:
        began = monotonic()
        self._sync(thread)
        self._syncs.append(monotonic() - began)

    def figures(self) -> dict[str, float]:
        """Percentiles since the last call, in milliseconds; without those of which nothing was measured."""
        found: dict[str, float] = {}
        for name, times in (("held", sorted(self._held)), ("sync", sorted(self._syncs))):
            for share in (50, 99) if times else ():
                found[f"{name}_p{share}_ms"] = times[min(len(times) - 1, len(times) * share // 100)] * 1000
        self._held.clear()
        self._syncs.clear()
        return found
