"""Worlds of BAD 2019: channels, who subscribes to them with which parameters, and the results that they publish.

A back-end subscription is a channel with values of its parameters, here the text of one subscription. A channel runs
at its period; a result is a publication of its own size that exactly one back-end subscription matches, and there is
none for parameters without a subscriber.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.predicates import Attributes
from plimsoll.core.spec.brokers import head_name
from plimsoll.simulator.queueing.traffic import Traffic, TrafficPublisher, TrafficSubscriber

CLUSTER = "alerts"

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a back-end subscription asks for: a channel with values of its parameters, each a name and a number."""

    channel: str
    values: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The subscription."""
        return ",".join([f"[channel,=,'{self.channel}']", *(f"[{name},=,{value}]" for name, value in self.values)])

    @property
    def attributes(self) -> Attributes:
        """Those of a result."""
        return {"channel": self.channel, **dict(self.values)}


@dataclass(frozen=True, slots=True)
class ChannelSubscriber:
    """A subscriber: where and when it joins, and what it asks for."""

    name: str
    location: Point
    joins_at: float
    parameters: tuple[Parameters, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """The results for one back-end subscription: when, and how large."""

    times: tuple[float, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class ChannelWorld:
    """Brokers by name with their places, subscribers, and results of every back-end subscription that is asked for."""

    brokers: Mapping[str, Point]
    subscribers: Sequence[ChannelSubscriber]
    results: Mapping[Parameters, Results]
    seconds: float

    @property
    def front_end(self) -> int:
        """How many front-end subscriptions there are."""
        return sum(len(each.parameters) for each in self.subscribers)

    @property
    def back_end(self) -> int:
        """How many back-end subscriptions there are, whether or not they have results."""
        return len(asked_for(self.subscribers))

    def traffic(self) -> Traffic:
        """As the queueing model takes it: a publisher for each back-end subscription with results."""
        head = head_name(CLUSTER)
        publishers = [
            TrafficPublisher(
                f"p{number}", head, (parameters.attributes,), (), times=results.times, payload_sizes=results.sizes
            )
            for number, (parameters, results) in enumerate(self.results.items()) if results.times
        ]  # fmt: skip
        subscribers = [
            TrafficSubscriber(
                each.name, CLUSTER, tuple(one.text for one in each.parameters), each.joins_at, location=each.location
            )
            for each in self.subscribers
        ]
        return Traffic(publishers, subscribers)


def asked_for(subscribers: Iterable[ChannelSubscriber]) -> list[Parameters]:
    """The distinct back-end subscriptions, in order."""
    return sorted({one for each in subscribers for one in each.parameters}, key=lambda one: one.text)


def gathered(drawn: random.Random, places: Sequence[Point], deviation: float) -> Point:
    """A place in the unit square near one of these, each as likely as the others."""
    x, y = drawn.choice(places)
    return _inside(drawn.gauss(x, deviation)), _inside(drawn.gauss(y, deviation))


def _inside(value: float) -> float:
    return min(max(value, 0.0), 0.999999)
