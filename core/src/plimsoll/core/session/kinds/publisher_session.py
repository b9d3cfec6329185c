"""A session that moves publishers from the head of a cluster to those of others: docs/handover.md, 13.

The head that they leave decides each of them. It is sent one command at a time, and asked how the move stands; a head
that has restarted has forgotten the move, and its publishers open again there. A session that is to move all of them
lists them again after each round: some may have come meanwhile.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN
from plimsoll.core.protocol.messages import Outcome, PublisherOutcome, PublisherPlan
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.completion import closing_seconds, end_attempt, end_by_verdict, end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute import batches, delivery_audit, executor
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.request import lifecycle, planner, publisher_plan
from plimsoll.core.session.session_plan import PlannedPair
from plimsoll.core.session.state import Session, SessionVerdict

ARRIVE_SECONDS: Final = 40.0
"""How long after its time to prepare a move may take to be reported: longer than a head waits for arrivals."""


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Both sides answer: the head that the publishers leave, and one that may take them."""
    why = _unready(context, session.sources[0])
    if why is None and not publisher_plan.target_heads(context, request):
        why = SessionVerdict(reason="NoTarget", message="no other head can take publishers now", again=True)
    return end_negotiation(context, request, session, why)


def _unready(context: EngineContext, name: str) -> SessionVerdict | None:
    if context.now - context.fleet_observed_at > context.timings.view:
        return SessionVerdict(reason="NoView", message="the state of the fleet is not known, or is old", again=True)
    head = context.fleet.heads.get(name)
    if head is None or not head.reachable:
        return SessionVerdict(reason="HeadNotReady", message=f"{name} does not answer, or is starting", again=True)
    return None


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


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step of the moves of a round."""
    batch = session.batch
    if context.now >= session.deadline_at - closing_seconds(context, session):
        session = session.stopped("DeadlineExceeded", "the deadline leaves no time for more moves", again=True)
    if batch is None:
        return _begin_next_batch(context, request, session)
    after = _advance(context, batch, stopping=session.verdict is not None)
    if context.now >= session.deadline_at:
        after = batches.end_batch(context, batch, UNKNOWN)
    return session if after is batch else session.with_batch(after, context.now)


def _begin_next_batch(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    outcomes = session.outcomes()
    plan = session.plan
    if plan is None:
        raise AssertionError("a session that moves has a plan")
    left = [(pair, [name for name in pair.members if name not in outcomes]) for pair in plan.pairs]
    left = [(pair, names) for pair, names in left if names]
    if (
        not left and session.verdict is None and is_drain(request)
    ):  # also if none has moved: the head may have restarted
        return session.entered("Stabilizing", context.now, "Settling", "the publishers that remain are listed")
    if not left or session.verdict is not None:
        return executor.after_last_batch(context, request, session, sum(len(names) for _, names in left))
    pair, names = left[0]
    for head in (pair.source, pair.target):
        if (why := _unready(context, head)) is not None:
            if context.now < max(executor.idle_since(session), context.started_at) + context.timings.negotiate:
                return session.because(why.reason, why.message)
            return session.stopped(why.reason, why.message, again=True)
    if context.now < executor.next_batch_at(context, request, session):
        return session.because("Paced", f"limits.maxMovesPerMinute is {request.spec.limits.max_moves_per_minute}")
    batch = _new_batch(context, request, session, pair, names)
    context.confirmed_batches.add(batch.id)
    return replace(session, batches=[*session.batches, batch]).because("", "")


def _new_batch(
    context: EngineContext, request: SessionRequest, session: Session, pair: PlannedPair, names: list[str]
) -> Batch:
    left = session.deadline_at - closing_seconds(context, session) - context.now
    return Batch(
        id=context.outbox.next_batch_id(),
        head=pair.source,
        head_epoch=context.fleet.heads[pair.source].epoch,
        source=pair.source,
        target=pair.target,
        target_head=pair.target,
        replay=False,
        prepare_seconds=min(context.timings.prepare, max(0.3 * left, 0.1)),
        drain_seconds=ARRIVE_SECONDS * context.settings.time_factor,
        begun_at=context.now,
        since=context.now,
        members=dict.fromkeys(executor.fit_batch(names, executor.batch_limit(request)), ""),
    )


# ---------------------------------------------------------------- commands and outcomes


def _advance(context: EngineContext, batch: Batch, *, stopping: bool) -> Batch:
    """The batch as its head reports it; at its end once all are decided, or the head has forgotten it."""
    if batch.state == "done":
        return batches.end_batch(context, batch, UNKNOWN)
    head = context.fleet.heads.get(batch.head)
    if head is not None and head.epoch > batch.head_epoch:
        return batches.end_batch(context, replace(batch, reason=f"{batch.head} has restarted"), UNKNOWN)
    if context.now >= batch.begun_at + batch.prepare_seconds + batch.drain_seconds:
        unheard = replace(batch, reason=f"{batch.head} does not report the outcome")
        return batches.end_batch(context, unheard, UNKNOWN)
    if stopping and batch.intent == "prepare":
        return batch.wanting("abort", context.now)
    return batch


def send_intent(context: EngineContext, batch: Batch) -> None:
    """Repeat the command until an outcome confirms it; then ask, since outcomes may be lost."""
    timings, outbox = context.timings, context.outbox
    plan = None
    step: Literal["move", "abort", "ask"]
    if batch.intent == "abort":
        step, seconds = "abort", timings.repeat
    elif batch.state or batch.epoch != outbox.epoch:
        step, seconds = "ask", timings.ask
    else:
        step, seconds = "move", timings.repeat
        target = context.fleet.heads.get(batch.target)
        if target is None:
            return
        plan = PublisherPlan(
            batch.target, target.endpoint, target.public_key, list(batch.members), batch.prepare_seconds
        )
    outbox.publisher_command(batch, step, seconds, plan)


def receive_outcome(context: EngineContext, batch: Batch, told: PublisherOutcome) -> Batch:
    """The batch after an outcome of its head. The engine has checked the mediator epoch before."""
    code = told.reason.partition(":")[0]
    if batch.ended_at is not None or told.head_epoch < batch.head_epoch:
        return batch
    if told.state == "failed":
        if code in ("starting", "mediator-epoch", "head-epoch") or batch.state:
            return batch
        return batches.end_batch(context, replace(batch, reason=told.reason), "stayed")
    if told.state == "unknown":
        if not batch.state and batch.epoch == context.outbox.epoch:
            return batch  # the command may not have arrived
        return batches.end_batch(context, replace(batch, reason=f"{batch.head} does not know it"), UNKNOWN)
    return _progressed(context, batch, told)


def _progressed(context: EngineContext, batch: Batch, told: PublisherOutcome) -> Batch:
    members, reason = [], batch.reason
    for name, text in told.publishers:
        state, _, why = text.partition(": ")
        members.append((name, "preparing" if state == "asked" else state))
        reason = why if why and state != "moved" else reason
    now: Literal["done", "preparing"] = "done" if told.state == "done" else "preparing"
    outcome = Outcome(told.session, told.mediator, told.head_epoch, now, members, reason)
    after = batch.progressed(outcome, context.now)
    has_cut = any(state in ("cut", "moved", "returned") for state in after.members.values())
    return replace(after, cut_at=context.now) if has_cut and after.cut_at is None else after


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


def is_drain(request: SessionRequest) -> bool:
    """Whether all publishers are to leave."""
    select = request.spec.select
    return select is not None and select.share_percent == 100


def _moved_for_good(batch: Batch, now: set[str]) -> dict[str, str]:
    """The members of an earlier round that have moved: those that have not, or are back, count in the next one."""
    return {name: state for name, state in batch.members.items() if state == "moved" and name not in now}


def _finished(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    return executor.finish_session(context, request, session)
