"""A member of a consumer group: the slices that it has, what its application is given of them, its word to the head.

Rules of the place (tests/exploration/slice_move.py shows each to be needed):
- A slice that is revoked gives the application nothing more; it is released once what the application has is finished.
- A member that has had no answer to a beat for its lease stops by itself: its slices go on elsewhere.
- What was released, or was given up because no answer came, is said again over a new link, until a beat behind it is
  answered: a head that has restarted knows nothing of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from msgspec import Struct

from plimsoll.core.client.caching_slices import CachingSlices
from plimsoll.core.client.events import Failed
from plimsoll.core.client.item_buffer import ItemBuffer
from plimsoll.core.client.slice_subscriber import HandedItem, SliceSubscriber, count_finished, places
from plimsoll.core.client.subscriber import ClientSubscriber, SubscriberHost
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_subscription
from plimsoll.core.transport.link import NEVER, Link

LOAD_SECONDS = 2.0
"""How long the load of a report is measured at least."""

UNKNOWN = "unknown"
"""The code for a group that its head does not know."""

BEAT_PLACES_AT_MOST = 500
"""Slices whose progress one beat has; the others follow with the next."""


class SlicesChanged(Struct, frozen=True):
    """Slices have come to this member, or have gone: `why` is assigned, revoked, lost, over, or resumed.

    Lost: their head has not answered for the lease, or has refused; another member may go on with them. Over: the group
    is declared no longer, and ends once all that the log has of it is processed; resumed: it does not end any more.
    """

    came: tuple[int, ...]
    went: tuple[int, ...]
    why: str


class GroupFailed(Struct, frozen=True):
    """This member is none any more; `code` is for programs, `text` for people."""

    code: str
    text: str


FromHead = (
    msg.GroupJoined | msg.GroupRefused | msg.GroupBeatAnswer | msg.GroupLeft | msg.SliceAssigned | msg.SliceRevoked |
    msg.SliceCache
)  # fmt: skip
GroupEvent = SlicesChanged | GroupFailed
Usage = Callable[[], tuple[float, float]]
"""Processor and memory of this process, 0 to 1 of what it may use."""


class MemberHost(SubscriberHost, Protocol):
    """What a member needs of its client."""

    now: float
    incarnation: int
    subscribers: dict[str, ClientSubscriber]

    @property
    def home_link(self) -> Link | None: ...
    def begin(self, subscriber: ClientSubscriber, /) -> None: ...
    def say(self, link: Link, record: msg.FromClient, /) -> None: ...
    def drop_member(self, member: GroupMember, /) -> None: ...
    def member_ready(self, member: GroupMember, /) -> None: ...


def no_usage() -> tuple[float, float]:
    """For a process that does not measure itself."""
    return 0.0, 0.0


class GroupMember:
    """Made by `Client.group_member`. `definition`: of the group, if this member may make it.

    `over`: why its group ends, empty for one that goes on. `events`: what has happened to it, for the shell. Items are
    taken with `take`, or from `buffer` after `refill`.
    """

    def __init__(
        self, client: MemberHost, group: str, name: str, definition: msg.GroupDefinition | None, usage: Usage
    ) -> None:
        self._client, self.group, self.name, self.definition, self._usage = client, group, name, definition, usage
        self.slices: dict[int, SliceSubscriber] = {}
        self.caching = CachingSlices(client, self)
        self.buffer = ItemBuffer()
        self.events: list[GroupEvent] = []
        self.is_member = self.is_leaving = self.has_left = False
        self.failed: GroupFailed | None = None
        self.last_error = self.head = self.over = ""
        self._released: dict[int, tuple[msg.SlicePlace, int]] = {}
        self._turns: deque[SliceSubscriber] = deque()  # those with items, and some that had some
        self._beat_seconds = self._lease_seconds = 1.0
        self._next_beat = self._join_at = NEVER
        self._answered = 0
        self._beat, self._sent = 0, dict[int, float]()
        self._heard_at = client.now
        self._measured_at = client.now
        self._said: dict[int, msg.SlicePlace] = {}
        self.join()

    # -- for the application

    def set_now(self, now: float) -> None:
        """The time, for calls between rounds."""
        self._client.now = now

    def take(self, most: int = 1) -> list[HandedItem]:
        """The next items, in order per slice, of each slice in its turn; none if the lease is over."""
        now = self._client.now
        if self.slices and now > self._heard_at + self._lease_seconds:
            self._stop("lost")
        found: list[HandedItem] = []
        turns = self._turns
        for _ in range(len(turns)):
            if len(found) >= most:
                break
            owned = turns.popleft()
            if not owned.is_stopping and self.slices.get(owned.slice) is owned:
                found += owned.hand(most - len(found), now)
                if owned.events:
                    turns.append(owned)
                    continue
            owned.has_turn = False
        return found

    @property
    def lease_until(self) -> float:
        """Until when the application may be given what it has not taken yet."""
        return self._heard_at + self._lease_seconds

    def refill(self, most: int) -> None:
        """Hand the application further items, as `take`; it takes them from `buffer`."""
        self.settle()
        self.buffer.ready.extend(self.take(most))

    def settle(self) -> bool:
        """Count what the application has finished; returns whether the brokers are to be told of it at once."""
        is_awaited = False
        for owned in self._count_finished():
            if owned.is_stopping or owned.stream.queue.is_held:
                is_awaited = True
                self._finished(owned)
        return is_awaited

    def _count_finished(self) -> list[SliceSubscriber]:
        """Returns the slices of which the application has finished something."""
        return count_finished(self.buffer.take_finished())

    def _recall(self, owned: SliceSubscriber | None = None) -> None:
        """What the application has not taken of a slice, or of all, it is not given any more."""
        for each in self._count_finished():
            if each is not owned:  # of this one the caller sees to the rest
                self._finished(each)
        self.buffer.take_back(owned)

    @property
    def has_items(self) -> bool:
        """Whether `take` would give something."""
        return any(owned.events and not owned.is_stopping for owned in self.slices.values())

    def finish(self, handed: HandedItem) -> None:
        """The application has finished an item. One of a slice that is gone is finished for nothing."""
        if handed.is_done:
            return
        handed.finished_at = self._client.now
        count_finished((handed,))
        self._finished(handed.owned)

    def _finished(self, owned: SliceSubscriber) -> None:
        """The application has finished something of a slice: perhaps the last that it had of one that is given up."""
        if owned.is_stopping and not owned.handed and self.slices.get(owned.slice) is owned:
            self._stopped(owned)

    def leave(self) -> None:
        """Give up all slices; `has_left` once that has happened."""
        self.is_leaving = True
        link = self._client.home_link
        if link is not None and self.is_member:
            self._client.say(link, msg.GroupLeave(self.group))
        elif not self.slices:
            self._end()

    def close(self) -> None:
        """End at once: another member gets the unacknowledged publications when the head has noticed."""
        self._recall()
        if self.is_member:
            self._say_beat()  # what is acknowledged does not come again
        for owned in list(self.slices.values()):
            self._let_go(owned)
        self.caching.forget_all()
        self._end()

    def _end(self) -> None:
        self.has_left, self.is_member = True, False
        self._next_beat = self._join_at = NEVER
        self._client.drop_member(self)
        self._client.member_ready(self)

    @property
    def is_settled(self) -> bool:
        """Whether it is a member, and what it has been given counts; with more members than slices it has none."""
        return self.is_member and self._answered > 0 and all(each.is_acknowledged for each in self.slices.values())

    def statistics(self) -> dict[str, Any]:
        """Its slices, what waits, and whether the head knows it."""
        return {
            "member": self.is_member,
            "slices": sorted(self.slices),
            "backlog": sum(owned.backlog for owned in self.slices.values()),
            "over": self.over,
            "last_error": self.last_error,
            "since_answer_seconds": round(self._client.now - self._heard_at, 3),
        }

    # -- the head

    def join(self) -> None:
        """Ask to be a member, or say over a new link what it has."""
        self._join_at = NEVER
        link = self._client.home_link
        if link is None or self.has_left or self.failed is not None:
            return
        if self._client.now > self.lease_until:
            self._stop("lost")  # it was paused for longer, and others may have gone on
            self._join_at = NEVER
        self._sent.clear()
        self.settle()
        self.caching.forget_all()
        for owned in self.slices.values():
            owned.go_on()  # what was asked for a cache is void: its head asks again
        known = [*places(self.slices.values()), *(place for place, _ in self._released.values())]
        asks_for = None if self.over else self.definition  # a group that ends is not made again for want of its end
        joining = msg.GroupJoin(self.group, self.name, self._client.incarnation, asks_for, known)
        self._client.say(link, joining)
        self._sent[0] = self._client.now

    def on_record(self, record: FromHead) -> None:
        """A message of the head of the group."""
        match record:
            case msg.GroupJoined():
                self.on_joined(record)
            case msg.GroupRefused():
                self.on_refused(record)
            case msg.GroupBeatAnswer():
                self.on_answer(record)
            case msg.GroupLeft():
                self.on_left()
            case msg.SliceAssigned():
                self.on_assigned(record)
            case msg.SliceRevoked():
                self.on_revoked(record)
            case msg.SliceCache():
                self.on_cache(record)
            case _:
                assert_never(record)

    def on_joined(self, joined: msg.GroupJoined) -> None:
        self.is_member, self.definition, self.head = True, joined.definition, joined.head
        self._beat_seconds, self._lease_seconds = joined.beat_seconds, joined.lease_seconds
        self._heard_at = max(self._heard_at, self._sent.pop(0, self._heard_at))
        self._next_beat = self._client.now
        if self.is_leaving:
            self.leave()

    def on_refused(self, refused: msg.GroupRefused) -> None:
        """Ask again later, or never."""
        self.is_member = False
        self._next_beat = NEVER
        if self.is_leaving and not self.slices:
            self._end()
        elif refused.retry_seconds > 0 and not (self.over and refused.code == UNKNOWN):
            self._join_at = self._client.now + refused.retry_seconds
        else:
            self._stop("over" if self.over else "lost")
            self.failed = GroupFailed(refused.code, refused.text)
            self._tell(self.failed)
            self._end()

    def on_assigned(self, assigned: msg.SliceAssigned) -> None:
        known = self.slices.get(assigned.number)
        if known is not None and known.assignment >= assigned.epoch:
            return
        if known is not None:  # its head takes it to have lost the slice
            self._let_go(known)
            self._tell(SlicesChanged((), (assigned.number,), "lost"))
        self.caching.forget(assigned.number)
        self._released.pop(assigned.number, None)
        owned = SliceSubscriber(self._client, self, assigned)
        self._client.subscribers[owned.name] = owned
        definition = self.definition
        owned.subscribe(slice_subscription(self.group, definition.filter if definition else "", assigned.number))
        self._client.begin(owned)
        if assigned.caches:
            self.caching.add(owned)
        else:
            self._have(owned)

    def _have(self, owned: SliceSubscriber) -> None:
        """The application is given what comes of this slice from here on."""
        self.slices[owned.slice] = owned
        self.items_ready(owned)
        self._tell(SlicesChanged((owned.slice,), (), "assigned"))

    def on_cache(self, part: msg.SliceCache) -> None:
        """A part of the cache of a giver; behind the last one the slice is this member's."""
        if (owned := self.caching.on_cache(part)) is not None:
            self._have(owned)

    def on_revoked(self, revoked: msg.SliceRevoked) -> None:
        if self.caching.revoked(revoked):
            return
        owned = self.slices.get(revoked.number)
        if owned is None or owned.assignment != revoked.epoch:
            place, _ = self._released.get(revoked.number, (None, 0))
            link = self._client.home_link
            if place is not None and place.epoch == revoked.epoch and link is not None:
                self._client.say(link, msg.SliceReleased(self.group, place))
            return
        is_asked_again = revoked.caches and owned.may_send_cache
        owned.is_stopping, owned.may_send_cache = True, revoked.caches
        if not revoked.caches:
            owned.pause()
        self._recall(owned)
        if owned.handed:
            return
        if is_asked_again:
            self._release(owned, is_cached=self.caching.send(owned))
        else:
            self._stopped(owned)

    def _stopped(self, owned: SliceSubscriber) -> None:
        """The application has nothing of it in hand, and gets nothing more."""
        if not (owned.may_send_cache and self.caching.begin_to_give(owned)):
            self._release(owned)

    def on_answer(self, answer: msg.GroupBeatAnswer) -> None:
        """The head had a beat: it counts from when that was sent."""
        if (sent := self._sent.pop(answer.number, None)) is not None:
            self._heard_at = max(self._heard_at, sent)
        self._answered = answer.number
        if bool(answer.over) != bool(self.over):
            self._tell(SlicesChanged((), (), "over" if answer.over else "resumed"))
        self.over = answer.over
        self._released = {n: known for n, known in self._released.items() if known[1] >= answer.number}

    def on_left(self) -> None:
        self._end()

    # -- slices

    def _release(self, owned: SliceSubscriber, *, is_cached: bool = False) -> None:
        """Say where another member goes on, ahead of anything else about this slice."""
        place = owned.place(is_released=True)
        self._let_go(owned)
        self._released[owned.slice] = place, self._beat
        if (link := self._client.home_link) is not None:
            self._client.say(link, msg.SliceReleased(self.group, place, is_cached))
        self._tell(SlicesChanged((), (owned.slice,), "revoked"))

    def _let_go(self, owned: SliceSubscriber) -> None:
        if self.slices.get(owned.slice) is owned:
            del self.slices[owned.slice]
        self._said.pop(owned.slice, None)
        self.buffer.take_back(owned)
        owned.drop()
        owned.close(withdraw=False)

    def slice_failed(self, owned: SliceSubscriber, failed: Failed) -> None:
        """The brokers refuse it: it is another member's, or will be."""
        self.caching.give_up(owned)
        if self.slices.get(owned.slice) is owned:
            del self.slices[owned.slice]
            self._said.pop(owned.slice, None)
            self._recall(owned)
            owned.events.clear()
            self._tell(SlicesChanged((), (owned.slice,), "lost"))
            self.last_error = f"slice {owned.slice}: {failed.code}: {failed.text}"
            self._join_at = self._client.now + self._beat_seconds  # the head decides again which member has it

    def slice_attached(self, owned: SliceSubscriber) -> None:
        """An edge serves it: a taker says from where on it caches."""
        self.caching.attached(owned)

    def items_ready(self, owned: SliceSubscriber) -> None:
        """This slice has items; in its turn it is asked for them."""
        if not owned.has_turn:
            owned.has_turn = True
            self._turns.append(owned)
        self._client.member_ready(self)

    def _stop(self, why: str) -> None:
        """Give the application nothing more."""
        self._recall()
        went = tuple(sorted(self.slices))
        self.caching.forget_all()
        for owned in list(self.slices.values()):
            self._released[owned.slice] = owned.place(is_released=True, was_cut_off=True), self._beat
            self._let_go(owned)
        if went:
            self._tell(SlicesChanged((), went, why))
        if self.is_member:
            self.is_member = False
            self._next_beat, self._join_at = NEVER, self._client.now

    def _tell(self, event: GroupEvent) -> None:
        self.events.append(event)
        self._client.member_ready(self)

    # -- time

    def on_tick(self) -> None:
        now = self._client.now
        if self.slices and now > self._heard_at + self._lease_seconds:
            self._stop("lost")
        if now >= self._join_at:
            self.join()
        for owned in self.caching.beyond_bounds(self.slices.values()):
            self._release(owned)
        if self.is_member and now >= self._next_beat:
            self._next_beat = now + self._beat_seconds
            self._say_beat()

    def wake_at(self) -> float:
        lease = self._heard_at + self._lease_seconds if self.slices else NEVER
        return min(self._next_beat, self._join_at, lease + 0.001)

    def _say_beat(self) -> None:
        link = self._client.home_link
        if link is None:
            return
        self.settle()
        self._beat += 1
        self._sent[self._beat] = self._client.now
        while len(self._sent) > 64:
            del self._sent[next(iter(self._sent))]
        changed = [place for each in self.slices.values() if (place := each.place()) != self._said.get(each.slice)]
        changed = changed[:BEAT_PLACES_AT_MOST]
        self._said.update((place.number, place) for place in changed)
        self._client.say(link, msg.GroupBeat(self.group, self._beat, changed, self._load()))

    def _load(self) -> msg.MemberLoad | None:
        seconds = self._client.now - self._measured_at
        if seconds < LOAD_SECONDS * self._beat_seconds:
            return None
        self._measured_at = self._client.now
        cpu, memory = self._usage()
        return msg.MemberLoad(seconds, cpu, memory, [_report(each, seconds) for each in self.slices.values()])


def _report(owned: SliceSubscriber, seconds: float) -> msg.SliceReport:
    finished, busy = owned.finished, owned.busy_seconds
    owned.finished, owned.busy_seconds = 0, 0.0
    return msg.SliceReport(owned.slice, finished / seconds, busy / finished if finished else 0.0, owned.backlog)
