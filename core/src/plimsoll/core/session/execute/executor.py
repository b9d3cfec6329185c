"""From an approved plan to its end: one batch after the other, then the measurement.

A batch begins only if the deadline leaves enough time for it, and its head is given no more than that. A session that
is stopped or out of time begins no further batch: before its cut a batch is undone, after it the batch is finished.
"""

from __future__ import annotations

from msgspec.structs import replace

from plimsoll.core.session import admission
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.completion import closing_seconds, end_attempt, end_by_verdict
from plimsoll.core.session.context import edge_loads
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute import batches, next_batch
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.request import lifecycle
from plimsoll.core.session.request.planner import placer_port
from plimsoll.core.session.session_plan import Forecast, PlannedPair
from plimsoll.core.session.state import Session, SessionVerdict

REPORTS_AWAITED = 3.0
"""Report intervals for which a session waits, after loads have settled, for a report that covers no earlier time."""


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """One step of a session that moves subscribers between two edges."""
    batch = session.batch
    if batch is None:
        return _begin_next_batch(context, request, session)
    if context.now >= session.deadline_at:
        return _end_at_deadline(context, session, batch)
    session = next_batch.stopped_near_deadline(context, session)
    after = batches.advance(context, batch, stopping=session.verdict is not None)
    return session if after is batch else session.with_batch(after, context.now)


def _end_at_deadline(context: EngineContext, session: Session, batch: Batch) -> Session:
    """End the batch at the deadline; outcomes that are not known by now stay unknown."""
    batch = replace(batch, reason=batch.reason or f"{batch.head} had not reported the outcome by the deadline")
    return session.with_batch(batches.end_batch(context, batch, "unknown"), context.now)


# ---------------------------------------------------------------- from batch to batch


def only_pair(session: Session) -> PlannedPair:
    """The pair of a session between two edges."""
    if session.plan is None or len(session.plan.pairs) != 1:
        raise AssertionError("a session between two edges has a plan of one pair")
    return session.plan.pairs[0]


def _begin_next_batch(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    pair, outcomes = only_pair(session), session.outcomes()
    left = [name for name in pair.members if name not in outcomes]
    if left:  # a batch needs some time to be worth beginning
        needed_seconds = min(2 * context.timings.repeat, closing_seconds(context, session))
        session = next_batch.stopped_near_deadline(context, session, needed_seconds)
    if session.verdict is not None or not left:
        return after_last_batch(context, request, session, len(left))
    why = admission.unready_source(context, pair.source) or admission.unready_target(context, pair.target)
    if why is not None:
        return next_batch.waiting_for(context, session, why)
    choice = lifecycle.handover_method_of(context, request.spec.handover, pair.source, pair.target)
    if choice.refused:
        return session.stopped("LogTooShort", choice.why, again=True)
    if (waits := next_batch.paced(context, request, session)) is not None:
        return waits
    # So that its head ends the batch before the deadline even if commands arrive late.
    seconds = next_batch.seconds_left(context, session)
    times = min(context.timings.prepare, 0.3 * seconds), min(context.timings.drain, 0.5 * seconds)
    session = next_batch.begin_batch(context, request, session, pair, left, *times)
    chosen = replace(session.batches[-1], replay=choice.replay, why=choice.why, predicted_seconds=choice.drain_seconds)
    session = replace(session, batches=[*session.batches[:-1], chosen])
    return session if session.phase == "Preparing" else session.entered("Preparing", context.now)


# ---------------------------------------------------------------- the end


def after_last_batch(context: EngineContext, request: SessionRequest, session: Session, left: int) -> Session:
    counts = session.counts()
    planned_members = session.plan.members if session.plan is not None else 0
    # In a later round the plan has those that remain, and what has moved before counts too.
    if session.verdict is not None and (left or counts["moved"] < planned_members):
        message = f"{session.verdict.message}; {outcomes_text(counts, left)}"
        return end_by_verdict(context, request, session, replace(session.verdict, message=message))
    if not counts["moved"]:
        no_reason = f"none of the {session.member_noun} could be moved"
        why = next((batch.reason for batch in session.batches if batch.reason), no_reason)
        verdict = SessionVerdict(reason="NobodyMoved", message=f"{why}; {outcomes_text(counts, left)}", again=True)
        return end_by_verdict(context, request, session, verdict)
    return session.entered("Stabilizing", context.now, "Settling", "loads settle, then they are measured")


def step_stabilizing(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Measure the loads once they have settled; a child leaves that to its parent."""
    is_over = session.verdict is not None or bool(session.parent) or _is_preempted(context, session)
    if not is_over and is_settling(context, session):
        return session
    return finish_session(context, request, with_measurements(context, session))


def is_settling(context: EngineContext, session: Session) -> bool:
    """Whether loads still settle, or an edge has not yet reported a load that was measured since the last move."""
    settled = session.phase_at + context.loads.settle_seconds(session)
    _note_reports(context, session)
    if context.now < min(settled, session.deadline_at):
        return True
    closing = session.deadline_at - closing_seconds(context, session) / 2
    if context.now >= min(settled + REPORTS_AWAITED * _report_seconds(context, session), closing):
        return False
    return not all(
        context.loads.is_reported_since(edge, session.phase_at) for edge in _reporting_brokers(context, session)
    )


def _note_reports(context: EngineContext, session: Session) -> None:
    """Keep what edges have reported of the second half of the time in which loads settle."""
    half = session.phase_at + context.loads.settle_seconds(session) / 2.0
    for edge in _reporting_brokers(context, session):
        if context.loads.is_reported_since(edge, half) and (load := context.loads.reported(edge)) is not None:
            context.settled_loads.note(session.uid, load)


def _reporting_brokers(context: EngineContext, session: Session) -> list[str]:
    """The edges and heads of its forecasts that report."""
    planned = session.plan.forecasts if session.plan is not None else []
    return [one.edge for one in planned if context.fleet.report_of(one.edge)]


def _report_seconds(context: EngineContext, session: Session) -> float:
    """The longest interval between load reports of its brokers."""
    told = (context.fleet.report_of(name).get("interval_seconds") for name in _reporting_brokers(context, session))
    return max((float(each) for each in told if isinstance(each, int | float)), default=0.0)


def _is_preempted(context: EngineContext, session: Session) -> bool:
    """PADRES 2006, 3.2: a broker that stabilises begins no session, unless it is overloaded; then it does not wait."""
    return session.kind == "balance" and any(
        not other.is_over
        and other.phase == "Requested"
        and _is_overload_trigger(context.requests.get(other.uid), session.brokers)
        for other in context.table.open_sessions()
    )


def _is_overload_trigger(request: SessionRequest | None, brokers: set[str]) -> bool:
    if request is None or request.spec.trigger is None or request.spec.trigger.broker not in brokers:
        return False
    return any(candidate.overloaded for candidate in request.spec.candidates)


def with_measurements(context: EngineContext, session: Session) -> Session:
    """The session with the loads of its edges as measured since they have settled, beside those predicted.

    Where none was reported since then, as under a session that gives way, by the last report since the last move.

    An edge that has not reported such a load in time has no measurement: its load before the move is none.
    """
    if session.plan is None:
        return session
    forecasts = [_measured_forecast(context, one, session) for one in session.plan.forecasts]
    context.settled_loads.keep({one.uid for one in context.table.open_sessions()} - {session.uid})
    if forecasts == session.plan.forecasts:
        return session
    return replace(session, plan=replace(session.plan, forecasts=forecasts))


def _measured_forecast(context: EngineContext, forecast: Forecast, session: Session) -> Forecast:
    if not context.loads.is_reported_since(forecast.edge, session.phase_at):
        return forecast
    if forecast.before is None:
        port = placer_port(context.fleet.edges[forecast.edge])
        higher = round(port.utilization, 4)
        return replace(forecast, utilization_measured=higher, subscribers_measured=port.subscribers)
    load = context.settled_loads.mean(session.uid, forecast.edge) or context.loads.reported(forecast.edge)
    if load is None:
        return forecast
    higher = max(load.input_utilization, load.output_utilization)
    return replace(
        forecast, utilization_measured=round(higher, 4), subscribers_measured=load.subscribers,
        measured=edge_loads.load_figures_of(load),
    )  # fmt: skip


def finish_session(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """End a session that has moved what it could."""
    counts = session.counts()
    reason = "Moved" if counts["moved"] == session.planned else "Partial"
    return end_attempt(
        context, request, session, "Succeeded", SessionVerdict(reason=reason, message=outcomes_text(counts, 0))
    )


def outcomes_text(counts: dict[str, int], left: int) -> str:
    """The counts of outcomes in one line."""
    parts = [f"{number} {state}" for state, number in counts.items() if number]
    if left:
        parts.append(f"{left} not begun")
    return ", ".join(parts) or "no subscriber was moved"
