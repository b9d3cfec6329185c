"""Each law of sessions for overloaded heads finds what breaks it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.core.session import Session
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.session_plan import Forecast, LoadFigures, PlannedPair, SessionPlan
from plimsoll.simulator.checks.head_laws import HeadLaws


def forecast(head: str, before: float, after: float) -> Forecast:
    figures = [LoadFigures(input=0.0, output=each, match_seconds=0.0) for each in (before, after)]
    return Forecast(
        edge=head, utilization_before=before, utilization_after=after, subscribers_before=1, subscribers_after=1,
        before=figures[0], after=figures[1],
    )  # fmt: skip


def relief(number: int, source: str = "a", target: str = "b", outcome: str = "moved", **fields: Any) -> Session:
    """A session that moves p from one head to another in the ten seconds from 10 x number on."""
    pair = PlannedPair(source=source, target=target, source_head=source, target_head=target, members=["p"])
    plan = SessionPlan(
        hash="x", pairs=[pair], made_at=0.0, forecasts=[forecast(source, 0.5, 0.3), forecast(target, 0.1, 0.2)]
    )
    batch = Batch(
        id=f"1.{number}", head=source, head_epoch=1, source=source, target=target, target_head=target, replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=10.0 * number, members={"p": outcome}, ended_at=10.0 * number,
    )  # fmt: skip
    at = 10.0 * number
    given: dict[str, Any] = {
        "uid": f"u{number}", "name": f"r{number}", "kind": "publishers", "triggered": True, "requested_at": at,
        "queued_at": at, "phase_at": at, "deadline_at": at + 9.0, "ended_at": at + 9.0, "plan": plan,
        "batches": [batch], **fields,
    }  # fmt: skip
    return Session(**given)


def found(*sessions: Session) -> list[str]:
    return [one.what for one in HeadLaws(lambda: sessions, 0.4).leftovers(1.0)]


def planned(*forecasts: Forecast, faults: list[str] | None = None) -> Session:
    one = relief(1)
    assert one.plan is not None
    return replace(one, plan=replace(one.plan, forecasts=list(forecasts), faults=faults or []))


def test_sessions_that_keep_the_laws():
    assert found(relief(1), relief(2, "b", "c"), relief(3, "c", "d")) == []
    assert found(relief(1), relief(2, "b", "a", outcome="stayed")) == [], "it has not come back"


@pytest.mark.parametrize(
    ("sessions", "what"),
    [
        ([relief(1, ended_at=None), relief(2)], "r2 was asked for before r1 had ended"),
        ([relief(1), relief(2, requested_at=18.0)], "r2 was asked for before r1 had ended"),
        ([relief(1), relief(2, "b", "a")], "p is back at a, which it had left"),
        ([planned(forecast("a", 0.5, 0.5))], "a plan that does not relieve a: 0.5 before, 0.5 after"),
        ([planned(forecast("b", 0.1, 0.41))], "a plan with which b carries too much: 0.41"),
        ([planned(faults=["p moves 2 times"])], "p moves 2 times"),
    ],
)
def test_a_breach_is_named(sessions: list[Session], what: str):
    assert found(*sessions) == [what]


def test_sessions_of_users_are_free():
    assert found(relief(1), relief(2, "b", "a", triggered=False)) == []
