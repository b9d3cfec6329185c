"""A mediator that drives hand-overs by their commands alone, straight from a plan.

It knows what its store holds and what heads answer. It repeats what it wants until a hand-over has a final outcome;
started anew with a higher epoch it asks first, then goes on. Told of a mediator with a higher epoch, it stops; the
store takes nothing from it either, as a compare-and-set would not.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import NEVER, LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.mediators.handover_plan import PlannedHandover
from plimsoll.simulator.world.brokers import control_endpoint

REPEAT_SECONDS = 0.15
STATE_RANKS = {
    state: rank for rank, state in enumerate(("", "unknown", "preparing", "ready", "cutting", "cut", "done"))
}
FINAL_STATES = ("done", "aborted", "failed")
GRACE_SECONDS = 2.0
"""So much longer than its own deadlines a hand-over may take to be told of, where nothing is in the way."""


@dataclass(slots=True)
class CommandedHandover:
    """One hand-over, as it stands in the store: what is wanted of it, and what it has come to."""

    session: str
    move: PlannedHandover
    plan: msg.HandoverPlan
    head_epoch: int
    began_at: float
    intent: Literal["prepare", "cut", "abort"] = "prepare"
    state: str = ""
    members: tuple[tuple[str, str], ...] = ()
    reason: str = ""

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(slots=True)
class CommandedHandovers:
    """What outlives a mediator. `epoch` is raised by each that starts."""

    epoch: int = 0
    handovers: dict[str, CommandedHandover] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)


class CommandBackend:
    """An office of mediators that command what the plan says, and nothing else."""

    def __init__(
        self, heads: Sequence[str], moves: Sequence[PlannedHandover], strangers: Sequence[str], healed_at: float,
        see: Callable[[seen.Observation], None],
    ) -> None:  # fmt: skip
        self.heads, self.moves, self.strangers, self.healed_at, self.see = heads, moves, strangers, healed_at, see
        self.store = CommandedHandovers()

    def mediator(self, name: str, draw: random.Random) -> CommandMediator:
        return CommandMediator(name, self.store, self.heads, self.moves, self.strangers, self.healed_at, draw, self.see)

    def is_settled(self) -> bool:
        return all(one.is_final for one in self.store.handovers.values()) and len(self.store.begun) == len(self.moves)

    def leftovers(self) -> Iterator[str]:
        for one in self.store.handovers.values():
            if not one.is_final:
                yield f"hand-over without an outcome: {one.session} wants {one.intent}, was told {one.state!r}"

    def counts(self) -> dict[str, int]:
        count: Counter[str] = Counter()
        for one in self.store.handovers.values():
            count[one.state if one.is_final else "open"] += 1
            if one.state in ("done", "aborted"):
                count.update(outcome for _, outcome in one.members)
        return dict(sorted(count.items()))


class CommandMediator(OverlayNode):
    """One life of a mediator. `strangers`: names that may be asked for though they are elsewhere."""

    def __init__(
        self,
        name: str,
        store: CommandedHandovers,
        heads: Sequence[str],
        moves: Sequence[PlannedHandover],
        strangers: Sequence[str],
        healed_at: float,
        draw: random.Random,
        see: Callable[[seen.Observation], None],
    ) -> None:
        store.epoch += 1
        self.epoch, self.store, self.see = store.epoch, store, see
        # A mediator has no links, only control sockets: as what it would open one is of no concern.
        info = Info(name, "client", self.epoch)
        super().__init__(info, LinkLimits(), lambda: draw.getrandbits(32), max_frame_bytes=10**6)
        self.strangers, self.healed_at, self.draw = strangers, healed_at, draw
        self.moves = {move.number: move for move in moves if move.number not in store.begun}
        self.deposed = False
        self._numbers = 0
        self._states: dict[str, str] = {}
        self._due = {session: 0.0 for session, one in store.handovers.items() if not one.is_final}
        self._asking = {move.number: move.at for move in self.moves.values()}
        for head in heads:
            self.dial_control(head, control_endpoint(head))

    # -- time

    def wake_at(self) -> float:
        return NEVER if self.deposed else min([NEVER, *self._due.values(), *self._asking.values()])

    def on_tick(self) -> None:
        if self.deposed:
            return
        for number in [number for number, at in self._asking.items() if at <= self.now]:
            move = self.moves[number]
            self._asking[number] = self._later()
            self._send_command(move.head, msg.ListSubscribers(number, move.source))
        for session in [session for session, at in self._due.items() if at <= self.now]:
            self._continue(self.store.handovers[session])

    def _later(self) -> float:
        return self.now + REPEAT_SECONDS * self.draw.uniform(0.5, 1.5)

    def _send_command(self, head: str, record: Any) -> None:
        """Each frame introduces its sender: the head may have started anew since the last one."""
        self.say_control(head, msg.Identify(self.info.name, "mediator", self.epoch), record)

    # -- commands

    def _continue(self, one: CommandedHandover) -> None:
        """Say once more what is wanted, or what may be wanted by now."""
        state = self._states.get(one.session, "")
        if one.intent == "prepare" and self.now - one.began_at > one.move.patience_seconds and self._may_write():
            one.intent = "abort" if state == "unknown" else "cut"
        self._due[one.session] = self._later()
        step: Literal["prepare", "cut", "abort", "ask"] = one.intent
        knows_little = not state and self._is_inherited(one)
        if knows_little or (state in ("cutting", "cut") and self.draw.random() < 0.7):
            step = "ask"
        self._command(one, step)
        if one.move.stale:
            self._command(one, "abort" if self.draw.random() < 0.5 else "cut", self.draw.choice(((-1, 0), (0, -1))))

    def _may_write(self) -> bool:
        """Whether the store still takes what this mediator writes; if not, there is another one."""
        self.deposed = self.store.epoch != self.epoch
        return not self.deposed

    def _is_inherited(self, one: CommandedHandover) -> bool:
        return not one.session.startswith(f"{self.epoch}.")

    def _command(self, one: CommandedHandover, step: Any, shift: tuple[int, int] = (0, 0)) -> None:
        plan = one.plan if step == "prepare" else None
        self._send_command(
            one.move.head,
            msg.Command(max(0, self.epoch + shift[0]), max(0, one.head_epoch + shift[1]), one.session, step, plan),
        )

    def _begin(self, move: PlannedHandover, served: msg.SubscriberPage) -> None:
        """What is wanted is in the store before anything is commanded."""
        pick = random.Random(move.pick)
        there = sorted(served.subscribers)
        members = pick.sample(there, min(move.count, len(there)))
        members += pick.sample([x for x in self.strangers if x not in members], move.strangers)
        if not members:
            return
        self._numbers += 1
        session = f"{self.epoch}.{self._numbers}"
        plan = msg.HandoverPlan(
            move.source, move.target, move.target_head, members, move.replay, move.prepare_seconds, move.drain_seconds
        )
        one = CommandedHandover(session, move, plan, served.head_epoch, self.now)
        if move.end == "abort-preparing" and pick.random() < 0.5:
            one.intent = "abort"
        self.store.handovers[session] = one
        deadline = max(self.now, self.healed_at) + move.prepare_seconds + move.drain_seconds + GRACE_SECONDS
        self.see(seen.SessionStartObserved(session, deadline, self.now))
        self.see(
            seen.HandoverStartObserved(
                session, move.source, move.target, members, move.replay,
                move.drain_seconds, self.now,
            )
        )  # fmt: skip
        self._continue(one)

    # -- answers

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        if self.deposed:
            return
        if isinstance(record, msg.SubscriberPage) and record.id in self._asking:
            del self._asking[record.id]
            if record.id not in self.store.begun and self._may_write():
                self.store.begun.add(record.id)
                self._begin(self.moves[record.id], record)
        elif isinstance(record, msg.Outcome) and record.session in self.store.handovers:
            self._on_outcome(self.store.handovers[record.session], record)

    def _on_outcome(self, one: CommandedHandover, told: msg.Outcome) -> None:
        if told.mediator > self.epoch:
            self.deposed = True
        elif not self._may_write():
            return
        elif told.state == "failed":
            self._on_failure(one, told)
        elif told.head_epoch != one.head_epoch:
            self._end(one, msgspec.structs.replace(told, state="failed", reason="the head has started anew"))
        elif told.state in FINAL_STATES:
            self._end(one, told)
        elif not one.is_final and STATE_RANKS[told.state] > STATE_RANKS[self._states.get(one.session, "")]:
            self._states[one.session] = one.state = told.state
            self._decide(one)

    def _on_failure(self, one: CommandedHandover, told: msg.Outcome) -> None:
        """What was sent with an old epoch has failed, as it should: that says nothing of the hand-over."""
        code = told.reason.partition(":")[0]
        stale = code == "mediator-epoch" or (code == "head-epoch" and told.head_epoch == one.head_epoch)
        if not stale and code != "starting" and not one.is_final:
            self._end(one, told)

    def _end(self, one: CommandedHandover, told: msg.Outcome) -> None:
        members = tuple(sorted(told.members))
        if one.is_final and (one.state, one.members) == (told.state, members):
            return
        if not one.is_final:
            self.see(seen.SessionEndObserved(one.session, told.state, self.now))
        if told.state != "failed" and one.state != "failed":
            self.see(seen.HandoverResultObserved(one.session, told.state, members, self.now))
        if not one.is_final:
            one.state, one.members, one.reason = told.state, members, told.reason
            self._due.pop(one.session, None)

    def _decide(self, one: CommandedHandover) -> None:
        """A new state: what follows, and at once."""
        aborting = {
            "preparing": one.move.end == "abort-preparing",
            "ready": one.move.end == "abort-ready",
            "cutting": one.move.end == "abort-late",
            "cut": one.move.end == "abort-late",
            "unknown": one.intent == "cut",  # its preparation was lost
        }
        if aborting.get(one.state):
            one.intent = "abort"
        elif one.intent == "prepare" and one.state == "ready":
            one.intent = "cut"
        self._due[one.session] = 0.0
