"""Fleets made by hand: loads follow from the served subscribers, so that predictions can be worked out on paper.

A world has traffic: samples, each of which stands for one publication a second of 100 bytes. A broker takes in what
any of its subscribers matches, and takes `cost` seconds for a publication for each subscription (PADRES 2006, eq. 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from plimsoll.core.policies.model.broker_pair import BrokerPair
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic, union_bits

SIZE_BYTES = 100.0


def pair_of(profile: SubscriptionProfile) -> BrokerPair:
    """Two idle brokers while moves of a profile are considered: what a row takes along does not depend on loads."""
    parameters = BalancingParameters()
    source, target = BrokerLoad(name="s"), BrokerLoad(name="t")
    return BrokerPair(source, target, profile, parameters, parameters.local_trigger, {})


@dataclass(frozen=True)
class Broker:
    """`cost`: seconds per publication and subscription; `bandwidth`: bytes per second; `served`: key to subscribers."""

    cost: float = 0.01
    bandwidth: float = 10_000.0
    served: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """`wants`: the samples that a key matches, as bits over `width` samples."""

    width: int
    wants: Mapping[str, int]
    brokers: Mapping[str, Broker]

    @property
    def traffic(self) -> SampledTraffic:
        return SampledTraffic([SampleBlock(self.width, rate=1.0, size_bytes=SIZE_BYTES)])

    def load(self, name: str, time: float = 0.0) -> BrokerLoad:
        """What a broker reports, by the definitions and from its subscribers alone."""
        broker = self.brokers[name]
        count = sum(len(names) for names in broker.served.values())
        input_rate = self.traffic.rate(union_bits(self.wants[key] for key, names in broker.served.items() if names))
        output_rate = sum(self.traffic.rate(self.wants[key]) * len(names) for key, names in broker.served.items())
        delay = broker.cost * count
        return BrokerLoad(
            name=name, cluster="c", time=time, subscribers=count, subscriptions=count, bandwidth=broker.bandwidth,
            input_rate=input_rate, output_rate=output_rate, output_bytes_per_second=output_rate * SIZE_BYTES,
            output_utilization=output_rate * SIZE_BYTES / broker.bandwidth, match_delay_seconds=delay,
            input_utilization=input_rate * delay, capacity=0.01 / broker.cost,
        )  # fmt: skip

    def profile(self, source: str, target: str) -> SubscriptionProfile:
        rows = [ProfileRow(key, self.wants[key], names) for key, names in self.brokers[source].served.items() if names]
        accepting = union_bits(self.wants[key] for key, names in self.brokers[target].served.items() if names)
        return SubscriptionProfile(self.traffic, tuple(sorted(rows, key=lambda row: row.key)), accepting)

    def after(self, plan: OffloadPlan) -> World:
        """With all moves of a plan made."""
        world = self
        for move in plan.moves:
            source, target = world.brokers[move.source], world.brokers[move.target]
            left = tuple(name for name in source.served[move.key] if name not in move.subscribers)
            come = tuple(sorted({*target.served.get(move.key, ()), *move.subscribers}))
            brokers = {
                move.source: replace(source, served={**source.served, move.key: left}),
                move.target: replace(target, served={**target.served, move.key: come}),
            }
            world = replace(world, brokers={**world.brokers, **brokers})
        return world


def named(prefix: str, count: int) -> tuple[str, ...]:
    """This number of subscribers."""
    return tuple(f"{prefix}{number:03d}" for number in range(count))
