"""Triggers of consumer groups: the policy of a group would move slices, and its head has told so.

The head looks at its interval, and says it again as long as it holds; so a trigger that cannot become a session now is
dropped. After plans that moved none the next session waits, longer each time.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol.messages import GroupTrigger
from plimsoll.core.session import maintenance_windows
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.state import Session
from plimsoll.core.session.triggers.fleet_policies import earliest_next

QUEUE_FOR = "1m"
DEADLINE = "5m"
TTL = "24h"
PAUSE_SECONDS = 10.0
"""The first pause after a plan that moved none; pauses double."""


def receive_trigger(context: EngineContext, head: str, trigger: GroupTrigger) -> None:
    """Create a session for the group, unless there is one."""
    known = context.fleet.heads.get(head)
    if known is None or not maintenance_windows.is_balancing_allowed(context, known.cluster):
        return
    key = f"{known.cluster}/{trigger.group}"
    if _is_engaged(context, key):
        return
    ended = sorted(
        (one for one in context.table.sessions.values() if one.is_over and _is_of(context, one, key)),
        key=lambda one: one.ended_at or 0.0, reverse=True,
    )  # fmt: skip
    if context.now < earliest_next(ended, PAUSE_SECONDS * context.settings.time_factor):
        return
    name = f"slices-{trigger.group[:40].rstrip('-.').replace('.', '-')}-{context.outbox.next_query_id():x}"
    context.awaited_slice_moves[key] = name, context.now + context.timings.negotiate
    context.outbox.create(name, None, _session_spec(known.cluster, head, trigger))


def _is_engaged(context: EngineContext, key: str) -> bool:
    """Whether a session of this group is open, or its object is on its way."""
    name, until = context.awaited_slice_moves.get(key, ("", 0.0))
    if context.now < until and all(one.name != name for one in context.table.sessions.values()):
        return True
    return any(not one.is_over and _is_of(context, one, key) for one in context.table.open_sessions())


def _is_of(context: EngineContext, session: Session, key: str) -> bool:
    request = context.requests.get(session.uid)
    if request is None or request.spec.slices is None or request.spec.source is None:
        return False
    return f"{request.spec.source.name}/{request.spec.slices.group}" == key


def _session_spec(cluster: str, head: str, trigger: GroupTrigger) -> dict[str, Any]:
    """The specification of the session, as in YAML."""
    return {
        "scope": "Local",
        "source": {"name": cluster},
        "action": "MoveSlices",
        "slices": {"group": trigger.group},
        "mode": "Execute",
        "trigger": {"broker": head, "reason": trigger.reason},
        "limits": {"queueFor": QUEUE_FOR, "moveInterval": "0s"},
        "deadline": DEADLINE,
        "ttl": TTL,
    }
