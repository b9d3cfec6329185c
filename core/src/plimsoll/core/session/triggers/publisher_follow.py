"""Policy Pulsar with `publishers: Follow`: sessions that bring publishers to the head where their subscribers are.

A publisher has to be found twice in a row, at the policy's interval, since a subscriber that is moved between clusters
may be at neither for a report. Those that a session could not move are left alone for a while: their clients may stay
where they are for good.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.policies.model.publisher_load import reported_publishers
from plimsoll.core.policies.publisher_follow import publishers_to_follow
from plimsoll.core.session import maintenance_windows
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.state import Session
from plimsoll.core.spec.brokers import head_name

QUEUE_FOR = "1m"
DEADLINE = "2m"
TTL = "24h"
PUBLISHERS_AT_MOST = 1000
"""Of one session; the others follow in the next one."""
LEFT_ALONE_INTERVALS = 32


def follow_subscribers(context: EngineContext) -> None:
    """Let the publishers of each cluster follow that are to, if it is time to look."""
    for cluster, spec in sorted(context.fleet.policies.items()):
        own = spec.pulsar if spec.type == "Pulsar" else None
        if own is None or own.publishers == "Stay":
            continue
        interval = context.settings.seconds(own.interval)
        if context.outbox.is_due(f"follow/{cluster}", interval):
            _look_at(context, cluster, interval)


def _look_at(context: EngineContext, cluster: str, interval_seconds: float) -> None:
    head = context.fleet.head_of(cluster)
    is_old = context.now - context.fleet_observed_at > context.timings.view
    if head is None or not head.reachable or is_old:
        return
    wanted = publishers_to_follow(reported_publishers(head.report))
    seen = frozenset((name, toward) for toward, names in wanted.items() for name in names)
    again = seen & context.following.get(cluster, frozenset())
    context.following[cluster] = seen
    sessions = [one for one in context.table.sessions.values() if is_of_head(context, one, cluster)]
    if any(not one.is_over for one in sessions) or not maintenance_windows.is_balancing_allowed(context, cluster):
        return
    alone = left_alone(sessions, context.now - LEFT_ALONE_INTERVALS * interval_seconds)
    for toward in sorted(wanted):
        target = context.fleet.heads.get(toward)
        names = [name for name in wanted[toward] if (name, toward) in again and name not in alone]
        if names and target is not None and target.reachable and not target.cordoned:
            name = f"follow-{cluster[:40].rstrip('-')}-{context.outbox.next_query_id():x}"
            context.outbox.create(name, None, _session_spec(cluster, target.cluster, names[:PUBLISHERS_AT_MOST]))
            return


def is_of_head(context: EngineContext, session: Session, cluster: str) -> bool:
    """Whether a session moves publishers from the head of this cluster, asked for by a user or by a policy."""
    request = context.requests.get(session.uid)
    spec = request.spec if request is not None else None
    source = spec.source if spec is not None and spec.action == "MovePublishers" else None
    return source is not None and source.name == cluster


def left_alone(sessions: list[Session], since: float) -> set[str]:
    """Publishers that sessions since that time could not move."""
    late = [one for one in sessions if (one.ended_at or 0.0) > since]
    return {name for one in late for name, outcome in one.outcomes().items() if outcome != "moved"}


def _session_spec(cluster: str, target: str, names: list[str]) -> dict[str, Any]:
    reason = f"all subscribers of {len(names)} publishers are behind {head_name(target)}"
    return {
        "scope": "Global",
        "source": {"name": cluster},
        "target": {"name": target},
        "action": "MovePublishers",
        "select": {"names": names},
        "mode": "Execute",
        "trigger": {"broker": head_name(cluster), "reason": reason},
        "limits": {"queueFor": QUEUE_FOR},
        "deadline": DEADLINE,
        "ttl": TTL,
    }
