"""Deliveries that came later than their subscriptions require, as this process can tell.

A delay is the time of this host's clock when a delivery reaches the library, less the time of the publisher's host when
it was published. Between two hosts it is as wrong as their clocks are apart. A delay below 0 shows that they are, and
is counted for itself; a clock that is ahead shows in no way. So on one host these counts are exact, and elsewhere no
better than the clocks. Brokers compare no clocks: they measure round trips and queues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from plimsoll.core.client import Delivery
from plimsoll.core.client.events import Item
from plimsoll.core.client.subscriber import ClientSubscriber
from plimsoll.core.protocol.subscription_options import LATENCY, required_latency
from plimsoll.core.protocol.wire import Scalar

UNITS_REMEMBERED: Final = 1024


def wall_clock_us() -> int:
    """Microseconds since 1970, as publishers stamp publications."""
    return time.time_ns() // 1000


class Lateness:
    """Counts for one subscriber; costs nothing as long as no subscription requires a latency."""

    def __init__(self, subscriber: ClientSubscriber, clock_us: Callable[[], int] = wall_clock_us) -> None:
        self._subscriber, self._clock_us = subscriber, clock_us
        self._is_required = False
        self._required: dict[ClientSubscriber, tuple[int, int, float]] = {}
        self.late = self.measured = self.before_their_time = 0
        self.longest_seconds = 0.0

    def expect(self, options: Mapping[str, Scalar]) -> None:
        """A subscription has these options: if it requires a latency, look at deliveries from here on."""
        self._is_required = self._is_required or LATENCY in options

    def note(self, items: Iterable[Item]) -> None:
        """Take the deliveries that have just come."""
        if not self._is_required:
            return
        now_us = self._clock_us()
        for item in items:
            if isinstance(item, Delivery) and (required := self._required_of(item)):
                self._count((now_us - item.sent_us) / 1e6, required)

    def _count(self, seconds: float, required: float) -> None:
        self.measured += 1
        self.before_their_time += seconds < 0.0
        self.late += seconds > required
        self.longest_seconds = max(self.longest_seconds, seconds)

    def _required_of(self, item: Delivery) -> float:
        """What the unit that asks for its topic requires, or the subscriber as a whole; 0 if nothing."""
        topics = self._subscriber.topics
        asking = self._subscriber if topics is None else topics.unit_of(item) or self._subscriber
        own = asking.subscription_list
        version, count, found = self._required.get(asking, (-1, -1, 0.0))
        if (version, count) != (own.version, len(own.items)):
            given = [seconds for each in own.items.values() if (seconds := required_latency(each.options)) is not None]
            found = min(given, default=0.0)
            if len(self._required) >= UNITS_REMEMBERED:
                self._required.clear()
            self._required[asking] = (own.version, len(own.items), found)
        return found

    def statistics(self) -> dict[str, Any]:
        """Of the deliveries that were timed, those that were late, the longest delay, and how many were below 0."""
        return {
            "timed_deliveries": self.measured,
            "late_deliveries": self.late,
            "delay_max_seconds": self.longest_seconds,
            "delays_below_zero": self.before_their_time,
        }
