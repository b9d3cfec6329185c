"""A recorder: takes what a subscriber receives, and commits it to a dataset together with the subscriber's position.

The position is read after everything before it was added, by the one thread that receives, so a commit never has a
position behind a publication that it lacks. The first commit is made before anything has come: from it on, a recorder
that is killed goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from plimsoll.client import Connection, Delivery, GapNotice, Subscriber, errors
from plimsoll.core.protocol.wire import Token
from plimsoll.feeds.dataset import FeedDataset, Retention

RECEIVE_SECONDS: Final = 0.2
INFER_SECONDS: Final = 10.0
"""A schema is inferred from the first publications of this time, or from the first hundred."""
UPKEEP_SECONDS: Final = 10.0
IDLE_COMMIT_SECONDS: Final = 30.0
"""Without publications the position is committed at this interval: a head keeps its log for some time only."""


class ReceivedItems(Protocol):
    """Where items come from, and the position behind them; `Subscriber` is one."""

    def receive_many(self, most: int = ..., timeout: float | None = ...) -> list[Delivery | GapNotice]: ...
    @property
    def token(self) -> tuple[str, int, int] | None: ...
    @property
    def watermarks(self) -> list[tuple[str, int, int] | tuple[str, int, int, int]]: ...


@dataclass(frozen=True)
class CommitLimits:
    """A commit is due after `seconds`, or with `rows` publications or `size_bytes` of payload and text waiting."""

    seconds: float = 10.0
    rows: int = 50_000
    size_bytes: int = 64 * 2**20


@dataclass
class FeedRecorder:
    """Records one feed. `clock`: microseconds since 1970; `monotonic`: seconds."""

    source: ReceivedItems
    dataset: FeedDataset
    limits: CommitLimits = field(default_factory=CommitLimits)
    retention: Retention = field(default_factory=Retention)
    clock: Callable[[], int] = lambda: time.time_ns() // 1000
    monotonic: Callable[[], float] = time.monotonic
    commits: int = 0
    lag_us: int = 0
    """How long ago the newest publication of the last step was sent when it was received; 0 without one."""
    _since: float | None = None
    _size: int = 0
    _upkeep_at: float = field(default=0.0)
    _committed_at: float = field(default=0.0)

    def start(self) -> None:
        """Commit the position from which this feed counts, if it has none."""
        if self.dataset.position[0] is None:
            self.commit()

    def step(self) -> None:
        """Receive what is there, commit if that is due, and look after the files."""
        try:
            items = self.source.receive_many(1000, RECEIVE_SECONDS)
        except errors.WaitTimeoutError:
            items = []
        now_us, self.lag_us = self.clock(), 0
        for item in items:
            if isinstance(item, GapNotice):
                self.dataset.add_gap(
                    f"{item.head} {item.low_epoch}:{item.low} to {item.epoch}:{item.high}: {item.reason}"
                )
            else:
                self.dataset.add(item, now_us)
                self.lag_us = max(0, now_us - item.sent_us)
                self._size += len(item.payload) + sum(len(name) + len(str(v)) for name, v in item.attributes.items())
        now = self.monotonic()
        if items and self._since is None:
            self._since = now
        if self._is_due(now):
            self.commit()
        if now >= self._upkeep_at:
            self._upkeep_at = now + UPKEEP_SECONDS
            self.dataset.compact(self.clock())
            self.dataset.expire(self.retention, self.clock())

    def commit(self) -> None:
        """Commit what was received, and the position behind it."""
        self.dataset.commit(self.source.token, self.source.watermarks, self.clock())
        self._since, self._size, self._committed_at = None, 0, self.monotonic()
        self.commits += 1

    def finish(self) -> None:
        """Commit what waits."""
        if self.dataset.pending:
            self.commit()

    def _is_due(self, now: float) -> bool:
        if self._since is None:
            idle = now - self._committed_at >= IDLE_COMMIT_SECONDS
            return idle and self.source.token != self.dataset.position[0]
        if self.dataset.pending >= self.limits.rows or self._size >= self.limits.size_bytes:
            return True
        wait = max(self.limits.seconds, INFER_SECONDS) if self.dataset.waits_for_schema else self.limits.seconds
        return now - self._since >= wait


def record_until(recorder: FeedRecorder, stopped: Callable[[], bool]) -> None:
    """Record until told to stop; then commit the rest."""
    recorder.start()
    while not stopped():
        recorder.step()
    recorder.finish()


@contextmanager
def resumed_subscriber(connection: Connection, name: str, dataset: FeedDataset, timeout: float) -> Iterator[Subscriber]:
    """A dataset's subscriber, behind its last commit; in the end it is detached, and may come back within its lease.

    Raises:
        ClientError: the fleet does not serve it.

    """
    token, marks = dataset.position
    watermarks = [cast("Token", mark) for mark in marks]
    subscriber = Subscriber(connection, name=name, token=token, watermarks=watermarks)
    try:
        subscriber.subscribe(dataset.subscription, timeout=timeout)
        yield subscriber
    finally:
        subscriber.close(withdraw=False)
