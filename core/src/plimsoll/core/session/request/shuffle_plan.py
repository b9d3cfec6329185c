"""Who takes part in a plan for a whole cluster, or for two that are shuffled together, and whether they all can.

Like a drain such a session is a parent: each pair of edges with moves is a session of its own. It keeps all edges
reserved as BUSY from the first query to the measurement, so its children need no reservations.
"""

from __future__ import annotations

from plimsoll.core.session import admission
from plimsoll.core.session.completion import end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import FleetView, SessionRequest
from plimsoll.core.session.state import Session, SessionVerdict

EDGES_AT_MOST = 50
"""With more edges the covering sets do not fit into the parts of one query."""


def refusal(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    """Why a plan for a cluster cannot be made at all."""
    if request.spec.source is None:
        return SessionVerdict(reason="NotFound", message="set spec.source to the cluster to shuffle")
    for name in shuffled_clusters(request):
        if not context.fleet.is_cluster(name):
            return SessionVerdict(reason="NotFound", message=f"there is no cluster {name} with edges here", again=True)
        if name not in context.fleet.policies:
            message = f"cluster {name} has no policy, so its edges record no traffic samples; set spec.policy"
            return SessionVerdict(reason="NoPolicy", message=message)
    count = len(shuffled_edges(context.fleet, request))
    if request.spec.action == "Shuffle" and count > EDGES_AT_MOST:
        message = f"{count} edges are more than the {EDGES_AT_MOST} that one shuffle can plan"
        return SessionVerdict(reason="TooMany", message=message)
    return None


def shuffled_clusters(request: SessionRequest) -> list[str]:
    """The clusters to shuffle: one, or two together."""
    parties = (request.spec.source, None if request.spec.action == "Unload" else request.spec.target)
    return [party.name for party in parties if party is not None]


def shuffled_edges(fleet: FleetView, request: SessionRequest) -> list[str]:
    """All edges that take part."""
    excluded = request.spec.exclusions.brokers
    return [edge.name for edge in fleet.edges_of(shuffled_clusters(request)) if edge.name not in excluded]


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait until all edges are up, and at least one of them can be a target."""
    why = next((why for name in session.sources if (why := admission.unready_source(context, name)) is not None), None)
    if why is None and len(session.sources) < 2:
        why = SessionVerdict(reason="NoTarget", message="a plan for a cluster needs at least two edges")
    if why is None and not ready_targets(context, session):
        why = SessionVerdict(reason="NoTarget", message="no edge can take subscribers now", again=True)
    return end_negotiation(context, request, session, why)


def ready_targets(context: EngineContext, session: Session) -> frozenset[str]:
    """The edges that may take subscribers now."""
    return frozenset(name for name in session.sources if admission.unready_target(context, name) is None)
