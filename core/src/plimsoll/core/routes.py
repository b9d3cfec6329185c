"""Who needs what at a head: the cover of each link, the index over all of them, and what each neighbour must know.

Covers change by numbered deltas, each applied in one step. A delta is acknowledged when every update that it, or
anything before
it, sent onward is acknowledged: being covered by something unacknowledged is not yet being covered. A neighbour that
is down is
named instead of waited for, and the acknowledgement is repeated without it when it is back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plimsoll.core import predicates
from plimsoll.core.covering import CoveringSet, Delta
from plimsoll.core.matching import Index
from plimsoll.core.predicates import Attributes, Subscription
from plimsoll.core.records import Cover, CoverItem
from plimsoll.core.wire import WireError

PART_CHARACTERS = 32 * 1024
"""A record of a cover holds about so many characters of subscriptions, however large the cover is."""

ITEM_CHARACTERS = 16
"""What a subscription takes in it beside its text."""


@dataclass(slots=True)
class Upstream:
    """What one neighbour has been told: the covering set of everything else, and how far it has acknowledged it.

    Behind it there may be heads that it cannot reach: then all has arrived only up to `complete`, but for `unreached`.
    """

    cover: CoveringSet[int] = field(default_factory=CoveringSet)
    seq: int = 0
    acked: int = 0
    complete: int = 0
    unreached: list[str] = field(default_factory=list)
    up: bool = False
    synced: bool = False


@dataclass(slots=True)
class Wait:
    """An update that is not acknowledged yet, with the number that each neighbour must acknowledge first."""

    key: str
    seq: int
    need: dict[str, int]
    told: list[str] = field(default_factory=list)
    """The heads that were named as unreached when it was acknowledged."""


class Routes:
    """Covers by link key. Keys of neighbours are their names; a key of an edge names one incarnation of its link."""

    def __init__(self, neighbors: Iterable[str], *, compiled: bool = True) -> None:
        self.upstreams = {name: Upstream() for name in neighbors}
        self.waits: list[Wait] = []
        self._index: Index = Index(compiled=compiled)
        self._covers: dict[str, dict[int, int]] = {}
        self._owner: dict[int, str] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._next_id = 0

    def __contains__(self, key: str) -> bool:
        return key in self._covers

    def size(self, key: str) -> int:
        """How many subscriptions the cover of a link has."""
        return len(self._covers.get(key, ()))

    def texts(self, key: str) -> list[str]:
        """The subscriptions of a link's cover, written."""
        return [str(self._subscriptions[number]) for number in self._covers.get(key, {}).values()]

    def match(self, attributes: Attributes) -> set[str]:
        """The keys of the links that need a publication."""
        owner = self._owner
        return {owner[i] for i in self._index.match(attributes)}

    def apply(self, key: str, cover: Cover) -> dict[str, Delta[int]]:
        """Apply an update in one step; returns what each neighbour must be told.

        Raises:
            WireError: the update does not fit what this link has announced. Nothing is applied.

        """
        mine = self._covers.get(key, {})
        adds = [(item.id, _parsed(item.text)) for item in cover.adds]
        for item in cover.removes:
            if item not in mine:
                raise WireError("cover", f"{key} withdraws subscription {item}, which it has not announced")
        for item, _ in adds:
            if item in mine and item not in cover.removes:
                raise WireError("cover", f"{key} announces subscription {item} twice")
        self._covers[key] = mine
        gone = [mine.pop(item) for item in cover.removes]
        new: list[tuple[int, Subscription]] = []
        for item, subscription in adds:
            self._next_id += 1
            mine[item] = self._next_id
            new.append((self._next_id, subscription))
        return self._change(key, new, gone)

    def replace(self, key: str, cover: Cover) -> dict[str, Delta[int]]:
        """Put a whole cover in the place of what this link had, in one step."""
        adds = [(item.id, _parsed(item.text)) for item in cover.adds]
        gone = list(self._covers.pop(key, {}).values())
        mine: dict[int, int] = {}
        new: list[tuple[int, Subscription]] = []
        for item, subscription in adds:
            self._next_id += 1
            mine[item] = self._next_id
            new.append((self._next_id, subscription))
        self._covers[key] = mine
        return self._change(key, new, gone)

    def drop(self, key: str) -> dict[str, Delta[int]]:
        """Forget a link and its cover."""
        self.waits = [wait for wait in self.waits if wait.key != key]
        return self._change(key, [], list(self._covers.pop(key, {}).values()))

    def _change(self, key: str, new: list[tuple[int, Subscription]], gone: list[int]) -> dict[str, Delta[int]]:
        for i in gone:
            self._index.remove(i)
            del self._owner[i], self._subscriptions[i]
        for i, subscription in new:
            self._index.add(i, subscription)
            self._owner[i] = key
            self._subscriptions[i] = subscription
        deltas = {}
        for name, upstream in self.upstreams.items():
            if name != key:
                delta = upstream.cover.apply(new, gone)
                if delta.announce or delta.withdraw:
                    deltas[name] = delta
        return deltas

    # numbered updates to neighbours

    def update(self, name: str, delta: Delta[int]) -> Cover:
        """The next numbered update for a neighbour."""
        upstream = self.upstreams[name]
        upstream.seq += 1
        return Cover(upstream.seq, [CoverItem(i, str(s)) for i, s in delta.announce], list(delta.withdraw))

    def whole(self, name: str) -> Cover:
        """All that a neighbour must know, for a new link: numbering starts over; who waits for it waits for this."""
        upstream = self.upstreams[name]
        upstream.seq, upstream.acked, upstream.complete, upstream.unreached = 1, 0, 0, []
        upstream.up = upstream.synced = True
        for wait in self.waits:
            if name in wait.need:
                wait.need[name] = 1
        return Cover(1, [CoverItem(i, str(s)) for i, s in upstream.cover.items()], [])

    def down(self, name: str) -> None:
        """A neighbour's link is lost: nobody waits for it, and what it asked for is void."""
        self.upstreams[name].up = self.upstreams[name].synced = False
        self.waits = [wait for wait in self.waits if wait.key != name]

    def wait(self, key: str, seq: int) -> None:
        """Note that an update of a link wants to be acknowledged once all that was sent onward so far is."""
        need = {name: up.seq for name, up in self.upstreams.items() if name != key}
        self.waits.append(Wait(key, seq, need))

    def acknowledged(self, name: str, seq: int, unreached: list[str]) -> None:
        """A neighbour has an update and all before it, and so has everyone behind it but those it names."""
        upstream = self.upstreams[name]
        if seq >= upstream.acked:
            upstream.acked, upstream.unreached = seq, unreached
        if not unreached:
            upstream.complete = max(upstream.complete, seq)

    def settled(self) -> list[tuple[str, int, list[str]]]:
        """Acknowledgements that are due now: (key, number, heads that were not reached).

        One that reached all answers for those before it that did.
        """
        due: list[tuple[str, int, list[str]]] = []
        kept: list[Wait] = []
        incomplete: dict[str, Wait] = {}
        for wait in self.waits:
            if any(self.upstreams[n].up and self.upstreams[n].acked < k for n, k in wait.need.items()):
                kept.append(wait)
                continue
            unreached = self._unreached(wait)
            if unreached != wait.told or not unreached:
                if not unreached:
                    due = [each for each in due if each[0] != wait.key or each[2]]
                due.append((wait.key, wait.seq, unreached))
                wait.told = unreached
            if unreached:
                # Acknowledgements are cumulative: of those that are incomplete the last speaks for all.
                incomplete[wait.key] = wait
        self.waits = [*incomplete.values(), *kept]
        return due

    def _unreached(self, wait: Wait) -> list[str]:
        missing: set[str] = set()
        for name, k in wait.need.items():
            upstream = self.upstreams[name]
            if not upstream.up:
                missing.add(name)
            elif upstream.complete < k:
                missing.update(upstream.unreached)
        return sorted(missing)


def parts(cover: Cover) -> list[Cover]:
    """One update as records of bounded size, each but the last with `more`."""
    found: list[Cover] = []
    adds: list[CoverItem] = []
    size = 0
    for item in cover.adds:
        if size + len(item.text) > PART_CHARACTERS and adds:
            found.append(Cover(cover.seq, adds, [], True))
            adds, size = [], 0
        adds.append(item)
        size += len(item.text) + ITEM_CHARACTERS
    removes, step = cover.removes, PART_CHARACTERS // ITEM_CHARACTERS
    while len(removes) > step:
        found.append(Cover(cover.seq, [], removes[:step], True))
        removes = removes[step:]
    return [*found, Cover(cover.seq, adds, removes)]


def joined(gathered: list[Cover], last: Cover) -> Cover:
    """The update that these parts make up."""
    adds = [item for part in (*gathered, last) for item in part.adds]
    return Cover(last.seq, adds, [item for part in (*gathered, last) for item in part.removes])


def _parsed(text: str) -> Subscription:
    try:
        return predicates.parse(text)
    except ValueError as error:
        raise WireError("cover", f"subscription {text!r}: {error}") from error
