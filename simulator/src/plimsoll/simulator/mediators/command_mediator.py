"""A mediator that sends the commands of planned hand-overs, without the session engine.

It can command hand-overs that the engine would never plan. It knows only its store and the answers of heads, and
repeats a command until the hand-over has a final outcome. A new mediator, with a higher epoch, asks for the state of
each open hand-over before it goes on. One that learns of a higher epoch stops; the store refuses its writes, as
compare-and-set would.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import NEVER, LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.mediators.handover_plan import PlannedHandover
from plimsoll.simulator.world.brokers import control_endpoint

Step = Literal["prepare", "cut", "abort", "ask"]
REPEAT_SECONDS = 0.15
REDIAL_SECONDS = 5.0
"""A head that has answered nothing for so long is dialled again, as the control plane of a mediator does."""
STATE_RANKS = {
    state: rank for rank, state in enumerate(("", "unknown", "preparing", "ready", "cutting", "cut", "done"))
}
FINAL_STATES = ("done", "aborted", "failed")
GRACE_SECONDS = 2.0
"""How long after its own deadlines the outcome of a hand-over may arrive, when nothing disturbs it."""


@dataclass(slots=True)
class CommandedHandover:
    """One hand-over in the store. `intent`: what the mediator wants of it; `state`: the last state it has received."""

    session: str
    move: PlannedHandover
    plan: msg.HandoverPlan
    head_epoch: int
    started_at: float
    intent: Literal["prepare", "cut", "abort"] = "prepare"
    state: str = ""
    members: tuple[tuple[str, str], ...] = ()
    reason: str = ""

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(slots=True)
class CommandedHandovers:
    """The store, which outlives mediators. Each mediator raises `epoch` when it starts.

    `started`: the numbers of the planned hand-overs that a mediator has taken up.
    """

    epoch: int = 0
    handovers: dict[str, CommandedHandover] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)


class CommandBackend:
    """The backend of mediators that command exactly what the plan says.

    `subscribers`: all names of the run, from which `non_members` are picked. `healed_at`: when the faults end; until
    then no hand-over has to meet its deadlines.
    """

    def __init__(
        self, heads: Sequence[str], moves: Sequence[PlannedHandover], subscribers: Sequence[str], healed_at: float,
        observe: Callable[[seen.Observation], None],
    ) -> None:  # fmt: skip
        self.heads, self.moves, self.subscribers = heads, moves, subscribers
        self.healed_at, self.observe = healed_at, observe
        self.store = CommandedHandovers()

    def mediator(self, name: str, rng: random.Random) -> CommandMediator:
        return CommandMediator(
            name, self.store, self.heads, self.moves, self.subscribers, self.healed_at, rng, self.observe
        )

    def is_settled(self) -> bool:
        is_all_started = len(self.store.started) == len(self.moves)
        return is_all_started and all(one.is_final for one in self.store.handovers.values())

    def leftovers(self) -> Iterator[str]:
        for one in self.store.handovers.values():
            if not one.is_final:
                yield f"hand-over without an outcome: {one.session} wants {one.intent}, its last state is {one.state!r}"

    def counts(self) -> dict[str, int]:
        count: Counter[str] = Counter()
        for one in self.store.handovers.values():
            count[one.state if one.is_final else "open"] += 1
            if one.state in ("done", "aborted"):
                count.update(outcome for _, outcome in one.members)
        return dict(sorted(count.items()))


class CommandMediator(OverlayNode):
    """One mediator. `subscribers`: names that a hand-over may ask for wherever they are served."""

    def __init__(
        self,
        name: str,
        store: CommandedHandovers,
        heads: Sequence[str],
        moves: Sequence[PlannedHandover],
        subscribers: Sequence[str],
        healed_at: float,
        rng: random.Random,
        observe: Callable[[seen.Observation], None],
    ) -> None:
        store.epoch += 1
        self.epoch, self.store, self.observe = store.epoch, store, observe
        info = Info(name, "client", self.epoch)  # it opens no link, only control sockets, so no peer sees this role
        super().__init__(info, LinkLimits(), lambda: rng.getrandbits(32), max_frame_bytes=10**6)
        self.subscribers, self.healed_at, self.rng = subscribers, healed_at, rng
        self.moves = {move.number: move for move in moves if move.number not in store.started}
        self.is_deposed = False
        self._numbers = 0
        self._states: dict[str, str] = {}
        self._due = {session: 0.0 for session, one in store.handovers.items() if not one.is_final}
        self._query_at = {move.number: move.at for move in self.moves.values()}
        self._unanswered: dict[str, float] = {}
        for head in heads:
            self.dial_control(head, control_endpoint(head))

    # -- time

    def wake_at(self) -> float:
        return NEVER if self.is_deposed else min([NEVER, *self._due.values(), *self._query_at.values()])

    def on_tick(self) -> None:
        if self.is_deposed:
            return
        for number in [number for number, at in self._query_at.items() if at <= self.now]:
            move = self.moves[number]
            self._query_at[number] = self._next_repeat()
            self._send(move.head, msg.ListSubscribers(number, move.source))
        for session in [session for session, at in self._due.items() if at <= self.now]:
            self._continue(self.store.handovers[session])

    def _next_repeat(self) -> float:
        return self.now + REPEAT_SECONDS * self.rng.uniform(0.5, 1.5)

    def _send(self, head: str, record: msg.Command | msg.ListSubscribers) -> None:
        """Every frame identifies the mediator, since the head may have restarted after the last one."""
        if self.now - self._unanswered.setdefault(head, self.now) > REDIAL_SECONDS:
            self._unanswered[head] = self.now
            self.dial_control(head, control_endpoint(head))
        self.say_control(head, msg.Identify(self.info.name, "mediator", self.epoch), record)

    # -- commands

    def _continue(self, one: CommandedHandover) -> None:
        """Repeat the command that is wanted; once the patience of the plan is over, that is the cut."""
        state = self._states.get(one.session, "")
        if one.intent == "prepare" and self.now - one.started_at > one.move.patience_seconds and self._may_write():
            one.intent = "abort" if state == "unknown" else "cut"
        self._due[one.session] = self._next_repeat()
        step: Step = one.intent
        is_unknown = not state and self._is_inherited(one)
        if is_unknown or (state in ("cutting", "cut") and self.rng.random() < 0.7):
            step = "ask"
        self._command(one, step)
        if one.move.stale:
            self._command(one, "abort" if self.rng.random() < 0.5 else "cut", self.rng.choice(((-1, 0), (0, -1))))

    def _may_write(self) -> bool:
        """Whether the store accepts writes of this mediator, that is, no later one has started."""
        self.is_deposed = self.store.epoch != self.epoch
        return not self.is_deposed

    def _is_inherited(self, one: CommandedHandover) -> bool:
        """Whether an earlier mediator has started it."""
        return not one.session.startswith(f"{self.epoch}.")

    def _command(self, one: CommandedHandover, step: Step, shift: tuple[int, int] = (0, 0)) -> None:
        """Send a command; `shift` is added to the epochs of the mediator and the head, to make it stale."""
        plan = one.plan if step == "prepare" else None
        self._send(
            one.move.head,
            msg.Command(max(0, self.epoch + shift[0]), max(0, one.head_epoch + shift[1]), one.session, step, plan),
        )

    def _start(self, move: PlannedHandover, served: msg.SubscriberPage) -> None:
        """Store the hand-over, then command it: a crash in between must not leave one that the store does not know."""
        pick = random.Random(move.pick)
        there = sorted(served.subscribers)
        members = pick.sample(there, min(move.count, len(there)))
        members += pick.sample([x for x in self.subscribers if x not in members], move.non_members)
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
        self.observe(seen.SessionStartObserved(session, deadline, self.now))
        self.observe(
            seen.HandoverStartObserved(
                session, move.source, move.target, members, move.replay,
                move.drain_seconds, self.now,
            )
        )  # fmt: skip
        self._continue(one)

    # -- answers

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        self._unanswered.pop(str(peer), None)
        if self.is_deposed:
            return
        if isinstance(record, msg.SubscriberPage) and record.id in self._query_at:
            del self._query_at[record.id]
            if record.id not in self.store.started and self._may_write():
                self.store.started.add(record.id)
                self._start(self.moves[record.id], record)
        elif isinstance(record, msg.Outcome) and record.session in self.store.handovers:
            self._on_outcome(self.store.handovers[record.session], record)

    def _on_outcome(self, one: CommandedHandover, outcome: msg.Outcome) -> None:
        if outcome.mediator > self.epoch:
            self.is_deposed = True
        elif not self._may_write():
            return
        elif outcome.state == "failed":
            self._on_failure(one, outcome)
        elif outcome.head_epoch != one.head_epoch:
            self._end(one, msgspec.structs.replace(outcome, state="failed", reason="the head has restarted"))
        elif outcome.state in FINAL_STATES:
            self._end(one, outcome)
        elif not one.is_final and STATE_RANKS[outcome.state] > STATE_RANKS[self._states.get(one.session, "")]:
            self._states[one.session] = one.state = outcome.state
            self._decide(one)

    def _on_failure(self, one: CommandedHandover, outcome: msg.Outcome) -> None:
        """A command with an old epoch is meant to fail, so such a failure does not end the hand-over."""
        code = outcome.reason.partition(":")[0]
        is_stale = code == "mediator-epoch" or (code == "head-epoch" and outcome.head_epoch == one.head_epoch)
        if not is_stale and code != "starting" and not one.is_final:
            self._end(one, outcome)

    def _end(self, one: CommandedHandover, outcome: msg.Outcome) -> None:
        """Record the outcome; one that differs from an earlier answer is recorded as well, for the audit to find."""
        members = tuple(sorted(outcome.members))
        if one.is_final and (one.state, one.members) == (outcome.state, members):
            return
        if not one.is_final:
            self.observe(seen.SessionEndObserved(one.session, outcome.state, self.now))
        if outcome.state != "failed" and one.state != "failed":
            self.observe(seen.HandoverResultObserved(one.session, outcome.state, members, self.now))
        if not one.is_final:
            one.state, one.members, one.reason = outcome.state, members, outcome.reason
            self._due.pop(one.session, None)

    def _decide(self, one: CommandedHandover) -> None:
        """After a new state, choose the next command and send it at once."""
        aborts = {
            "preparing": one.move.end == "abort-preparing",
            "ready": one.move.end == "abort-ready",
            "cutting": one.move.end == "abort-late",
            "cut": one.move.end == "abort-late",
            "unknown": one.intent == "cut",  # its PREPARE was lost
        }
        if aborts.get(one.state):
            one.intent = "abort"
        elif one.intent == "prepare" and one.state == "ready":
            one.intent = "cut"
        self._due[one.session] = 0.0
