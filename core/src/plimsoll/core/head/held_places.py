"""Places that edges keep for subscribers which another edge has taken over, until that edge would report them.

Who serves a subscriber without a lease is not in the log of a head. So a head that dies learns it from its edges, and
one of them must know at any time. Rules (tests/exploration/held_place.py has each, and what breaks without it):
- A cut, and a RESUME at another edge, leave the place at the edge before. It is released when the new owner has had
  RESUMED, or has been told that the subscriber is there (PLACE_TAKEN, DONE).
- A RESUME that comes late, from an edge that is held so, is released no earlier.
- A head whose log does not outlast it, or has all that its subscribers are due, releases at once: there a token is
  whole, or a gap is due, whatever edges say.

Each place is bounded by the lease that its edge gives it, and goes as soon as the subscriber has no owner any more.
"""

from __future__ import annotations

from typing import Protocol

from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch


class HeldPlacesContext(Protocol):
    """The parts of a head that places at edges depend on."""

    journal: LogJournal | None
    routes: RoutingTable
    outboxes: Outboxes
    owners: OwnershipTable


class HeldPlaces(HeadPart):
    """The entries of owners before the present one, by subscriber and link."""

    def __init__(self, host: HeldPlacesContext) -> None:
        self.host = host
        self._held: dict[str, dict[str, OwnerEntry]] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.PlaceTaken, self.on_taken)

    def __contains__(self, subscriber: object) -> bool:
        return subscriber in self._held

    @property
    def are_needed(self) -> bool:
        """Whether a token is whole only as long as some edge reports its subscriber."""
        return self.host.journal is not None and bool(self.host.routes.neighbors)

    def holds(self, key: str, subscriber: str) -> bool:
        """Whether this link keeps a place for a subscriber of another one."""
        return key in self._held.get(subscriber, ())

    # -- changes of owners

    def swapped(self, subscriber: str, old: OwnerEntry | None) -> None:
        """Another link has become the owner: the one before keeps its place, or releases it."""
        key = self.host.owners.entries[subscriber].key
        self._let_go(subscriber, key)
        if old is None or old.key == key or old.key not in self.host.outboxes.by_key:
            return
        if self.are_needed:
            self._held.setdefault(subscriber, {})[old.key] = old
        else:
            self._release(subscriber, old)

    def _let_go(self, subscriber: str, key: str) -> None:
        """This link does not keep its place for another one any more."""
        if (held := self._held.get(subscriber)) is not None:
            held.pop(key, None)
            if not held:
                del self._held[subscriber]

    def on_taken(self, outbox: Outbox, taken: msg.PlaceTaken) -> None:
        """An edge has had RESUMED: it would report the subscriber."""
        entry = self.host.owners.entries.get(taken.subscriber)
        if entry is not None and entry.epoch == taken.epoch:
            self.arrived(outbox, taken.subscriber)

    def arrived(self, outbox: Outbox, subscriber: str) -> None:
        """The subscriber is at this edge, which would report it."""
        entry = self.host.owners.entries.get(subscriber)
        if entry is not None and entry.key == outbox.key:
            self._release_all(subscriber)

    def _release_all(self, subscriber: str) -> None:
        for old in self._held.pop(subscriber, {}).values():
            self._release(subscriber, old)

    def _release(self, subscriber: str, old: OwnerEntry) -> None:
        """At RELEASE an edge takes the subscriber out of its cover; that of the owner has been in place before."""
        if (outbox := self.host.outboxes.by_key.get(old.key)) is not None:
            owner = self.host.owners.entries.get(subscriber)
            self.host.outboxes.send(outbox, msg.Release(subscriber, epoch_above(owner, old)))

    # -- ends

    def broker_lost(self, outbox: Outbox) -> None:
        for x in [x for x, held in self._held.items() if outbox.key in held]:
            self._let_go(x, outbox.key)

    def expire(self) -> None:
        """A subscriber that has no owner any more has left, or its lease is over."""
        for x in [x for x in self._held if x not in self.host.owners.entries]:
            self._release_all(x)


def epoch_above(owner: OwnerEntry | None, old: OwnerEntry) -> OwnerEpoch:
    """An epoch above that of an entry which the owner has replaced: of two identities either may be the higher one."""
    above = (old.epoch[0], old.epoch[1] + 1)
    if owner is None:
        return above
    return owner.epoch if owner.is_of(old.identity) else max(owner.epoch, above)
