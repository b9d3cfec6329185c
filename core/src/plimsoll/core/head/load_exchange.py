"""Loads through a head: edges receive one another's, and mediators and edges reach each other.

A mediator's message is passed on only if no mediator of a higher epoch is known; an edge's message about itself only
if it comes from that edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, assert_never

from plimsoll.core.policies.model.load import BrokerLoad, combined_load
from plimsoll.core.profiling.profile_codec import split_texts
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer
from plimsoll.core.transport.load_reporter import LoadReporter

FRESH_INTERVALS = 3.0
"""Report intervals for which a load report is passed on."""

REPORTS_AT_ONCE = 128
"""Load reports per PEER_LOADS."""

COVER_BYTES = 4 * 1024 * 1024
"""Bytes of a target's covering set that are sent: without the rest its input is overestimated, never underestimated."""

LONGEST_JOINED_SECONDS = 600.0
"""Longest time for which one message of a mediator joins clusters."""

FromMediator = msg.Reservation | msg.ProfileQuery | msg.PeerClusterLoads | msg.CoverQuery
BalancingReply = msg.ReservationReply | msg.Trigger | msg.ProfileReply
ForEdge = msg.Reservation | msg.ProfileQuery | msg.PeerLoads


class EdgeLink(Protocol):
    """The link of an edge: `key` names it in the routing table."""

    key: str


class CoverTexts(Protocol):
    def texts(self, key: str) -> list[str]:
        """The subscriptions of a link's cover, written."""


class EpochFence(Protocol):
    """`epoch`: the highest mediator epoch that this cluster has seen."""

    epoch: int

    def raise_to(self, epoch: int) -> None: ...


class LoadExchangeContext(Protocol):
    """The parts of a head that loads pass through."""

    now: float
    reporter: LoadReporter
    counters: Counter[str]

    @property
    def routes(self) -> CoverTexts: ...
    @property
    def edges(self) -> Mapping[str, EdgeLink]: ...
    @property
    def mediator_fence(self) -> EpochFence: ...

    def say_control(self, peer: Peer, *said: ForEdge | BalancingReply | msg.CoverReply) -> None: ...


class LoadExchange:
    """`fresh_seconds`: how long a load report is passed on."""

    def __init__(self, host: LoadExchangeContext, report_seconds: float) -> None:
        self.host = host
        self.fresh_seconds = FRESH_INTERVALS * report_seconds
        self._loads: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._joined: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def on_control(self, peer: Peer, said: msg.ControlRecord) -> bool:
        """Take a message of balancing; False if it is another one."""
        if isinstance(said, msg.LoadUpdate):
            self._heard(peer, said.report)
        elif isinstance(said, FromMediator):
            if peer in self.host.reporter.mediators:
                self._from_mediator(peer, said)
        elif isinstance(said, BalancingReply):
            self._from_edge(peer, said)
        else:
            return False
        return True

    def _heard(self, peer: Peer, report: Mapping[str, Any]) -> None:
        name = str(report.get("broker"))
        if name in self.host.edges and self.host.reporter.brokers.get(name) == peer:
            if _load(report) is None:  # passed on all the same: a broker of a later version may be able to read it
                self.host.counters["loads_refused"] += 1
            self._loads[name] = (self.host.now, {key: value for key, value in report.items() if key != "counters"})

    def tell_loads(self) -> None:
        """Send each edge the loads of the others and of joined clusters' edges, once in a report interval."""
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
                self._to_edge(name, msg.PeerLoads(others[start : start + REPORTS_AT_ONCE]))

    # PADRES 2006, 3.2: global PIE
    def cluster(self) -> dict[str, Any]:
        """The load of the cluster as others see it, for the head's own report; empty while no edge has reported."""
        loads = [load for _, report in self._loads.values() if (load := _load(report)) is not None]
        if not loads:
            return {}
        whole = combined_load(str(loads[0].cluster), loads)
        return {
            "cluster_state": whole.state,
            "cluster_load": {
                **whole.measures._asdict(), "edges": len(loads), "subscribers": whole.subscribers,
                "subscriptions": whole.subscriptions,
            },
        }  # fmt: skip

    def _join(self, said: msg.PeerClusterLoads) -> None:
        """Treat another cluster's edges as this one's for a while. PADRES 2006, 3.3."""
        if said.mediator < self.host.mediator_fence.epoch:
            return
        self.host.mediator_fence.raise_to(said.mediator)
        until = self.host.now + min(max(said.seconds, 0.0), LONGEST_JOINED_SECONDS)
        for load in said.reports:
            name = load.get("broker")
            if _load(load) is None:
                self.host.counters["loads_refused"] += 1
            elif isinstance(name, str) and name not in self.host.edges:
                self._joined[name] = (until, load)

    def _from_mediator(self, peer: Peer, said: FromMediator) -> None:
        """Pass a mediator's message on to an edge; one for an edge that is not here is dropped, as if it were lost."""
        match said:
            case msg.PeerClusterLoads():
                self._join(said)
            case msg.CoverQuery():
                self._tell_cover(peer, said)
            case msg.Reservation():
                self._reserve(said)
            case msg.ProfileQuery():
                for query in self._queries(said):
                    self._to_edge(said.edge, query)
            case _:
                assert_never(said)

    def _reserve(self, said: msg.Reservation) -> None:
        fence = self.host.mediator_fence
        if said.mediator >= fence.epoch:
            fence.raise_to(said.mediator)
            self._to_edge(said.edge, said)

    def _queries(self, asked: msg.ProfileQuery) -> Iterator[msg.ProfileQuery]:
        """The query in parts, with the covering set of each target among them; as it is, if it has them already."""
        if asked.parts:
            yield asked
            return
        named = asked.targets or [asked.target]
        parts = [(name, texts) for name in named for texts in self._cover(name, COVER_BYTES // len(named))]
        for part, (name, texts) in enumerate(parts):
            yield msg.ProfileQuery(asked.id, asked.edge, name, part, len(parts), texts, asked.targets, asked.each)

    def _cover(self, edge: str, most_bytes: int) -> list[list[str]]:
        """The covering set of an edge in parts, at least one; a single empty one if the edge is not here."""
        outbox = self.host.edges.get(edge)
        cover = self.host.routes.texts(outbox.key) if outbox is not None else []
        return split_texts(cover, most_bytes) or [[]]

    def _tell_cover(self, peer: Peer, asked: msg.CoverQuery) -> None:
        if asked.edge in self.host.edges:
            parts = self._cover(asked.edge, COVER_BYTES)
            for part, texts in enumerate(parts):
                self.host.say_control(peer, msg.CoverReply(asked.id, asked.edge, part, len(parts), texts))

    def _from_edge(self, peer: Peer, said: BalancingReply) -> None:
        """Pass an edge's message about itself on to every mediator."""
        if self.host.reporter.brokers.get(said.edge) != peer:
            return
        for mediator in self.host.reporter.commanding:
            self.host.say_control(mediator, said)

    def _to_edge(self, edge: str, record: ForEdge) -> None:
        peer = self.host.reporter.brokers.get(edge)
        if peer is not None and edge in self.host.edges:
            self.host.say_control(peer, record)


def _load(report: Mapping[str, Any]) -> BrokerLoad | None:
    """A load report as a load; None if it cannot be read."""
    try:
        return BrokerLoad.from_report(report)
    except (TypeError, ValueError):
        return None
