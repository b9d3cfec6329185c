"""One attachment of a subscriber to an edge, and the link that carries many of them.

An attachment has a number that is never used again: what still comes for an older one is of no concern. A subscriber
has one attachment, or two while it is handed over; only the current one moves its place in the stream.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from plimsoll.core.link import Link

if TYPE_CHECKING:
    from plimsoll.core.client.subscriber import Subscriber


class State(Enum):
    """`OPENING`: the link is not open yet. `RESUMING`: the edge was asked. `LIVE`: it has said where it begins."""

    OPENING = "opening"
    RESUMING = "resuming"
    LIVE = "live"


class Attachment:
    """A subscriber at an edge."""

    __slots__ = ("id", "paused", "port", "session", "state", "stream", "subscriber")

    def __init__(self, attachment_id: int, subscriber: Subscriber, port: Port, session: str | None) -> None:
        self.id, self.subscriber, self.port, self.session = attachment_id, subscriber, port, session
        self.state = State.OPENING
        self.stream = ("", 0)
        self.paused = False


class Port:
    """A client's link to an edge. `peer` is never used again: nothing for an older connection reaches a new one."""

    __slots__ = ("attachments", "edge", "endpoint", "idle_since", "link", "peer", "public_key")

    def __init__(self, edge: str, endpoint: str, public_key: str, peer: str, link: Link) -> None:
        self.edge, self.endpoint, self.public_key, self.peer, self.link = edge, endpoint, public_key, peer, link
        self.attachments: dict[int, Attachment] = {}
        self.idle_since = float("inf")
