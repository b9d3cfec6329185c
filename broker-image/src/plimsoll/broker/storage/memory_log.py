"""The log of a head that keeps it in memory for a standby: the same batches as on a disk, and nothing to wait for."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from plimsoll.broker.storage.log_disk import LogDiskError, RoundOutput
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.durability.records import DamagedBatchError
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_copy import LogCopy
from plimsoll.core.head.standby.memory_files import MemoryFiles

log = logging.getLogger(__name__)


class MemoryLog:
    """As `LogDisk`, of head `name`; its segments take at most about `size_bytes`."""

    def __init__(self, name: str, size_bytes: int) -> None:
        self.name = name
        self.store = LogStore(MemoryFiles(), name, size_bytes)
        self.commit: RoundCommit | None = None
        self.is_relaxed = True
        self._copy: tuple[LogCopy, Head] | None = None
        self._output: deque[RoundOutput] = deque()

    @property
    def descriptor(self) -> int:
        """None is needed: what has been written is as safe as it gets."""
        return -1

    def clear(self) -> None:
        """There is nothing to clear."""

    def recover(self, *, is_replica: bool = False) -> RecoveredLog:
        """Read what a standby has of the log of the head before it; nothing, in a process that begins as the head.

        Raises:
            LogDiskError: what the head has sent is no log.

        """
        try:
            found = self.store.recover()
            recovered = recovered_log(self.store, found, is_synced=True, is_replica=is_replica)
        except (OSError, DamagedBatchError) as error:
            raise LogDiskError(f"the log that {self.name} has followed cannot be read: {error}") from error
        if is_replica:
            log.info(
                "has followed the log to position %d, %d bytes in %d segments",
                self.store.position,
                found.bytes,
                found.segments,
            )
        return recovered

    def attach(self, head: Head, now: float) -> None:
        """Begin to write what this head logs."""
        self.commit = RoundCommit(self.store, head)
        self.commit.begin(now)

    def take_over(self, head: Head, entries_bytes: int) -> None:
        """Begin to write the log of a head that runs without segments; `commit` is there once all of it is written.

        `entries_bytes`: of the log that stay at hand beside the segments.
        """
        self._copy = LogCopy(head, self.store, entries_bytes), head

    @property
    def is_behind(self) -> bool:
        """Whether a part of a log that is taken over can be written at once."""
        return self._copy is not None and self._copy[0].is_behind

    @property
    def rounds_held(self) -> int:
        """How many rounds have output here."""
        return len(self._output)

    def begin_syncs(self) -> None:
        """Nothing is synced."""

    def sync_at_times(self, now: float) -> None:
        """Nothing is synced."""

    def end_round(self, output: RoundOutput, now: float) -> None:
        """Write what the round has logged, and take what it has to say."""
        if self._copy is not None:
            copy, head = self._copy
            if copy.step():
                self.commit, self._copy = RoundCommit(self.store, head), None
        elif self.commit is None:
            raise RuntimeError(f"{self.name} has no log attached")
        else:
            self.commit.write(now)
        if output:
            self._output.append(output)

    def released(self) -> list[RoundOutput]:
        """The output of the rounds that were written."""
        found = list(self._output)
        self._output.clear()
        return found

    def await_safe(self, seconds: float) -> bool:
        """Nothing is waited for."""
        return False

    def flush(self) -> list[RoundOutput]:
        return self.released()

    def wait_for_all(self) -> None:
        """Nothing is waited for."""

    def close(self) -> None:
        """Nothing is open."""

    def status(self) -> dict[str, Any]:
        """Scalars about the segments, for status and metrics."""
        return {"log_segment_bytes": self.store.bytes, "log_segments": len(self.store.segments)}
