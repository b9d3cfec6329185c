"""One batch: what a head has said of it, what follows, and what is said next.

The head alone decides between cut and abort; the first of them wins, and the mediator goes on from what it hears. What
it hears may be late, repeated or out of order: a state never goes back. A head that has lost a batch before its cut was
wanted leaves its members where they were; after that, those who serve them tell what became of them.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from plimsoll.core.records import Outcome
from plimsoll.core.session.record import AGAIN, OUTCOMES, Batch
from plimsoll.core.session.turn import Turn

RANKS: Final = {"": 0, "preparing": 1, "ready": 2, "cutting": 3, "cut": 4, "done": 5, "aborted": 5}
MEMBER_RANKS: Final = {"": 0, "preparing": 1, "attached": 2, "cutting": 3, "cut": 4} | dict.fromkeys(OUTCOMES, 5)
CUT_BY: Final = 0.7
"""Part of the time to prepare after which those who are attached are cut over without the rest."""


# ---------------------------------------------------------------- what a head has said


def heard(turn: Turn, batch: Batch, told: Outcome) -> Batch:
    """The batch after an OUTCOME of its head. One of a mediator's fencing has been dealt with before."""
    if batch.ended_at is not None or told.head_epoch < batch.head_epoch:
        return batch
    code = told.reason.partition(":")[0]
    if told.state == "failed" and code in ("starting", "mediator-epoch"):
        return batch
    turn.greeted.add(batch.id)
    if told.head_epoch > batch.head_epoch:
        return lost(turn, batch, f"{batch.head} has started anew")
    if told.state == "failed":
        return _failed(turn, batch, code, told.reason)
    if told.state == "unknown":
        return _unknown(turn, batch)
    return _merged(turn, batch, told)


def _failed(turn: Turn, batch: Batch, code: str, reason: str) -> Batch:
    if code == "head-epoch":  # of an earlier command: this one has the head's own epoch
        return batch
    if code == "forgotten":
        return lost(turn, batch, f"{batch.head} has forgotten it")
    if batch.intent == "prepare" and not batch.state:
        return ended(turn, replace(batch, reason=reason), "stayed")
    return batch


def _unknown(turn: Turn, batch: Batch) -> Batch:
    """It never arrived, or was forgotten."""
    if batch.intent == "abort" or (batch.intent == "prepare" and not batch.state and batch.epoch == turn.epoch):
        return batch
    return lost(turn, batch, f"{batch.head} does not know it")


def _merged(turn: Turn, batch: Batch, told: Outcome) -> Batch:
    if RANKS[told.state] < RANKS[batch.state]:
        return batch
    members = dict(batch.members)
    for name, state in told.members:
        if name in members and MEMBER_RANKS.get(state, 0) > MEMBER_RANKS.get(members[name], 0):
            members[name] = state
    reason = told.reason or batch.reason
    if (told.state, members, reason) == (batch.state, batch.members, batch.reason):
        return batch
    ready_at = turn.now if batch.ready_at is None and told.state == "ready" else batch.ready_at
    return replace(batch, state=told.state, members=members, reason=reason, ready_at=ready_at)


def lost(turn: Turn, batch: Batch, why: str) -> Batch:
    """The head does not know it any more. Without a cut nobody has moved, and another batch may be tried."""
    if batch.ended_at is not None or batch.intent == "resolve":
        return batch
    batch = replace(batch, reason=why)
    if batch.cut_at is None:
        return ended(turn, batch, AGAIN)
    turn.unlist(batch.id)
    return _wanting(turn, batch, "resolve")


# ---------------------------------------------------------------- what follows


def advance(turn: Turn, batch: Batch, *, stopping: bool) -> Batch:
    """What follows from what is known now; `stopping`: it should not be cut any more."""
    if batch.state in ("done", "aborted"):
        return ended(turn, batch, "stayed" if batch.state == "aborted" else "unknown")
    head = turn.view.heads.get(batch.head) if turn.view is not None else None
    if head is not None and head.epoch > batch.head_epoch:
        lost_now = lost(turn, batch, f"{batch.head} has started anew")
        if lost_now is not batch:
            return lost_now
    return _FOLLOWS[batch.intent](turn, batch, stopping)


def _after_prepare(turn: Turn, batch: Batch, stopping: bool) -> Batch:
    if batch.state in ("cutting", "cut"):
        return replace(_wanting(turn, batch, "cut"), cut_at=turn.now)
    if stopping or turn.now >= batch.begun_at + batch.prepare_seconds:
        return _wanting(turn, batch, "abort")
    if batch.state == "ready" and batch.id in turn.greeted and _is_gathered(turn, batch):
        return replace(_wanting(turn, batch, "cut"), cut_at=turn.now)
    return batch


def _is_gathered(turn: Turn, batch: Batch) -> bool:
    """Whether there is nobody left to wait for, or no time."""
    if all(state not in ("", "preparing") for state in batch.members.values()):
        return True
    waited = batch.ready_at is not None and turn.now >= batch.ready_at + turn.timings.gather
    return waited or turn.now >= batch.begun_at + CUT_BY * batch.prepare_seconds


def _after_cut(turn: Turn, batch: Batch, stopping: bool) -> Batch:
    if stopping and batch.state in ("", "preparing", "ready"):
        return _wanting(turn, batch, "abort")
    wanted_at = batch.since if batch.cut_at is None else batch.cut_at
    patience = turn.timings.cut + batch.prepare_seconds + batch.drain_seconds
    if turn.now >= wanted_at + patience:
        return _wanting(turn, replace(batch, reason=f"{batch.head} does not say what became of it"), "resolve")
    return batch


def _after_abort(turn: Turn, batch: Batch, stopping: bool) -> Batch:
    if batch.state == "cut":
        return replace(_wanting(turn, batch, "cut"), cut_at=turn.now if batch.cut_at is None else batch.cut_at)
    # The head gives it up by itself when its time to prepare is over.
    if turn.now < max(batch.since, batch.begun_at + batch.prepare_seconds) + turn.timings.cut:
        return batch
    if batch.cut_at is None:
        return ended(turn, replace(batch, reason=batch.reason or f"{batch.head} does not answer"), "stayed")
    return _wanting(turn, batch, "resolve")


def _after_resolve(turn: Turn, batch: Batch, stopping: bool) -> Batch:
    found = turn.listings(batch.id, _ends(batch))
    if found is not None:
        batch = _found(batch, set(found[batch.source]), set(found[batch.target]))
        if turn.is_due(f"{batch.id}/again", turn.timings.ask):
            turn.unlist(batch.id)
    missing = any(state not in OUTCOMES for state in batch.members.values())
    if not missing or turn.now >= batch.since + turn.timings.resolve:
        turn.unlist(batch.id)
        return ended(turn, batch, "unknown")
    return batch


def _found(batch: Batch, at_source: set[str], at_target: set[str]) -> Batch:
    members = dict(batch.members)
    for name, state in batch.members.items():
        if state not in OUTCOMES and (name in at_source) != (name in at_target):
            members[name] = "moved" if name in at_target else "stayed"
    return batch if members == batch.members else replace(batch, members=members)


def _ends(batch: Batch) -> list[tuple[str, str]]:
    return [(batch.source, batch.head), (batch.target, batch.target_head)]


_FOLLOWS: Final = {
    "prepare": _after_prepare, "cut": _after_cut, "abort": _after_abort, "resolve": _after_resolve,
}  # fmt: skip


def _wanting(turn: Turn, batch: Batch, intent: Literal["cut", "abort", "resolve"]) -> Batch:
    return replace(batch, intent=intent, since=turn.now)


def ended(turn: Turn, batch: Batch, rest: str) -> Batch:
    """The batch at its end: those without an outcome have this one; before a cut that is that they stayed."""
    if rest == "unknown" and batch.cut_at is None:
        rest = "stayed"
    members = {name: state if state in OUTCOMES else rest for name, state in batch.members.items()}
    turn.hush(f"{batch.id}/")
    return replace(batch, members=members, ended_at=turn.now)


# ---------------------------------------------------------------- what is said


def speak(turn: Turn, batch: Batch) -> None:
    """Say what is wanted until it is answered; then ask now and then, as answers may be lost."""
    timings = turn.timings
    if batch.intent == "resolve":
        return
    if batch.intent == "abort":
        turn.command(batch, "abort", timings.repeat)
    elif batch.id not in turn.greeted:
        turn.command(batch, "ask", timings.repeat)
    elif RANKS[batch.state] >= (1 if batch.intent == "prepare" else 3):
        turn.command(batch, "ask", timings.ask)
    else:
        turn.command(batch, batch.intent, timings.repeat)
