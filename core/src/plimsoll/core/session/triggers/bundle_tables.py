"""Tells heads how topics are divided into bundles, and which bundles have another edge while sessions move them.

Only ranges that the store has are told: a mediator that dies between a split and its storing has told no broker of it.
Under a policy whose topics are owned singly a table has no ranges, only the topics that are being moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from plimsoll.core.policies.model.hash_ranges import HashRange, Partition, partition_of
from plimsoll.core.policies.model.topic_load import topic_of_key
from plimsoll.core.policies.registry import pulsar_of_spec
from plimsoll.core.protocol.messages import AssignedBundle, BundleTable, ReleasedBundle
from plimsoll.core.session.context.cluster_memories import stored_of
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.state import MOVING_PHASES, Session
from plimsoll.core.spec.brokers import head_name


def send_bundle_tables(context: EngineContext) -> None:
    """Send the table of each cluster with bundles to its head, again and again, since control messages may be lost."""
    for cluster, spec in sorted(context.fleet.policies.items()):
        policy = pulsar_of_spec(spec, context.settings.time_factor)
        if spec.type == "DelaySensitive" and context.is_fleet_known:
            _send_moving_topics(context, cluster)
        if policy is None or not context.is_fleet_known:
            continue
        memory = stored_of(context.fleet, cluster, policy.name)
        partition = partition_of(memory.get("boundaries")) or policy.partition({})
        assigned = [each for session in _moving(context, cluster) for each in _assigned(session, partition)]
        released = [each for session in _moving(context, cluster) for each in _released(session, partition)]
        key = f"bundles/{cluster}/{len(partition)}/{len(assigned)}/{len(released)}"
        if context.outbox.is_due(key, context.timings.ask):
            number = memory.get("version", 0)
            version = number if isinstance(number, int) else 0
            table = BundleTable(context.outbox.epoch, version, list(partition.boundaries), assigned, released)
            context.outbox.send(head_name(cluster), table)


def _send_moving_topics(context: EngineContext, cluster: str) -> None:
    """Newcomers of a topic that moves go to its target at once. Of topics that stay the head knows the edge.

    Newcomers of a topic that goes to another cluster stay in their own.
    """
    plans = [session.plan for session in _moving(context, cluster)]
    own = {edge.name for edge in context.fleet.edges_of([cluster])}
    named = (each for plan in plans if plan is not None for each in _topics(plan.bundles))
    topics = {hashed: edge for hashed, edge in named if edge in own}
    assigned = [AssignedBundle(hashed, edge) for hashed, edge in sorted(topics.items())]
    if assigned and context.outbox.is_due(f"topics/{cluster}/{sorted(topics.items())}", context.timings.ask):
        context.outbox.send(head_name(cluster), BundleTable(context.outbox.epoch, 0, [], assigned))


def _topics(named: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    for key, edge in named.items():
        yield topic_of_key(key), edge


def _moving(context: EngineContext, cluster: str) -> Iterator[Session]:
    """Sessions that move bundles of a cluster, until loads have settled: moves may be over before a table arrives."""
    for session in context.table.holding():
        is_here = any(context.fleet.edges[name].cluster == cluster for name in session.sources
                      if name in context.fleet.edges)  # fmt: skip
        if session.kind == "rebalance" and session.phase in (*MOVING_PHASES, "Stabilizing") and is_here:
            yield session


def _assigned(session: Session, partition: Partition) -> Iterator[AssignedBundle]:
    plan = session.plan
    if plan is not None and plan.handover != "lookup":
        for name, edge in sorted(plan.bundles.items()):
            if partition.has(bundle := HashRange.of_name(name)):
                yield AssignedBundle(bundle.low, edge)


def _released(session: Session, partition: Partition) -> Iterator[ReleasedBundle]:
    plan = session.plan
    if plan is not None and plan.handover == "lookup":
        number = _attempt_number(session)
        for name in sorted(plan.bundles):
            if partition.has(bundle := HashRange.of_name(name)):
                yield ReleasedBundle(bundle.low, number)


def _attempt_number(session: Session) -> int:
    """A number that stands for one attempt of a session."""
    return int(sha256(f"{session.uid}/{session.attempt}".encode()).hexdigest()[:15], 16)
