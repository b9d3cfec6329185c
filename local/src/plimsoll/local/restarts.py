"""When a process that ended is started again: 1, 2, 4 ... 30 seconds later, and from 1 again after a healthy minute."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_SECONDS = 1.0
MOST_SECONDS = 30.0
HEALTHY_SECONDS = 60.0


@dataclass(frozen=True)
class Restarts:
    """The history of one process's ends, as far as it matters. Times are seconds of one monotonic clock."""

    count: int = 0
    in_a_row: int = 0
    ready_since: float | None = None

    def ready(self, now: float) -> Restarts:
        """The process answers."""
        return self if self.ready_since is not None else replace(self, ready_since=now)

    def ended(self, now: float) -> tuple[Restarts, float]:
        """The process ended by itself; says when to start it again."""
        healthy = self.ready_since is not None and now - self.ready_since >= HEALTHY_SECONDS
        row = 0 if healthy else self.in_a_row
        delay = min(FIRST_SECONDS * 2.0 ** min(row, 30), MOST_SECONDS)
        return Restarts(self.count + 1, row + 1), now + delay
