"""A fleet in the model of our shuffle, before or after some waves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.rebalancer import FleetSample, Step
from plimsoll.core.policies.shuffle.broker_model import ShuffledBroker
from plimsoll.core.policies.shuffle.waves import brokers_after


@dataclass(frozen=True)
class ShuffleFleet:
    """`sample`: what it was made from; `brokers` and `loads` are by name."""

    sample: FleetSample
    brokers: Mapping[str, ShuffledBroker]
    loads: tuple[BrokerLoad, ...]

    def after(self, step: Step) -> ShuffleFleet:
        """The fleet after a wave."""
        brokers = brokers_after([step.moves], self.brokers)
        return replace(
            self, brokers={one.name: one for one in brokers}, loads=tuple(one.predicted() for one in brokers)
        )
