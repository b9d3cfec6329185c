"""What edges say to their head, and heads to one another."""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.records.publications import Gap, PubOpen
from plimsoll.core.wire import U32, U63, Name, OwnerEpoch, Text, Token


class CoverItem(Struct, array_like=True, frozen=True):
    id: U63
    text: Text


class Cover(Struct, array_like=True, frozen=True, tag=50):
    """A numbered change of what this link needs, applied in one step.

    With `more` it is a part of one, and the record that follows has the next part, itself or as its own cover.
    """

    seq: U63
    adds: list[CoverItem]
    removes: list[U63]
    more: bool = False


class CoverAck(Struct, array_like=True, frozen=True, tag=51):
    seq: U63
    unreached: list[Name]


class ResumeUp(Struct, array_like=True, frozen=True, tag=52):
    subscriber: Name
    epoch: OwnerEpoch
    cover: Cover
    token: Token | None
    session: Name | None = None


class ResumedDown(Struct, array_like=True, frozen=True, tag=53):
    """`start` is where the edge begins to serve from: the position of the token, or of the end of the gap."""

    subscriber: Name
    epoch: OwnerEpoch
    position: U63
    start: U63
    since: tuple[U63, U63]
    gap: Gap | None
    lapsed: bool


class Release(Struct, array_like=True, frozen=True, tag=54):
    subscriber: Name
    epoch: OwnerEpoch


class Fetch(Struct, array_like=True, frozen=True, tag=55):
    """Read the head's log after `after`, for these filters only if any are given, else for the link's whole cover."""

    cursor: U32
    after: U63
    filters: list[Text] = []


class Replay(Struct, array_like=True, frozen=True, tag=56):
    """An entry of the log for one cursor. What the log has no more comes first, as a gap."""

    cursor: U32
    item: PubOpen | Gap


class Fetched(Struct, array_like=True, frozen=True, tag=57):
    """A slice has ended at `to`. With `done`, what comes next in the stream is what comes next in the log."""

    cursor: U32
    to: U63
    done: bool


class Expire(Struct, array_like=True, frozen=True, tag=58):
    subscriber: Name
    epoch: OwnerEpoch


class ReportItem(Struct, array_like=True, frozen=True):
    subscriber: Name
    epoch: OwnerEpoch
    since: tuple[U63, U63]


class Report(Struct, array_like=True, frozen=True, tag=59):
    """The first record of an edge on a new link to its head: where clients reach it, and whom it serves.

    With `more` another REPORT follows, which goes on; the cover is in the last one, behind parts of its own.
    `mediator` is the highest mediator epoch that the edge has heard of.
    """

    endpoint: Text
    public_key: Text
    cover: Cover
    owned: list[ReportItem]
    more: bool = False
    mediator: U63 = 0


class Welcome(Struct, array_like=True, frozen=True, tag=60):
    position: U63


class NeighborReport(Struct, array_like=True, frozen=True, tag=61):
    """The first record of a head on a new link to a neighbour: the whole cover of this link.

    What the neighbour had not acknowledged follows; it drops what it has seen. `mediator`: as in REPORT.
    """

    cover: Cover
    mediator: U63 = 0


class Confirmed(Struct, array_like=True, frozen=True, tag=63):
    """Positions of the receiver that every edge behind the sender has, but for the edges named."""

    positions: list[U63]
    missing: list[Name]


class Forget(Struct, array_like=True, frozen=True, tag=64):
    """The subscriber has gone for good."""

    subscriber: Name
    epoch: OwnerEpoch


class Leaving(Struct, array_like=True, frozen=True, tag=65):
    """The edge is on its way out: place nobody here."""
