"""Who publishes what, how fast and when, and who subscribes to what: the traffic of a world."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.core.predicates import Attributes


@dataclass(frozen=True, slots=True)
class RateStep:
    """From `at_seconds` on, a publisher publishes `per_second` publications a second; 0: none."""

    at_seconds: float
    per_second: float


@dataclass(frozen=True, slots=True)
class TrafficPublisher:
    """Publishes `contents` in order at even intervals, and starts over behind the last; `head`: where it is connected.

    `rates` are in ascending order of time. `first_seconds`: when its first publication is due. `times`, if any: when
    each publication is due, ascending, instead of `rates` and `first_seconds`; it ends behind the last.
    `payload_sizes`: of its publications in turn, in bytes, instead of `payload_bytes`.
    """

    name: str
    head: str
    contents: tuple[Attributes, ...]
    rates: tuple[RateStep, ...]
    first_seconds: float = 0.0
    payload_bytes: int = 0
    times: tuple[float, ...] = ()
    payload_sizes: tuple[int, ...] = ()

    @property
    def begins_at(self) -> float:
        """When its first publication is due."""
        return self.times[0] if self.times else self.first_seconds

    @property
    def different_publications(self) -> int:
        """After how many publications it starts over."""
        return math.lcm(len(self.contents), len(self.payload_sizes) or 1)

    def size_of_payload(self, number: int) -> int:
        """The payload of its `number`-th publication, from 0, in bytes."""
        return self.payload_sizes[number % len(self.payload_sizes)] if self.payload_sizes else self.payload_bytes

    def publishes_at(self, at: float) -> bool:
        """Whether something is published at a time at which a publication may be due."""
        return bool(self.times) or self.rate(at) > 0

    def rate(self, at: float) -> float:
        """Publications per second at this time, by `rates`."""
        found = 0.0
        for step in self.rates:
            if step.at_seconds > at:
                break
            found = step.per_second
        return found

    def after(self, at: float) -> float:
        """When the publication after the one at `at` is due; infinite if none is.

        The rest of an interval that a change of rate divides goes by at the new rate.
        """
        if self.times:
            following = bisect_right(self.times, at)
            return self.times[following] if following < len(self.times) else math.inf
        left, now = 1.0, at
        for end in (*(step.at_seconds for step in self.rates if step.at_seconds > at), math.inf):
            rate = self.rate(now)
            if rate > 0 and now + left / rate <= end:
                return now + left / rate
            if math.isinf(end):
                break
            left -= rate * (end - now)
            now = end
        return math.inf


@dataclass(frozen=True, slots=True)
class TrafficSubscriber:
    """Joins cluster `cluster` at `joins_at` seconds: at the edge `prefer` if one is named, else where it is placed.

    It leaves at `leaves_at`. `location`: where it is, for policies that place by distance.
    """

    name: str
    cluster: str
    subscriptions: tuple[str, ...]
    joins_at: float = 0.0
    leaves_at: float = math.inf
    prefer: str = ""
    location: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Publishers and subscribers, each name once."""

    publishers: Sequence[TrafficPublisher]
    subscribers: Sequence[TrafficSubscriber]

    def shifted(self, seconds: float) -> Traffic:
        """The same traffic, all of it this much later."""
        return Traffic(
            [
                replace(
                    each, first_seconds=each.first_seconds + seconds,
                    times=tuple(at + seconds for at in each.times),
                    rates=tuple(replace(step, at_seconds=step.at_seconds + seconds) for step in each.rates),
                )
                for each in self.publishers
            ],
            [
                replace(each, joins_at=each.joins_at + seconds, leaves_at=each.leaves_at + seconds)
                for each in self.subscribers
            ],
        )  # fmt: skip
