"""A parent: it plans for several pairs of edges, and each pair is a session of its own, made as an object by the shell.

The parent keeps its sources; its children queue for the targets. What ends the parent ends its children: they begin
nothing more. A drain looks again who is left, and goes another round for them, as long as its plan was its own to make.
Children of a plan in waves begin wave by wave; who would take what an earlier wave has not made room for takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from plimsoll.core.session import admission, loads, planned, planning
from plimsoll.core.session.ending import closing_seconds, end, ended_by
from plimsoll.core.session.events import Create
from plimsoll.core.session.moving import finish, measured, must_wait, told
from plimsoll.core.session.record import Child, Phase, Session, Verdict
from plimsoll.core.session.turn import Turn, because, enter, judged
from plimsoll.core.session.values import Request

LONGEST_PAUSE = 20.0
"""The pause between two rounds of a drain is at most so many times the one before the first."""

STILL_THERE = 0.1
"""A later wave goes where an earlier one has left behind at most this part of those that should have made room."""


def step(turn: Turn, request: Request, session: Session) -> Session:
    """One step while its children work."""
    if turn.now >= session.deadline_at - closing_seconds(turn, session) / 2:
        session = judged(session, "DeadlineExceeded", "the deadline left no time for more", again=True)
    session = _looked_after(turn, session)
    if all(_is_over(child) for child in session.children):
        return _next(turn, request, session)
    if turn.now >= session.deadline_at:
        return ended_by(turn, request, session, _verdict(session))
    if session.phase == "Preparing" and any(child.phase not in ("Requested", "Rejected") for child in session.children):
        return enter(session, "Draining", turn.now)
    return session


def _verdict(session: Session) -> Verdict:
    why = session.verdict or Verdict(reason="NotEmpty", message="not all could be moved", again=True)
    return replace(why, message=f"{why.message}; {told(session.counts(), 0)}")


def _is_over(child: Child) -> bool:
    return child.phase in ("Succeeded", "Failed", "RolledBack", "Rejected")


def _looked_after(turn: Turn, session: Session) -> Session:
    """The parent with what its children are by now."""
    by_name = {child.name: child for child in turn.book.children(session.uid)}
    children = [_updated(child, by_name.get(child.name), stopped=session.verdict is not None)
                for child in session.children]  # fmt: skip
    children = [_without_room(child) if _is_next(child, children) and _is_short(child, children) else child
                for child in children]  # fmt: skip
    return session if children == session.children else replace(session, children=children)


def _without_room(child: Child) -> Child:
    return replace(child, phase="Rejected", reason="NoRoom", counts={"stayed": child.members})


def _is_next(child: Child, children: Iterable[Child]) -> bool:
    """Whether it has not begun, and nothing before it keeps it from that."""
    earlier = (other for other in children if other.round == child.round and other.wave < child.wave)
    return not child.uid and not _is_over(child) and all(_is_over(other) for other in earlier)


def _is_short(child: Child, children: Iterable[Child]) -> bool:
    """Whether too many are still at its target who should have left it in an earlier wave."""
    before = [other for other in children
              if (other.round, other.source) == (child.round, child.target) and other.wave < child.wave]  # fmt: skip
    left = sum(other.members - other.counts.get("moved", 0) - other.counts.get("detached", 0) for other in before)
    return left > STILL_THERE * sum(other.members for other in before)


def _updated(child: Child, session: Session | None, *, stopped: bool) -> Child:
    if session is not None:
        phase: Phase = session.phase
        counts = {state: number for state, number in session.counts().items() if number}
        audit = session.audit() if session.audit().subscribers else child.audit
        updated = replace(child, uid=session.uid, phase=phase, reason=session.reason, counts=counts, audit=audit)
        return _with_rest(updated, "stayed") if session.is_over else updated
    if _is_over(child):
        return child
    if child.uid:
        return _with_rest(replace(child, phase="Failed", reason="Deleted"), "unknown")
    return _with_rest(replace(child, phase="Rejected", reason="Stopped"), "stayed") if stopped else child


def _with_rest(child: Child, outcome: str) -> Child:
    """A child that has ended: whoever has no outcome has this one."""
    rest = child.members - sum(child.counts.values())
    counts = {**child.counts, outcome: child.counts.get(outcome, 0) + rest} if rest > 0 else child.counts
    return replace(child, counts=counts)


def speak(turn: Turn, request: Request, session: Session) -> None:
    """Ask for the objects of children that are not there yet."""
    for child in session.children:
        if _is_next(child, session.children) and turn.is_due(f"{session.uid}/{child.name}", turn.timings.ask):
            turn.effects.append(Create(child.name, session.uid, session.name, _spec(turn, request, session, child)))


def _spec(turn: Turn, request: Request, session: Session, child: Child) -> dict[str, Any]:
    pairs = session.plan.pairs if session.plan is not None else []
    way = (child.source, child.target, child.wave)
    pair = next(pair for pair in pairs if (pair.source, pair.target, pair.wave) == way)
    spec = request.spec
    seconds = max(1, int((session.deadline_at - turn.now) / turn.settings.time_factor))
    limits = {"maxInFlight": spec.limits.max_in_flight, "queueFor": f"{seconds}s"}
    if spec.limits.max_moves_per_minute is not None:  # together they are no faster than their parent may be
        siblings = sum((other.round, other.wave) == (child.round, child.wave) for other in session.children)
        limits["maxMovesPerMinute"] = max(1, spec.limits.max_moves_per_minute // siblings)
    return {
        "scope": "Global" if pair.is_across or spec.scope == "Global" else "Local",
        "source": {"name": child.source},
        "target": {"name": child.target},
        "action": "Rebalance",
        "select": {"names": list(pair.members)},
        "mode": "Execute",
        "handover": spec.handover,
        "limits": limits,
        "deadline": f"{seconds}s",
        "ttl": str(spec.ttl),
    }


# ---------------------------------------------------------------- when all children are over


def _next(turn: Turn, request: Request, session: Session) -> Session:
    if session.verdict is not None:
        return ended_by(turn, request, session, _verdict(session))
    if not session.is_drain and not session.counts()["moved"]:
        verdict = Verdict(reason="NobodyMoved", message=told(session.counts(), 0), again=True)
        return ended_by(turn, request, session, verdict)
    turn.unlist(session.uid)
    return enter(session, "Stabilizing", turn.now, "Settling", "loads settle, then they are measured")


def stabilizing(turn: Turn, request: Request, session: Session) -> Session:
    """Once loads have settled, see who is left."""
    settled = min(session.phase_at + _pause(turn, session), session.deadline_at - closing_seconds(turn, session) / 2)
    if session.verdict is None and (turn.now < settled or must_wait(turn, session)):
        return session
    if not session.is_drain:
        return finish(turn, request, measured(turn, session))
    served = _who_is_left(turn, session)
    if served is None:
        if turn.now < min(session.phase_at + _pause(turn, session) + turn.timings.sample, session.deadline_at):
            return session
        reason = "NoSample" if turn.now < session.deadline_at else "DeadlineExceeded"
        verdict = Verdict(reason=reason, message="the head has not said who is left", again=True)
        return ended_by(turn, request, session, session.verdict or verdict)
    turn.unlist(session.uid)
    left = [x for names in served.values() for x in names if x not in request.spec.exclusions.subscribers]
    if not left:
        verdict = Verdict(reason="Drained", message=told(session.counts(), 0))
        return end(turn, request, measured(turn, session), "Succeeded", verdict)
    return _another_round(turn, request, session, served, left)


def _pause(turn: Turn, session: Session) -> float:
    """How long after its last move a parent looks again: longer each time."""
    if session.is_shuffle:
        return loads.settle_seconds(turn, session)
    return turn.timings.settle * min(2.0**session.round, LONGEST_PAUSE)


def _who_is_left(turn: Turn, session: Session) -> dict[str, list[str]] | None:
    """Whom the sources serve; an edge that is gone serves nobody. None as long as it is not known."""
    edges = turn.view.edges if turn.view is not None else {}
    why = {name: admission.unready_source(turn, name) for name in session.sources}
    if any(verdict is not None and verdict.reason in ("NoView", "HeadNotReady") for verdict in why.values()):
        return None
    return turn.listings(session.uid, [(name, edges[name].head) for name, verdict in why.items() if verdict is None])


def _another_round(
    turn: Turn, request: Request, session: Session, served: dict[str, list[str]], left: list[str]
) -> Session:
    if turn.now >= session.deadline_at - closing_seconds(turn, session):
        session = judged(session, "DeadlineExceeded", "", again=True)
    wants_more = session.verdict is None and request.spec.approval.policy == "Automatic"
    if wants_more and not request.spec.approval.plan_hash and session.round + 1 < turn.settings.drain_rounds:
        plan, _ = planned.plan_of(turn, request, session, served)
        if plan.pairs:
            session = replace(session, plan=plan, approved=plan.hash, round=session.round + 1)
            more = planned.children_of(session, plan)
            turn.tell(session, "AnotherRound", planned.summary(plan))
            session = replace(session, children=[*session.children, *more])
            return enter(because(session, "", ""), "Preparing", turn.now)
    message = f"{len(left)} are still there: {planning.shown(left)}; {told(session.counts(), 0)}"
    verdict = session.verdict or Verdict(reason="NotEmpty", message="", again=True)
    return ended_by(turn, request, session, replace(verdict, message=message))
