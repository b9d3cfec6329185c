"""A token bucket, which shapes what a broker sends to the bandwidth that it may use."""

from __future__ import annotations


class TokenBucket:
    """A token bucket in bytes: `rate` bytes per second, at most `burst` saved up; one frame may overdraw it."""

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float = 0.0) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at = burst, now

    def open(self, now: float) -> bool:
        """Whether something may leave now."""
        self._refill(now)
        return self._tokens > 0

    def spend(self, size: int, now: float) -> None:
        self._refill(now)
        self._tokens -= size

    def ready_at(self, now: float) -> float:
        """When something may leave; `now` if it may already."""
        self._refill(now)
        return now if self._tokens > 0 else now + (1.0 - self._tokens) / self.rate

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
