"""Whose request is served next: identities in turn, each at a bounded rate and with bounded requests waiting.

An identity that asks for more, over however many connections, delays and loses its own requests. A reader repeats one
that has no answer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from plimsoll.core.metering.bucket import TokenBucket

WAITING_AT_MOST: Final = 64
REQUESTS_PER_SECOND: Final = 1000.0
"""With answers of 64 KiB about half of what one thread of libzmq encrypts in a second."""
BURST: Final = 200.0
IDENTITIES_AT_MOST: Final = 1024
"""Remembered: those beyond lose the rate that they have used, not what waits."""


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """A request that waits. `peer`: the connection, for answers; `key`: its public key, empty on plain links.

    `connection`: its file descriptor, and `check` the number of the check of its key.
    """

    peer: bytes
    key: str
    data: bytes
    connection: int = -1
    check: int = 0


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
