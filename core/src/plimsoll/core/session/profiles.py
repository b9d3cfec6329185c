"""Profiles that sessions wait for: asked for until they are complete. What is no profile is asked for anew.

The head of an edge knows what its other edges take in. What edges of other heads take in is asked of these heads
first, and goes with the question; without their answer in time it goes unsaid, and their input is overrated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.core import records as r
from plimsoll.core.balancing.pieces import PARTS_AT_MOST, PROFILE_BYTES, Gathering, decoded
from plimsoll.core.policies.profile import Profile
from plimsoll.core.session.events import Send
from plimsoll.core.wire import WireError

if TYPE_CHECKING:
    from plimsoll.core.session.turn import Turn

COVER_LOOKS = 4
"""A covering set is asked for so many times; then it goes without."""


@dataclass(slots=True)
class Covering:
    """What one edge takes in, as far as its head has told."""

    id: int
    head: str
    parts: dict[int, list[str]] = field(default_factory=dict)
    count: int = 0

    @property
    def is_whole(self) -> bool:
        return 0 < self.count == len(self.parts)

    def take(self, told: r.CoverTold) -> None:
        """A part; one of another number of parts begins anew."""
        if not 0 < told.parts <= PARTS_AT_MOST or told.part >= told.parts or self.is_whole:
            return
        if told.parts != self.count:
            self.count, self.parts = told.parts, {}
        known = sum(len(text) for texts in self.parts.values() for text in texts)
        if known <= 2 * PROFILE_BYTES:
            self.parts[told.part] = told.texts

    def slices(self) -> list[list[str]]:
        """The whole in order, at least one part; nothing as long as it is not whole."""
        return [self.parts[part] for part in range(self.count)] if self.is_whole else [[]]


@dataclass(slots=True)
class Asking:
    """One session's question: what do the subscribers of `edge` take, that `target` has or has not already?

    Where `targets` are named, each of them is meant. `covers`: what they take in, if one is an edge of another head;
    edges of one session that are asked share what is known of a target.
    """

    edge: str
    target: str
    id: int
    targets: list[str]
    since: float
    covers: dict[str, Covering] = field(default_factory=dict)
    gathering: Gathering = field(default_factory=Gathering)
    profile: Profile | None = None


class Profiles:
    """By the uid of the session, and by the edge."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], Asking] = {}
        self._covers: dict[str, dict[str, Covering]] = {}

    def get(
        self, turn: Turn, uid: str, edge: str, target: str, head: str, targets: Sequence[str] = ()
    ) -> Profile | None:
        """The profile, or None as long as it is not complete; it is asked for meanwhile."""
        asking = self._asked.get((uid, edge))
        if asking is None or (asking.target, asking.targets) != (target, list(targets)):
            asking = Asking(edge, target, turn.next_query(), list(targets), turn.now)
            asking.covers = self._covering(turn, uid, asking, head)
            self._asked[uid, edge] = asking
        if asking.profile is not None or _awaits_covers(turn, asking):
            return asking.profile
        if turn.is_due(f"profile/{asking.id}", turn.timings.ask):
            turn.effects.extend(Send(head, query) for query in _queries(asking))
        return None

    def heard(self, turn: Turn, reply: r.ProfileReply) -> None:
        """A piece."""
        for asking in self._asked.values():
            if asking.id != reply.id or asking.edge != reply.edge or asking.profile is not None:
                continue
            whole = asking.gathering.take(reply)
            if whole is None:
                return
            try:
                asking.profile = decoded(whole)
            except WireError:
                asking.id, asking.gathering = turn.next_query(), Gathering()
            return

    def told(self, said: r.CoverTold) -> None:
        """What an edge takes in, or a part of it."""
        for covers in self._covers.values():
            covering = covers.get(said.edge)
            if covering is not None and covering.id == said.id:
                covering.take(said)

    def forget(self, uid: str) -> None:
        """Nobody waits any more."""
        self._asked = {key: asking for key, asking in self._asked.items() if key[0] != uid}
        self._covers.pop(uid, None)

    def _covering(self, turn: Turn, uid: str, asking: Asking, head: str) -> dict[str, Covering]:
        """Whose covering sets have to be asked for: those of all targets, if this head does not know one of them."""
        edges = turn.view.edges if turn.view is not None else {}
        heads = {name: edges[name].head for name in asking.targets or [asking.target] if name in edges}
        if all(other == head for other in heads.values()):
            return {}
        known = self._covers.setdefault(uid, {})
        for name, other in heads.items():
            if name not in known or known[name].head != other:
                known[name] = Covering(turn.next_query(), other)
        return {name: known[name] for name in heads}


def _awaits_covers(turn: Turn, asking: Asking) -> bool:
    missing = {name: one for name, one in asking.covers.items() if not one.is_whole}
    if not missing or turn.now >= asking.since + COVER_LOOKS * turn.timings.ask:
        return False
    for name, one in missing.items():
        if turn.is_due(f"cover/{one.id}", turn.timings.ask):
            turn.effects.append(Send(one.head, r.CoverQuery(one.id, name)))
    return True


def _queries(asking: Asking) -> Iterator[r.ProfileQuery]:
    if not asking.covers:
        yield r.ProfileQuery(asking.id, asking.edge, asking.target, targets=asking.targets)
        return
    parts = [(name, texts) for name, covering in asking.covers.items() for texts in covering.slices()]
    for part, (name, texts) in enumerate(parts):
        yield r.ProfileQuery(asking.id, asking.edge, name, part, len(parts), texts, asking.targets)
