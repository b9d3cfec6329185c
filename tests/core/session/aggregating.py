"""A world under BAD: edges a, b and c of the cluster east, whose subscribers ask for topics of known rates.

A subscriber's name begins with the letters of its topics and a dot. An edge takes in each topic that anybody asks for
once, and sends it to each that does: its reports and its profiles follow from that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.core.session.balanced import BANDWIDTH, Balanced, SensingEdge, SensingHead

from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.model.profile import SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.registry import detection_parameters
from plimsoll.core.profiling.profile_codec import encode_profile, split_reply
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import FleetView, SaveMemory
from plimsoll.core.session.context.cluster_memories import stored_memory
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

BAD: dict[str, Any] = {
    "type": "Bad",
    "detection": {"interval": "1s", "reportsValidFor": "5s", "stabilizeFor": "4s"},
    "bad": {"interval": "2s", "beta": "10"},
}
RATES = {"a": 1000.0, "b": 600.0, "c": 400.0, "d": 200.0}


def topics(name: str) -> str:
    return name.partition(".")[0]


class AggregatingEdge(SensingEdge):
    """An edge whose load is that of its topics."""

    world: Aggregating

    def report(self) -> dict[str, Any]:
        incoming, outgoing = self.world.loads_of(self.name)
        count = len(self.world.serves[self.name])
        own = {
            "input_bytes_per_second": incoming * self.world.rate, "output_bytes_per_second": outgoing * self.world.rate,
            "input_rate": incoming / 100.0, "output_rate": outgoing / 100.0, "match_delay_seconds": 0.0,
            "input_utilization": 0.0, "output_utilization": outgoing / BANDWIDTH, "subscribers": count,
            "subscriptions": sum(len(topics(name)) for name in self.world.serves[self.name]),
        }  # fmt: skip
        return {**super().report(), **own}

    def profile(self, target: str, targets: Sequence[str] = (), *, each: bool = False) -> SubscriptionProfile:
        letters = sorted(RATES)
        traffic = SampledTraffic(SampleBlock(1, RATES[x] * self.world.rate / 100.0, 100.0) for x in letters)
        bit = {x: 1 << number for number, x in enumerate(letters)}
        asked = [(name, topics(name), sum(bit[x] for x in set(topics(name))), len(topics(name)))
                 for name in self.world.serves[self.name]]  # fmt: skip
        rows = tuple(replace(row, texts=tuple(sorted(set(row.key)))) for row in profile_rows(asked))
        takers = tuple((name, self.world.wanted(name, bit)) for name in targets)
        return SubscriptionProfile(traffic, rows, takers=takers, each=tuple(bit.items()) if each else ())


class AggregatingHead(SensingHead):
    """A head that passes on queries for each subscription."""

    world: Aggregating

    def on(self, record: Any) -> msg.Outcome | msg.SubscriberPage | None:
        if not isinstance(record, msg.ProfileQuery):
            return super().on(record)
        edge = self.world.edges[record.edge]
        if isinstance(edge, AggregatingEdge) and record.part + 1 >= record.parts:
            made = edge.profile(record.target, record.targets, each=record.each)
            edge.said.extend(split_reply(record, edge.epoch, encode_profile(made)))
        return None


@dataclass
class Aggregating(Balanced):
    """`stored`: what the cluster's status has of the policy's memory."""

    policy: PolicySpec = field(default_factory=lambda: parse_block(PolicySpec, BAD))
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    remembered: list[SaveMemory] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.heads["east-head"] = AggregatingHead("east-head", self)
        self.edges = {name: AggregatingEdge(name, self) for name in "abc"}
        for edge in self.edges.values():
            edge.sensing = type(edge.sensing)(edge, detection_parameters(self.policy))

    def people(self, edge: str, *letters: str) -> None:
        """Subscribers of these topics at an edge."""
        before = len(self.serves[edge])
        self.serves[edge] |= {f"{some}.{edge}{before + number:03}" for number, some in enumerate(letters)}

    def wanted(self, edge: str, bit: dict[str, int]) -> int:
        found = 0
        for name in self.serves[edge]:
            for x in topics(name):
                found |= bit[x]
        return found

    def loads_of(self, edge: str) -> tuple[float, float]:
        """I and O."""
        lists = [set(topics(name)) for name in self.serves[edge]]
        incoming = sum(RATES[x] for x in set().union(*lists)) if lists else 0.0
        return incoming, sum(RATES[x] for some in lists for x in some)

    @property
    def loads(self) -> list[float]:
        """F of a, b and c."""
        return [sum(self.loads_of(edge)) for edge in "abc"]

    @property
    def cov(self) -> float:
        return Imbalance.of(self.loads).cov

    def view(self) -> FleetView:
        return replace(super().view(), memories=dict(self.stored))

    def _carry_out(self, effect: Any) -> None:
        if isinstance(effect, SaveMemory):
            self.remembered.append(effect)
            self.stored[effect.cluster] = stored_memory(effect.policy, effect.memory)
        else:
            super()._carry_out(effect)
