"""A small fleet whose loads are exact: edges with a base and a cost per subscription, publishers of known rates.

Nothing is sampled or measured, so what goes wrong here is a decision, or the model of the matching delay that it was
given. An edge that takes nothing in has measured no delay and reports none, like a real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from plimsoll.core.policies.model.load import BrokerLoad, LoadMeasures
from plimsoll.core.policies.model.match_delay import SubscriptionMatchDelay
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic, union_bits

SIZE_BYTES = 100.0
DelayKnowledge = Literal["Linear", "Measured"]
"""What edges report of their matching delay: its value alone (eq. 4 of the paper), or its line over subscriptions."""


@dataclass(frozen=True)
class Hardware:
    """Seconds of a publication, and for each subscription on top; bytes per second."""

    base_seconds: float
    per_subscription_seconds: float
    bandwidth: float


@dataclass(frozen=True)
class ExactFleet:
    """`rates`: publications per second of each publisher; `wants`: which publishers a key matches, as bits.

    `asks`: the key of each subscriber; `at`: its edge.
    """

    rates: tuple[float, ...]
    wants: Mapping[str, int]
    hardware: Mapping[str, Hardware]
    asks: Mapping[str, str]
    at: Mapping[str, str]
    knowledge: DelayKnowledge = "Measured"

    @cached_property
    def traffic(self) -> SampledTraffic:
        """A block of one sample for each publisher."""
        return SampledTraffic([SampleBlock(1, rate, SIZE_BYTES) for rate in self.rates])

    def served(self, edge: str) -> list[str]:
        """The subscribers of an edge, by name."""
        return sorted(name for name, where in self.at.items() if where == edge)

    def measures(self, edge: str, names: Iterable[str] | None = None) -> LoadMeasures:
        """What an edge measures if it serves these subscribers, or those that it has."""
        kind, some = self.hardware[edge], self.served(edge) if names is None else list(names)
        bits = [self.wants[self.asks[name]] for name in some]
        arrivals, deliveries = self.traffic.rate(union_bits(bits)), sum(self.traffic.rate(each) for each in bits)
        delay = kind.base_seconds + kind.per_subscription_seconds * len(some) if arrivals else 0.0
        sent = deliveries * SIZE_BYTES
        return LoadMeasures(arrivals * delay, sent / kind.bandwidth, delay, 0.0, 0.0, arrivals, deliveries, sent)

    def delay(self, edge: str) -> float:
        """What a publication takes at an edge, or would take if one came."""
        kind = self.hardware[edge]
        return kind.base_seconds + kind.per_subscription_seconds * len(self.served(edge))

    def load(self, edge: str) -> BrokerLoad:
        """The report of an edge."""
        kind, found, count = self.hardware[edge], self.measures(edge), len(self.served(edge))
        fastest = min(each.per_subscription_seconds for each in self.hardware.values())
        return BrokerLoad(
            name=edge, cluster="c", subscribers=count, subscriptions=count, bandwidth=kind.bandwidth,
            capacity=fastest / kind.per_subscription_seconds, delay=self._model(kind, found, count),
            **found._asdict(),
        )  # fmt: skip

    def _model(self, kind: Hardware, found: LoadMeasures, count: int) -> SubscriptionMatchDelay | None:
        if self.knowledge == "Linear" or not found.input_rate:
            return None
        return SubscriptionMatchDelay(kind.base_seconds, kind.per_subscription_seconds, count)

    def profile(self, source: str, target: str) -> SubscriptionProfile:
        """What a source would answer a query with the covering set of a target."""
        rows: dict[str, list[str]] = {}
        for name in self.served(source):
            rows.setdefault(self.asks[name], []).append(name)
        made = (ProfileRow(key, self.wants[key], tuple(names)) for key, names in sorted(rows.items()))
        accepting = union_bits(self.wants[self.asks[name]] for name in self.served(target))
        return SubscriptionProfile(self.traffic, tuple(made), accepting)

    def after(self, plan: OffloadPlan) -> ExactFleet:
        """With all moves of a plan made."""
        moved = {name: move.target for move in plan.moves for name in move.subscribers}
        return replace(self, at={**self.at, **moved})

    def state(self) -> tuple[tuple[str, str], ...]:
        """Where everyone is."""
        return tuple(sorted(self.at.items()))

    def alternatives(self, rows: Mapping[tuple[str, str], list[str]]) -> Iterator[dict[str, str]]:
        """Every other placement of these subscribers, by (key, edge); equal ones are interchangeable."""
        edges = sorted(self.hardware)
        pending: list[dict[str, str]] = [{}]
        for (_, home), names in sorted(rows.items()):
            others = [edge for edge in edges if edge != home]
            pending = [{**so_far, **more} for so_far in pending for more in _spread(names, others)]
        yield from pending


def _spread(names: list[str], edges: list[str]) -> Iterator[dict[str, str]]:
    """Every number of the first of these names at each of these edges."""
    if not edges:
        yield {}
        return
    for count in range(len(names) + 1):
        for rest in _spread(names[count:], edges[1:]):
            yield {**dict.fromkeys(names[:count], edges[0]), **rest}
