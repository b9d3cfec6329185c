"""Who may begin: one session per broker at a time, a cap for the fleet, and a queue in order of arrival.

A session that waits names whom it waits for. Nobody is overtaken by a session that wants one of the same brokers. A
parent keeps its sources from all but its own children, and leaves targets to them. Children wait in the queue for their
like only, as what else waits may wait for their parent; and what is being drained is never a target. So no ring of
sessions can wait for one another.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.session.record import Session, Verdict
from plimsoll.core.session.turn import Turn, is_running
from plimsoll.core.session.values import EdgeView, Request


def holds(turn: Turn, session: Session) -> bool:
    """Whether its brokers are kept from others now."""
    return is_running(session) or (session.holds_until is not None and turn.now < session.holds_until)


def blocked_by(turn: Turn, session: Session, brokers: set[str]) -> str:
    """What a session has to wait for, in words; empty if it may begin with these brokers."""
    ahead = [f"{name} ({', '.join(sorted(shared))})" for name, shared in _ahead(turn, session, brokers)]
    if ahead:
        return f"waits for {', '.join(ahead)}"
    running = sum(is_running(other) and not other.is_parent for other in turn.book.open())
    if not session.is_parent and running >= turn.settings.max_sessions:
        return f"{running} sessions are under way, which is the most at one time"
    return ""


def _ahead(turn: Turn, session: Session, brokers: set[str]) -> Iterator[tuple[str, set[str]]]:
    most = turn.settings.sessions_per_broker
    parent = turn.book.get(session.parent)
    own = parent.brokers if parent is not None else set()
    counts: dict[str, list[str]] = {}
    for other in turn.book.open():
        if other.uid in (session.uid, session.parent) or other.parent == session.uid:
            continue
        shared = other.brokers & brokers
        if holds(turn, other):
            for broker in shared:
                counts.setdefault(broker, []).append(other.name)
        elif _waits_before(turn, other, session) and shared - own and session.parent in ("", other.parent):
            yield other.name, shared - own
    for broker, names in sorted(counts.items()):
        if len(names) >= most:
            yield names[0], {broker}


def _waits_before(turn: Turn, other: Session, session: Session) -> bool:
    """Whether another one stands in the queue before this one, and could begin at all."""
    if not is_queued(turn, other) or (other.queued_at, other.name) >= (session.queued_at, session.name):
        return False
    return other.retry_at is None or turn.now >= other.retry_at


def is_queued(turn: Turn, session: Session) -> bool:
    """Whether it waits for its brokers: at its beginning, or once its plan has been approved."""
    if session.is_over or session.uid not in turn.requests:
        return False
    return session.phase == "Requested" or (session.phase == "Planned" and session.approved != "")


# ---------------------------------------------------------------- what is asked for, and whether it can be had


def edges_of(turn: Turn, name: str) -> list[str]:
    """The edges that a name of a specification means: those of a cluster, or the one of that name."""
    edges = turn.view.edges if turn.view is not None else {}
    cluster = sorted(edge.name for edge in edges.values() if edge.cluster == name)
    return cluster or [name]


def is_cluster(turn: Turn, name: str) -> bool:
    return turn.view is not None and any(edge.cluster == name for edge in turn.view.edges.values())


def refusal(turn: Turn, request: Request, *, by_policy: bool = False) -> Verdict | None:
    """Why a request cannot be carried out at all, whatever the fleet looks like."""
    spec = request.spec
    if spec.source is None or (spec.action == "Rebalance" and spec.select is None and not by_policy):
        missing = "spec.source" if spec.source is None else "spec.select"
        return Verdict(reason="NoPolicy", message=f"no policy chooses: say {missing}")
    named = [party.name for party in (spec.source, spec.target) if party is not None]
    excluded = sorted(set(named) & set(spec.exclusions.brokers))
    if excluded:
        return Verdict(reason="Excluded", message=f"{', '.join(excluded)} is excluded by the session itself")
    clusters = {edge.cluster for name in named if (edge := _edge(turn, name)) is not None}
    if spec.scope == "Local" and len(clusters) > 1:
        return Verdict(reason="DifferentClusters", message="source and target are in different clusters: scope Global")
    if spec.handover == "Replay" and spec.scope == "Global":
        return Verdict(reason="ReplayAcross", message="replay works within a cluster only: use handover Auto")
    return None


def _edge(turn: Turn, name: str) -> EdgeView | None:
    return turn.view.edges.get(name) if turn.view is not None else None


def unready_source(turn: Turn, name: str) -> Verdict | None:
    """Why this edge cannot give now."""
    if (known := _unreachable(turn, name)) is not None:
        return known
    edge = _edge(turn, name)
    if edge is None or not (edge.ready or edge.leaving):
        return Verdict(reason="SourceNotReady", message=f"{name} is not up", again=True)
    return None


def unready_target(turn: Turn, name: str) -> Verdict | None:
    """Why this edge cannot take now."""
    if (known := _unreachable(turn, name)) is not None:
        return known
    edge = _edge(turn, name)
    if edge is None or not edge.ready or edge.leaving:
        return Verdict(reason="TargetNotReady", message=f"{name} is not up, or is leaving", again=True)
    if edge.cordoned or name in draining(turn):
        return Verdict(reason="TargetCordoned", message=f"{name} is cordoned, or is being drained", again=True)
    return None


def _unreachable(turn: Turn, name: str) -> Verdict | None:
    if turn.view is None or turn.now - turn.viewed_at > turn.timings.view:
        return Verdict(reason="NoView", message="the state of the fleet is not known, or is old", again=True)
    edge = turn.view.edges.get(name)
    if edge is None:
        return Verdict(reason="NotFound", message=f"there is no edge {name} in this fleet", again=True)
    head = turn.view.heads.get(edge.head)
    if head is None or not head.reachable:
        return Verdict(reason="HeadNotReady", message=f"{edge.head} does not answer, or is starting", again=True)
    return None


def draining(turn: Turn) -> frozenset[str]:
    """Edges that are being drained, and take nobody."""
    active = (s for s in turn.book.open() if s.is_drain and is_running(s) and s.phase != "Negotiating")
    return frozenset(name for session in active for name in session.sources)


def candidates(turn: Turn, request: Request, sources: list[str]) -> list[EdgeView]:
    """Edges that could take what a source gives: named ones, or those of its cluster; others if there are none left."""
    spec = request.spec
    edges = turn.view.edges if turn.view is not None else {}
    excluded = {*sources, *spec.exclusions.brokers}
    if spec.target is not None:
        named = edges_of(turn, spec.target.name)
        return [edges[name] for name in named if name in edges and name not in excluded and _can_take(turn, name)]
    able = [edge for name, edge in sorted(edges.items()) if name not in excluded and _can_take(turn, name)]
    clusters = {edges[name].cluster for name in sources if name in edges}
    near = [edge for edge in able if edge.cluster in clusters]
    return near if near or spec.scope == "Local" else able


def _can_take(turn: Turn, name: str) -> bool:
    return unready_target(turn, name) is None
