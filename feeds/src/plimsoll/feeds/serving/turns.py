"""Whose request is served next: identities in turn, each at a bounded rate and with bounded requests waiting.

An identity that asks for more, over however many connections, delays and loses its own requests. A reader repeats one
that has no answer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plimsoll.core.metering.bucket import TokenBucket

WAITING_AT_MOST: Final = 64
REQUESTS_PER_SECOND: Final = 1000.0
"""With answers of 64 KiB about half of what one thread of libzmq encrypts in a second."""
BURST: Final = 200.0
IDENTITIES_AT_MOST: Final = 1024
"""Remembered: those beyond lose the rate that they have used, not what waits."""


PEERS_AT_MOST: Final = 8
"""Connections of one identity that are answered: what they do not read is held for each, and libzmq gives each of them
the same share, whatever its identity."""


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """A request that waits. `peer`: the connection; `key`: its public key, empty on plain links."""

    peer: bytes
    key: str
    data: bytes


class RequestTurns:
    """The requests that wait. `now` is seconds of one monotonic clock."""

    def __init__(self, rate: float = REQUESTS_PER_SECOND, waiting: int = WAITING_AT_MOST) -> None:
        self._rate, self._waiting = rate, waiting
        self._of: OrderedDict[str, deque[WaitingRequest]] = OrderedDict()  # the next one is first
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self.dropped = 0

    def add(self, identity: str, request: WaitingRequest) -> bool:
        """Let a request wait; false if too many of this identity do, and it is dropped."""
        queue = self._of.setdefault(identity, deque())
        if len(queue) >= self._waiting:
            self.dropped += 1
            return False
        queue.append(request)
        return True

    def take(self, now: float) -> WaitingRequest | None:
        """The next request; None if none waits whose identity may ask now."""
        for identity in list(self._of):
            bucket = self._bucket(identity, now)
            if not bucket.open(now):
                continue
            bucket.spend(1, now)
            queue = self._of.pop(identity)
            request = queue.popleft()
            if queue:
                self._of[identity] = queue  # behind all others
            return request
        return None

    def wait_seconds(self, now: float) -> float | None:
        """How long until `take` has one; None: nothing waits."""
        due = [self._bucket(identity, now).ready_at(now) for identity in self._of]
        return max(0.0, min(due) - now) if due else None

    def _bucket(self, identity: str, now: float) -> TokenBucket:
        bucket = self._buckets.pop(identity, None) or TokenBucket(self._rate, BURST, now)
        self._buckets[identity] = bucket
        while len(self._buckets) > max(IDENTITIES_AT_MOST, len(self._of)):
            self._buckets.popitem(last=False)
        return bucket


class AnsweredPeers:
    """Which connections are answered: of each identity up to a limit, until some of them are gone."""

    def __init__(self, most: int = PEERS_AT_MOST) -> None:
        self._most = most
        self._of: OrderedDict[str, OrderedDict[bytes, None]] = OrderedDict()
        self.refused = 0

    def admit(self, identity: str, peer: bytes, is_gone: Callable[[bytes], bool]) -> bool:
        """Whether to answer a connection. Where there are too many, one of the others is asked about."""
        peers = self._of.setdefault(identity, OrderedDict())
        self._of.move_to_end(identity)
        if len(self._of) > IDENTITIES_AT_MOST:
            self._of.popitem(last=False)
        if peer not in peers and len(peers) >= self._most:
            oldest = next(iter(peers))
            if not is_gone(oldest):
                peers.move_to_end(oldest)
                self.refused += 1
                return False
            del peers[oldest]
        peers[peer] = None
        return True

    def clear(self) -> None:
        """All connections have ended."""
        self._of.clear()
