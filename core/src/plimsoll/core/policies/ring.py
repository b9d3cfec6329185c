"""Ring: the last W publications of every publisher, kept always, each standing for its share of its publisher's rate.

Where PRESS looks at whatever comes next, a ring has looked already: nobody waits for samples, a slow publisher is
seen as well as a fast one, and rates are counted over minutes. A rate is counted since it last changed, as far as that
can be told from noise, and at most over the window.

Memory is bounded: W samples of each publisher, so many publishers, so many bytes. Publishers beyond are kept
together, in one ring of their own. Who is silent for a window is forgotten.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from plimsoll.core.policies.sampling import INSTANT, Estimator, Sample, Stretch
from plimsoll.core.predicates.subscription import Attributes

WINDOW_SECONDS = 600.0
MARKS = 100
"""Counts are written down so many times in a window; a rate is told from fewer seconds than one of these never."""

CERTAIN = 8.0
"""A publisher's rate has changed if that is more likely than that it has not by this, in units of log likelihood.

By chance alone that happens to about one publisher in a thousand. At 6 it is one in two hundred, and as it is mostly a
fast one that seems to have stopped, sets are then off by several percent in a run of ten."""

LIKELY = 1.0
"""The same for one of many publishers, where all together have changed at that time for certain."""

STEP = 1.15
"""How far apart the times are at which a change is looked for: each is this much longer ago than the one before."""

TOGETHER = 4
"""Publishers beyond the most have a ring of this many times W in common."""

FEWEST_WIDENED = 8
"""As many samples are enough for a publisher of which a broker has begun to take in more."""

Count = tuple[float, int]
"""A time, and how many had come by then."""


class _Heard:
    """One publisher: its last publications, how many there were, and how many there had been at each mark."""

    __slots__ = ("count", "marks", "samples")

    def __init__(self, width: int, since: float) -> None:
        self.samples: deque[Sample] = deque(maxlen=width)
        self.count = 0
        self.marks: deque[Count] = deque([(since, 0)], maxlen=MARKS)

    def is_silent(self, since: float) -> bool:
        """Whether nothing has come since then."""
        return self.samples[-1][2] < since if self.samples else self.marks[0][1] == self.count

    def points(self, oldest: float) -> list[Count]:
        """Times since `oldest` with the counts at them: each sample that is still there, and marks from before those.

        Where there are none, the last before.
        """
        before = self.count - len(self.samples)
        first = self.samples[0][2] if self.samples else math.inf
        found = [mark for mark in self.marks if mark[0] < first]
        found += [(came, before + i + 1) for i, (_, _, came) in enumerate(self.samples)]
        return [point for point in found if point[0] >= oldest] or found[-1:]


class Ring(Estimator):
    """Notes every publication that a broker takes in; has a profile of them at any time.

    Args:
        width: W, samples of each publisher.
        window_seconds: over how long a rate is counted if it does not change.
        now: when the broker began to take in, seconds.
        publishers: how many have a ring of their own.
        most_bytes: of all samples together, as large as publications are on the wire.

    """

    __slots__ = (
        "_gone", "_heard", "_held", "_mark_at", "_marks", "_others", "_since", "_widened_at",
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
        self._heard: dict[str, _Heard] = {}
        self._others = _Heard(width * TOGETHER, now)
        self._marks: deque[Count] = deque([(now, 0)], maxlen=MARKS)
        self._gone = 0
        self._since = now
        self._mark_at = now + window_seconds / MARKS
        self._held = 0
        self._widened_at = -math.inf

    def __len__(self) -> int:
        """Samples that are kept."""
        return sum(len(heard.samples) for heard in self._all())

    def note(self, publisher: str, attributes: Attributes, size_bytes: int, now: float) -> None:
        """Hot path: a publication came in. The attributes are kept as they are and must not be changed."""
        if now >= self._mark_at:
            self._mark(now)
        heard = self._heard.get(publisher) or self._open(publisher, now)
        samples = heard.samples
        if len(samples) == samples.maxlen:
            self._held -= samples[0][1]
        samples.append((attributes, size_bytes, now))
        heard.count += 1
        self._held += size_bytes
        if self._held > self.most_bytes:
            self._shrink()

    def widened(self, now: float) -> None:
        """The broker asks for more from now on: what came before does not show all of what comes now."""
        self._widened_at = now

    def stretches(self, now: float) -> tuple[Stretch, ...]:
        """What has been kept, by publisher, each with its rate at this time."""
        all_changed_at = self._all_changed_at(now)
        return tuple(self._stretch(heard, all_changed_at, now) for heard in self._all() if heard.samples)

    # -- what is kept

    def _all(self) -> Iterable[_Heard]:
        return (*self._heard.values(), self._others)

    def _open(self, publisher: str, now: float) -> _Heard:
        if len(self._heard) >= self.publishers:
            return self._others
        # Whoever is not known has been silent for a window, or since the beginning.
        heard = self._heard[publisher] = _Heard(self.width, max(self._since, now - self.window_seconds))
        return heard

    def _mark(self, now: float) -> None:
        """Write down all counts; forget who has been silent for a window."""
        self._mark_at = now + self.window_seconds / MARKS
        for publisher in [name for name, heard in self._heard.items() if heard.is_silent(now - self.window_seconds)]:
            gone = self._heard.pop(publisher)
            self._gone += gone.count
            self._held -= sum(size for _, size, _ in gone.samples)
        for heard in self._all():
            heard.marks.append((now, heard.count))
        self._marks.append((now, self._count()))

    def _count(self) -> int:
        return self._gone + sum(heard.count for heard in self._all())

    def _shrink(self) -> None:
        """Publications are larger than there is memory for: every publisher keeps the newer half of its samples."""
        while self._held > self.most_bytes:
            for heard in self._all():
                for _ in range((len(heard.samples) + 1) // 2):
                    self._held -= heard.samples.popleft()[1]

    # -- rates

    def _stretch(self, heard: _Heard, all_changed_at: float | None, now: float) -> Stretch:
        points = heard.points(now - self.window_seconds)
        shortest = self.window_seconds / MARKS
        begin = last_change(points, (now, heard.count), shortest)
        if all_changed_at is not None and begin[0] < all_changed_at - shortest:
            later = next((point for point in points if point[0] >= all_changed_at), begin)
            if gain(begin, later, (now, heard.count)) > LIKELY:
                begin = later
        samples = tuple(heard.samples)
        recent = sum(came > begin[0] for _, _, came in samples)
        is_widened = begin != points[0] and self._widened_at >= begin[0] - shortest
        if is_widened and recent >= FEWEST_WIDENED and rose(points[0], begin, (now, heard.count)):
            samples = samples[-recent:]
        return Stretch(rate_between(begin, (now, heard.count)), samples, recent)

    def _all_changed_at(self, now: float) -> float | None:
        """When all publishers together last came to publish more or less than before, if they did within the window."""
        oldest = now - self.window_seconds
        points = [point for point in self._marks if point[0] >= oldest] or [self._marks[-1]]
        begin = last_change(points, (now, self._count()), self.window_seconds / MARKS)
        return None if begin == points[0] else begin[0]


def rate_between(begin: Count, end: Count) -> float:
    """How many came a second."""
    seconds = end[0] - begin[0]
    return (end[1] - begin[1]) / seconds if seconds > INSTANT else 0.0


def rose(begin: Count, middle: Count, end: Count) -> bool:
    """Whether more came a second after the middle than before."""
    return rate_between(middle, end) > rate_between(begin, middle)


def gain(begin: Count, middle: Count, end: Count) -> float:
    """How much likelier two rates are, one before the middle and one after, than one: a ratio of log likelihoods.

    Arrivals are taken for Poisson; those of a publisher that keeps to a clock vary less, which only makes it surer.
    """
    return _likelihood(begin, middle) + _likelihood(middle, end) - _likelihood(begin, end)


def _likelihood(begin: Count, end: Count) -> float:
    """The log likelihood of this many at their own rate, but for terms that fall out."""
    count = end[1] - begin[1]
    return count * math.log(count / (end[0] - begin[0])) if count and end[0] - begin[0] > INSTANT else 0.0


def last_change(points: Sequence[Count], end: Count, shortest_seconds: float, certain: float = CERTAIN) -> Count:
    """From which point on the rate has been the same: the first of all, or where it last changed for certain.

    `points`: times and counts in order, at least one. What came within `shortest_seconds` tells no rate.
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


def _spaced(points: Sequence[Count], after: float, before: float, end: float) -> Iterable[Count]:
    """Points between two times, newest first, each at least `STEP` times as long ago as the one before."""
    ago = 0.0
    for point in reversed(points):
        if after < point[0] <= before and end - point[0] >= ago:
            ago = (end - point[0]) * STEP
            yield point
