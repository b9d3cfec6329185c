"""How long a source would take, and whether the log waits so long."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.session import EdgeView, EngineSettings, HeadView
from plimsoll.core.session.request.handover_method import choose_method, log_retention_seconds, predicted_drain_seconds


def edge(bandwidth: float | None = None, **report: Any) -> EdgeView:
    return EdgeView("a", "c", "h", report=report, output_bytes_per_second=bandwidth)


def head(seconds: float) -> HeadView:
    return HeadView("h", "c", 1, report={"log_limit_bytes": 1e6, "log_bytes_per_second": 1e6 / seconds})


@pytest.mark.parametrize(
    ("view", "seconds"),
    [
        (edge(), 0.0),
        (edge(input_queue_delay_seconds=1.5, match_delay_seconds=0.25), 1.75),
        (edge(output_queue_delay_seconds=3.0), 3.0),
        (edge(1000.0, output_queue_bytes=5000), 5.0),
        (edge(1000.0, output_queue_bytes=5000, output_queue_delay_seconds=6.0), 6.0),
        (edge(None, output_queue_bytes=5000, output_bytes_per_second=500.0), 10.0),
        (edge(None, output_queue_bytes=5000), 0.0),
        (edge(input_queue_delay_seconds=float("nan"), match_delay_seconds="x", output_queue_delay_seconds=True), 0.0),
    ],
)
def test_what_a_source_has_to_deliver(view: EdgeView, seconds: float):
    assert predicted_drain_seconds(view) == pytest.approx(seconds)


def test_how_long_a_log_lasts():
    assert log_retention_seconds(head(40.0)) == pytest.approx(40.0)
    assert log_retention_seconds(HeadView("h", "c", 1, report={"log_limit_bytes": 5})) == float("inf")


SLOW = edge(input_queue_delay_seconds=10.0)  # catching up takes 2 + 2 x 10 s, and twice that is asked of the log


@pytest.mark.parametrize(
    ("handover", "view", "log", "across", "expected"),
    [
        ("Auto", edge(), 100.0, False, (False, False)),
        ("Auto", edge(input_queue_delay_seconds=2.0), 100.0, False, (False, False)),
        ("Auto", SLOW, 100.0, False, (True, False)),
        ("Auto", SLOW, 44.1, False, (True, False)),
        ("Auto", SLOW, 43.9, False, (False, False)),
        ("Auto", SLOW, 100.0, True, (False, False)),
        ("Auto", edge(input_utilization=0.99), 100.0, False, (False, False)),
        ("Auto", edge(input_utilization=1.0), 100.0, False, (True, False)),
        ("Auto", edge(input_utilization=1.0), 100.0, True, (False, False)),
        ("Drain", edge(input_utilization=1.0), 100.0, False, (False, False)),
        ("Drain", SLOW, 100.0, False, (False, False)),
        ("Replay", edge(), 100.0, False, (True, False)),
        ("Replay", SLOW, 43.9, False, (True, True)),
        ("Replay", edge(), 100.0, True, (True, True)),
    ],
)
def test_the_choice(handover: str, view: EdgeView, log: float, across: bool, expected: tuple[bool, bool]):
    choice = choose_method(handover, view, head(log), EngineSettings(), across=across)
    assert (choice.replay, choice.refused) == expected
    assert choice.why


def test_the_limit_is_on_the_fleets_clock():
    view = edge(input_queue_delay_seconds=15.0)
    assert choose_method("Auto", view, head(1e6), EngineSettings(), across=False).replay
    assert not choose_method("Auto", view, head(1e6), EngineSettings(time_factor=10.0), across=False).replay


def test_a_log_that_lasts_exactly_as_long_as_is_asked_of_it_is_long_enough():
    view = HeadView("h", "c", 1, report={"log_limit_bytes": 88, "log_bytes_per_second": 2})
    assert log_retention_seconds(view) == 44.0
    assert choose_method("Auto", SLOW, view, EngineSettings(), across=False).replay
    assert not choose_method("Replay", SLOW, view, EngineSettings(), across=False).refused


def test_a_log_into_which_little_comes_is_not_without_end():
    assert (
        log_retention_seconds(HeadView("h", "c", 1, report={"log_limit_bytes": 5, "log_bytes_per_second": 0.5})) == 10.0
    )


@pytest.mark.parametrize(
    ("handover", "view", "across", "why"),
    [
        ("Auto", edge(), False, "a needs 0.0 s"),
        ("Auto", SLOW, True, "between clusters"),
        ("Drain", SLOW, False, "as requested"),
        ("Drain", SLOW, True, "as requested"),
        ("Replay", SLOW, False, "as requested"),
        ("Auto", SLOW, False, "a would need 10.0 s"),
        ("Auto", edge(input_utilization=1.0), False, "a receives more than it can take in"),
    ],
)
def test_it_is_said_why(handover: str, view: EdgeView, across: bool, why: str):
    assert choose_method(handover, view, head(100.0), EngineSettings(), across=across).why.startswith(why)
