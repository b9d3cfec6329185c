"""Before a batch of any kind begins: whether there is time, whether its ends are ready, the pace, and its size."""

from __future__ import annotations

from msgspec.structs import replace

from plimsoll.core.session.batch import Batch
from plimsoll.core.session.completion import closing_seconds
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.session_plan import PlannedPair
from plimsoll.core.session.state import Session, SessionVerdict

BATCH_BYTES = 256 * 1024
"""The most bytes that the names of a batch may take: a command is one frame of a control socket."""

PACE_SECONDS = 5
"""With a limited rate a batch has the members that may move in this time."""


def stopped_near_deadline(context: EngineContext, session: Session, needed_seconds: float = 0.0) -> Session:
    """The session, stopped if its deadline leaves less than `needed_seconds` for moves."""
    if context.now < session.deadline_at - closing_seconds(context, session) - needed_seconds:
        return session
    return session.stopped("DeadlineExceeded", "the deadline leaves no time for more moves", again=True)


def seconds_left(context: EngineContext, session: Session) -> float:
    """The time for moves, before the session begins to close."""
    return session.deadline_at - closing_seconds(context, session) - context.now


def waiting_for(context: EngineContext, session: Session, why: SessionVerdict) -> Session:
    """The session while an end of its next batch is not ready, for the reason `why`; stopped if that takes too long."""
    ended = session.batches[-1].ended_at if session.batches else None
    idle_since = session.phase_at if ended is None else ended
    if context.now < max(idle_since, context.started_at) + context.timings.negotiate:
        return session.because(why.reason, why.message)
    return session.stopped(why.reason, why.message, again=True)


def paced(context: EngineContext, request: SessionRequest, session: Session) -> Session | None:
    """The session while its next batch would make the rate of moves too high; None if it may begin."""
    rate = request.spec.limits.max_moves_per_minute
    if rate is None or not session.batches:
        return None
    last = session.batches[-1]
    if context.now >= last.begun_at + 60 * context.settings.time_factor * len(last.members) / rate:
        return None
    return session.because("Paced", f"limits.maxMovesPerMinute is {rate}")


def begin_batch(
    context: EngineContext, request: SessionRequest, session: Session, pair: PlannedPair, pending: list[str],
    prepare_seconds: float, drain_seconds: float,
) -> Session:  # fmt: skip
    """The session with a batch of those of its `pending` members that go together."""
    batch = Batch(
        id=context.outbox.next_batch_id(),
        head=pair.source_head,
        head_epoch=context.fleet.heads[pair.source_head].epoch,
        source=pair.source,
        target=pair.target,
        target_head=pair.target_head,
        replay=False,
        prepare_seconds=prepare_seconds,
        drain_seconds=drain_seconds,
        begun_at=context.now,
        since=context.now,
        members=dict.fromkeys(_fitting(pending, _most_members(request)), ""),
    )
    context.confirmed_batches.add(batch.id)
    return replace(session, batches=[*session.batches, batch]).because("", "")


def _most_members(request: SessionRequest) -> int:
    """The most members of a batch; with a limited rate, those that may move in PACE_SECONDS."""
    limits = request.spec.limits
    if limits.max_moves_per_minute is None:
        return limits.max_in_flight
    return max(1, min(limits.max_in_flight, int(limits.max_moves_per_minute * PACE_SECONDS / 60)))


def _fitting(names: list[str], most: int) -> list[str]:
    fitting: list[str] = []
    room = BATCH_BYTES
    for name in names[:most]:
        room -= len(name.encode()) + 16
        if room < 0 and fitting:
            break
        fitting.append(name)
    return fitting
