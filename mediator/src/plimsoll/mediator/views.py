"""The fleet as a mediator is shown it: pure functions from objects and from what heads have said lately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plimsoll.core.config import Peer
from plimsoll.core.session import EdgeView, HeadView, Overview, View
from plimsoll.core.spec import head_name
from plimsoll.core.spec.clusters import MaintenanceWindow
from plimsoll.core.spec.fleets import GlobalBalancingSpec
from plimsoll.core.spec.parsing import block
from plimsoll.core.spec.policy import PolicySpec
from plimsoll.core.spec.quantities import Quantity

Object = dict[str, Any]
KINDS = ("BrokerCluster", "BrokerFleet", "EdgeBroker", "HardwareProfile")
UNANSWERED_SECONDS = 3.0
"""A head that has not answered for so long is taken to be unreachable."""
REPORTS_MISSED = 3
"""A load report is fresh for so many intervals."""


@dataclass(frozen=True)
class Answer:
    """What a head has said of itself: `at` is when, on the clock of the caller."""

    at: float
    epoch: int
    ready: bool
    edges: frozenset[str]

    @classmethod
    def of(cls, status: Mapping[str, Any], at: float) -> Answer:
        edges = status.get("edges")
        return cls(
            at, int(status.get("epoch", 0)), bool(status.get("ready", True)),
            frozenset(edges if isinstance(edges, list) else ()),
        )  # fmt: skip

    def says_as(self, other: Answer | None) -> bool:
        """Whether it says the same as another one."""
        return other is not None and (self.epoch, self.ready, self.edges) == (other.epoch, other.ready, other.edges)


@dataclass(frozen=True)
class Report:
    """A load report and when it came; one that is repeated says nothing new."""

    at: float
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Loads:
    """What each cluster carries, as the fields of a load report, and whose numbers they are."""

    source: str
    clusters: Mapping[str, Mapping[str, Any]]


@dataclass
class Known:
    """What has been heard, by broker. `report_seconds`: the interval of load reports."""

    report_seconds: float = 1.0
    answers: dict[str, Answer] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)

    def answered(self, head: str, status: Mapping[str, Any], now: float) -> bool:
        """Take an answer; whether it says something new."""
        before, after = self.answers.get(head), Answer.of(status, now)
        self.answers[head] = after
        return not after.says_as(before)

    def reported(self, broker: str, content: Mapping[str, Any], now: float) -> None:
        before = self.reports.get(broker)
        if before is None or _version(content) != _version(before.content):
            self.reports[broker] = Report(now, content)

    def answer(self, head: str, now: float) -> Answer | None:
        """A head's last answer, if it is recent."""
        found = self.answers.get(head)
        return found if found is not None and now - found.at <= UNANSWERED_SECONDS else None

    def report(self, broker: str, now: float) -> Mapping[str, Any]:
        """A broker's last report, if it is fresh."""
        found = self.reports.get(broker)
        limit = REPORTS_MISSED * self.report_seconds
        return found.content if found is not None and now - found.at <= limit else {}

    def report_age_seconds(self, broker: str, now: float) -> float:
        """How long ago a broker's last report came; 0 without one."""
        found = self.reports.get(broker)
        return 0.0 if found is None else max(0.0, now - found.at)


def _version(report: Mapping[str, Any]) -> tuple[Any, Any]:
    return report.get("epoch"), report.get("seq")


def heads(objects: Iterable[Object]) -> Iterator[Peer]:
    """How the control socket of each head that has started is dialled."""
    for item in objects:
        if item["kind"] == "BrokerCluster" and "endpoints" in (status := item.get("status", {}).get("head", {})):
            ends = status["endpoints"]
            yield Peer(name=status["name"], data=ends["data"], control=ends["control"], public_key=ends["publicKey"])


def view(objects: Iterable[Object], known: Known, now: float, loads: Loads | None = None) -> View:
    """The fleet as it is now. `loads`: what clusters carry, where somebody aggregates it for the whole fleet."""
    items = list(objects)
    bandwidths = {
        item["metadata"]["name"]: _bandwidth(item["spec"]) for item in items if item["kind"] == "HardwareProfile"
    }
    clusters = [item["metadata"]["name"] for item in items if item["kind"] == "BrokerCluster"]
    return View(
        {head_name(cluster): _head(cluster, known, now) for cluster in clusters},
        {
            item["metadata"]["name"]: _edge(item, known, bandwidths, now)
            for item in items
            if item["kind"] == "EdgeBroker"
        },
        policies(items),
        neighbors(items),
        _overview(items, loads),
        windows(items),
    )


def windows(items: Iterable[Object]) -> dict[str, tuple[MaintenanceWindow, ...]]:
    """The maintenance windows of each cluster that has some."""
    written = {
        item["metadata"]["name"]: item["spec"].get("maintenanceWindows", [])
        for item in items if item["kind"] == "BrokerCluster"
    }  # fmt: skip
    return {name: tuple(block(MaintenanceWindow, each) for each in some) for name, some in written.items() if some}


def neighbors(items: Iterable[Object]) -> dict[str, frozenset[str]]:
    """The clusters whose heads are linked to that of each."""
    clusters = {item["metadata"]["name"]: item["spec"] for item in items if item["kind"] == "BrokerCluster"}
    found: dict[str, set[str]] = {name: set() for name in clusters}
    for name, spec in clusters.items():
        for other in (each["name"] for each in spec.get("neighbors", [])):
            if other in found:
                found[name].add(other)
                found[other].add(name)
    return {name: frozenset(others) for name, others in found.items()}


def _overview(items: Iterable[Object], loads: Loads | None) -> Overview | None:
    """How clusters are balanced with one another, if the fleet wants it."""
    fleet: Mapping[str, Any] = next((item["spec"] for item in items if item["kind"] == "BrokerFleet"), {})
    asked = block(GlobalBalancingSpec, fleet.get("globalBalancing", {}))
    if not asked.enabled:
        return None
    found = Overview(asked.interval.seconds)
    return found if loads is None else replace(found, loads=loads.clusters, source=loads.source)


def policies(items: Iterable[Object]) -> dict[str, PolicySpec]:
    """The policy of each cluster that has one: its own, or else the fleet's."""
    all_items = list(items)
    fleets = (item["spec"].get("defaults", {}).get("policy") for item in all_items if item["kind"] == "BrokerFleet")
    default = next(fleets, None)
    common = None if default is None else block(PolicySpec, default)
    own = {
        item["metadata"]["name"]: item["spec"].get("policy")
        for item in all_items if item["kind"] == "BrokerCluster"
    }  # fmt: skip
    found = {cluster: block(PolicySpec, policy) if policy else common for cluster, policy in own.items()}
    return {cluster: policy for cluster, policy in found.items() if policy is not None}


def _head(cluster: str, known: Known, now: float) -> HeadView:
    name = head_name(cluster)
    answer, last = known.answer(name, now), known.answers.get(name)
    return HeadView(
        name=name,
        cluster=cluster,
        epoch=last.epoch if last is not None else 0,
        reachable=answer is not None and answer.ready,
        report=known.report(name, now),
    )


def _edge(item: Object, known: Known, bandwidths: Mapping[str, float | None], now: float) -> EdgeView:
    name, spec = item["metadata"]["name"], item["spec"]
    head = head_name(spec["clusterRef"]["name"])
    answer, report = known.answer(head, now), known.report(name, now)
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
