"""A session that moves slices of a consumer group between its consumers: docs/groups.md.

The head of the group carries each pair out, and goes on without this mediator. Once a giver has been told to let go,
its slices cannot be called back: a session that is stopped then waits for what becomes of them. A head that restarts
has forgotten the command; where the slices are is read from a sample, once its members have said what they have.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN
from plimsoll.core.protocol.messages import Outcome, SliceMovesPlan, SliceOutcome
from plimsoll.core.protocol.slice_names import slice_name, slice_of_name
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.completion import closing_seconds, end_by_verdict, end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.group_samples import GroupSample
from plimsoll.core.session.execute import batches, executor
from plimsoll.core.session.inputs import HeadView, SessionRequest
from plimsoll.core.session.request import lifecycle, planner, slice_plan
from plimsoll.core.session.session_plan import Forecast, PlannedPair
from plimsoll.core.session.state import Session, SessionVerdict

MEASURE_SECONDS = 12.0
"""How long after loads have settled a session waits for consumers to report what they measured since their slices
changed: the interval of a report, for a consumer that was in the middle of one, and some beats."""


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """The head of the group answers for its members; no consumer is asked."""
    return end_negotiation(context, request, session, _unready(context, request))


def _unready(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    if context.now - context.fleet_observed_at > context.timings.view:
        return SessionVerdict(reason="NoView", message="the state of the fleet is not known, or is old", again=True)
    head = slice_plan.head_of(context, request)
    if head is None or not head.reachable:
        name = "its head" if head is None else head.name
        return SessionVerdict(reason="HeadNotReady", message=f"{name} does not answer, or is starting", again=True)
    return None


# ---------------------------------------------------------------- the plan


def step_sampling(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait for a sample of the group, and plan."""
    head, group = slice_plan.head_of(context, request), slice_plan.slices_of(request).group
    sample = None if head is None else context.group_samples.of(session.uid, head.name, group)
    if head is not None and sample is not None and (sample.is_settled or not sample.balancing):
        return _with_plan(context, request, session, head, sample)
    if sample is not None and context.outbox.is_due(f"{session.uid}/unsettled", context.timings.ask):
        context.group_samples.forget(session.uid)
    if context.now < min(context.waiting_since(session) + context.timings.sample, session.deadline_at):
        return session
    message = f"the list of the consumers of {group} did not arrive in time"
    return end_by_verdict(context, request, session, SessionVerdict(reason="NoSample", message=message, again=True))


def _with_plan(
    context: EngineContext, request: SessionRequest, session: Session, head: HeadView, sample: GroupSample
) -> Session:
    """Execute an approved plan if its slices are still with their givers; else make a new one."""
    if (why := slice_plan.sample_refusal(request, sample)) is not None:
        return end_by_verdict(context, request, session, why)
    old, stale = session.plan, ""
    if old is not None and session.approved == old.hash:
        missing = _moved_away(old.pairs, sample)
        if not missing:
            return lifecycle.begin_execution(context, session)
        stale = f"no longer with their consumer: {planner.shorten_names(missing)}"
        context.outbox.emit(session, "PlanStale", stale, "Warning")
        session = replace(session, approved="")
    plan = slice_plan.make_slice_plan(context, request, head, sample)
    return lifecycle.accept_plan(context, request, session, plan, stale)


def _moved_away(pairs: list[PlannedPair], sample: GroupSample) -> list[str]:
    holders = sample.holders
    return [
        name for pair in pairs for name in pair.members
        if (found := slice_of_name(name)) is not None and holders.get(found[1], "") != pair.source
    ]  # fmt: skip


# ---------------------------------------------------------------- moves


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step: a batch is slices of one giver and one taker, one after another."""
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
    outcomes, plan = session.outcomes(), session.plan
    if plan is None:
        raise AssertionError("a session that moves has a plan")
    pending = [(pair, [name for name in pair.members if name not in outcomes]) for pair in plan.pairs]
    left = [(pair, names) for pair, names in pending if names]
    if not left or session.verdict is not None:
        return executor.after_last_batch(context, request, session, sum(len(names) for _, names in left))
    if (why := _unready(context, request)) is not None:
        if context.now < max(executor.idle_since(session), context.started_at) + context.timings.negotiate:
            return session.because(why.reason, why.message)
        return session.stopped(why.reason, why.message, again=True)
    if context.now < executor.next_batch_at(context, request, session):
        return session.because("Paced", f"limits.maxMovesPerMinute is {request.spec.limits.max_moves_per_minute}")
    pair, names = left[0]
    batch = _new_batch(context, request, session, pair, names)
    context.confirmed_batches.add(batch.id)
    return replace(session, batches=[*session.batches, batch]).because("", "")


def _new_batch(
    context: EngineContext, request: SessionRequest, session: Session, pair: PlannedPair, names: list[str]
) -> Batch:
    left = session.deadline_at - closing_seconds(context, session) - context.now
    return Batch(
        id=context.outbox.next_batch_id(),
        head=pair.source_head,
        head_epoch=context.fleet.heads[pair.source_head].epoch,
        source=pair.source,
        target=pair.target,
        target_head=pair.target_head,
        replay=False,
        prepare_seconds=min(context.timings.prepare, max(0.3 * left, 0.1)),
        drain_seconds=min(context.timings.drain, max(0.5 * left, 0.1)),
        begun_at=context.now,
        since=context.now,
        members=dict.fromkeys(executor.fit_batch(names, executor.batch_limit(request)), ""),
    )


def _advance(context: EngineContext, batch: Batch, *, stopping: bool) -> Batch:
    """The batch as its head reports it; or as a sample shows it, if the head has forgotten the command."""
    if batch.state == "done":
        return batches.end_batch(context, batch, UNKNOWN)
    head = context.fleet.heads.get(batch.head)
    if batch.intent == "resolve":
        return _located(context, batch)
    if head is not None and head.epoch > batch.head_epoch:
        return replace(batch, reason=f"{batch.head} has restarted").wanting("resolve", context.now)
    if context.now >= batch.begun_at + batch.prepare_seconds + batch.drain_seconds:
        reason = batch.reason or f"{batch.head} does not report the outcome"
        return replace(batch, reason=reason).wanting("resolve", context.now)
    if stopping and batch.intent == "prepare":
        return batch.wanting("abort", context.now)
    return batch


def _located(context: EngineContext, batch: Batch) -> Batch:
    """The batch after a sample has shown which consumer has each slice."""
    found = slice_of_name(next(iter(batch.members), ""))
    if context.now >= batch.since + context.timings.resolve or found is None:
        # What is unknown may have been told to let go, and moves later.
        return batches.end_batch(context, replace(batch, cut_at=batch.cut_at or context.now), UNKNOWN)
    sample = context.group_samples.of(batch.id, batch.head, found[0])
    if sample is None:
        return batch
    numbers = set(slice_plan.numbers_of(batch.members))
    if not sample.is_settled or not sample.balancing or numbers & sample.moving:
        if context.outbox.is_due(f"{batch.id}/unsettled", context.timings.ask):
            context.group_samples.forget(batch.id)
        return batch
    holders, members = sample.holders, {}
    for name, state in batch.members.items():
        known = slice_of_name(name)
        holder = "" if known is None else holders.get(known[1], "")
        outcomes = {batch.target: "moved", batch.source: "stayed"}
        members[name] = state if state in ("moved", "stayed") else outcomes.get(holder, "detached")
    return batches.end_batch(context, replace(batch, members=members), UNKNOWN)


def send_intent(context: EngineContext, request: SessionRequest, batch: Batch) -> None:
    """Repeat the command until an outcome confirms it; then ask, since outcomes may be lost."""
    timings, outbox = context.timings, context.outbox
    step: Literal["move", "abort", "ask"]
    if batch.intent == "resolve":
        return
    if batch.intent == "abort":
        step, seconds = "abort", timings.repeat
    elif batch.state or batch.epoch != outbox.epoch:
        step, seconds = "ask", timings.ask
    else:
        step, seconds = "move", timings.repeat
    wanted = slice_plan.slices_of(request)
    plan = SliceMovesPlan(
        wanted.group, batch.source, batch.target, slice_plan.numbers_of(batch.members),
        batch.prepare_seconds + batch.drain_seconds, empties=is_drain(request),
    )  # fmt: skip
    outbox.slice_command(batch, step, seconds, plan if step == "move" else None)


def is_drain(request: SessionRequest) -> bool:
    """Whether a consumer is to have no slice any more."""
    wanted = slice_plan.slices_of(request)
    return bool(wanted.giver) and not wanted.numbers


def receive_outcome(context: EngineContext, batch: Batch, told: SliceOutcome) -> Batch:
    """The batch after an outcome of its head. The engine has checked the mediator epoch before."""
    code = told.reason.partition(":")[0]
    if batch.ended_at is not None or told.head_epoch < batch.head_epoch or batch.intent == "resolve":
        return batch
    if told.state == "failed":
        if code in ("starting", "mediator-epoch", "head-epoch") or batch.state:
            return batch
        return batches.end_batch(context, replace(batch, reason=told.reason), "stayed")
    if told.state == "unknown":
        if not batch.state and batch.epoch == context.outbox.epoch:
            return batch  # the command may not have arrived
        return replace(batch, reason=f"{batch.head} does not know it").wanting("resolve", context.now)
    return _progressed(context, batch, told)


def _progressed(context: EngineContext, batch: Batch, told: SliceOutcome) -> Batch:
    found = slice_of_name(next(iter(batch.members)))
    group = "" if found is None else found[0]
    members = [(slice_name(group, number), "preparing" if state == "asked" else state) for number, state in told.slices]
    now: Literal["done", "preparing"] = "done" if told.state == "done" else "preparing"
    outcome = Outcome(told.session, told.mediator, told.head_epoch, now, members, told.reason)
    after = batch.progressed(outcome, context.now)
    has_cut = any(state in ("moved", "detached") for state in after.members.values())
    return replace(after, cut_at=context.now) if has_cut and after.cut_at is None else after


# ---------------------------------------------------------------- the end


def step_stabilizing(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Measure the consumers once they have reported what they do since their slices changed."""
    plan = session.plan
    if plan is None or session.verdict is not None or not plan.forecasts:
        return executor.finish_session(context, request, session)
    settled = session.phase_at + context.timings.settle
    if context.now < min(settled, session.deadline_at):
        return session
    until = min(settled + MEASURE_SECONDS * context.settings.time_factor, session.deadline_at)
    pairs = plan.pairs[0]
    sample = context.group_samples.of(session.uid, pairs.source_head, slice_plan.slices_of(request).group)
    if (sample is None or not _is_measured(sample, plan.forecasts)) and context.now < until:
        if sample is not None and context.outbox.is_due(f"{session.uid}/measure", context.timings.ask):
            context.group_samples.forget(session.uid)
        return session
    if sample is not None:
        forecasts = [_measured(one, sample) for one in plan.forecasts]
        session = replace(session, plan=replace(plan, forecasts=forecasts))
    return executor.finish_session(context, request, session)


def _is_measured(sample: GroupSample, forecasts: list[Forecast]) -> bool:
    waiting = {c.name for c in sample.consumers if not c.has_measured}
    return not any(one.edge in waiting for one in forecasts)


def _measured(one: Forecast, sample: GroupSample) -> Forecast:
    """The forecast beside what its consumer has reported; without a measurement if it has not, or has gone."""
    found = next((c for c in sample.consumers if c.name == one.edge and c.has_measured), None)
    if found is None:
        return one
    load = slice_plan.load_of(found, sample.balancing)
    return replace(one, utilization_measured=round(load, 4), subscribers_measured=len(found.slices))
