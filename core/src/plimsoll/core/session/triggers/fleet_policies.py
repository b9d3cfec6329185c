"""Policies that plan for a whole cluster: each looks at the loads at its interval, and may ask for a session.

A deadline does not wait for the interval: `early_looks`.

No look is taken while the edges of the cluster are in a session or settle after one, since their loads are about to
change; after a session that has moved subscribers the policy begins with an empty memory. After plans that moved none
the next session waits, longer each time, until subscribers of the cluster have moved. Where topics may go to another
cluster, a neighbour is asked once the own edges have not sufficed: `other_clusters`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.rebalancer import FleetLook, Rebalancer
from plimsoll.core.policies.registry import rebalancer_of_spec
from plimsoll.core.session import maintenance_windows
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.state import Session
from plimsoll.core.session.triggers import early_looks, other_clusters
from plimsoll.core.spec.brokers import head_name
from plimsoll.core.spec.types.policy import PolicySpec

QUEUE_FOR = "1m"
DEADLINE = "30m"
TTL = "24h"

LONGEST_PAUSE_INTERVALS = 32
"""The longest pause after plans that moved none, in intervals of the policy; pauses double."""


BALANCINGS_AVERAGED = 8
"""Sessions over which the time of a balancing is averaged."""


def look_at_clusters(context: EngineContext) -> None:
    """Let the policy of each cluster look, if it is time, and create the sessions that are wanted."""
    for cluster, spec in sorted(context.fleet.policies.items()):
        policy = rebalancer_of_spec(spec, context.settings.time_factor)
        if policy is None:
            continue
        is_due = context.outbox.is_due(f"look/{cluster}", policy.interval_seconds)
        if early_looks.is_overload_reported(context, cluster, policy) or is_due:
            _look_at(context, cluster, spec, policy)


def _look_at(context: EngineContext, cluster: str, spec: PolicySpec, policy: Rebalancer[Any]) -> None:
    least = 1 if isinstance(policy, DelaySensitive) else 2
    if (look := _look(context, cluster, least)) is None or _is_engaged(context, cluster):
        return
    ended = ended_sessions(context, cluster)
    moved_at = max(
        (one.ended_at or 0.0 for one in _taking_part(context, cluster) if one.counts()["moved"]), default=0.0
    )
    settled_at = moved_at + context.settings.seconds(spec.detection.stabilize_for)
    if moved_at and context.now < settled_at:
        return
    memory = context.cluster_memories.of(cluster, policy.name)
    if moved_at > context.now - policy.interval_seconds - context.settings.seconds(spec.detection.stabilize_for):
        memory = policy.after_moves(memory)
    memory = policy.observe(memory, replace(look, balancings=_balancings(ended)))
    if context.cluster_memories.put(cluster, policy.name, memory):
        context.outbox.remember(cluster, policy.name, context.cluster_memories.of(cluster, policy.name))
    is_time = context.now >= earliest_next(ended, policy.interval_seconds)
    is_allowed = maintenance_windows.is_balancing_allowed(context, cluster)
    if not (why := policy.wanted(memory)) or not is_allowed:
        return
    other = other_clusters.cluster_to_ask(context, cluster, policy, ended)
    is_alone = len(look.loads) == 1
    if (is_time and other) if is_alone else (is_time or other):
        name = f"plan-{cluster[:40].rstrip('-')}-{context.outbox.next_query_id():x}"
        context.outbox.create(name, None, _session_spec(cluster, spec, f"{policy.name}: {why}", other))


def _look(context: EngineContext, cluster: str, least: int) -> FleetLook | None:
    """The loads of all edges by their last reports; None while one of them is not known, or with fewer than `least`."""
    edges = context.fleet.edges_of([cluster])
    loads = [load for edge in edges if (load := context.loads.reported(edge.name)) is not None]
    is_whole = len(loads) == len(edges) and context.now - context.fleet_observed_at <= context.timings.view
    owners = context.fleet.bundle_owners(cluster)
    return FleetLook(tuple(loads), context.now, owners) if is_whole and len(loads) >= least else None


def _is_engaged(context: EngineContext, cluster: str) -> bool:
    """Whether a session takes part with one of the edges now, or one of the policy is open for the cluster.

    A plan that a user has yet to approve reserves no edge, and keeps no policy waiting.
    """
    edges = {edge.name for edge in context.fleet.edges_of([cluster])}
    return any(
        (session.is_running and bool(edges & session.brokers))
        or (not session.is_over and _is_named(context, session, cluster) and _is_of_policy(context, session))
        for session in context.table.open_sessions()
    )


def _is_of_policy(context: EngineContext, session: Session) -> bool:
    """Whether no user has asked for it, also before it has begun."""
    request = context.requests.get(session.uid)
    return request is not None and request.spec.trigger is not None


def _is_named(context: EngineContext, session: Session, cluster: str) -> bool:
    """Whether a session is a plan for this cluster, also before it has begun."""
    request = context.requests.get(session.uid)
    return request is not None and request.spec.source is not None and request.spec.source.name == cluster


def ended_sessions(context: EngineContext, cluster: str) -> list[Session]:
    """Plans for the cluster that have ended, the last one first."""
    found = [
        session for session in context.table.sessions.values()
        if session.ended_at is not None and _is_named(context, session, cluster)
    ]  # fmt: skip
    return sorted(found, key=lambda session: session.ended_at or 0.0, reverse=True)


def _taking_part(context: EngineContext, cluster: str) -> list[Session]:
    """Sessions with edges of the cluster that have ended, as their source or as their target."""
    own = {edge.name for edge in context.fleet.edges_of([cluster])}
    return [one for one in context.table.sessions.values() if one.ended_at is not None and one.is_fleet_wide
            and own.intersection(one.sources)]  # fmt: skip


def _balancings(ended: list[Session]) -> tuple[float, ...]:
    """How long the last sessions took that moved some, without the time in which loads settled."""
    some = [one for one in ended if one.counts()["moved"]][:BALANCINGS_AVERAGED]
    return tuple(sum(seconds for phase, seconds in one.spent.items() if phase != "Stabilizing") for one in some)


def earliest_next(ended: list[Session], interval_seconds: float) -> float:
    """When the next plan may be made: some intervals after plans of the policy that moved none, more each time."""
    own = [session for session in ended if session.triggered]
    fruitless = next((number for number, one in enumerate(own) if one.counts()["moved"]), len(own))
    if not fruitless:
        return 0.0
    return (own[0].ended_at or 0.0) + interval_seconds * float(min(2**fruitless, LONGEST_PAUSE_INTERVALS))


def _session_spec(cluster: str, spec: PolicySpec, reason: str, other: str) -> dict[str, Any]:
    """The specification of a session of the policy, as in YAML. `other`: a cluster that may take as well."""
    return {
        "scope": "Global" if other else "Local",
        "source": {"name": cluster},
        **({"target": {"name": other}} if other else {}),
        "action": "Rebalance",
        "mode": "Execute",
        "trigger": {"broker": head_name(cluster), "reason": reason[:500]},
        "limits": {"queueFor": QUEUE_FOR, "moveInterval": str(spec.detection.stabilize_for)},
        "deadline": DEADLINE,
        "ttl": TTL,
    }
