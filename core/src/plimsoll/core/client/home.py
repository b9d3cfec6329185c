"""The head that a client is at home with: which of the known addresses is dialled, and when another one is tried.

Rules of the place:
- There is one home link at a time. It outlives lost connections; it ends when its head has been away for
  `failover_seconds` and there are other addresses.
- An edge that is asked names its head, which is tried next and remembered after the given addresses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from plimsoll.core.client.limits import Address, ClientLimits
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link


class HomeHost(Protocol):
    """The home's interface to the client."""

    now: float
    limits: ClientLimits
    counters: Counter[str]

    def dial(self, peer: str, endpoint: str, public_key: str = "") -> Link: ...
    def hang_up(self, peer: str, reason: str) -> None: ...

    def on_home_lost(self) -> None:
        """The head is gone, with what it knew of this client."""


class Home:
    """`link`: to the head, or the one that is being opened; None: one is to be dialled."""

    def __init__(self, client: HomeHost, addresses: Sequence[Address], numbers: Iterator[int]) -> None:
        self._client, self._numbers = client, numbers
        self.addresses = tuple(addresses)
        self.link: Link | None = None
        self._given = len(self.addresses)
        self._at = 0
        self._away_since = self._due = 0.0
        self._followed_at = -math.inf
        self._has_left = False
        self._is_connected = False
        self._since: float | None = None

    @property
    def open_link(self) -> Link | None:
        """The link to the head, which outlives a lost connection; None if there is none."""
        return self.link if self.link is not None and self.link.was_open else None

    @property
    def head(self) -> str:
        """The name of the head that the link leads to, or led to last; empty before it has answered."""
        return self.link.name if self.link is not None else ""

    def leave(self) -> None:
        """No other head is dialled."""
        self.link, self._has_left = None, True

    def give_up(self, reason: str) -> None:
        """End the link; another one is dialled."""
        if (link := self.link) is not None:
            self._client.on_home_lost()
            self._client.hang_up(str(link.peer), reason)
            self.link = None

    def on_see_head(self, told: msg.SeeHead) -> None:
        """The address is that of an edge, which names its head: that is tried next, and remembered.

        One that does not know its head yet, or sends the client on again and again, makes it wait before the next one.
        """
        if self.link is None:
            return
        self.give_up(f"it is an edge of {told.head}")
        now, limits = self._client.now, self._client.limits
        is_again = now - self._followed_at < limits.failover_seconds
        self._followed_at = now
        self._due = now + limits.backoff_seconds if is_again or not told.endpoint else now
        if told.endpoint:
            self.addresses = (*self.addresses[: self._given], Address(told.endpoint, told.public_key))
            self._at = self._given
            self._client.counters["heads_followed"] += 1
        else:
            self._at = (self._at + 1) % len(self.addresses)

    # -- time

    def on_tick(self) -> None:
        """Dial a head, and the next one if this one has been away for too long."""
        client = self._client
        if (link := self.link) is not None:
            if link.open or len(self.addresses) == 1:
                self._away_since = client.now
            elif client.now - self._away_since > client.limits.failover_seconds:
                self.give_up("another head is tried")
                self._at = (self._at + 1) % len(self.addresses)
                client.counters["heads_tried"] += 1
        if self.link is None and not self._has_left and client.now >= self._due:
            address = self.addresses[self._at]
            self._away_since = client.now
            self.link = client.dial(f"head#{next(self._numbers)}", address.endpoint, address.public_key)
        self._note_connection()

    def wake_at(self) -> float:
        return NEVER if self.link is not None or self._has_left else max(self._client.now, self._due)

    def status(self) -> dict[str, Any]:
        self._note_connection()
        link = self.link
        return {
            "head": link.name if link is not None and link.open else "",
            "connected": self._is_connected,
            "since_seconds": round(max(0.0, self._client.now - (self._since or 0.0)), 3),
        }

    def _note_connection(self) -> None:
        """Note since when there is an open link to a head, or none."""
        is_connected = self.link is not None and self.link.open
        if self._since is None or is_connected != self._is_connected:
            self._is_connected, self._since = is_connected, self._client.now
