"""Which links need a publication: the cover of each link, an index over all of them, and what each neighbour must know.

Covers change by numbered deltas, each applied in one step. A delta is acknowledged when every update sent onward up to
then is acknowledged: being covered by something unacknowledged is not yet being covered. A neighbour that is down is
named instead of waited for, and the acknowledgement is repeated without it when it is back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from plimsoll.core import predicates
from plimsoll.core.covering.cover_set import CoverDelta, CoveringSet
from plimsoll.core.matching import Index
from plimsoll.core.predicates import Attributes, Subscription
from plimsoll.core.protocol.messages import Cover, CoverItem
from plimsoll.core.protocol.wire import WireError

STEP_UNITS = 4_000
"""Work of one step on a neighbour's cover, in units of some quarter of a microsecond; `tidy` does the rest."""


@dataclass(slots=True)
class NeighborCover:
    """What one neighbour knows of this head: the covering set of all other links, and how far it has acknowledged it.

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
class PendingCoverUpdate:
    """An update that is not acknowledged yet, with the number that each neighbour must acknowledge first."""

    key: str
    seq: int
    need: dict[str, int]
    told: list[str] = field(default_factory=list)
    """The heads named as unreached when it was last acknowledged."""


class RoutingTable:
    """Covers by link key. Keys of neighbours are their names; a key of an edge names one incarnation of its link.

    `unmatched`: keys of covers that neighbours are told of, and that need no publications.
    """

    def __init__(self, neighbors: Iterable[str], *, compiled: bool = True, unmatched: Collection[str] = ()) -> None:
        self.neighbors = {name: NeighborCover() for name in neighbors}
        self.waits: list[PendingCoverUpdate] = []
        self._unmatched = unmatched
        self._index: Index = Index(compiled=compiled)
        self._covers: dict[str, dict[int, int]] = {}
        self._owner: dict[int, str] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._next_id = 0
        self.units_spent = 0
        """Of the latest change, on the covers of all neighbours; a unit is some quarter of a microsecond."""

    def __contains__(self, key: str) -> bool:
        return key in self._covers

    def size(self, key: str) -> int:
        """How many subscriptions the cover of a link has."""
        return len(self._covers.get(key, ()))

    def total_size(self, keys: Iterable[str]) -> int:
        """How many subscriptions the covers of these links have together."""
        return sum(len(self._covers.get(key, ())) for key in keys)

    def texts(self, key: str) -> list[str]:
        """The subscriptions of a link's cover, written."""
        return [str(self._subscriptions[number]) for number in self._covers.get(key, {}).values()]

    def items(self, key: str) -> list[tuple[int, str]]:
        """The subscriptions of a link's cover, written, by the ids that it has given them."""
        return [(item, str(self._subscriptions[number])) for item, number in self._covers.get(key, {}).items()]

    def match(self, attributes: Attributes) -> set[str]:
        """The keys of the links that need a publication."""
        owner = self._owner
        return {owner[i] for i in self._index.match(attributes)}

    def apply(self, key: str, cover: Cover) -> dict[str, CoverDelta[int]]:
        """Apply an update in one step; returns the delta for each neighbour that it concerns.

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

    def replace(self, key: str, cover: Cover) -> dict[str, CoverDelta[int]]:
        """Replace the cover of a link by a whole new one, in one step; returns deltas as `apply` does."""
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

    def drop(self, key: str) -> dict[str, CoverDelta[int]]:
        """Forget a link and its cover."""
        self.waits = [wait for wait in self.waits if wait.key != key]
        return self._change(key, [], list(self._covers.pop(key, {}).values()))

    def _change(self, key: str, new: list[tuple[int, Subscription]], gone: list[int]) -> dict[str, CoverDelta[int]]:
        is_matched = key not in self._unmatched
        for i in gone:
            if is_matched:
                self._index.remove(i)
            del self._owner[i], self._subscriptions[i]
        for i, subscription in new:
            if is_matched:
                self._index.add(i, subscription)
            self._owner[i] = key
            self._subscriptions[i] = subscription
        deltas = {}
        self.units_spent = 0
        for name, neighbor in self.neighbors.items():
            if name != key:
                delta = neighbor.cover.apply(new, gone, units=STEP_UNITS)
                self.units_spent += neighbor.cover.units_spent
                if delta.announce or delta.withdraw:
                    deltas[name] = delta
        return deltas

    @property
    def is_tidy(self) -> bool:
        """Whether no neighbour's cover has work left over from bounded steps."""
        return all(neighbor.cover.is_tidy for neighbor in self.neighbors.values())

    def tidy(self) -> dict[str, CoverDelta[int]]:
        """A bounded step of what is left over; returns deltas as `apply` does."""
        deltas = {name: n.cover.tidy(STEP_UNITS) for name, n in self.neighbors.items() if not n.cover.is_tidy}
        return {name: delta for name, delta in deltas.items() if delta}

    def synced_neighbors(self) -> list[str]:
        """Neighbours whose link is up and that have been sent the whole cover."""
        return [name for name, neighbor in self.neighbors.items() if neighbor.synced]

    # numbered updates to neighbours

    def update(self, name: str, delta: CoverDelta[int]) -> Cover:
        """The next numbered update for a neighbour."""
        neighbor = self.neighbors[name]
        neighbor.seq += 1
        return Cover(neighbor.seq, [CoverItem(i, str(s)) for i, s in delta.announce], list(delta.withdraw))

    def whole(self, name: str) -> Cover:
        """The whole cover for a neighbour's new link. Numbering starts over; updates wait for this one instead."""
        neighbor = self.neighbors[name]
        neighbor.seq, neighbor.acked, neighbor.complete, neighbor.unreached = 1, 0, 0, []
        neighbor.up = neighbor.synced = True
        for wait in self.waits:
            if name in wait.need:
                wait.need[name] = 1
        return Cover(1, [CoverItem(i, str(s)) for i, s in neighbor.cover.items()], [])

    def down(self, name: str) -> None:
        """A neighbour's link is lost: no update waits for it, and the acknowledgements that it wanted are void."""
        self.neighbors[name].up = self.neighbors[name].synced = False
        self.waits = [wait for wait in self.waits if wait.key != name]

    def lost_neighbors(self) -> list[str]:
        """Neighbours to which there is no link at present."""
        return sorted(name for name, neighbor in self.neighbors.items() if not neighbor.up)

    def wait(self, key: str, seq: int) -> None:
        """Note that an update of a link is to be acknowledged once everything sent onward so far is."""
        need = {name: up.seq for name, up in self.neighbors.items() if name != key}
        self.waits.append(PendingCoverUpdate(key, seq, need))

    def acknowledged(self, name: str, seq: int, unreached: list[str]) -> None:
        """A neighbour has an update and all before it, and so have all heads behind it except those it names."""
        neighbor = self.neighbors[name]
        if seq >= neighbor.acked:
            neighbor.acked, neighbor.unreached = seq, unreached
        if not unreached:
            neighbor.complete = max(neighbor.complete, seq)

    def settled(self) -> list[tuple[str, int, list[str]]]:
        """Acknowledgements that are due now: (key, number, heads that were not reached).

        Acknowledgements are cumulative: the last complete one stands for the complete ones before it.
        """
        due: list[tuple[str, int, list[str]]] = []
        kept: list[PendingCoverUpdate] = []
        incomplete: dict[str, PendingCoverUpdate] = {}
        for wait in self.waits:
            if any(self.neighbors[n].up and self.neighbors[n].acked < k for n, k in wait.need.items()):
                kept.append(wait)
                continue
            unreached = self._unreached(wait)
            if unreached != wait.told or not unreached:
                if not unreached:
                    due = [each for each in due if each[0] != wait.key or each[2]]
                due.append((wait.key, wait.seq, unreached))
                wait.told = unreached
            if unreached:
                # Cumulative as well: of incomplete acknowledgements only the last is repeated when a head comes back.
                incomplete[wait.key] = wait
        self.waits = [*incomplete.values(), *kept]
        return due

    def _unreached(self, wait: PendingCoverUpdate) -> list[str]:
        missing: set[str] = set()
        for name, k in wait.need.items():
            neighbor = self.neighbors[name]
            if not neighbor.up:
                missing.add(name)
            elif neighbor.complete < k:
                missing.update(neighbor.unreached)
        return sorted(missing)


def _parsed(text: str) -> Subscription:
    try:
        return predicates.parse(text)
    except ValueError as error:
        raise WireError("cover", f"subscription {text!r}: {error}") from error
