"""Replaying a dataset into a fleet: what was recorded is published again, in its order and at its rates.

One publisher sends everything, so what one origin accepted keeps its order, and so do origins among themselves as they
were recorded. Rates are those of recording (`_recorded`): the clock of one process, while each publisher has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from plimsoll.core.protocol.wire import Scalar
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import read_state
from plimsoll.feeds.dataset import dataset_files
from plimsoll.feeds.object_path import DatasetPath
from plimsoll.feeds.schema import FeedSchema

WAIT_SECONDS: Final = 0.5
"""A wait is cut into pieces of this length, so that a replay can be ended."""


@dataclass(frozen=True)
class RecordedPublication:
    """One row of a dataset. Times are microseconds since 1970."""

    row: int
    attributes: dict[str, Scalar]
    payload: bytes
    recorded_us: int


class Publishes(Protocol):
    """What a replay needs of a publisher."""

    def publish(self, attributes: dict[str, Scalar], payload: bytes = ...) -> object: ...


def recorded_publications(root: DatasetPath, from_row: int = 1, since_us: int = 0) -> Iterator[RecordedPublication]:
    """The rows of a dataset as publications, in the order of recording.

    Those before `from_row`, and those recorded before `since_us`, microseconds since 1970, are left out.

    Raises:
        FeedDatasetError: there is no dataset.
        FileNotFoundError: compaction or retention has removed a file meanwhile.

    """
    state = read_state(root)
    schema = state.last.schema if state.last is not None else None
    for file, path in zip(state.table("rows"), dataset_files(root, state), strict=True):
        if file.last_us < since_us or 0 < file.last_row < from_row:
            continue
        yield from publications_of(path, schema or FeedSchema(()), from_row, since_us)


def publications_of(
    path: DatasetPath, schema: FeedSchema, from_row: int, since_us: int
) -> Iterator[RecordedPublication]:
    """Those of one file; nulls are attributes that were absent. Raises FileNotFoundError."""
    for row in parquet.read_rows(path):
        if row["_row"] >= from_row and row["_recorded"] >= since_us:
            yield _publication(row, schema)


def _publication(row: dict[str, Any], schema: FeedSchema) -> RecordedPublication:
    attributes = {each.name: row[each.name] for each in schema.columns if row[each.name] is not None}
    return RecordedPublication(row["_row"], attributes, row["_payload"], row["_recorded"])


@dataclass
class DatasetReplay:
    """A replay under way. `speed`: recorded seconds for each second; None: as fast as the fleet accepts.

    `monotonic`: seconds; `sleep` waits for some.
    """

    publisher: Publishes
    speed: float | None
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    published: int = 0
    last_row: int = 0
    """The row that was published last."""
    is_stopped: bool = False
    """Whether it was ended before the last row."""
    late_seconds: float = 0.0
    """How far behind its time the latest publication was sent."""

    def run(self, publications: Iterator[RecordedPublication], stopped: Callable[[], bool] = lambda: False) -> None:
        """Publish them all, each at its time."""
        start, first = self.monotonic(), None
        for each in publications:
            first = each.recorded_us if first is None else first
            if self.speed is not None:
                due = start + (each.recorded_us - first) / 1e6 / self.speed
                while (wait := due - self.monotonic()) > 0 and not stopped():
                    self.sleep(min(wait, WAIT_SECONDS))
                self.late_seconds = max(0.0, -wait)
            if stopped():
                break
            self.publisher.publish(each.attributes, each.payload)
            self.published, self.last_row = self.published + 1, each.row
        self.is_stopped = stopped()
