"""Ring: always keeps the last W publications of every publisher, each standing for its share of its publisher's rate.

PRESS samples the publications that come next. A ring has its samples already: a query need not wait, a slow publisher
is seen as well as a fast one, and rates are counted over minutes. A rate is counted since it last changed, as far as a
change can be distinguished from noise, and at most over the window.

Memory is bounded by W samples per publisher, a number of publishers, and bytes in all. Further publishers share one
larger ring. A publisher that is silent for a window is forgotten.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from plimsoll.core.predicates.subscription import Attributes
from plimsoll.core.profiling.sampler import MIN_RATE_SECONDS, SampleRun, TrafficEstimator, TrafficSample

WINDOW_SECONDS = 600.0
MARKS_PER_WINDOW = 100
"""Marks per window at which counts are noted. No rate is estimated over less than the time between two marks."""

CERTAIN_CHANGE = 8.0
"""A publisher's rate has changed if that is more likely than that it has not by this, in units of log likelihood.

By chance alone that happens to about one publisher in a thousand. At 6 it is one in two hundred, and as it is mostly a
fast one that seems to have stopped, sets are then off by several percent in a run of ten."""

LIKELY_CHANGE = 1.0
"""The same for one publisher at a time at which the total of all publishers has certainly changed."""

FIRST_SHARE = 1.0 / 3.0
"""Of the time between two marks: a publisher that has just begun is judged after this. Its rate since the broker began
would be far too low, and a session of the first minute would promise too little load at the target."""

CHANGE_POINT_SPACING = 1.15
"""Ratio between the ages of neighbouring times at which a rate change is looked for."""

SHARED_RING_FACTOR = 4
"""Size of the ring that publishers beyond the limit share, in units of W."""

WIDENED_MIN_SAMPLES = 8
"""Number of recent samples that suffices for a publisher of which the broker has begun to take in more."""

CountMark = tuple[float, int]
"""A time, and the count by then."""


class _PublisherHistory:
    """One publisher: its last publications, their total count, and the count at each mark. `first`: its first one."""

    __slots__ = ("count", "first", "marks", "samples")

    def __init__(self, width: int, since: float) -> None:
        self.samples: deque[TrafficSample] = deque(maxlen=width)
        self.count = 0
        self.first: CountMark = (since, 0)
        self.marks: deque[CountMark] = deque([(since, 0)], maxlen=MARKS_PER_WINDOW)

    def is_silent(self, since: float) -> bool:
        """Whether no publication has come since then."""
        return self.samples[-1][2] < since if self.samples else self.marks[0][1] == self.count

    def points(self, oldest: float) -> list[CountMark]:
        """Times since `oldest` with their counts: of each kept sample, and of the marks before those.

        If there are none, the last one before `oldest`.
        """
        before = self.count - len(self.samples)
        first = self.samples[0][2] if self.samples else math.inf
        found = [mark for mark in self.marks if mark[0] < first]
        found += [(came, before + i + 1) for i, (_, _, came) in enumerate(self.samples)]
        return [point for point in found if point[0] >= oldest] or found[-1:]


class RingEstimator(TrafficEstimator):
    """Samples every publication that a broker takes in; can make a profile at any time.

    Args:
        width: W, samples of each publisher.
        window_seconds: time over which a rate is counted if it does not change.
        now: when the broker began to take in, seconds.
        publishers: number of publishers with a ring of their own.
        most_bytes: bound on all samples together, by their size on the wire.

    """

    __slots__ = (
        "_gone", "_held", "_histories", "_mark_at", "_marks", "_others", "_since", "_widened_at",
        "most_bytes", "publishers", "width", "window_seconds",
    )  # fmt: skip

    def __init__(
        self,
        width: int = 64,
        window_seconds: float = WINDOW_SECONDS,
        now: float = 0.0,
        *,
        publishers: int = 1000,
        most_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        if width < 1 or publishers < 1 or most_bytes < 0 or not 0.0 < window_seconds < math.inf:
            raise ValueError(
                f"a ring has a width and publishers of at least 1 and a finite window above 0 s, not width {width}, "
                f"publishers {publishers}, window_seconds {window_seconds}, most_bytes {most_bytes}"
            )
        self.width, self.window_seconds = width, window_seconds
        self.publishers, self.most_bytes = publishers, most_bytes
        self._histories: dict[str, _PublisherHistory] = {}
        self._others = _PublisherHistory(width * SHARED_RING_FACTOR, now)
        self._marks: deque[CountMark] = deque([(now, 0)], maxlen=MARKS_PER_WINDOW)
        self._gone = 0
        self._since = now
        self._mark_at = now + window_seconds / MARKS_PER_WINDOW
        self._held = 0
        self._widened_at = -math.inf

    def __len__(self) -> int:
        """Number of samples kept."""
        return sum(len(history.samples) for history in self._all())

    def note(self, publisher: str, attributes: Attributes, size_bytes: int, now: float) -> None:
        """Hot path: sample a publication. The attributes are kept as they are, and must not be changed."""
        if now >= self._mark_at:
            self._mark(now)
        history = self._histories.get(publisher) or self._open(publisher, now)
        samples = history.samples
        if len(samples) == samples.maxlen:
            self._held -= samples[0][1]
        samples.append((attributes, size_bytes, now))
        history.count += 1
        self._held += size_bytes
        if self._held > self.most_bytes:
            self._shrink()

    def widened(self, now: float) -> None:
        """Note that the broker asks for more from now on: earlier samples do not show all of what comes now."""
        self._widened_at = now

    def sample_runs(self, now: float) -> tuple[SampleRun, ...]:
        """The samples of each publisher, with its rate at this time."""
        all_changed_at = self._all_changed_at(now)
        return tuple(self._stretch(history, all_changed_at, now) for history in self._all() if history.samples)

    # -- what is kept

    def _all(self) -> Iterable[_PublisherHistory]:
        return (*self._histories.values(), self._others)

    def _open(self, publisher: str, now: float) -> _PublisherHistory:
        if len(self._histories) >= self.publishers:
            return self._others
        # A publisher that is not known has been silent for a window, or since the beginning.
        history = self._histories[publisher] = _PublisherHistory(
            self.width, max(self._since, now - self.window_seconds)
        )
        history.marks.append((now, 0))
        history.first = (now, 0)
        return history

    def _mark(self, now: float) -> None:
        """Mark all counts, and forget publishers that have been silent for a window."""
        self._mark_at = now + self.window_seconds / MARKS_PER_WINDOW
        for publisher in [
            name for name, history in self._histories.items() if history.is_silent(now - self.window_seconds)
        ]:
            gone = self._histories.pop(publisher)
            self._gone += gone.count
            self._held -= sum(size for _, size, _ in gone.samples)
        for history in self._all():
            history.marks.append((now, history.count))
        self._marks.append((now, self._count()))

    def _count(self) -> int:
        return self._gone + sum(history.count for history in self._all())

    def _shrink(self) -> None:
        """Keep only the newer half of every publisher's samples, until they fit into memory."""
        while self._held > self.most_bytes:
            for history in self._all():
                for _ in range((len(history.samples) + 1) // 2):
                    self._held -= history.samples.popleft()[1]

    # -- rates

    def _stretch(self, history: _PublisherHistory, all_changed_at: float | None, now: float) -> SampleRun:
        points = history.points(now - self.window_seconds)
        shortest = self.window_seconds / MARKS_PER_WINDOW
        begin = last_rate_change(points, end := (now, history.count), shortest)
        if begin[0] < history.first[0] <= now - shortest * FIRST_SHARE and (
            change_likelihood_ratio(begin, history.first, end) > CERTAIN_CHANGE
        ):
            begin = history.first
        if all_changed_at is not None and begin[0] < all_changed_at - shortest:
            later = next((point for point in points if point[0] >= all_changed_at), begin)
            if change_likelihood_ratio(begin, later, end) > LIKELY_CHANGE:
                begin = later
        samples = tuple(history.samples)
        recent = sum(came > begin[0] for _, _, came in samples)
        is_widened = begin != points[0] and self._widened_at >= begin[0] - shortest
        if is_widened and recent >= WIDENED_MIN_SAMPLES and has_risen(points[0], begin, end):
            samples = samples[-recent:]
        return SampleRun(rate_between(begin, end), samples, recent)

    def _all_changed_at(self, now: float) -> float | None:
        """When the total rate of all publishers last changed, if it did within the window."""
        oldest = now - self.window_seconds
        points = [point for point in self._marks if point[0] >= oldest] or [self._marks[-1]]
        begin = last_rate_change(points, (now, self._count()), self.window_seconds / MARKS_PER_WINDOW)
        return None if begin == points[0] else begin[0]


def rate_between(begin: CountMark, end: CountMark) -> float:
    """Publications per second between two marks."""
    seconds = end[0] - begin[0]
    return (end[1] - begin[1]) / seconds if seconds > MIN_RATE_SECONDS else 0.0


def has_risen(begin: CountMark, middle: CountMark, end: CountMark) -> bool:
    """Whether the rate after the middle is above that before it."""
    return rate_between(middle, end) > rate_between(begin, middle)


def change_likelihood_ratio(begin: CountMark, middle: CountMark, end: CountMark) -> float:
    """Log likelihood ratio of two rates, before and after the middle, against a single one.

    Arrivals are taken as Poisson. A publisher that keeps to a clock varies less, so a change is only more certain.
    """
    return _likelihood(begin, middle) + _likelihood(middle, end) - _likelihood(begin, end)


def _likelihood(begin: CountMark, end: CountMark) -> float:
    """The log likelihood of this count at its own rate, without the terms that cancel out."""
    count = end[1] - begin[1]
    return count * math.log(count / (end[0] - begin[0])) if count and end[0] - begin[0] > MIN_RATE_SECONDS else 0.0


def last_rate_change(
    points: Sequence[CountMark], end: CountMark, shortest_seconds: float, certain: float = CERTAIN_CHANGE
) -> CountMark:
    """The point since which the rate has been constant: the first of all, or that of the last certain change.

    `points`: times and counts in order, at least one. No rate is estimated over less than `shortest_seconds`.
    """
    begin = points[0]
    while True:
        best, most = begin, _likelihood(begin, end) + certain
        for point in _spaced(points, begin[0], end[0] - shortest_seconds, end[0]):
            if (likelihood := _likelihood(begin, point) + _likelihood(point, end)) > most:
                best, most = point, likelihood
        if best is begin:
            return begin
        begin = best


def _spaced(points: Sequence[CountMark], after: float, before: float, end: float) -> Iterable[CountMark]:
    """Points between two times, newest first, their ages at least `CHANGE_POINT_SPACING` apart as a ratio."""
    ago = 0.0
    for point in reversed(points):
        if after < point[0] <= before and end - point[0] >= ago:
            ago = (end - point[0]) * CHANGE_POINT_SPACING
            yield point
