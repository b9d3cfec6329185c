"""A tree of heads with publishers and subscribers, and what each head carries of them: exact, by hand.

It shares no code with the policy: every publication is followed over every link that takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from plimsoll.core.policies.delay_sensitive.head_fleet import RECORD_BYTES, HeadFleet
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad


@dataclass(frozen=True)
class WorldPublisher:
    """`at`: its head. It publishes one topic, `rate` a second, of `size` bytes."""

    at: str
    topic: int
    rate: float = 10.0
    size: float = 944.0


@dataclass(frozen=True)
class HeadWorld:
    """`links`: pairs of heads. `takers`: by topic and head, how many of its edges take it. `bandwidths`: of each head,
    downlink and uplink in bytes per second."""

    links: tuple[tuple[str, str], ...]
    publishers: Mapping[str, WorldPublisher]
    takers: Mapping[int, Mapping[str, int]]
    bandwidths: Mapping[str, tuple[float, float]]

    @property
    def heads(self) -> list[str]:
        return sorted(self.bandwidths)

    def neighbors(self) -> dict[str, frozenset[str]]:
        return {head: frozenset(b if a == head else a for a, b in self.links if head in (a, b)) for head in self.heads}

    def loads(self) -> dict[str, BrokerLoad]:
        """The exact load of each head."""
        into, out = dict.fromkeys(self.heads, 0.0), dict.fromkeys(self.heads, 0.0)
        for one in self.publishers.values():
            each = one.rate * (one.size + RECORD_BYTES)
            into[one.at] += each
            for sender, receiver in self._way(one.at, "", one.topic):
                out[sender] += each
                into[receiver] += each
            for head, edges in self.takers.get(one.topic, {}).items():
                out[head] += edges * each
        return {
            head: BrokerLoad(
                name=head, input_bytes_per_second=into[head], output_bytes_per_second=out[head],
                downlink_bandwidth=down, bandwidth=up, downlink_utilization=into[head] / down,
                input_utilization=into[head] / down,
                output_utilization=out[head] / up,
            )
            for head, (down, up) in self.bandwidths.items()
        }  # fmt: skip

    def rows(self, head: str) -> dict[str, tuple[PublisherTopicLoad, ...]]:
        """What the head reports of its publishers."""
        return {name: (self._row(name, one),) for name, one in self.publishers.items() if one.at == head}

    def fleet(self, source: str, takes: Iterable[str] | None = None, *, is_letter: bool = False) -> HeadFleet:
        """What a plan for this head is made of."""
        others = frozenset(self.heads) - {source} if takes is None else frozenset(takes)
        return HeadFleet(source, self.loads(), self.neighbors(), self.rows(source), others, is_letter=is_letter)

    def moved(self, names: Iterable[str], target: str) -> HeadWorld:
        """The world once these publishers are at another head."""
        now = {name: replace(self.publishers[name], at=target) for name in names}
        return replace(self, publishers={**self.publishers, **now})

    def _row(self, name: str, one: WorldPublisher) -> PublisherTopicLoad:
        takers = self.takers.get(one.topic, {})
        ahead = [other for other in sorted(self.neighbors()[one.at]) if self._is_wanted(other, one.at, one.topic)]
        local = takers.get(one.at, 0)
        return PublisherTopicLoad(
            name, one.topic, one.rate, one.rate * one.size, one.rate if local else 0.0, one.rate if ahead else 0.0,
            local * one.rate * one.size, len(ahead) * one.rate * one.size, ahead[0] if len(ahead) == 1 else "",
        )  # fmt: skip

    def _way(self, head: str, came_from: str, topic: int) -> Iterable[tuple[str, str]]:
        """The links that take a publication, from where it is accepted."""
        for other in sorted(self.neighbors()[head] - {came_from}):
            if self._is_wanted(other, head, topic):
                yield head, other
                yield from self._way(other, head, topic)

    def _is_wanted(self, head: str, came_from: str, topic: int) -> bool:
        if self.takers.get(topic, {}).get(head):
            return True
        return any(self._is_wanted(other, head, topic) for other in self.neighbors()[head] - {came_from})
