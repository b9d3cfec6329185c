"""A dataset published again: its order, its times, and what it does not keep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.feeds.publications import HOUR_US, START_US, stock

from plimsoll.core.protocol.wire import Scalar
from plimsoll.feeds.commit_log import FeedDatasetError
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.replay import DatasetReplay, recorded_publications


class Recorded:
    """A publisher and a clock: what was published, and when."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sent: list[tuple[float, Mapping[str, Scalar], bytes]] = []

    def publish(self, attributes: Mapping[str, Scalar], payload: bytes = b"") -> None:
        self.sent.append((self.now, attributes, payload))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Publications 1 to 9, one each 10 s over the turn of an hour, in three files that were merged, and one misfit."""
    made = FeedDataset(tmp_path, "[class,=,'STOCK']")
    start = START_US // HOUR_US * HOUR_US + HOUR_US - 45_000_000
    for number in range(1, 10):
        made.add(stock(number, **({"price": "dear"} if number == 5 else {})), start + number * 10_000_000)
        if number % 3 == 0:
            made.commit(("head", 1, number), [], start)
    while made.compact(start + 3 * HOUR_US):
        pass
    made.close()
    return tmp_path


def replayed(dataset: Path, speed: float | None) -> Recorded:
    to = Recorded()
    DatasetReplay(to, speed, lambda: to.now, to.sleep).run(recorded_publications(dataset))
    return to


def test_the_order_the_attributes_and_the_payloads_are_those_of_the_recording(dataset: Path) -> None:
    sent = replayed(dataset, None).sent
    assert [each[1]["volume"] for each in sent] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert sent[0][1:] == ({"class": "STOCK", "price": 0.25, "volume": 1}, b"1")
    assert {each[0] for each in sent} == {0.0}, "max does not wait"


@pytest.mark.parametrize("speed", [1.0, 2.0, 0.5])
def test_each_is_sent_at_its_time(dataset: Path, speed: float) -> None:
    times = [each[0] for each in replayed(dataset, speed).sent]
    assert times == pytest.approx([10.0 * (n - 1) / speed for n in (1, 2, 3, 4, 6, 7, 8, 9)])


def test_a_fleet_that_is_too_slow_is_told(dataset: Path) -> None:
    to = Recorded()
    publish = to.publish

    def slow(attributes: Mapping[str, Scalar], payload: bytes = b"") -> None:
        publish(attributes, payload)
        to.now += 30.0

    to.publish = slow
    run = DatasetReplay(to, 1.0, lambda: to.now, to.sleep)
    run.run(recorded_publications(dataset))
    assert run.late_seconds == pytest.approx(7 * 30.0 - 80.0)


def test_a_replay_can_be_ended_while_it_waits(dataset: Path) -> None:
    to = Recorded()
    run = DatasetReplay(to, 1.0, lambda: to.now, to.sleep)
    run.run(recorded_publications(dataset), lambda: to.now > 15.0)
    assert run.published == 2


def test_a_folder_without_a_dataset(tmp_path: Path) -> None:
    with pytest.raises(FeedDatasetError, match="there is no dataset here"):
        replayed(tmp_path, None)
