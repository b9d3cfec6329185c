"""Credit of the publishers of each client: one window and one wait for all of them, divided in turns.

A head cannot know which publishers have something to publish, and cannot take credit back. So:
- A publisher asks by using half of what it was given last. Those that ask are served in the order in which they began.
- A turn of a client begins once its links have what they needed (client_share.py), and gives at most a window. Each
  that asks is topped up to its part of what the others have not taken, or its part of the window, if that is more;
  to at least one.
- Where a window is smaller than the number of publishers and all of it is out, no more than half a window of it, and
  one turn, is given within UNUSED_SECONDS without being used. A publisher with nothing to publish keeps its credit and
  holds back no other for longer than that.

The cost of a turn is in the publishers that get credit, not in those that the client has opened.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Generic, TypeVar

from plimsoll.core.head.client_share import ClientShares
from plimsoll.core.head.open_publisher import ClientCredit, OpenPublisher

UNUSED_SECONDS = 0.02

T = TypeVar("T")


class Alarms(Generic[T]):
    """What is to be looked at again, and when: each at the earliest time that was asked for."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._at: dict[T, float] = {}
        self._order = count()

    def set(self, item: T, at: float) -> None:
        if at < self._at.get(item, float("inf")):
            self._at[item] = at
            heapq.heappush(self._heap, (at, next(self._order), item))

    def due(self, now: float) -> Sequence[T]:
        if not self._heap or self._heap[0][0] > now:
            return ()
        found: list[T] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, item = heapq.heappop(self._heap)
            if self._at.get(item) == at:
                del self._at[item]
                found.append(item)
        return found

    @property
    def next_at(self) -> float:
        return self._heap[0][0] if self._heap else float("inf")


class ClientCredits:
    """All clients of a head that it remembers publishers of, by name. `largest`: the window of any client at most."""

    def __init__(self, shares: ClientShares, largest: int) -> None:
        self.shares, self.largest = shares, largest
        self.by_name: dict[str, ClientCredit] = {}
        self.times_held = self.times_held_for_links = 0
        self._due: dict[ClientCredit, None] = {}
        self._held = Alarms[OpenPublisher]()
        self._resting = Alarms[ClientCredit]()

    # -- whose publishers they are

    def join(self, publisher: OpenPublisher, name: str, before: ClientCredit | None = None) -> None:
        """A publisher is open, at this client. `before`: the client that had its name until now."""
        client = self.by_name.get(name)
        if client is None:
            client = self.by_name[name] = ClientCredit(name)
        if before is not None and before is not client:
            client.share.inherit(before.share)
        if publisher.client is not client:
            through = publisher.through
            if publisher.client.publishers:
                self.forget(publisher)
            publisher.client, publisher.through = client, through
            client.publishers += 1
        if not publisher.is_sharer:
            publisher.is_sharer = True
            client.sharers += 1
            client.unused += publisher.unused

    def leave(self, publisher: OpenPublisher) -> None:
        """It has no link now. It keeps its credit: what it has sent may come again, on another link."""
        publisher.client.asking.pop(publisher, None)

    def give_back(self, publisher: OpenPublisher) -> None:
        """It needs its credit no more."""
        self.leave(publisher)
        client = publisher.client
        if publisher.is_sharer:
            publisher.is_sharer = False
            client.sharers -= 1
            client.unused -= publisher.unused
        publisher.through = publisher.last_seq
        publisher.granted = 0

    def forget(self, publisher: OpenPublisher) -> None:
        """It counts for its client no more; a client without publishers is forgotten, too."""
        self.give_back(publisher)
        client = publisher.client
        if not client.publishers:
            return  # it has arrived from another head, and has not been opened here
        client.publishers -= 1
        if not client.publishers and self.by_name.get(client.name) is client:
            del self.by_name[client.name]

    # -- what lets clients go on

    def go_on(self, names: Iterable[str]) -> None:
        """Look at these clients again at the end of the round."""
        for name in names:
            if (client := self.by_name.get(name)) is not None:
                self._due[client] = None

    def took(self, publisher: OpenPublisher, size: int) -> None:
        """It has used a number."""
        client = publisher.client
        share = client.share
        share.published += 1
        share.size += size
        client.unused -= 1
        client.idle -= 1
        if publisher.turn == client.turn:
            client.used += 1

    def ask(self, publisher: OpenPublisher, now: float) -> None:
        """Let an open publisher wait for its turn once half of its credit is used."""
        unused = publisher.through - publisher.last_seq
        if unused > publisher.granted // 2:
            return
        client = publisher.client
        client.asking[publisher] = None
        self._due[client] = None
        if unused <= 0:
            client.is_dry = True
            if not publisher.is_held and publisher.quota_opens_at(now) > now:
                publisher.is_held = True
                self.times_held += 1

    def give(self, now: float) -> Sequence[OpenPublisher]:
        """Give the credit that is due by now; returns who got some."""
        self.go_on(self.shares.expire(now))
        for client in self._resting.due(now):
            self._due[client] = None
        for publisher in self._held.due(now):
            if publisher.link is not None:
                self.ask(publisher, now)
        if not self._due:
            return ()
        due, self._due = self._due, {}
        return [publisher for client in due for publisher in self._turns(client, now)]

    def wake_at(self) -> float:
        """When a client may get credit, if nothing comes before; infinity if none waits."""
        return min(self.shares.wake_at(), self._held.next_at, self._resting.next_at)

    # -- turns

    def _turns(self, client: ClientCredit, now: float) -> list[OpenPublisher]:
        raised: list[OpenPublisher] = []
        while self._next(client, now) is not None and not self._must_wait(client, now):
            raised += self._turn(client, now)
        return raised

    def _must_wait(self, client: ClientCredit, now: float) -> bool:
        """Whether the next turn of this client has not come: it is looked at again when it may have."""
        share = client.share
        half = share.granted // 2
        is_starved = client.given - client.used <= half or now >= client.turn_at + UNUSED_SECONDS
        if self.shares.must_wait(share, client.name, now, is_starved=is_starved):
            if client.is_dry and share.hold():
                self.times_held_for_links += 1
            return True
        is_crowded = client.sharers > share.granted and client.unused >= share.granted
        if is_crowded and client.idle > half and now < client.idle_until:
            self._resting.set(client, client.idle_until)
            return True
        return False

    def _next(self, client: ClientCredit, now: float) -> OpenPublisher | None:
        """The publisher that is served next. Those that are above a quota of their own wait apart; above that of their
        identity all wait together."""
        while client.asking:
            publisher = next(iter(client.asking))
            at = publisher.quota_opens_at(now)
            if at <= now:
                return publisher
            if _is_own_fault(publisher, now):
                del client.asking[publisher]
                self._held.set(publisher, at)
            else:
                self._resting.set(client, at)
                return None
        return None

    def _turn(self, client: ClientCredit, now: float) -> list[OpenPublisher]:
        """Give at most a window to those that ask."""
        share, raised = client.share, []
        self.shares.renewed(share, now)
        left = window = share.renew(self.largest)
        client.turn += 1
        client.turn_at, client.given, client.used = now, 0, 0
        if now >= client.idle_until:
            client.idle, client.idle_until = 0, now + UNUSED_SECONDS
        client.idle = max(client.idle, 0)
        while left > 0 and (publisher := self._next(client, now)) is not None:
            part = max((window - client.unused) // len(client.asking) + publisher.unused, window // client.sharers, 1)
            publisher.granted = min(part, _quota_part(publisher, window), window)
            more = min(publisher.granted - publisher.unused, left)
            del client.asking[publisher]
            publisher.turn, publisher.is_held = client.turn, False
            if more > 0:
                left -= more
                publisher.through += more
                client.given += more
                client.idle += more
                client.unused += more
                raised.append(publisher)
        client.is_dry = bool(client.asking)
        return raised


def _is_own_fault(publisher: OpenPublisher, now: float) -> bool:
    """Whether a quota that it shares with no other holds it."""
    shared = publisher.shared
    common = () if shared is None else (shared.messages, shared.bytes)
    return not any(bucket is not None and not bucket.open(now) for bucket in common)


def _quota_part(publisher: OpenPublisher, window: int) -> int:
    """What its quota of publications allows at once: a second's worth, divided between those that share it."""
    if publisher.messages is None:
        return window
    shared = publisher.shared
    sharers = shared.sharers if shared is not None and shared.messages is not None else 1
    return max(int(publisher.messages.burst) // sharers, 1)
