"""Sessions, requests, fleets and contexts made by hand, for rules that need nothing else."""

from __future__ import annotations

from typing import Any

from tests.core.session.balanced import POLICY
from tests.core.session.model import spec_of

from plimsoll.core.session import EdgeView, EngineSettings, FleetView, HeadView, Session, SessionRequest
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec


def session(uid: str, **fields: Any) -> Session:
    times = {"requested_at": 0.0, "queued_at": 0.0, "phase_at": 0.0, "deadline_at": 1e9}
    return Session(**{"uid": uid, "name": uid, **times, **fields})


def request(uid: str, **fields: Any) -> SessionRequest:
    """A request from fields of the specification as in YAML; `deleting` is a field of the request."""
    deleting = fields.pop("deleting", False)
    for party in ("source", "target"):
        if isinstance(fields.get(party), str):
            fields[party] = {"name": fields[party]}
    return SessionRequest(uid, uid, 1, spec_of(**{"scope": "Local", "mode": "Execute", **fields}), deleting=deleting)


def fleet(**changes: dict[str, Any]) -> FleetView:
    """Edges a, b and c of the cluster east, which has a policy, and w of west; `changes` are fields of them."""
    clusters = {"a": "east", "b": "east", "c": "east", "w": "west"}
    heads = {f"{name}-head": HeadView(f"{name}-head", name, 1) for name in ("east", "west")}
    edges = {
        name: EdgeView(name, cluster, f"{cluster}-head", **changes.get(name, {})) for name, cluster in clusters.items()
    }
    return FleetView(heads, edges, {"east": parse_block(PolicySpec, POLICY)})


def context_of(
    *sessions: Session,
    view: FleetView | None = None,
    requests: tuple[SessionRequest, ...] = (),
    now: float = 100.0,
    **settings: Any,
) -> EngineContext:
    context = EngineContext(3, EngineSettings(**settings))
    context.outbox.now = context.fleet_observed_at = now
    context.fleet = view if view is not None else fleet()
    for each in sessions:
        context.table.put(each)
    context.requests = {each.uid: each for each in requests}
    return context
