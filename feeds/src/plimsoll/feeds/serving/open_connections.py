"""Which connections of readers are open, whose they are, and which have to end: by identity, and all together.

The first request shows whose a connection is. Until then it is silent, and few of these are kept: an address that only
connects ends its own connections. One that has asked is ended for others only if it has been idle for longest.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final, Literal

EndReason = Literal["identity", "total", "silent", "unfinished"]
END_REASONS: Final[tuple[EndReason, ...]] = ("identity", "total", "silent", "unfinished")
"""Why a connection was ended.

`identity`: its identity has as many as it may have; `total`: there are too many, and it was idle for longest; `silent`:
it asks nothing; `unfinished`: it sends a message that does not end.
"""


@dataclass(frozen=True)
class ConnectionBounds:
    """How many connections, and for how long."""

    of_identity: int = 8
    total: int = 256
    """Of those that have asked something."""
    silent: int = 64
    """Of those that have not asked yet, in addition."""
    silent_of_address: int = 16
    """Of those that have not asked yet, from one address."""
    silent_seconds: float = 30.0
    idle_seconds: float = 60.0
    """A connection that has not asked for this long makes room for another one of its identity."""
    idle_seconds_at_most: float = 3600.0
    unfinished_bytes: int = 2**20
    """Of one message, or of heartbeats: a request has 8 KiB, and what is unread of one connection less than this."""


@dataclass(frozen=True)
class ConnectionEnd:
    """A connection that has to end. `identity`: empty if it has not asked anything."""

    number: int
    address: str
    identity: str
    reason: EndReason


@dataclass(slots=True)
class _ReaderConnection:
    number: int
    address: str
    active_at: float
    identity: str = ""
    has_asked: bool = False
    """Since its bytes were last looked at."""
    accounted_bytes: int = 0


class OpenConnections:
    """Connections by a number of the caller. `now` is seconds of one monotonic clock.

    What a method returns has to be ended, and is no longer known here.
    """

    def __init__(self, bounds: ConnectionBounds | None = None) -> None:
        self._bounds = bounds or ConnectionBounds()
        self._silent: OrderedDict[int, _ReaderConnection] = OrderedDict()  # the oldest is first
        self._asking: OrderedDict[int, _ReaderConnection] = OrderedDict()  # that which asked least recently is first
        self._of_identity: Counter[str] = Counter()
        self._of_address: Counter[str] = Counter()
        """Silent ones."""

    def __len__(self) -> int:
        return len(self._silent) + len(self._asking)

    def __contains__(self, number: int) -> bool:
        return number in self._silent or number in self._asking

    @property
    def numbers(self) -> list[int]:
        return [*self._silent, *self._asking]

    def opened(self, number: int, address: str, now: float) -> list[ConnectionEnd]:
        """A connection was accepted."""
        self.ended(number)
        self._silent[number] = _ReaderConnection(number, address, now)
        self._of_address[address] += 1
        if self._of_address[address] > self._bounds.silent_of_address:
            return [self._end_oldest_silent(address)]
        if len(self._silent) > self._bounds.silent:
            return [self._end_oldest_silent(max(self._of_address, key=lambda each: (self._of_address[each], each)))]
        return []

    def asked(self, number: int, identity: str, now: float) -> list[ConnectionEnd]:
        """A connection has sent a request; whether it is still known says whether to answer."""
        known = self._silent.get(number) or self._asking.get(number)
        if known is None:
            return []
        if number in self._asking and known.identity == identity:
            known.active_at, known.has_asked = now, True
            self._asking.move_to_end(number)
            return []
        self.ended(number)
        ends: list[ConnectionEnd] = []
        if self._of_identity[identity] >= self._bounds.of_identity:
            idle = self._idle_one(identity, now)
            if idle is None:
                return [ConnectionEnd(number, known.address, identity, "identity")]
            ends.append(self._end(idle, "identity"))
        elif len(self._asking) >= self._bounds.total:
            ends.append(self._end(next(iter(self._asking.values())), "total"))
        known.identity, known.active_at, known.has_asked = identity, now, True
        self._asking[number] = known
        self._of_identity[identity] += 1
        return ends

    def ended(self, number: int) -> None:
        """A connection is gone; one that is not known is none."""
        if (silent := self._silent.pop(number, None)) is not None:
            _decrease(self._of_address, silent.address)
        elif (asking := self._asking.pop(number, None)) is not None:
            _decrease(self._of_identity, asking.identity)

    def received(self, number: int, total_bytes: int) -> list[ConnectionEnd]:
        """`total_bytes` have come on it since it was opened, in requests or not."""
        known = self._silent.get(number) or self._asking.get(number)
        if known is None:
            return []
        if known.has_asked:
            known.accounted_bytes, known.has_asked = total_bytes, False
        elif total_bytes - known.accounted_bytes > self._bounds.unfinished_bytes:
            return [self._end(known, "unfinished")]
        return []

    def due(self, now: float) -> list[ConnectionEnd]:
        """Those that have asked nothing for too long."""
        limits = ((self._silent, self._bounds.silent_seconds), (self._asking, self._bounds.idle_seconds_at_most))
        late = [each for table, seconds in limits for each in table.values() if now - each.active_at > seconds]
        return [self._end(each, "silent") for each in late]

    def clear(self) -> None:
        """All connections are gone."""
        for table in (self._silent, self._asking, self._of_identity, self._of_address):
            table.clear()

    def _idle_one(self, identity: str, now: float) -> _ReaderConnection | None:
        """That of an identity which has been idle for longest, if that is long."""
        first = next(each for each in self._asking.values() if each.identity == identity)
        return first if now - first.active_at >= self._bounds.idle_seconds else None

    def _end_oldest_silent(self, address: str) -> ConnectionEnd:
        return self._end(next(each for each in self._silent.values() if each.address == address), "silent")

    def _end(self, known: _ReaderConnection, reason: EndReason) -> ConnectionEnd:
        self.ended(known.number)
        return ConnectionEnd(known.number, known.address, known.identity, reason)


def _decrease(counts: Counter[str], name: str) -> None:
    counts[name] -= 1
    if not counts[name]:
        del counts[name]
