"""Admission: one session per broker at a time, a limit for the fleet, and a queue in the order of `queue_order`.

A waiting session names the sessions that it waits for. No session overtakes another that wants one of the same brokers.
A parent keeps its sources from all sessions but its own children, and leaves targets to them. Children that leave one
source do not wait for one another there, only for targets: so clients that do not answer hold up one of them, and not
the others. In the queue, children wait for their siblings only, as any other session may be waiting for their parent;
and an edge that is being drained is never a target. So sessions cannot wait for one another in a ring.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.policies.registry import is_fleet_wide
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView, SessionRequest
from plimsoll.core.session.state import Session, SessionVerdict

NAMED_AHEAD = 3
"""The most queued sessions that a waiting one names; there may be thousands before it."""


def holds_brokers(context: EngineContext, session: Session) -> bool:
    """Whether the brokers of a session are kept from others now."""
    return session.is_running or (session.holds_until is not None and context.now < session.holds_until)


def blocked_by(context: EngineContext, session: Session, brokers: set[str]) -> str:
    """The sessions that one has to wait for, as a message; empty if it may begin with these brokers."""
    ahead = [f"{name} ({', '.join(sorted(shared))})" for name, shared in _sessions_ahead(context, session, brokers)]
    if ahead:
        return f"waits for {', '.join(ahead)}"
    running = sum(other.is_running and not other.is_parent for other in context.table.holding())
    if not session.is_parent and running >= context.settings.max_sessions:
        return f"{running} sessions are running, the limit of the fleet"
    return ""


def _sessions_ahead(context: EngineContext, session: Session, brokers: set[str]) -> Iterator[tuple[str, set[str]]]:
    parent = context.table.get(session.parent)
    own = parent.brokers if parent is not None else set()
    for other in _queued_before(context, session, brokers - own):
        yield other.name, (other.brokers & brokers) - own
    counts: dict[str, list[str]] = {}
    for other in context.table.holding():
        if holds_brokers(context, other) and not _is_related(other, session):
            for broker in (other.brokers & brokers) - _common_sources(other, session):
                counts.setdefault(broker, []).append(other.name)
    for broker, names in sorted(counts.items()):
        if len(names) >= context.settings.sessions_per_broker:
            yield names[0], {broker}


def _is_related(other: Session, session: Session) -> bool:
    return other.uid in (session.uid, session.parent) or other.parent == session.uid


def _common_sources(other: Session, session: Session) -> set[str]:
    """The sources that two children of one parent share, which it keeps for all of them."""
    are_siblings = session.parent != "" and other.parent == session.parent
    return set(other.sources) & set(session.sources) if are_siblings else set()


def _queued_before(context: EngineContext, session: Session, brokers: set[str]) -> list[Session]:
    """The first sessions of the queue that go before this one at these brokers; a few, as a message names them."""
    found: dict[str, Session] = {}
    for broker in sorted(brokers):
        count = 0
        for other in context.table.waiting_at(broker, session.turn):
            if _goes_before(context, other, session):
                found[other.uid] = other
                count += 1
                if count == NAMED_AHEAD:
                    break
    return sorted(found.values(), key=lambda other: other.turn)[:NAMED_AHEAD]


def _goes_before(context: EngineContext, other: Session, session: Session) -> bool:
    """Whether `other`, which is before `session` in the queue, could begin now."""
    if _is_related(other, session) or session.parent not in ("", other.parent):
        return False
    if holds_brokers(context, other) or not is_queued(context, other):
        return False
    return other.retry_at is None or context.now >= other.retry_at


def is_queued(context: EngineContext, session: Session) -> bool:
    """Whether a session waits for its brokers, and its object is known."""
    return session.is_waiting and session.uid in context.requests


def with_place(context: EngineContext, session: Session, wait: str) -> str:
    """What a session waits for, and its place in the queue of the fleet."""
    place, count = context.table.place(session)
    return f"{wait}; place {place} of {count} in the queue"


# ---------------------------------------------------------------- whether a request can be carried out


def refusal(context: EngineContext, request: SessionRequest, *, by_policy: bool = False) -> SessionVerdict | None:
    """Why a request cannot be carried out in any state of the fleet."""
    spec = request.spec
    if spec.source is None or (spec.action == "Rebalance" and spec.select is None and not by_policy):
        missing = "spec.source" if spec.source is None else "spec.select"
        policy = None if spec.source is None else context.fleet.policy_of(spec.source.name)
        is_whole = policy is not None and is_fleet_wide(policy)
        whole = "; its policy plans for all edges of a cluster at once, so the cluster can be named" if is_whole else ""
        message = f"no policy chooses the subscribers: set {missing}{whole}"
        return SessionVerdict(reason="NoPolicy", message=message)
    named = [party.name for party in (spec.source, spec.target) if party is not None]
    excluded = sorted(set(named) & set(spec.exclusions.brokers))
    if excluded:
        return SessionVerdict(
            reason="Excluded", message=f"{', '.join(excluded)} is excluded by spec.exclusions.brokers"
        )
    clusters = {edge.cluster for name in named if (edge := context.fleet.edges.get(name)) is not None}
    if spec.scope == "Local" and len(clusters) > 1:
        return SessionVerdict(
            reason="DifferentClusters", message="source and target are in different clusters: set spec.scope to Global"
        )
    if spec.handover == "Replay" and spec.scope == "Global":
        return SessionVerdict(
            reason="ReplayAcross", message="replay works within a cluster only: set spec.handover to Auto"
        )
    return None


def unlinked(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    """Why nothing can move from the source to the target that a request names: no links lead from one to the other."""
    source, target = request.spec.source, request.spec.target
    if source is None or target is None:
        return None
    for one in sorted(context.fleet.clusters_of([source.name])):
        for other in sorted(context.fleet.clusters_of([target.name])):
            if not context.fleet.are_linked(one, other):
                message = f"no links lead from the head of {one} to that of {other}: write them into `neighbors`"
                return SessionVerdict(reason="NotLinked", message=message, again=True)
    return None


def missing_party(context: EngineContext, session: Session) -> SessionVerdict | None:
    """The first source or target that is no edge of the fleet, of a session that has waited as long as for an answer.

    So a session that can never begin waits for no other one, and keeps none waiting.
    """
    if context.now - session.queued_at < context.timings.negotiate:
        return None
    for name in (*session.sources, *session.targets):
        if name not in context.fleet.edges:
            return SessionVerdict(reason="NotFound", message=f"there is no edge {name} in this fleet", again=True)
    return None


def unready_source(context: EngineContext, name: str) -> SessionVerdict | None:
    """Why this edge cannot be a source now. An edge that leaves can: it is drained."""
    if (known := _unreachable(context, name)) is not None:
        return known
    edge = context.fleet.edges.get(name)
    if edge is None or not (edge.ready or edge.leaving):
        return SessionVerdict(reason="SourceNotReady", message=f"{name} is not up", again=True)
    return None


def unready_target(context: EngineContext, name: str) -> SessionVerdict | None:
    """Why this edge cannot be a target now."""
    if (known := _unreachable(context, name)) is not None:
        return known
    edge = context.fleet.edges.get(name)
    if edge is None or not edge.ready or edge.leaving:
        return SessionVerdict(reason="TargetNotReady", message=f"{name} is not up, or is leaving", again=True)
    if edge.cordoned or name in draining_edges(context):
        return SessionVerdict(reason="TargetCordoned", message=f"{name} is cordoned, or is being drained", again=True)
    return None


def unready_head(context: EngineContext, name: str) -> SessionVerdict | None:
    """Why this head cannot be sent commands now."""
    if (known := _without_view(context)) is not None:
        return known
    head = context.fleet.heads.get(name)
    if head is None or not head.reachable:
        return SessionVerdict(reason="HeadNotReady", message=f"{name} does not answer, or is starting", again=True)
    return None


def _unreachable(context: EngineContext, name: str) -> SessionVerdict | None:
    if (known := _without_view(context)) is not None:
        return known
    edge = context.fleet.edges.get(name)
    if edge is None:
        return SessionVerdict(reason="NotFound", message=f"there is no edge {name} in this fleet", again=True)
    return unready_head(context, edge.head)


def _without_view(context: EngineContext) -> SessionVerdict | None:
    if context.now - context.fleet_observed_at > context.timings.view:
        return SessionVerdict(reason="NoView", message="the state of the fleet is not known, or is old", again=True)
    return None


def draining_edges(context: EngineContext) -> frozenset[str]:
    """Edges that are being drained, and so are no targets."""
    active = (s for s in context.table.holding() if s.kind == "drain" and s.is_running and s.phase != "Negotiating")
    return frozenset(name for session in active for name in session.sources)


def target_candidates(context: EngineContext, request: SessionRequest, sources: list[str]) -> list[EdgeView]:
    """Edges that could be targets: the named ones, else those of the same cluster, else, with scope Global, any."""
    spec = request.spec
    edges = context.fleet.edges
    excluded = {*sources, *spec.exclusions.brokers}
    if spec.target is not None:
        named = context.fleet.resolve(spec.target.name)
        return [edges[name] for name in named if name in edges and name not in excluded and _can_take(context, name)]
    able = [edge for name, edge in sorted(edges.items()) if name not in excluded and _can_take(context, name)]
    clusters = {edges[name].cluster for name in sources if name in edges}
    near = [edge for edge in able if edge.cluster in clusters]
    if near or spec.scope == "Local":
        return near
    return [edge for edge in able if all(context.fleet.are_joined(one, edge.cluster) for one in clusters)]


def _can_take(context: EngineContext, name: str) -> bool:
    return unready_target(context, name) is None
