"""One run of a fetch against a scripted recorder: repeats, pauses, other addresses, silence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.feeds.publications import START_US
from tests.feeds.reading.test_dataset_copy import recorded, rows_of

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.dataset import FeedDataset, Retention
from plimsoll.feeds.reading.dataset_copy import DatasetCopy
from plimsoll.feeds.reading.fetch_run import FetchRun
from plimsoll.feeds.reading.table_reader import FeedReadError
from plimsoll.feeds.serving.answers import answer
from plimsoll.feeds.serving.catalog import FeedCatalog


@dataclass
class Scripted:
    """A recorder and the clock. `loses`: how many answers are lost first; `away_until`: nothing connects before.

    `vanishes`: for this long, behind the next connection, the recorder is away, and nothing knows where it is.
    """

    dataset: FeedDataset
    now: float = 0.0
    loses: int = 0
    away_until: float = -1.0
    connections: int = 0
    asked: int = 0
    fault: str = ""
    unknown_until: float = -1.0
    vanishes: float = 0.0
    told: list[str] = field(default_factory=list)
    coming: list[msg.FeedAnswer] = field(default_factory=list)

    def connect(self) -> Scripted:
        if self.now < self.unknown_until:
            raise FeedReadError("the fleet does not run")
        self.connections += 1
        if self.vanishes:
            self.away_until = self.unknown_until = self.now + self.vanishes
            self.vanishes = 0.0
        self.coming = []
        return self

    @property
    def is_connected(self) -> bool:
        return self.now >= self.away_until

    def ask(self, requests: Iterable[msg.FeedRequest]) -> None:
        catalog = FeedCatalog.of("stocks", self.dataset.state)
        for request in requests:
            self.asked += 1
            if self.loses > 0:
                self.loses -= 1
            elif self.is_connected:
                self.coming.append(answer(catalog, "", request, self.part))

    def part(self, path: str, offset: int, size: int) -> bytes:
        return (self.dataset.root / path).read_bytes()[offset : offset + size]

    def answers(self, seconds: float) -> list[msg.FeedAnswer]:
        self.now += seconds
        found, self.coming = self.coming, []
        return found

    def close(self) -> None:
        self.coming = []

    def run(self, root: Path, *, follows: bool = False, until: float = 1e9) -> int:
        copy = DatasetCopy(root, "stocks")
        try:
            run = FetchRun(
                copy, copy.readers(), self.connect, self.told.append, lambda: self.now,
                lambda: START_US + round(self.now * 1e6), follows,
            )  # fmt: skip
            run.run(lambda: self.now >= until)
            run.close()
            return copy.counts.received
        finally:
            copy.close()


def test_answers_that_are_lost_are_asked_for_again(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"), loses=5)
    assert here.run(tmp_path / "copy") == 30
    assert rows_of(tmp_path / "copy") == rows_of(tmp_path / "feed")
    assert 2.0 <= here.now < 10.0
    here.dataset.close()


def test_without_a_connection_the_address_is_looked_up_again(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"), away_until=12.0)
    assert here.run(tmp_path / "copy") == 30
    assert here.connections == 3
    here.dataset.close()


def test_a_recorder_that_is_silent_ends_it_and_the_next_run_goes_on(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"), away_until=1e9)
    with pytest.raises(FeedReadError, match=r"for 30 s: .* or serves many others with it; the copy keeps"):
        here.run(tmp_path / "copy")
    assert 30.0 <= here.now < 31.0
    here.fault = "host r has no address: it is unknown"
    with pytest.raises(FeedReadError, match="for 30 s: host r has no address: it is unknown; the copy keeps"):
        here.run(tmp_path / "copy")
    here.away_until = 0.0
    assert here.run(tmp_path / "copy") == 30
    here.dataset.close()


def test_a_recorder_that_is_not_to_be_found_for_a_while_does_not_end_it(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"), vanishes=20.0)
    assert here.run(tmp_path / "copy") == 30
    assert here.connections == 1, "the one that there was is kept"
    here.vanishes = 1e9
    with pytest.raises(FeedReadError, match="for 30 s: the fleet does not run; the copy keeps"):
        here.run(tmp_path / "copy")
    here.dataset.close()


def test_it_follows_what_is_committed_without_asking_all_the_time(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"))
    assert here.run(tmp_path / "copy", follows=True, until=60.0) == 30
    assert here.asked < 150, "twice a second, for two tables"
    assert here.told == []
    here.away_until = 120.0
    assert here.run(tmp_path / "copy", follows=True, until=119.0) == 30
    assert [text.endswith("trying again") for text in here.told] == [True]
    here.dataset.close()


def test_what_retention_has_deleted_is_told_with_its_rows(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"))
    files = here.dataset.state.files.values()
    newest = sum(each.size_bytes for each in files if each.first_row > 20)
    here.dataset.expire(Retention(size_bytes=newest), START_US)
    assert here.run(tmp_path / "copy") == 10
    assert here.told == [
        "stocks: rows 1 to 19: retention has deleted them before they were read",
        "stocks: dead-letters 1 to 20: retention has deleted them before they were read",
    ]
    assert here.run(tmp_path / "copy") == 10
    assert len(here.told) == 2, "once"
    here.dataset.close()
