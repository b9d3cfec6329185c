"""Messages of publishers, and the stream from head to head, edge and subscriber."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw, Struct

from plimsoll.core.protocol.wire import U32, U63, Name, Scalar, Text, Token


class Body(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The application's content: typed attributes and an opaque payload.

    Unknown fields are refused: a nested one that this broker can skip may overflow the deeper call stack of another.
    """

    attributes: dict[str, Scalar]
    payload: bytes = b""


ATTRIBUTES_AT_MOST = 1024
ATTRIBUTE_CHARACTERS_AT_MOST = 16_384
"""Of all names and strings of a publication together. Every broker on its way looks at each of them for matching."""
SMALL_BODY_BYTES = 2048
"""A body up to this size cannot exceed either limit, so it is not looked into."""


def attributes_fault(attributes: Mapping[str, Scalar]) -> str:
    """Why a publication has too much in its attributes; an empty string if it has not."""
    if len(attributes) > ATTRIBUTES_AT_MOST:
        return f"a publication with {len(attributes)} attributes; at most {ATTRIBUTES_AT_MOST} are taken"
    strings = sum(len(value) for value in attributes.values() if isinstance(value, str))
    characters = strings + sum(map(len, attributes))
    if characters <= ATTRIBUTE_CHARACTERS_AT_MOST:
        return ""
    most = ATTRIBUTE_CHARACTERS_AT_MOST
    return f"{characters} characters in attributes; at most {most} are taken: put into the payload what nothing matches"


class Publish(Struct, array_like=True, frozen=True, tag=1):
    handle: U32
    seq: U63
    flags: U32
    sent_us: U63
    body: Raw


class Pub(Struct, array_like=True, frozen=True, tag=2):
    """A publication in transit: position in the sender's log, origin, identity, and the body as received."""

    position: U63
    head: Name
    epoch: U63
    offset: U63
    publisher: Name
    incarnation: U63
    seq: U63
    flags: U32
    sent_us: U63
    body: Raw


class PubOpen(Struct, array_like=True, frozen=True, tag=2):
    """The same message with the body decoded, for edges and clients, which read it at once and forward its bytes."""

    position: U63
    head: Name
    epoch: U63
    offset: U63
    publisher: Name
    incarnation: U63
    seq: U63
    flags: U32
    sent_us: U63
    body: Body


class Gap(Struct, array_like=True, frozen=True, tag=4):
    """Positions `low` to `high` of a head's log that the receiver will not get.

    `last` is the last offset lost per origin. `low` may belong to an older epoch of the head than `high`: then
    everything since is in doubt.
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
    """The receiver has all that it should have up to `position`, except on the attachments named."""

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
    """`used` is the last incarnation of the name if the code is `incarnation` and nobody uses it now; else 0."""

    handle: U32
    seq: U63
    code: Name
    text: Text
    used: U63 = 0


class Credit(Struct, array_like=True, frozen=True, tag=14):
    handle: U32
    through: U63


class Unconfirmed(Struct, array_like=True, frozen=True, tag=15):
    handle: U32
    seq: U63
    edges: list[Name]


class Close(Struct, array_like=True, frozen=True, tag=16):
    handle: U32
