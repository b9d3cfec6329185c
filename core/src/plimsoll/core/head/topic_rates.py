"""Rates of topics over a head's last load reports, by which correlated topics are known when they are placed.

A topic may be published at several heads. Heads tell their neighbours what is published on their side of the tree, so
that each knows the busiest topics of the fleet, and those for which the first subscriber here asks have a history.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.policies.model.topic_correlation import TOPICS_COMPARED, RateHistory, with_look

TOLD_AT_MOST: Final = TOPICS_COMPARED
"""Rates in one message: the busiest topics."""

Rates = Mapping[int, float]
"""Publications per second, by the hash of the topic."""


class TopicRates:
    """`history`: publications per second that all heads have accepted, by topic, as far as they are known here.

    `own`: those of this head, in its last report; `elsewhere`: those of other heads, as their neighbours told them.
    """

    def __init__(self) -> None:
        self.history: RateHistory = {}
        self.own: Rates = {}
        self.elsewhere: Rates = {}

    def look(self, loads: Iterable[PublisherTopicLoad]) -> None:
        """Note what publishers brought in the interval that ends now."""
        self.own = summed({each.topic: each.input_rate} for each in loads if each.topic is not None)
        self.history = with_look(self.history, summed([self.own, self.elsewhere]))

    def clear(self) -> None:
        """Forget all rates: topics are the values of another attribute now."""
        self.history, self.own, self.elsewhere = {}, {}, {}


def summed(parts: Iterable[Rates]) -> dict[int, float]:
    """The rates of several places together."""
    found: dict[int, float] = {}
    for part in parts:
        for topic, rate in part.items():
            found[topic] = found.get(topic, 0.0) + rate
    return found


def told_rates(rates: Rates) -> list[tuple[int, float]]:
    """The busiest topics as a message has them."""
    busiest = sorted(rates.items(), key=lambda item: (-item[1], item[0]))[:TOLD_AT_MOST]
    return [(topic, round(rate, 3)) for topic, rate in busiest if rate > 0.0]


def heard_rates(told: Iterable[tuple[int, float]]) -> dict[int, float]:
    """What a neighbour has told; rates that cannot be are left out."""
    possible = [(topic, rate) for topic, rate in told if 0.0 <= rate < math.inf]
    return dict(possible[:TOLD_AT_MOST])
