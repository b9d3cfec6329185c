"""Keeps the connections of a recorder's readers in bounds: hears of each, ends those that are too many, and says so."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll.core.printable import printable
from plimsoll.feeds.serving import tcp_connections
from plimsoll.feeds.serving.open_connections import ConnectionBounds, ConnectionEnd, EndReason, OpenConnections
from plimsoll.feeds.serving.tcp_connections import Peer

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 0.1
"""In this time one thread of libzmq receives some tens of megabytes of a message that does not end."""
LOG_SECONDS: Final = 60.0
"""Between two lines about the same."""
LOGGED_AT_MOST: Final = 1024

_SENTENCES: Final[dict[EndReason, str]] = {
    "identity": "its identity has {bounds.of_identity} already; give each application an identity of its own",
    "total": "{bounds.total} others are open, and it was idle for longest",
    "silent": "it asks nothing",
    "unfinished": "it sends a message that does not end",
}


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """A connection was accepted, or is gone. `number`: its file descriptor.

    `first_check`: the check of the next key has this number. A number is used again; a key that was checked before is
    of an earlier connection.
    """

    kind: Literal["opened", "ended"]
    number: int
    first_check: int = 0


class ConnectionWatch:
    """Not thread-safe, but for `count` and `endings`. `now` is seconds of one monotonic clock."""

    def __init__(self, feed: str, bounds: ConnectionBounds | None = None) -> None:
        self._feed, self._bounds = feed, bounds or ConnectionBounds()
        self._open = OpenConnections(self._bounds)
        self._peers: dict[int, tuple[Peer, int]] = {}  # with the first check
        self._logged: OrderedDict[tuple[str, EndReason], tuple[float, int]] = OrderedDict()
        self._check_at = 0.0
        self.endings: Counter[EndReason] = Counter()

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def take(self, event: ConnectionEvent, now: float) -> None:
        """Note a connection; one too many is ended."""
        if event.kind == "ended":
            self._open.ended(event.number)
            self._peers.pop(event.number, None)
            return
        peer = tcp_connections.peer_of(event.number)
        if peer is None:
            return  # it is gone already
        self._peers[event.number] = peer, event.first_check
        self._end(self._open.opened(event.number, peer[0], now), now)

    def admits(self, number: int, check: int, identity: str, now: float) -> bool:
        """Whether to answer a request on a connection, whose key had this check.

        `identity`: empty without keys: then all connections from one address are one.
        """
        peer, first_check = self._peers.get(number, (("", 0), 0))
        if number not in self._open or check < first_check:
            return False
        self._end(self._open.asked(number, identity or peer[0], now), now)
        return number in self._open

    def check(self, now: float) -> None:
        """Look at all connections, when that is due."""
        if now < self._check_at:
            return
        self._check_at = now + CHECK_SECONDS
        self._end(self._open.due(now), now)
        for number in self._open.numbers:
            total = tcp_connections.received_bytes(number, self._peers[number][0])
            if total is not None:
                self._end(self._open.received(number, total), now)

    def clear(self) -> None:
        """All connections are gone."""
        self._open.clear()
        self._peers.clear()

    def _end(self, ends: Iterable[ConnectionEnd], now: float) -> None:
        for end in ends:
            peer, _ = self._peers.pop(end.number)
            tcp_connections.reset(end.number, peer)
            self.endings[end.reason] += 1
            self._note(end, now)

    def _note(self, end: ConnectionEnd, now: float) -> None:
        whose = f"{end.identity} from {end.address}" if end.identity else f"a peer from {end.address}"
        key = (end.identity or end.address, end.reason)
        due, more = self._logged.pop(key, (now, 0))
        if now < due:
            self._logged[key] = due, more + 1
            return
        self._logged[key] = now + LOG_SECONDS, 0
        while len(self._logged) > LOGGED_AT_MOST:
            self._logged.popitem(last=False)
        also = f"; {more} more since the last such line" if more else ""
        why = _SENTENCES[end.reason].format(bounds=self._bounds)
        log.warning("feed %s: ended a connection of %s: %s%s", self._feed, printable(whose), why, also)
