"""The latency that a hand-over adds to a delivery, by comparison with other deliveries of the same publication.

A delivery counts for a hand-over of its subscriber if the publication was in flight, from the publisher's call to the
application, at any moment between the mediator's first command and the final outcome. Its *added latency* is its delay
minus the median delay of the same publication at subscribers in no hand-over at that time, and at least 0. A slow
publisher, head or machine delays both sides and cancels out. Deliveries outside hand-overs, compared with the same
median, show how much deliveries differ anyway.

There are two more comparisons. *Beside the source*: with the median of the subscribers that stay at the source, where
the member would have waited as well; if the source is saturated, this is the added latency. *Held up*: only for
publications made during the hand-over, with the median of the subscribers that neither move nor are at its source.
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
"""Ratio of the bounds of neighbouring bins: the error of a percentile is at most 2 per cent. The maximum is exact."""
MIN_OTHERS: Final = 3
"""Least number of deliveries outside hand-overs for a median."""


class DurationHistogram:
    """Durations in bins of equal ratio, so that runs can be merged. `bins`: counts by exponent."""

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
        """The upper end of the percentile's bin, in seconds; None without durations."""
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
    """A hand-over of a subscriber: its begin, its end and its source. `counts`: whether its latency is measured."""

    since: float
    until: float
    source: str = ""
    counts: bool = True


class HandoverWindows:
    """The times at which each subscriber was in a hand-over."""

    def __init__(self, found: Iterable[tuple[str, HandoverWindow]]) -> None:
        self._of: dict[str, list[HandoverWindow]] = {}
        for name, window in sorted(found):
            self._of.setdefault(name, []).append(window)

    def overlapping(self, name: str, since: float, until: float) -> HandoverWindow | None:
        """The subscriber's last hand-over that overlaps this time."""
        windows = self._of.get(name, ())
        # Windows are sorted by begin, and a subscriber is in one hand-over at a time: the last one begun decides.
        place = bisect.bisect_right(windows, until, key=lambda window: window.since)
        return windows[place - 1] if place > 0 and windows[place - 1].until >= since else None


class HandoverDelay(NamedTuple):
    """The delay of a delivery in a hand-over. `own`: it was published during the hand-over."""

    delay: float
    source: str
    own: bool


class AddedLatency:
    """Collects delays by publication; `compare` computes the latency that hand-overs added."""

    def __init__(self, windows: HandoverWindows) -> None:
        self._windows = windows
        self._delays: dict[object, tuple[list[tuple[str, float]], list[HandoverDelay]]] = {}
        self.during, self.outside = DurationHistogram(), DurationHistogram()
        self.beside_source, self.held_up = DurationHistogram(), DurationHistogram()
        self.raw_during, self.raw_outside = DurationHistogram(), DurationHistogram()

    def add(
        self, publication: object, subscriber: str, published_at: float, delivered_at: float, edge: str = ""
    ) -> None:
        """Take a delivery; `edge` is where its subscriber was served."""
        window = self._windows.overlapping(subscriber, published_at, delivered_at)
        delay = delivered_at - published_at
        outside, in_handover = self._delays.setdefault(publication, ([], []))
        if window is None:
            outside.append((edge, delay))
        elif window.counts:
            in_handover.append(HandoverDelay(delay, window.source, published_at >= window.since))

    def compare(self) -> None:
        """Compare the deliveries taken so far, and drop them."""
        for outside, in_handover in self._delays.values():
            for _, delay in outside:
                self.raw_outside.add(delay)
            for one in in_handover:
                self.raw_during.add(one.delay)
                self._compare(one, outside)
            if len(outside) >= MIN_OTHERS:
                middle = median(delay for _, delay in outside)
                for _, delay in outside:
                    self.outside.add(max(0.0, delay - middle))
        self._delays.clear()

    def _compare(self, one: HandoverDelay, outside: Sequence[tuple[str, float]]) -> None:
        for to, edges in (
            (self.during, outside),
            (self.beside_source, [each for each in outside if each[0] == one.source]),
            (self.held_up, [each for each in outside if each[0] != one.source] if one.own else []),
        ):
            if len(edges) >= MIN_OTHERS:
                to.add(max(0.0, one.delay - median(delay for _, delay in edges)))
