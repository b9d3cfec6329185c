"""Messages of a publisher's move from one head to another: docs/handover.md, 13."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from plimsoll.core.protocol.messages.control import AuditItem
from plimsoll.core.protocol.wire import U32, U63, Name, Number, Text

# -- between a publisher and its heads


class PublisherMove(Struct, array_like=True, frozen=True, tag=17):
    """From the head that a publisher is open at: open at this head as well, on standby, then say PUBLISHER_GO."""

    handle: U32
    session: Name
    head: Name
    endpoint: Text
    public_key: Text


class PublisherStay(Struct, array_like=True, frozen=True, tag=18):
    """The move is off: publish here as before, and close what is on standby."""

    handle: U32
    session: Name


class OpenStandby(Struct, array_like=True, frozen=True, tag=25):
    """To the other head: open this publisher once the head `source` has decided that it comes."""

    handle: U32
    publisher: Name
    incarnation: U63
    session: Name
    source: Name


class OpenReturning(Struct, array_like=True, frozen=True, tag=26):
    """To the head that the publisher has left: take it again. The other head has not opened it, and will not be
    asked to."""

    handle: U32
    publisher: Name
    incarnation: U63
    session: Name


class PublisherStandby(Struct, array_like=True, frozen=True, tag=19):
    """The answer of the other head to OPEN_STANDBY: OPENED follows once the move is decided."""

    handle: U32


class PublisherGo(Struct, array_like=True, frozen=True, tag=23):
    """From the publisher, behind its last publication here: it sends no more until STAY, LEFT or OPENED."""

    handle: U32
    session: Name


class PublisherLeft(Struct, array_like=True, frozen=True, tag=24):
    """The publisher is not open here any more. All numbers up to `last_seq` are answered; the next goes to the other
    head."""

    handle: U32
    session: Name
    last_seq: U63


class PublisherElsewhere(Struct, array_like=True, frozen=True, tag=27):
    """In answer to OPEN: this head takes no new publishers; open at that head. REFUSED follows, for who ignores it."""

    handle: U32
    head: Name
    endpoint: Text
    public_key: Text


# -- through the tree of heads


class PublisherMarker(Struct, array_like=True, frozen=True, tag=98):
    """Behind the last publication on the one path to the other head, which takes the publisher's next from here on."""

    session: Name
    publisher: Name
    incarnation: U63
    last_seq: U63
    identity: Text


class PublisherArrived(Struct, array_like=True, frozen=True, tag=99):
    """The publisher is open at the other head."""

    session: Name
    publisher: Name


# -- between a mediator and a head, on control sockets


class PublisherPlan(Struct, array_like=True, frozen=True):
    """The publishers that move to `head`, which clients reach at `endpoint`. `seconds`: from the command to the cut."""

    head: Name
    endpoint: Text
    public_key: Text
    publishers: list[Name]
    seconds: Number


class PublisherCommand(Struct, array_like=True, frozen=True, tag=126):
    """To the head that the publishers are at. A repeated command is answered with the state."""

    mediator: U63
    head_epoch: U63
    session: Name
    step: Literal["move", "abort", "ask"]
    plan: PublisherPlan | None = None


class PublisherOutcome(Struct, array_like=True, frozen=True, tag=127):
    """The state of a move and of each of its publishers: `moving` while one is under way.

    Without `audit` it is not known yet what its subscribers have counted.
    """

    session: Name
    mediator: U63
    head_epoch: U63
    state: Literal["moving", "done", "failed", "unknown"]
    publishers: list[tuple[Name, Name]]
    reason: Text = ""
    audit: AuditItem | None = None


class ListPublishers(Struct, array_like=True, frozen=True, tag=128):
    """From a mediator to a head: list the open publishers by name, after this one."""

    id: U63
    after: Text = ""


class PublisherItem(Struct, array_like=True, frozen=True):
    """An open publisher and how much it has published here, in publications and bytes."""

    publisher: Name
    publications: U63
    published_bytes: U63


class PublisherListPage(Struct, array_like=True, frozen=True, tag=129):
    id: U63
    head_epoch: U63
    publishers: list[PublisherItem]
    more: bool
