"""Which load of an edge is believed, with which model of its matching delay, and on whose clock."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.balanced import POLICY

from plimsoll.core.policies.match_delay import Fitted
from plimsoll.core.session import EdgeView, Session, Settings, View
from plimsoll.core.session.loads import (
    answer_seconds,
    is_since,
    load,
    loads_of,
    policy_of,
    reported,
    settle_seconds,
    spec_of,
)
from plimsoll.core.session.states import Answer
from plimsoll.core.session.turn import Turn
from plimsoll.core.spec.kinds import PolicySpec
from plimsoll.core.spec.parsing import block

LINE = {
    "match_base_seconds": 0.25, "match_seconds_per_match": 0.5, "input_rate": 10.0, "output_rate": 40.0,
}  # fmt: skip


def turn_with(
    report: dict[str, Any] | None = None, *, estimation: dict[str, Any] | None = None, factor: float = 1.0
) -> Turn:
    """At 100 s; edge a has reported so, and its cluster has a policy if an estimation is given."""
    turn = Turn(3, Settings(time_factor=factor))
    turn.now = 100.0
    edges = {"a": EdgeView("a", "c", "h", report=report or {}, output_bytes_per_second=1000.0)}
    known = {} if estimation is None else {"c": block(PolicySpec, {**POLICY, "estimation": estimation})}
    turn.view = View({}, edges, known)
    return turn


def report(**fields: Any) -> dict[str, Any]:
    return {"broker": "a", "input_utilization": 0.5, **fields}


def answered(turn: Turn, at: float, **fields: Any) -> Turn:
    turn.states.answers["a"] = Answer("s", "ASK", "OK", report(**fields), at)
    return turn


def believed(turn: Turn) -> float | None:
    found = load(turn, "a")
    return None if found is None else found.input_utilization


def test_an_answer_counts_as_long_as_it_is_recent():
    for at, expected in ((100.0, 0.9), (85.0, 0.9), (84.9, 0.5), (10.0, 0.5)):
        assert believed(answered(turn_with(report()), at, input_utilization=0.9)) == expected, at


@pytest.mark.parametrize(
    ("age", "interval", "at", "expected"),
    [(1.0, 4.0, 95.0, True), (1.0, 4.0, 95.1, False), (0.0, 0.0, 100.0, True), (0.0, 0.0, 100.1, False)],
)
def test_of_when_a_report_is(age: float, interval: float, at: float, expected: bool):
    """It came `age` seconds before the view of 100 s, and is of the `interval` before that."""
    turn = turn_with()
    turn.viewed_at = 100.0
    edge = EdgeView("a", "c", "h", report=report(interval_seconds=interval), report_age_seconds=age)
    turn.view = View({}, {"a": edge})
    assert is_since(turn, "a", at) is expected


def test_what_has_not_been_reported_is_of_no_time():
    turn = turn_with()
    turn.viewed_at = 100.0
    assert not is_since(turn, "a", 0.0)
    assert not is_since(turn, "b", 0.0)
    assert not is_since(turn_with(report(interval_seconds="x")), "a", 0.0)
    turn.view = None
    assert not is_since(turn, "a", 0.0)
    assert reported(turn, "a") is None


def test_what_is_reported_is_not_what_has_been_answered():
    turn = answered(turn_with(report()), 100.0, input_utilization=0.9)
    found = reported(turn, "a")
    assert found is not None
    assert found.input_utilization == 0.5


def test_without_answer_and_report_nothing_is_known():
    assert believed(turn_with()) is None
    assert believed(answered(turn_with(), 10.0)) is None, "what it said long ago is no more"
    turn = turn_with(report())
    assert load(turn, "b") is None
    turn.view = None
    assert believed(turn) is None
    assert spec_of(turn, "a") is None
    assert policy_of(turn, "a") is None
    assert believed(answered(turn, 100.0)) == 0.5


def test_what_cannot_be_is_as_good_as_nothing():
    assert believed(turn_with({"broker": ""})) is None
    assert believed(turn_with(report(input_utilization="x"))) is None
    assert believed(turn_with(report(balanced_set=7))) is None


def test_the_bandwidth_is_that_of_the_edge():
    found = load(turn_with(report(bandwidth_bytes_per_second=5.0)), "a")
    assert found is not None
    assert found.bandwidth == 1000.0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (LINE, Fitted(0.25, 0.5, 4.0)),
        ({**LINE, "match_base_seconds": 0}, Fitted(0.0, 0.5, 4.0)),
        ({**LINE, "match_seconds_per_match": 0}, Fitted(0.25, 0.0, 4.0)),
        ({**LINE, "output_rate": 0}, Fitted(0.25, 0.5, 0.0)),
        ({**LINE, "input_rate": 0}, None),
        *(({name: value for name, value in LINE.items() if name != gone}, None) for gone in LINE),
        ({**LINE, "match_base_seconds": "x"}, None),
    ],
)
def test_the_line_that_a_broker_has_fitted(given: dict[str, Any], expected: Fitted | None):
    found = load(turn_with(report(**given), estimation={"matchDelay": "Fitted"}), "a")
    assert found is not None
    assert found.delay == expected


@pytest.mark.parametrize("estimation", [None, {"matchDelay": "Linear"}])
def test_a_line_is_asked_for_by_the_policy(estimation: dict[str, Any] | None):
    found = load(turn_with(report(**LINE), estimation=estimation), "a")
    assert found is not None
    assert found.delay is None


def session(**fields: Any) -> Session:
    given = Session(uid="u", name="n", requested_at=0.0, queued_at=0.0, phase_at=0.0, deadline_at=9.0, sources=["a"])
    return replace(given, **fields)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_session_settles_as_long_as_its_policy_says(factor: float):
    turn = turn_with(estimation={}, factor=factor)
    assert settle_seconds(turn, session(by_policy=True)) == 4.0 * factor
    assert settle_seconds(turn, session()) == 3.0 * factor
    assert settle_seconds(turn_with(factor=factor), session(by_policy=True)) == 3.0 * factor, "the policy is gone"


def test_machines_answer_no_faster_on_a_faster_clock():
    assert [answer_seconds(turn_with(factor=factor)) for factor in (2.0, 1.0, 0.1)] == [6.0, 3.0, 1.0]


def test_loads_as_they_are_stored():
    found = load(
        turn_with(report(input_utilization=0.543219, output_utilization=0.123456, match_delay_seconds=0.0012345678)),
        "a",
    )
    assert found is not None
    stored = loads_of(found)
    assert (stored.input, stored.output, stored.match_seconds) == (0.5432, 0.1235, 0.001235)
