"""Batches that a head carries out by itself: publishers that leave it, or slices of a group between its consumers.

The head is sent one command, and asked how the moves stand; it decides each of them, and goes on without this mediator.
What a kind of session has of its own is in its `HeadMoves`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN
from plimsoll.core.protocol.messages import Outcome, PublisherOutcome, SliceOutcome
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute import batches, executor, next_batch
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.session_plan import PlannedPair
from plimsoll.core.session.state import Session, SessionVerdict

HeadOutcome = PublisherOutcome | SliceOutcome
HeadStep = Literal["move", "abort", "ask"]

SHORTEST_SECONDS: Final = 0.1
"""The least time that a head is given for a batch."""


@dataclass(frozen=True)
class HeadMoves:
    """What a kind of session says of its batches.

    `unready`: why none of a pair can begin now. `drain_seconds`: what one may take beyond its time to prepare, by the
    time that is left. `lost`: the batch once its head knows nothing of it, with the reason. `located`: one whose intent
    is `resolve`. `lists_rest`: whether those that remain are listed once all of a plan have moved.
    """

    unready: Callable[[EngineContext, SessionRequest, PlannedPair], SessionVerdict | None]
    drain_seconds: Callable[[EngineContext, float], float]
    lost: Callable[[EngineContext, Batch, str], Batch]
    located: Callable[[EngineContext, Batch], Batch] = lambda _, batch: batch
    lists_rest: Callable[[SessionRequest], bool] = lambda _: False


def step_moving(context: EngineContext, request: SessionRequest, session: Session, moves: HeadMoves) -> Session:
    """One step of a session: a batch is of one pair, and one follows the other."""
    batch = session.batch
    session = next_batch.stopped_near_deadline(context, session)
    if batch is None:
        return _begin_next_batch(context, request, session, moves)
    after = _advance(context, batch, moves, stopping=session.verdict is not None)
    if context.now >= session.deadline_at:
        after = batches.end_batch(context, batch, UNKNOWN)
    return session if after is batch else session.with_batch(after, context.now)


def _begin_next_batch(context: EngineContext, request: SessionRequest, session: Session, moves: HeadMoves) -> Session:
    plan, outcomes = session.plan, session.outcomes()
    if plan is None:
        raise AssertionError("a session that moves has a plan")
    pending = [(pair, [name for name in pair.members if name not in outcomes]) for pair in plan.pairs]
    pending = [(pair, names) for pair, names in pending if names]
    if not pending and session.verdict is None and moves.lists_rest(request):
        # Also if none has moved: the head may have restarted.
        text = f"the {session.member_noun} that remain are listed"
        return session.entered("Stabilizing", context.now, "Settling", text)
    if not pending or session.verdict is not None:
        return executor.after_last_batch(context, request, session, sum(len(names) for _, names in pending))
    pair, names = pending[0]
    if (why := moves.unready(context, request, pair)) is not None:
        return next_batch.waiting_for(context, session, why)
    if (waits := next_batch.paced(context, request, session)) is not None:
        return waits
    left = next_batch.seconds_left(context, session)
    prepare_seconds = min(context.timings.prepare, max(0.3 * left, SHORTEST_SECONDS))
    drain_seconds = moves.drain_seconds(context, left)
    return next_batch.begin_batch(context, request, session, pair, names, prepare_seconds, drain_seconds)


def _advance(context: EngineContext, batch: Batch, moves: HeadMoves, *, stopping: bool) -> Batch:
    """The batch as its head reports it; at its end once all are decided."""
    if batch.state == "done":
        return batches.end_batch(context, batch, UNKNOWN)
    if batch.intent == "resolve":
        return moves.located(context, batch)
    head = context.fleet.heads.get(batch.head)
    if head is not None and head.epoch > batch.head_epoch:
        return moves.lost(context, batch, f"{batch.head} has restarted")
    if context.now >= batch.begun_at + batch.prepare_seconds + batch.drain_seconds:
        return moves.lost(context, batch, batch.reason or f"{batch.head} does not report the outcome")
    if stopping and batch.intent == "prepare":
        return batch.wanting("abort", context.now)
    return batch


# ---------------------------------------------------------------- commands and outcomes


def next_command(context: EngineContext, batch: Batch) -> tuple[HeadStep, float]:
    """The command for a batch, and after how many seconds it is repeated.

    It is repeated until an outcome confirms it; then its head is asked, since outcomes may be lost.
    """
    timings = context.timings
    if batch.intent == "abort":
        return "abort", timings.repeat
    if batch.state or batch.epoch != context.outbox.epoch:
        return "ask", timings.ask
    return "move", timings.repeat


def receive_outcome(
    context: EngineContext, batch: Batch, told: HeadOutcome, members: list[tuple[str, str]], moves: HeadMoves
) -> Batch:
    """The batch after an outcome of its head, with the states of its members: one may have a reason, `STATE: REASON`.

    The engine has checked the mediator epoch before.
    """
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
        return moves.lost(context, batch, f"{batch.head} does not know it")
    return _progressed(context, batch, told, members)


CUT_STATES: Final = ("cut", "moved", "returned", "detached")
"""States of a member that may have left its source."""


def _progressed(context: EngineContext, batch: Batch, told: HeadOutcome, members: list[tuple[str, str]]) -> Batch:
    states, reason = [], told.reason or batch.reason
    for name, text in members:
        state, _, why = text.partition(": ")
        states.append((name, "preparing" if state == "asked" else state))
        reason = why if why and state != "moved" else reason
    now: Literal["done", "preparing"] = "done" if told.state == "done" else "preparing"
    outcome = Outcome(told.session, told.mediator, told.head_epoch, now, states, reason)
    after = batch.progressed(outcome, context.now)
    has_cut = any(state in CUT_STATES for state in after.members.values())
    return replace(after, cut_at=context.now) if has_cut and after.cut_at is None else after
