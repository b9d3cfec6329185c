"""Policies by which publishers leave an overloaded head: when a session begins for the head of a cluster, by itself.

By our rules a head has to be overloaded in two reports in a row: one alone may be a burst. Heads are relieved one after
another in the whole fleet, since each plan is made of what the others report, and what they report changes with it.
After sessions that moved none the next one waits, longer each time; publishers that could not be moved are left alone
for a while.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.policies.delay_sensitive.head_relief import HeadRelief
from plimsoll.core.policies.registry import head_relief_of_spec
from plimsoll.core.session import maintenance_windows
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import HeadView
from plimsoll.core.session.state import Session
from plimsoll.core.session.triggers.fleet_policies import earliest_next
from plimsoll.core.session.triggers.publisher_follow import LEFT_ALONE_INTERVALS, is_of_head, left_alone
from plimsoll.core.spec.types.policy import PolicySpec

QUEUE_FOR = "1m"
DEADLINE = "5m"
TTL = "24h"
EXCLUDED_AT_MOST = 100
"""Publishers that a session names as those to leave alone; of more, the next one finds out again."""


def relieve_heads(context: EngineContext) -> None:
    """Look at the head of each cluster, if it is time, and create the session that is wanted."""
    for cluster, spec in sorted(context.fleet.policies.items()):
        policy = head_relief_of_spec(spec, context.settings.time_factor)
        if policy is not None and context.outbox.is_due(f"relieve/{cluster}", policy.interval_seconds):
            _look_at(context, cluster, spec, policy)


def _look_at(context: EngineContext, cluster: str, spec: PolicySpec, policy: HeadRelief) -> None:
    head = context.fleet.head_of(cluster)
    is_old = context.now - context.fleet_observed_at > context.timings.view
    if head is None or not head.reachable or is_old:
        return
    why = _overload(context, head, policy)
    if not why or _is_engaged(context, cluster) or not maintenance_windows.is_balancing_allowed(context, cluster):
        return
    ended = sorted(
        (one for one in context.table.sessions.values() if one.is_over and is_of_head(context, one, cluster)),
        key=lambda one: one.ended_at or 0.0, reverse=True,
    )  # fmt: skip
    if context.now < earliest_next(ended, policy.interval_seconds):
        return
    alone = left_alone(ended, context.now - LEFT_ALONE_INTERVALS * context.settings.seconds(spec.detection.interval))
    name = f"relieve-{cluster[:40].rstrip('-')}-{context.outbox.next_query_id():x}"
    context.awaited_relief = name, context.now + context.timings.negotiate
    context.outbox.create(name, None, _session_spec(cluster, head, spec, f"{policy.name}: {head.name}: {why}", alone))


def _overload(context: EngineContext, head: HeadView, policy: HeadRelief) -> str:
    """Why publishers should leave a head now; empty if they should not, or not yet."""
    load = context.loads.reported(head.name)
    why = "" if load is None else policy.wanted(load)
    if load is None or not why:
        context.overloaded_heads.pop(head.cluster, None)
        return ""
    first = context.overloaded_heads.setdefault(head.cluster, (load.epoch, load.seq))
    if first[0] != load.epoch:  # another process: what the last one carried says nothing of it
        context.overloaded_heads[head.cluster] = first = (load.epoch, load.seq)
    return why if policy.is_letter or load.seq > first[1] else ""


def _is_engaged(context: EngineContext, cluster: str) -> bool:
    """Whether publishers of this head are being moved, or those of any head by a policy."""
    name, until = context.awaited_relief
    if context.now < until and all(one.name != name for one in context.table.sessions.values()):
        return True
    sessions = [one for one in context.table.open_sessions() if not one.is_over]
    return any(is_of_head(context, one, cluster) or _is_relief(context, one) for one in sessions)


def _is_relief(context: EngineContext, session: Session) -> bool:
    request = context.requests.get(session.uid)
    return request is not None and request.spec.action == "MovePublishers" and request.spec.trigger is not None


def _session_spec(cluster: str, head: HeadView, spec: PolicySpec, reason: str, alone: set[str]) -> dict[str, Any]:
    """The specification of the session, as in YAML."""
    return {
        "scope": "Global",
        "source": {"name": cluster},
        "action": "MovePublishers",
        "mode": "Execute",
        "trigger": {"broker": head.name, "reason": reason[:500]},
        "exclusions": {"subscribers": sorted(alone)[:EXCLUDED_AT_MOST]},
        "limits": {"queueFor": QUEUE_FOR, "moveInterval": str(spec.detection.stabilize_for)},
        "deadline": DEADLINE,
        "ttl": TTL,
    }
