"""Moves of slices that a mediator commands: this head carries them out, and alone decides how each ends.

A session object plans them, so that a move has a plan, a prediction and an audit; the hand-over is the group's own,
with its epochs. What members do comes first: a join, a leave or a crash needs no mediator, and ends a move that it
overtakes. Once its giver has been told to let go a slice can only go on to its taker, or to another member if that
goes: a mediator that dies leaves no slice behind.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.slice_audit import SliceAudit, SliceAuditHost
from plimsoll.core.head.groups.slices import CountedPlace, GroupSlice
from plimsoll.core.head.handover.outcomes import parse_session_id
from plimsoll.core.policies.consumer_groups.model import SliceMove
from plimsoll.core.protocol import messages as msg

ASKED, MOVED, STAYED, GONE, DETACHED = "asked", "moved", "stayed", "gone", "detached"
"""How a slice stands; but for the first, outcomes in the words of hand-overs. `detached`: another member has it."""

REMEMBERED_MOVES: Final = 256


@dataclass(slots=True)
class CommandedMove:
    """A command, and how each of its slices stands. `began`: how far its giver had got when it was told to let go."""

    id: str
    plan: msg.SliceMovesPlan
    slices: dict[int, str]
    given_up_at: float
    began: dict[int, CountedPlace] = field(default_factory=dict)
    reason: str = ""
    is_changed: bool = True

    @property
    def is_over(self) -> bool:
        return ASKED not in self.slices.values()

    def waits_for(self, each: GroupSlice) -> bool:
        """Whether its giver has been told to let go of this slice and has not yet, though its taker may have gone."""
        began = self.began.get(each.number)
        return began is not None and each.is_revoked and each.is_held(self.plan.giver, began.epoch)

    def moves(self) -> Iterator[SliceMove]:
        """Those that are under way."""
        for number, state in self.slices.items():
            if state == ASKED:
                yield SliceMove(self.plan.giver, self.plan.taker, number)


class SliceMovesHost(SliceAuditHost, Protocol):
    """What moves of slices need of their head."""

    counters: Counter[str]


class SliceMoves:
    """`group_of`: a group of this head by name. `broadcast`: send every mediator how a move stands."""

    def __init__(
        self,
        host: SliceMovesHost,
        group_of: Callable[[str], ConsumerGroup | None],
        broadcast: Callable[[msg.SliceOutcome], None],
    ) -> None:
        self.host, self.group_of, self.broadcast = host, group_of, broadcast
        self.audit = SliceAudit(host, group_of, self._counted)
        self.moves: dict[str, CommandedMove] = {}
        self.outcomes: Counter[str] = Counter()
        self._ended: OrderedDict[str, msg.SliceOutcome] = OrderedDict()
        self._forgotten = (0, 0)

    # -- commands

    def move(self, session_id: str, plan: msg.SliceMovesPlan) -> msg.SliceOutcome:
        """Begin a move. Repeated, it only returns how the move stands: the answer to the first may be lost."""
        if (known := self.outcome(session_id)).state != "unknown":
            return known
        group = self.group_of(plan.group)
        if group is None or (why := self._refusal(session_id, group, plan)):
            return self._failed(session_id, why if group is not None else f"group: there is no group {plan.group!r}")
        slices = {number: self._state_of(group, plan, number) for number in dict.fromkeys(plan.slices)}
        begun = CommandedMove(session_id, plan, slices, self.host.now + plan.seconds)
        self.moves[session_id] = begun
        group.schedule.command(tuple(begun.moves()), empties=plan.empties)
        return self._outcome_of(begun)

    def _refusal(self, session_id: str, group: ConsumerGroup, plan: msg.SliceMovesPlan) -> str:
        if parse_session_id(session_id) <= self._forgotten:
            return "session: this move is over, and its outcome is forgotten"
        if group.memory.is_waiting:
            return "starting: members may still say which slices they have"
        for name in (plan.giver, plan.taker):
            if name not in group.members:
                return f"member: {name!r} is no member of group {plan.group!r}"
        if group.members[plan.taker].is_leaving:
            return f"member: {plan.taker!r} is leaving"
        if plan.giver == plan.taker:
            return f"member: {plan.giver!r} is to give to itself"
        return ""

    def _state_of(self, group: ConsumerGroup, plan: msg.SliceMovesPlan, number: int) -> str:
        """How a slice stands before anything is done: only its holder can give it."""
        if number >= len(group.slices):
            return GONE
        each = group.slices[number]
        if each.holder != plan.giver:
            return MOVED if each.holder == plan.taker else GONE
        return STAYED if each.is_revoked else ASKED  # it is on its way to another member, or waits for one

    def abort(self, session_id: str, why: str = "aborted by the mediator") -> msg.SliceOutcome:
        """Let those stay whose giver has not been told to let go."""
        move = self.moves.get(session_id)
        if move is None:
            if self.outcome(session_id).state == "unknown":
                self._remember(self._failed(session_id, why))  # its command may still come
            return self.outcome(session_id)
        group = self.group_of(move.plan.group)
        if group is not None:
            group.schedule.withdraw(tuple(move.moves()))
        move.reason = why
        self._look(move)
        return self._outcome_of(move)

    def outcome(self, session_id: str) -> msg.SliceOutcome:
        """How a move stands, with what has been counted by now."""
        if (move := self.moves.get(session_id)) is not None:
            return self._outcome_of(move)
        known = self._ended.get(session_id)
        if known is None:
            return msg.SliceOutcome(session_id, 0, self.host.epoch, "unknown", [])
        return msg.SliceOutcome(
            known.session, 0, known.head_epoch, known.state, known.slices, known.reason, self.audit.of(session_id)
        )  # fmt: skip

    def _outcome_of(self, move: CommandedMove) -> msg.SliceOutcome:
        state: Literal["done", "moving"] = "done" if move.is_over else "moving"
        found = list(move.slices.items())
        return msg.SliceOutcome(move.id, 0, self.host.epoch, state, found, move.reason, self.audit.of(move.id))

    def _failed(self, session_id: str, why: str) -> msg.SliceOutcome:
        return msg.SliceOutcome(session_id, 0, self.host.epoch, "failed", [], why)

    # -- what becomes of them

    def tick(self) -> None:
        """See how each slice stands, and tell mediators what has changed."""
        for move in list(self.moves.values()):
            self._look(move)
            if move.is_changed:
                move.is_changed = False
                self.broadcast(self._outcome_of(move))
            if move.is_over:
                self._remember(self._outcome_of(move))
        self.audit.tick()

    def wake_at(self) -> float:
        return self.audit.wake_at()

    def _look(self, move: CommandedMove) -> None:
        group = self.group_of(move.plan.group)
        for one in list(move.moves()):
            if group is None or one.number >= len(group.slices):
                self._put(move, one.number, GONE)
                continue
            each = group.slices[one.number]
            if not group.schedule.is_under_way(one) and not move.waits_for(each):
                self._decide(move, each)
            elif each.is_revoked and one.number not in move.began:
                move.began[one.number] = each.place
        if self.host.now >= move.given_up_at and not move.reason and not move.is_over:
            move.reason, move.is_changed = f"{move.plan.giver} has yet to finish what it has in hand", True

    def _decide(self, move: CommandedMove, each: GroupSlice) -> None:
        if each.holder == move.plan.giver:
            self._put(move, each.number, STAYED)
        elif each.holder != move.plan.taker:
            self._put(move, each.number, DETACHED)
        else:
            began = move.began.get(each.number)
            if began is not None:
                self.audit.moved(move.id, move.plan.group, each, began)
            self._put(move, each.number, MOVED)

    def _put(self, move: CommandedMove, number: int, state: str) -> None:
        move.slices[number], move.is_changed = state, True

    def _counted(self, session_id: str) -> None:
        """More of its slices have been counted."""
        self.broadcast(self.outcome(session_id))

    def _remember(self, outcome: msg.SliceOutcome) -> None:
        self.moves.pop(outcome.session, None)
        self.outcomes.update(state for _, state in outcome.slices)
        self._ended[outcome.session] = outcome
        while len(self._ended) > REMEMBERED_MOVES:
            oldest, _ = self._ended.popitem(last=False)
            self._forgotten = max(self._forgotten, parse_session_id(oldest))

    def status(self) -> dict[str, Any]:
        return {"slice_moves": len(self.moves), "slice_outcomes": dict(sorted(self.outcomes.items()))}
