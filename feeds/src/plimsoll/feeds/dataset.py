"""The dataset of a feed, open for writing: publications in, commits of Parquet files out; compaction and retention.

`PATH/rows/recorded_day=.../recorded_hour=.../*.parquet` are the publications that fit the schema, and
`PATH/dead-letters/` has the others. A publication is in exactly one of the two, and its `_row` counts all of them from
1, in the order of recording. Nothing is on disk before `commit`; what was added since is received again by the next
life, from the token of the last commit.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from plimsoll.core.protocol.wire import Scalar, Token
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import (
    TABLES,
    CommitLog,
    FeedCommit,
    FeedCounts,
    FeedDatasetError,
    FeedFile,
    FeedState,
    Mark,
    Table,
)
from plimsoll.feeds.compaction import HOUR_US, change, compact, file_name, hour_folder
from plimsoll.feeds.object_path import DatasetPath
from plimsoll.feeds.schema import FeedSchema, MisfitError, inferred

INFER_ROWS: Final = 100


class RecordedDelivery(Protocol):
    """What a row is made of; `plimsoll.client.Delivery` is one."""

    @property
    def attributes(self) -> Mapping[str, Scalar]: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def identity(self) -> tuple[str, int, int]: ...
    @property
    def origin(self) -> tuple[str, int, int]: ...
    @property
    def sent_us(self) -> int: ...


@dataclass(frozen=True)
class Retention:
    """What is kept: files recorded within `seconds`, and the newest files of at most `size_bytes`. None: all."""

    seconds: float | None = None
    size_bytes: int | None = None


class FeedDataset:
    """One dataset. `subscription`: its text, written into every commit. Times are microseconds since 1970.

    Raises:
        FeedDatasetError: another process writes it, or it was recorded with another schema or subscription.
        OSError: the disk fails; then the dataset is as the last commit left it, and has to be opened again.

    """

    def __init__(self, root: DatasetPath, subscription: str, schema: FeedSchema | None = None) -> None:
        self.subscription = subscription
        self._log = CommitLog(root)
        # Two recorders of one place in a store must not write one object: neither knows of the other before it commits.
        self._life = "" if isinstance(root, Path) else f"-{secrets.token_hex(4)}"
        self._pending: list[tuple[RecordedDelivery, int]] = []
        self._gaps: list[str] = []
        last = self._log.state.last
        self.schema = schema
        if last is not None:
            try:
                self._check(last, schema)
            except FeedDatasetError:
                self._log.close()
                raise
            self.schema = last.schema if last.schema is not None else schema
            self._log.state.last = last

    def _check(self, last: FeedCommit, schema: FeedSchema | None) -> None:
        if last.copy_of:
            raise FeedDatasetError(f"{self.root} is a copy of the feed {last.copy_of}: record to another path")
        if last.subscription != self.subscription:
            raise FeedDatasetError(
                f"{self.root}: was recorded with the subscription {last.subscription}, not {self.subscription}: "
                "use another path"
            )
        if schema is not None and last.schema is not None and schema != last.schema:
            raise FeedDatasetError(f"{self.root}: was recorded with another schema: use another path")

    def close(self) -> None:
        """Let another process write; uncommitted records are forgotten."""
        self._log.close()

    @property
    def root(self) -> DatasetPath:
        return self._log.root

    @property
    def state(self) -> FeedState:
        return self._log.state

    @property
    def position(self) -> tuple[Token | None, tuple[Mark, ...]]:
        """Token and watermarks of the last commit."""
        last = self.state.last
        return (None, ()) if last is None else (last.token, last.watermarks)

    @property
    def counts(self) -> FeedCounts:
        """As of the last commit."""
        return FeedCounts() if self.state.last is None else self.state.last.counts

    @property
    def pending(self) -> int:
        """Publications and gaps that no commit has yet."""
        return len(self._pending) + len(self._gaps)

    @property
    def waits_for_schema(self) -> bool:
        """Whether the schema is still to be inferred, and more publications would serve it."""
        return self.schema is None and len(self._pending) < INFER_ROWS

    def add(self, delivery: RecordedDelivery, now_us: int) -> None:
        """Take a publication for the next commit."""
        self._pending.append((delivery, now_us))

    def add_gap(self, text: str) -> None:
        """Take note of publications that the fleet says were missed."""
        self._gaps.append(text)

    def commit(self, token: Token | None, watermarks: Iterable[Sequence[str | int]], now_us: int) -> FeedCommit:
        """Commit all that was added, with the position behind it."""
        number, first = self._log.next_number, self.counts.received + 1
        schema = self.schema
        if schema is None and self._pending:
            schema = inferred(each.attributes for each, _ in self._pending)
        rows, dead = self._sorted_rows(first, schema)
        kinds = {} if schema is None else {"rows": parquet.rows_schema(schema)}
        files = [
            *self._stage("rows", rows, kinds.get("rows"), number),
            *self._stage("dead-letters", dead, parquet.dead_letters_schema(), number),
        ]
        before = self.counts
        counts = FeedCounts(
            received=before.received + len(rows) + len(dead),
            rows=before.rows + len(rows),
            dead_letters=before.dead_letters + len(dead),
            gaps=before.gaps + len(self._gaps),
            expired_rows=before.expired_rows,
        )
        made = FeedCommit(
            number=number, at_us=now_us, subscription=self.subscription, added=tuple(files), token=token,
            watermarks=tuple(tuple(mark) for mark in watermarks), counts=counts, schema=schema, gaps=tuple(self._gaps),
            dataset=self._name, expired_to=self.state.last.expired_to if self.state.last is not None else {},
        )  # fmt: skip
        self._log.commit(made)
        self.schema, self._pending, self._gaps = schema, [], []
        return made

    @property
    def _name(self) -> str:
        known = "" if self.state.last is None else self.state.last.dataset
        return known or secrets.token_hex(8)

    def _sorted_rows(self, first: int, schema: FeedSchema | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        rows, dead = [], []
        for number, (delivery, now_us) in enumerate(self._pending, first):
            common = _identity_values(delivery, number, now_us)
            try:
                values = (schema or FeedSchema(())).row(delivery.attributes)
            except MisfitError as error:
                text = msgspec.json.encode(delivery.attributes).decode()
                dead.append({**common, "_reason": str(error), "_attributes": text})
            else:
                rows.append({**values, **common})
        return rows, dead

    def _stage(self, table: Table, rows: list[dict[str, Any]], schema: Any, number: int) -> list[FeedFile]:
        """Stage one file for each hour; for more if the clock went back, since files hold disjoint ranges of rows."""
        files = []
        for hour, found in groupby(rows, lambda row: row["_recorded"] // HOUR_US):
            part = list(found)
            staged = file_name(table, number, part[0]["_row"], self._life)
            size = parquet.write_rows(self._log.staged(staged), schema, part)
            times = [row["_recorded"] for row in part]
            path = f"{table}/{hour_folder(hour)}/{staged}"
            first, last = part[0]["_row"], part[-1]["_row"]
            files.append(FeedFile(path, table, len(part), size, first, min(times), max(times), last))
        return files

    # -- upkeep

    def compact(self, now_us: int) -> int:
        """Merge small files of the same hour; returns how many became one. Rows and their order stay the same."""
        return compact(self._log, now_us, self._life)

    def expire(self, retention: Retention, now_us: int) -> int:
        """Delete the files that retention no longer keeps; returns how many rows."""
        size, gone = sum(each.size_bytes for each in self.state.files.values()), []
        expired_to = {table: self.state.expired_to(table) for table in TABLES}
        for file in self._oldest_first():
            too_old = retention.seconds is not None and file.last_us < now_us - round(retention.seconds * 1e6)
            if not too_old and (retention.size_bytes is None or size <= retention.size_bytes):
                break
            gone.append(file)
            size -= file.size_bytes
            expired_to[file.table] = file.last_row
        rows = sum(each.rows for each in gone)
        if gone:
            counts = msgspec.structs.replace(self.counts, expired_rows=self.counts.expired_rows + rows)
            removed = tuple(each.path for each in gone)
            change(self._log, now_us, removed=removed, counts=counts, expired_to=expired_to)
        return rows

    def _oldest_first(self) -> Iterator[FeedFile]:
        """All files by time, but those of a table by row: what a table loses is always its beginning."""
        left = {table: deque(self.state.table(table)) for table in TABLES}
        while heads := [files[0] for files in left.values() if files]:
            oldest = min(heads, key=lambda each: (each.last_us, each.first_row))
            left[oldest.table].popleft()
            yield oldest


def dataset_files(root: DatasetPath, state: FeedState, table: Table = "rows") -> list[DatasetPath]:
    """The files of a table as they are on disk now, in the order of recording, for readers that want an exact list."""
    paths: list[DatasetPath] = []
    for file in state.table(table):
        path, staged = root / file.path, root / "_staging" / file.staged_name
        paths.append(staged if not path.exists() and staged.exists() else path)
    return paths


def _identity_values(delivery: RecordedDelivery, row: int, now_us: int) -> dict[str, Any]:
    publisher, incarnation, seq = delivery.identity
    head, epoch, offset = delivery.origin
    return {
        "_row": row, "_publisher": publisher, "_incarnation": incarnation, "_seq": seq, "_head": head,
        "_head_epoch": epoch, "_offset": offset, "_sent": delivery.sent_us, "_recorded": now_us,
        "_payload": delivery.payload,
    }  # fmt: skip
