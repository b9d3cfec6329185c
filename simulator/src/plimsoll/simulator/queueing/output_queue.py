"""What a broker sends: first come, first served at its bandwidth, which saves up as the product's token bucket does."""

from __future__ import annotations

from plimsoll.core.config import BrokerConfig
from plimsoll.core.transport.overlay_node import output_bucket


class OutputQueue:
    """The output of one broker. `free_at`: when all that it was given has left."""

    __slots__ = ("_burst_seconds", "_credit_from", "_departed_bytes", "_given_bytes", "bytes_per_second", "free_at")

    def __init__(self, config: BrokerConfig) -> None:
        bucket = output_bucket(config)
        self.bytes_per_second = bucket.rate if bucket is not None else None
        self._burst_seconds = bucket.burst / bucket.rate if bucket is not None else 0.0
        self._credit_from = self.free_at = 0.0
        self._given_bytes = self._departed_bytes = 0.0

    def send(self, size_bytes: float, now: float) -> tuple[float, float]:
        """Send this much; returns when its first byte and when its last byte leaves."""
        self._given_bytes += size_bytes
        if self.bytes_per_second is None:
            return now, now
        begins = max(self._credit_from, now - self._burst_seconds)
        self._credit_from = begins + size_bytes / self.bytes_per_second
        first = max(begins, now)
        self.free_at = max(self._credit_from, now)
        return first, self.free_at

    def waiting_bytes(self, now: float) -> float:
        """What has not left yet."""
        if self.bytes_per_second is None:
            return 0.0
        return max(self._credit_from - now, 0.0) * self.bytes_per_second

    def departed_bytes(self, now: float) -> float:
        """What has left since this was asked last."""
        departed = self._given_bytes - self.waiting_bytes(now)
        since, self._departed_bytes = departed - self._departed_bytes, departed
        return since
