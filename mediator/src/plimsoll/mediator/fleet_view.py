"""The mediator's view of the fleet: pure functions of the objects and of recent messages of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plimsoll.core.config import PeerBroker
from plimsoll.core.session import ClusterComparison, EdgeView, FleetView, HeadView
from plimsoll.core.spec import head_name
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.types.cluster import MaintenanceWindow
from plimsoll.core.spec.types.fleet import GlobalBalancingSpec
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.mediator import head_cordons

Object = dict[str, Any]
VIEWED_KINDS = ("BrokerCluster", "BrokerFleet", "EdgeBroker", "HardwareProfile")
HEAD_SILENT_SECONDS = 3.0
"""A head that has not answered for this long counts as unreachable."""
VIEW_SECONDS = 1.0
"""The longest time between two views of the fleet."""
VIEWS_OF_A_REPORT = 4
"""In an interval of load reports: what brokers report is known to the engine after a quarter of it."""
REPORT_INTERVALS = 3
"""A load report is fresh for this number of intervals."""


@dataclass(frozen=True)
class HeadAnswer:
    """A head's status answer; `at` is its time of arrival on the caller's clock."""

    at: float
    epoch: int
    ready: bool
    edges: frozenset[str]

    @classmethod
    def of(cls, status: Mapping[str, Any], at: float) -> HeadAnswer:
        edges = status.get("edges")
        return cls(
            at, int(status.get("epoch", 0)), bool(status.get("ready", True)),
            frozenset(edges if isinstance(edges, list) else ()),
        )  # fmt: skip

    def equals_answer(self, other: HeadAnswer | None) -> bool:
        """Whether it has the same content as another one."""
        return other is not None and (self.epoch, self.ready, self.edges) == (other.epoch, other.ready, other.edges)


@dataclass(frozen=True)
class ReceivedReport:
    """A load report and its time of arrival; repeats do not renew it."""

    at: float
    content: Mapping[str, Any]


@dataclass(frozen=True)
class TelemetryLoads:
    """Average load of each cluster, as the fields of a load report, and the source of the numbers."""

    source: str
    clusters: Mapping[str, Mapping[str, Any]]


@dataclass
class FleetReadings:
    """The last messages of each broker. `report_seconds`: the interval of load reports."""

    report_seconds: float = 1.0
    answers: dict[str, HeadAnswer] = field(default_factory=dict)
    reports: dict[str, ReceivedReport] = field(default_factory=dict)

    @property
    def view_seconds(self) -> float:
        """The time between two views."""
        return min(VIEW_SECONDS, self.report_seconds / VIEWS_OF_A_REPORT)

    def note_answer(self, head: str, status: Mapping[str, Any], now: float) -> bool:
        """Note an answer; whether it differs from the last one."""
        before, after = self.answers.get(head), HeadAnswer.of(status, now)
        self.answers[head] = after
        return not after.equals_answer(before)

    def note_report(self, broker: str, content: Mapping[str, Any], now: float) -> None:
        before = self.reports.get(broker)
        if before is None or _version(content) != _version(before.content):
            self.reports[broker] = ReceivedReport(now, content)

    def fresh_answer(self, head: str, now: float) -> HeadAnswer | None:
        """A head's last answer, if it is recent."""
        found = self.answers.get(head)
        return found if found is not None and now - found.at <= HEAD_SILENT_SECONDS else None

    def fresh_report(self, broker: str, now: float) -> Mapping[str, Any]:
        """A broker's last report, if it is fresh."""
        found = self.reports.get(broker)
        limit = REPORT_INTERVALS * self.report_seconds
        return found.content if found is not None and now - found.at <= limit else {}

    def report_age_seconds(self, broker: str, now: float) -> float:
        """How long ago a broker's last report came; 0 without one."""
        found = self.reports.get(broker)
        return 0.0 if found is None else max(0.0, now - found.at)


def _version(report: Mapping[str, Any]) -> tuple[Any, Any]:
    return report.get("epoch"), report.get("seq")


def head_peers(objects: Iterable[Object]) -> Iterator[PeerBroker]:
    """The sockets and key of each head that has started."""
    for item in objects:
        if item["kind"] != "BrokerCluster":
            continue
        ends = item.get("status", {}).get("head", {}).get("endpoints", {})
        if {"data", "control", "publicKey"} <= ends.keys():  # less is written by someone else; the next one is whole
            yield PeerBroker(
                name=head_name(item["metadata"]["name"]),
                data=ends["data"], control=ends["control"], public_key=ends["publicKey"],
            )  # fmt: skip


def build_view(
    objects: Iterable[Object], known: FleetReadings, now: float, loads: TelemetryLoads | None = None
) -> FleetView:
    """The fleet as it is now. `loads`: averages of clusters, if collectors or Spark compute them."""
    items = list(objects)
    bandwidths = {
        item["metadata"]["name"]: _bandwidth(item["spec"]) for item in items if item["kind"] == "HardwareProfile"
    }
    clusters = [item for item in items if item["kind"] == "BrokerCluster"]
    peers = {peer.name: peer for peer in head_peers(items)}
    return FleetView(
        {head_name(item["metadata"]["name"]): _head(item, known, now, peers) for item in clusters},
        {
            item["metadata"]["name"]: _edge(item, known, bandwidths, now)
            for item in items
            if item["kind"] == "EdgeBroker"
        },
        cluster_policies(items),
        cluster_neighbors(items),
        _overview(items, loads),
        maintenance_windows(items),
        policy_memories(items),
    )


def policy_memories(items: Iterable[Object]) -> dict[str, Mapping[str, Any]]:
    """What the policy of each cluster remembers, as far as it is stored."""
    found = {
        item["metadata"]["name"]: item.get("status", {}).get("policyMemory")
        for item in items if item["kind"] == "BrokerCluster"
    }  # fmt: skip
    return {cluster: memory for cluster, memory in found.items() if isinstance(memory, Mapping)}


def maintenance_windows(items: Iterable[Object]) -> dict[str, tuple[MaintenanceWindow, ...]]:
    """The maintenance windows of each cluster that has some."""
    written = {
        item["metadata"]["name"]: item["spec"].get("maintenanceWindows", [])
        for item in items if item["kind"] == "BrokerCluster"
    }  # fmt: skip
    return {
        name: tuple(parse_block(MaintenanceWindow, each) for each in some) for name, some in written.items() if some
    }


def cluster_neighbors(items: Iterable[Object]) -> dict[str, frozenset[str]]:
    """The clusters whose heads are linked to that of each."""
    clusters = {item["metadata"]["name"]: item["spec"] for item in items if item["kind"] == "BrokerCluster"}
    found: dict[str, set[str]] = {name: set() for name in clusters}
    for name, spec in clusters.items():
        for other in (each["name"] for each in spec.get("neighbors", [])):
            if other in found:
                found[name].add(other)
                found[other].add(name)
    return {name: frozenset(others) for name, others in found.items()}


def _overview(items: Iterable[Object], loads: TelemetryLoads | None) -> ClusterComparison | None:
    """Settings and loads for balancing between clusters, if the fleet enables it."""
    fleet: Mapping[str, Any] = next((item["spec"] for item in items if item["kind"] == "BrokerFleet"), {})
    asked = parse_block(GlobalBalancingSpec, fleet.get("globalBalancing", {}))
    if not asked.enabled:
        return None
    found = ClusterComparison(asked.interval.seconds)
    return found if loads is None else replace(found, loads=loads.clusters, source=loads.source)


def cluster_policies(items: Iterable[Object]) -> dict[str, PolicySpec]:
    """The policy of each cluster that has one: its own, or else the fleet's."""
    all_items = list(items)
    fleets = (item["spec"].get("defaults", {}).get("policy") for item in all_items if item["kind"] == "BrokerFleet")
    default = next(fleets, None)
    common = None if default is None else parse_block(PolicySpec, default)
    own = {
        item["metadata"]["name"]: item["spec"].get("policy")
        for item in all_items if item["kind"] == "BrokerCluster"
    }  # fmt: skip
    found = {cluster: parse_block(PolicySpec, policy) if policy else common for cluster, policy in own.items()}
    return {cluster: policy for cluster, policy in found.items() if policy is not None}


def _head(item: Object, known: FleetReadings, now: float, peers: Mapping[str, PeerBroker]) -> HeadView:
    cluster = item["metadata"]["name"]
    name = head_name(cluster)
    peer = peers.get(name)
    answer, last = known.fresh_answer(name, now), known.answers.get(name)
    return HeadView(
        name=name,
        cluster=cluster,
        epoch=last.epoch if last is not None else 0,
        reachable=answer is not None and answer.ready,
        report=known.fresh_report(name, now),
        endpoint=peer.data if peer is not None else "",
        public_key=peer.public_key if peer is not None else "",
        cordoned=last is not None and last.epoch <= head_cordons.cordoned_epoch(item),
        report_age_seconds=known.report_age_seconds(name, now),
    )


def _edge(item: Object, known: FleetReadings, bandwidths: Mapping[str, float | None], now: float) -> EdgeView:
    name, spec = item["metadata"]["name"], item["spec"]
    head = head_name(spec["clusterRef"]["name"])
    answer, report = known.fresh_answer(head, now), known.fresh_report(name, now)
    return EdgeView(
        name=name,
        cluster=spec["clusterRef"]["name"],
        head=head,
        ready=bool(report) and answer is not None and name in answer.edges,
        cordoned=bool(spec.get("cordoned", False)),
        leaving="deletionTimestamp" in item["metadata"],
        subscribers=int(report.get("subscribers", 0)),
        report=report,
        output_bytes_per_second=bandwidths.get(spec["profile"]),
        report_age_seconds=known.report_age_seconds(name, now),
    )


def _bandwidth(profile: Mapping[str, Any]) -> float | None:
    rate = profile.get("bandwidth", {}).get("outputBytesPerSecond")
    return None if rate is None else float(Quantity.parse(str(rate)).value)
