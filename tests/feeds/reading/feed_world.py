"""A feed that grows, compacts, expires and starts again, and its readers, over a network that loses and repeats.

The model is the list of all publications and what a look at the disk finds: it shares nothing with what is tried.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import polars
from tests.feeds.publications import HOUR_US, START_US, stock

from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.commit_log import TABLES, Table
from plimsoll.feeds.dataset import FeedDataset, Retention
from plimsoll.feeds.reading.dataset_copy import DatasetCopy
from plimsoll.feeds.reading.table_reader import AllRead, FeedReadError, FileAbandoned, RowsGone, TableReader
from plimsoll.feeds.serving.answers import answer
from plimsoll.feeds.serving.catalog import FeedCatalog

T = TypeVar("T")
SUBSCRIPTION = "[class,=,'STOCK']"


def payload_of(row: int) -> bytes:
    """So large that a file of some rows comes in several parts."""
    return random.Random(row).randbytes(6000)


def rows_on_disk(root: Path, table: Table) -> list[int]:
    """The numbers of the rows in all files of a table that are published."""
    files = sorted((root / table).glob("**/*.parquet"))
    return [int(row) for file in files for row in polars.read_parquet(file, columns=["_row"])["_row"]]


@dataclass
class WorldReader:
    """One reader with its copy. `asked` and `coming`: what is on its way."""

    root: Path
    rights: ClientPermissions
    copy: DatasetCopy | None = None
    readers: list[TableReader] = field(default_factory=list)
    asked: list[msg.FeedRequest] = field(default_factory=list)
    coming: list[msg.FeedAnswer] = field(default_factory=list)
    gone: dict[Table, set[int]] = field(default_factory=lambda: {table: set() for table in TABLES})
    refusals: int = 0
    abandoned: int = 0
    all_read: set[Table] = field(default_factory=set)

    def open(self) -> None:
        self.close()
        self.copy = DatasetCopy(self.root, "stocks")
        self.readers = self.copy.readers()
        self.asked, self.coming = [], []

    def close(self) -> None:
        if self.copy is not None:
            self.copy.close()
            self.copy = None

    def ask(self, *, again: bool) -> None:
        for reader in self.readers:
            self.asked += reader.requests() + (reader.requests_again() if again else [])

    def take(self, found: msg.FeedAnswer, now_us: int) -> None:
        assert self.copy is not None
        for reader in self.readers:
            try:
                events = reader.take(found)
            except FeedReadError as error:
                assert "may not read the feed" in str(error), error
                self.refusals += 1
                self.open()
                return
            for event in events:
                self.copy.take(reader, event, now_us)
                if isinstance(event, RowsGone):
                    self.gone[reader.table] |= set(range(event.first, event.last + 1))
                elif isinstance(event, AllRead):
                    self.all_read.add(reader.table)
                elif isinstance(event, FileAbandoned):
                    self.abandoned += 1


class FeedWorld:
    """Everything under one seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw, self.folder = random.Random(seed), folder
        self.dataset = FeedDataset(folder / "feed", SUBSCRIPTION)
        self.now_us, self.number = START_US, 0
        self.tables: dict[Table, list[int]] = {table: [] for table in TABLES}
        self.expired: dict[Table, set[int]] = {table: set() for table in TABLES}
        self.readers = [
            WorldReader(folder / "all", ClientPermissions("all")),
            WorldReader(folder / "late", ClientPermissions("late")),
            WorldReader(folder / "turns", ClientPermissions("turns")),
            WorldReader(folder / "none", ClientPermissions("none", feeds=("other",))),
        ]
        for reader in self.readers:
            reader.open()
        self.dataset.commit(None, [], self.now_us)
        self.show()

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self.dataset.close()

    def show(self) -> None:
        self.catalog = FeedCatalog.of("stocks", self.dataset.state)

    def step(self) -> None:
        """Something happens."""
        what = self.draw.choices(
            (self.record, self.compact, self.expire, self.restart, self.show, self.clock, self.right, self.read),
            (4, 3, 1, 1, 3, 2, 1, 25),
        )[0]
        what()

    def record(self) -> None:
        for _ in range(self.draw.randrange(1, 30)):
            self.number += 1
            is_dead = self.number > 1 and self.draw.random() < 0.2
            made = stock(self.number, **({"price": "dear"} if is_dead else {}))
            self.dataset.add(replace(made, payload=payload_of(self.number)), self.now_us)
            self.tables["dead-letters" if is_dead else "rows"].append(self.number)
            self.now_us += self.draw.choice((self.draw.randrange(HOUR_US // 10), 0, 0, -HOUR_US // 30))
        self.dataset.commit(("head", 1, self.number), [], self.now_us)

    def compact(self) -> None:
        self.dataset.compact(self.now_us)

    def expire(self) -> None:
        root = self.folder / "feed"
        before = {table: set(rows_on_disk(root, table)) for table in TABLES}
        size = sum(each.size_bytes for each in self.dataset.state.files.values())
        kept = Retention(self.draw.choice((None, 7200.0)), self.draw.choice((None, round(size * 0.6))))
        self.dataset.expire(kept, self.now_us)
        for table in TABLES:
            self.expired[table] |= before[table] - set(rows_on_disk(root, table))

    def restart(self) -> None:
        self.dataset.close()
        self.dataset = FeedDataset(self.folder / "feed", SUBSCRIPTION)
        self.show()

    def clock(self) -> None:
        """Mostly it goes on; at times it is set back."""
        self.now_us += self.draw.choice((HOUR_US // 3, HOUR_US, 3 * HOUR_US, -HOUR_US))

    def right(self) -> None:
        """A right is taken away, or given again."""
        reader = self.readers[2]
        feeds = None if reader.rights.feeds is not None else ("other",)
        reader.rights = ClientPermissions("turns", feeds=feeds)

    def read(self) -> None:
        reader = self.draw.choice(self.readers)
        if reader is self.readers[1] and self.draw.random() < 0.9:
            return
        if self.draw.random() < 0.05:
            reader.open()
        for _ in range(self.draw.randrange(1, 8)):
            self.exchange(reader, loss=0.1)

    def exchange(self, reader: WorldReader, loss: float) -> None:
        """Requests come in any order, and so do answers; some never come, and some come twice."""
        reader.ask(again=self.draw.random() < 0.2 or not loss)
        requests, reader.asked = reader.asked, []
        for request in self.tampered(requests, loss):
            refusal = reader.rights.read_refusal("stocks")
            reader.coming.append(answer(self.catalog, refusal, request, self.part))
        answers, reader.coming = reader.coming, []
        for found in self.tampered(answers, loss):
            reader.take(found, self.now_us)

    def tampered(self, items: Iterable[T], loss: float) -> list[T]:
        found = [each for each in items if self.draw.random() >= loss]
        found += [each for each in found if self.draw.random() < loss]
        if loss:
            self.draw.shuffle(found)
        return found

    def part(self, path: str, offset: int, size: int) -> bytes:
        with (self.folder / "feed" / path).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def settle(self) -> None:
        """Let each reader that may read come to the end."""
        self.show()
        for reader in self.readers:
            reader.all_read.clear()
            for _ in range(2000):
                if reader.all_read == set(TABLES) or reader.rights.read_refusal("stocks"):
                    break
                self.exchange(reader, loss=0.0)
            else:
                raise AssertionError(f"{reader.root.name} does not come to an end")

    def check(self, reader: WorldReader) -> None:
        """It has each row once, in order, but for those of which it was told that they are gone, which are."""
        for table in TABLES:
            found = rows_of_copy(reader, table)
            numbers = [row for row, _ in found]
            assert numbers == sorted(set(numbers)), f"{reader.root.name}: {table} are in order, each once"
            known, told = set(self.tables[table]), reader.gone[table]
            assert set(numbers) <= known
            assert not set(numbers) & told, f"{table} that it has are not gone"
            assert known - told == set(numbers), f"{reader.root.name} lacks {table} without a word"
            assert told & known <= self.expired[table], f"{table} that are there are not gone"
            assert all(payload == payload_of(row) for row, payload in found)


def rows_of_copy(reader: WorldReader, table: Table) -> list[tuple[int, bytes]]:
    """Number and payload of each row of a copy, in the order of its files and of their rows."""
    assert reader.copy is not None
    state = reader.copy.state
    frames = [polars.read_parquet(reader.root / each.path, columns=["_row", "_payload"]) for each in state.table(table)]
    return [(int(row), payload) for frame in frames for row, payload in frame.rows()]
