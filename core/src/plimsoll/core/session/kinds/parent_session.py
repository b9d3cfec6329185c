"""A parent plans for several pairs of edges; each pair is a session of its own, created as an object by the shell.

The parent keeps its sources busy, and its children queue for the targets alone. When the parent stops, its children
begin no further batch. A drain lists the remaining subscribers after each round and plans another round for them,
unless an operator has approved a certain plan. Children of a plan in waves begin wave by wave; a child whose target was
not emptied enough by an earlier wave is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from plimsoll.core.session import admission
from plimsoll.core.session.completion import closing_seconds, end_attempt, end_by_verdict
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute.executor import finish_session, is_settling, outcomes_text, with_measurements
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.request import lifecycle, planner
from plimsoll.core.session.session_plan import PlannedPair
from plimsoll.core.session.state import ChildSession, Phase, Session, SessionVerdict

LONGEST_PAUSE_FACTOR = 20.0
"""The longest pause between two rounds of a drain, as a multiple of the first."""

LEFT_BEHIND_SHARE = 0.1
"""The largest share of subscribers that an earlier wave may leave at an edge to which a later wave moves others."""

UNASKED = "unknown"
"""The outcome of members whose source was not asked about them: only its word makes one `stayed`."""
FREES_ITS_PLACE = ("moved", "detached", "gone")
"""Outcomes of members that leave room at their source."""


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step while the children run."""
    if context.now >= session.deadline_at - closing_seconds(context, session) / 2:
        session = session.stopped("DeadlineExceeded", "the deadline leaves no time for more moves", again=True)
    session = _with_updated_children(context, session)
    if all(_is_over(child) for child in session.children):
        return _after_children(context, request, session)
    if context.now >= session.deadline_at:
        return end_by_verdict(context, request, session, _final_verdict(session))
    if session.phase == "Preparing" and any(child.phase not in ("Requested", "Rejected") for child in session.children):
        return session.entered("Draining", context.now)
    return session


def _final_verdict(session: Session) -> SessionVerdict:
    why = session.verdict or SessionVerdict(reason="NotEmpty", message="not all subscribers could be moved", again=True)
    return replace(why, message=f"{why.message}; {outcomes_text(session.counts(), 0)}")


def _is_over(child: ChildSession) -> bool:
    return child.phase in ("Succeeded", "Failed", "RolledBack", "Rejected")


def _with_updated_children(context: EngineContext, session: Session) -> Session:
    """The parent with the phases and counts that its children have now."""
    by_name = {child.name: child for child in context.table.children(session.uid)}
    children = [_updated_child(child, by_name.get(child.name), stopped=session.verdict is not None)
                for child in session.children]  # fmt: skip
    children = [_without_room(child) if _is_next(child, children) and _lacks_room(child, children) else child
                for child in children]  # fmt: skip
    return session if children == session.children else replace(session, children=children)


def _without_room(child: ChildSession) -> ChildSession:
    return replace(child, phase="Rejected", reason="NoRoom", counts={UNASKED: child.members})


def _is_next(child: ChildSession, children: Iterable[ChildSession]) -> bool:
    """Whether a child has not begun, and all children of earlier waves are over."""
    earlier = (other for other in children if other.round == child.round and other.wave < child.wave)
    return not child.uid and not _is_over(child) and all(_is_over(other) for other in earlier)


def _lacks_room(child: ChildSession, children: Iterable[ChildSession]) -> bool:
    """Whether an earlier wave has left too many subscribers at the target of this child."""
    before = [other for other in children
              if (other.round, other.source) == (child.round, child.target) and other.wave < child.wave]  # fmt: skip
    left = sum(other.members - sum(other.counts.get(state, 0) for state in FREES_ITS_PLACE) for other in before)
    return left > LEFT_BEHIND_SHARE * sum(other.members for other in before)


def _updated_child(child: ChildSession, session: Session | None, *, stopped: bool) -> ChildSession:
    if session is not None:
        phase: Phase = session.phase
        counts = {state: number for state, number in session.counts().items() if number}
        audit = session.audit() if session.audit().subscribers else child.audit
        updated = replace(child, uid=session.uid, phase=phase, reason=session.reason, counts=counts, audit=audit)
        return _with_rest_outcome(updated, UNASKED) if session.is_over else updated
    if _is_over(child):
        return child
    if child.uid:
        return _with_rest_outcome(replace(child, phase="Failed", reason="Deleted"), "unknown")
    return _with_rest_outcome(replace(child, phase="Rejected", reason="Stopped"), UNASKED) if stopped else child


def _with_rest_outcome(child: ChildSession, outcome: str) -> ChildSession:
    """A child that has ended: its members without an outcome have this one."""
    rest = child.members - sum(child.counts.values())
    counts = {**child.counts, outcome: child.counts.get(outcome, 0) + rest} if rest > 0 else child.counts
    return replace(child, counts=counts)


def create_children(context: EngineContext, request: SessionRequest, session: Session) -> None:
    """Ask the shell to create children of the current wave that are not there yet."""
    for child in session.children:
        is_next = _is_next(child, session.children)
        if is_next and context.outbox.is_due(f"{session.uid}/{child.name}", context.timings.ask):
            context.outbox.create(child.name, session, _child_spec(context, request, session, child))


def _child_spec(
    context: EngineContext, request: SessionRequest, session: Session, child: ChildSession
) -> dict[str, Any]:
    pairs = session.plan.pairs if session.plan is not None else []
    way = (child.source, child.target, child.wave)
    pair = next(pair for pair in pairs if (pair.source, pair.target, pair.wave) == way)
    spec = request.spec
    seconds = max(1, int((session.deadline_at - context.now) / context.settings.time_factor))
    limits = {"maxInFlight": _in_flight_share(context, request, session, child), "queueFor": f"{seconds}s"}
    if spec.limits.max_moves_per_minute is not None:  # together they must not exceed their parent's rate
        siblings = sum((other.round, other.wave) == (child.round, child.wave) for other in session.children)
        limits["maxMovesPerMinute"] = max(1, spec.limits.max_moves_per_minute // siblings)
    handover = _child_handover(context, request, session, pair)
    is_global = pair.is_across or (spec.scope == "Global" and handover != "Replay")
    return {
        "scope": "Global" if is_global else "Local",
        "source": {"name": child.source},
        "target": {"name": child.target},
        "action": "Rebalance",
        "select": {"names": list(pair.members)},
        "mode": "Execute",
        "handover": handover,
        "limits": limits,
        "deadline": f"{seconds}s",
        "ttl": str(spec.ttl),
    }


def _in_flight_share(context: EngineContext, request: SessionRequest, session: Session, child: ChildSession) -> int:
    """Of the members that may leave a source at one time, those of one of the children that run side by side."""
    at = (child.round, child.wave, child.source)
    beside = sum((other.round, other.wave, other.source) == at for other in session.children)
    return max(1, request.spec.limits.max_in_flight // min(beside, context.settings.max_sessions))


def _child_handover(context: EngineContext, request: SessionRequest, session: Session, pair: PlannedPair) -> str:
    """As requested; by replay if a drain has waited long enough for clients that do not attach at their target."""
    handover = request.spec.handover
    if session.kind != "drain" or handover != "Auto" or session.round == 0 or session.moving_at is None:
        return handover
    patience = context.settings.drain_patience_seconds * context.settings.time_factor
    if context.now < session.moving_at + patience or not {pair.source, pair.target} <= context.fleet.edges.keys():
        return handover  # also while a new mediator does not know these edges yet
    choice = lifecycle.handover_method_of(context, "Replay", pair.source, pair.target)
    return handover if choice.refused else "Replay"


# ---------------------------------------------------------------- when all children are over


def _after_children(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    if session.verdict is not None:
        return end_by_verdict(context, request, session, _final_verdict(session))
    if session.kind != "drain" and not session.counts()["moved"]:
        verdict = SessionVerdict(reason="NobodyMoved", message=outcomes_text(session.counts(), 0), again=True)
        return end_by_verdict(context, request, session, verdict)
    context.forget_answers(session.uid)
    return session.entered("Stabilizing", context.now, "Settling", "loads settle, then they are measured")


def step_stabilizing(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Measure once loads have settled; a drain then lists the remaining subscribers."""
    settled = min(
        session.phase_at + _settle_seconds(context, session),
        session.deadline_at - closing_seconds(context, session) / 2,
    )
    if session.verdict is None and (is_settling(context, session) or context.now < settled):
        return session
    if session.kind != "drain":
        return finish_session(context, request, with_measurements(context, session))
    served = _remaining_subscribers(context, session)
    if served is None:
        if context.now < min(
            session.phase_at + _settle_seconds(context, session) + context.timings.sample, session.deadline_at
        ):
            return session
        reason = "NoSample" if context.now < session.deadline_at else "DeadlineExceeded"
        verdict = SessionVerdict(reason=reason, message="the remaining subscribers were not listed in time", again=True)
        return end_by_verdict(context, request, session, session.verdict or verdict)
    context.forget_answers(session.uid)
    left = [x for names in served.values() for x in names if x not in request.spec.exclusions.subscribers]
    if not left:
        verdict = SessionVerdict(reason="Drained", message=outcomes_text(session.counts(), 0))
        return end_attempt(context, request, with_measurements(context, session), "Succeeded", verdict)
    return _begin_next_round(context, request, session, served, left)


def _settle_seconds(context: EngineContext, session: Session) -> float:
    """From the last move to the next listing. It doubles: a client away keeps its place for its lease."""
    if session.is_fleet_wide:
        return context.loads.settle_seconds(session)
    return context.timings.settle * min(2.0**session.round, LONGEST_PAUSE_FACTOR)


def _remaining_subscribers(context: EngineContext, session: Session) -> dict[str, list[str]] | None:
    """The subscribers of the sources, none for an edge that is gone; None until they are listed."""
    edges = context.fleet.edges
    why = {name: admission.unready_source(context, name) for name in session.sources}
    if any(verdict is not None and verdict.reason in ("NoView", "HeadNotReady") for verdict in why.values()):
        return None
    return context.listings.of_all(
        session.uid, [(name, edges[name].head) for name, verdict in why.items() if verdict is None]
    )


def _begin_next_round(
    context: EngineContext, request: SessionRequest, session: Session, served: dict[str, list[str]], left: list[str]
) -> Session:
    if context.now >= session.deadline_at - closing_seconds(context, session):
        session = session.stopped("DeadlineExceeded", "", again=True)
    wants_more = session.verdict is None and request.spec.approval.policy == "Automatic"
    if wants_more and not request.spec.approval.plan_hash and session.round + 1 < context.settings.drain_rounds:
        plan, _ = lifecycle.make_selection_plan(context, request, session, served)
        if plan.pairs:
            session = replace(session, plan=plan, approved=plan.hash, round=session.round + 1)
            more = lifecycle.make_children(session, plan)
            context.outbox.emit(session, "AnotherRound", lifecycle.plan_summary(plan))
            session = replace(session, children=[*session.children, *more])
            return session.because("", "").entered("Preparing", context.now)
    message = f"{len(left)} subscribers remain: {planner.shorten_names(left)}; {outcomes_text(session.counts(), 0)}"
    verdict = session.verdict or SessionVerdict(reason="NotEmpty", message="", again=True)
    return end_by_verdict(context, request, session, replace(verdict, message=message))
