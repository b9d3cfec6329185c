"""Maintenance windows: outside of them nothing is balanced that a broker or the detector alone wants.

What people ask for, and drains, do not wait for a window. A session that is under way when its window closes begins no
further batch; what is behind its cut comes to its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.session import admission
from plimsoll.core.session.record import Session, Verdict
from plimsoll.core.session.status import rfc3339
from plimsoll.core.session.turn import Turn
from plimsoll.core.session.values import Request
from plimsoll.core.spec import windows


def outside(turn: Turn, request: Request, session: Session) -> Verdict | None:
    """Why a session that was triggered may move nobody now; None for any other, and within a window of its clusters."""
    if request.spec.trigger is None or session.phase == "Stabilizing":
        return None
    named = [party.name for party in (request.spec.source, request.spec.target) if party is not None]
    return closed(turn, _clusters(turn, {*named, *session.sources, *session.targets}))


def closed(turn: Turn, clusters: Iterable[str]) -> Verdict | None:
    """Why nothing is balanced between these clusters now: one of them has windows, and none of those is open."""
    if turn.view is None:
        return None
    for cluster in sorted(clusters):
        own = turn.view.windows.get(cluster, ())
        if not windows.is_open(own, turn.now):
            opens = rfc3339(windows.opens_at(own, turn.now))
            message = f"no maintenance window of {cluster} is open; the next one opens at {opens}"
            return Verdict(reason="OutsideWindow", message=message)
    return None


def lets(turn: Turn, *names: str) -> bool:
    """Whether brokers or clusters of these names may be balanced now because one of them wants it."""
    return closed(turn, _clusters(turn, names)) is None


def _clusters(turn: Turn, names: Iterable[str]) -> set[str]:
    edges = turn.view.edges if turn.view is not None else {}
    of_edges = {edges[name].cluster for name in names if name in edges}
    return of_edges | {name for name in names if admission.is_cluster(turn, name)}
