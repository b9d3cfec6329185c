"""A session between two clusters: while it lasts, edges of both balance with one another as in one cluster.

PADRES 2006, 3.3. It moves no subscriber itself: the edges of each cluster are shown the loads of the other's, and their
triggers become sessions that this one owns. It ends when all edges are balanced with one another, when no edge has
triggered for a while, or by its deadline. Heads drop the loads shown to them when these are no longer repeated.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import admission
from plimsoll.core.session.completion import closing_seconds, end_attempt, end_by_verdict
from plimsoll.core.session.context.cluster_loads import cluster_load
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView, SessionRequest
from plimsoll.core.session.request import session_kind
from plimsoll.core.session.state import ChildSession, Session, SessionVerdict

SHOWN_REPEATS = 5.0
"""Loads of the other cluster are shown to edges for this many repeats, so one lost message does not end it."""

REPORTS_AT_ONCE = 128
QUIET_ROUNDS = 2.0
"""Rounds of stabilisation and detection without a trigger after which no edge is taken to want more."""


def step_requested(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait in the queue: a cluster takes part in one such session at a time."""
    if session.retry_at is not None and context.now < session.retry_at:
        return session
    if not session.between:
        is_triggered = request.spec.trigger is not None
        between = session_kind.requested_clusters(request, context.fleet)
        session = replace(session, kind="clusters", between=between, triggered=is_triggered)
    if wait := _blocking_session(context, session):
        if context.now < session.deadline_at:
            return session.because("Queued", wait)
        verdict = SessionVerdict(reason="QueueTimeout", message=f"limits.queueFor has passed: {wait}", again=True)
        return end_by_verdict(context, request, session, verdict)
    deadline = context.now + context.settings.seconds(request.spec.deadline)
    session = replace(session, started_at=context.now, deadline_at=deadline, retry_at=None, holds_until=None)
    return session.entered("Negotiating", context.now)


def requeue(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Queue a dry run that is to be carried out, as if it had just been created."""
    until = context.now + context.settings.seconds(request.spec.limits.queue_for)
    session = replace(session, queued_at=context.now, deadline_at=until, ended_at=None, started_at=None)
    return session.entered("Requested", context.now, "Queued", "its mode is Execute now")


def _blocking_session(context: EngineContext, session: Session) -> str:
    for other in context.table.open_sessions():
        if other.uid == session.uid or not set(other.between) & set(session.between):
            continue
        if admission.holds_brokers(context, other) or other.turn < session.turn:
            return f"waits for {other.name}"
    return ""


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """The handshake: both heads answer, and the target cluster is neither N/A nor stabilising."""
    if (why := _refusal(context, session)) is not None:
        if context.now < min(context.waiting_since(session) + context.timings.negotiate, session.deadline_at):
            return session.because(why.reason, why.message)
        return end_by_verdict(context, request, session, why)
    if request.spec.mode != "Execute":
        text = f"edges of {' and '.join(session.between)} would balance with one another; their sessions plan the moves"
        context.outbox.emit(session, request.spec.mode, text)
        planned = session.entered("Planned", context.now, request.spec.mode, text)
        return replace(planned, ended_at=context.now)
    context.outbox.emit(session, "Joined", f"edges of {' and '.join(session.between)} balance with one another")
    return replace(session, moving_at=context.now).entered("Preparing", context.now)


def _refusal(context: EngineContext, session: Session) -> SessionVerdict | None:
    for edge in context.fleet.edges_of(session.between):
        if (why := admission.unready_source(context, edge.name)) is not None:
            return why
    target = session.between[1]
    load = cluster_load(context, target)
    if load is None:
        return SessionVerdict(reason="NoLoad", message=f"the load of {target} is not known", again=True)
    resting = context.watched_clusters.get(target)
    if load.state == "N/A" or (resting is not None and resting.memory.since is not None):
        state = "N/A" if load.state == "N/A" else "STABILIZING"
        return SessionVerdict(reason="NobodyTakes", message=f"{target} accepts no load: it is {state}", again=True)
    return None


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step while the edges balance."""
    if context.now >= session.deadline_at - closing_seconds(context, session) / 2:
        session = session.stopped("DeadlineExceeded", "the deadline leaves no time for more moves", again=True)
    session = _with_children(context, session)
    are_open = any(not child.is_over for child in context.table.children(session.uid))
    if session.verdict is not None:
        if are_open and context.now < session.deadline_at:
            return session
        return end_by_verdict(context, request, session, session.verdict)
    if are_open:
        return session.entered("Draining", context.now) if session.phase == "Preparing" else session
    if not (apart := _unbalanced_edges(context, session)):
        verdict = SessionVerdict(reason="AllBalanced", message=f"all edges are balanced; {_moved_text(session)}")
        return end_attempt(context, request, session, "Succeeded", verdict)
    if context.now >= _last_change(context, session) + _quiet_seconds(context, session):
        text = f"{', '.join(apart[:5])} still differ, but trigger no more sessions; {_moved_text(session)}"
        return end_attempt(context, request, session, "Succeeded", SessionVerdict(reason="NothingMore", message=text))
    return session


def _moved_text(session: Session) -> str:
    return f"{session.counts()['moved']} moved in {len(session.children)} sessions"


def _with_children(context: EngineContext, session: Session) -> Session:
    """The session with the sessions that its edges have triggered, as they are now."""
    known = {child.name: child for child in session.children}
    for one in context.table.children(session.uid):
        counts = {state: number for state, number in one.counts().items() if number}
        source, target = "".join(one.sources[:1]), "".join(one.targets[:1])
        was = known.get(one.name)
        known[one.name] = ChildSession(
            name=one.name, source=source, target=target or (was.target if was is not None else ""),
            members=one.planned, uid=one.uid, phase=one.phase, reason=one.reason, counts=counts,
        )  # fmt: skip
    children = list(known.values())
    return session if children == session.children else replace(session, children=children)


def _unbalanced_edges(context: EngineContext, session: Session) -> list[str]:
    """Edges that are not balanced with all others of both clusters, by their last reports."""
    edges = list(context.fleet.edges_of(session.between))
    names = {edge.name for edge in edges}
    return [edge.name for edge in edges if names - {edge.name} - set(_balanced_set(edge))]


def _balanced_set(edge: EdgeView) -> Iterable[str]:
    found = edge.report.get("balanced_set")
    return [str(name) for name in found] if isinstance(found, list) else []


def _last_change(context: EngineContext, session: Session) -> float:
    ended = [one.ended_at for one in context.table.children(session.uid) if one.ended_at is not None]
    return max([session.moving_at or session.phase_at, *ended])


def _quiet_seconds(context: EngineContext, session: Session) -> float:
    policies = (context.loads.policy_of(edge.name) for edge in context.fleet.edges_of(session.between))
    policy = next((found for found in policies if found is not None), None)
    if policy is None:
        return context.timings.settle
    return QUIET_ROUNDS * (policy.parameters.stabilize_seconds + policy.parameters.detection_seconds)


def send_peer_loads(context: EngineContext, session: Session) -> None:
    """Send the loads of each cluster to the head of the other, which shows them to its edges."""
    if session.verdict is not None:
        return
    for cluster, other in (session.between, session.between[::-1]):
        head = next((edge.head for edge in context.fleet.edges_of([cluster])), "")
        if not head or not context.outbox.is_due(f"{session.uid}/joined/{cluster}", context.timings.ask):
            continue
        reports = [
            {key: value for key, value in edge.report.items() if key != "counters"}
            for edge in context.fleet.edges_of([other]) if edge.report
        ]  # fmt: skip
        for start in range(0, len(reports), REPORTS_AT_ONCE):
            some = reports[start : start + REPORTS_AT_ONCE]
            shown = msg.PeerClusterLoads(context.outbox.epoch, other, SHOWN_REPEATS * context.timings.ask, some)
            context.outbox.send(head, shown)
