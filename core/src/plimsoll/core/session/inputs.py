"""Inputs of the session engine: requests, the observed fleet, timings and settings.

All values are frozen, and come from a shell; a time is in seconds since 1970, a duration in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from plimsoll.core.policies import LeastLoadedPlacer, Placer
from plimsoll.core.policies.model.topic_requirements import topic_attribute
from plimsoll.core.session.queue_order import Origin
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec, PolicySpec
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.cluster import MaintenanceWindow


@dataclass(frozen=True)
class SessionRequest:
    """A LoadBalancingSession object as it is stored now.

    `parent` is the uid of the session that owns it, or empty. `deleting`: its deletion has been asked for, and waits
    until the session has ended. `evacuates`: it empties an edge that leaves or restarts.
    """

    name: str
    uid: str
    generation: int
    spec: LoadBalancingSessionSpec
    parent: str = ""
    deleting: bool = False
    evacuates: bool = False

    @property
    def origin(self) -> Origin:
        """Who wants it; that of a child is its parent's."""
        if self.evacuates:
            return "evacuation"
        return "user" if self.spec.trigger is None else "trigger"


@dataclass(frozen=True)
class HeadView:
    """A head. `reachable`: it answers, and knows the state of its edges and neighbours. `epoch`: the last known one.

    `endpoint` and `public_key`: as clients reach it. `cordoned`: it takes no new publishers. `report` is its last load
    report, empty if there is none that is fresh; `report_age_seconds`: how long before this view it came.
    """

    name: str
    cluster: str
    epoch: int
    reachable: bool = True
    report: Mapping[str, Any] = field(default_factory=dict)
    endpoint: str = ""
    public_key: str = ""
    cordoned: bool = False
    report_age_seconds: float = 0.0

    @property
    def neighbors_down(self) -> frozenset[str]:
        """The heads that it should be linked to and is not, by its last report."""
        found = self.report.get("neighbors_down")
        return frozenset(map(str, found)) if isinstance(found, list | tuple) else frozenset()


@dataclass(frozen=True)
class EdgeView:
    """An edge. `report` is its last load report, empty if there is none that is fresh; `report_age_seconds`: how long
    before this view it came.

    `ready`: it is up and joined to its head. `leaving`: it is being removed, and is no target.
    `output_bytes_per_second` is its bandwidth, None if it is not limited.
    """

    name: str
    cluster: str
    head: str
    ready: bool = True
    cordoned: bool = False
    leaving: bool = False
    subscribers: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)
    output_bytes_per_second: float | None = None
    report_age_seconds: float = 0.0


@dataclass(frozen=True)
class ClusterComparison:
    """The comparison of clusters, every `seconds`.

    `loads`: the load of each cluster, as the fields of a load report, by a collector or a Spark job; for a cluster that
    is missing there, the report of its head counts. `source`: where the numbers come from, in a word.
    """

    seconds: float
    loads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = "heads"


@dataclass(frozen=True)
class FleetView:
    """The fleet as the shell knows it, by name; `policies` are those of clusters that have one.

    `neighbors`: the clusters whose heads are linked. `overview`: how clusters are balanced with one another; None: they
    are not. `windows`: when triggers may balance a cluster; at any time if it has none. `memories`: what `SaveMemory`
    has stored of each cluster, with `policy` and `memory`.
    """

    heads: Mapping[str, HeadView] = field(default_factory=dict)
    edges: Mapping[str, EdgeView] = field(default_factory=dict)
    policies: Mapping[str, PolicySpec] = field(default_factory=dict)
    neighbors: Mapping[str, frozenset[str]] = field(default_factory=dict)
    overview: ClusterComparison | None = None
    windows: Mapping[str, tuple[MaintenanceWindow, ...]] = field(default_factory=dict)
    memories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def policy_of(self, edge: str) -> PolicySpec | None:
        """The policy of an edge's cluster."""
        known = self.edges.get(edge)
        return self.policies.get(known.cluster) if known is not None else None

    def broker(self, name: str) -> EdgeView | HeadView | None:
        """The edge of this name, or the head."""
        return self.edges.get(name) or self.heads.get(name)

    def report_of(self, broker: str) -> Mapping[str, Any]:
        """The last load report of an edge or a head; empty if there is none."""
        known = self.broker(broker)
        return known.report if known is not None else {}

    def neighbor_heads(self) -> dict[str, frozenset[str]]:
        """By head, the heads that are linked to it."""
        names = {head.cluster: head.name for head in self.heads.values()}
        return {
            names[cluster]: frozenset(names[other] for other in others if other in names)
            for cluster, others in self.neighbors.items() if cluster in names
        }  # fmt: skip

    def is_cluster(self, name: str) -> bool:
        """Whether a cluster of this name has edges."""
        return any(edge.cluster == name for edge in self.edges.values())

    def edges_of(self, clusters: Iterable[str]) -> list[EdgeView]:
        """The edges of some clusters, by name."""
        wanted = set(clusters)
        return [edge for _, edge in sorted(self.edges.items()) if edge.cluster in wanted]

    def resolve(self, name: str) -> list[str]:
        """The edges for a name in a specification: those of a cluster, or the one of that name."""
        return [edge.name for edge in self.edges_of([name])] or [name]

    def clusters_of(self, names: Iterable[str]) -> set[str]:
        """The clusters that names of edges and of clusters belong to; unknown names are left out."""
        named = set(names)
        clusters = {edge.cluster for edge in self.edges.values()}
        return {self.edges[name].cluster for name in named & self.edges.keys()} | (named & clusters)

    def nearby_clusters(self, cluster: str) -> list[str]:
        """The clusters with edges that are one hop away; PADRES 2006, 3.3. A cluster without edges is no hop."""
        having = {edge.cluster for edge in self.edges.values()}
        found: set[str] = set()
        seen, ahead = {cluster}, [cluster]
        while ahead:
            for other in sorted(self.neighbors.get(ahead.pop(), frozenset()) - seen):
                seen.add(other)
                if other in having:
                    found.add(other)
                else:
                    ahead.append(other)
        return sorted(found)

    def are_linked(self, cluster: str, other: str) -> bool:
        """Whether links lead from the head of one cluster to that of another; also if the links are not known."""
        return cluster not in self.neighbors or other in _led_to(self.neighbors, cluster)

    def are_joined(self, cluster: str, other: str) -> bool:
        """Whether such links lead there at present: neither head of any of them reports that it is down."""
        return cluster not in self.neighbors or other in _led_to(self._links_up(), cluster)

    def _links_up(self) -> dict[str, frozenset[str]]:
        """Of `neighbors`, those whose link is up, as far as fresh reports of the heads tell."""
        heads = {head.cluster: head for head in self.heads.values()}
        down = {
            frozenset((cluster, other))
            for cluster, others in self.neighbors.items() if cluster in heads
            for other in others if other in heads and heads[other].name in heads[cluster].neighbors_down
        }  # fmt: skip
        return {
            cluster: frozenset(other for other in others if frozenset((cluster, other)) not in down)
            for cluster, others in self.neighbors.items()
        }

    def share_topics(self, *clusters: str) -> bool:
        """Whether topics may go from one of two clusters to the other: both defend deadlines of the same topics."""
        if len(set(clusters)) != 2 or not all(map(self.is_cluster, clusters)):
            return False
        attributes = {topic_attribute(self.policies.get(cluster)) for cluster in clusters}
        return len(attributes) == 1 and "" not in attributes

    def way_between(self, cluster: str, other: str) -> float:
        """Half the round trip between the heads of two clusters, in seconds; 0 if it is not measured."""
        one, two = self.head_of(cluster), self.head_of(other)
        trips = None if one is None else one.report.get("broker_round_trip_seconds")
        trip = trips.get(two.name) if isinstance(trips, Mapping) and two is not None else None
        return float(trip) / 2 if isinstance(trip, int | float) and 0.0 <= trip < math.inf else 0.0

    def head_of(self, cluster: str) -> HeadView | None:
        """The head of a cluster, if it is known."""
        return next((head for head in self.heads.values() if head.cluster == cluster), None)

    def reported_cluster_load(self, cluster: str) -> Mapping[str, Any] | None:
        """The load of a cluster, by the overview or else by its head; None without both."""
        if self.overview is not None and cluster in self.overview.loads:
            return self.overview.loads[cluster]
        head = self.head_of(cluster)
        load = head.report.get("cluster_load") if head is not None else None
        return load if isinstance(load, Mapping) else None

    def bundle_owners(self, cluster: str) -> dict[str, str]:
        """The edge of each bundle that has one, by name, as the head of the cluster reports it."""
        head = self.head_of(cluster)
        found = head.report.get("bundle_owners") if head is not None else None
        return {str(name): str(edge) for name, edge in found.items()} if isinstance(found, Mapping) else {}


def _led_to(links: Mapping[str, frozenset[str]], cluster: str) -> frozenset[str]:
    """The clusters to which links lead from one, itself included."""
    seen, ahead = {cluster}, [cluster]
    while ahead:
        found = links.get(ahead.pop(), frozenset()) - seen
        seen |= found
        ahead.extend(sorted(found))
    return frozenset(seen)


@dataclass(frozen=True)
class Timings:
    """How long things may take, and how often messages are repeated, in seconds.

    `gather`: how long a batch waits for its other members to attach once the first has. `settle`: from the last move
    to the measurement. `answer`: how long an edge may take to answer a reservation. `busy`: how long an edge stays
    reserved without a repeat. `view`: the age beyond which an observed fleet is too old.
    """

    repeat: float = 0.5
    ask: float = 1.0
    save: float = 1.0
    negotiate: float = 15.0
    sample: float = 15.0
    prepare: float = 10.0
    gather: float = 2.0
    cut: float = 5.0
    drain: float = 30.0
    resolve: float = 15.0
    settle: float = 3.0
    retry: float = 5.0
    answer: float = 3.0
    busy: float = 15.0
    view: float = 15.0

    def scaled(self, factor: float) -> Timings:
        return replace(self, **{item.name: getattr(self, item.name) * factor for item in fields(self)})


@dataclass(frozen=True)
class EngineSettings:
    """Settings of a mediator.

    `max_sessions`: the most sessions that move subscribers at one time, in the whole fleet. A hand-over goes by replay
    if its source would need longer than `drain_limit_seconds` to drain, and the head's log lasts `log_margin` times as
    long as the predicted catch-up. `drain_rounds`: the most rounds of a drain, with pauses that double: a client that
    is away keeps its place for its lease, and only then counts as gone. `queue_looks`: of the sessions that wait, each
    event steps this many from the front of the queue, and as many of the others in turn. `queue_saves`: the most of
    them that are stored within `Timings.save` because their place or message has changed.
    `drain_patience_seconds`: from the first move of a drain until its rounds go by replay, which needs no answer of a
    client to MOVE_TO.
    """

    timings: Timings = Timings()
    time_factor: float = 1.0
    max_sessions: int = 5
    sessions_per_broker: int = 1
    drain_limit_seconds: float = 2.0
    log_margin: float = 2.0
    drain_rounds: int = 12
    drain_patience_seconds: float = 20.0
    queue_looks: int = 32
    queue_saves: int = 10
    placer: Placer = LeastLoadedPlacer()  # noqa: RUF009  # a frozen value

    @property
    def scaled(self) -> Timings:
        """The timings on this fleet's clock."""
        return self.timings.scaled(self.time_factor)

    def seconds(self, duration: Duration) -> float:
        """A duration of a specification on this fleet's clock."""
        return duration.seconds * self.time_factor
