"""A head that recovers between two neighbours, one of which is away: what it asks for is on the head's disk.

Head H has a publisher of its own, and two neighbours: N, which subscribes, and M, which has a publisher, too. M sends H
only what H says that it asks for. H crashes, loses any suffix of what was not synced, and recovers; the link to N ends,
and N comes back at any time, or so late that H waits for it no longer. Channels are FIFO and arbitrarily slow. A state
is a value; a step copies what it changes. Rules are switched off by name (`without`), to show that the search finds the
violation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import Result, ViolationError, search, visit


class Config(NamedTuple):
    """`publications`: by the publisher of H; `relays`: by that of M. `without`: rules that are off."""

    publications: int = 1
    relays: int = 1
    crashes: int = 1
    absences: int = 1
    without: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A publication in the log of H: of the publisher of head `origin`, with its number."""

    origin: str
    number: int


@dataclass(frozen=True)
class Head:
    """`disk`: entries, and what N asks for as it changes; `synced` of those are safe. `held`: waits for the others.

    `asks`: by which H routes. `reported`: N has said how far it has had the log. `is_ready`: H accepts publications,
    and M has been told what H asks for, `told` times. `wants_ack`: N is to be told when M has that.
    """

    is_up: bool = True
    disk: tuple[Entry | bool, ...] = (False,)
    synced: int = 1
    held: tuple[tuple[int, str, Message], ...] = ()
    asks: bool = False
    is_linked: bool = True
    reported: bool = True
    is_ready: bool = True
    gave_up: bool = False
    told: int = 0
    wants_ack: bool = False

    @property
    def log(self) -> list[Entry]:
        return [record for record in self.disk if isinstance(record, Entry)]

    @property
    def asks_on_disk(self) -> bool:
        return [record for record in self.disk if isinstance(record, bool)][-1]


@dataclass(frozen=True)
class Neighbor:
    """N: whether it subscribes, and has been told that this is covered; what it received of the log, up to where."""

    subscribes: bool = False
    is_covered: bool = False
    is_away: bool = False
    position: int = 0
    received: tuple[Entry, ...] = ()
    has_gap: bool = False


@dataclass(frozen=True)
class FarHead:
    """M: whether H asks it for publications; those that H has not acknowledged."""

    is_asked: bool = False
    made: int = 0
    unacked: tuple[int, ...] = ()


@dataclass(frozen=True)
class CoverState(ChannelWorld):
    """`due`: publications that were made when N was covered; `accepted`: those that their publisher was told of."""

    config: Config
    h: Head = field(default_factory=Head)
    n: Neighbor = field(default_factory=Neighbor)
    m: FarHead = field(default_factory=FarHead)
    due: frozenset[Entry] = frozenset()
    accepted: frozenset[Entry] = frozenset()
    made: int = 0
    crashes: int = 0
    absences: int = 0

    def without_channels(self, *peers: str) -> Self:
        return self.losing(lambda pair: bool(set(peers) & set(pair)))

    def say(self, dst: str, *message: Any) -> Self:
        """H sends, once all that it has written is safe."""
        if message[0] in ("ASK", "COVERED") and self.is_off("covered-behind-its-sync"):
            return self.send("H", dst, *message)
        held = (*self.h.held, (len(self.h.disk), dst, message))
        return self.with_h(held=held).release()

    def release(self) -> Self:
        w = self
        while w.h.held and w.h.held[0][0] <= w.h.synced:
            (_, dst, message), *rest = w.h.held
            w = w.with_h(held=tuple(rest))
            if dst == "p":
                w = replace(w, accepted=w.accepted | {message[1]})
            elif dst == "M" or w.h.is_linked:
                w = w.send("H", dst, *message)
        return w

    def with_h(self, **changes: Any) -> Self:
        return replace(self, h=replace(self.h, **changes))

    def with_n(self, **changes: Any) -> Self:
        return replace(self, n=replace(self.n, **changes))

    def with_m(self, **changes: Any) -> Self:
        return replace(self, m=replace(self.m, **changes))


class HeadRules(CoverState):
    """H: what is asked of it is on its disk before it is said to be covered."""

    def _ready(self) -> Self:
        return self.with_h(is_ready=True)._tell()

    def _tell(self) -> Self:
        told = self.h.told + 1
        return self.with_h(told=told).say("M", "ASK", told, self.h.asks)

    def _log(self, entry: Entry) -> Self:
        w = self.with_h(disk=(*self.h.disk, entry))
        is_offered = w.h.reported or self.is_off("nothing-is-offered-before-the-report")
        return w.say("N", "PUB", len(w.h.log), entry) if w.h.asks and is_offered and w.h.is_linked else w

    def _asks(self, asks: bool) -> Self:
        h = self.h
        is_new = h.asks_on_disk != asks and not self.is_off("what-is-asked-for-is-on-the-disk")
        w = self.with_h(asks=asks, disk=(*h.disk, asks) if is_new else h.disk, wants_ack=True)
        return w._ready() if not h.is_ready else w._tell()

    def h_on_cover(self) -> Self:
        return self._asks(True)

    def h_on_report(self, asks: bool, position: int) -> Self:
        w = self
        if w.h.gave_up:
            w = w.with_h(gave_up=False).say("N", "GAP")
        w = w._asks(asks).with_h(reported=True)
        if asks and not self.is_off("what-was-missed-is-sent"):
            for at, entry in enumerate(w.h.log, 1):
                if at > position:
                    w = w.say("N", "PUB", at, entry)
        return w

    def h_on_asked(self, told: int) -> Self:
        if told != self.h.told or not self.h.wants_ack:
            return self
        return self.with_h(wants_ack=False).say("N", "COVERED", self.h.asks)

    def h_on_relay(self, number: int) -> Self:
        entry = Entry("M", number)
        w = self if entry in self.h.log else self._log(entry)
        return w.say("M", "RELAYED", number)


class NeighborRules(CoverState):
    """N and M."""

    def n_on_covered(self, asks: bool) -> Self:
        return self.with_n(is_covered=self.n.is_covered or asks)

    def n_on_gap(self) -> Self:
        return self.with_n(has_gap=True)

    def n_on_pub(self, position: int, entry: Entry) -> Self:
        n = self.n
        is_known = any(had.origin == entry.origin and had.number >= entry.number for had in n.received)
        received = n.received if is_known else (*n.received, entry)
        return self.with_n(position=max(position, n.position), received=received)

    def m_on_ask(self, told: int, asks: bool) -> Self:
        return self.with_m(is_asked=asks).send("M", "H", "ASKED", told)

    def m_on_relayed(self, number: int) -> Self:
        return self.with_m(unacked=tuple(each for each in self.m.unacked if each > number))


class World(HeadRules, NeighborRules):
    """The steps and faults, and the laws that each state keeps."""

    def steps(self) -> list[Message]:
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        h, n, m = self.h, self.n, self.m
        if not n.subscribes:
            found.append(("subscribe",))
        if h.is_up and h.is_ready and self.made < self.config.publications:
            found.append(("publish",))
        if m.made < self.config.relays:
            found.append(("relay",))
        if h.is_up and h.synced < len(h.disk):
            found.append(("sync",))
        if not h.is_up:
            found.append(("recover",))
        if h.is_up and not h.is_ready and n.is_away:
            found.append(("lease",))
        if n.is_away:
            found.append(("return",))
        if h.is_up and self.crashes < self.config.crashes:
            found += [("fault", "crash", kept) for kept in range(h.synced, len(h.disk) + 1)]
        if not n.is_away and self.absences < self.config.absences:
            found.append(("fault", "away"))
        return found

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        return w.heard(dst.lower(), kind, *rest)

    def do_subscribe(self) -> Self:
        w = self.with_n(subscribes=True)
        return w.send("N", "H", "COVER") if self.h.is_up and self.h.is_linked else w

    def do_publish(self) -> Self:
        entry = Entry("H", self.made + 1)
        w = replace(self, made=self.made + 1, due=self.due | ({entry} if self.n.is_covered else set()))
        return w._log(entry).say("p", "ACCEPTED", entry)

    def do_relay(self) -> Self:
        entry = Entry("M", self.m.made + 1)
        w = replace(self, accepted=self.accepted | {entry}, due=self.due | ({entry} if self.n.is_covered else set()))
        w = w.with_m(made=entry.number)
        if not w.m.is_asked:
            return w
        w = w.with_m(unacked=(*w.m.unacked, entry.number))
        return w.send("M", "H", "RELAY", entry.number) if w.h.is_up else w

    def do_sync(self) -> Self:
        return self.with_h(synced=len(self.h.disk)).release()

    def do_fault(self, kind: str, kept: int = 0) -> Self:
        if kind == "away":
            w = replace(self, absences=self.absences + 1).with_n(is_away=True).without_channels("N")
            held = tuple(each for each in w.h.held if each[1] != "N")  # frames of a link that is over
            return w.with_h(is_linked=False, held=held)
        h = Head(is_up=False, disk=self.h.disk[:kept], synced=kept, is_linked=False, is_ready=False, reported=False)
        return replace(self, h=h, channels=(), crashes=self.crashes + 1)

    def do_recover(self) -> Self:
        w = self.with_h(is_up=True)
        for number in w.m.unacked:
            w = w.send("M", "H", "RELAY", number)
        if not self.is_off("covers-are-recalled"):
            w = w.with_h(asks=w.h.asks_on_disk)._ready()
        return w if w.n.is_away else w._link()

    def _link(self) -> Self:
        """N connects; what was under way on its last link is sent again when it reports."""
        n = self.n
        return self.with_h(is_linked=True, reported=False).send("N", "H", "REPORT", n.subscribes, n.position)

    def do_return(self) -> Self:
        w = self.with_n(is_away=False)
        return w._link() if w.h.is_up else w

    def do_lease(self) -> Self:
        """H waits for N no longer."""
        return self.with_h(gave_up=True)._ready()

    def check(self) -> None:
        received = self.n.received
        if len(set(received)) != len(received):
            raise ViolationError(f"once: N received {received}")
        if self.n.has_gap:
            raise ViolationError("no gap: N was told of a gap")

    def check_end(self) -> None:
        if not self.h.is_up or not self.h.is_ready or (self.n.subscribes and not self.n.is_covered):
            raise ViolationError(f"ends: {self.h}, {self.n}")
        lost = (self.due & self.accepted) - set(self.n.received)
        if lost:
            raise ViolationError(f"complete: N lost {sorted(lost)}, received {self.n.received}")

    def outcomes(self) -> list[str]:
        return ["recovered"] * (self.crashes > 0) + ["due"] * bool(self.due)


def explore(config: Config) -> Result:
    """Visit every reachable state once. `outcomes`: behind a crash, and with a publication that was due."""
    return search(World(config), visit)
