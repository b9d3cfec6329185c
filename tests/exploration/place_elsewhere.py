"""A subscriber with a place at two heads, of which one has to go: a model whose every state is visited.

Subscriber x is handed over from edge A of head H1 to edge B of head H2 (docs/handover.md, 4). Both heads keep a place
for it on their disks. Heads and edges crash at any moment; a head forgets its sessions then, and what is under way to
and from it is lost. A head whose place no edge serves asks the other one. What an edge does with its head is one step;
channels between x, H1 and H2 are FIFO and arbitrarily slow. `durable_place.py` has the list and its cover. Rules are
switched off by name (`without`), to show that the search finds the violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import STATES_AT_MOST, Result, ViolationError, search, visit

HEADS = ("H1", "H2")


class Config(NamedTuple):
    """How often x is handed over to H2, moves to another edge of H1, goes away; how often parties crash."""

    sessions: int = 1
    moves: int = 0
    crashes: int = 1
    leaves: int = 1
    without: tuple[str, ...] = ()


class Place(NamedTuple):
    """The owner number at a head. `is_guest`: the source may still undo the cut. `edge`: x as the edge has it.

    `edge` is `live`, `ending` (the source has been cut), `waiting` (the target waits for GO), or empty: x is away.
    """

    number: int
    edge: str = ""
    is_guest: bool = False


@dataclass(frozen=True)
class Head:
    """`session`: `open` or `cut`, of the source; `guest` of the target, until DONE; `id`: which one it is.

    `past`: the number of an owner that has left.
    """

    place: Place | None = None
    session: str = ""
    id: int = 0
    past: int = 0


@dataclass(frozen=True)
class PlaceState(ChannelWorld):
    """`token`: the head whose stream x has read. `at`: the head that serves x, or that it asks to."""

    config: Config
    token: str = "H1"  # noqa: S105  # a head
    at: str = "H1"
    number: int = 1
    heads: tuple[Head, Head] = (Head(Place(1, "live")), Head())
    sessions: int = 0
    moves: int = 0
    crashes: int = 0
    leaves: int = 0

    def head(self, name: str) -> Head:
        return self.heads[HEADS.index(name)]

    def with_head(self, name: str, **changes: Any) -> Self:
        first, second = (replace(self.head(n), **changes) if n == name else self.head(n) for n in HEADS)
        return replace(self, heads=(first, second))

    def cut_off(self, *parties: str) -> Self:
        return self.losing(lambda pair: set(parties) <= set(pair))

    def _place(self, name: str) -> Place:
        place = self.head(name).place
        return place if place is not None else Place(0)

    def _close(self, name: str) -> Self:
        """The edge of this head closes what it has of x; the place stays."""
        head = self.head(name)
        w = self if head.place is None else self.with_head(name, place=head.place._replace(edge=""))
        served = head.place is not None and head.place.edge
        return replace(w, at="").cut_off("x", name) if served and self.at == name else w


class HandoverRules(PlaceState):
    """The hand-over of x between the heads."""

    def head_on_install(self, name: str, session: int, number: int) -> Self:
        """x is attached on standby: B asks for the cut, and H2 is the owner until H1 has decided."""
        h2 = self.head(name)
        if max(self._place(name).number, h2.past) > number + 1 or self.at != "H1" or self.number != number:
            return self.send("H2", "H1", "REFUSED", session)
        guest = not self.is_off("a-guest-s-place-is-in-doubt")
        w = self.with_head(name, place=Place(number + 1, "waiting", guest), session="guest", id=session)
        return w.send("H2", "H1", "MARKER", session, number)

    def head_on_refused(self, name: str, session: int) -> Self:
        head = self.head(name)
        return self.with_head(name, session="") if (head.session, head.id) == ("open", session) else self

    def head_on_marker(self, name: str, session: int, number: int) -> Self:
        head, place = self.head(name), self._place(name)
        if (head.session, head.id) != ("open", session):
            return self
        if place != Place(number, "live"):
            return self.with_head(name, session="").send("H1", "H2", "ABORT", session, number)
        w = self.with_head(name, session="cut", place=place._replace(edge="ending"))
        return w.send("H1", "x", "END", number + 1)

    def head_on_abort(self, name: str, session: int, number: int) -> Self:
        """As in the machines, an entry goes by its number, whatever is known of the session."""
        head = self.head(name)
        w = self.with_head(name, session="") if head.id == session else self
        if head.place is None or head.place.number != number + 1:
            return w
        return w._close(name).with_head(name, place=None, past=number + 1)

    def x_on_end(self, number: int) -> Self:
        if self.at != "H1" or self.number != number - 1:
            return self
        w = replace(self, token="H2", number=number, at="H2")  # noqa: S106  # a head
        return w.send("x", "H2", "GO", number)

    def head_on_go(self, name: str, number: int) -> Self:
        place = self.head(name).place
        if self.at != name or self.number != number:
            return self
        if place is None or place[:2] != (number, "waiting"):
            return replace(self, at="")
        w = self.with_head(name, place=Place(number, "live"), session="")
        head = self.head(name)
        return w.send("H2", "H1", "DONE", head.id) if head.session else w

    def head_on_done(self, name: str, session: int) -> Self:
        head = self.head(name)
        if (head.session, head.id) != ("cut", session):
            return self
        return self.with_head(name, session="", place=None, past=self._place(name).number + 1)


class QueryRules(PlaceState):
    """Heads that ask one another for a place, and the one that counts for less goes."""

    def _asks(self, name: str) -> bool:
        other = HEADS[1 - HEADS.index(name)]
        pairs = [pair for pair, _ in self.channels]
        place = self.head(name).place
        is_away = place is not None and not place.edge
        under_way = (name, other) in pairs or (other, name) in pairs
        return is_away and not under_way and self._answer(other, place) is not None and not self.is_off("heads-ask")

    def _answer(self, name: str, asked: Place | None) -> int | None:
        head = self.head(name)
        place = head.place
        if place is None or asked is None or (place.is_guest and not self.is_off("guests-do-not-answer")):
            return None
        is_equal = asked.is_guest and place.number == asked.number
        if place.number > asked.number or (is_equal and not self.is_off("guests-yield-to-their-equals")):
            return place.number
        is_served = place.edge == "live" and not head.session
        is_served = is_served or self.is_off("only-what-is-served-beats-a-guest")
        return place.number if asked.is_guest and place.number == asked.number - 1 and is_served else None

    def head_on_query(self, name: str, asked: Place) -> Self:
        answer = self._answer(name, asked)
        return self if answer is None else self.send(name, HEADS[1 - HEADS.index(name)], "REPLY", asked.number, answer)

    def head_on_reply(self, name: str, asked: int, number: int) -> Self:
        """What an edge serves by now, or has another number, is not what was asked about."""
        place = self.head(name).place
        is_same = place is not None and place.number == asked and not place.edge
        if place is None or not (is_same or self.is_off("the-place-is-the-one-that-was-asked-about")):
            return self
        return self.with_head(name, place=None, past=place.number)


class World(HandoverRules, QueryRules):
    """The steps and faults, and the laws that each state keeps."""

    def steps(self) -> list[Message]:
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        h1, h2 = self.heads
        is_live = h1.place is not None and h1.place.edge == "live"
        if is_live and not h1.session and self.sessions < self.config.sessions:
            found.append(("hand_over",))
        if is_live and not h1.session and self.at == "H1" and self.moves < self.config.moves:
            found.append(("move",))
        if h1.session == "open":
            found.append(("undo",))
        if h1.session == "cut":
            found.append(("give_up",))
        if h2.session == "guest" and not h1.session:
            found.append(("orphan",))
        if self.at and self.leaves < self.config.leaves:
            found.append(("go_away",))
        if not self.at:
            found.append(("resume",))
        found += [("ask", name) for name in HEADS if self._asks(name)]
        if self.crashes < self.config.crashes:
            found += [("fault", party) for party in (*HEADS, "A", "B")]
        return found

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        names = (dst,) if dst in HEADS else ()
        return w.heard("x" if dst == "x" else "head", kind, *names, *rest)

    def do_hand_over(self) -> Self:
        session = self.sessions + 1
        w = replace(self, sessions=session).with_head("H1", session="open", id=session)
        return w.send("H1", "H2", "INSTALL", session, self._place("H1").number)

    def do_move(self) -> Self:
        """A hand-over within the cluster of H1: the number rises as by a cut across."""
        number = self.number + 1
        return replace(self.with_head("H1", place=Place(number, "live")), number=number, moves=self.moves + 1)

    def do_undo(self) -> Self:
        h1 = self.heads[0]
        return self.with_head("H1", session="").send("H1", "H2", "ABORT", h1.id, self._place("H1").number)

    def do_give_up(self) -> Self:
        """Time to drain is over, or DONE was lost: what the source has goes with its lease."""
        return self.with_head("H1", session="")._close("H1")

    def do_orphan(self) -> Self:
        """B gives up a member of which the source says no more: its client has to come back."""
        return self.with_head("H2", session="")._close("H2")

    def do_go_away(self) -> Self:
        w = replace(self, at="", leaves=self.leaves + 1)
        for name in HEADS:
            w = w.cut_off("x", name)
        return w._close(self.at) if self._place(self.at).number == self.number else w

    def do_resume(self) -> Self:
        """x comes back where its token leads, and voids what is under way there."""
        name, number = self.token, self.number + 2
        place = self.head(name).place
        if place is None:
            raise ViolationError(f"its place is kept: x comes back to {name}, which keeps none")
        w = self.with_head(name, place=Place(number, "live"), session="")
        w = replace(w, number=number, at=name)
        head = self.head(name)
        if not head.session:
            return w
        if name == "H1":
            return w.send("H1", "H2", "ABORT", head.id, place.number)
        return w.send("H2", "H1", "DONE", head.id)

    def do_fault(self, party: str) -> Self:
        w = replace(self, crashes=self.crashes + 1)
        if party in HEADS:
            other = HEADS[1 - HEADS.index(party)]
            w = w.cut_off(*HEADS).with_head(party, session="")
            w = w._heads_lost(other)
            # An edge that waits or ends has lost the stream; one that is live goes on.
            return w if w._place(party).edge in ("", "live") else w._close(party)
        return w._close("H1" if party == "A" else "H2")

    def _heads_lost(self, name: str) -> Self:
        """This head has lost the other one: the source undoes what is not cut."""
        return self.with_head(name, session="") if self.head(name).session == "open" else self

    def do_ask(self, name: str) -> Self:
        return self.send(name, HEADS[1 - HEADS.index(name)], "QUERY", self.head(name).place)

    def check(self) -> None:
        """`do_resume` has the law: its place is kept where its token leads."""

    def check_end(self) -> None:
        kept = [name for name in HEADS if self.head(name).place is not None]
        if self.at and kept != [self.at]:
            raise ViolationError(f"one place is left: x is served by {self.at}, and places are at {' '.join(kept)}")

    def outcomes(self) -> Iterator[str]:
        yield self.at or "away"


def explore(config: Config, most: int = STATES_AT_MOST) -> Result:
    """Visit every reachable state once, breadth first."""
    return search(World(config), visit, most=most)
