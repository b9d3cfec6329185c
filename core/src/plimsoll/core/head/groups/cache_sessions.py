"""Sessions in which a slice goes from giver to taker with their caches, as DPSLB 2014, 3.4 has it: `inSession: Cache`.

The giver stops and caches (SLICE_REVOKED, SLICE_CACHING); the taker attaches the slice under its other name, from where
the giver is, and caches as well (SLICE_ASSIGNED, SLICE_CACHING); the giver leaves and sends its cache (SLICE_REVOKED,
SLICE_CACHE, SLICE_RELEASED), which the head passes on part by part, for members have no links to each other; the taker
merges, and goes on (the last SLICE_CACHE).

Rules of the place (tests/exploration/slice_move.py shows each to be needed):
- The taker caches from where the giver is, or what comes between is in neither cache.
- Whatever is in the way of a session ends it: the giver is told to let go as by Deliver, the taker forgets its cache,
  and the slice goes on from the log, behind the giver's last acknowledgement.
- A cache that comes when its session has ended is not merged: the place that comes with it counts alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import AnswerToMember
from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.refused_records import refusal_text

RELAYED_BYTES_AT_MOST: Final = 2 * 1024 * 1024
"""Of a cache that passes through a head. Members stop earlier: `ClientLimits.slice_cache_bytes`."""

Why = Literal["slow", "uncached", "lost"]
"""Why one has gone on by Deliver: it took too long; a member had no cache to send, or none any more, for it had come to
its bound or had a gap; or a member or its link was lost."""


class GroupOfSlices(Protocol):
    """What cache sessions need of their group."""

    name: str
    members: dict[str, MemberEntry]
    slices: list[GroupSlice]

    def next_epoch(self, each: GroupSlice) -> int: ...
    def end_place(self, name: str) -> None: ...
    def say(self, member: MemberEntry, record: AnswerToMember) -> None: ...


@dataclass(slots=True)
class CacheSession:
    """`step`: what the head waits for: that the giver caches, that the taker does, or the giver's cache. `epoch`: under
    which the taker caches. `until`: when the session is given up, in seconds.
    """

    taker: str
    until: float
    step: Literal["giver", "taker", "cache"] = "giver"
    epoch: int = 0
    relayed_bytes: int = 0


class CacheSessions:
    """The sessions of one group, by the number of the slice. `counts`: merged, and given up by reason."""

    def __init__(self, group: GroupOfSlices) -> None:
        self._group = group
        self.under_way: dict[int, CacheSession] = {}
        self.counts: Counter[str] = Counter()

    def begin(self, each: GroupSlice, giver: MemberEntry, taker: MemberEntry, until: float) -> bool:
        """Ask the giver to cache. False if one of the two has no link: they cannot be asked."""
        if giver.link is None or taker.link is None or giver is taker:
            return False
        self.under_way[each.number] = CacheSession(taker.name, until)
        self._group.say(giver, msg.SliceRevoked(self._group.name, each.number, each.epoch, caches=True))
        return True

    def name_of(self, each: GroupSlice) -> str:
        """The name under which a taker attaches the slice: the one that the holder does not use."""
        return slice_name(self._group.name, each.number, 1 - each.side)

    # -- what members say

    def on_caching(self, member: MemberEntry, said: msg.SliceCaching) -> None:
        """The giver has stopped, or the taker is attached."""
        each, session = self._session(said.number)
        if each is None or session is None:
            return
        if session.step == "giver" and each.is_held(member.name, said.epoch):
            taker = self._group.members[session.taker]
            session.step, session.epoch = "taker", self._group.next_epoch(each)
            self._group.say(
                taker,
                msg.SliceAssigned(
                    self._group.name, each.number, session.epoch, said.token, said.marks, each.given_to, 1 - each.side,
                    caches=True,
                ),
            )  # fmt: skip
        elif session.step == "taker" and (session.taker, session.epoch) == (member.name, said.epoch):
            session.step = "cache"
            giver = self._group.members[each.holder]
            self._group.say(giver, msg.SliceRevoked(self._group.name, each.number, each.epoch, caches=True))

    def on_cache(self, member: MemberEntry, part: msg.SliceCache) -> str:
        """Pass a part of the giver's cache on; why not, if it cannot be read. Then the slice moves without caches."""
        each, session = self._session(part.number)
        if each is None or session is None or session.step != "cache" or not each.is_held(member.name, part.epoch):
            return ""
        try:
            for item in part.items:
                msg.decode(msg.cached_item, item)
        except WireError as error:
            self.give_up(each, "uncached")
            return f"a publication of the cache of slice {part.number} cannot be read: {refusal_text(error)}"
        session.relayed_bytes += sum(len(memoryview(item)) for item in part.items)
        if session.relayed_bytes > RELAYED_BYTES_AT_MOST:
            self.give_up(each, "uncached")
            return ""
        taker = self._group.members[session.taker]
        self._group.say(taker, msg.SliceCache(self._group.name, each.number, session.epoch, part.items))
        return ""

    def merged(self, each: GroupSlice, released: msg.SliceReleased) -> CacheSession | None:
        """The giver has left. Returns the session if its cache is with the taker; if not, the session is over."""
        session = self.under_way.get(each.number)
        if session is None:
            return None
        if session.step != "cache" or not released.is_cached or released.place.was_cut_off:
            self.cancel(each, "uncached")
            return None
        self.counts["merged"] += 1
        self.counts["relayed_bytes"] += session.relayed_bytes
        return self.under_way.pop(each.number)

    def taker_released(self, member: MemberEntry, place: msg.SlicePlace) -> bool:
        """Whether a taker has given up caching: its cache was at its bound, or had a gap."""
        each, session = self._session(place.number)
        if each is None or session is None or (session.taker, session.epoch) != (member.name, place.epoch):
            return False
        self.give_up(each, "uncached")
        return True

    # -- the end of a session

    def give_up(self, each: GroupSlice, why: Why) -> None:
        """End a session: its giver lets go as by Deliver."""
        self.cancel(each, why)
        if (giver := self._group.members.get(each.holder)) is not None:
            self._group.say(giver, msg.SliceRevoked(self._group.name, each.number, each.epoch))

    def cancel(self, each: GroupSlice, why: Why) -> None:
        """The taker forgets what it has cached; the giver has let go already, or has gone."""
        session = self.under_way.pop(each.number, None)
        if session is None:
            return
        self.counts[why] += 1
        if (taker := self._group.members.get(session.taker)) is not None and session.epoch:
            self._group.say(taker, msg.SliceRevoked(self._group.name, each.number, session.epoch))
        self._group.end_place(self.name_of(each))

    def member_lost(self, name: str) -> None:
        """A member has gone, or its link has: what was under way there is lost."""
        for number, session in list(self.under_way.items()):
            if name in (session.taker, self._group.slices[number].holder):
                self.give_up(self._group.slices[number], "lost")

    def tick(self, now: float) -> None:
        """Give up what takes too long."""
        for number, session in list(self.under_way.items()):
            if now > session.until:
                self.give_up(self._group.slices[number], "slow")

    def may_attach(self, each: GroupSlice, resume: msg.ResumeUp) -> bool:
        """Whether this is the taker of a session, which attaches the slice beside its giver."""
        session = self.under_way.get(each.number)
        if session is None or session.epoch != resume.epoch[0]:
            return False
        taker = self._group.members.get(session.taker)
        return taker is not None and taker.identity == resume.member

    def left_over(self) -> Iterator[str]:
        """Names of slices that no session uses: an edge that was away may still keep a place for one."""
        for each in self._group.slices:
            if each.number not in self.under_way:
                yield self.name_of(each)

    def _session(self, number: int) -> tuple[GroupSlice | None, CacheSession | None]:
        session = self.under_way.get(number)
        return (None, None) if session is None else (self._group.slices[number], session)
