"""One attachment of a subscriber to an edge, the link that carries many of them, and a hand-over between two.

The number of an attachment is never used again: records for an older one are ignored. A subscriber has one attachment,
or two while it is handed over; only the current one moves its place in the stream.

The subscriber's type is a parameter (`S`) here, so that there is no import circle.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link

S = TypeVar("S")


class ClientAttachmentState(Enum):
    """The states of an attachment.

    `OPENING`: the link is not open yet. `RESUMING`: RESUME was sent. `NEXT`: the target of a hand-over was sent ATTACH,
    and delivers nothing before GO. `LIVE`: its stream is the subscriber's.
    """

    OPENING = "opening"
    RESUMING = "resuming"
    NEXT = "next"
    LIVE = "live"


class ClientAttachment(Generic[S]):
    """A subscriber at an edge. `acked`: the last version that the edge has acknowledged, except for `unreached` heads.

    `take` handles the deliveries and gaps of its stream.
    """

    __slots__ = ("acked", "id", "paused", "port", "state", "stream", "subscriber", "take", "unreached")

    def __init__(self, attachment_id: int, subscriber: S, port: EdgePort[S], take: Take[S]) -> None:
        self.id, self.subscriber, self.port, self.take = attachment_id, subscriber, port, take
        self.state = ClientAttachmentState.OPENING
        self.stream = ("", 0)
        self.paused = False
        self.acked = 0
        self.unreached: tuple[str, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Whether the edge knows it: then it must be sent its end, too."""
        return self.state is not ClientAttachmentState.OPENING


Take = Callable[[ClientAttachment[S], msg.PubOpen | msg.Gap, int, float], None]
"""(attachment, item, bytes, seconds)."""


class EdgePort(Generic[S]):
    """A client's link to an edge. `peer` is never used again: nothing for an older connection reaches a new one.

    `away_since`: when the shell first saw no connection for it; the link may well be kept when there is one again.
    """

    __slots__ = ("attachments", "away_since", "edge", "endpoint", "idle_since", "link", "peer", "public_key")

    def __init__(self, edge: str, endpoint: str, public_key: str, peer: str, link: Link) -> None:
        self.edge, self.endpoint, self.public_key, self.peer, self.link = edge, endpoint, public_key, peer, link
        self.attachments: dict[int, ClientAttachment[S]] = {}
        self.idle_since = self.away_since = NEVER


class ClientHandover(Generic[S]):
    """A session that a subscriber takes part in, from MOVE_TO to END or STAY.

    `next`: the attachment at the target, if there is one. `held`: the version of the list that the target has. `edge`
    and `endpoint`: of the target; the endpoint is empty once it is known to be of no use.
    """

    __slots__ = ("edge", "endpoint", "held", "is_asked", "next", "public_key", "session")

    def __init__(self, move: msg.MoveTo) -> None:
        self.session = move.session
        self.edge, self.endpoint, self.public_key = move.edge, move.endpoint, move.public_key
        self.next: ClientAttachment[S] | None = None
        self.is_asked = False
        self.held = 0

    def counted(self, acked: int) -> int:
        """Up to which version changes count, given the last one that the serving edge has acknowledged."""
        # Earlier changes are in the list that ATTACH sent, and there is no cut without ATTACH: docs/handover.md, 3.
        return min(acked, self.held) if self.is_asked else acked

    def holds(self, version: int) -> None:
        self.held = max(self.held, version)
