"""Maintenance windows: outside of them no session runs that a broker or the detection between clusters triggered.

Sessions that users create, and drains, do not wait for a window. A session that runs when its window closes begins no
further batch; a batch after its cut is finished.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.state import Session, SessionVerdict
from plimsoll.core.session.status import rfc3339
from plimsoll.core.spec import maintenance


def outside_window(context: EngineContext, request: SessionRequest, session: Session) -> SessionVerdict | None:
    """Why a triggered session may not move subscribers now; None for other sessions, and within a window."""
    if request.spec.trigger is None or session.phase == "Stabilizing":
        return None
    named = [party.name for party in (request.spec.source, request.spec.target) if party is not None]
    return closed_window(context, context.fleet.clusters_of({*named, *session.sources, *session.targets}))


def closed_window(context: EngineContext, clusters: Iterable[str]) -> SessionVerdict | None:
    """Why these clusters may not be balanced now: one of them has windows, and none of those is open."""
    for cluster in sorted(clusters):
        own = context.fleet.windows.get(cluster, ())
        if not maintenance.is_window_open(own, context.now):
            opens = rfc3339(maintenance.next_window_at(own, context.now))
            message = f"no maintenance window of {cluster} is open; the next one opens at {opens}"
            return SessionVerdict(reason="OutsideWindow", message=message)
    return None


def is_balancing_allowed(context: EngineContext, *names: str) -> bool:
    """Whether triggers may balance these brokers or clusters now."""
    return closed_window(context, context.fleet.clusters_of(names)) is None
