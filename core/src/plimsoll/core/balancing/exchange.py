"""The head's part: edges learn of one another's load, and mediators and edges reach each other through it.

What a mediator says is passed on only if no mediator of a higher epoch has been heard of; what an edge says of itself
only if it comes from that edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from plimsoll.core import records as r
from plimsoll.core.balancing.pieces import slices
from plimsoll.core.handover.office import Office
from plimsoll.core.link import Peer
from plimsoll.core.outlet import Outlet
from plimsoll.core.policies.fleet import BrokerLoad, aggregate
from plimsoll.core.reports import Reporter
from plimsoll.core.routes import Routes

FRESH_INTERVALS = 3.0
"""A load report of an edge is passed on for so many report intervals."""

REPORTS_AT_ONCE = 128
"""So many load reports are in one PIE."""

COVER_BYTES = 4 * 1024 * 1024
"""So much of a target's covering set is told: without the rest its input is overrated, never underrated."""

LONGEST_JOINED_SECONDS = 600.0
"""No word of a mediator joins clusters for longer."""

FromEdges = r.Stated | r.Trigger | r.ProfileReply


class Host(Protocol):
    """What the exchange needs of its head."""

    now: float
    reporter: Reporter
    routes: Routes
    office: Office

    @property
    def edges(self) -> dict[str, Outlet]: ...
    def say_control(self, peer: Peer, *said: Any) -> None: ...


class Exchange:
    """`fresh_seconds`: how long a load report is passed on."""

    def __init__(self, host: Host, report_seconds: float) -> None:
        self.host = host
        self.fresh_seconds = FRESH_INTERVALS * report_seconds
        self._loads: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._joined: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def on_control(self, peer: Peer, said: Any) -> bool:
        """Deal with what balancing says; whether it was that."""
        if isinstance(said, r.Load):
            self._heard(peer, said.report)
        elif isinstance(said, r.State | r.ProfileQuery | r.Joined | r.CoverQuery):
            if peer in self.host.reporter.mediators:
                self._from_mediator(peer, said)
        elif isinstance(said, r.Stated | r.Trigger | r.ProfileReply):
            self._from_edge(peer, said)
        else:
            return False
        return True

    def _heard(self, peer: Peer, report: Mapping[str, Any]) -> None:
        name = str(report.get("broker"))
        if name in self.host.edges and self.host.reporter.brokers.get(name) == peer:
            self._loads[name] = (self.host.now, {key: value for key, value in report.items() if key != "counters"})

    def tell_loads(self) -> None:
        """Once in a report interval: to each edge the loads of the others, and of those in clusters it is joined to."""
        now, edges = self.host.now, self.host.edges
        self._joined = {name: (until, load) for name, (until, load) in self._joined.items() if now < until}
        joined = [dict(load) for _, load in self._joined.values()]
        self._loads = {
            name: (at, load) for name, (at, load) in self._loads.items()
            if name in edges and now - at <= self.fresh_seconds
        }  # fmt: skip
        for name in edges:
            others = [*(dict(load) for other, (_, load) in self._loads.items() if other != name), *joined]
            for start in range(0, len(others), REPORTS_AT_ONCE):
                self._to_edge(name, r.Pie(others[start : start + REPORTS_AT_ONCE]))

    # PADRES 2006, 3.2: global PIE
    def cluster(self) -> dict[str, Any]:
        """The load of the cluster as others see it, for the head's own report; empty while no edge has reported."""
        loads = [load for _, report in self._loads.values() if (load := _load(report)) is not None]
        if not loads:
            return {}
        whole = aggregate(str(loads[0].cluster), loads)
        return {
            "cluster_state": whole.state,
            "cluster_load": {
                **whole.measures._asdict(), "edges": len(loads), "subscribers": whole.subscribers,
                "subscriptions": whole.subscriptions,
            },
        }  # fmt: skip

    def _join(self, said: r.Joined) -> None:
        """Another cluster's edges are as our own for a while. PADRES 2006, 3.3."""
        if said.mediator < self.host.office.desk.mediator:
            return
        self.host.office.desk.heard(said.mediator)
        until = self.host.now + min(max(said.seconds, 0.0), LONGEST_JOINED_SECONDS)
        for load in said.reports:
            name = load.get("broker")
            if isinstance(name, str) and name not in self.host.edges and _load(load) is not None:
                self._joined[name] = (until, load)

    def _from_mediator(self, peer: Peer, said: r.State | r.ProfileQuery | r.Joined | r.CoverQuery) -> None:
        """Pass on what a mediator says to an edge; what names nobody here is dropped, as if it were lost."""
        desk = self.host.office.desk
        if isinstance(said, r.Joined):
            self._join(said)
            return
        if isinstance(said, r.CoverQuery):
            self._tell_cover(peer, said)
            return
        if isinstance(said, r.State):
            if said.mediator >= desk.mediator:
                desk.heard(said.mediator)
                self._to_edge(said.edge, said)
            return
        for query in self._queries(said):
            self._to_edge(said.edge, query)

    def _queries(self, asked: r.ProfileQuery) -> Iterator[r.ProfileQuery]:
        """The query in parts, with the covering set of each target among them; as it is, if it has them already."""
        if asked.parts:
            yield asked
            return
        named = asked.targets or [asked.target]
        parts = [(name, texts) for name in named for texts in self._cover(name, COVER_BYTES // len(named))]
        for part, (name, texts) in enumerate(parts):
            yield r.ProfileQuery(asked.id, asked.edge, name, part, len(parts), texts, asked.targets)

    def _cover(self, edge: str, most_bytes: int) -> list[list[str]]:
        """The covering set of an edge in parts, at least one; of one that is not here nothing is known."""
        outlet = self.host.edges.get(edge)
        cover = self.host.routes.texts(outlet.key) if outlet is not None else []
        return slices(cover, most_bytes) or [[]]

    def _tell_cover(self, peer: Peer, asked: r.CoverQuery) -> None:
        if asked.edge in self.host.edges:
            parts = self._cover(asked.edge, COVER_BYTES)
            for part, texts in enumerate(parts):
                self.host.say_control(peer, r.CoverTold(asked.id, asked.edge, part, len(parts), texts))

    def _from_edge(self, peer: Peer, said: FromEdges) -> None:
        """Pass on to every mediator what an edge says of itself."""
        if self.host.reporter.brokers.get(said.edge) != peer:
            return
        for mediator in self.host.reporter.commanding:
            self.host.say_control(mediator, said)

    def _to_edge(self, edge: str, record: Any) -> None:
        peer = self.host.reporter.brokers.get(edge)
        if peer is not None and edge in self.host.edges:
            self.host.say_control(peer, record)


def _load(report: Mapping[str, Any]) -> BrokerLoad | None:
    """A load report as a load; None if it is none."""
    try:
        return BrokerLoad.of(report)
    except (TypeError, ValueError):
        return None
