"""Deliveries of topics with deadlines that came too late, from the journals: by topic, and over time.

A delivery is late if more than the required latency lies between the publisher's call and the subscriber's callback.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.core.verify.observations import DeliveryObserved, PublicationIdentity, PublicationObserved
from plimsoll.demo.journal import read_journal
from plimsoll.demo.workload import TOPIC


@dataclass(slots=True)
class TopicLateness:
    """Of one topic: deliveries, those that were late, and the longest delay; by second of the traffic, too."""

    delivered: int = 0
    late: int = 0
    longest_seconds: float = 0.0
    late_by_second: Counter[int] = field(default_factory=Counter)
    longest_by_second: dict[int, float] = field(default_factory=dict)

    def take(self, second: int, delay_seconds: float, required_seconds: float) -> None:
        """Count a delivery that came in this second."""
        self.delivered += 1
        self.longest_seconds = max(self.longest_seconds, delay_seconds)
        self.longest_by_second[second] = max(self.longest_by_second.get(second, 0.0), delay_seconds)
        if delay_seconds > required_seconds:
            self.late += 1
            self.late_by_second[second] += 1


Misses = Mapping[str, TopicLateness]
"""By topic."""


def misses_of(
    required: Mapping[str, float], start: float, publishing: Iterable[Path], subscribing: Iterable[Path]
) -> dict[str, TopicLateness]:
    """Read the journals of a run. `required`: seconds by topic; `start`: of the traffic, on the journals' clock."""
    published: dict[PublicationIdentity, tuple[str, float]] = {}
    for path in publishing:
        for seen in read_journal(path):
            if isinstance(seen, PublicationObserved) and (topic := str(seen.attributes.get(TOPIC))) in required:
                published[seen.publisher, seen.incarnation, seen.seq] = (topic, seen.at)
    found: defaultdict[str, TopicLateness] = defaultdict(TopicLateness)
    for path in subscribing:
        for seen in read_journal(path):
            if isinstance(seen, DeliveryObserved) and seen.publication in published:
                topic, at = published[seen.publication]
                found[topic].take(int(seen.at - start), seen.at - at, required[topic])
    return {topic: found[topic] for topic in required}


def late_in_all(misses: Misses) -> int:
    """Late deliveries of all topics."""
    return sum(each.late for each in misses.values())


def late_over_time(misses: Misses) -> list[tuple[float, float]]:
    """Late deliveries of all topics in each second from the first to the last with a delivery."""
    late: Counter[int] = Counter()
    for each in misses.values():
        late.update(each.late_by_second)
    seconds = [second for each in misses.values() for second in each.longest_by_second]
    return [(float(second), float(late[second])) for second in range(min(seconds), max(seconds) + 1)] if seconds else []
