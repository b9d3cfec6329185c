"""One attachment of a subscriber to an edge, and the link that carries many of them.

An attachment has a number that is never used again: what still comes for an older one is of no concern. A subscriber
has one attachment, or two while it is handed over; only the current one moves its place in the stream.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from plimsoll.core.link import NEVER, Link

if TYPE_CHECKING:
    from plimsoll.core.client.subscriber import Subscriber


class State(Enum):
    """How far an attachment is.

    `OPENING`: the link is not open yet. `RESUMING`: the edge was asked. `NEXT`: the target of a hand-over was asked,
    and delivers nothing before GO. `LIVE`: its stream is the subscriber's.
    """

    OPENING = "opening"
    RESUMING = "resuming"
    NEXT = "next"
    LIVE = "live"


class Attachment:
    """A subscriber at an edge. `acked`: the version that the edge has acknowledged last, but for heads `unreached`.

    `take` deals with what the stream has for it.
    """

    __slots__ = ("acked", "id", "paused", "port", "state", "stream", "subscriber", "take", "unreached")

    def __init__(self, attachment_id: int, subscriber: Subscriber, port: Port) -> None:
        self.id, self.subscriber, self.port = attachment_id, subscriber, port
        self.state = State.OPENING
        self.stream = ("", 0)
        self.paused = False
        self.acked = 0
        self.unreached: tuple[str, ...] = ()
        self.take = subscriber.taking

    @property
    def is_asked(self) -> bool:
        """Whether the edge has been told of it: then it must be told of its end, too."""
        return self.state is not State.OPENING


class Port:
    """A client's link to an edge. `peer` is never used again: nothing for an older connection reaches a new one.

    `away_since`: when the shell first saw no connection for it; the link may well be kept when there is one again.
    """

    __slots__ = ("attachments", "away_since", "edge", "endpoint", "idle_since", "link", "peer", "public_key")

    def __init__(self, edge: str, endpoint: str, public_key: str, peer: str, link: Link) -> None:
        self.edge, self.endpoint, self.public_key, self.peer, self.link = edge, endpoint, public_key, peer, link
        self.attachments: dict[int, Attachment] = {}
        self.idle_since = self.away_since = NEVER
