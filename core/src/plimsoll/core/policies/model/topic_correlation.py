"""Topics whose rates rise together: one edge that has both gets both bursts at once. Tao, Poslad, Bigham 2013, IV.A.

The text does not say how correlation is known. Here a policy may name groups of topics that belong together, and rates
are compared: Pearson's coefficient over the last looks, of topics whose rates change. Looks of a topic are counted from
when it was first seen, since two topics that are subscribed to at one time have not risen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Final

from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec.types.policy import PolicySpec

LOOKS_AT_MOST: Final = 16
LOOKS_NEEDED: Final = 8
"""Common looks of two topics below which nothing is said of them."""

LEAST_CHANGE: Final = 0.1
"""Standard deviation by mean below which a rate is steady: it rises with none."""

TOPICS_COMPARED: Final = 64
"""Topics of which rates are remembered: the busiest ones."""

RateHistory = Mapping[int, tuple[float, ...]]
"""Publications per second by the hash of the topic, at each look since it was first seen, the last look last."""


def with_look(history: RateHistory, rates: Mapping[int, float]) -> dict[int, tuple[float, ...]]:
    """The history after one more look. A topic that is not seen has stopped; later it is forgotten."""
    found = {
        topic: (*history.get(topic, ()), round(rates.get(topic, 0.0), 2))[-LOOKS_AT_MOST:]
        for topic in sorted(history.keys() | rates.keys())
    }
    moving = {topic: series for topic, series in found.items() if any(series)}
    busiest = sorted(moving, key=lambda topic: (-max(moving[topic]), topic))[:TOPICS_COMPARED]
    return {topic: moving[topic] for topic in sorted(busiest)}


def coefficient(one: tuple[float, ...], other: tuple[float, ...]) -> float | None:
    """Pearson's coefficient over the common looks; None if they are few, or one of the rates is steady."""
    looks = min(len(one), len(other))
    if looks < LOOKS_NEEDED:
        return None
    a, b = one[-looks:], other[-looks:]
    means, spreads = (fmean(a), fmean(b)), (pstdev(a), pstdev(b))
    if any(spread < LEAST_CHANGE * mean or not spread for mean, spread in zip(means, spreads, strict=True)):
        return None
    shared = fmean((x - means[0]) * (y - means[1]) for x, y in zip(a, b, strict=True))
    return shared / (spreads[0] * spreads[1])


@dataclass(frozen=True, slots=True)
class TopicCorrelation:
    """`above`: the coefficient from which on two topics are correlated. `groups`: topics that always are, by name."""

    above: float = 0.8
    groups: tuple[tuple[str, frozenset[int]], ...] = ()

    def correlated(self, topic: int, others: Iterable[int], history: RateHistory) -> Iterator[tuple[int, str]]:
        """The topics among others that are correlated with one, each with why."""
        own = history.get(topic)
        for other in others:
            if other == topic:
                continue
            named = next((name for name, group in self.groups if topic in group and other in group), None)
            if named is not None:
                yield other, f"both are of the group {named}"
                continue
            found = None if own is None else coefficient(own, history.get(other, ()))
            if found is not None and found >= self.above:
                yield other, f"their rates rise together, coefficient {found:.2f}"


def correlation_of_spec(policy: PolicySpec | None) -> TopicCorrelation | None:
    """What a policy says of correlated topics; None if it does not keep them apart."""
    own = policy.delay_sensitive if policy is not None and policy.type == "DelaySensitive" else None
    if own is None or not own.correlation.apart:
        return None
    groups = tuple((each.name, frozenset(map(topic_hash, each.topics))) for each in own.correlation.groups)
    return TopicCorrelation(float(own.correlation.above.value), groups)
