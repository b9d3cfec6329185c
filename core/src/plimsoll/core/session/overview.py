"""Clusters beside their neighbours: what each carries on average, and which of them should balance with which.

PADRES 2006, 3.2 and 3.3. A cluster compares itself with those one hop away; a head without edges passes the word on,
so what lies behind it counts as near. A cluster is N/A while one of its edges is: that edge turns to its own cluster
first. What is remembered here lasts for a life of the mediator: a new one begins by looking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from plimsoll.core.detector import Detector, Finding
from plimsoll.core.policies.fleet import BrokerLoad, State, aggregate
from plimsoll.core.policies.registry import parameters
from plimsoll.core.session import loads, windows
from plimsoll.core.session.events import Create
from plimsoll.core.session.record import Session
from plimsoll.core.session.turn import Turn, is_running
from plimsoll.core.session.values import View
from plimsoll.core.session.watched import Watched
from plimsoll.core.spec.brokers import head_name

DEADLINE = "1h"
QUEUE_FOR = "1m"
TTL = "24h"

LOOKS_RUNNING = 2
"""A cluster is balanced with others once it has been found wanting at so many looks running."""

FRUITLESS_PAUSE = 4
"""After a session that moved nobody the clusters are let be for so many looks."""


def near(view: View, cluster: str) -> list[str]:
    """The clusters with edges that are one hop away, where those without edges are no hop."""
    having = {edge.cluster for edge in view.edges.values()}
    found: set[str] = set()
    seen, ahead = {cluster}, [cluster]
    while ahead:
        for other in sorted(view.neighbors.get(ahead.pop(), frozenset()) - seen):
            seen.add(other)
            if other in having:
                found.add(other)
            else:
                ahead.append(other)
    return sorted(found)


def load_of(turn: Turn, cluster: str) -> BrokerLoad | None:
    """What a cluster carries: by the overview, by its head, or by its edges; None if that is not known."""
    view = turn.view
    if view is None:
        return None
    told = _told(view, cluster)
    edges = [load for edge in view.edges.values() if edge.cluster == cluster and (load := loads.load(turn, edge.name))]
    if not edges or len(edges) < sum(edge.cluster == cluster for edge in view.edges.values()):
        return None  # who is silent may be overloaded
    found = aggregate(cluster, edges)
    if told is not None:
        try:
            measures = BrokerLoad.of({**told, "broker": cluster}).measures._asdict()
        except (TypeError, ValueError):
            measures = {}  # it is as good as none
        found = replace(found, **measures)
    return replace(found, time=turn.now, state=state_of(turn, cluster, found.state))


def _told(view: View, cluster: str) -> Mapping[str, Any] | None:
    if view.overview is not None and cluster in view.overview.loads:
        return view.overview.loads[cluster]
    head = view.heads.get(head_name(cluster))
    told = head.report.get("cluster_load") if head is not None else None
    return told if isinstance(told, Mapping) else None


def state_of(turn: Turn, cluster: str, edges: State = "OK") -> State:
    """PADRES 2006, figure 4b: BUSY in a session between clusters, N/A with one of its edges, STABILIZING after one."""
    if session_of(turn, cluster) is not None:
        return "BUSY"
    if edges == "N/A":
        return "N/A"
    known = turn.watched.get(cluster)
    return "STABILIZING" if known is not None and known.memory.since is not None else "OK"


def session_of(turn: Turn, cluster: str) -> Session | None:
    """The session between clusters that runs for this one."""
    running = (one for one in turn.book.open() if cluster in one.between and is_running(one))
    return next(running, None)


def joined(turn: Turn, cluster: str) -> str:
    """The cluster that this one balances with now; empty without."""
    session = session_of(turn, cluster)
    if session is None or session.moving_at is None or session.verdict is not None:
        return ""
    return next(other for other in session.between if other != cluster)


def look(turn: Turn) -> None:
    """Detection for every cluster with a policy, if it is time; who wants balance gets a session."""
    view = turn.view
    if view is None or view.overview is None:
        return
    if not turn.is_due("overview", view.overview.seconds * turn.settings.time_factor):
        return
    known = {cluster: load for cluster in sorted(view.policies) if (load := load_of(turn, cluster)) is not None}
    for cluster, own in known.items():
        others = [known[other] for other in near(view, cluster) if other in known]
        finding = _look_at(turn, view, cluster, own, others)
        if turn.watched[cluster].looks < LOOKS_RUNNING:
            continue
        target = finding.actions[0].target
        if not _is_wanted_already(turn, cluster, target) and windows.lets(turn, cluster, target):
            turn.effects.append(Create(_name(turn, cluster, finding), "", "", _spec(view, cluster, finding)))


def _look_at(turn: Turn, view: View, cluster: str, own: BrokerLoad, others: list[BrokerLoad]) -> Finding:
    watched = turn.watched.setdefault(cluster, Watched())
    detector = Detector(parameters(view.policies[cluster], turn.settings.time_factor), "Global")
    session = session_of(turn, cluster)
    if session is not None:
        watched.session, watched.memory = session.uid, detector.began(watched.memory)
    elif watched.session:
        ended = turn.book.get(watched.session)
        has_moved = ended is not None and ended.counts()["moved"] > 0
        watched.session, watched.memory = "", detector.ended(watched.memory, turn.now, moved=has_moved)
    watched.memory, watched.finding = detector.run(own, others, watched.memory, turn.now)
    if (why := _own_first(view, cluster, own)) and not detector.parameters.thresholds.above_higher(own.measures):
        watched.finding = replace(watched.finding, state=own.state, actions=(), reason=why)
    watched.looks = watched.looks + 1 if watched.finding.actions else 0
    return watched.finding


def _own_first(view: View, cluster: str, own: BrokerLoad) -> str:
    """Why a cluster helps itself before it turns to others, which keeps subscribers where they are."""
    if own.state == "N/A":
        return "one of its edges is N/A"
    states = (edge.report.get("state") for edge in view.edges.values() if edge.cluster == cluster)
    return "its edges balance with one another" if {"BUSY", "STABILIZING"} & set(states) else ""


def _is_wanted_already(turn: Turn, *clusters: str) -> bool:
    """Whether a session for one of them waits or runs, or came to nothing a short time ago."""
    seconds = turn.view.overview.seconds if turn.view is not None and turn.view.overview is not None else 0.0
    since = turn.now - FRUITLESS_PAUSE * seconds * turn.settings.time_factor
    for session in turn.book.sessions.values():
        if not set(clusters) & set(session.between or _asked(turn, session)):
            continue
        if session.ended_at is None:
            return True
        if session.triggered and not session.counts()["moved"] and session.ended_at > since:
            return True
    return False


def _asked(turn: Turn, session: Session) -> Iterator[str]:
    request = turn.requests.get(session.uid)
    if request is not None and request.spec.scope == "Global":
        yield from (each.name for each in (request.spec.source, request.spec.target) if each is not None)


def _name(turn: Turn, cluster: str, finding: Finding) -> str:
    return f"global-{cluster[:20].rstrip('-')}-{finding.actions[0].target[:20].rstrip('-')}-{turn.next_query():x}"


def _spec(view: View, cluster: str, finding: Finding) -> dict[str, Any]:
    source = view.overview.source if view.overview is not None else "heads"
    return {
        "scope": "Global",
        "source": {"name": cluster},
        "target": {"name": finding.actions[0].target},
        "action": "Rebalance",
        "mode": "Execute",
        "trigger": {"broker": head_name(cluster), "reason": f"{finding.reason} (by {source})"[:500]},
        "limits": {"queueFor": QUEUE_FOR},
        "deadline": DEADLINE,
        "ttl": TTL,
    }
