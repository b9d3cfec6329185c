"""What a hand-over adds to the delay of a delivery: measured against the same publication's other deliveries.

A delivery counts to a hand-over of its subscriber if the publication was under way, from the publisher's call to the
subscriber's hand-over, at any moment between the mediator's first command and the final outcome. Its *added latency* is
its delay less the median delay of the same publication at those subscribers that were in no hand-over at that time, or
0 if it is less. What slows the publisher, the head or the whole machine down is in both, and falls out. The deliveries
outside of hand-overs, measured alike against the same median, say how far deliveries differ without one.

Two more comparisons stand beside it. *Beside the source*: against the median of those that stay at the source, with
whom the subscriber would have waited; if the source is saturated, this is the added latency. *Held up*: only
publications of the hand-over's own time, against the median of those that neither move nor are at its source.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

FINEST_SECONDS: Final = 10e-6
RATIO: Final = 1.02
"""Ratio of the bounds of neighbouring bins: a percentile is right to 2 per cent. The maximum is exact."""
MIN_OTHERS: Final = 3
"""Deliveries outside of hand-overs that a publication needs for a median."""


class DurationHistogram:
    """Durations in bins of equal ratio, so that runs can be added to one another. `bins`: counts by exponent."""

    def __init__(self, bins: Mapping[int, int] | None = None, longest: float = 0.0) -> None:
        self.bins: Counter[int] = Counter(bins or {})
        self.longest = longest

    def add(self, seconds: float) -> None:
        exponent = 0 if seconds <= FINEST_SECONDS else math.ceil(math.log(seconds / FINEST_SECONDS, RATIO))
        self.bins[exponent] += 1
        self.longest = max(self.longest, seconds)

    def merge(self, other: DurationHistogram) -> None:
        self.bins.update(other.bins)
        self.longest = max(self.longest, other.longest)

    @property
    def count(self) -> int:
        return self.bins.total()

    def percentile(self, share: float) -> float | None:
        """In seconds, None if there are none: the upper end of the percentile's bin."""
        wanted, seen = self.count * share, 0
        for exponent, count in sorted(self.bins.items()):
            seen += count
            if seen >= wanted and seen:
                return min(FINEST_SECONDS * RATIO**exponent, self.longest) if exponent else 0.0
        return None

    def milliseconds(self) -> dict[str, float | int | None]:
        """`count`, `p50`, `p99`, `max`."""
        found: dict[str, float | int | None] = {"count": self.count}
        for name, value in (("p50", self.percentile(0.5)), ("p99", self.percentile(0.99)), ("max", self.longest)):
            found[name] = None if value is None or not self.count else round(value * 1000, 2)
        return found

    def as_dict(self) -> dict[str, Any]:
        return {"bins": {str(exponent): count for exponent, count in sorted(self.bins.items())}, "max": self.longest}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> DurationHistogram:
        return cls({int(exponent): count for exponent, count in given["bins"].items()}, given["max"])


class HandoverWindow(NamedTuple):
    """A hand-over of a subscriber: its times of beginning and end, and its source. Not all of them `count`."""

    since: float
    until: float
    source: str = ""
    counts: bool = True


class HandoverWindows:
    """The times at which each subscriber was in a hand-over."""

    def __init__(self, found: Iterable[tuple[str, HandoverWindow]]) -> None:
        self._of: dict[str, list[HandoverWindow]] = {}
        for name, stay in sorted(found):
            self._of.setdefault(name, []).append(stay)

    def overlapping(self, name: str, since: float, until: float) -> HandoverWindow | None:
        """The last of this subscriber's hand-overs that overlaps this time."""
        stays = self._of.get(name, ())
        # They begin in this order, and a subscriber is in one hand-over at a time: the last that has begun decides.
        place = bisect.bisect_right(stays, until, key=lambda stay: stay.since)
        return stays[place - 1] if place > 0 and stays[place - 1].until >= since else None


class HandoverDelay(NamedTuple):
    """A delivery in a hand-over. `own`: the publication is not older than the hand-over."""

    delay: float
    source: str
    own: bool


class AddedLatency:
    """Delays by publication while they are read, then the latency added by hand-overs."""

    def __init__(self, windows: HandoverWindows) -> None:
        self._windows = windows
        self._delays: dict[object, tuple[list[tuple[str, float]], list[HandoverDelay]]] = {}
        self.during, self.outside = DurationHistogram(), DurationHistogram()
        self.beside_source, self.held_up = DurationHistogram(), DurationHistogram()
        self.raw_during, self.raw_outside = DurationHistogram(), DurationHistogram()

    def add(
        self, publication: object, subscriber: str, published_at: float, delivered_at: float, edge: str = ""
    ) -> None:
        """`edge`: where the subscriber was served."""
        stay = self._windows.overlapping(subscriber, published_at, delivered_at)
        delay = delivered_at - published_at
        still, moving = self._delays.setdefault(publication, ([], []))
        if stay is None:
            still.append((edge, delay))
        elif stay.counts:
            moving.append(HandoverDelay(delay, stay.source, published_at >= stay.since))

    def compare(self) -> None:
        """Compare the deliveries taken so far, and drop them."""
        for still, moving in self._delays.values():
            for _, delay in still:
                self.raw_outside.add(delay)
            for one in moving:
                self.raw_during.add(one.delay)
                self._compare(one, still)
            if len(still) >= MIN_OTHERS:
                middle = median(delay for _, delay in still)
                for _, delay in still:
                    self.outside.add(max(0.0, delay - middle))
        self._delays.clear()

    def _compare(self, one: HandoverDelay, still: Sequence[tuple[str, float]]) -> None:
        for to, edges in (
            (self.during, still),
            (self.beside_source, [each for each in still if each[0] == one.source]),
            (self.held_up, [each for each in still if each[0] != one.source] if one.own else []),
        ):
            if len(edges) >= MIN_OTHERS:
                to.add(max(0.0, one.delay - median(delay for _, delay in edges)))
