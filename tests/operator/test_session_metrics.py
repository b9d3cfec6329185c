"""Metrics of sessions: each attempt is counted once, even if it is stored again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from tests.core.session.model import Faults, World

from plimsoll.core.session import Session
from plimsoll.core.session.batch import AuditTotals, Batch
from plimsoll.core.session.session_plan import Forecast, PlannedPair, SessionPlan
from plimsoll.core.session.state import ChildSession, PastAttempt
from plimsoll.operator.session_metrics import SessionMetrics


class Counted:
    """The metrics, and the samples that Prometheus would read."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = SessionMetrics(self.registry)

    def __getitem__(self, key: str | tuple[str, dict[str, str]]) -> float:
        name, labels = key if isinstance(key, tuple) else (key, {})
        return self.registry.get_sample_value(f"plimsoll_session{name}", labels) or 0.0


@pytest.fixture
def counted() -> Counted:
    return Counted()


def session(**fields: Any) -> Session:
    given = {"uid": "u", "name": "s", "requested_at": 1.0, "queued_at": 1.0, "phase_at": 2.0, "deadline_at": 99.0}
    return Session(**{**given, **fields})


def attempt(number: int, **counts: int) -> PastAttempt:
    return PastAttempt(
        number=number, phase="RolledBack", reason="Refused", message="", started_at=1.0, ended_at=2.0, planned=3,
        counts=counts,
    )  # fmt: skip


def test_a_world_of_sessions_is_counted_and_breaks_no_law(counted: Counted):
    world = World(seed=3, faults=Faults(loss=0.1, leaves=0.1))
    world.fill("a", 20)
    world.reports = {name: {"broker": name, "output_utilization": 0.5, "interval_seconds": 0.1} for name in "ab"}
    world.until_over(world.ask("one", source="a", target="b", select={"count": 10}))
    for at, stored in world.saves:
        counted.metrics.observe(stored, at)
    counts = world.session(next(iter(world.mediator.sessions))).counts()
    for outcome, number in counts.items():
        assert counted["_subscribers_total", {"outcome": outcome}] == number
    assert counted["_phase_duration_seconds_count", {"phase": "Sampling"}] == 1
    assert counted["_drain_duration_seconds_count"] > 0
    assert counted["_predicted_drain_duration_seconds_count"] == counted["_drain_duration_seconds_count"]
    assert counted["_prediction_error_ratio_count"] == 2
    assert all(counted["_law_violations_total", {"law": law}] == 0 for law in ("I4", "I5", "I8"))


def test_an_end_that_is_stored_again_is_one_end(counted: Counted):
    over = session(phase="Rejected", reason="NotFound", ended_at=3.0)
    counted.metrics.observe(session(), 2.0)
    for _ in range(2):
        counted.metrics.observe(over, 3.0)
    assert counted["s_ended_total", {"result": "Rejected", "reason": "NotFound"}] == 1


def test_attempts_before_the_last_are_counted_when_the_next_begins(counted: Counted):
    counted.metrics.observe(session(phase="Preparing"), 2.0)
    counted.metrics.observe(session(attempt=2, history=[attempt(1, stayed=3)]), 3.0)
    counted.metrics.observe(session(attempt=2, history=[attempt(1, stayed=3)], phase="Negotiating"), 4.0)
    assert counted["s_ended_total", {"result": "RolledBack", "reason": "Refused"}] == 1
    assert counted["_subscribers_total", {"outcome": "stayed"}] == 3


def test_what_ended_before_this_process_is_not_counted_again(counted: Counted):
    counted.metrics.observe(session(attempt=2, history=[attempt(1, stayed=3)]), 3.0)
    assert counted["s_ended_total", {"result": "RolledBack", "reason": "Refused"}] == 0


def test_how_far_promises_were_off(counted: Counted):
    forecast = Forecast(
        edge="a", utilization_before=0.9, utilization_after=0.5, subscribers_before=2, subscribers_after=1,
        utilization_measured=0.53,
    )  # fmt: skip
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=["x"])
    plan = SessionPlan(
        hash="p", pairs=[pair], made_at=1.0, forecasts=[forecast, replace(forecast, utilization_measured=None)]
    )
    counted.metrics.observe(session(phase="Failed", reason="R", ended_at=3.0, plan=plan), 3.0)
    assert counted["_prediction_error_ratio_count"] == 1
    assert counted["_prediction_error_ratio_sum"] == pytest.approx(0.03)
    for value, ratio in (("before", 0.9), ("predicted", 0.5), ("measured", 0.53)):
        labels = {"value": value}
        assert counted["_edge_utilization_ratio_count", labels] == 1, "only what was measured, so that means compare"
        assert counted["_edge_utilization_ratio_sum", labels] == pytest.approx(ratio)


def test_what_breaks_a_law_is_counted_once(counted: Counted):
    late = session(deadline_at=10.0)
    for at in (100.0, 101.0):
        counted.metrics.observe(late, at)
    assert counted["_law_violations_total", {"law": "I5"}] == 1
    counted.metrics.forget("u")
    counted.metrics.observe(session(deadline_at=200.0), 102.0)
    assert counted["_law_violations_total", {"law": "I5"}] == 1


def test_fleets_that_call_their_edges_alike_break_no_law(counted: Counted):
    first, second = counted.metrics.for_fleet(), counted.metrics.for_fleet()
    first.observe(session(uid="1", phase="Preparing", sources=["edge-0"]), 3.0)
    second.observe(session(uid="2", phase="Preparing", sources=["edge-0"]), 3.0)
    assert counted["_law_violations_total", {"law": "I4"}] == 0
    second.observe(session(uid="3", phase="Preparing", sources=["edge-0"]), 3.0)
    assert counted["_law_violations_total", {"law": "I4"}] == 1


def test_what_a_fleet_that_is_no_more_left_open_is_never_late(counted: Counted):
    counted.metrics.for_fleet().observe(session(uid="1", phase="Preparing"), 3.0)
    after = counted.metrics.for_fleet()
    after.observe(session(uid="2", deadline_at=9999.0), 500.0)
    assert counted["_law_violations_total", {"law": "I5"}] == 0


FAULTY = "plimsoll_sessions_with_delivery_faults_total"


def audited(**sums: int) -> Batch:
    return Batch(
        id="1.1", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False, prepare_seconds=1.0,
        drain_seconds=1.0, begun_at=1.0, members={"x": "moved"}, ended_at=2.0, audit=AuditTotals(**sums),
    )  # fmt: skip


def test_what_subscribers_have_counted_is_summed_up_once_even_behind_the_end(counted: Counted):
    metrics, kinds = counted.metrics, ("lost", "duplicated", "reordered", "suppressed")
    name = "plimsoll_session_deliveries_total"
    assert [counted.registry.get_sample_value(name, {"kind": kind}) for kind in kinds] == [0.0] * 4
    metrics.observe(session(), 2.0)
    metrics.observe(session(phase="Draining", batches=[audited(subscribers=1, suppressed=2)]), 2.5)
    over = session(phase="Succeeded", reason="Moved", ended_at=3.0)
    for _ in range(2):
        metrics.observe(replace(over, batches=[audited(subscribers=2, lost=1, suppressed=5)]), 3.0)
    assert counted["_audited_subscribers_total"] == 2
    assert counted.registry.get_sample_value(FAULTY) == 1
    assert [counted["_deliveries_total", {"kind": kind}] for kind in kinds] == [1, 0, 0, 5]
    metrics.observe(replace(over, uid="another", batches=[audited(subscribers=9, lost=9)]), 3.0)
    assert counted["_audited_subscribers_total"] == 2, "another process has seen that"
    metrics.observe(session(uid="good"), 2.0)
    metrics.observe(replace(over, uid="good", batches=[audited(subscribers=2, suppressed=1)]), 3.0)
    assert counted.registry.get_sample_value(FAULTY) == 1


def test_a_parent_counts_nothing_that_its_children_do(counted: Counted):
    child = ChildSession(name="c", source="a", target="b", members=1, counts={"moved": 1})
    counted.metrics.observe(session(children=[child]), 2.0)
    counted.metrics.observe(session(children=[replace(child, audit=AuditTotals(subscribers=1, lost=1))]), 3.0)
    assert counted.registry.get_sample_value(FAULTY) == 0
    assert counted["_audited_subscribers_total"] == 0
