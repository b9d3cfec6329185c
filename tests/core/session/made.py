"""Sessions, requests, fleets and turns made by hand, for the rules that ask for nothing else."""

from __future__ import annotations

from typing import Any

from tests.core.session.balanced import POLICY
from tests.core.session.model import spec_of

from plimsoll.core.session import EdgeView, HeadView, Request, Session, Settings, View
from plimsoll.core.session.turn import Turn
from plimsoll.core.spec.parsing import block
from plimsoll.core.spec.policy import PolicySpec


def session(uid: str, **fields: Any) -> Session:
    times = {"requested_at": 0.0, "queued_at": 0.0, "phase_at": 0.0, "deadline_at": 1e9}
    return Session(**{"uid": uid, "name": uid, **times, **fields})


def request(uid: str, **fields: Any) -> Request:
    """What is asked for by fields of the specification as in YAML; `deleting` is one of the request."""
    deleting = fields.pop("deleting", False)
    for party in ("source", "target"):
        if isinstance(fields.get(party), str):
            fields[party] = {"name": fields[party]}
    return Request(uid, uid, 1, spec_of(**{"scope": "Local", "mode": "Execute", **fields}), deleting=deleting)


def fleet(**changes: dict[str, Any]) -> View:
    """Edges a, b and c of the cluster east, which has a policy, and w of west; `changes` are fields of them."""
    clusters = {"a": "east", "b": "east", "c": "east", "w": "west"}
    heads = {f"{name}-head": HeadView(f"{name}-head", name, 1) for name in ("east", "west")}
    edges = {
        name: EdgeView(name, cluster, f"{cluster}-head", **changes.get(name, {})) for name, cluster in clusters.items()
    }
    return View(heads, edges, {"east": block(PolicySpec, POLICY)})


def turn_of(
    *sessions: Session,
    view: View | None = None,
    requests: tuple[Request, ...] = (),
    now: float = 100.0,
    **settings: Any,
) -> Turn:
    turn = Turn(3, Settings(**settings))
    turn.now = turn.viewed_at = now
    turn.view = view if view is not None else fleet()
    for each in sessions:
        turn.book.put(each)
    turn.requests = {each.uid: each for each in requests}
    return turn
