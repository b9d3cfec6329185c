"""Which load of an edge is believed, with which model of its matching delay, and on whose clock."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.balanced import POLICY

from plimsoll.core.policies.model.delay_choice import CarefulMatchDelay
from plimsoll.core.policies.model.match_delay import FittedMatchDelay, MatchDelayModel, SubscriptionMatchDelay
from plimsoll.core.session import EdgeView, EngineSettings, FleetView, HeadView, Session
from plimsoll.core.session.context.edge_loads import load_figures_of
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.reservations import AnsweredReservation
from plimsoll.core.spec.kinds import PolicySpec
from plimsoll.core.spec.parser import parse_block

LINE = {
    "match_base_seconds": 0.25, "match_seconds_per_match": 0.5, "input_rate": 10.0, "output_rate": 40.0,
}  # fmt: skip


BY_SUBSCRIPTIONS = {"match_subscription_base_seconds": 0.1, "match_seconds_per_subscription": 0.01, "subscriptions": 30}


def context_with(
    report: dict[str, Any] | None = None, *, estimation: dict[str, Any] | None = None, factor: float = 1.0
) -> EngineContext:
    """At 100 s; edge a has reported so, and its cluster has a policy if an estimation is given."""
    context = EngineContext(3, EngineSettings(time_factor=factor))
    context.outbox.now = 100.0
    edges = {"a": EdgeView("a", "c", "h", report=report or {}, output_bytes_per_second=1000.0)}
    known = {} if estimation is None else {"c": parse_block(PolicySpec, {**POLICY, "estimation": estimation})}
    context.fleet = FleetView({}, edges, known)
    return context


def report(**fields: Any) -> dict[str, Any]:
    return {"broker": "a", "input_utilization": 0.5, **fields}


def answered(context: EngineContext, at: float, **fields: Any) -> EngineContext:
    context.reservations.answered["a"] = AnsweredReservation("s", "OK", report(**fields), at)
    return context


def believed(context: EngineContext) -> float | None:
    found = context.loads.current("a")
    return None if found is None else found.input_utilization


def test_an_answer_counts_as_long_as_it_is_recent():
    for at, expected in ((100.0, 0.9), (85.0, 0.9), (84.9, 0.5), (10.0, 0.5)):
        assert believed(answered(context_with(report()), at, input_utilization=0.9)) == expected, at


@pytest.mark.parametrize(
    ("age", "interval", "at", "expected"),
    [(1.0, 4.0, 95.0, True), (1.0, 4.0, 95.1, False), (0.0, 0.0, 100.0, True), (0.0, 0.0, 100.1, False)],
)
def test_of_when_a_report_is(age: float, interval: float, at: float, expected: bool):
    """It came `age` seconds before the view of 100 s, and is of the `interval` before that."""
    context = context_with()
    context.fleet_observed_at = 100.0
    edge = EdgeView("a", "c", "h", report=report(interval_seconds=interval), report_age_seconds=age)
    context.fleet = FleetView({}, {"a": edge})
    assert context.loads.is_reported_since("a", at) is expected


def test_what_has_not_been_reported_is_of_no_time():
    context = context_with()
    context.fleet_observed_at = 100.0
    assert not context.loads.is_reported_since("a", 0.0)
    assert not context.loads.is_reported_since("b", 0.0)
    assert not context_with(report(interval_seconds="x")).loads.is_reported_since("a", 0.0)
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert not context.loads.is_reported_since("a", 0.0)
    assert context.loads.reported("a") is None


def test_what_is_reported_is_not_what_has_been_answered():
    context = answered(context_with(report()), 100.0, input_utilization=0.9)
    found = context.loads.reported("a")
    assert found is not None
    assert found.input_utilization == 0.5


def test_without_answer_and_report_nothing_is_known():
    assert believed(context_with()) is None
    assert believed(answered(context_with(), 10.0)) is None, "what it said long ago is no more"
    context = context_with(report())
    assert context.loads.current("b") is None
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert believed(context) is None
    assert context.fleet.policy_of("a") is None
    assert context.loads.policy_of("a") is None
    assert believed(answered(context, 100.0)) == 0.5


def test_what_cannot_be_is_as_good_as_nothing():
    assert believed(context_with({"broker": ""})) is None
    assert believed(context_with(report(input_utilization="x"))) is None
    assert believed(context_with(report(balanced_set=7))) is None


def test_the_bandwidth_is_that_of_the_edge():
    found = context_with(report(bandwidth_bytes_per_second=5.0)).loads.current("a")
    assert found is not None
    assert found.bandwidth == 1000.0


def test_a_head_has_a_load_as_well_and_its_input_is_its_downlink():
    context = context_with()
    said = {
        "broker": "h",
        "input_utilization": 0.1,
        "downlink_utilization": 0.5,
        "publishers_open": 3,
        "subscribers": 70,
    }
    context.fleet = FleetView({"h": HeadView("h", "c", 1, report={**said, "interval_seconds": 2.0})})
    context.fleet_observed_at = 100.0
    found = context.loads.reported("h")
    assert found is not None
    assert (found.input_utilization, found.subscribers) == (0.5, 3)
    assert [context.loads.is_reported_since("h", at) for at in (98.0, 98.5)] == [True, False]
    context.fleet = FleetView({"h": HeadView("h", "c", 1, report={"broker": "h", "publishers_open": "x"})})
    assert context.loads.reported("h") is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (LINE, FittedMatchDelay(0.25, 0.5, 4.0)),
        ({**LINE, "match_base_seconds": 0}, FittedMatchDelay(0.0, 0.5, 4.0)),
        ({**LINE, "match_seconds_per_match": 0}, FittedMatchDelay(0.25, 0.0, 4.0)),
        ({**LINE, "output_rate": 0}, FittedMatchDelay(0.25, 0.5, 0.0)),
        ({**LINE, "input_rate": 0}, None),
        *(({name: value for name, value in LINE.items() if name != gone}, None) for gone in LINE),
        ({**LINE, "match_base_seconds": "x"}, None),
    ],
)
def test_the_line_that_a_broker_has_fitted(given: dict[str, Any], expected: FittedMatchDelay | None):
    found = context_with(report(**given), estimation={"matchDelay": "Fitted"}).loads.current("a")
    assert found is not None
    assert found.delay == expected


@pytest.mark.parametrize("estimation", [None, {"matchDelay": "Linear"}])
def test_a_line_is_asked_for_by_the_policy(estimation: dict[str, Any] | None):
    found = context_with(report(**LINE, **BY_SUBSCRIPTIONS), estimation=estimation).loads.current("a")
    assert found is not None
    assert found.delay is None


@pytest.mark.parametrize(
    ("grows_with", "expected"),
    [
        ("Subscriptions", SubscriptionMatchDelay(0.1, 0.01, 30)),
        ("Matches", FittedMatchDelay(0.25, 0.5, 4.0)),
        ("", CarefulMatchDelay((SubscriptionMatchDelay(0.1, 0.01, 30), FittedMatchDelay(0.25, 0.5, 4.0)))),
    ],
)
def test_what_was_measured_is_believed_by_default(grows_with: str, expected: MatchDelayModel):
    said = report(**LINE, **BY_SUBSCRIPTIONS, match_delay_grows_with=grows_with)
    found = context_with(said, estimation={}).loads.current("a")
    assert found is not None
    assert found.delay == expected
    by_the_paper = context_with(said, estimation={"matchDelay": "Linear"}).loads.current("a")
    assert by_the_paper is not None
    assert by_the_paper.delay is None  # eq. 4


def session(**fields: Any) -> Session:
    given = Session(uid="u", name="n", requested_at=0.0, queued_at=0.0, phase_at=0.0, deadline_at=9.0, sources=["a"])
    return replace(given, **fields)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_session_settles_as_long_as_its_policy_says(factor: float):
    context = context_with(estimation={}, factor=factor)
    assert context.loads.settle_seconds(session(kind="balance")) == 4.0 * factor
    assert context.loads.settle_seconds(session()) == 3.0 * factor
    assert context_with(factor=factor).loads.settle_seconds(session(kind="balance")) == 3.0 * factor, (
        "the policy is gone"
    )


def test_machines_answer_no_faster_on_a_faster_clock():
    assert [context_with(factor=factor).loads.answer_seconds for factor in (2.0, 1.0, 0.1)] == [6.0, 3.0, 1.0]


def test_loads_as_they_are_stored():
    found = context_with(
        report(input_utilization=0.543219, output_utilization=0.123456, match_delay_seconds=0.0012345678)
    ).loads.current("a")
    assert found is not None
    stored = load_figures_of(found)
    assert (stored.input, stored.output, stored.match_seconds) == (0.5432, 0.1235, 0.001235)
