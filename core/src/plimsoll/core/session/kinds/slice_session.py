"""A session that moves slices of a consumer group between its consumers: docs/groups.md.

The head of the group carries each pair out, and goes on without this mediator. Once a giver has been told to let go,
its slices cannot be called back: a session that is stopped then waits for what becomes of them. A head that restarts
has forgotten the command; where the slices are is read from a sample, once its members have said what they have.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN
from plimsoll.core.protocol.messages import SliceMovesPlan, SliceOutcome
from plimsoll.core.protocol.slice_names import slice_name, slice_of_name
from plimsoll.core.session import admission
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.completion import end_by_verdict, end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.group_samples import GroupSample
from plimsoll.core.session.execute import batches, executor, head_batches
from plimsoll.core.session.execute.head_batches import HeadMoves
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
    head = slice_plan.head_of(context, request)
    return admission.unready_head(context, "its head" if head is None else head.name)


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


def _drain_seconds(context: EngineContext, left: float) -> float:
    return min(context.timings.drain, max(0.5 * left, head_batches.SHORTEST_SECONDS))


def _lost(context: EngineContext, batch: Batch, why: str) -> Batch:
    return replace(batch, reason=why).wanting("resolve", context.now)


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


MOVES: Final = HeadMoves(lambda context, request, _: _unready(context, request), _drain_seconds, _lost, _located)


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step: a batch is slices of one giver and one taker, one after another."""
    return head_batches.step_moving(context, request, session, MOVES)


def send_intent(context: EngineContext, request: SessionRequest, batch: Batch) -> None:
    """Send the command for a batch, unless it was sent lately. Of one to be resolved a sample is asked for instead."""
    if batch.intent == "resolve":
        return
    step, seconds = head_batches.next_command(context, batch)
    wanted = slice_plan.slices_of(request)
    plan = SliceMovesPlan(
        wanted.group, batch.source, batch.target, slice_plan.numbers_of(batch.members),
        batch.prepare_seconds + batch.drain_seconds, empties=is_drain(request),
    )  # fmt: skip
    context.outbox.slice_command(batch, step, seconds, plan if step == "move" else None)


def is_drain(request: SessionRequest) -> bool:
    """Whether a consumer is to have no slice any more."""
    wanted = slice_plan.slices_of(request)
    return bool(wanted.giver) and not wanted.numbers


def receive_outcome(context: EngineContext, batch: Batch, told: SliceOutcome) -> Batch:
    """The batch after an outcome of its head. The engine has checked the mediator epoch before."""
    found = slice_of_name(next(iter(batch.members)))
    group = "" if found is None else found[0]
    members = [(slice_name(group, number), state) for number, state in told.slices]
    return head_batches.receive_outcome(context, batch, told, members, MOVES)


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
