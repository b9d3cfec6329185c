"""Fleets to shuffle: subscribers with the samples that they match, on brokers of unequal hardware, and load reports."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic, union_bits
from plimsoll.core.policies.shuffle import ShufflePlan
from plimsoll.core.policies.shuffle.plan import highest_metric

FACTOR = BalancingParameters().normalization_seconds
SIZE_BYTES = 100.0
Places = Mapping[str, str]
"""The broker of each subscriber."""


@dataclass(frozen=True)
class ShuffleFleet:
    """`wants`: the samples that each profile key matches; `keys`: the key of each subscriber; `costs`: seconds per
    publication and subscription at each broker; `bandwidths`: bytes per second."""

    width: int
    wants: Mapping[str, int]
    keys: Mapping[str, str]
    costs: Mapping[str, float]
    bandwidths: Mapping[str, float]

    @property
    def traffic(self) -> SampledTraffic:
        return SampledTraffic([SampleBlock(self.width, 1.0, SIZE_BYTES)])

    def loads(self, places: Places) -> list[BrokerLoad]:
        """The load report of each broker with these placements."""
        traffic, found = self.traffic, []
        for broker, cost in self.costs.items():
            keys = [self.keys[name] for name, at in places.items() if at == broker]
            rate = traffic.rate(union_bits(self.wants[key] for key in set(keys)))
            sent = sum(traffic.rate(self.wants[key]) for key in keys)
            delay = cost * len(keys)
            found.append(
                BrokerLoad(
                    name=broker, cluster="c", subscribers=len(keys), subscriptions=len(keys), input_rate=rate,
                    output_rate=sent, output_bytes_per_second=sent * SIZE_BYTES, match_delay_seconds=delay,
                    output_utilization=sent * SIZE_BYTES / self.bandwidths[broker], input_utilization=rate * delay,
                    bandwidth=self.bandwidths[broker], capacity=min(self.costs.values()) / cost,
                )
            )  # fmt: skip
        return found

    def profiles(self, places: Places) -> dict[str, SubscriptionProfile]:
        """The profile of each broker, with all other brokers as takers."""
        at: dict[str, dict[str, list[str]]] = {broker: {} for broker in self.costs}
        for name, broker in places.items():
            at[broker].setdefault(self.keys[name], []).append(name)
        covers = {broker: union_bits(self.wants[key] for key in served) for broker, served in at.items()}
        return {
            broker: SubscriptionProfile(
                self.traffic,
                tuple(ProfileRow(key, self.wants[key], tuple(sorted(names))) for key, names in sorted(served.items())),
                takers=tuple((name, bits) for name, bits in covers.items() if name != broker),
            )
            for broker, served in at.items()
        }

    def high(self, places: Places) -> float:
        """The highest metric of all brokers: what a shuffle lowers."""
        return max(highest_metric(load.measures, FACTOR)[0] for load in self.loads(places))

    def lpt(self) -> dict[str, str]:
        """BAD 2019: subscribers by falling weight, each to the broker with the least load for its capacity."""
        traffic, carried, places = self.traffic, dict.fromkeys(self.costs, 0.0), {}
        weights = {key: traffic.rate(bits) for key, bits in self.wants.items()}
        for name in sorted(self.keys, key=lambda each: (-weights[self.keys[each]], each)):
            broker = min(carried, key=lambda each: (carried[each] * self.costs[each], each))
            carried[broker] += 2 * weights[self.keys[name]]  # BAD 2019: incoming and outgoing
            places[name] = broker
        return places


def after(places: Places, plan: ShufflePlan) -> dict[str, str]:
    """The placements when the plan has been carried out."""
    return {**places, **{name: move.target for move in plan.moves for name in move.subscribers}}


def large(
    seed: int, subscribers: int, brokers: int, keys: int, width: int = 640
) -> tuple[ShuffleFleet, dict[str, str]]:
    """Most subscribers are at the first broker, which is just full; a few keys have many subscribers."""
    draw = random.Random(seed)
    wants = {f"k{n}": sum(1 << bit for bit in draw.sample(range(width), draw.randint(1, 20))) for n in range(keys)}
    asks = {f"s{n}": f"k{n if keys >= subscribers else int(keys * draw.random() ** 2)}" for n in range(subscribers)}
    places = {name: f"b{0 if draw.random() < 0.6 else draw.randrange(brokers)}" for name in asks}
    first = sum(broker == "b0" for broker in places.values())
    costs = {f"b{n}": draw.choice([0.5, 1.0, 2.0]) * 0.7 / first / width for n in range(brokers)}
    bandwidths = {f"b{n}": draw.choice([1.0, 2.0]) * subscribers * 630.0 for n in range(brokers)}
    return ShuffleFleet(width, wants, asks, costs, bandwidths), places


def small(seed: int, subscribers: int = 6, brokers: int = 3, width: int = 6) -> tuple[ShuffleFleet, dict[str, str]]:
    """Small enough that every assignment can be tried."""
    draw = random.Random(seed)
    wants = {f"k{n}": draw.randrange(1, 1 << width) for n in range(draw.randint(2, subscribers))}
    asks = {f"s{n}": draw.choice(sorted(wants)) for n in range(subscribers)}
    places = {name: f"b{0 if draw.random() < 0.7 else draw.randrange(brokers)}" for name in asks}
    costs = {f"b{n}": draw.choice([0.005, 0.01, 0.02]) for n in range(brokers)}
    bandwidths = {f"b{n}": draw.choice([4_000.0, 10_000.0]) for n in range(brokers)}
    return ShuffleFleet(width, wants, asks, costs, bandwidths), places
