"""The records of protocol version 1: what brokers and clients say to one another, by number.

Numbers are never used again for something else. Fields may be added at the end of a record, with a default.
docs/protocol.md says who sends which record, when, and what the answer is.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from plimsoll.core.wire import U32, U63, Name, Options, OwnerEpoch, Scalar, Text, Token, WireError


class Body(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What the application says: typed attributes and an opaque payload.

    Nothing else: what one broker can skip over, another, deeper in its own stack, may not be able to.
    """

    attributes: dict[str, Scalar]
    payload: bytes = b""


# -- publications


class Publish(Struct, array_like=True, frozen=True, tag=1):
    handle: U32
    seq: U63
    flags: int
    sent_us: U63
    body: Raw


class Pub(Struct, array_like=True, frozen=True, tag=2):
    """A publication on its way: position in the sender's log, origin, identity, and the body as it was received."""

    position: U63
    head: Name
    epoch: U63
    offset: U63
    publisher: Name
    incarnation: U63
    seq: U63
    flags: int
    sent_us: U63
    body: Raw


class PubOpen(Struct, array_like=True, frozen=True, tag=2):
    """The same record with the body decoded: for edges and clients, which need it at once and send it on as bytes."""

    position: U63
    head: Name
    epoch: U63
    offset: U63
    publisher: Name
    incarnation: U63
    seq: U63
    flags: int
    sent_us: U63
    body: Body


class Gap(Struct, array_like=True, frozen=True, tag=4):
    """Positions `low` to `high` of a head's log that the receiver will not get; `last` is the last offset lost per
    origin.

    `low` may be of an older epoch of the head than `high`: then everything since is in doubt.
    """

    head: Name
    low_epoch: U63
    low: U63
    epoch: U63
    high: U63
    last: list[Token]
    reason: Name


class Deliver(Struct, array_like=True, frozen=True, tag=3):
    attachment: U32
    item: PubOpen | Gap


class Progress(Struct, array_like=True, frozen=True, tag=6):
    """All up to `position` that the receiver should have, it has; except the attachments named."""

    position: U63
    behind: list[U32] = []


class Open(Struct, array_like=True, frozen=True, tag=10):
    handle: U32
    publisher: Name
    incarnation: U63


class Opened(Struct, array_like=True, frozen=True, tag=11):
    handle: U32
    head: Name
    epoch: U63
    last_seq: U63
    through: U63


class Accepted(Struct, array_like=True, frozen=True, tag=12):
    handle: U32
    through: U63


class Refused(Struct, array_like=True, frozen=True, tag=13):
    handle: U32
    seq: U63
    code: Name
    text: Text


class Credit(Struct, array_like=True, frozen=True, tag=14):
    handle: U32
    through: U63


class Unconfirmed(Struct, array_like=True, frozen=True, tag=15):
    handle: U32
    seq: U63
    edges: list[Name]


class Close(Struct, array_like=True, frozen=True, tag=16):
    handle: U32


# -- subscribers


class Join(Struct, array_like=True, frozen=True, tag=20):
    """Ask a head for an edge: not one of `exclude`; `prefer` if it can be had."""

    subscriber: Name
    exclude: list[Name] = []
    prefer: Text = ""


class Placed(Struct, array_like=True, frozen=True, tag=21):
    subscriber: Name
    edge: Name
    endpoint: Text
    public_key: Text


class Unplaced(Struct, array_like=True, frozen=True, tag=22):
    subscriber: Name
    text: Text
    retry_seconds: float


class SubscriptionItem(Struct, array_like=True, frozen=True):
    """One subscription of a subscriber. `options` has room for `latency_seconds`, `group` and `priority`."""

    id: U32
    text: Text
    options: Options = {}


class Policy(Struct, frozen=True):
    """What happens when the subscriber cannot keep up. Zero: what the broker's limits say."""

    slow: Text = ""
    queue_bytes: U63 = 0
    block_seconds: float = 0.0


class Resume(Struct, array_like=True, frozen=True, tag=30):
    """Attach a subscriber to this edge, from `token` on; without one, from now on."""

    attachment: U32
    subscriber: Name
    epoch: OwnerEpoch
    version: U63
    subscriptions: list[SubscriptionItem]
    policy: Policy
    token: Token | None
    watermarks: list[Token]
    session: Name | None = None


class Resumed(Struct, array_like=True, frozen=True, tag=31):
    attachment: U32
    head: Name
    epoch: U63
    position: U63
    gap: Gap | None
    lapsed: bool


class Suback(Struct, array_like=True, frozen=True, tag=32):
    attachment: U32
    version: U63
    unreached: list[Name]


class Subs(Struct, array_like=True, frozen=True, tag=33):
    attachment: U32
    version: U63
    adds: list[SubscriptionItem]
    removes: list[U32]


class Detach(Struct, array_like=True, frozen=True, tag=34):
    attachment: U32
    withdraw: bool


class Shut(Struct, array_like=True, frozen=True, tag=35):
    attachment: U32
    code: Name
    text: Text


class Moved(Struct, array_like=True, frozen=True, tag=36):
    attachment: U32
    edge: Text
    endpoint: Text
    public_key: Text
    session: Name | None = None


class Pause(Struct, array_like=True, frozen=True, tag=37):
    attachment: U32


class Continue(Struct, array_like=True, frozen=True, tag=38):
    attachment: U32


class SubRefused(Struct, array_like=True, frozen=True, tag=39):
    attachment: U32
    version: U63
    id: U32
    text: Text


class Epoch(Struct, array_like=True, frozen=True, tag=40):
    """The head has restarted: what it had, and this subscriber had not, may be lost."""

    attachment: U32
    gap: Gap


# -- edges and heads


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
    """

    endpoint: Text
    public_key: Text
    cover: Cover
    owned: list[ReportItem]
    more: bool = False


class Welcome(Struct, array_like=True, frozen=True, tag=60):
    position: U63


class NeighborReport(Struct, array_like=True, frozen=True, tag=61):
    """The first record of a head on a new link to a neighbour: the whole cover of this link.

    What the neighbour had not acknowledged follows; it drops what it has seen.
    """

    cover: Cover


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


# -- control sockets


class Identify(Struct, array_like=True, frozen=True, tag=100):
    name: Name
    role: Name
    epoch: U63


class Load(Struct, array_like=True, frozen=True, tag=101):
    report: dict[str, Scalar | list[str] | dict[str, Scalar] | None]


class StatusQuery(Struct, array_like=True, frozen=True, tag=102):
    id: U63


class StatusReply(Struct, array_like=True, frozen=True, tag=103):
    id: U63
    status: dict[str, Scalar | list[str] | dict[str, Scalar] | None]


class Leave(Struct, array_like=True, frozen=True, tag=104):
    """Let the subscribers go elsewhere, then exit."""


class Members(Struct, array_like=True, frozen=True, tag=106):
    """From a mediator to a head, again and again: the edges that belong to it, and those that take no newcomers."""

    edges: list[Name]
    cordoned: list[Name]


FromClient = (
    Publish | Open | Close | Join | Resume | Subs | Detach | Pause | Continue
)  # fmt: skip
ToClient = (
    Deliver | Progress | Opened | Accepted | Refused | Credit | Unconfirmed | Placed | Unplaced | Resumed | Suback |
    Shut
    | Moved | SubRefused | Epoch
)  # fmt: skip
FromEdge = Cover | ResumeUp | Fetch | Expire | Report | Forget | Leaving
ToEdge = PubOpen | Gap | Progress | CoverAck | ResumedDown | Release | Replay | Fetched | Welcome
BetweenHeads = Pub | Gap | Cover | CoverAck | NeighborReport | Confirmed
ControlRecord = Identify | Load | StatusQuery | StatusReply | Leave | Members

from_client: Final = msgspec.msgpack.Decoder(FromClient)
to_client: Final = msgspec.msgpack.Decoder(ToClient)
from_edge: Final = msgspec.msgpack.Decoder(FromEdge)
to_edge: Final = msgspec.msgpack.Decoder(ToEdge)
between_heads: Final = msgspec.msgpack.Decoder(BetweenHeads)
control: Final = msgspec.msgpack.Decoder(ControlRecord)
body: Final = msgspec.msgpack.Decoder(Body)

PUB_TAG: Final = 2


_T = TypeVar("_T")


def decode(decoder: msgspec.msgpack.Decoder[_T], data: bytes | Raw) -> _T:
    """Decode one record.

    Raises:
        WireError: `malformed`.

    """
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
        raise WireError("malformed", f"record: {error}") from error
