"""Detection between clusters: which of them should balance with which. PADRES 2006, 3.2 and 3.3.

A cluster is compared with those one hop away; a head without edges is no hop, so clusters behind it count as near. A
cluster is N/A while one of its edges is: that edge turns to its own cluster first, while another edge of it has room.
Detector states last for one life of the mediator; a new one runs detection again before it creates a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from plimsoll.core.policies.detection import DetectionResult, Detector
from plimsoll.core.policies.model.load import RESOURCES, BrokerLoad
from plimsoll.core.policies.registry import is_fleet_wide, parameters_of_spec
from plimsoll.core.session import maintenance_windows
from plimsoll.core.session.context.cluster_loads import cluster_load
from plimsoll.core.session.context.command_outbox import CommandOutbox
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.watched_clusters import WatchedCluster
from plimsoll.core.session.inputs import FleetView
from plimsoll.core.session.state import Session
from plimsoll.core.spec.brokers import head_name

DEADLINE = "1h"
QUEUE_FOR = "1m"
TTL = "24h"

CONSECUTIVE_DETECTIONS = 2
"""Consecutive detections of imbalance before a session is created."""

FRUITLESS_PAUSE_DETECTIONS = 4
"""Detections to skip after a session that moved no subscriber."""


def detect_imbalance(context: EngineContext) -> None:
    """Detect for every cluster with a policy, if it is time, and create sessions where one wants balance."""
    fleet = context.fleet
    if fleet.overview is None:
        return
    if not context.outbox.is_due("overview", fleet.overview.seconds * context.settings.time_factor):
        return
    known = {
        cluster: load
        for cluster, policy in sorted(fleet.policies.items())
        if not is_fleet_wide(policy) and (load := cluster_load(context, cluster)) is not None
    }
    for cluster, own in known.items():
        others = [known[other] for other in fleet.nearby_clusters(cluster) if other in known]
        finding = _run_detector(context, cluster, own, others)
        if context.watched_clusters[cluster].looks < CONSECUTIVE_DETECTIONS:
            continue
        target = finding.actions[0].target
        if not _is_known_or_fruitless(context, cluster, target) and maintenance_windows.is_balancing_allowed(
            context, cluster, target
        ):
            name = _session_name(context.outbox, cluster, target)
            context.outbox.create(name, None, _session_spec(fleet, cluster, finding))


def _run_detector(context: EngineContext, cluster: str, own: BrokerLoad, others: list[BrokerLoad]) -> DetectionResult:
    watched = context.watched_clusters.setdefault(cluster, WatchedCluster())
    detector = Detector(parameters_of_spec(context.fleet.policies[cluster], context.settings.time_factor), "Global")
    session = context.table.running_cluster_session(cluster)
    if session is not None:
        watched.session, watched.memory = session.uid, detector.session_began(watched.memory)
    elif watched.session:
        ended = context.table.get(watched.session)
        has_moved = ended is not None and ended.counts()["moved"] > 0
        watched.session, watched.memory = "", detector.session_ended(watched.memory, context.now, moved=has_moved)
    watched.memory, watched.finding = detector.run(own, others, watched.memory, context.now)
    if (why := _own_balancing_reason(context, cluster, own)) and not detector.parameters.thresholds.above_higher(
        own.measures
    ):
        watched.finding = replace(watched.finding, state=own.state, actions=(), reason=why)
    watched.looks = watched.looks + 1 if watched.finding.actions else 0
    return watched.finding


def _own_balancing_reason(context: EngineContext, cluster: str, own: BrokerLoad) -> str:
    """Why a cluster balances itself before it turns to others, which keeps subscribers in it."""
    members = [edge for edge in context.fleet.edges.values() if edge.cluster == cluster]
    if own.state == "N/A":
        takers = [edge.name for edge in members if _could_take(context, edge.name)]
        return f"one of its edges is N/A, and {takers[0]} may take from it" if takers else ""
    states = {edge.report.get("state") for edge in members}
    return "its edges balance with one another" if {"BUSY", "STABILIZING"} & states else ""


def _could_take(context: EngineContext, edge: str) -> bool:
    """Whether an edge has room for what another of its cluster should give: by the paper, always.

    An edge above the point where relief ends is next to its threshold. If all are, the cluster is full: its average
    need not be above the higher threshold for that.
    """
    policy, load = context.loads.policy_of(edge), context.loads.current(edge)
    if policy is None or load is None or policy.parameters.rules == "Paper":
        return True
    limits = policy.parameters.thresholds
    return all(load.measures.of_resource(each) <= limits.of(each).relieved for each in RESOURCES)


def _is_known_or_fruitless(context: EngineContext, *clusters: str) -> bool:
    """Whether one of these clusters has an open session, or had one a short time ago that moved no subscriber."""
    seconds = context.fleet.overview.seconds if context.fleet.overview is not None else 0.0
    since = context.now - FRUITLESS_PAUSE_DETECTIONS * seconds * context.settings.time_factor
    for session in context.table.sessions.values():
        if not set(clusters) & set(session.between or _named_clusters(context, session)):
            continue
        if session.ended_at is None:
            return True
        if session.triggered and not session.counts()["moved"] and session.ended_at > since:
            return True
    return False


def _named_clusters(context: EngineContext, session: Session) -> Iterator[str]:
    request = context.requests.get(session.uid)
    if request is not None and request.spec.scope == "Global":
        yield from (each.name for each in (request.spec.source, request.spec.target) if each is not None)


def _session_name(outbox: CommandOutbox, cluster: str, target: str) -> str:
    return f"global-{cluster[:20].rstrip('-')}-{target[:20].rstrip('-')}-{outbox.next_query_id():x}"


def _session_spec(fleet: FleetView, cluster: str, finding: DetectionResult) -> dict[str, Any]:
    source = fleet.overview.source if fleet.overview is not None else "heads"
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
