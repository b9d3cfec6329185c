"""What a head tells clients that publish: the groups that it stamps for, so that they stamp by themselves.

They are told when they open their first publisher, and again when groups come, go or are defined otherwise: of a change
at once, of many once a second, since each notice has all groups. Until then the head stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.transport.link import NEVER, Link

GROUPS_AT_MOST: Final = 256
TEXT_AT_MOST: Final = 256 * 1024
"""Characters of their filters together. For the groups beyond, the head alone stamps."""
NOTICE_SECONDS: Final = 1.0


class NoticeHost(Protocol):
    """What they need of their head."""

    now: float

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class FunctionNotices:
    """`version`: rises with each change of what is told."""

    def __init__(self, host: NoticeHost) -> None:
        self.host, self.version = host, 0
        self._record = msg.GroupFunctions([])
        self._told: dict[Link, int] = {}
        self._last_said = 0
        self._next_at = 0.0  # a time: the shell computes with it

    def change(self, definitions: Mapping[str, GroupDefinition]) -> None:
        """These are the groups from here on."""
        told, room = list[msg.GroupFunction](), TEXT_AT_MOST
        for name, definition in sorted(definitions.items())[:GROUPS_AT_MOST]:
            room -= len(definition.filter)
            if room >= 0:
                told.append(msg.GroupFunction(name, definition))
        self._record = msg.GroupFunctions(told)
        self.version += 1

    def tell(self, link: Link) -> None:
        """Tell a client that publishes, if it does not know; it need not be told that there are no groups."""
        if self._told.get(link, 0) != self.version and (self._record.groups or link in self._told):
            self.host.say(link, self._record)
        self._told[link] = self.version

    def lost(self, link: Link) -> None:
        """A client is gone."""
        self._told.pop(link, None)

    def tell_all(self, links: Callable[[], Iterable[Link]]) -> None:
        """After changes, tell all clients that publish. `links` looks at all publishers: only then."""
        if self.host.now < self.wake_at():
            return
        self._last_said, self._next_at = self.version, self.host.now + NOTICE_SECONDS
        for link in links():
            self.tell(link)

    def wake_at(self) -> float:
        """When clients are to be told of what has changed."""
        return NEVER if self._last_said == self.version else self._next_at
