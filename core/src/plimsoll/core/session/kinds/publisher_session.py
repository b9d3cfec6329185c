"""A session that moves publishers from the head of a cluster to those of others: docs/handover.md, 13.

The head that they leave decides each of them. It is sent one command at a time, and asked how the move stands; a head
that has restarted has forgotten the move, and its publishers open again there. A session that is to move all of them
lists them again after each round: some may have come meanwhile.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN
from plimsoll.core.protocol.messages import PublisherOutcome, PublisherPlan
from plimsoll.core.session import admission
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.completion import end_attempt, end_by_verdict, end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute import batches, delivery_audit, executor, head_batches
from plimsoll.core.session.execute.head_batches import HeadMoves
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.request import lifecycle, planner, publisher_plan
from plimsoll.core.session.session_plan import PlannedPair
from plimsoll.core.session.state import Session, SessionVerdict

ARRIVE_SECONDS: Final = 40.0
"""How long after its time to prepare a move may take to be reported: longer than a head waits for arrivals."""


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Both sides answer: the head that the publishers leave, and one that may take them."""
    why = admission.unready_head(context, session.sources[0])
    if why is None and not publisher_plan.target_heads(context, request):
        why = SessionVerdict(reason="NoTarget", message="no other head can take publishers now", again=True)
    return end_negotiation(context, request, session, why)


def step_sampling(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait for the list of publishers, and plan."""
    names = context.publisher_listings.of(session.uid, session.sources[0])
    if names is not None and (after := _with_plan(context, request, session, names)) is not None:
        return after
    if context.now < min(context.waiting_since(session) + context.timings.sample, session.deadline_at):
        return session
    what = "the load" if names is not None else "the publishers"
    message = f"{what} of {session.sources[0]} did not come in time"
    return end_by_verdict(context, request, session, SessionVerdict(reason="NoSample", message=message, again=True))


def _with_plan(context: EngineContext, request: SessionRequest, session: Session, names: list[str]) -> Session | None:
    """Execute an approved plan if all its publishers are still there, whatever they publish now; else make a new one.

    None while the policy waits for the load of the head.
    """
    old, stale = session.plan, ""
    if old is not None and session.approved == old.hash:
        missing = sorted({name for pair in old.pairs for name in pair.members} - set(names))
        if not missing:
            return lifecycle.begin_execution(context, session)
        stale = f"no longer at {session.sources[0]}: {planner.shorten_names(missing)}"
    plan = publisher_plan.make_publisher_plan(context, request, session, names)
    if plan is None:
        return None
    if stale:
        context.outbox.emit(session, "PlanStale", stale, "Warning")
        session = replace(session, approved="")
    return lifecycle.accept_plan(context, request, session, plan, stale)


# ---------------------------------------------------------------- the moves of a round


def _unready(context: EngineContext, _: SessionRequest, pair: PlannedPair) -> SessionVerdict | None:
    return admission.unready_head(context, pair.source) or admission.unready_head(context, pair.target)


def _arrival_seconds(context: EngineContext, _: float) -> float:
    return ARRIVE_SECONDS * context.settings.time_factor


def _lost(context: EngineContext, batch: Batch, why: str) -> Batch:
    return batches.end_batch(context, replace(batch, reason=why), UNKNOWN)


def is_drain(request: SessionRequest) -> bool:
    """Whether all publishers are to leave."""
    select = request.spec.select
    return select is not None and select.share_percent == 100


MOVES: Final = HeadMoves(_unready, _arrival_seconds, _lost, lists_rest=is_drain)


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step of the moves of a round."""
    return head_batches.step_moving(context, request, session, MOVES)


def send_intent(context: EngineContext, batch: Batch) -> None:
    """Send the command for a batch, unless it was sent lately."""
    step, seconds = head_batches.next_command(context, batch)
    target, plan = context.fleet.heads.get(batch.target), None
    if step == "move":
        if target is None:
            return
        plan = PublisherPlan(
            batch.target, target.endpoint, target.public_key, list(batch.members), batch.prepare_seconds
        )
    context.outbox.publisher_command(batch, step, seconds, plan)


def receive_outcome(context: EngineContext, batch: Batch, told: PublisherOutcome) -> Batch:
    """The batch after an outcome of its head. The engine has checked the mediator epoch before."""
    return head_batches.receive_outcome(context, batch, told, told.publishers, MOVES)


# ---------------------------------------------------------------- the end of a round


def step_stabilizing(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """The end; or another round, if all publishers are to leave and some are there."""
    if not is_drain(request) or session.verdict is not None:
        return _measured(context, request, session)
    if context.now < min(session.phase_at + context.timings.ask, session.deadline_at):
        return session  # those that have just opened are listed
    names = context.publisher_listings.of(session.uid, session.sources[0])
    if names is None:
        if context.now < min(session.phase_at + context.timings.sample, session.deadline_at):
            return session
        return _finished(context, request, session)
    left = [name for name in names if name not in request.spec.exclusions.subscribers]
    if not left and delivery_audit.is_awaited(context, session):
        return session  # while a head is drained it takes no new ones
    context.forget_answers(session.uid)
    if not left:
        counts = executor.outcomes_text(session.counts(), 0)
        return end_attempt(context, request, session, "Succeeded", SessionVerdict(reason="Drained", message=counts))
    if session.round + 1 >= context.settings.drain_rounds:
        shown = f"{len(left)} publishers remain: {', '.join(left[:10])}"
        return end_by_verdict(context, request, session, SessionVerdict(reason="NotEmpty", message=shown, again=True))
    plan = publisher_plan.make_publisher_plan(context, request, session, names)
    if plan is None or not plan.members:
        return session
    now = {name for pair in plan.pairs for name in pair.members}
    earlier = [replace(batch, members=_moved_for_good(batch, now)) for batch in session.batches]
    session = replace(session, plan=plan, approved=plan.hash, round=session.round + 1, batches=earlier)
    context.outbox.emit(session, "AnotherRound", lifecycle.plan_summary(plan))
    return session.entered("Preparing", context.now)


def _measured(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """The end, once subscribers have said what they were given; a plan that predicts loads is measured first."""
    if delivery_audit.is_awaited(context, session):
        return session
    predicts = session.plan is not None and bool(session.plan.forecasts) and session.verdict is None
    if predicts and executor.is_settling(context, session):
        return session
    return _finished(context, request, executor.with_measurements(context, session) if predicts else session)


def _moved_for_good(batch: Batch, now: set[str]) -> dict[str, str]:
    """The members of an earlier round that have moved: those that have not, or are back, count in the next one."""
    return {name: state for name, state in batch.members.items() if state == "moved" and name not in now}


def _finished(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    return executor.finish_session(context, request, session)
