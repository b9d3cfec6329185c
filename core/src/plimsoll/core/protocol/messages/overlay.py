"""Messages between edges and their head, and between heads."""

from __future__ import annotations

import math

from msgspec import Struct

from plimsoll.core.protocol.messages.publications import Gap, PubOpen
from plimsoll.core.protocol.wire import (
    U32,
    U63,
    Count,
    Listed,
    Name,
    Named,
    Number,
    OwnerEpoch,
    Since,
    Text,
    Token,
    check_since,
)


class CoverItem(Struct, array_like=True, frozen=True):
    id: U63
    text: Text


class Cover(Struct, array_like=True, frozen=True, tag=50):
    """A numbered change of the cover of this link, applied in one step.

    With `more` it is only a part, and the next message has the next part, itself or as its own cover.
    """

    seq: U63
    adds: list[CoverItem]
    removes: list[U63]
    more: bool = False


class CoverAck(Struct, array_like=True, frozen=True, tag=51):
    seq: U63
    unreached: list[Name]


class ResumeUp(Struct, array_like=True, frozen=True, tag=52):
    """`identity`: whose key the client has; the name of a subscriber belongs to the identity that made it.

    Of a slice it is the group's, and `member` is whose key the client has. `since`: as in RESUME.
    """

    subscriber: Name
    epoch: OwnerEpoch
    cover: Cover
    token: Token | None
    session: Name | None = None
    identity: Text = ""
    member: Text = ""
    since: Since = None

    def __post_init__(self) -> None:
        check_since(self.since)


class ResumedDown(Struct, array_like=True, frozen=True, tag=53):
    """The edge serves from `start`: the position of the token, or of the end of the gap.

    `lease_seconds`: for how long the head keeps a place of its own for the subscriber; 0: it does not. `is_awaited`:
    other edges keep a place for it until this one has answered PLACE_TAKEN. `is_again`: an earlier cover
    had lapsed before the one from `since`; the edge reports this to a head that recovers.
    """

    subscriber: Name
    epoch: OwnerEpoch
    position: U63
    start: U63
    since: tuple[U63, U63]
    gap: Gap | None
    lapsed: bool
    lease_seconds: Number = 0.0
    is_awaited: bool = False
    is_again: bool = False


class Release(Struct, array_like=True, frozen=True, tag=54):
    """Close what serves the subscriber with a lower epoch. With `code`: the RESUME with this very epoch is refused.

    `used`: for a RESUME of a lower incarnation than the name has had, that one, if no client is there with it; else 0.
    """

    subscriber: Name
    epoch: OwnerEpoch
    code: Text = ""
    text: Text = ""
    used: U63 = 0


class Fetch(Struct, array_like=True, frozen=True, tag=55):
    """Read the head's log after `after`, for these filters if any are given, else for the link's whole cover."""

    cursor: U32
    after: U63
    filters: list[Text] = []


class Replay(Struct, array_like=True, frozen=True, tag=56):
    """A log entry for one cursor. Entries that the log no longer has come first, as a gap."""

    cursor: U32
    item: PubOpen | Gap


_REPLAY_HEADER = bytes((0x93, 56, 0xCE))
"""MessagePack of a REPLAY before its cursor: an array of three, the tag, and the marker of a 32-bit number."""


def replay_prefix(cursor: int) -> bytes:
    """Encode a REPLAY up to its item.

    The item follows as the bytes that the log holds, so that an entry is encoded once however often it is replayed.
    """
    return _REPLAY_HEADER + cursor.to_bytes(4, "big")


class Fetched(Struct, array_like=True, frozen=True, tag=57):
    """A slice has ended at `to`. With `done` it is the end of the log: the stream continues from there."""

    cursor: U32
    to: U63
    done: bool


class Expire(Struct, array_like=True, frozen=True, tag=58):
    subscriber: Name
    epoch: OwnerEpoch


class OwnedItem(Struct, array_like=True, frozen=True):
    """`since` and `is_again`: as the edge was told them in RESUMED_DOWN or INSTALLED."""

    subscriber: Name
    epoch: OwnerEpoch
    since: tuple[U63, U63]
    identity: Text = ""
    is_again: bool = False


class ReleasedBundle(Struct, array_like=True, frozen=True):
    """The bundle with this first hash has no edge any more; its units are to look it up again.

    `number`: of the unload that wants it. A broker that has seen it for this bundle does nothing.
    """

    low: U32
    number: U63


class EdgeReport(Struct, array_like=True, frozen=True, tag=59):
    """The first record of an edge on a new link to its head: its address for clients, and its subscribers.

    With `more` another EDGE_REPORT continues it; the cover is in the last one, after any parts of its own.
    `mediator` is the highest mediator epoch that the edge knows. `boundaries`: the last bundles of the cluster
    that it was told of, with their mediator and version, as in BUNDLE_TABLE. `head_epoch` and `position`: how far it
    has had the head's log, in the epoch that this was; 0 if it has had none. `released`: the releases that it has seen.
    `keeps_claims`: it can read NAME_CLAIMS, and tells them to a head that restarts.
    """

    endpoint: Text
    public_key: Text
    cover: Cover
    owned: list[OwnedItem]
    more: bool = False
    mediator: U63 = 0
    boundaries: list[U32] = []
    bundles_mediator: U63 = 0
    bundles_version: U63 = 0
    head_epoch: U63 = 0
    position: U63 = 0
    released: list[ReleasedBundle] = []
    keeps_claims: bool = False


class Welcome(Struct, array_like=True, frozen=True, tag=60):
    """`position`: the end of the log. `start`: the position behind which this stream goes on, if nothing is missing.

    `endpoint`: where clients reach the head, which an edge tells those that ask it instead.
    """

    position: U63
    start: U63 | None = None
    endpoint: Text = ""


class NeighborReport(Struct, array_like=True, frozen=True, tag=61):
    """The first record of a head on a new link to a neighbour: the whole cover of this link.

    Messages that the neighbour had not acknowledged follow; it drops duplicates. `mediator`: as in EDGE_REPORT.
    `head_epoch` and `position`: how far the receiver's log has come here, in its epoch then; 0 if this is not known.
    `log_position`: where the receiver goes on in the sender's log, if it has had nothing of it.
    """

    cover: Cover
    mediator: U63 = 0
    head_epoch: U63 = 0
    position: U63 = 0
    log_position: U63 = 0


class Confirmed(Struct, array_like=True, frozen=True, tag=63):
    """Positions of the receiver that every edge behind the sender has, except the edges named."""

    positions: list[U63]
    missing: list[Name]


class Forget(Struct, array_like=True, frozen=True, tag=64):
    """The subscriber has left for good."""

    subscriber: Name
    epoch: OwnerEpoch


class KeepPlace(Struct, array_like=True, frozen=True, tag=66):
    """The list of a subscriber that wants its place kept for longer than edges do: its head keeps one of its own.

    It counts once this link is the owner of the subscriber in this epoch, and comes ahead of what makes it so, and of
    the COVER of the list. With `more` the next record has more of the list. `most_places` and `most_bytes`: what its
    identity may have kept; 0: as much as any. `left`: it is away, and had been sent the log up to there. `is_guest`:
    a hand-over brings it here, and it has not sent GO.
    """

    subscriber: Name
    epoch: OwnerEpoch
    lease_seconds: Number
    texts: Listed[Text]
    identity: Text = ""
    most_places: U63 = 0
    most_bytes: U63 = 0
    more: bool = False
    left: U63 | None = None
    is_guest: bool = False


class PlaceLeft(Struct, array_like=True, frozen=True, tag=67):
    """A subscriber whose place the head keeps has gone away; it had been sent the log up to `position`."""

    subscriber: Name
    epoch: OwnerEpoch
    position: U63


class PlaceTaken(Struct, array_like=True, frozen=True, tag=62):
    """The edge has had RESUMED_DOWN of this epoch: to a head that recovers it would report the subscriber."""

    subscriber: Name
    epoch: OwnerEpoch


class PlaceItem(Struct, array_like=True, frozen=True):
    """A place that a head keeps, of the subscriber of an identity. `is_guest`: as in KEEP_PLACE."""

    subscriber: Name
    epoch: OwnerEpoch
    identity: Text = ""
    is_guest: bool = False


class PlaceQuery(Struct, array_like=True, frozen=True, tag=183):
    """No edge of the sender serves these: which of them has a place at another head that counts for more?"""

    places: Listed[PlaceItem]


class PlaceReply(Struct, array_like=True, frozen=True, tag=184):
    """The places, of those that were asked about, that count for more: with their epochs here."""

    places: Listed[PlaceItem]


class OriginPath(Struct, array_like=True, frozen=True):
    """What publications that a head accepts take until they are at the receiver's side of the sender. In seconds.

    `publisher_seconds`: one way from its publishers, the longest; `topics`: the same by hash of the topic, where that
    is less. `links_seconds`: one way on all links from that head to the sender; `brokers_seconds`: in all heads on the
    way, the sender's own time included.
    """

    head: Name
    publisher_seconds: Number
    links_seconds: Number
    brokers_seconds: Number
    topics: Named[tuple[U32, Number]] = []

    @property
    def is_possible(self) -> bool:
        """Whether it can have been measured."""
        some = (self.publisher_seconds, self.links_seconds, self.brokers_seconds, *(each for _, each in self.topics))
        return all(0.0 <= each < math.inf for each in some)


class PublisherPaths(Struct, array_like=True, frozen=True, tag=131):
    """From a head to a neighbour and, on the control socket, to an edge: how far publishers are. Newer replaces older.

    `attribute`: whose values the topics are. `is_wanted`: the sender, or a head behind it, wants to know as well.
    `rates`: publications per second of the busiest topics, by hash, at all heads of the sender's side together.
    """

    attribute: Text
    origins: Named[OriginPath]
    is_wanted: bool = False
    rates: Named[tuple[U32, Number]] = []


class NameClaim(Struct, array_like=True, frozen=True):
    """A name is an identity's. `since`: in milliseconds since 1970. `age_ms`: how long ago it was last used.

    `is_over`: it is not any more; the identity has given up what it has had since then or earlier.
    """

    name: Name
    identity: Name
    since: Count
    age_ms: Count = 0
    is_over: bool = False


class NameClaims(Struct, array_like=True, frozen=True, tag=185):
    """Whose names are, as far as the sender knows. Of two identities the one that had a name first wins.

    Ahead of the report on a new link, all that are known; later those that have changed or are still in use.
    """

    publishers: Named[NameClaim]
    subscribers: Named[NameClaim] = []


class Leaving(Struct, array_like=True, frozen=True, tag=65):
    """The edge is leaving: place no subscribers here."""
