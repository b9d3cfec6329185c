"""A subscriber that is away for longer than its edge keeps its place: a model whose every state is visited.

Subscriber x attaches at edge A or B of head H, changes its list, goes away and comes back; N is a neighbour of H, which
sends H only what it has been told is asked for there. H keeps a place of its own for x: its owner number and its list.
A, B and H crash at any moment; H has what is on its disk when it recovers. What a step of H writes is safe before the
step sends anything (`durable_log.py` has that). Channels are FIFO and arbitrarily slow. A list is a version: each has
all that the one before it had. Rules are switched off by name (`without`), to show that the search finds the violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import STATES_AT_MOST, Result, ViolationError, search, visit

EDGES = ("A", "B")
AWAY = "@"
"""The key of an owner entry that no edge has: the place of the head itself."""


class Config(NamedTuple):
    """`attaches`: how often x may attach. `crashes`: of A, B and H together. `changes`: x may change its list.
    `leaves`: it may withdraw at the end."""

    attaches: int = 2
    crashes: int = 1
    changes: bool = True
    leaves: bool = False
    without: tuple[str, ...] = ()


class Place(NamedTuple):
    """Owner number and version of the list. At an edge, `is_open`: x is attached; `is_known`: H has answered."""

    number: int
    version: int
    is_open: bool = True
    is_known: bool = False


class Wait(NamedTuple):
    """A list that is acknowledged to an edge once N has acknowledged `need`."""

    edge: str
    number: int
    version: int
    need: int


@dataclass(frozen=True)
class Subscriber:
    """`acked`: the version that counts. `asked`: the version that it wants."""

    at: str = ""
    number: int = 0
    attaches: int = 0
    is_live: bool = False
    asked: int = 1
    acked: int = 0
    has_left: bool = False


@dataclass(frozen=True)
class Head:
    """`disk`: the place, which outlasts H. `owner`: (key, number). `lost`: edges whose cover H keeps as a ghost.
    `past`: the number of an owner that has left."""

    is_up: bool = True
    disk: Place | None = None
    place: Place | None = None
    staged: tuple[tuple[str, Place], ...] = ()
    owner: tuple[str, int] | None = None
    covers: tuple[tuple[str, int], ...] = ()
    past: int = 0
    lost: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    told: int = 0
    seq: int = 0
    waits: tuple[Wait, ...] = ()

    def cover(self, key: str) -> int:
        return dict(self.covers).get(key, 0)


@dataclass(frozen=True)
class PlaceState(ChannelWorld):
    """The subscriber, its edges, its head and a neighbour, and what is on its way."""

    config: Config
    x: Subscriber = field(default_factory=Subscriber)
    edges: tuple[Place | None, Place | None] = (None, None)
    h: Head = field(default_factory=Head)
    n: int = 0
    """The version that N has been told is asked for at H."""
    crashes: int = 0

    def cut_off(self, *parties: str) -> Self:
        """What is on its way between these two, or from and to one of them, is lost."""
        return self.losing(lambda pair: set(parties) <= set(pair))

    def edge(self, name: str) -> Place | None:
        return self.edges[EDGES.index(name)]

    def with_edge(self, name: str, place: Place | None) -> Self:
        changed = [place if each == name else self.edge(each) for each in EDGES]
        return replace(self, edges=(changed[0], changed[1]))

    def with_h(self, **changes: Any) -> Self:
        return replace(self, h=replace(self.h, **changes))

    def with_x(self, **changes: Any) -> Self:
        return replace(self, x=replace(self.x, **changes))


class SubscriberRules(PlaceState):
    """The subscriber."""

    def x_on_resumed(self, number: int, lapsed: bool) -> Self:
        if number != self.x.number or not self.x.at:
            return self
        if lapsed and self.x.acked:
            raise ViolationError(f"its place is kept: version {self.x.acked} counted, and x is told that it lapsed")
        return self.with_x(is_live=True)

    def x_on_suback(self, number: int, version: int) -> Self:
        if number != self.x.number or not self.x.at:
            return self
        return self.with_x(acked=max(self.x.acked, version))

    def x_on_gone(self, number: int) -> Self:
        return self.with_x(at="", is_live=False) if number == self.x.number else self


class EdgeRules(PlaceState):
    """The edges: a list goes to the head ahead of what makes the edge its owner."""

    def _keep(self, edge: str, place: Place, *announce: Any) -> Self:
        keep = ("KEEP", place.number, place.version)
        first, second = (announce, keep) if self.is_off("a-place-is-kept-ahead-of-its-cover") else (keep, announce)
        return self.up(edge, *first).up(edge, *second)

    def up(self, edge: str, *message: Any) -> Self:
        """An edge sends to H; to one that has just recovered its report comes first."""
        is_new = ("HELLO",) in dict(self.channels).get(("H", edge), ())
        return self.send(edge, "H", *message) if self.h.is_up and not is_new else self

    def edge_on_resume(self, edge: str, number: int, version: int, acked: int) -> Self:
        old = self.edge(edge)
        if old is not None and old.number >= number:
            return self.send(edge, "x", "GONE", number)
        place = Place(number, version)
        return self.with_edge(edge, place)._keep(edge, place, "RESUME_UP", number, version, acked)

    def edge_on_subs(self, edge: str, number: int, version: int) -> Self:
        old = self.edge(edge)
        if old is None or old.number != number or not old.is_open:
            return self
        place = old._replace(version=version)
        return self.with_edge(edge, place)._keep(edge, place, "COVER", number, version)

    def edge_on_lost(self, edge: str, number: int) -> Self:
        old = self.edge(edge)
        if old is None or old.number != number:
            return self
        return self.with_edge(edge, old._replace(is_open=False))

    def edge_on_withdraw(self, edge: str, number: int) -> Self:
        old = self.edge(edge)
        if old is None or old.number != number:
            return self
        return self.with_edge(edge, None).up(edge, "FORGET", number).up(edge, "COVER", number, 0)

    def edge_on_resumed(self, edge: str, number: int, lapsed: bool) -> Self:
        place = self.edge(edge)
        if place is None or place.number != number:
            return self
        w = self.with_edge(edge, place._replace(is_known=True))
        return w.send(edge, "x", "RESUMED", number, lapsed) if place.is_open else w

    def edge_on_ack(self, edge: str, number: int, version: int) -> Self:
        place = self.edge(edge)
        is_served = place is not None and place.number == number and place.is_open
        return self.send(edge, "x", "SUBACK", number, version) if is_served else self

    def edge_on_release(self, edge: str, number: int) -> Self:
        place = self.edge(edge)
        if place is None or place.number >= number:
            return self
        x = self.x
        if place.is_open and (x.at, x.number) == (edge, place.number):
            raise ViolationError(f"it is served: {edge} releases x, which is attached there and nowhere else")
        w = self.with_edge(edge, None)
        if place.is_open:
            w = w.send(edge, "x", "GONE", place.number)
        return w.up(edge, "COVER", place.number, 0)

    def edge_on_hello(self, edge: str) -> Self:
        """H has recovered: the edge reports what an earlier life of H has confirmed."""
        place = self.edge(edge)
        if place is None:
            return self.send(edge, "H", "REPORT", None)
        if place.is_known:
            again = not self.is_off("lists-are-kept-again-with-the-report")
            w = self.send(edge, "H", "KEEP", place.number, place.version) if again else self
            return w.send(edge, "H", "REPORT", place)
        w = self.with_edge(edge, None)
        w = w.send(edge, "x", "GONE", place.number) if place.is_open else w
        return w.send(edge, "H", "REPORT", None)


class HeadRules(PlaceState):
    """The head, which keeps the place, and its neighbour."""

    def _covered(self, key: str, version: int, wait: Place | None = None) -> Self:
        """Note the cover of a link, and tell N if the whole has changed; `wait`: acknowledged once N has it."""
        covers = {**dict(self.h.covers), key: version}
        w = self.with_h(covers=tuple(sorted((k, v) for k, v in covers.items() if v)))
        h = w.h
        if not h.missing:
            whole = max(covers.values(), default=0)
            if whole != h.told:
                w = w.with_h(told=whole, seq=h.seq + 1).send("H", "N", "COVER", h.seq + 1, whole)
        if wait is not None:
            w = w.with_h(waits=(*w.h.waits, Wait(key, wait.number, wait.version, w.h.seq)))
            w = w if w.h.missing else w._settle()
        return w

    def _settle(self, acked: int | None = None) -> Self:
        """Acknowledge to edges what N has; without a message under way it has all."""
        has = acked if acked is not None else (self.h.seq if not self._under_way() else -1)
        w = self
        for wait in [each for each in self.h.waits if each.need <= has]:
            w = w.send("H", wait.edge, "ACK", wait.number, wait.version)
        return w.with_h(waits=tuple(each for each in self.h.waits if each.need > has))

    def _under_way(self) -> bool:
        return any({"H", "N"} == set(pair) for pair, _ in self.channels)

    def _put(self, place: Place | None) -> Self:
        """Keep the place, on the disk too; its list is covered from here on."""
        w = self.with_h(place=place)
        if not self.is_off("a-place-is-on-the-disk"):
            w = w.with_h(disk=place)
        return w._covered(AWAY, place.version if place is not None else 0)

    def h_on_keep(self, edge: str, number: int, version: int) -> Self:
        h = self.h
        place = Place(number, version)
        if self.is_off("a-list-counts-with-its-owner"):
            return self._put(place)
        if h.place is not None and h.place.number == number:
            return self._put(place)
        if h.owner is not None and h.owner == (edge, number):
            return self._put(place)
        staged = {**dict(h.staged), edge: place}
        return self.with_h(staged=tuple(sorted(staged.items())))

    def h_on_resume_up(self, edge: str, number: int, version: int, acked: int) -> Self:
        h = self.h
        staged = dict(h.staged)
        mine = staged.pop(edge, None)
        w = self.with_h(staged=tuple(sorted(staged.items())))
        newest = max(h.owner[1] if h.owner else 0, h.place.number if h.place else 0, h.past)
        if newest >= number:
            w = w._covered(edge, version)
            return w.send("H", edge, "RELEASE", newest + (newest == number))
        lapsed = h.owner is None and acked > 0
        lost = tuple(each for each in h.lost if each != edge)
        w = w.with_h(owner=(edge, number), lost=lost)
        if mine is not None and mine.number == number:
            w = w._put(mine)
        w = w._covered(edge, version, Place(number, version))
        w = w.send("H", edge, "RESUMED", number, lapsed)
        if h.owner is not None and h.owner[0] in EDGES and h.owner[0] != edge:
            old = h.owner[0]
            w = w._covered(old, 0).with_h(lost=lost) if old in h.lost else w.send("H", old, "RELEASE", number)
        return w

    def h_on_cover(self, edge: str, number: int, version: int) -> Self:
        return self._covered(edge, version, Place(number, version) if version else None)

    def h_on_expire(self, edge: str, number: int) -> Self:
        h = self.h
        if h.owner != (edge, number):
            return self.send("H", edge, "RELEASE", number + 1)
        return self._lapse(number).send("H", edge, "RELEASE", number + 1)

    def _lapse(self, number: int) -> Self:
        """What an edge keeps has ended: the place of the head goes on."""
        if self.h.place is not None and not self.is_off("a-place-outlasts-its-edge"):
            return self.with_h(owner=(AWAY, number))
        return self.with_h(owner=None, past=number, disk=None)._put(None)

    def h_on_forget(self, edge: str, number: int) -> Self:
        if self.h.owner != (edge, number):
            return self
        return self.with_h(owner=None, past=number, disk=None)._put(None)

    def h_on_report(self, edge: str, reported: Place | None) -> Self:
        w = self
        if reported is not None:
            h = self.h
            owner = h.owner
            yields = owner is not None and owner[0] == AWAY and not self.is_off("the-head-s-own-entry-yields")
            if owner is None or reported.number > owner[1] or (yields and reported.number == owner[1]):
                staged = dict(h.staged)
                mine = staged.pop(edge, None)
                w = w.with_h(owner=(edge, reported.number), staged=tuple(sorted(staged.items())))
                if mine is not None and mine.number == reported.number:
                    w = w._put(mine)
                if owner is not None and owner[0] in EDGES:
                    w = w.send("H", owner[0], "RELEASE", reported.number)
            else:
                w = w.send("H", edge, "RELEASE", owner[1] + (owner[1] == reported.number))
            w = w._covered(edge, reported.version, reported)
        missing = tuple(each for each in w.h.missing if each != edge)
        w = w.with_h(missing=missing)
        if self.h.missing and not missing:
            whole = max((version for _, version in w.h.covers), default=0)
            w = w.with_h(told=whole, seq=1).send("H", "N", "COVER", 1, whole)
            w = w.with_h(waits=tuple(wait._replace(need=1) for wait in w.h.waits))
        return w

    def h_on_acked(self, seq: int) -> Self:
        return self._settle(seq)

    def n_on_cover(self, seq: int, version: int) -> Self:
        return replace(self, n=version).send("N", "H", "ACKED", seq)


class World(SubscriberRules, EdgeRules, HeadRules):
    """The steps and faults, and the laws that each state keeps."""

    def steps(self) -> list[Message]:
        x, h = self.x, self.h
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        if not x.at and not x.has_left and x.attaches < self.config.attaches:
            found += [("attach", edge) for edge in EDGES]
        if x.at:
            found.append(("go_away",))
            if x.is_live and x.asked < 2 and self.config.changes:
                found.append(("change",))
            if x.is_live and self.config.leaves and x.attaches == self.config.attaches:
                found.append(("leave",))
        found += [("expire", edge) for edge in EDGES if (p := self.edge(edge)) is not None and not p.is_open]
        found += [("ghost_ends", edge) for edge in h.lost if h.is_up]
        if not h.is_up:
            found.append(("recover",))
        if self.crashes < self.config.crashes:
            found += [("fault", edge) for edge in EDGES]
            found += [("fault", "H")] if h.is_up else []
        return found

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        role = "edge" if dst in EDGES else dst.lower()
        names = (dst,) if dst in EDGES else (src,) if role == "h" and src in EDGES else ()
        return w.heard(role, kind, *names, *rest)

    def do_attach(self, edge: str) -> Self:
        number = self.x.number + 1
        w = self.with_x(at=edge, number=number, attaches=self.x.attaches + 1, is_live=False)
        return w.send("x", edge, "RESUME", number, self.x.asked, self.x.acked)

    def do_change(self) -> Self:
        return self.with_x(asked=2).send("x", self.x.at, "SUBS", self.x.number, 2)

    def do_go_away(self) -> Self:
        at = self.x.at
        return self.with_x(at="", is_live=False).cut_off("x", at).send("x", at, "LOST", self.x.number)

    def do_leave(self) -> Self:
        at = self.x.at
        w = self.with_x(at="", is_live=False, has_left=True, acked=0)
        return w.send("x", at, "WITHDRAW", self.x.number)

    def do_expire(self, edge: str) -> Self:
        place = self.edge(edge)
        channels = dict(self.channels)
        under_way = (*channels.get((edge, "H"), ()), *channels.get(("H", edge), ()))
        is_asked = any(message[0] in ("EXPIRE", "RELEASE") for message in under_way)
        return self if place is None or is_asked else self.up(edge, "EXPIRE", place.number)

    def do_fault(self, party: str) -> Self:
        return self._crash_head() if party == "H" else self._crash(party)

    def _crash(self, edge: str) -> Self:
        w = self.cut_off(edge, "H").cut_off(edge, "x").with_edge(edge, None)
        w = replace(w, crashes=self.crashes + 1)
        if self.x.at == edge:
            w = w.with_x(at="", is_live=False)
        if not self.h.is_up:
            return w
        if edge in self.h.missing:
            return w.send(edge, "H", "REPORT", None)
        waits = tuple(wait for wait in self.h.waits if wait.edge != edge)
        staged = tuple(each for each in self.h.staged if each[0] != edge)
        w = w.with_h(waits=waits, staged=staged)
        if self.h.owner is not None and self.h.owner[0] == edge:
            return w.with_h(lost=tuple(sorted({*self.h.lost, edge})))
        return w._covered(edge, 0)

    def do_ghost_ends(self, edge: str) -> Self:
        w = self.with_h(lost=tuple(each for each in self.h.lost if each != edge))
        if self.h.owner is not None and self.h.owner[0] == edge:
            w = w._lapse(self.h.owner[1])
        return w._covered(edge, 0)

    def _crash_head(self) -> Self:
        w = self
        for party in (*EDGES, "N"):
            w = w.cut_off("H", party)
        return replace(w, h=Head(is_up=False, disk=self.h.disk), crashes=self.crashes + 1)

    def do_recover(self) -> Self:
        place = self.h.disk
        h = Head(disk=place, place=place, missing=EDGES)
        if place is not None:
            h = replace(h, owner=(AWAY, place.number))
            if not self.is_off("a-recovered-place-is-covered"):
                h = replace(h, covers=((AWAY, place.version),))
        w = replace(self, h=h)
        for edge in EDGES:
            w = w.send("H", edge, "HELLO")
        return w

    def check(self) -> None:
        x = self.x
        if x.acked > self.n:
            raise ViolationError(f"it is covered: version {x.acked} counts for x, and N sends H version {self.n}")

    def check_end(self) -> None:
        if self.x.has_left and not self.crashes and (self.h.place is not None or self.n):
            raise ViolationError(f"it is forgotten: x has left, and H keeps {self.h.place}, N sends {self.n}")

    def outcomes(self) -> Iterator[str]:
        if self.h.owner is not None and self.h.owner[0] == AWAY:
            yield "away"


def explore(config: Config, most: int = STATES_AT_MOST) -> Result:
    """Visit every reachable state once, breadth first."""
    return search(World(config), visit, most=most)
