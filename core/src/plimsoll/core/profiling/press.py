"""PRESS: samples the next N publications that come in, and the rate at which they came. PADRES 2006, 4.1.

Sampling begins when the target has answered OK and ends after N publications or T seconds, whichever is first. The
first publication is the rightmost bit of every vector. A fast publisher has many samples, a slow one few or none.

The paper sets bits as publications come, by subscribing locally to the target's covering set. Here at most N
publications are kept, and matched at the end: the bits are the same, and no subscription has to be withdrawn later.
"""

from __future__ import annotations

import math

from plimsoll.core.predicates.subscription import Attributes
from plimsoll.core.profiling.sampler import MIN_RATE_SECONDS, SampleRun, TrafficEstimator, TrafficSample


class PressEstimator(TrafficEstimator):
    """Samples what comes in from `now` on.

    Args:
        samples: N, publications.
        timeout_seconds: T, seconds.
        now: when the target answered OK, seconds.
        counted: publications that the broker has counted before, and in how many seconds. Eq. 2 takes the broker's
            input rate, and 50 samples alone show it within 11 % on average.

    """

    __slots__ = ("_counted", "_ended_at", "_samples", "samples", "started_at", "timeout_seconds")

    def __init__(
        self,
        samples: int = 50,
        timeout_seconds: float = 30.0,
        now: float = 0.0,
        counted: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        if samples < 1 or not 0.0 < timeout_seconds < math.inf:
            raise ValueError(
                f"PRESS takes at least 1 sample within a finite time above 0 s, not {samples} within {timeout_seconds}"
            )
        self.samples, self.timeout_seconds, self.started_at = samples, timeout_seconds, now
        self._counted = counted
        self._samples: list[TrafficSample] = []
        self._ended_at: float | None = None

    def __len__(self) -> int:
        """Number of samples taken."""
        return len(self._samples)

    def note(self, publisher: str, attributes: Attributes, size_bytes: int, now: float) -> None:
        """Take a publication, of any publisher. The attributes are kept, and must not be changed."""
        if self.is_complete(now):
            return
        self._samples.append((attributes, size_bytes, now))
        if len(self._samples) == self.samples:
            self._ended_at = now

    def is_complete(self, now: float) -> bool:
        """Whether N publications have come, or T seconds have passed."""
        return self._ended_at is not None or now >= self.ends_at()

    def ends_at(self) -> float:
        """When sampling ends at the latest, or did end."""
        return self.started_at + self.timeout_seconds if self._ended_at is None else self._ended_at

    def sample_runs(self, now: float) -> tuple[SampleRun, ...]:
        """All samples, and the rate at which they and those counted before came: i_r of eq. 2."""
        seconds, taken = min(now, self.ends_at()) - self.started_at, len(self._samples)
        if not taken or seconds <= MIN_RATE_SECONDS:
            return ()
        rate = (taken + self._counted[0]) / (seconds + self._counted[1])
        return (SampleRun(rate, tuple(self._samples), taken),)
