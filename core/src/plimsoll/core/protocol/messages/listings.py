"""Listings on control sockets: what a head has logged, and what the subscribers of an edge ask for.

For copies of a fleet's load. A page is small and stands for itself; who misses one asks for it again.
"""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol.wire import U32, U63, Name, Scalar, Text


class ListPublications(Struct, array_like=True, frozen=True, tag=121):
    """From a mediator to a head: list publications of its log that were accepted here, after this position."""

    id: U63
    after: U63 = 0


class PublicationItem(Struct, array_like=True, frozen=True):
    """A publication without its payload. `seq` and `sent_us` are its publisher's."""

    publisher: Name
    incarnation: U63
    seq: U63
    sent_us: U63
    attributes: dict[str, Scalar]
    payload_bytes: U32


class PublicationPage(Struct, array_like=True, frozen=True, tag=122):
    """`first` to `last`: the positions of the log; the page has looked at those up to `through`."""

    id: U63
    head_epoch: U63
    first: U63
    last: U63
    through: U63
    publications: list[PublicationItem]


class ListSubscriptions(Struct, array_like=True, frozen=True, tag=123):
    """From a mediator to an edge: list what its subscribers ask for, by name, from this one on.

    `skip`: subscriptions of the first one that are known already.
    """

    id: U63
    start: Text = ""
    skip: U32 = 0


class SubscriptionListItem(Struct, array_like=True, frozen=True):
    """Subscriptions of one subscriber, in canonical form. Those of one connection of a client have the same `link`."""

    subscriber: Name
    subscriptions: list[Text]
    link: U63 = 0


class SubscriptionPage(Struct, array_like=True, frozen=True, tag=124):
    """`next` and `skip`: where the next page starts; an empty `next`: this is the last one."""

    id: U63
    epoch: U63
    subscribers: list[SubscriptionListItem]
    next: Text = ""
    skip: U32 = 0
