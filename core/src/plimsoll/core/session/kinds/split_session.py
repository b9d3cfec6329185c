"""A split of bundles that a user has asked for: it moves no subscriber, and is over once the store has the ranges."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.pulsar.splitting import Split
from plimsoll.core.policies.rebalancer import Memory
from plimsoll.core.policies.registry import pulsar_of_spec
from plimsoll.core.session.completion import end_attempt, end_by_verdict
from plimsoll.core.session.context.cluster_memories import stored_of
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.state import Session, SessionVerdict

REASON = "a user has asked for it"


def step_requested(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Split the bundles that are named, or say why one of them cannot be split; then none of them is."""
    if session.retry_at is not None and context.now < session.retry_at:
        return session
    if not context.is_fleet_known:
        return session.because("NoView", "the state of the fleet is not known yet")
    spec = request.spec
    cluster = spec.source.name if spec.source is not None else ""
    if session.kind != "split":
        session = replace(session, kind="split", sources=[], targets=[], triggered=spec.trigger is not None)
    policy = bundle_policy(context, cluster)
    if policy is None:
        return end_by_verdict(context, request, session, no_bundles(cluster))
    if why := _unheard(context, cluster, _named(request), session.requested_at):
        return _end_if_overdue(context, request, session.because("NoView", why))
    memory = context.cluster_memories.of(cluster, policy.name)
    split = _split(context, policy, memory, cluster, _named(request))
    if isinstance(split, str):
        return end_by_verdict(context, request, session, SessionVerdict(reason="NoSplit", message=split))
    after, text = split
    if spec.mode != "Execute":
        return end_attempt(context, request, session, "Succeeded", SessionVerdict(reason=spec.mode, message=text))
    session = replace(
        session, deadline_at=context.now + context.settings.seconds(spec.deadline), started_at=context.now
    )
    context.cluster_memories.put(cluster, policy.name, after)
    context.outbox.remember(cluster, policy.name, after)
    return session.entered("Preparing", context.now, "Storing", text)


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait until the store has the ranges: before that no broker is told of them.

    A mediator that begins in between finds either in the store, and divides what is still whole.
    """
    if not context.is_fleet_known:
        return session
    cluster = request.spec.source.name if request.spec.source is not None else ""
    policy = bundle_policy(context, cluster)
    if policy is None:
        return end_by_verdict(context, request, session, no_bundles(cluster))
    whole = [bundle for bundle in _named(request) if policy.partition(_stored(context, policy, cluster)).has(bundle)]
    if not whole:
        verdict = SessionVerdict(reason="Divided", message=session.message)
        return end_attempt(context, request, session, "Succeeded", verdict)
    if context.outbox.is_due(f"{session.uid}/split", context.timings.ask):
        memory = context.cluster_memories.of(cluster, policy.name)
        if any(policy.partition(memory).has(bundle) for bundle in whole):
            if _unheard(context, cluster, whole, session.started_at or 0.0) and context.now < session.deadline_at:
                return session
            split = _split(context, policy, memory, cluster, whole)
            if isinstance(split, str):
                return end_by_verdict(context, request, session, SessionVerdict(reason="NoSplit", message=split))
            memory, _ = split
            context.cluster_memories.put(cluster, policy.name, memory)
        context.outbox.remember(cluster, policy.name, memory)
    if context.now >= session.deadline_at:
        verdict = SessionVerdict(reason="NotStored", message="the store did not take the ranges in time", again=True)
        return end_by_verdict(context, request, session, verdict)
    return session


def _unheard(context: EngineContext, cluster: str, bundles: Sequence[HashRange], since: float) -> str:
    """Which edge is to report before the topics of these bundles are known; a mediator may have just begun."""
    owners, edges = context.fleet.bundle_owners(cluster), [edge.name for edge in context.fleet.edges_of([cluster])]
    named = {owners.get(bundle.name, "") for bundle in bundles}
    for edge in edges:  # a bundle that has no owner yet may be at any of them
        if (edge in named or "" in named) and not context.loads.is_reported_since(edge, since):
            return f"{edge} has not reported since the split was asked for"
    return ""


def _end_if_overdue(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    if context.now < session.deadline_at:
        return session
    message = f"limits.queueFor has passed: {session.message}"
    return end_by_verdict(context, request, session, SessionVerdict(reason="QueueTimeout", message=message, again=True))


def _named(request: SessionRequest) -> list[HashRange]:
    select = request.spec.select
    return [HashRange.of_name(name) for name in (() if select is None else select.bundles)]


def _stored(context: EngineContext, policy: Pulsar, cluster: str) -> Memory:
    return stored_of(context.fleet, cluster, policy.name)


def _split(
    context: EngineContext, policy: Pulsar, memory: Memory, cluster: str, bundles: Sequence[HashRange]
) -> tuple[Memory, str] | str:
    """The memory with all of these bundles divided, and a sentence about it; or why that cannot be."""
    edges = context.fleet.edges_of([cluster])
    loads = [each for edge in edges if (load := context.loads.reported(edge.name)) is not None for each in load.bundles]
    told = []
    for bundle in bundles:
        found = policy.split_of(memory, bundle, loads, REASON)
        if not isinstance(found, Split):
            return found
        memory = policy.split(memory, found)
        told.append(f"{bundle.name} is split at 0x{found.at:08x}")
    return (memory, "; ".join(told)) if told else "select.bundles names no bundle"


def bundle_policy(context: EngineContext, cluster: str) -> Pulsar | None:
    """The policy of a cluster, if it has bundles."""
    spec = context.fleet.policies.get(cluster)
    return None if spec is None else pulsar_of_spec(spec, context.settings.time_factor)


def no_bundles(cluster: str) -> SessionVerdict:
    """There is nothing to split or to unload."""
    message = f"{cluster} has no bundles: give it `policy: {{type: Pulsar, pulsar: {{topicAttribute: NAME}}}}`"
    return SessionVerdict(reason="NoBundles", message=message)
