"""Items of a member's slices: what its application is given, slice by slice in turn, and what it has finished.

Rule of the place (tests/exploration/slice_move.py): a slice that is revoked, or whose lease is over, gives the
application nothing more.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from plimsoll.core.client.group_beats import GroupBeats
from plimsoll.core.client.item_buffer import ItemBuffer
from plimsoll.core.client.slice_subscriber import HandedItem, SliceSubscriber, count_finished


class FinishedSlices(Protocol):
    """Where a slice that is given up waits for its application."""

    def finished(self, owned: SliceSubscriber, /) -> None: ...


class ItemsMember(Protocol):
    """The member whose items they are."""

    slices: dict[int, SliceSubscriber]
    beats: GroupBeats

    @property
    def assigned(self) -> FinishedSlices: ...
    def stop(self, why: str, /) -> None: ...


class ItemsHost(Protocol):
    """What they need of the client."""

    now: float

    def member_ready(self, member: Any, /) -> None: ...  # of the members that it has made


class GroupItems:
    """Items are taken with `take`, or from `buffer` after `refill`."""

    def __init__(self, client: ItemsHost, member: ItemsMember) -> None:
        self._client, self._member = client, member
        self._slices, self._beats = member.slices, member.beats
        self.buffer = ItemBuffer()
        self._turns: deque[SliceSubscriber] = deque()  # those with items, and some that had some

    def ready(self, owned: SliceSubscriber) -> None:
        """This slice has items; in its turn it is asked for them."""
        if not owned.has_turn:
            owned.has_turn = True
            self._turns.append(owned)
        self._client.member_ready(self._member)

    @property
    def has_any(self) -> bool:
        """Whether `take` would give something."""
        return any(owned.events and not owned.is_stopping for owned in self._slices.values())

    # -- given to the application

    def take(self, most: int = 1) -> list[HandedItem]:
        """The next items, in order per slice, of each slice in its turn; none if the lease is over."""
        now = self._client.now
        if self._slices and now > self._beats.lease_until:
            self._member.stop("lost")
        found: list[HandedItem] = []
        turns = self._turns
        for _ in range(len(turns)):
            if len(found) >= most:
                break
            owned = turns.popleft()
            if not owned.is_stopping and self._slices.get(owned.slice) is owned:
                found += owned.hand(most - len(found), now)
                if owned.events:
                    turns.append(owned)
                    continue
            owned.has_turn = False
        return found

    def refill(self, most: int) -> None:
        """Hand the application further items, as `take`; it takes them from `buffer`."""
        self.settle()
        self.buffer.ready.extend(self.take(most))

    # -- finished by the application

    def finish(self, handed: HandedItem) -> None:
        """The application has finished an item. One of a slice that is gone is finished for nothing."""
        if handed.is_done:
            return
        handed.finished_at = self._client.now
        count_finished((handed,))
        if handed.owned.is_stopping:
            self._member.assigned.finished(handed.owned)

    def settle(self) -> bool:
        """Count what the application has finished; returns whether the brokers are to be told of it at once."""
        is_awaited = False
        for owned in count_finished(self.buffer.take_finished()):
            if owned.is_stopping or owned.stream.queue.is_held:
                is_awaited = True
                self._member.assigned.finished(owned)
        return is_awaited

    def recall(self, owned: SliceSubscriber | None = None) -> None:
        """What the application has not taken of a slice, or of all, it is not given any more."""
        for each in count_finished(self.buffer.take_finished()):
            if each is not owned:  # of this one the caller sees to the rest
                self._member.assigned.finished(each)
        self.buffer.take_back(owned)
