"""Channels under way in a real Spark, with feeds on a disk: batches, periods, faults, counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.channels.datasets import RecordedFeed
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels import runner as runner_module
from plimsoll.channels.batch import first_commit
from plimsoll.channels.channel_stream import ChannelStream
from plimsoll.channels.config import ChannelDefinition, ChannelFigures, ChannelParameter, FeedView, TableView
from plimsoll.channels.feed_source import StreamRequest
from plimsoll.channels.ledger import ChannelLedger
from plimsoll.channels.query import ChannelQuery
from plimsoll.channels.runner import ChannelRunner
from plimsoll.channels.store_copies import StoreCopies
from plimsoll.channels.stream_offset import StreamOffset
from plimsoll.channels.subscriptions import ChannelSubscriptions
from plimsoll.core.client import Answered, PublisherPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT p.kind, r._row AS number FROM parameters p JOIN r ON r.kind = p.kind ORDER BY number"
DEADLINE_SECONDS = 300.0


class AcceptingPublisher:
    """Accepts at once, and notes what it was given."""

    def __init__(self, log: list[dict[str, Any]], on_answer: Callable[[list[Answered]], None], number: int) -> None:
        self._log, self._on_answer, self._number = log, on_answer, number
        self.is_open = True

    @property
    def position(self) -> PublisherPosition:
        return PublisherPosition(1, self._number, self._number, "h", 1)

    def publish(self, attributes: Mapping[str, Any], payload: bytes = b"") -> None:
        self._log.append(dict(attributes))
        self._number += 1
        self._on_answer([Answered(self._number, self._number, "accepted", 1, self._number)])

    def flush(self, timeout: float | None = None) -> None: ...
    def close(self, timeout: float = 0.0) -> None: ...


class WatchedRunner(ChannelRunner):
    """Tells its test of each step, and of what it says of itself."""

    stepped: threading.Condition

    def _step(self) -> float:
        try:
            return super()._step()
        finally:
            self._notify()

    def _tell(self, state: str, message: str) -> None:
        super()._tell(state, message)
        self._notify()

    def _notify(self) -> None:
        with self.stepped:
            self.stepped.notify_all()


class Stand:
    """A feed, the parameters in force, and channels over it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.feed = RecordedFeed(folder / "reports")
        self.asked: dict[str, ChannelSubscriptions] = {}
        self.log: list[dict[str, Any]] = []
        self.failed: list[Exception] = []
        self.runners: list[ChannelRunner] = []
        self.stepped = threading.Condition()

    def channel(
        self, name: str, query: str = QUERY, every_seconds: float | None = None, tables: tuple[TableView, ...] = (),
        feed: str = "reports",
    ) -> ChannelRunner:  # fmt: skip
        self.asked.setdefault(name, ChannelSubscriptions())
        view = FeedView("r", feed, str(self.feed.root))
        channel = ChannelDefinition(
            name, (ChannelParameter("kind", "String"),), (view,), query, tables, every_seconds=every_seconds
        )
        query_of = ChannelQuery(self.spark, channel, StoreCopies(self.folder / "copies" / name))
        made = WatchedRunner(
            query_of, channel, self.folder / name, self._opened, lambda one: self.asked[one.name], 10_000,
            self.folder / "checkpoints" / name, self._note_failed,
        )  # fmt: skip
        made.stepped = self.stepped
        self.runners.append(made)
        made.start()
        return made

    def _opened(
        self, position: PublisherPosition | None, unanswered: Sequence[Any], away: float,
        on_answer: Callable[[list[Answered]], None],
    ) -> AcceptingPublisher:  # fmt: skip
        assert not unanswered
        return AcceptingPublisher(self.log, on_answer, position.number if position is not None else 0)

    def ask(self, channel: str, *kinds: str) -> None:
        self.asked[channel] = ChannelSubscriptions(frozenset((kind,) for kind in kinds))

    def _note_failed(self, error: Exception) -> None:
        with self.stepped:
            self.failed.append(error)
            self.stepped.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, which each step of a channel may fulfil."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        with self.stepped:
            while not condition():
                left = deadline - time.monotonic()
                assert left > 0, [each.figures() for each in self.runners]
                self.stepped.wait(left)
                for runner in self.runners:
                    runner.save()

    def published(self, channel: str) -> list[tuple[str, int]]:
        return [(each["kind"], each["number"]) for each in self.log if each["channel"] == channel]

    def close(self) -> None:
        for runner in self.runners:
            runner.close()
        self.feed.close()


@pytest.fixture
def stand(spark: SparkSession, tmp_path: Path) -> Iterator[Stand]:
    made = Stand(spark, tmp_path)
    yield made
    made.close()


def row_sums(figures: ChannelFigures) -> tuple[int, int, int, int]:
    return figures.rows_in, figures.rows_used, figures.late_rows, figures.invalid_rows


@pytest.mark.sweep
def test_channels_share_a_spark_and_one_that_fails_does_not_stop_the_other(stand: Stand) -> None:
    stand.feed.record([{"kind": "fire"}])
    good = stand.channel("good")
    bad = stand.channel("bad", QUERY.replace("r._row", "r._row / (r.severity - 1) AS ratio, r._row"))
    idle = stand.channel("idle", "SELECT kind, int(raise_error('computed')) AS one FROM parameters JOIN r USING (kind)")
    stand.ask("good", "fire")
    stand.ask("bad", "fire")
    stand.until(lambda: {each.figures().state for each in stand.runners} == {"ChannelRunning"})
    stand.feed.record([{"kind": "fire", "severity": 1.0}, {"kind": 3}, {"kind": "flood"}])
    stand.until(lambda: good.figures().rows_in == 3)
    stand.until(lambda: bad.figures().state == "BatchFailed")
    assert "DIVIDE_BY_ZERO" in bad.figures().message
    stand.until(lambda: bool(stand.published("good")))
    assert stand.published("good") == [("fire", 2)], "a channel begins with what comes after it"
    stand.ask("good", "fire", "flood")
    stand.feed.record([{"kind": "flood"}, {"kind": "storm"}])
    stand.until(lambda: good.figures().rows_in == 5)
    stand.until(lambda: stand.published("good") == [("fire", 2), ("flood", 5)])
    assert row_sums(good.figures()) == (5, 4, 0, 1)
    assert bad.figures().rows_in == 0, "a batch that fails is tried again, and consumes nothing"
    stand.until(lambda: idle.figures().rows_in == 5)
    assert (idle.figures().state, row_sums(idle.figures())) == ("ChannelRunning", (5, 4, 0, 1)), "not subscribed to"
    assert stand.failed == []


@pytest.mark.sweep
def test_a_repetitive_channel_has_a_batch_in_each_period_and_a_later_life_goes_on(stand: Stand) -> None:
    first = stand.channel("one", every_seconds=1.0)
    stand.ask("one", "fire")
    stand.feed.record([{"kind": "fire"}])
    stand.until(lambda: first.figures().results == 1)
    began, batch = time.time(), first.figures().batch
    stand.until(lambda: first.figures().batch >= batch + 3)
    assert first.figures().batch - batch <= time.time() - began + 2
    told = first.figures()
    assert told.periods_kept + told.periods_late >= told.batch - 1, "one that is under way is not counted yet"
    assert told.late_milliseconds >= 0
    stand.runners.remove(first)
    first.close()
    last = first.figures().batch
    stand.feed.record([{"kind": "fire"}])
    second = stand.channel("one", every_seconds=1.0)
    stand.until(lambda: second.figures().accepted_results == 2)
    assert stand.published("one") == [("fire", 1), ("fire", 2)]
    assert stand.log[1]["batch"] > last


class ScriptedQuery:
    """Answers a batch without Spark: the kinds that are new rows, of those that are asked for."""

    def run(self, parameters: Iterable[tuple[Any, ...]], new: Any, kept: object) -> list[dict[str, Any]]:
        asked = {kind for (kind,) in parameters}
        return [{"kind": kind, "number": number} for number, kind in enumerate(new) if kind in asked]


class ScriptedLife:
    """One life of the driver with one channel, whose batches the test makes."""

    def __init__(self, folder: Path, *asked: str) -> None:
        self.log: list[dict[str, Any]] = []
        channel = ChannelDefinition(
            "one", (ChannelParameter("kind", "String"),), (FeedView("r", "reports", str(folder / "reports")),), QUERY
        )
        self.ask(*asked)
        query: Any = ScriptedQuery()
        self.runner = ChannelRunner(
            query, channel, folder / "one", self._opened, lambda one: self.asked, 10_000, folder / "checkpoints", print
        )
        self._at = StreamOffset({"reports": 0}, 0)

    def _opened(self, position: PublisherPosition | None, unanswered: object, away: float,
                on_answer: Callable[[list[Answered]], None]) -> AcceptingPublisher:  # fmt: skip
        return AcceptingPublisher(self.log, on_answer, position.number if position is not None else 0)

    def ask(self, *kinds: str) -> None:
        self.asked = ChannelSubscriptions(frozenset((kind,) for kind in kinds))

    def batch(self, *kinds: str, is_cut: bool = False) -> list[str]:
        """What is published of these new rows."""
        before = len(self.log)
        rows: Any = kinds  # a frame of Spark, for the scripted query
        end = StreamOffset({"reports": self._at.places["reports"] + len(kinds)}, 0, is_cut=is_cut)
        self.runner._on_batch(rows, self._at, end)
        self._at = end
        return [each["kind"] for each in self.log[before:]]

    @property
    def told(self) -> tuple[int, str]:
        """The unasked results, and what the message says behind those of the batch."""
        figures = self.runner.figures()
        return figures.unasked_results, figures.message.partition("; ")[2]


def test_results_for_parameters_that_were_dropped_while_no_driver_ran_are_counted_and_said(tmp_path: Path) -> None:
    first = ScriptedLife(tmp_path, "fire", "flood", "storm")
    assert first.batch("storm", "quake") == ["storm"]
    first.ask("fire", "flood")
    assert first.batch("storm") == []
    assert first.told == (0, ""), "its subscriber has withdrawn while the driver ran"
    first.runner.close()

    second = ScriptedLife(tmp_path, "fire")
    assert second.batch("fire", "flood", "flood", "storm", is_cut=True) == ["fire"]
    said = "results for parameters that were dropped while no driver ran"
    assert second.told == (2, f"2 {said}")
    assert second.batch("flood", "fire") == ["fire"]
    assert second.batch("flood") == []
    assert second.told == (3, f"3 {said}"), "the rows behind a full batch came while no driver ran, too"
    second.runner.close()

    third = ScriptedLife(tmp_path)
    assert third.batch("fire", "flood") == [], "nobody asks for anything, and the query runs all the same"
    assert third.told == (4, f"1 {said}")
    third.ask("flood")
    assert third.batch("fire", "flood") == ["flood"]
    assert third.told == (4, f"1 {said}"), "the message stays as long as this life"
    third.ask("fire")
    assert third.batch("flood") == []
    assert third.told == (4, f"1 {said}"), "this one was dropped while the driver ran"
    third.runner.close()

    fourth = ScriptedLife(tmp_path)
    fourth.runner._on_nothing()
    assert fourth.batch("fire") == []
    assert fourth.told == (4, ""), "it came after this life had begun"
    fourth.runner.close()


def test_parameters_of_a_former_definition_are_not_taken_for_dropped_ones(tmp_path: Path) -> None:
    life = ScriptedLife(tmp_path)
    life.runner._parameters_before = (("fire", 1), (7,), ("fire",), ("flood",))
    assert life.runner._dropped(frozenset([("flood",)])) == {("fire",)}
    life.runner.close()


def test_a_feed_without_a_schema_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    stand = Stand(spark, tmp_path)
    stand.feed.close()
    stand.feed.root = tmp_path / "nothing"
    one = stand.channel("one")
    stand.until(lambda: one.figures().state == "FeedNotRecorded")
    assert one.figures().batch == 0
    one.close()


@pytest.mark.sweep
def test_a_table_that_is_gone_for_a_while_and_a_query_that_is_wrong_for_a_while_stop_no_channel(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "CHECK_SECONDS", 0.1)
    table = tmp_path / "ranks.csv"
    query = "SELECT p.kind, r._row AS number, t.rank FROM parameters p JOIN r USING (kind) JOIN t USING (kind)"
    table.write_text("kind,rank\nfire,7\n")
    one = stand.channel("one", query, tables=(TableView("t", str(table), "Csv"),))
    stand.ask("one", "fire")
    stand.until(lambda: one.figures().message == "no batch is due")
    table.unlink()
    stand.feed.record([{"kind": "fire"}])
    stand.until(lambda: one.figures().state == "BatchFailed")
    assert "ranks.csv" in one.figures().message
    table.write_text("kind,order\nfire,7\n")
    stand.until(lambda: one.figures().state == "QueryInvalid")
    table.write_text("kind,rank\nfire,8\n")
    stand.until(lambda: bool(stand.log))
    assert [(each["number"], each["rank"]) for each in stand.log] == [(1, 8)]
    assert stand.failed == []


def test_a_channel_that_has_nothing_to_do_runs_again_once_what_had_failed_is_mended(stand: Stand) -> None:
    one = stand.channel("one")
    stand.until(lambda: one.figures().message == "no batch is due")
    reports = stand.folder / "reports"
    away = reports.rename(stand.folder / "away")
    stand.until(lambda: one.figures().state in ("BatchFailed", "FeedNotRecorded"))
    away.rename(reports)
    stand.until(lambda: one.figures().state == "ChannelRunning")
    assert one.figures().rows_in == 0


@pytest.mark.sweep
def test_a_batch_that_is_due_while_no_driver_runs_is_made_by_the_next_and_a_large_one_in_parts(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "StreamRequest", partial(StreamRequest, most_rows=2))
    stand.ask("one", "fire")
    channel = stand.folder / "one"
    ledger = ChannelLedger(channel)
    ledger.commit(first_commit({"reports": 0}, round((time.time() - 2 * 86_400) * 1e6)))
    ledger.close()
    stand.feed.record([{"kind": "fire"}] * 5)
    one = stand.channel("one", every_seconds=86_400.0)
    stand.until(lambda: one.figures().rows_in == 5)
    assert (one.figures().batch, stand.published("one")) == (3, [("fire", number) for number in range(1, 6)])
    assert one.figures().periods_kept + one.figures().periods_late == 1
    one.close()
    stand.runners.remove(one)
    stand.feed.record([{"kind": "fire"}])
    again = stand.channel("one", every_seconds=86_400.0)
    stand.until(lambda: again.figures().message == "no batch is due")
    assert again.figures().batch == 3, "this period has had its batch"


@pytest.mark.sweep
def test_a_channel_of_this_name_over_another_feed_begins_with_what_is_recorded_from_then_on(stand: Stand) -> None:
    stand.feed.record([{"kind": "fire"}])
    first = stand.channel("one", feed="alarms")
    stand.until(lambda: first.figures().message == "no batch is due")
    first.close()
    stand.runners.remove(first)
    stand.feed.record([{"kind": "fire"}])
    second = stand.channel("one")
    stand.ask("one", "fire")
    stand.feed.record([{"kind": "fire"}])
    stand.until(lambda: bool(stand.log))
    assert stand.published("one") == [("fire", 3)]
    assert second.figures().rows_in == 1


def test_a_channel_whose_query_cannot_be_stopped_still_gives_its_ledger_back(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stand.channel("one")
    stand.until(lambda: one.figures().message == "no batch is due")
    stop = ChannelStream.stop

    def failing(stream: ChannelStream) -> None:
        stop(stream)
        raise ConnectionError

    monkeypatch.setattr(ChannelStream, "stop", failing)
    with pytest.raises(ConnectionError):
        one.close()
    stand.runners.remove(one)
    ChannelLedger(stand.folder / "one").close()
