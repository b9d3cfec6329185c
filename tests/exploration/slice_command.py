"""A mediator that commands a head to move a slice, as an abstract model whose reachable states can all be visited.

The hand-over of the slice itself is `slice_move`'s; here it is one step. What is looked at is the command: a mediator
stores its intent, sends `move`, repeats it, and later asks; a head carries it out once, remembers how it ended, and
tells it. Control messages may be lost, repeated and late: what was sent once can arrive at any time and any number of
times. The mediator and the head may die; members then tell the head who has the slice. Once a session has ended a
second one takes the slice back. Rules are switched off by name (`without`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.exploration.search import Result, ViolationError, search, visit

Message = tuple[Any, ...]
GIVER, TAKER, OTHER = "giver", "taker", "other"
ENDED = ("moved", "stayed", "detached")


class Config(NamedTuple):
    """`faults`: each may happen once. `stops`: a user may stop the first session. `without`: rules switched off."""

    faults: tuple[str, ...] = ()
    stops: bool = False
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Session:
    """As the mediator has stored it. `begun_by`: the mediator's epoch, 0 before that. `outcome`: once it is over."""

    begun_by: int = 0
    head_epoch: int = 0
    is_stopping: bool = False
    resolves: bool = False
    outcome: str = ""


@dataclass(frozen=True)
class World:
    """`memory`: what the head remembers of each session: asked, or how it ended. `fence`: the highest epoch of a
    mediator that it has heard, which its edges remember, too. `taker`: who the holder is to release the slice for.
    `begun`, `arrived`: how often each session has begun a move, and how often one has ended at its taker.
    """

    config: Config
    sessions: tuple[Session, Session] = (Session(), Session())
    mediator: int = 1
    head: int = 1
    fence: int = 1
    memory: tuple[str, str] = ("", "")
    holder: str = GIVER
    taker: str = ""
    for_session: int = -1
    begun: tuple[int, int] = (0, 0)
    arrived: tuple[int, int] = (0, 0)
    sent: frozenset[Message] = frozenset()
    left: tuple[str, ...] = ()

    @staticmethod
    def initial(config: Config) -> World:
        return World(config, left=config.faults)

    def is_off(self, rule: str) -> bool:
        return rule in self.config.without

    # -- parts of steps

    def parties(self, number: int) -> tuple[str, str]:
        """The second session takes the slice back."""
        return (GIVER, TAKER) if number == 0 else (TAKER, GIVER)

    def with_session(self, number: int, **changes: Any) -> World:
        changed = replace(self.sessions[number], **changes)
        return replace(self, sessions=(changed, self.sessions[1]) if number == 0 else (self.sessions[0], changed))

    def with_memory(self, number: int, state: str) -> World:
        return replace(self, memory=(state, self.memory[1]) if number == 0 else (self.memory[0], state))

    def has_begun(self, number: int) -> World:
        return replace(self, begun=_one_more(self.begun, number))

    def has_arrived(self, number: int) -> World:
        return replace(self, arrived=_one_more(self.arrived, number))

    def send(self, *message: Any) -> World:
        return replace(self, sent=self.sent | {message})

    # -- steps

    def steps(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for number, session in enumerate(self.sessions):
            is_next = number == 0 or self.sessions[0].outcome != ""
            if not session.begun_by and is_next:
                found.append(("begin", number))
            elif session.begun_by and not session.outcome:
                found += self._of_open(number, session)
        found += [("deliver", message) for message in sorted(self.sent) if self.deliver(message) != self]
        if self.taker:
            found.append(("release",))
        if not self.holder:
            found.append(("settle",))
        found += [("fault", fault) for fault in self.left if fault != "taker dies" or self.taker]
        return found

    def _of_open(self, number: int, session: Session) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        if self.config.stops and number == 0 and not session.is_stopping:
            found.append(("stop", number))
        if self.head > session.head_epoch and not session.resolves:
            found.append(("notice", number))
        if session.resolves and self.holder and not self.taker:
            found.append(("resolve", number))
        step = self._command(number, session)
        if step not in self.sent:
            found.append(("say", step))
        return found

    def _command(self, number: int, session: Session) -> Message:
        what = "abort" if session.is_stopping else "move" if session.begun_by == self.mediator else "ask"
        return ("command", what, number, session.head_epoch, self.mediator)

    def step(self, step: tuple[Any, ...]) -> World:
        match step:
            case ("begin", number):
                return self.with_session(number, begun_by=self.mediator, head_epoch=self.head)
            case ("stop", number):
                return self.with_session(number, is_stopping=True)
            case ("say", message):
                return self.send(*message)
            case ("deliver", message):
                return self.deliver(message)
            case ("notice", number):
                return self.with_session(number, resolves=True)
            case ("resolve", number):
                giver, taker = self.parties(number)
                where = {giver: "stayed", taker: "moved"}.get(self.holder, "detached")
                return self.with_session(number, outcome=where)
            case ("release",):
                return self.released()
            case ("settle",):
                return replace(self, holder=OTHER)
            case ("fault", fault):
                return self.fault(fault)
        raise ValueError(step)

    def deliver(self, message: Message) -> World:
        if message[0] == "command":
            return self.commanded(*message[1:])
        return self.told(*message[1:])

    def commanded(self, what: str, number: int, head_epoch: int, mediator: int) -> World:
        """The head obeys a command, or only says how it stands."""
        if mediator < self.fence and not self.is_off("a newer mediator silences the older ones"):
            return self
        return replace(self, fence=max(self.fence, mediator))._obeyed(what, number, head_epoch)

    def _obeyed(self, what: str, number: int, head_epoch: int) -> World:
        known = self.memory[number]
        if head_epoch != self.head and not self.is_off("commands are for one life of a head"):
            return self
        if known and not self.is_off("a head carries a command out once"):
            return self.send("outcome", number, self.head, known)
        if what == "move":
            return self._moved(number)
        if what == "abort" and not known and not self.is_off("an abort that comes first is remembered"):
            return self.with_memory(number, "stayed")
        return self if known else self.send("outcome", number, self.head, "unknown")

    def _moved(self, number: int) -> World:
        giver, taker = self.parties(number)
        if self.holder != giver or self.taker:
            return self.with_memory(number, "moved" if self.holder == taker else "detached")
        asked = replace(self.with_memory(number, "asked"), taker=taker, for_session=number)
        return asked.has_begun(number)

    def released(self) -> World:
        """The holder lets go, and the taker has the slice."""
        number = self.for_session
        w = replace(self, holder=self.taker, taker="", for_session=-1)
        if number < 0:
            return w
        w = w.has_arrived(number)
        return w.with_memory(number, "moved") if w.memory[number] == "asked" else w

    def told(self, number: int, head_epoch: int, state: str) -> World:
        """The mediator hears how a command stands."""
        session = self.sessions[number]
        if session.outcome or session.resolves or not session.begun_by or head_epoch < session.head_epoch:
            return self
        if state in ENDED:
            return self.with_session(number, outcome=state)
        return self.with_session(number, resolves=True) if state == "unknown" else self

    def fault(self, fault: str) -> World:
        w = replace(self, left=tuple(each for each in self.left if each != fault))
        if fault == "mediator dies":
            return replace(w, mediator=w.mediator + 1)
        if fault == "head dies":  # members say what they have; the giver may have let go
            return replace(w, head=w.head + 1, memory=("", ""), taker="", for_session=-1)
        if fault == "head dies at release":
            gone = "" if w.taker else w.holder
            return replace(w, head=w.head + 1, memory=("", ""), holder=gone, taker="", for_session=-1)
        number = w.for_session
        w = replace(w, holder=OTHER, taker="", for_session=-1)
        return w.with_memory(number, "detached") if number >= 0 and w.memory[number] == "asked" else w

    # -- laws

    def check(self) -> None:
        for number, session in enumerate(self.sessions):
            if self.begun[number] > 1:
                raise ViolationError(f"session {number} has begun {self.begun[number]} moves")
            if session.outcome == "stayed" and self.arrived[number]:
                raise ViolationError(f"session {number} says that the slice has stayed, and it has arrived")
            if self.begun[number] and session.outcome and number == 0 and self.for_session == 0:
                raise ViolationError("session 0 is over, and its move is under way")

    def check_end(self) -> None:
        if not self.holder or self.taker:
            raise ViolationError(f"the slice has the holder {self.holder!r} and is on its way to {self.taker!r}")
        for number, session in enumerate(self.sessions):
            if not session.outcome:
                raise ViolationError(f"session {number} never ends")

    def outcomes(self) -> list[str]:
        return [f"{number} {session.outcome}" for number, session in enumerate(self.sessions)]


def _one_more(counts: tuple[int, int], number: int) -> tuple[int, int]:
    first, second = counts
    return (first + 1, second) if number == 0 else (first, second + 1)


def explore(config: Config) -> Result:
    """Visit every state of a world."""
    return search(World.initial(config), visit)
