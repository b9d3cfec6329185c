"""When a recorder commits, and that its position never runs ahead of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.feeds.publications import START_US, ScriptedSource, stock

from plimsoll.client import GapNotice
from plimsoll.core.protocol.messages import Gap
from plimsoll.feeds.commit_log import read_state
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.recorder import IDLE_COMMIT_SECONDS, INFER_SECONDS, CommitLimits, FeedRecorder, record_until

SUBSCRIPTION = "[class,=,'STOCK']"


class Clock:
    """Seconds and microseconds that the test sets."""

    seconds = 100.0

    def us(self) -> int:
        return START_US + round(self.seconds * 1e6)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def new_recorder(root: Path, source: ScriptedSource, clock: Clock, **limits: float) -> FeedRecorder:
    made = CommitLimits(**limits)  # type: ignore[arg-type]  # whole numbers are given for rows
    return FeedRecorder(source, FeedDataset(root, SUBSCRIPTION), made, clock=clock.us, monotonic=lambda: clock.seconds)


def test_the_position_is_committed_before_anything_has_come(tmp_path: Path, clock: Clock) -> None:
    recorder = new_recorder(tmp_path, ScriptedSource([], ("head", 1, 0)), clock)
    recorder.start()
    assert recorder.dataset.position[0] == ("head", 1, 0)
    recorder.dataset.close()


def test_a_commit_is_due_by_rows_or_by_time(tmp_path: Path, clock: Clock) -> None:
    published = [stock(number) for number in range(1, 121)]
    source = ScriptedSource(published, ("head", 1, 0), most=60)
    recorder = new_recorder(tmp_path, source, clock, seconds=2.0, rows=100)
    recorder.start()
    recorder.step()
    assert recorder.commits == 1, "60 rows wait"
    recorder.step()
    assert recorder.commits == 2
    assert recorder.dataset.counts.rows == 120
    published.append(stock(121))
    recorder.step()
    clock.seconds += 1.9
    recorder.step()
    assert recorder.commits == 2
    clock.seconds += 0.2
    recorder.step()
    assert recorder.dataset.counts.rows == 121
    recorder.dataset.close()


def test_a_schema_is_inferred_from_more_than_the_first(tmp_path: Path, clock: Clock) -> None:
    published = [stock(1)]
    recorder = new_recorder(tmp_path, ScriptedSource(published, ("head", 1, 0)), clock, seconds=1.0)
    recorder.start()
    recorder.step()
    clock.seconds += INFER_SECONDS - 1
    published.append(stock(2, late=True))
    recorder.step()
    assert recorder.dataset.schema is None
    clock.seconds += 1.5
    recorder.step()
    assert recorder.dataset.schema is not None
    assert "late" in [each.name for each in recorder.dataset.schema.columns]
    recorder.dataset.close()


def test_an_idle_feed_keeps_its_position_young(tmp_path: Path, clock: Clock) -> None:
    source = ScriptedSource([], ("head", 1, 0))
    recorder = new_recorder(tmp_path, source, clock)
    recorder.start()
    clock.seconds += IDLE_COMMIT_SECONDS
    recorder.step()
    assert recorder.commits == 1, "the position is the same"
    source.token = ("head", 1, 9_000)
    source.published = [stock(number) for number in range(1, 9_001)]
    recorder.step()
    assert recorder.dataset.position[0] == ("head", 1, 9_000)
    recorder.dataset.close()


def test_gaps_are_counted_and_told(tmp_path: Path, clock: Clock) -> None:
    source = ScriptedSource([], ("head", 1, 0))
    recorder = new_recorder(tmp_path, source, clock, seconds=1.0)
    recorder.start()
    gap = GapNotice(Gap(head="head", low_epoch=1, low=3, epoch=1, high=5, last=[], reason="log"), 0.0)
    recorder.source = type("Gaps", (), {
        "receive_many": lambda self, most, timeout: [gap], "token": ("head", 1, 5), "watermarks": [],
    })()  # fmt: skip
    recorder.step()
    recorder.commit()
    state = read_state(tmp_path)
    assert state.last is not None
    assert (state.last.counts.gaps, state.last.gaps) == (1, ("head 1:3 to 1:5: log",))
    recorder.dataset.close()


def test_what_waits_is_committed_at_the_end(tmp_path: Path, clock: Clock) -> None:
    source = ScriptedSource([stock(number) for number in range(1, 8)], ("head", 1, 0))
    recorder = new_recorder(tmp_path, source, clock)
    rounds = iter([False, False, True])
    record_until(recorder, lambda: next(rounds))
    assert recorder.dataset.counts.rows == 7
    assert recorder.dataset.position[0] == ("head", 1, 7)
    recorder.dataset.close()
