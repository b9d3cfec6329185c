"""From an approved plan to its end: batches, one after the other, and the measurement behind them.

A batch begins only if what is left of the deadline suffices for it; how long its head may take is cut to that. Stopped,
or out of time, a session begins nothing more: what is before its cut is undone, what is behind it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from plimsoll.core.session import admission, batches, loads, planned
from plimsoll.core.session.ending import closing_seconds, end, ended_by
from plimsoll.core.session.planning import port_of
from plimsoll.core.session.record import AGAIN, Batch, Forecast, Pair, Phase, Session, Verdict
from plimsoll.core.session.turn import Turn, because, enter, judged
from plimsoll.core.session.values import Request

BATCH_BYTES = 256 * 1024
"""Names of a batch together: a command is one frame of a control socket."""

PACE_SECONDS = 5
"""Where the rate is limited, a batch has what may move in so long."""

REPORTS_AWAITED = 3.0
"""After loads have settled, a report of what they are now is waited for so many intervals of reports."""

LOST_AT_MOST = 3
"""So many batches may be lost to heads that start anew before an attempt gives up."""


def step(turn: Turn, request: Request, session: Session) -> Session:
    """One step of a session that moves subscribers between two edges."""
    batch = session.batch
    if batch is None:
        return _next(turn, request, session)
    if turn.now >= session.deadline_at:
        return _cut_short(turn, session, batch)
    session = _judged_by_time(turn, session, 0.0)
    after = batches.advance(turn, batch, stopping=session.verdict is not None)
    return session if after is batch else with_batch(turn, session, after)


def _judged_by_time(turn: Turn, session: Session, needed: float) -> Session:
    if turn.now < session.deadline_at - closing_seconds(turn, session) - needed:
        return session
    return judged(session, "DeadlineExceeded", "the deadline left no time for more", again=True)


def with_batch(turn: Turn, session: Session, batch: Batch) -> Session:
    """The session with its last batch as it is now, in the phase that this batch is in."""
    session = replace(session, batches=[*session.batches[:-1], batch])
    if batch.intent == "cut" and batch.ended_at is None:
        phase: Phase = "Draining" if batch.state == "cut" else "Cutting"
        if session.phase != phase:
            session = enter(session, phase, turn.now)
    if batch.ended_at is not None:
        session = _counted(session, batch)
    return session


def _counted(session: Session, batch: Batch) -> Session:
    """What the end of a batch means for those that would follow."""
    lost = sum(AGAIN in one.members.values() for one in session.batches)
    if lost > LOST_AT_MOST:
        return judged(session, "HeadRestarts", f"{lost} batches were lost: {batch.reason}", again=True)
    refused = not batch.state and batch.cut_at is None and AGAIN not in batch.members.values()
    if refused and batch.reason:
        return judged(session, "Refused", batch.reason, again=True)
    return session


def _cut_short(turn: Turn, session: Session, batch: Batch) -> Session:
    """The deadline is here: what is not known by now will not be."""
    batch = replace(batch, reason=batch.reason or f"{batch.head} had not said by the deadline what became of it")
    return with_batch(turn, session, batches.ended(turn, batch, "unknown"))


# ---------------------------------------------------------------- from batch to batch


def _next(turn: Turn, request: Request, session: Session) -> Session:
    pair = pair_of(session)
    left = pending(session, pair)
    if left:  # a batch needs some time to be worth beginning
        session = _judged_by_time(turn, session, min(2 * turn.timings.repeat, closing_seconds(turn, session)))
    if session.verdict is not None or not left:
        return _done(turn, request, session, len(left))
    why = admission.unready_source(turn, pair.source) or admission.unready_target(turn, pair.target)
    if why is not None:
        if turn.now < max(_idle_since(session), turn.began_at) + turn.timings.negotiate:
            return because(session, why.reason, why.message)
        return judged(session, why.reason, why.message, again=True)
    choice = planned.choice_of(turn, request.spec.handover, pair.source, pair.target)
    if choice.refused:
        return judged(session, "LogTooShort", choice.why, again=True)
    if turn.now < _paced(turn, request, session):
        return because(session, "Paced", f"limits.maxMovesPerMinute is {request.spec.limits.max_moves_per_minute}")
    times = _times(turn, session)
    batch = _batch(turn, pair, _fitting(left, _at_once(request)), times)
    batch = replace(batch, replay=choice.replay, why=choice.why, predicted_seconds=choice.drain_seconds)
    turn.greeted.add(batch.id)
    session = because(replace(session, batches=[*session.batches, batch]), "", "")
    return session if session.phase == "Preparing" else enter(session, "Preparing", turn.now)


def pair_of(session: Session) -> Pair:
    if session.plan is None or len(session.plan.pairs) != 1:
        raise AssertionError("a session between two edges has a plan of one pair")
    return session.plan.pairs[0]


def pending(session: Session, pair: Pair) -> list[str]:
    """Those of a pair that have no outcome, and are in no batch."""
    outcomes = session.outcomes()
    return [name for name in pair.members if name not in outcomes]


def _idle_since(session: Session) -> float:
    ended = session.batches[-1].ended_at if session.batches else None
    return session.phase_at if ended is None else ended


def _at_once(request: Request) -> int:
    """How many a batch has at most: with a limit of the rate, what that allows in a short while."""
    limits = request.spec.limits
    if limits.max_moves_per_minute is None:
        return limits.max_in_flight
    return max(1, min(limits.max_in_flight, int(limits.max_moves_per_minute * PACE_SECONDS / 60)))


def _paced(turn: Turn, request: Request, session: Session) -> float:
    """When the next batch may begin at the earliest: the last one has used up its time."""
    rate = request.spec.limits.max_moves_per_minute
    if rate is None or not session.batches:
        return float("-inf")
    last = session.batches[-1]
    return last.begun_at + 60 * turn.settings.time_factor * len(last.members) / rate


def _fitting(names: list[str], most: int) -> list[str]:
    fitting: list[str] = []
    room = BATCH_BYTES
    for name in names[:most]:
        room -= len(name.encode()) + 16
        if room < 0 and fitting:
            break
        fitting.append(name)
    return fitting


@dataclass(frozen=True)
class _Times:
    prepare: float
    drain: float


def _times(turn: Turn, session: Session) -> _Times:
    """How long a batch may take, so that its head has ended it before the deadline even if it is told late."""
    left = session.deadline_at - closing_seconds(turn, session) - turn.now
    return _Times(min(turn.timings.prepare, 0.3 * left), min(turn.timings.drain, 0.5 * left))


def _batch(turn: Turn, pair: Pair, names: list[str], times: _Times) -> Batch:
    head = turn.view.heads[pair.source_head] if turn.view is not None else None
    if head is None:
        raise AssertionError("a batch begins at a head that is in the view")
    return Batch(
        id=turn.next_id(),
        head=pair.source_head,
        head_epoch=head.epoch,
        source=pair.source,
        target=pair.target,
        target_head=pair.target_head,
        replay=False,
        prepare_seconds=times.prepare,
        drain_seconds=times.drain,
        begun_at=turn.now,
        since=turn.now,
        members=dict.fromkeys(names, ""),
    )


# ---------------------------------------------------------------- the end


def _done(turn: Turn, request: Request, session: Session, left: int) -> Session:
    counts = session.counts()
    planned_members = session.plan.members if session.plan is not None else 0
    if session.verdict is not None and counts["moved"] < planned_members:
        message = f"{session.verdict.message}; {told(counts, left)}"
        return ended_by(turn, request, session, replace(session.verdict, message=message))
    if not counts["moved"]:
        why = next((batch.reason for batch in session.batches if batch.reason), "nobody could be moved")
        verdict = Verdict(reason="NobodyMoved", message=f"{why}; {told(counts, left)}", again=True)
        return ended_by(turn, request, session, verdict)
    return enter(session, "Stabilizing", turn.now, "Settling", "loads settle, then they are measured")


def stabilizing(turn: Turn, request: Request, session: Session) -> Session:
    """What became of the loads is measured once they have settled; for a child its parent does that."""
    is_over = session.verdict is not None or bool(session.parent) or _is_cut_short(turn, session)
    if not is_over and must_wait(turn, session):
        return session
    return finish(turn, request, measured(turn, session))


def must_wait(turn: Turn, session: Session) -> bool:
    """Whether loads settle still, or not every edge has reported yet what it carries since the last move."""
    settled = session.phase_at + loads.settle_seconds(turn, session)
    if turn.now < min(settled, session.deadline_at):
        return True
    closing = session.deadline_at - closing_seconds(turn, session) / 2
    if turn.now >= min(settled + REPORTS_AWAITED * _report_seconds(turn, session), closing):
        return False
    return not all(loads.is_since(turn, edge, session.phase_at) for edge in _seen(turn, session))


def _seen(turn: Turn, session: Session) -> list[str]:
    """The edges of its forecasts that report."""
    edges = turn.view.edges if turn.view is not None else {}
    planned = session.plan.forecasts if session.plan is not None else []
    return [one.edge for one in planned if one.edge in edges and edges[one.edge].report]


def _report_seconds(turn: Turn, session: Session) -> float:
    """The longest interval between load reports of its edges."""
    edges = turn.view.edges if turn.view is not None else {}
    told = (edges[name].report.get("interval_seconds") for name in _seen(turn, session))
    return max((float(each) for each in told if isinstance(each, int | float)), default=0.0)


def _is_cut_short(turn: Turn, session: Session) -> bool:
    """PADRES 2006, 3.2: a broker that stabilises invokes nothing, unless it is overloaded; then it waits for nobody."""
    return session.by_policy and any(
        not other.is_over and other.phase == "Requested" and _is_urgent(turn.requests.get(other.uid), session.brokers)
        for other in turn.book.open()
    )


def _is_urgent(request: Request | None, brokers: set[str]) -> bool:
    if request is None or request.spec.trigger is None or request.spec.trigger.broker not in brokers:
        return False
    return any(candidate.overloaded for candidate in request.spec.candidates)


def measured(turn: Turn, session: Session) -> Session:
    """The session with what its edges carry now beside what was predicted.

    A load counts if all of it was measured since the last move. An edge that has not reported such a one in time is
    told without: what it carried before is no measurement of what has become of it.
    """
    if session.plan is None or turn.view is None:
        return session
    edges = turn.view.edges
    forecasts = [_measured(turn, one, session.phase_at) if one.edge in edges else one for one in session.plan.forecasts]
    return replace(session, plan=replace(session.plan, forecasts=forecasts))


def _measured(turn: Turn, forecast: Forecast, since: float) -> Forecast:
    if turn.view is None:
        return forecast
    if not loads.is_since(turn, forecast.edge, since):
        return forecast
    if forecast.before is None:
        port = port_of(turn.view.edges[forecast.edge])
        higher = round(port.utilization, 4)
        return replace(forecast, utilization_measured=higher, subscribers_measured=port.subscribers)
    if (load := loads.reported(turn, forecast.edge)) is None:
        return forecast
    higher = max(load.input_utilization, load.output_utilization)
    return replace(
        forecast, utilization_measured=round(higher, 4), subscribers_measured=load.subscribers,
        measured=loads.loads_of(load),
    )  # fmt: skip


def finish(turn: Turn, request: Request, session: Session) -> Session:
    """All that could be moved has been."""
    counts = session.counts()
    planned_members = session.plan.members if session.plan is not None else 0
    reason = "Moved" if counts["moved"] == planned_members else "Partial"
    return end(turn, request, session, "Succeeded", Verdict(reason=reason, message=told(counts, 0)))


def told(counts: dict[str, int], left: int) -> str:
    """Outcomes in words."""
    parts = [f"{number} {state}" for state, number in counts.items() if number]
    if left:
        parts.append(f"{left} not begun")
    return ", ".join(parts) or "nobody was moved"
