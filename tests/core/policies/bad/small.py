"""Small fleets of BAD, written as texts: `B1="ab a"` is a broker with two subscribers, of a and b, and of a."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.core.policies.bad.dynamic_moves import imbalance_of
from plimsoll.core.policies.bad.fleet import BadFleet, bad_fleet
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.rebalancer import FleetSample, Step

RATES = {"a": 10.0, "b": 6.0, "c": 4.0, "d": 2.0}


def profile(broker: str, subscribers: str, rates: dict[str, float] = RATES) -> SubscriptionProfile:
    """One sample of one byte per letter, as many a second as its rate; subscribers are numbered by their place."""
    texts = sorted(rates)
    traffic = SampledTraffic(SampleBlock(1, rates[text], 1.0) for text in texts)
    bit = {text: 1 << number for number, text in enumerate(texts)}
    wants = [(f"{broker}-{number}", letters) for number, letters in enumerate(subscribers.split())]
    asked = [(name, letters, sum(bit[letter] for letter in letters), len(letters)) for name, letters in wants]
    rows = tuple(_with_texts(row) for row in profile_rows(asked))
    return SubscriptionProfile(traffic, rows, each=tuple(sorted(bit.items())))


def _with_texts(row: ProfileRow) -> ProfileRow:
    return replace(row, texts=tuple(sorted(set(row.key))))


def sample(rates: dict[str, float] = RATES, /, **brokers: str) -> FleetSample:
    loads = tuple(BrokerLoad(name=name) for name in sorted(brokers))
    return FleetSample(loads, {name: profile(name, some, rates) for name, some in brokers.items()}, {})


def fleet(rates: dict[str, float] = RATES, /, **brokers: str) -> BadFleet:
    return bad_fleet(sample(rates, **brokers))


def loads(some: BadFleet) -> list[float]:
    return [some.brokers[name].load for name in sorted(some.brokers)]


def imbalance(some: BadFleet) -> Imbalance:
    return imbalance_of(some)


def ways(steps: list[Step]) -> list[tuple[str, str]]:
    """Who goes where, in order."""
    return [(name, move.target) for step in steps for move in step.moves for name in move.subscribers]


MIXED = {"B1": "ab a bc ad", "B2": "cd", "B3": "d"}
"""F = 70, 12 and 4."""
ALIKE = {"B1": "a a a a", "B2": "a", "B3": "d"}
"""F = 50, 20 and 4."""
