"""A member of a consumer group: how it joins and leaves, and what its head says to it.

Rule of the place (tests/exploration/slice_move.py shows it to be needed): a member that has had no answer to a beat for
its lease stops by itself, for its slices go on elsewhere.
"""

from __future__ import annotations

from typing import Any, Protocol, assert_never

from msgspec import Struct

from plimsoll.core.client.assigned_slices import AssignedSlices, SlicesChanged, SlicesHost
from plimsoll.core.client.caching_slices import CachingSlices
from plimsoll.core.client.events import Failed
from plimsoll.core.client.group_beats import GroupBeats, Usage
from plimsoll.core.client.group_items import GroupItems
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER

UNKNOWN = "unknown"
"""The code for a group that its head does not know."""


class GroupFailed(Struct, frozen=True):
    """This member is none any more; `code` is for programs, `text` for people."""

    code: str
    text: str


FromHead = (
    msg.GroupJoined | msg.GroupRefused | msg.GroupBeatAnswer | msg.GroupLeft | msg.SliceAssigned | msg.SliceRevoked |
    msg.SliceCache
)  # fmt: skip
GroupEvent = SlicesChanged | GroupFailed


class MemberHost(SlicesHost, Protocol):
    """What a member needs of its client."""

    now: float
    incarnation: int

    def drop_member(self, member: GroupMember, /) -> None: ...
    def member_ready(self, member: GroupMember, /) -> None: ...


class GroupMember:
    """Made by `Client.group_member`. `definition`: of the group, if this member may make it.

    `slices`: those that it has, by number; `assigned` changes them. `items`: what its application is given of them.
    `over`: why its group ends, empty for one that goes on. `events`: what has happened to it, for the shell.
    """

    def __init__(
        self, client: MemberHost, group: str, name: str, definition: msg.GroupDefinition | None, usage: Usage
    ) -> None:
        self._client, self.group, self.name, self.definition = client, group, name, definition
        self.slices: dict[int, SliceSubscriber] = {}
        self.events: list[GroupEvent] = []
        self.is_member = self.is_leaving = self.has_left = False
        self.failed: GroupFailed | None = None
        self.last_error = self.head = self.over = ""
        self.beats = GroupBeats(client, self, usage)
        self.items = GroupItems(client, self)
        self.caching = CachingSlices(client, self)
        self.assigned = AssignedSlices(client, self)
        self._join_at = NEVER
        self.join()

    # -- for the application

    def set_now(self, now: float) -> None:
        """The time, for calls between rounds."""
        self._client.now = now

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
        self.items.recall()
        if self.is_member:
            self._say_beat()  # what is acknowledged does not come again
        for owned in list(self.slices.values()):
            self.assigned.let_go(owned)
        self.caching.forget_all()
        self._end()

    def _end(self) -> None:
        self.has_left, self.is_member = True, False
        self._join_at = NEVER
        self.beats.stop()
        self._client.drop_member(self)
        self._client.member_ready(self)

    @property
    def is_settled(self) -> bool:
        """Whether it is a member, and what it has been given counts; with more members than slices it has none."""
        return self.is_member and self.beats.answered > 0 and all(each.is_acknowledged for each in self.slices.values())

    def statistics(self) -> dict[str, Any]:
        """Its slices, what waits, and whether the head knows it."""
        return {
            "member": self.is_member,
            "slices": sorted(self.slices),
            "backlog": sum(owned.backlog for owned in self.slices.values()),
            "over": self.over,
            "last_error": self.last_error,
            "since_answer_seconds": round(self._client.now - self.beats.heard_at, 3),
        }

    # -- the head

    def join(self) -> None:
        """Ask to be a member, or say over a new link what it has."""
        self._join_at = NEVER
        link = self._client.home_link
        if link is None or self.has_left or self.failed is not None:
            return
        if self._client.now > self.beats.lease_until:
            self.stop("lost")  # it was paused for longer, and others may have gone on
            self._join_at = NEVER
        known = self.assigned.begin_again()
        asks_for = None if self.over else self.definition  # a group that ends is not made again for want of its end
        joining = msg.GroupJoin(self.group, self.name, self._client.incarnation, asks_for, known)
        self._client.say(link, joining)
        self.beats.join_sent()

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
                self._end()
            case msg.SliceAssigned():
                self.assigned.on_assigned(record)
            case msg.SliceRevoked():
                self.assigned.on_revoked(record)
            case msg.SliceCache():
                self.assigned.on_cache(record)
            case _:
                assert_never(record)

    def on_joined(self, joined: msg.GroupJoined) -> None:
        self.is_member, self.definition, self.head = True, joined.definition, joined.head
        self.beats.begin(joined)
        self.assigned.on_joined()
        if self.is_leaving:
            self.leave()

    def on_refused(self, refused: msg.GroupRefused) -> None:
        """Ask again later, or never."""
        self.is_member = False
        self.beats.stop()
        if self.is_leaving and not self.slices:
            self._end()
        elif refused.retry_seconds > 0 and not (self.over and refused.code == UNKNOWN):
            self._join_at = self._client.now + refused.retry_seconds
        else:
            self.fail(refused.code, refused.text)

    def fail(self, code: str, text: str) -> None:
        """The end of this member."""
        self.stop("over" if self.over else "lost")
        self.failed = GroupFailed(code, text)
        self.tell(self.failed)
        self._end()

    def on_answer(self, answer: msg.GroupBeatAnswer) -> None:
        """The head had a beat."""
        self.beats.on_answer(answer.number)
        if bool(answer.over) != bool(self.over):
            self.tell(SlicesChanged((), (), "over" if answer.over else "resumed"))
        self.over = answer.over
        self.assigned.on_answer(answer.number)

    def slice_failed(self, owned: SliceSubscriber, failed: Failed) -> None:
        """The brokers refuse it: it is another member's, or will be."""
        if self.assigned.lose(owned):
            self.last_error = f"slice {owned.slice}: {failed.code}: {failed.text}"
            self._join_at = self._client.now + self.beats.seconds  # the head decides again which member has it

    def stop(self, why: str) -> None:
        """Give the application nothing more, and ask to be a member again."""
        self.assigned.lose_all(why)
        if self.is_member:
            self.is_member = False
            self.beats.stop()
            self._join_at = self._client.now

    def tell(self, event: GroupEvent) -> None:
        """An event for the shell."""
        self.events.append(event)
        self._client.member_ready(self)

    # -- time

    def on_tick(self) -> None:
        now = self._client.now
        if self.slices and now > self.beats.lease_until:
            self.stop("lost")
        if now >= self._join_at:
            self.join()
        self.assigned.release_beyond_bounds()
        if self.is_member and now >= self.beats.due_at:
            self._say_beat()

    def wake_at(self) -> float:
        return min(self.beats.wake_at(), self._join_at)

    def _say_beat(self) -> None:
        self.beats.due_at = self._client.now + self.beats.seconds
        if (link := self._client.home_link) is not None:
            self.items.settle()
            self.beats.say(link)
