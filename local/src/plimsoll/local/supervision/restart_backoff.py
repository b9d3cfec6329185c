"""The delay before an exited process is restarted: 1, 2, 4 ... 30 seconds, and 1 again after a healthy minute."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_SECONDS = 1.0
MAX_SECONDS = 30.0
HEALTHY_SECONDS = 60.0


@dataclass(frozen=True)
class RestartBackoff:
    """The restart delay of one process. Times are seconds of one monotonic clock."""

    count: int = 0
    consecutive: int = 0
    ready_since: float | None = None

    def on_ready(self, now: float) -> RestartBackoff:
        """The process answers."""
        return self if self.ready_since is not None else replace(self, ready_since=now)

    def on_exit(self, now: float) -> tuple[RestartBackoff, float]:
        """The process ended by itself; returns when to start it again."""
        healthy = self.ready_since is not None and now - self.ready_since >= HEALTHY_SECONDS
        row = 0 if healthy else self.consecutive
        delay = min(FIRST_SECONDS * 2.0 ** min(row, 30), MAX_SECONDS)
        return RestartBackoff(self.count + 1, row + 1), now + delay
