"""A session between two clusters: while it lasts, edges of both balance with one another as if they were of one.

PADRES 2006, 3.3. It moves nobody itself. Edges of each cluster are shown the loads of the other's; what they want
becomes sessions that this one owns. It ends when all of them are balanced with one another, when nobody wants anything
more, or by its deadline; what it showed is then no longer shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from plimsoll.core import records as r
from plimsoll.core.session import admission, loads, overview
from plimsoll.core.session.ending import closing_seconds, end, ended_by
from plimsoll.core.session.events import Send
from plimsoll.core.session.record import Child, Session, Verdict
from plimsoll.core.session.turn import Turn, because, enter, judged
from plimsoll.core.session.values import EdgeView, Request

SHOWN_FOR = 5.0
"""A head shows its edges the other cluster's loads for so many times as long as they are said."""

REPORTS_AT_ONCE = 128
QUIET_ROUNDS = 2.0
"""Nobody wants anything more: for so many times as long as an edge stabilises and looks again."""


def between(turn: Turn, request: Request) -> list[str]:
    """The two clusters that a request would join; empty if it asks for something else."""
    spec, view = request.spec, turn.view
    if spec.scope != "Global" or spec.action != "Rebalance" or spec.select is not None or request.parent:
        return []
    named = [party.name for party in (spec.source, spec.target) if party is not None]
    if view is None or len(set(named)) != 2 or not all(admission.is_cluster(turn, name) for name in named):
        return []
    return named if all(name in view.policies for name in named) else []


def requested(turn: Turn, request: Request, session: Session) -> Session:
    """In the queue: a cluster takes part in one such session at a time."""
    if session.retry_at is not None and turn.now < session.retry_at:
        return session
    if not session.between:
        is_triggered = request.spec.trigger is not None
        session = replace(session, between=between(turn, request), is_parent=True, triggered=is_triggered)
    if wait := _blocked(turn, session):
        if turn.now < session.deadline_at:
            return because(session, "Queued", wait)
        verdict = Verdict(reason="QueueTimeout", message=f"limits.queueFor is over: {wait}", again=True)
        return ended_by(turn, request, session, verdict)
    deadline = turn.now + turn.settings.seconds(request.spec.deadline)
    session = replace(session, started_at=turn.now, deadline_at=deadline, retry_at=None, holds_until=None)
    return enter(session, "Negotiating", turn.now)


def queued(turn: Turn, request: Request, session: Session) -> Session:
    """One that was dry, and is to be carried out: it waits for its turn as if it had just been asked for."""
    until = turn.now + turn.settings.seconds(request.spec.limits.queue_for)
    session = replace(session, queued_at=turn.now, deadline_at=until, ended_at=None, started_at=None)
    return enter(session, "Requested", turn.now, "Queued", "its mode is Execute now")


def _blocked(turn: Turn, session: Session) -> str:
    for other in turn.book.open():
        if other.uid == session.uid or not set(other.between) & set(session.between):
            continue
        if admission.holds(turn, other) or (other.queued_at, other.name) < (session.queued_at, session.name):
            return f"waits for {other.name}"
    return ""


def negotiating(turn: Turn, request: Request, session: Session) -> Session:
    """The handshake: both heads answer, and the cluster that takes is neither overloaded nor stabilising."""
    if (why := _refusal(turn, session)) is not None:
        if turn.now < min(turn.waits_since(session) + turn.timings.negotiate, session.deadline_at):
            return because(session, why.reason, why.message)
        return ended_by(turn, request, session, why)
    if request.spec.mode != "Execute":
        text = f"edges of {' and '.join(session.between)} would balance with one another; what moves is planned by them"
        turn.tell(session, request.spec.mode, text)
        planned = enter(session, "Planned", turn.now, request.spec.mode, text)
        return replace(planned, ended_at=turn.now)
    turn.tell(session, "Joined", f"edges of {' and '.join(session.between)} balance with one another")
    return enter(replace(session, moving_at=turn.now), "Preparing", turn.now)


def _refusal(turn: Turn, session: Session) -> Verdict | None:
    for edge in _edges(turn, session.between):
        if (why := admission.unready_source(turn, edge.name)) is not None:
            return why
    target = session.between[1]
    load = overview.load_of(turn, target)
    if load is None:
        return Verdict(reason="NoLoad", message=f"the load of {target} is not known", again=True)
    resting = turn.watched.get(target)
    if load.state == "N/A" or (resting is not None and resting.memory.since is not None):
        state = "N/A" if load.state == "N/A" else "STABILIZING"
        return Verdict(reason="NobodyTakes", message=f"nobody takes: {target} is {state}", again=True)
    return None


def step(turn: Turn, request: Request, session: Session) -> Session:
    """One step while edges balance."""
    if turn.now >= session.deadline_at - closing_seconds(turn, session) / 2:
        session = judged(session, "DeadlineExceeded", "the deadline left no time for more", again=True)
    session = _with_children(turn, session)
    are_open = any(not child.is_over for child in turn.book.children(session.uid))
    if session.verdict is not None:
        if are_open and turn.now < session.deadline_at:
            return session
        return ended_by(turn, request, session, session.verdict)
    if are_open:
        return enter(session, "Draining", turn.now) if session.phase == "Preparing" else session
    if not (apart := _apart(turn, session)):
        verdict = Verdict(reason="AllBalanced", message=f"all edges are balanced; {_moved(session)}")
        return end(turn, request, session, "Succeeded", verdict)
    if turn.now >= _last_change(turn, session) + _quiet_seconds(turn, session):
        text = f"{', '.join(apart[:5])} differ still, and want nothing more; {_moved(session)}"
        return end(turn, request, session, "Succeeded", Verdict(reason="NothingMore", message=text))
    return session


def _moved(session: Session) -> str:
    return f"{session.counts()['moved']} moved in {len(session.children)} sessions"


def _with_children(turn: Turn, session: Session) -> Session:
    """What its edges have wanted, as far as it has come."""
    known = {child.name: child for child in session.children}
    for one in turn.book.children(session.uid):
        counts = {state: number for state, number in one.counts().items() if number}
        source, target = "".join(one.sources[:1]), "".join(one.targets[:1])
        was = known.get(one.name)
        known[one.name] = Child(
            name=one.name, source=source, target=target or (was.target if was is not None else ""),
            members=one.planned, uid=one.uid, phase=one.phase, reason=one.reason, counts=counts,
        )  # fmt: skip
    children = list(known.values())
    return session if children == session.children else replace(session, children=children)


def _apart(turn: Turn, session: Session) -> list[str]:
    """Edges that are not balanced with all others of both clusters, by their last reports."""
    edges = list(_edges(turn, session.between))
    names = {edge.name for edge in edges}
    return [edge.name for edge in edges if names - {edge.name} - set(_balanced(edge))]


def _balanced(edge: EdgeView) -> Iterable[str]:
    found = edge.report.get("balanced_set")
    return [str(name) for name in found] if isinstance(found, list) else []


def _last_change(turn: Turn, session: Session) -> float:
    ended = [one.ended_at for one in turn.book.children(session.uid) if one.ended_at is not None]
    return max([session.moving_at or session.phase_at, *ended])


def _quiet_seconds(turn: Turn, session: Session) -> float:
    policies = (loads.policy_of(turn, edge.name) for edge in _edges(turn, session.between))
    policy = next((found for found in policies if found is not None), None)
    if policy is None:
        return turn.timings.settle
    return QUIET_ROUNDS * (policy.parameters.stabilize_seconds + policy.parameters.detection_seconds)


def _edges(turn: Turn, clusters: Iterable[str]) -> list[EdgeView]:
    edges = turn.view.edges if turn.view is not None else {}
    wanted = set(clusters)
    return [edge for _, edge in sorted(edges.items()) if edge.cluster in wanted]


def speak(turn: Turn, session: Session) -> None:
    """Show the edges of each cluster what those of the other carry."""
    if session.verdict is not None:
        return
    for cluster, other in (session.between, session.between[::-1]):
        head = next((edge.head for edge in _edges(turn, [cluster])), "")
        if not head or not turn.is_due(f"{session.uid}/joined/{cluster}", turn.timings.ask):
            continue
        reports = [
            {key: value for key, value in edge.report.items() if key != "counters"}
            for edge in _edges(turn, [other]) if edge.report
        ]  # fmt: skip
        for start in range(0, len(reports), REPORTS_AT_ONCE):
            some = reports[start : start + REPORTS_AT_ONCE]
            turn.effects.append(Send(head, r.Joined(turn.epoch, other, SHOWN_FOR * turn.timings.ask, some)))
