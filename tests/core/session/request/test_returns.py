"""Who should not return to an edge at constant load."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as replaced
from tests.core.session.alone import batch_of

from plimsoll.core.session import session_plan as stored
from plimsoll.core.session.request.returns import left_edges, moved_away
from plimsoll.core.session.state import Session


@pytest.fixture
def session() -> Session:
    return Session(
        uid="uid", name="s", phase="Sampling", requested_at=0.0, queued_at=0.0, phase_at=100.0, deadline_at=200.0,
        kind="balance", sources=["a"], targets=["b"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "delivered", "names"),
    [
        ({}, 110.0, {"x"}),
        ({}, 200.0, set()),
        ({"kind": "move"}, 110.0, set()),
        ({"sources": ["c"]}, 110.0, set()),
        ({"plan": None}, 110.0, set()),
    ],
)
def test_who_was_moved_away_by_a_policy_is_known_while_the_load_is_constant(
    session: Session, fields: dict[str, Any], delivered: float, names: set[str]
):
    """A session moved x away from b, and not y, when 100 deliveries a second went out in all."""
    away = fields.get("sources", ["b"])[0]
    pair = stored.PlannedPair(source=away, target="a", source_head="h", target_head="h", members=["x", "y"])
    plan_then = stored.SessionPlan(hash="h", pairs=[pair], made_at=1.0, deliveries_per_second=100.0)
    batch = batch_of(members={"x": "moved", "y": "stayed"}, ended_at=101.0)
    earlier = replaced(session, **{"uid": "e", "plan": plan_then, "batches": [batch], **fields})
    assert moved_away([session, earlier], "b", delivered) == names


@pytest.mark.parametrize(
    ("fields", "delivered", "edges"),
    [
        ({}, 110.0, {"x": {"b"}}),
        ({}, 200.0, {}),
        ({"triggered": False}, 110.0, {}),
        ({"kind": "drain"}, 110.0, {}),
        ({"sources": ["a", "b", "z"]}, 110.0, {}),
        ({"plan": None}, 110.0, {}),
    ],
)
def test_which_edges_were_left_by_plans_for_a_cluster_is_known_while_the_load_is_constant(
    session: Session, fields: dict[str, Any], delivered: float, edges: dict[str, set[str]]
):
    """A plan of the policy moved x away from b, and not y, when 100 deliveries a second went out in all."""
    made = stored.SessionPlan(hash="h", pairs=[], made_at=1.0, deliveries_per_second=100.0)
    given = {"kind": "rebalance", "sources": ["a", "b"], "triggered": True, "plan": made, **fields}
    plan = replaced(session, uid="p", **given)
    batch = batch_of(members={"x": "moved", "y": "stayed"}, ended_at=101.0)
    child = replaced(session, uid="c", parent="p", kind="move", sources=["b"], batches=[batch])
    other = replaced(child, uid="o", parent="elsewhere", sources=["c"])
    sessions = {one.uid: one for one in (plan, child, other)}
    assert left_edges(sessions, ["a", "b", "c"], delivered) == edges
