"""A publisher that moves from head H1 to head H2, as an abstract model whose reachable states can all be visited.

The heads are a chain, H1 - M - H2. Each logs what it accepts and what its neighbours send it, and relays it; what the
subscribers of a head receive is its log. Channels are FIFO and arbitrarily slow. A state is a value; a step copies what
it changes. Rules are switched off by name (`without`), to show that the search finds the violation.

The protocol: H1 asks p to move (MOVE); p opens itself at H2, on standby (OPEN_NEXT, STANDBY); then p stops sending and
tells H1 so, behind its last publication (GO). H1 alone decides: STAY, or the cut. At the cut it closes p, tells it the
last number (LEFT), and sends MARKER towards H2, behind that publication on the one path between them. H2 takes p's
publications from the MARKER on (OPENED_NEXT), and not before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld
from tests.exploration.search import Result, ViolationError, search, visit

CHAIN = ("H1", "M", "H2")
MOVE = "s"
"""The only hand-over of a world."""


class Config(NamedTuple):
    """`faults`: one of them happens, at any time. `without`: rules that are switched off."""

    publications: int = 3
    faults: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Record(NamedTuple):
    """A publisher at a head. `state`: open, standby, or moved."""

    incarnation: int
    last: int
    state: str
    is_linked: bool = True
    session: str = ""


@dataclass(frozen=True)
class Head:
    """`session`: the state of the hand-over that this head decides."""

    epoch: int = 0
    log: tuple[Any, ...] = ()
    record: Record | None = None
    session: str = ""


@dataclass(frozen=True)
class Publisher:
    """`at`: the head that it publishes to, of this epoch. `phase`: open, or opening. `sent`: what has no answer.

    `move`: "", asked, gone (it has sent GO), left (H1 has let it go). `is_back`: it asks H1 to take it again.
    `unknown`: publications without an answer for good.
    """

    at: str = "H1"
    epoch: int = 0
    incarnation: int = 1
    phase: str = "open"
    made: int = 0
    last: int = 0
    sent: tuple[tuple[int, int], ...] = ()
    queued: tuple[int, ...] = ()
    move: str = ""
    is_back: bool = False
    unknown: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChainState(ChannelWorld):
    """The publisher and the heads of the chain, and what is on its way."""

    config: Config
    p: Publisher = field(default_factory=Publisher)
    heads: tuple[Head, ...] = (Head(record=Record(1, 0, "open")), Head(), Head())
    is_commanded: bool = False
    faults: int = 1

    def head(self, name: str) -> Head:
        return self.heads[CHAIN.index(name)]

    def with_head(self, name: str, **changes: Any) -> Self:
        at = CHAIN.index(name)
        changed = replace(self.heads[at], **changes)
        return replace(self, heads=(*self.heads[:at], changed, *self.heads[at + 1 :]))

    def with_p(self, **changes: Any) -> Self:
        return replace(self, p=replace(self.p, **changes))

    def drop(self, *pairs: tuple[str, str]) -> Self:
        """What is on its way there is lost."""
        return self.losing(pairs.__contains__)


class PublisherRules(ChainState):
    """The publisher: what it sends again where, and how it leaves a hand-over."""

    def pump(self) -> Self:
        """Send what is queued, unless p is not open or has said that it sends no more."""
        w = self
        while w.p.queued and w.p.phase == "open" and w.p.move not in ("gone", "left"):
            number, *rest = w.p.queued
            seq = w.p.last + 1
            w = w.with_p(last=seq, queued=tuple(rest), sent=(*w.p.sent, (seq, number)))
            w = w.send("p", w.p.at, "PUBLISH", w.p.incarnation, seq, number)
        return w

    def accepted(self, through: int) -> Self:
        return self.with_p(sent=tuple(each for each in self.p.sent if each[0] > through))

    def go_on(self, at: str, epoch: int, last: int) -> Self:
        """p is open at a head that has its numbers up to `last`: it sends again what that head has not."""
        w = self.accepted(last).with_p(at=at, epoch=epoch, phase="open", move="", is_back=False)
        for seq, number in w.p.sent:
            w = w.send("p", at, "PUBLISH", w.p.incarnation, seq, number)
        return w.pump()

    def give_back(self) -> Self:
        """p leaves its hand-over after GO: it asks H1 to take it again, since H2 has not and never will."""
        w = self.with_p(move="", phase="opening", is_back=True)
        return w.send("p", "H1", "OPEN", w.p.incarnation, True)

    def _lost(self, name: str) -> Self:
        """The link of p to a head is over. It dials again at once."""
        p = self.p
        if name == "H1":
            return self._source_lost() if p.at == "H1" else self
        if p.at == "H2":
            return self.with_p(phase="opening").send("p", "H2", "OPEN", p.incarnation, False)
        if p.move == "asked":
            return self.with_p(move="").pump()
        return self.send("p", "H2", "OPEN_NEXT", p.incarnation) if p.move else self

    def _source_lost(self) -> Self:
        p = self.p
        if p.move == "left":
            return self
        w = self.with_p(phase="opening")
        if p.move == "asked":
            w = w.with_p(move="").send("p", "H2", "CLOSE_NEXT")
        return w.send("p", "H1", "OPEN", p.incarnation, p.is_back and not w.is_off("a-return-is-asked-again"))

    def p_on_accepted(self, src: str, through: int) -> Self:
        return self.accepted(through) if src == self.p.at else self

    def p_on_opened(self, src: str, incarnation: int, epoch: int, last: int) -> Self:
        p = self.p
        if src != p.at or p.phase != "opening" or incarnation != p.incarnation:
            return self
        w = self
        if p.move:  # H1 has not had GO
            w = w.with_p(move="").send("p", "H2", "CLOSE_NEXT")
        if epoch == p.epoch:
            return w.go_on(src, epoch, last)
        # The head has lost its memory: what has no answer is unknown, and a new incarnation begins.
        w = w.with_p(
            unknown=(*p.unknown, *(number for _, number in p.sent)), sent=(), last=0, epoch=epoch,
            incarnation=p.incarnation + 1, is_back=False,
        )  # fmt: skip
        return w.send("p", src, "OPEN", w.p.incarnation, False)

    def p_on_move(self, _src: str) -> Self:
        if self.p.at != "H1" or self.p.phase != "open" or self.p.move:
            return self
        return self.with_p(move="asked").send("p", "H2", "OPEN_NEXT", self.p.incarnation)

    def p_on_standby(self, _src: str) -> Self:
        if self.p.move != "asked":
            return self
        return self.with_p(move="gone").send("p", "H1", "GO").pump()

    def p_on_left(self, _src: str, last: int) -> Self:
        if self.p.move != "gone":
            return self
        w = self.accepted(last).with_p(move="left", phase="open")
        if self.is_off("marker-behind-the-last"):
            return w.go_on("H2", 0, last)
        return w

    def p_on_stay(self, _src: str) -> Self:
        if self.p.move not in ("asked", "gone"):
            return self
        return self.with_p(move="").send("p", "H2", "CLOSE_NEXT").pump()

    def p_on_opened_next(self, _src: str, epoch: int, last: int) -> Self:
        return self.go_on("H2", epoch, last) if self.p.move in ("gone", "left") else self

    def p_on_orphaned(self, _src: str) -> Self:
        if self.p.move == "asked":
            return self.with_p(move="").pump()
        return self.give_back() if self.p.move in ("gone", "left") else self


class HeadRules(ChainState):
    """The heads: one is left, one takes the publisher, and one lies between them."""

    def _undo(self, outcome: str) -> Self:
        return self.with_head("H1", session=outcome).send("H1", "p", "STAY")

    def head_on_publish(self, name: str, _src: str, incarnation: int, seq: int, number: int) -> Self:
        record = self.head(name).record
        if self.is_off("marker-behind-the-last") and record is not None and record.state == "standby":
            record = record._replace(state="open", last=seq - 1)
        if record is None or record.incarnation != incarnation or record.state != "open" or not record.is_linked:
            return self
        if seq <= record.last:
            return self.send(name, "p", "ACCEPTED", record.last)
        if seq > record.last + 1:
            raise ViolationError(f"contiguous: {name} has {record.last}, and gets {seq}")
        w = self.with_head(name, record=record._replace(last=seq)).send(name, "p", "ACCEPTED", seq)
        return w.head_on_relay(name, "p", (incarnation, seq, number))

    def head_on_relay(self, name: str, src: str, publication: Any) -> Self:
        at = CHAIN.index(name)
        w = self.with_head(name, log=(*self.heads[at].log, publication))
        for other in CHAIN[max(at - 1, 0) : at] + CHAIN[at + 1 : at + 2]:
            if other != src:
                w = w.send(name, other, "RELAY", publication)
        return w

    def head_on_open(self, name: str, _src: str, incarnation: int, is_back: bool) -> Self:
        at = self.head(name)
        record = at.record
        if record is None or record.incarnation < incarnation:
            w = self.with_head(name, record=Record(incarnation, 0, "open"))
            return w.send(name, "p", "OPENED", incarnation, at.epoch, 0)
        if record.state == "moved" and not is_back:
            return self.with_head(name, record=record._replace(is_linked=True)).send(name, "p", "LEFT", record.last)
        w = self.with_head(name, record=record._replace(state="open", is_linked=True))
        if name == "H1" and at.session in ("asked", "cut"):
            w = w.with_head(name, session="returned")
        return w.send(name, "p", "OPENED", incarnation, at.epoch, record.last)

    def head_on_go(self, name: str, _src: str) -> Self:
        at = self.head(name)
        if at.session != "asked" and not self.is_off("first-of-cut-or-stay-wins"):
            return self
        if at.record is None or at.record.state != "open":
            return self
        w = self.with_head(name, session="cut", record=at.record._replace(state="moved"))
        w = w.send(name, "p", "LEFT", at.record.last)
        return w.send(name, "M", "MARKER", at.record.incarnation, at.record.last)

    def head_on_marker(self, name: str, _src: str, incarnation: int, last: int) -> Self:
        if name == "M":
            return self.send("M", "H2", "MARKER", incarnation, last)
        at = self.head(name)
        if at.record is not None and (at.record.incarnation > incarnation or at.record.state == "open"):
            return self
        is_linked = at.record is not None and at.record.is_linked
        last = 0 if self.is_off("marker-names-the-last") else last
        w = self.with_head(name, record=Record(incarnation, last, "open", is_linked, MOVE))
        return w._opened_next(at.epoch, last) if is_linked else w

    def _opened_next(self, epoch: int, last: int) -> Self:
        return self.send("H2", "p", "OPENED_NEXT", epoch, last).send("H2", "M", "DONE")

    def head_on_done(self, name: str, _src: str) -> Self:
        if name == "M":
            return self.send("M", "H1", "DONE")
        return self.with_head(name, session="moved") if self.head(name).session == "cut" else self

    def head_on_open_next(self, name: str, _src: str, incarnation: int) -> Self:
        at = self.head(name)
        if at.record is not None and at.record.state == "open" and at.record.session == MOVE:
            w = self.with_head(name, record=at.record._replace(is_linked=True))
            return w._opened_next(at.epoch, at.record.last)
        w = self.with_head(name, record=Record(incarnation, 0, "standby", True, MOVE))
        return w.send(name, "p", "STANDBY")

    def head_on_close_next(self, name: str, _src: str) -> Self:
        record = self.head(name).record
        keeps = record is not None and record.session != MOVE
        return self.with_head(name, record=record if keeps else None)

    def head_on_down(self, name: str, _src: str, which: str) -> Self:
        at = self.head(name)
        if name == "M":
            return self.send("M", "H1" if which == "H2" else "H2", "DOWN", which)
        if name == "H1":
            return self._undo("stayed") if at.session == "asked" else self
        if at.record is None or at.record.state != "standby":
            return self
        w = self.with_head(name, record=None)
        return w.send(name, "p", "ORPHANED") if at.record.is_linked else w


class World(PublisherRules, HeadRules):
    """The steps and faults, and the laws that each state keeps."""

    def steps(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = [("deliver", *pair) for pair, _ in self.channels]
        if self.p.made < self.config.publications:
            found.append(("publish",))
        if not self.is_commanded:
            found.append(("command",))
        if self.head("H1").session == "asked":
            found.append(("deadline",))
        if self.p.move in ("gone", "left"):
            found.append(("give_up",))
        if (record := self.head("H2").record) is not None and record.state == "standby" and not record.is_linked:
            found.append(("expire",))
        if self.faults:
            found += [("fault", fault) for fault in self.config.faults]
        return found

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        return w.heard("p", kind, src, *rest) if dst == "p" else w.heard("head", kind, dst, src, *rest)

    def do_publish(self) -> Self:
        return self.with_p(made=self.p.made + 1, queued=(*self.p.queued, self.p.made + 1)).pump()

    def do_command(self) -> Self:
        """The mediator asks H1 to move p."""
        w, record = replace(self, is_commanded=True), self.head("H1").record
        if record is None or record.state != "open" or not record.is_linked:
            return w.with_head("H1", session="refused")
        return w.with_head("H1", session="asked").send("H1", "p", "MOVE")

    def do_deadline(self) -> Self:
        return self._undo("stayed")

    def do_give_up(self) -> Self:
        """H2 has not opened p in time: channels may be slower than any bound."""
        w = self if self.is_off("a-move-given-up-is-closed") else self.send("p", "H2", "CLOSE_NEXT")
        return w.give_back()

    def do_expire(self) -> Self:
        """The link of a standby has been lost for so long that H2 forgets it."""
        return self.with_head("H2", record=None)

    def do_fault(self, fault: str) -> Self:
        kind, _, name = fault.partition(" ")
        w = replace(self, faults=self.faults - 1)
        return w._cut_link(name) if kind == "link" else w._crash(name, keeps=kind == "crash-late")

    def _cut_link(self, name: str) -> Self:
        w = self.drop(("p", name), (name, "p"))
        if (record := w.head(name).record) is not None:
            w = w.with_head(name, record=record._replace(is_linked=False))
        return w._lost(name)

    def _crash(self, name: str, *, keeps: bool) -> Self:
        """A head dies and starts again. `keeps`: what it had sent to its neighbours arrives before they notice."""
        ways = [pair for pair, _ in self.channels if name in pair]
        w = self.drop(*(pair for pair in ways if not (keeps and pair[0] == name and pair[1] != "p")))
        at = CHAIN.index(name)
        w = w.with_head(name, epoch=w.heads[at].epoch + 1, log=(), record=None)
        if w.heads[at].session in ("asked", "cut"):
            w = w.with_head(name, session="lost")
        for other in CHAIN[max(at - 1, 0) : at] + CHAIN[at + 1 : at + 2]:
            w = w.send(name, other, "DOWN", name)
        return w._lost(name) if name != "M" else w

    def check(self) -> None:
        for name, head in zip(CHAIN, self.heads, strict=True):
            numbers = [number for _, _, number in head.log]
            if len(set(numbers)) != len(numbers):
                raise ViolationError(f"once: {name} has {head.log}")
            for incarnation in {publication[0] for publication in head.log}:
                seqs = [seq for of, seq, _ in head.log if of == incarnation]
                if seqs != sorted(seqs):
                    raise ViolationError(f"in order: {name} has {head.log}")

    def check_end(self) -> None:
        p, record = self.p, self.head(self.p.at).record
        if p.phase != "open" or p.move or p.sent or p.queued:
            raise ViolationError(f"ends: {p}")
        if record is None or record.state != "open" or not record.is_linked or record.last != p.last:
            raise ViolationError(f"ends: {p.at} has {record}, and p is {p}")
        other = self.head("H2" if p.at == "H1" else "H1").record
        if other is not None and other.state == "standby":
            raise ViolationError(f"ends: a standby is left: {other}")
        if self.head("H1").session in ("", "asked"):
            raise ViolationError(f"ends: the session is {self.head('H1').session!r}")
        if not any("crash" in fault for fault in self.config.faults):
            self._check_complete()

    def _check_complete(self) -> None:
        every = list(range(1, self.config.publications + 1))
        if self.p.unknown:
            raise ViolationError(f"answered: {self.p.unknown} are unknown, and no head has died")
        for name, head in zip(CHAIN, self.heads, strict=True):
            if [number for _, _, number in head.log] != every:
                raise ViolationError(f"complete: {name} has {head.log}")

    def outcomes(self) -> list[str]:
        return [self.head("H1").session]


def explore(config: Config) -> Result:
    """Visit every reachable state once. `outcomes`: how the hand-over ended, over all ends."""
    return search(World(config), visit)
