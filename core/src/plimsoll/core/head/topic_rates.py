"""Rates of topics at a head over its last load reports, by which correlated topics are known when they are placed."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.policies.model.topic_correlation import RateHistory, with_look


class TopicRates:
    """`history`: publications per second that this head has accepted, by topic."""

    def __init__(self) -> None:
        self.history: RateHistory = {}

    def look(self, loads: Iterable[PublisherTopicLoad]) -> None:
        """Note what publishers brought in the interval that ends now."""
        rates: dict[int, float] = {}
        for each in loads:
            if each.topic is not None:
                rates[each.topic] = rates.get(each.topic, 0.0) + each.input_rate
        self.history = with_look(self.history, rates)

    def clear(self) -> None:
        """Forget all rates: topics are the values of another attribute now."""
        self.history = {}
