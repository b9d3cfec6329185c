"""Tells heads which topics have another edge while sessions move them, where each topic is owned singly.

Newcomers then meet a topic at its target from the beginning of the session. What a head knows of other topics is its
own: nothing is stored, since the edges that serve them are the store.
"""

from __future__ import annotations

from plimsoll.core.policies.registry import deadlines_of_spec
from plimsoll.core.protocol.messages import AssignedBundle, BundleTable
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.triggers.bundle_tables import moving_sessions
from plimsoll.core.spec.brokers import head_name


def send_topic_tables(context: EngineContext) -> None:
    """Send the head of each such cluster what moves there, again and again, since control messages may be lost."""
    for cluster, spec in sorted(context.fleet.policies.items()):
        if deadlines_of_spec(spec, context.settings.time_factor) is None or not context.is_fleet_known:
            continue
        moving = {topic: edge for session in moving_sessions(context, cluster) if session.plan is not None
                  for topic, edge in _topics(session.plan.bundles)}  # fmt: skip
        assigned = [AssignedBundle(topic, edge) for topic, edge in sorted(moving.items())]
        if assigned and context.outbox.is_due(f"topics/{cluster}/{len(assigned)}", context.timings.ask):
            context.outbox.send(head_name(cluster), BundleTable(context.outbox.epoch, 0, [], assigned))


def _topics(owners: dict[str, str]) -> list[tuple[int, str]]:
    """Topics by hash, of their names in a plan, `text#hash`; a name of another kind is left out."""
    found = []
    for name, edge in owners.items():
        digits = name.rpartition("#")[2]
        if len(digits) == 8 and set(digits) <= set("0123456789abcdef"):
            found.append((int(digits, 16), edge))
    return found
