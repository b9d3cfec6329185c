"""What a client may do over its link, and how much of it: given by the shell, which knows the key of the connection.

A grant belongs to an identity, which may have several connections, and publishers under several names; its quota is for
all of them together at one broker. Without a grant a client may do everything within the limits of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ClientPermissions:
    """`identity`: the owner of the quota. None as a quota: the broker's own limits hold.

    `max_durable_subscribers`: subscribers that may stay away for long, at one head, and `max_held_back_bytes`: what one
    of them may then hold back of its log. `max_consumer_groups`: those that it has made, at one head.

    `name_prefixes`: names of subscribers and publishers that begin so belong to this identity alone. `groups`: it may
    make consumer groups. `channels`: those to whose results it may subscribe; None: all. `reads`: it may read feeds;
    `feeds`: these; None: all, but none if `channels` restricts it, since a feed may hold what it must not get.
    """

    identity: str = ""
    publishes: bool = True
    subscribes: bool = True
    publications_per_second: float | None = None
    bytes_per_second: float | None = None
    max_subscriptions: int | None = None
    max_durable_subscribers: int | None = None
    max_held_back_bytes: int | None = None
    max_consumer_groups: int | None = None
    name_prefixes: tuple[str, ...] = ()
    groups: bool = True
    channels: tuple[str, ...] | None = None
    reads: bool = True
    feeds: tuple[str, ...] | None = None

    @property
    def publish_refusal(self) -> str:
        return "" if self.publishes else f"{self.identity} may not publish; its roles lack publish"

    @property
    def subscribe_refusal(self) -> str:
        return "" if self.subscribes else f"{self.identity} may not subscribe; its roles lack subscribe"

    @property
    def group_refusal(self) -> str:
        return "" if self.groups else f"{self.identity} may not make consumer groups; its roles lack group"

    def read_refusal(self, feed: str) -> str:
        """Why it may not read a feed, and what would permit it; empty if it may."""
        if not self.reads:
            return f"{self.identity} may not read feeds; its roles lack read"
        if self.feeds is None and self.channels is not None:
            granted = "its channels are restricted, so name the feeds that it may read"
            return f"{self.identity} may not read the feed {feed}; {granted}"
        if self.feeds is not None and feed not in self.feeds:
            mine = ", ".join(self.feeds) if self.feeds else "no feed"
            return f"{self.identity} may not read the feed {feed}; it may read {mine}"
        return ""


ALL_PERMISSIONS = ClientPermissions()
NO_PERMISSIONS = ClientPermissions(publishes=False, subscribes=False, groups=False, reads=False)
NOT_PERMITTED = "role"
"""The code of a refusal for lack of permission. It is final: a repeated request is refused again."""


@dataclass(frozen=True, slots=True)
class NameGrants:
    """Which identities a name is reserved for: the longest prefix of it that is granted decides."""

    by_prefix: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def holders(self, name: str) -> frozenset[str]:
        """The identities that have been granted a prefix of this name; empty if the name is free for all."""
        if self.by_prefix:
            for length in range(len(name), 0, -1):
                if (found := self.by_prefix.get(name[:length])) is not None:
                    return found
        return frozenset()

    def permits(self, identity: str, name: str, maker: str) -> bool:
        """Whether an identity may use a name that `maker` has made; an empty text for one that is not known."""
        if not identity:
            return True  # an edge of an earlier release does not say whose its subscribers are
        if holders := self.holders(name):
            return identity in holders
        return not maker or maker == identity


NO_NAME_GRANTS = NameGrants()


GENERATED = "~"
"""How the names begin that client libraries make up for connections that were given none."""


def identity_of_name(name: str) -> str:
    """The identity of a client without a key: its name in HELLO. All those whose name was made up are one identity.

    So a process that restarts without a name of its own still finds its subscribers, as does every other one.
    """
    return GENERATED if name.startswith(GENERATED) else name


def client_of(identity: str, name: str) -> str:
    """Whose publishers share one window: those of one identity, over all its links. Names that were made up are one
    identity but many clients, so there it is the name in HELLO: the link's, and that of the one after it."""
    return name if identity == GENERATED else identity


def foreign_name(kind: str, name: str) -> str:
    """The refusal of a name that is another identity's: what to do about it."""
    return (
        f"not permitted: {kind} {name!r} belongs to another identity; use a name of your own, connect as the identity "
        "that made it, or have a prefix of the name granted to yours"
    )


def name_of_broker(name: str) -> str:
    """The refusal of a client that calls itself like a broker."""
    return f"{name!r} is the name of a broker; give the client a name of its own"


INCARNATIONS_BELOW = 2**53
INCARNATION_STEP = 2**49
"""An incarnation is at most so far above the last one that its identity used: in microseconds, 17 years."""


def incarnation_fault(incarnation: int, last: int) -> str:
    """Why this incarnation may not follow `last`; an empty string if it may.

    Clients count from the last one, or take microseconds since 1970. A number far above both would leave the name
    unusable to every later life of its owner.
    """
    if incarnation >= INCARNATIONS_BELOW:
        return f"incarnation {incarnation} is not below 2^53; take microseconds since 1970, or count up from 1"
    if last and incarnation - last > INCARNATION_STEP:
        return f"incarnation {incarnation} is more than 2^49 above the last one, {last}; check the clock of the client"
    return ""
