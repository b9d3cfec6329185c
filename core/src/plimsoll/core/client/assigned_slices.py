"""Slices that a member is assigned: how they come, how they are released or lost, and what is said of them again.

Rules of the place (tests/exploration/slice_move.py shows each to be needed):
- A slice that is revoked is released once what the application has of it is finished.
- What was released, or was given up because no answer came, is said again over a new link, until a beat behind it is
  answered: a head that has restarted knows nothing of it.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from plimsoll.core.client.caching_slices import CachingSlices
from plimsoll.core.client.group_beats import GroupBeats
from plimsoll.core.client.group_items import GroupItems
from plimsoll.core.client.slice_subscriber import SliceOwner, SliceSubscriber, places
from plimsoll.core.client.subscriber import ClientSubscriber, SubscriberHost
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_subscription
from plimsoll.core.transport.link import Link


class SlicesChanged(Struct, frozen=True):
    """Slices have come to this member, or have gone: `why` is assigned, revoked, lost, over, or resumed.

    Lost: their head has not answered for the lease, or has refused; another member may go on with them. Over: the group
    is declared no longer, and ends once all that the log has of it is processed; resumed: it does not end any more.
    """

    came: tuple[int, ...]
    went: tuple[int, ...]
    why: str


class SlicesHost(SubscriberHost, Protocol):
    """What they need of the client."""

    subscribers: dict[str, ClientSubscriber]

    @property
    def home_link(self) -> Link | None: ...
    def begin(self, subscriber: ClientSubscriber, /) -> None: ...
    def say(self, link: Link, record: msg.FromClient, /) -> None: ...


class AssignedMember(SliceOwner, Protocol):
    """The member that has them."""

    definition: msg.GroupDefinition | None
    slices: dict[int, SliceSubscriber]
    beats: GroupBeats

    @property
    def items(self) -> GroupItems: ...
    @property
    def caching(self) -> CachingSlices: ...
    def tell(self, event: SlicesChanged, /) -> None: ...


class AssignedSlices:
    """Puts slices into the member's `slices`, and takes them out."""

    def __init__(self, client: SlicesHost, member: AssignedMember) -> None:
        self._client, self._member = client, member
        self._slices, self._beats = member.slices, member.beats
        self._items, self._caching = member.items, member.caching
        self._released: dict[int, tuple[msg.SlicePlace, int]] = {}  # behind which beat

    # -- they come

    def on_assigned(self, assigned: msg.SliceAssigned) -> None:
        member, known = self._member, self._slices.get(assigned.number)
        if known is not None and known.assignment >= assigned.epoch:
            return
        if known is not None:  # its head takes it to have lost the slice
            self.let_go(known)
            member.tell(SlicesChanged((), (assigned.number,), "lost"))
        self._caching.forget(assigned.number)
        self._released.pop(assigned.number, None)
        owned = SliceSubscriber(self._client, member, assigned)
        self._client.subscribers[owned.name] = owned
        definition = member.definition
        owned.subscribe(slice_subscription(member.group, definition.filter if definition else "", assigned.number))
        self._client.begin(owned)
        if assigned.caches:
            self._caching.add(owned)
        else:
            self._have(owned)

    def on_cache(self, part: msg.SliceCache) -> None:
        """A part of the cache of a giver; behind the last one the slice is this member's."""
        if (owned := self._caching.on_cache(part)) is not None:
            self._have(owned)

    def _have(self, owned: SliceSubscriber) -> None:
        """The application is given what comes of this slice from here on."""
        self._slices[owned.slice] = owned
        self._items.ready(owned)
        self._member.tell(SlicesChanged((owned.slice,), (), "assigned"))

    # -- they are revoked

    def on_revoked(self, revoked: msg.SliceRevoked) -> None:
        if self._caching.revoked(revoked):
            return
        owned = self._slices.get(revoked.number)
        if owned is None or owned.assignment != revoked.epoch:
            place, _ = self._released.get(revoked.number, (None, 0))
            link = self._client.home_link
            if place is not None and place.epoch == revoked.epoch and link is not None:
                self._client.say(link, msg.SliceReleased(self._member.group, place))
            return
        is_asked_again = revoked.caches and owned.may_send_cache
        owned.is_stopping, owned.may_send_cache = True, revoked.caches
        if not revoked.caches:
            owned.pause()
        self._items.recall(owned)
        if owned.handed:
            return
        if is_asked_again:
            self._release(owned, is_cached=self._caching.send(owned))
        else:
            self._stopped(owned)

    def finished(self, owned: SliceSubscriber) -> None:
        """The application has finished something of a slice: perhaps the last that it had of one that is given up."""
        if owned.is_stopping and not owned.handed and self._slices.get(owned.slice) is owned:
            self._stopped(owned)

    def _stopped(self, owned: SliceSubscriber) -> None:
        """The application has nothing of it in hand, and gets nothing more."""
        if not (owned.may_send_cache and self._caching.begin_to_give(owned)):
            self._release(owned)

    def _release(self, owned: SliceSubscriber, *, is_cached: bool = False) -> None:
        """Say where another member goes on, ahead of anything else about this slice."""
        place = owned.place(is_released=True)
        self.let_go(owned)
        self._released[owned.slice] = place, self._beats.number
        if (link := self._client.home_link) is not None:
            self._client.say(link, msg.SliceReleased(self._member.group, place, is_cached))
        self._member.tell(SlicesChanged((), (owned.slice,), "revoked"))

    def release_beyond_bounds(self) -> None:
        """Slices whose caches are above their bounds go on from the log."""
        for owned in self._caching.beyond_bounds(self._slices.values()):
            self._release(owned)

    # -- they are lost

    def let_go(self, owned: SliceSubscriber) -> None:
        """Give nothing more of a slice, and take nothing more for it."""
        self._take_out(owned)
        self._items.buffer.take_back(owned)
        owned.drop()
        owned.close(withdraw=False)

    def _take_out(self, owned: SliceSubscriber) -> None:
        if self._slices.get(owned.slice) is owned:
            del self._slices[owned.slice]
        self._beats.forget(owned.slice)

    def lose(self, owned: SliceSubscriber) -> bool:
        """The brokers refuse this slice; returns whether the member had it."""
        self._caching.give_up(owned)
        if self._slices.get(owned.slice) is not owned:
            return False
        self._take_out(owned)
        self._items.recall(owned)
        owned.events.clear()
        self._member.tell(SlicesChanged((), (owned.slice,), "lost"))
        return True

    def lose_all(self, why: str) -> None:
        """No answer has come, or the head refuses the member: other members may go on."""
        self._items.recall()
        went = tuple(sorted(self._slices))
        self._caching.forget_all()
        for owned in list(self._slices.values()):
            self._released[owned.slice] = owned.place(is_released=True, was_cut_off=True), self._beats.number
            self.let_go(owned)
        if went:
            self._member.tell(SlicesChanged((), went, why))

    # -- what the head is told of them

    def begin_again(self) -> list[msg.SlicePlace]:
        """Over a new link: what was asked for a cache is void. Returns all places to say, the released ones as well."""
        self._items.settle()
        self._caching.forget_all()
        for owned in self._slices.values():
            owned.go_on()  # its head asks again
        return [*places(self._slices.values()), *(place for place, _ in self._released.values())]

    def on_joined(self) -> None:
        """What was given up while GROUP_JOIN was on its way is said again: there it was said to be this member's."""
        if (link := self._client.home_link) is not None:
            for place, _ in self._released.values():
                self._client.say(link, msg.SliceReleased(self._member.group, place))

    def on_answer(self, number: int) -> None:
        """The head had this beat: what was released before it need not be said again."""
        self._released = {n: known for n, known in self._released.items() if known[1] >= number}
