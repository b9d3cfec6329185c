"""A world of two clusters whose edges detect load: east (a, b, c) and west (w, v), with a policy each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.core.session.balanced import BANDWIDTH, Balanced, SensingEdge, SensingHead
from tests.core.session.model import World

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import ClusterComparison, FleetView


class JoinedHead(SensingHead):
    """A head that shows its edges the loads of another cluster for as long as a mediator requests it."""

    shown: dict[str, tuple[float, dict[str, Any]]]

    def on(self, record: Any) -> Any:
        if isinstance(record, msg.PeerClusterLoads):
            until = self.world.now + record.seconds
            self.shown = getattr(self, "shown", {})
            self.shown |= {str(load["broker"]): (until, dict(load)) for load in record.reports}
            return None
        return super().on(record)

    def others(self) -> list[dict[str, Any]]:
        return [load for until, load in getattr(self, "shown", {}).values() if self.world.now < until]


@dataclass
class Joined(Balanced):
    """`seconds`: how often clusters are looked at; None: never. `middle`: a cluster without edges lies between them."""

    seconds: float | None = 2.0
    middle: bool = False

    def __post_init__(self) -> None:
        self.edges = {}
        World.__post_init__(self)
        self.heads |= {name: JoinedHead(name, self) for name in ("east-head", "west-head")}
        self.edges |= {name: SensingEdge(name, self) for name in "abcwv"}
        self._reported_at = 0.0

    def cluster(self, edge: str) -> str:
        return self.head_of[edge].removesuffix("-head")

    def view(self) -> FleetView:
        view = World.view(self)
        edges = {name: replace(edge, output_bytes_per_second=BANDWIDTH) for name, edge in view.edges.items()}
        ways = [("east", "middle"), ("middle", "west")] if self.middle else [("east", "west")]
        near: dict[str, frozenset[str]] = {}
        for one, other in ways:
            near[one] = near.get(one, frozenset()) | {other}
            near[other] = near.get(other, frozenset()) | {one}
        overview = ClusterComparison(self.seconds) if self.seconds is not None else None
        return FleetView(view.heads, edges, {"east": self.policy, "west": self.policy}, near, overview)

    def step(self) -> None:
        World.step(self)
        if self.now >= self._reported_at + 0.5:
            self._reported_at = self.now
            for name, edge in self.edges.items():
                self.reports[name] = {**edge.report(), "cluster": self.cluster(name)}
                edge.sensing.on_own_report(self.reports[name])
            for name, edge in self.edges.items():
                own = [dict(self.reports[x]) for x in self.edges if x != name and self.head_of[x] == self.head_of[name]]
                if not self._hits(self.faults.loss):
                    edge.sensing.on_loads(msg.PeerLoads([*own, *self.heads[self.head_of[name]].others()]))  # type: ignore[attr-defined]  # its heads are `JoinedHead`s
        for name, edge in self.edges.items():
            edge.sensing.tick()
            said, edge.said = edge.said, []
            for record in said:
                self._post("from", (self.head_of[name], record))

    def averages(self) -> tuple[float, float]:
        """Subscribers of an edge, on average, in the east and in the west."""
        east, west = (sum(len(self.serves[x]) for x in names) / len(names) for names in ("abc", "wv"))
        return east, west
