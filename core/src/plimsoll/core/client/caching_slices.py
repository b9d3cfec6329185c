"""Slices of a member that are in a session in which both sides cache: those that it takes, and what it gives of others.

Rules of the place (tests/exploration/slice_move.py):
- A taker says that it caches once an edge serves it, from the place where its giver was; its application is given
  nothing before the giver's cache is there.
- Over a new link nothing goes on: a taker forgets, a giver gives its application what it has, until it is asked again.
- A cache above its bounds, or with a gap, is no cache: the slice goes on from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from plimsoll.core.client.events import GapNotice
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.slice_cache import cache_parts
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link


class CachingHost(Protocol):
    """What they need of the client."""

    now: float
    limits: ClientLimits

    @property
    def home_link(self) -> Link | None: ...
    def say(self, link: Link, record: msg.FromClient, /) -> None: ...


class CachingMember(Protocol):
    """The member that they are of."""

    group: str


class CachingSlices:
    """`taken`: slices whose giver has not sent all of its cache yet, by number."""

    def __init__(self, client: CachingHost, member: CachingMember) -> None:
        self._client, self._member = client, member
        self.taken: dict[int, SliceSubscriber] = {}

    # -- a taker

    def add(self, owned: SliceSubscriber) -> None:
        self.taken[owned.slice] = owned

    def attached(self, owned: SliceSubscriber) -> None:
        """An edge serves a slice that is taken."""
        token = owned.stream.token
        if self.taken.get(owned.slice) is owned and token is not None:
            self._say(msg.SliceCaching(self._member.group, owned.slice, owned.assignment, token, owned.stream.marks()))

    def on_cache(self, part: msg.SliceCache) -> SliceSubscriber | None:
        """Take a part of a giver's cache; returns the slice once it is this member's."""
        owned = self.taken.get(part.number)
        if owned is None or owned.assignment != part.epoch or owned.cache is None:
            return None
        try:
            owned.cache.take(part, self._client.now)
        except WireError:
            self.give_up(owned)
            raise
        if part.place is None:
            return None
        del self.taken[part.number]
        owned.merge(part.place)
        return owned

    def revoked(self, revoked: msg.SliceRevoked) -> bool:
        """Whether this is about a slice that is taken: the session is over."""
        owned = self.taken.get(revoked.number)
        if owned is None or owned.assignment != revoked.epoch:
            return False
        self.forget(revoked.number)
        return True

    def give_up(self, owned: SliceSubscriber) -> None:
        """Tell the head that this slice cannot be cached any more."""
        if self.taken.get(owned.slice) is owned:
            self.forget(owned.slice)
            place = msg.SlicePlace(owned.slice, owned.assignment, None, [], is_released=True)
            self._say(msg.SliceReleased(self._member.group, place))

    def forget(self, number: int) -> None:
        """Let a slice that is taken go, with what it has cached."""
        if (owned := self.taken.pop(number, None)) is not None:
            owned.drop()
            owned.close()

    def forget_all(self) -> None:
        for number in list(self.taken):
            self.forget(number)

    # -- a giver

    def begin_to_give(self, owned: SliceSubscriber) -> bool:
        """Say that a slice is cached here; False if it cannot be."""
        token = owned.stream.token
        if not owned.is_cacheable or token is None:
            return False
        self._say(msg.SliceCaching(self._member.group, owned.slice, owned.assignment, token, owned.stream.marks()))
        return True

    def send(self, owned: SliceSubscriber) -> bool:
        """Send the cache of a slice; False if it cannot be sent."""
        if not owned.is_cacheable or self._client.home_link is None:
            return False
        for part in cache_parts(owned.cached_items()):
            self._say(msg.SliceCache(self._member.group, owned.slice, owned.assignment, part))
        return True

    # -- bounds

    def beyond_bounds(self, given: Iterable[SliceSubscriber]) -> list[SliceSubscriber]:
        """Give up what is taken and above its bounds; returns slices that are given, and are so."""
        for owned in [each for each in self.taken.values() if not _is_sound(each)]:
            self.give_up(owned)
        return [each for each in given if each.may_send_cache and not each.handed and not each.is_cacheable]

    def _say(self, record: msg.SliceCaching | msg.SliceCache | msg.SliceReleased) -> None:
        if (link := self._client.home_link) is not None:
            self._client.say(link, record)


def _is_sound(owned: SliceSubscriber) -> bool:
    """Whether a taker may go on caching: within the bounds, without a gap."""
    has_gap = any(isinstance(event, GapNotice) for event in owned.events)
    return not has_gap and owned.is_within_bounds
