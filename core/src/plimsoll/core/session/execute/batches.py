"""One batch: the OUTCOMEs of its head, the intent that follows, and the command for it.

The head alone decides between cut and abort: the first of them wins, and the mediator follows its OUTCOMEs. These may
be late, repeated or out of order, so a state never goes back. If a head loses a batch before the mediator wanted the
cut, no member has moved; after that, both edges list their subscribers, and the listings decide.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN, departure
from plimsoll.core.protocol.messages import Outcome
from plimsoll.core.session.batch import LOST_BEFORE_CUT, OUTCOMES, STATE_RANKS, Batch
from plimsoll.core.session.context.engine_context import EngineContext

CUT_AFTER_SHARE: Final = 0.7
"""Share of the prepare time after which the attached members are cut over without the rest."""


# ---------------------------------------------------------------- OUTCOMEs


def receive_outcome(context: EngineContext, batch: Batch, told: Outcome) -> Batch:
    """The batch after an OUTCOME of its head. The engine has checked the mediator epoch before."""
    if batch.ended_at is not None or told.head_epoch < batch.head_epoch:
        return batch
    code = told.reason.partition(":")[0]
    if told.state == "failed" and code in ("starting", "mediator-epoch"):
        return batch
    context.confirmed_batches.add(batch.id)
    if told.head_epoch > batch.head_epoch:
        return mark_lost(context, batch, f"{batch.head} has restarted")
    if told.state == "failed":
        return _after_failure(context, batch, code, told.reason)
    if told.state == "unknown":
        return _after_unknown(context, batch)
    return batch.progressed(told, context.now)


def _after_failure(context: EngineContext, batch: Batch, code: str, reason: str) -> Batch:
    if code == "head-epoch":  # answers an earlier command: later ones carry the head's present epoch
        return batch
    if code == "forgotten":
        return mark_lost(context, batch, f"{batch.head} has forgotten it")
    if batch.intent == "prepare" and not batch.state:
        return end_batch(context, replace(batch, reason=reason), departure(reason).outcome or UNKNOWN)
    return batch


def _after_unknown(context: EngineContext, batch: Batch) -> Batch:
    """The command may never have arrived, or the head has forgotten the batch."""
    is_ours = batch.epoch == context.outbox.epoch
    if batch.intent == "abort" or (batch.intent == "prepare" and not batch.state and is_ours):
        return batch
    return mark_lost(context, batch, f"{batch.head} does not know it")


def mark_lost(context: EngineContext, batch: Batch, why: str) -> Batch:
    """The head has lost the batch. Without a cut no member has moved, and another batch takes them."""
    if batch.ended_at is not None or batch.intent == "resolve":
        return batch
    batch = replace(batch, reason=why)
    if batch.cut_at is None:
        return end_batch(context, batch, LOST_BEFORE_CUT)
    context.forget_answers(batch.id)
    return batch.wanting("resolve", context.now)


# ---------------------------------------------------------------- intents


def advance(context: EngineContext, batch: Batch, *, stopping: bool) -> Batch:
    """The batch with the intent that follows from its state; `stopping`: it should not be cut any more."""
    if batch.state in ("done", "aborted"):
        return end_batch(context, batch, UNKNOWN)
    head = context.fleet.heads.get(batch.head)
    # A restarted head has lost its sessions and obeys no command for its old epoch: docs/handover.md, 7, Heads.
    if head is not None and head.epoch > batch.head_epoch:
        lost_now = mark_lost(context, batch, f"{batch.head} has restarted")
        if lost_now is not batch:
            return lost_now
    return _AFTER_INTENT[batch.intent](context, batch, stopping)


def _after_prepare(context: EngineContext, batch: Batch, stopping: bool) -> Batch:
    # The cut has won at the head, which alone decides: docs/handover.md, 2.
    if batch.state in ("cutting", "cut"):
        return batch.wanting("cut", context.now)
    if stopping or context.now >= batch.begun_at + batch.prepare_seconds:
        return batch.wanting("abort", context.now)
    if batch.state == "ready" and batch.id in context.confirmed_batches and _is_gathered(context, batch):
        return batch.wanting("cut", context.now)
    return batch


def _is_gathered(context: EngineContext, batch: Batch) -> bool:
    """Whether all members have attached, or the time to wait for the others is over."""
    if all(state not in ("", "preparing") for state in batch.members.values()):
        return True
    waited = batch.ready_at is not None and context.now >= batch.ready_at + context.timings.gather
    return waited or context.now >= batch.begun_at + CUT_AFTER_SHARE * batch.prepare_seconds


def _after_cut(context: EngineContext, batch: Batch, stopping: bool) -> Batch:
    if stopping and batch.state in ("", "preparing", "ready"):
        return batch.wanting("abort", context.now)
    wanted_at = batch.since if batch.cut_at is None else batch.cut_at
    patience = context.timings.cut + batch.prepare_seconds + batch.drain_seconds
    if context.now >= wanted_at + patience:
        unheard = replace(batch, reason=f"{batch.head} does not report the outcome")
        return unheard.wanting("resolve", context.now)
    return batch


def _after_abort(context: EngineContext, batch: Batch, stopping: bool) -> Batch:
    # The cut came before this abort at the head, so the batch rolls forward: docs/handover.md, 2.
    if batch.state == "cut":
        return batch.wanting("cut", context.now)
    # The head gives the batch up itself after `prepare_seconds`.
    if context.now < max(batch.since, batch.begun_at + batch.prepare_seconds) + context.timings.cut:
        return batch
    if batch.cut_at is None:
        return end_batch(context, replace(batch, reason=batch.reason or f"{batch.head} does not answer"), UNKNOWN)
    return batch.wanting("resolve", context.now)


def _after_resolve(context: EngineContext, batch: Batch, stopping: bool) -> Batch:
    found = context.listings.of_all(batch.id, _both_ends(batch))
    if found is not None:
        batch = batch.located(set(found[batch.source]), set(found[batch.target]))
        if context.outbox.is_due(f"{batch.id}/again", context.timings.ask):
            context.forget_answers(batch.id)
    missing = any(state not in OUTCOMES for state in batch.members.values())
    if not missing or context.now >= batch.since + context.timings.resolve:
        return end_batch(context, batch, UNKNOWN)
    return batch


def _both_ends(batch: Batch) -> list[tuple[str, str]]:
    return [(batch.source, batch.head), (batch.target, batch.target_head)]


_AFTER_INTENT: Final = {
    "prepare": _after_prepare, "cut": _after_cut, "abort": _after_abort, "resolve": _after_resolve,
}  # fmt: skip


def end_batch(context: EngineContext, batch: Batch, rest: str) -> Batch:
    """The batch at its end: members without an outcome get `rest`, and no command or question about it is repeated."""
    context.outbox.forget(f"{batch.id}/")
    context.forget_answers(batch.id)
    return batch.ended(rest, context.now)


# ---------------------------------------------------------------- commands


def send_intent(context: EngineContext, batch: Batch) -> None:
    """Repeat the command for the intent until an OUTCOME confirms it; then ask for OUTCOMEs, as these may be lost.

    A batch of an earlier life is only asked about until its head answers: this life does not know yet how far it is.
    """
    timings = context.timings
    if batch.intent == "resolve":
        return
    if batch.intent == "abort":
        context.outbox.command(batch, "abort", timings.repeat)
    elif batch.id not in context.confirmed_batches:
        context.outbox.command(batch, "ask", timings.repeat)
    elif STATE_RANKS[batch.state] >= (1 if batch.intent == "prepare" else 3):
        context.outbox.command(batch, "ask", timings.ask)
    else:
        context.outbox.command(batch, batch.intent, timings.repeat)
