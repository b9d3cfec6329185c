"""The inputs of a session's rule, without a world around it: a context, a view of edges, a record, a request."""

from __future__ import annotations

from typing import Any

from tests.core.session.model import spec_of

from plimsoll.core.session import EdgeView, EngineSettings, FleetView, HeadView, Session, SessionRequest
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.session_plan import Forecast, LoadFigures, PlannedPair, SessionPlan
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

BEGAN, DEADLINE = 100.0, 160.0
CLOSES = DEADLINE - 5.0
"""From here on a session of this length cuts nothing more."""


def context_at(now: float, *, with_policy: bool = False, **edges: EdgeView | None) -> EngineContext:
    """A context that sees the edges a, b and c of one head; `edges`: others in their place, None: not there."""
    context = EngineContext(4, EngineSettings())
    context.outbox.now = context.fleet_observed_at = now
    seen = {name: EdgeView(name, "east", "h", subscribers=2) for name in "abc"} | edges
    known = {name: edge for name, edge in seen.items() if edge is not None}
    policies = {"east": parse_block(PolicySpec, {"type": "Padres"})} if with_policy else {}
    context.fleet = FleetView({"h": HeadView("h", "east", 10)}, known, policies)
    return context


def edge(name: str, **fields: Any) -> EdgeView:
    return EdgeView(name, "east", "h", **fields)


def batch_of(**fields: Any) -> Batch:
    given: dict[str, Any] = {
        "id": "4.1", "head": "h", "head_epoch": 10, "source": "a", "target": "b", "target_head": "h", "replay": False,
        "prepare_seconds": 10.0, "drain_seconds": 30.0, "begun_at": 100.0, "since": 100.0,
        "members": {"x": "", "y": ""}, **fields,
    }  # fmt: skip
    return Batch(**given)


def plan_of(*members: str, **fields: Any) -> SessionPlan:
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=list(members))
    return SessionPlan(**{"hash": "p", "pairs": [pair], "made_at": BEGAN, **fields})


def forecast(*, by_policy: bool) -> Forecast:
    before = LoadFigures(input=0.5, output=0.5, match_seconds=0.0) if by_policy else None
    return Forecast(
        edge="a", utilization_before=0.5, utilization_after=0.4, subscribers_before=2, subscribers_after=1,
        before=before,
    )  # fmt: skip


def session_of(**fields: Any) -> Session:
    given: dict[str, Any] = {
        "uid": "u", "name": "s", "phase": "Preparing", "requested_at": BEGAN, "queued_at": BEGAN, "phase_at": BEGAN,
        "started_at": BEGAN, "deadline_at": DEADLINE, "sources": ["a"], "targets": ["b"], "plan": plan_of("x", "y"),
        **fields,
    }  # fmt: skip
    return Session(**given)


def request_of(uid: str = "u", **fields: Any) -> SessionRequest:
    wanted = {"scope": "Local", "mode": "Execute", "source": {"name": "a"}, "action": "Drain", **fields}
    return SessionRequest("s", uid, 1, spec_of(**wanted))
