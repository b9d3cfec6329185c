"""A subscriber without a lease whose head dies while it moves to another edge, or attaches: every state is visited.

Subscriber x is served by edge A of head H, is handed over to edge B by drain, loses its connections and resumes at
either edge. N is a neighbour of H, and publishes; it sends H only what it has been told is asked for there. H dies at
any moment. Its log outlasts it, but not who serves x: that the edges report. Channels are FIFO and arbitrarily slow.

Laws: x is told of no gap, and all that is published reaches it, once and in order. Places do not end here: leases are
longer than the run. Rules are switched off by name (`without`), to show that the search finds the violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import STATES_AT_MOST, Result, ViolationError, search, visit

EDGES = ("A", "B")
Items = tuple[tuple[int, int], ...]
"""Positions with their publications."""
REPORTED = ("LIVE", "BUFFERING", "ENDING", "CLOSED", "RESUMING")
"""States of an attachment that an edge reports to a head that has recovered, if it knows since when it is covered."""


class Config(NamedTuple):
    """`attaches`: how often x may resume. `publications` of N. `crashes` of H. `moves`: hand-overs from A to B.

    `breaks`: how often x may lose its connections by itself.
    """

    attaches: int = 1
    publications: int = 1
    crashes: int = 1
    moves: int = 1
    breaks: int = 0
    without: tuple[str, ...] = ()


class Attachment(NamedTuple):
    """x at an edge. `since`: the position from which on its cover is known to be whole, -1 if it is not known.

    `keeps`: it leaves a place behind. `waits`: what it has buffered.
    """

    state: str
    number: int
    since: int = -1
    keeps: bool = True
    has_go: bool = False
    waits: Items = ()

    @property
    def is_known(self) -> bool:
        return self.state in REPORTED and self.keeps and self.since >= 0


@dataclass(frozen=True)
class Subscriber:
    """`second`: the edge that it is handed over to. `token`: up to where it has had the log of H."""

    at: str = "A"
    second: str = ""
    number: int = 1
    token: int = 0
    attaches: int = 0
    is_live: bool = True
    received: tuple[int, ...] = ()


@dataclass(frozen=True)
class Head:
    """`log`: outlasts H. `owner`: edge, number, since. `held`: edges that keep a place until the owner has its own.

    `waiting`: RESUMEs that came before all edges had reported.
    """

    is_up: bool = True
    log: tuple[int, ...] = ()
    owner: tuple[str, int, int] | None = ("A", 1, 0)
    past: int = 0
    held: tuple[str, ...] = ()
    covers: tuple[str, ...] = ("A",)
    told: bool = True
    missing: tuple[str, ...] = ()
    waiting: tuple[Message, ...] = ()


@dataclass(frozen=True)
class HeldPlaceState(ChannelWorld):
    """`asked`: what N has been told. `sent`: by N to H. `seen`: how far each edge has had the log of H."""

    config: Config
    x: Subscriber = field(default_factory=Subscriber)
    edges: tuple[Attachment | None, Attachment | None] = (Attachment("LIVE", 1, 0), None)
    seen: tuple[int, int] = (0, 0)
    h: Head = field(default_factory=Head)
    asked: bool = True
    published: int = 0
    sent: tuple[int, ...] = ()
    crashes: int = 0
    moves: int = 0
    breaks: int = 0

    def edge(self, name: str) -> Attachment | None:
        return self.edges[EDGES.index(name)]

    def with_edge(self, name: str, attachment: Attachment | None) -> Self:
        changed = [attachment if each == name else self.edge(each) for each in EDGES]
        return replace(self, edges=(changed[0], changed[1]))

    def with_seen(self, name: str, position: int) -> Self:
        at = [max(position, self.seen[i]) if each == name else self.seen[i] for i, each in enumerate(EDGES)]
        return replace(self, seen=(at[0], at[1]))

    def with_h(self, **changes: Any) -> Self:
        return replace(self, h=replace(self.h, **changes))

    def with_x(self, **changes: Any) -> Self:
        return replace(self, x=replace(self.x, **changes))

    def up(self, edge: str, *message: Any) -> Self:
        """An edge sends to H; to one that has just recovered its report comes first."""
        is_new = ("HELLO",) in dict(self.channels).get(("H", edge), ())
        return self.send(edge, "H", *message) if self.h.is_up and not is_new else self


class SubscriberRules(HeldPlaceState):
    """The subscriber. What does not come from an attachment that it has is ignored."""

    def x_on_deliver(self, edge: str, number: int, position: int, publication: int) -> Self:
        x = self.x
        if (edge, number) != (x.at, x.number):
            return self
        if position != x.token + 1:
            what = "twice" if position <= x.token else "without what is before it"
            raise ViolationError(f"once and in order: x gets {publication} {what}, at {position} behind {x.token}")
        return self.with_x(token=position, received=(*x.received, publication))

    def x_on_resumed(self, edge: str, number: int, start: int, lapsed: bool) -> Self:
        if (edge, number) != (self.x.at, self.x.number):
            return self
        if lapsed:
            raise ViolationError(f"no gap: x is told of one, from {self.x.token} to {start}")
        return self.with_x(is_live=True)

    def x_on_end(self, edge: str, number: int, position: int) -> Self:
        x = self.x
        if (edge, number) != (x.at, x.number):
            return self
        w = self.send("x", edge, "DETACH", number)
        if not x.second:
            return w.with_x(at="", token=position, is_live=False)
        w = w.with_x(at=x.second, second="", number=number + 1, token=position)
        return w.send("x", x.second, "GO", number + 1)

    def x_on_closed(self, edge: str, number: int) -> Self:
        """The edge has closed an attachment. x gives up the other one as well, and resumes."""
        x = self.x
        if edge == x.second and number == x.number + 1:
            return self.with_x(second="")
        if (edge, number) != (x.at, x.number):
            return self
        w = self.with_x(at="", second="", is_live=False)
        return w.send("x", x.second, "DETACH", number + 1) if x.second else w


class EdgeRules(HeldPlaceState):
    """The edges."""

    def edge_on_resume(self, edge: str, number: int, token: int) -> Self:
        old = self.edge(edge)
        if old is not None and old.number >= number:
            return self.send(edge, "x", "CLOSED", number)
        is_off = self.is_off("a-resume-takes-over-the-place-of-its-edge")
        since = old.since if old is not None and old.is_known and not is_off else -1
        w = self.with_edge(edge, Attachment("RESUMING", number, since))
        return w.up(edge, "RESUME_UP", number, token)

    def edge_on_resumed(
        self,
        edge: str,
        number: int,
        since: int,
        items: tuple[tuple[int, int], ...],
        start: int,
        last: int,
        lapsed: bool,
    ) -> Self:
        w = self.with_seen(edge, last)
        old = self.edge(edge)
        if old is None or old.number != number:
            return w
        w = w.with_edge(edge, old._replace(since=since)).up(edge, "PLACE_TAKEN", number)
        if old.state != "RESUMING":
            return w
        w = w.with_edge(edge, old._replace(state="LIVE", since=since)).send(edge, "x", "RESUMED", number, start, lapsed)
        return w._delivered(edge, number, items)

    def _delivered(self, edge: str, number: int, items: Items) -> Self:
        w = self
        for position, publication in items:
            w = w.send(edge, "x", "DELIVER", number, position, publication)
        return w

    def edge_on_pub(self, edge: str, position: int, publication: int) -> Self:
        w, at = self.with_seen(edge, position), self.edge(edge)
        if at is not None and at.state == "LIVE":
            return w.send(edge, "x", "DELIVER", at.number, position, publication)
        if at is not None and at.state == "BUFFERING":
            return w.with_edge(edge, at._replace(waits=(*at.waits, (position, publication))))
        return w

    def edge_on_installed(self, edge: str, number: int, since: int, position: int) -> Self:
        w, at = self.with_seen(edge, position), self.edge(edge)
        if at is None or (at.state, at.number) != ("CUTTING", number):
            return w
        w = w.with_edge(edge, at._replace(state="BUFFERING", since=since))
        return w._go_live(edge) if at.has_go else w

    def edge_on_go(self, edge: str, number: int) -> Self:
        at = self.edge(edge)
        if at is None or at.number != number:
            return self
        if at.state == "BUFFERING":
            return self._go_live(edge)
        return self.with_edge(edge, at._replace(has_go=at.state == "CUTTING"))

    def _go_live(self, edge: str) -> Self:
        at = self.edge(edge)
        assert at is not None
        w = self.with_edge(edge, at._replace(state="LIVE", waits=(), has_go=False)).up(edge, "PLACE_TAKEN", at.number)
        return w._delivered(edge, at.number, at.waits)

    def edge_on_cut(self, edge: str, number: int) -> Self:
        at = self.edge(edge)
        if at is None or at.number != number:
            return self
        at = at._replace(keeps=not self.is_off("a-cut-leaves-the-place-at-the-source"))
        if at.state == "LIVE":
            w = self.with_edge(edge, at._replace(state="ENDING"))
            w = w.send(edge, "x", "END", number, self.seen[EDGES.index(edge)])
        else:
            w = self.with_edge(edge, at if at.keeps else None)
        return w if at.keeps else w.up(edge, "COVER", False)

    def edge_on_abort(self, edge: str, number: int) -> Self:
        at = self.edge(edge)
        return self._dropped(edge) if at is not None and at.number == number else self

    def _dropped(self, edge: str) -> Self:
        at = self.edge(edge)
        w = self.with_edge(edge, None).up(edge, "COVER", False)
        is_open = at is not None and at.state != "CLOSED"
        return w.send(edge, "x", "CLOSED", at.number) if at is not None and is_open else w

    def edge_on_detach(self, edge: str, number: int) -> Self:
        at = self.edge(edge)
        return self._closed(edge) if at is not None and at.number == number else self

    def edge_on_lost(self, edge: str, number: int) -> Self:
        at = self.edge(edge)
        return self._closed(edge) if at is not None and at.number <= number else self

    def _closed(self, edge: str) -> Self:
        at = self.edge(edge)
        assert at is not None
        if not at.keeps:
            return self.with_edge(edge, None)
        return self.with_edge(edge, at._replace(state="CLOSED", waits=(), has_go=False))

    def edge_on_release(self, edge: str, number: int) -> Self:
        at = self.edge(edge)
        return self._dropped(edge) if at is not None and at.number < number else self

    def edge_on_hello(self, edge: str) -> Self:
        """H has recovered. What is LIVE goes on; of all else only places stay."""
        at, w = self.edge(edge), self
        if at is not None and at.state != "LIVE":
            is_off = at.state == "ENDING" and self.is_off("a-place-that-ends-outlasts-the-head")
            stays = at.is_known and not is_off
            w = w.with_edge(edge, at._replace(state="CLOSED", waits=()) if stays else None)
            w = w.send(edge, "x", "CLOSED", at.number) if at.state != "CLOSED" else w
        return w.send(edge, "H", "REPORT", w.edge(edge), self.seen[EDGES.index(edge)])


class HeadRules(HeldPlaceState):
    """The head, and its neighbour."""

    def _covered(self, edge: str, is_covered: bool) -> Self:
        """Note the cover of a link, and tell N if the whole has changed."""
        covers = tuple(sorted({*self.h.covers, edge} if is_covered else {*self.h.covers} - {edge}))
        w = self.with_h(covers=covers)
        if w.h.missing or bool(covers) == w.h.told:
            return w
        return w.with_h(told=bool(covers)).send("H", "N", "COVER", bool(covers))

    def h_on_cover(self, edge: str, is_covered: bool) -> Self:
        return self._covered(edge, is_covered)

    def h_on_cut_request(self, edge: str, number: int) -> Self:
        w, h = self._covered(edge, True), self.h
        if h.owner is None or h.owner[:2] != ("A", number - 1):
            return w.send("H", edge, "ABORT", number)
        since = h.owner[2]
        w = w.with_h(owner=(edge, number, since), held=("A",))
        w = w.send("H", edge, "INSTALLED", number, since, len(h.log))
        return w.send("H", "A", "CUT", number - 1)

    def h_on_resume_up(self, edge: str, number: int, token: int) -> Self:
        h = self.h
        if h.missing and not self.is_off("a-resume-waits-for-all-edges"):
            return self.with_h(waiting=(*h.waiting, (edge, number, token)))
        w = self._covered(edge, True)
        newest = max(h.owner[1] if h.owner else 0, h.past)
        if newest >= number:
            is_held = edge in h.held and not self.is_off("an-older-resume-waits-as-well")
            return w if is_held else w.send("H", edge, "RELEASE", newest + 1)
        since = h.owner[2] if h.owner is not None else len(h.log)
        start, lapsed = (token, False) if token >= since and h.owner is not None else (len(h.log), True)
        items = tuple((i, h.log[i - 1]) for i in range(start + 1, len(h.log) + 1))
        w = w.with_h(owner=(edge, number, since), held=tuple(each for each in h.held if each != edge))
        w = w.send("H", edge, "RESUMED", number, since, items, start, len(h.log), lapsed)
        if h.owner is None or h.owner[0] == edge:
            return w
        if self.is_off("a-place-is-released-once-another-is-taken"):
            return w.send("H", h.owner[0], "RELEASE", number)
        return w.with_h(held=tuple(sorted({*w.h.held, h.owner[0]})))

    def h_on_place_taken(self, edge: str, number: int) -> Self:
        """The edge would report x from now on: the others may let it go."""
        h = self.h
        if h.owner is None or h.owner[:2] != (edge, number):
            return self
        w = self.with_h(held=())
        for each in () if self.is_off("the-last-owner-has-them-released") else h.held:
            w = w.send("H", each, "RELEASE", number)
        return w

    def h_on_report(self, edge: str, at: Attachment | None, seen: int) -> Self:
        w, owner = self._covered(edge, at is not None), self.h.owner
        if at is not None and (owner is None or at.number > owner[1]):
            w = w.with_h(owner=(edge, at.number, at.since))
            w = w.send("H", owner[0], "RELEASE", at.number) if owner is not None else w
        elif at is not None and owner is not None:
            w = w.send("H", edge, "RELEASE", owner[1] + (owner[1] == at.number))
        for position in range(seen + 1, len(w.h.log) + 1):
            w = w.send("H", edge, "PUB", position, w.h.log[position - 1])
        missing = tuple(each for each in w.h.missing if each != edge)
        w = w.with_h(missing=missing)
        return w if missing else w._ready()

    def _ready(self) -> Self:
        """All edges have reported: N is told, what it has sent meanwhile is logged, RESUMEs have their turn."""
        waiting, is_asked = self.h.waiting, bool(self.h.covers)
        w = self.with_h(told=is_asked, waiting=()).send("H", "N", "COVER", is_asked)
        for publication in w.sent[len(w.h.log) :]:
            w = w.send("N", "H", "PUB", publication)
        for each in waiting:
            w = w.h_on_resume_up(*each)
        return w

    def h_on_pub(self, publication: int) -> Self:
        w = self.with_h(log=(*self.h.log, publication))
        for edge in self.h.covers:
            w = w.send("H", edge, "PUB", len(w.h.log), publication)
        return w

    def n_on_cover(self, is_asked: bool) -> Self:
        return replace(self, asked=is_asked)


class World(SubscriberRules, EdgeRules, HeadRules):
    """The steps and faults, and the laws."""

    def steps(self) -> list[Message]:
        x, h, config = self.x, self.h, self.config
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        if not x.at and not x.second and x.attaches < config.attaches:
            found += [("attach", edge) for edge in EDGES]
        if self.published < config.publications:
            found.append(("publish",))
        if self.moves < config.moves and self._may_move():
            found.append(("move",))
        if x.at and self.breaks < config.breaks:
            found.append(("break",))
        if not h.is_up:
            found.append(("recover",))
        elif self.crashes < config.crashes:
            found.append(("fault", "H"))
        return found

    def _may_move(self) -> bool:
        at, h = self.edge("A"), self.h
        is_served = at is not None and at.state == "LIVE" and (self.x.at, self.x.number) == ("A", at.number)
        return h.is_up and not h.missing and is_served and self.x.is_live and self.edge("B") is None

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        role = "edge" if dst in EDGES else dst.lower()
        names = (dst,) if dst in EDGES else (src,) if src in EDGES else ()
        return w.heard(role, kind, *names, *rest)

    def do_attach(self, edge: str) -> Self:
        number = self.x.number + 2
        w = self.with_x(at=edge, number=number, attaches=self.x.attaches + 1, is_live=False)
        return w.send("x", edge, "RESUME", number, self.x.token)

    def do_publish(self) -> Self:
        """N publishes; x has asked for it since the beginning, and has been answered."""
        w = replace(self, published=self.published + 1)
        if not self.asked:
            raise ViolationError(f"nothing is lost: N does not send H {w.published}, and x has asked for it")
        w = replace(w, sent=(*self.sent, w.published))
        is_heard = self.h.is_up and not self.h.missing
        return w.send("N", "H", "PUB", w.published) if is_heard else w

    def do_move(self) -> Self:
        """x has attached to B as well, and the head of the source has B ask for the cut."""
        number = self.x.number + 1
        w = replace(self.with_x(second="B"), moves=self.moves + 1)
        return w.with_edge("B", Attachment("CUTTING", number)).up("B", "CUT_REQUEST", number)

    def do_break(self) -> Self:
        x = self.x
        w = self.losing(lambda pair: "x" in pair).with_x(at="", second="", is_live=False)
        w = replace(w, breaks=self.breaks + 1)
        for edge in EDGES:
            w = w.send("x", edge, "LOST", x.number + 1)
        return w

    def do_fault(self, _: str) -> Self:
        w = self.losing(lambda pair: "H" in pair)
        return replace(w, h=Head(is_up=False, log=self.h.log, owner=None), crashes=self.crashes + 1)

    def do_recover(self) -> Self:
        w = self.with_h(is_up=True, covers=(), missing=EDGES)
        for edge in EDGES:
            w = w.send("H", edge, "HELLO")
        return w

    def check(self) -> None:
        """The laws of every state are checked where x is told something."""

    def check_end(self) -> None:
        x = self.x
        if not x.at:
            return
        if x.token != self.published:
            raise ViolationError(f"nothing is lost: {self.published} were published, and x has {x.received}")
        others = [edge for edge in EDGES if edge != x.at and self.edge(edge) is not None]
        if others or self.h.held:
            raise ViolationError(f"it is let go: x is at {x.at}, and a place is kept at {others or self.h.held}")

    def outcomes(self) -> Iterator[str]:
        yield f"at {self.x.at or 'none'}"


def explore(config: Config, most: int = STATES_AT_MOST) -> Result:
    """Visit every reachable state once, breadth first."""
    return search(World(config), visit, most=most)
