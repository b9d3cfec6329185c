"""Triggers of edges: each one that is accepted becomes a session, created as an object by the shell.

An edge repeats its trigger while it wants balance, so a trigger may be lost, late or dropped. An edge has one session
at a time. If all its targets are in sessions or stabilise, a trigger waits for two detection intervals; overloaded
edges come first, then those with the largest difference. After sessions that moved no subscriber the next one waits,
longer each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from plimsoll.core.policies.model.load import named_metric, named_resources
from plimsoll.core.policies.registry import is_fleet_wide
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView
from plimsoll.core.session.state import NOTHING_TO_MOVE, TEMPORARY_STAYS, Session
from plimsoll.core.spec.quantities import Duration

LARGEST_DIFFERENCE = 1e6
LATE_REPORTS = 10
"""Load reports after which a trigger of the same edge is outdated."""

ENDED_SESSIONS_AT_MOST = 200
"""The most ended sessions of triggers that are kept, however long their time to live is."""

LONGEST_PAUSE_FACTOR = 4
"""The longest pause after sessions that moved no subscriber, as a multiple of the first; pauses double."""

WAITED_DETECTIONS = 2
"""Detection intervals that a trigger waits for its targets: by then its edge has sent another."""

TEMPORARY_ANSWERS = ("BUSY", "STABILIZING")
"""Answers of edges that may become targets soon."""

QUEUE_FOR = "15s"
DEADLINE = "5m"
TTL = "24h"


def receive_trigger(context: EngineContext, trigger: msg.Trigger) -> None:
    """Take a trigger, unless it is old, outdated or without a policy, and create its session as soon as possible."""
    known = context.fleet.edges.get(trigger.edge)
    actions = [action for action in trigger.actions if named_metric(action.metric) is not None]
    if known is None or known.cluster not in context.fleet.policies or not actions:
        return
    if _note_if_new(context, trigger) and not _is_outdated(known.report, trigger):
        context.waiting_triggers[trigger.edge] = context.now, replace(trigger, actions=actions)
        create_due_sessions(context)


def create_due_sessions(context: EngineContext) -> None:
    """Create sessions for waiting triggers, and drop those that have waited too long."""
    engaged = _awaited_edges(context)
    for said_at, trigger in sorted(context.waiting_triggers.values(), key=_urgency):
        known = context.fleet.edges.get(trigger.edge)
        policy = context.fleet.policy_of(trigger.edge)
        if known is None or policy is None or is_fleet_wide(policy) or known.leaving:
            del context.waiting_triggers[trigger.edge]
            continue
        interval = context.settings.seconds(policy.detection.interval)
        if context.now > said_at + WAITED_DETECTIONS * interval:
            del context.waiting_triggers[trigger.edge]
        elif trigger.edge not in engaged and not _must_wait(context, trigger, min(context.timings.retry, interval)):
            here = [action for action in trigger.actions if _may_be_asked(context, known, action.target)]
            free = (action.target for action in here if _could_accept(context, action.target))
            if (first := next((name for name in free if name not in engaged), None)) is not None:
                engaged |= {trigger.edge, first}
                _create_session(context, trigger, known, here, first, policy.detection.stabilize_for)


def _awaited_edges(context: EngineContext) -> set[str]:
    """The edges that sessions are meant for whose objects were created just now, and which have not asked them yet.

    Without them a second trigger would get a session for a target that the first has by the time it is asked.
    """
    if not context.awaited_sessions:
        return set()
    asking = {one.name for one in context.table.sessions.values() if one.triggered and (one.is_over or one.targets)}
    context.awaited_sessions = {
        name: (until, edges) for name, (until, edges) in context.awaited_sessions.items()
        if context.now < until and name not in asking
    }  # fmt: skip
    return {edge for _, edges in context.awaited_sessions.values() for edge in edges}


def _urgency(wish: tuple[float, msg.Trigger]) -> tuple[bool, float, str]:
    actions = wish[1].actions
    return not any(each.overloaded for each in actions), -max(each.difference for each in actions), wish[1].edge


def _must_wait(context: EngineContext, trigger: msg.Trigger, pause: float) -> bool:
    """Whether the edge of a trigger takes part in a session, or pauses after sessions that moved no subscriber."""
    own = [session for session in context.table.sessions.values() if _is_session_of(session, context, trigger.edge)]
    if any(_blocks_trigger(session, trigger) for session in own) or _is_engaged(context, trigger.edge, trigger):
        return True
    return context.now < _earliest_next([session for session in own if session.triggered], pause)


def _create_session(
    context: EngineContext, trigger: msg.Trigger, edge: EdgeView, actions: Sequence[msg.ActionItem], first: str,
    rest: Duration,
) -> None:  # fmt: skip
    if context.outbox.is_due(f"trigger/{trigger.edge}", context.timings.ask):
        del context.waiting_triggers[trigger.edge]
        name = f"balance-{trigger.edge[:30].rstrip('-')}-{trigger.epoch & 0xFFFFFFFF:x}-{trigger.seq}"
        context.awaited_sessions[name] = context.now + context.timings.ask, frozenset({trigger.edge, first})
        spec, parent = _session_spec(trigger, actions, rest), _parent_session(context, edge, actions)
        context.outbox.create(name, parent, spec if parent is None else {**spec, **_inherited_spec(context, parent)})


def _inherited_spec(context: EngineContext, parent: Session) -> dict[str, Any]:
    """The parts of its specification that a session between clusters passes on to sessions of its edges."""
    found: dict[str, Any] = {"scope": "Global"}
    request = context.requests.get(parent.uid)
    if request is None:
        return found
    left = request.spec.exclusions
    kept = {"subscribers": list(left.subscribers), "brokers": list(left.brokers)}
    if any(kept.values()):
        found["exclusions"] = {name: names for name, names in kept.items() if names}
    return {**found, "handover": request.spec.handover}


def _parent_session(context: EngineContext, edge: EdgeView, actions: Iterable[msg.ActionItem]) -> Session | None:
    """The session between clusters that owns this one, if a target is in another cluster."""
    edges = context.fleet.edges
    is_across = any(edges[action.target].cluster != edge.cluster for action in actions)
    return context.table.running_cluster_session(edge.cluster) if is_across else None


def _may_be_asked(context: EngineContext, edge: EdgeView, other: str) -> bool:
    """Whether an edge may be a target: one of the same cluster, or of the cluster joined to it now."""
    known = context.fleet.edges.get(other)
    if known is None or other == edge.name:
        return False
    if known.cluster == edge.cluster:
        return True
    return known.cluster == context.table.joined_cluster(edge.cluster) and not {
        edge.name,
        other,
    } & _excluded_edges(context, edge)


def _excluded_edges(context: EngineContext, edge: EdgeView) -> frozenset[str]:
    """Edges that the running session between clusters excludes."""
    session = context.table.running_cluster_session(edge.cluster)
    request = context.requests.get(session.uid) if session is not None else None
    return frozenset(request.spec.exclusions.brokers if request is not None else ())


def _note_if_new(context: EngineContext, trigger: msg.Trigger) -> bool:
    number = (trigger.epoch, trigger.seq)
    if number <= context.last_triggers.get(trigger.edge, (0, 0)):
        return False
    context.last_triggers[trigger.edge] = number
    return True


def _is_outdated(report: Mapping[str, Any], trigger: msg.Trigger) -> bool:
    """Whether the edge has sent many reports since, or has restarted."""
    epoch, seq = report.get("epoch"), report.get("seq")
    if not isinstance(epoch, int) or not isinstance(seq, int):
        return False
    return trigger.epoch < epoch or (trigger.epoch == epoch and trigger.seq < seq - LATE_REPORTS)


def _is_session_of(session: Session, context: EngineContext, edge: str) -> bool:
    """Whether this edge is a source of a session; of one that has not begun, the source in its request."""
    if session.sources:
        return edge in session.sources
    request = context.requests.get(session.uid)
    return request is not None and request.spec.source is not None and request.spec.source.name == edge


def _blocks_trigger(session: Session, trigger: msg.Trigger) -> bool:
    """Whether a session keeps its edge from another. One that only stabilises gives way to an overloaded edge."""
    is_urgent = any(action.overloaded for action in trigger.actions)
    return not session.is_over and not (is_urgent and session.kind == "balance" and session.phase == "Stabilizing")


def _is_engaged(context: EngineContext, edge: str, trigger: msg.Trigger | None = None) -> bool:
    """Whether an edge takes part in a session, or in one that does not give way to this trigger."""
    running = (session for session in context.table.holding() if session.is_running and edge in session.brokers)
    return any(trigger is None or _blocks_trigger(session, trigger) for session in running)


def _could_accept(context: EngineContext, edge: str) -> bool:
    """Whether an edge may accept: it is in no session, and neither its last report nor a later move rules it out.

    A target gives way to no trigger: if a session that only stabilises ends for one, its edges stabilise without it.
    """
    known = context.fleet.edges.get(edge)
    state = known.report.get("state", "OK") if known is not None else "OK"
    if state not in ("OK", "BUSY") or _is_engaged(context, edge):
        return False
    reported_at = context.fleet_observed_at - (known.report_age_seconds if known is not None else 0.0)
    return not any(
        (one.ended_at or 0.0) > reported_at and edge in one.brokers and one.counts()["moved"]
        for one in context.table.sessions.values()
        if one.triggered
    )


def _earliest_next(sessions: list[Session], pause: float) -> float:
    """When the next session may be created: `pause` seconds after one that moved no subscriber, longer after several.

    An empty plan does not count: its edge learns of it and triggers for something else. Busy targets count once: they
    may be free soon, so a longer pause would not help.
    """
    failed = refused = 0
    ended = sorted(((session.ended_at or 0.0, session) for session in sessions), key=lambda each: each[0], reverse=True)
    for _, session in ended:
        if session.counts()["moved"] or _has_found_nothing(session):
            break
        is_passing = any(offer.answer in TEMPORARY_ANSWERS for offer in session.offers)
        refused += is_passing
        failed += not is_passing
    if not failed + refused:
        return 0.0
    return ended[0][0] + pause * float(min(2 ** max(failed - 1, 0), LONGEST_PAUSE_FACTOR))


def _has_found_nothing(session: Session) -> bool:
    """Whether its policy found nothing to move, which holds until the loads change."""
    plan = session.plan
    return plan is not None and session.reason == NOTHING_TO_MOVE and not set(plan.rejected) & TEMPORARY_STAYS


def _session_spec(trigger: msg.Trigger, actions: Iterable[msg.ActionItem], rest: Duration) -> dict[str, Any]:
    """The specification of the session, as in YAML. A moved subscriber may move again once its edge has stabilised."""
    return {
        "scope": "Local",
        "source": {"name": trigger.edge},
        "action": "Rebalance",
        "mode": "Execute",
        "candidates": [_candidate_spec(action) for action in actions],
        "trigger": {"broker": trigger.edge, "reason": trigger.reason[:500]},
        "limits": {"queueFor": QUEUE_FOR, "moveInterval": str(rest)},
        "deadline": DEADLINE,
        "ttl": TTL,
    }


def _candidate_spec(action: msg.ActionItem) -> dict[str, Any]:
    difference = min(max(action.difference, 0.0), LARGEST_DIFFERENCE) if math.isfinite(action.difference) else 0.0
    found: dict[str, Any] = {
        "name": action.target,
        "metric": action.metric.capitalize(),
        "difference": f"{round(1000 * difference)}m",
    }
    overloaded = [each.capitalize() for each in named_resources(action.overloaded)]
    return {**found, "overloaded": overloaded} if overloaded else found


def surplus_sessions(context: EngineContext) -> Iterator[Session]:
    """The oldest ended sessions of triggers, beyond those that are kept."""
    ended = [each for each in context.table.sessions.values() if each.triggered and each.ended_at is not None]
    if len(ended) > ENDED_SESSIONS_AT_MOST:
        ended.sort(key=lambda session: (session.ended_at or 0.0, session.name))
        yield from (session for session in ended[:-ENDED_SESSIONS_AT_MOST] if session.uid in context.requests)
