"""The way between members of groups and the head of their group: a link, or another head and the tree between the two.

A member asks its own head. For a group of another cluster that head passes on what the member says, and brings the
answers. The head of the group decides as for its own members; slices attach to edges of its cluster.

Rules of the place:
- What goes either way is numbered. A number that is missing ends the way: the member is told to join again, and says
  what it has. So nothing is lost without the member and its group both knowing.
- A member that gets no answer is told so. Its lease counts from what the head of the group has answered, as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import AnswerToMember, FromMember
from plimsoll.core.transport.link import Link

UNREACHABLE: Final = "unreachable"
"""The code for a member whose group's head does not answer; it may ask again."""

STRANGER: Final = "member"
"""The code for a client that is no member of a group, and may join again at once."""

RETRY_BEATS: Final = 0.1
"""When one whose way has ended asks again."""


class GroupLinksHost(Protocol):
    """What the ways of members need of their head."""

    now: float
    name: str
    epoch: int

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class GroupRouter(Protocol):
    def send(self, to: str, message: msg.GroupFor | msg.GroupAnswer) -> bool:
        """Send to another head; False if none can be reached."""


class RemoteLink:
    """A member's way from another head, at the head of its group. `received`, `sent`: the last numbers."""

    def __init__(self, head: str, asked: msg.GroupFor) -> None:
        self.head, self.epoch, self.client, self.identity = head, asked.epoch, asked.client, asked.identity
        self.grant = ClientPermissions(asked.identity, groups=False)
        self.received = self.sent = 0


MemberLink = Link | RemoteLink


@dataclass(slots=True)
class _Way:
    """The way of one of our clients to the head of its group. `waits_since`: for an answer, None if for none."""

    link: Link
    group: str
    head: str
    client: int
    sent: int = 0
    received: int = 0
    waits_since: float | None = None


class GroupLinks(HeadPart):
    """`take`: what becomes of what members of other heads say; set by the groups of this head."""

    def __init__(self, host: GroupLinksHost, router: GroupRouter, beat_seconds: float, answer_seconds: float) -> None:
        self.host, self.router = host, router
        self.beat_seconds, self.answer_seconds = beat_seconds, answer_seconds
        self.take: Callable[[MemberLink, FromMember], None] = lambda link, record: None
        self._ways: dict[tuple[Link, str], _Way] = {}
        self._by_client: dict[int, _Way] = {}
        self._last_client = 0
        self._remote: dict[tuple[str, int, int], RemoteLink] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_heads.add(msg.GroupFor, lambda head, _, asked: self.on_asked(head, asked))
        handlers.of_heads.add(msg.GroupAnswer, lambda head, _, answer: self.on_answer(head, answer))

    def say(self, link: MemberLink, record: AnswerToMember) -> None:
        """Tell a member something, whichever way leads to it."""
        if isinstance(link, RemoteLink):
            link.sent += 1
            self.router.send(link.head, msg.GroupAnswer(link.epoch, link.client, link.sent, record))
        else:
            self.host.say(link, record)

    # -- at the head of a member

    def pass_on(self, link: Link, head: str, record: FromMember) -> None:
        """Take what one of our clients says to the head of its group."""
        way = self._ways.get((link, record.group))
        if isinstance(record, msg.GroupJoin):
            if way is not None:
                self._end(way)
            self._last_client += 1
            way = self._ways[link, record.group] = _Way(link, record.group, head, self._last_client)
            self._by_client[way.client] = way
        if way is None:
            self._refuse(link, record.group, STRANGER, f"join group {record.group!r} first")
            return
        way.sent += 1
        if way.waits_since is None and isinstance(record, msg.GroupJoin | msg.GroupBeat):
            way.waits_since = self.host.now
        asked = msg.GroupFor(self.host.epoch, way.client, way.sent, link.identity, record)
        if not self.router.send(head, asked):
            self._give_up(way, f"{head} cannot be reached from {self.host.name}")

    def on_answer(self, head: str, answer: msg.GroupAnswer) -> None:
        """The head of a group tells a member something; 0 is the number of one that does not know the way."""
        way = self._by_client.get(answer.client) if answer.epoch == self.host.epoch else None
        if way is None or way.head != head:
            return
        way.waits_since = None
        if answer.number == way.received + 1:
            way.received += 1
        elif answer.number:
            self._give_up(way, f"an answer of {head} was lost")
            return
        if isinstance(answer.record, msg.GroupRefused | msg.GroupLeft) or not answer.number:
            self._end(way)
        self.host.say(way.link, answer.record)

    def client_lost(self, link: Link) -> None:
        for way in [way for way in self._ways.values() if way.link is link]:
            self._end(way)

    def expire(self) -> None:
        for way in list(self._ways.values()):
            if way.waits_since is not None and self.host.now > way.waits_since + self.answer_seconds:
                self._give_up(way, f"{way.head} does not answer")

    def _end(self, way: _Way) -> None:
        del self._ways[way.link, way.group], self._by_client[way.client]

    def _give_up(self, way: _Way, why: str) -> None:
        """The member joins again, and says what it has."""
        self._end(way)
        self._refuse(way.link, way.group, UNREACHABLE, why)

    def _refuse(self, link: Link, group: str, code: str, text: str) -> None:
        self.host.say(link, msg.GroupRefused(group, code, text, RETRY_BEATS * self.beat_seconds))

    # -- at the head of a group

    def on_asked(self, head: str, asked: msg.GroupFor) -> None:
        """A member of another head says something."""
        key = (head, asked.epoch, asked.client)
        link = self._remote.get(key)
        if link is None and asked.number == 1 and isinstance(asked.record, msg.GroupJoin):
            link = self._remote[key] = RemoteLink(head, asked)
        if link is None or asked.number != link.received + 1:
            self._remote.pop(key, None)
            text = f"{self.host.name} does not know this member of group {asked.record.group!r} any more"
            refused = msg.GroupRefused(asked.record.group, STRANGER, text, RETRY_BEATS * self.beat_seconds)
            self.router.send(head, msg.GroupAnswer(asked.epoch, asked.client, 0, refused))
            return
        link.received += 1
        self.take(link, asked.record)

    def keep(self, used: set[MemberLink]) -> None:
        """Forget the ways from other heads that no member uses any more."""
        self._remote = {key: link for key, link in self._remote.items() if link in used}
