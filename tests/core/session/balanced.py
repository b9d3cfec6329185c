"""A world whose edges detect load: each uses the product's load monitor, over loads that follow from a model.

All edges take in the same publications. A publication takes an edge a fixed time for each of its subscribers, and each
delivery a fixed number of bytes: the load of an edge follows from its subscribers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.core.session.model import STEP, Faults, Head, World

from plimsoll.core.edge.balancing.load_monitor import LoadMonitor
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.registry import parameters_of_spec
from plimsoll.core.profiling.profile_codec import encode_profile, split_reply
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EdgeView, FleetView
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

POLICY: dict[str, Any] = {
    "type": "Padres",
    "detection": {"interval": "1s", "reportsValidFor": "5s", "stabilizeFor": "4s"},
}
RATE = 20.0
SECONDS_EACH = 0.001
BYTES_EACH = 100.0
BANDWIDTH = 100_000.0
SAMPLES = 8


class SensingEdge:
    """One edge, as a head sees it: its load, and its messages about it."""

    def __init__(self, name: str, world: Balanced) -> None:
        self.name, self.world = name, world
        self.counters: Counter[str] = Counter()
        self.epoch, self.seq = 7, 0
        self.said: list[Any] = []
        self.sensing = LoadMonitor(self, parameters_of_spec(world.policy))

    @property
    def now(self) -> float:
        return self.world.now

    def to_head(self, record: Any) -> None:
        self.said.append(record)

    def restart(self) -> None:
        self.epoch, self.seq = self.epoch + 1, 0
        self.sensing = LoadMonitor(self, parameters_of_spec(self.world.policy))

    def report(self) -> dict[str, Any]:
        count = len(self.world.serves[self.name])
        rate = RATE * self.world.rate if count else 0.0
        sent = count * rate * BYTES_EACH
        self.seq += 1
        return {
            "broker": self.name, "cluster": "east", "state": self.sensing.state, "epoch": self.epoch, "seq": self.seq,
            "input_rate": rate, "output_rate": count * rate, "output_bytes_per_second": sent,
            "match_delay_seconds": count * SECONDS_EACH, "input_utilization": rate * count * SECONDS_EACH,
            "output_utilization": min(1.0, sent / BANDWIDTH), "subscribers": count, "subscriptions": count,
            "bandwidth_bytes_per_second": BANDWIDTH, "balanced_set": self.sensing.balanced,
        }  # fmt: skip

    def profile(self, target: str, targets: Sequence[str] = ()) -> SubscriptionProfile:
        """All subscribers have the same subscription: one row."""
        names = tuple(sorted(self.world.serves[self.name]))
        rate, bits = RATE * self.world.rate, (1 << SAMPLES) - 1
        rows = (ProfileRow("{everything}", bits, names),) if names else ()
        accepting = bits if self.world.serves[target] else 0
        takers = tuple((name, bits if self.world.serves[name] else 0) for name in targets)
        return SubscriptionProfile(
            SampledTraffic([SampleBlock(SAMPLES, rate / SAMPLES, BYTES_EACH)]), rows, accepting, takers=takers
        )


class SensingHead(Head):
    """A head that passes on balancing messages."""

    world: Balanced

    def on(self, record: Any) -> msg.Outcome | msg.SubscriberPage | None:
        edge = self.world.edges.get(getattr(record, "edge", ""))
        if isinstance(record, msg.Reservation):
            if edge is not None and record.mediator >= self.mediator:
                self.mediator = record.mediator
                edge.sensing.on_reservation(record)
            return None
        if isinstance(record, msg.CoverQuery):
            if edge is not None:
                texts = ["[n,>,0]"] if self.world.serves[edge.name] else []
                edge.said.append(msg.CoverReply(record.id, edge.name, 0, 1, texts))
            return None
        if isinstance(record, msg.ProfileQuery):
            if edge is not None and record.part + 1 >= record.parts:
                edge.said.extend(
                    split_reply(record, edge.epoch, encode_profile(edge.profile(record.target, record.targets)))
                )
            return None
        return super().on(record)


@dataclass
class Balanced(World):
    """Edges a, b and c of the cluster east have a policy. `rate`: publications, relative to the beginning."""

    policy: PolicySpec = field(default_factory=lambda: parse_block(PolicySpec, POLICY))
    rate: float = 1.0

    def __post_init__(self) -> None:
        self.edges: dict[str, SensingEdge] = {}
        super().__post_init__()
        self.heads["east-head"] = SensingHead("east-head", self)
        self.edges |= {name: SensingEdge(name, self) for name in "abc"}
        self._reported_at = 0.0

    def view(self) -> FleetView:
        view = super().view()
        edges = {
            name: EdgeView(
                edge.name, edge.cluster, edge.head, edge.ready, edge.cordoned, edge.leaving, edge.subscribers,
                self.reports.get(name, {}), BANDWIDTH,
            )
            for name, edge in view.edges.items()
        }  # fmt: skip
        return FleetView(view.heads, edges, {"east": self.policy})

    def step(self) -> None:
        super().step()
        if self.now >= self._reported_at + 0.5:
            self._reported_at = self.now
            for name, edge in self.edges.items():
                self.reports[name] = edge.report()
                edge.sensing.on_own_report(self.reports[name])
            for name, edge in self.edges.items():
                if not self._hits(self.faults.loss):
                    others = [dict(self.reports[other]) for other in self.edges if other != name]
                    edge.sensing.on_loads(msg.PeerLoads(others))
        for edge in self.edges.values():
            edge.sensing.tick()
            said, edge.said = [record for record in edge.said if record is not None], []
            for record in said:
                self._post("from", ("east-head", record))

    # -- to look at

    def counts(self) -> tuple[int, ...]:
        return tuple(len(self.serves[name]) for name in "abc")

    def states(self) -> tuple[str, ...]:
        return tuple(edge.sensing.state for edge in self.edges.values())

    def named_like(self, prefix: str) -> list[str]:
        return sorted(one.request.name for one in self.store.values() if one.request.name.startswith(prefix))


__all__ = ["STEP", "Balanced", "Faults", "SensingEdge"]
