"""Worlds of PADRES 2006, section 6: publishers of stock quotes, subscribers by six templates, emulated hardware.

Time is the paper's: no factor. Hardware is given as in the paper, by megahertz and by megabits per second; a broker of
100 MHz needs 4 ms for a publication and 0.16 ms more for each subscription, which the paper does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.brokers import head_name
from plimsoll.demo import workload
from plimsoll.demo.quotes import Quotes
from plimsoll.demo.workload import DemoScenario
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

API = "plimsoll.dev/v1alpha1"
BASE_MEGAHERTZ_SECONDS = 0.4
SUBSCRIPTION_MEGAHERTZ_SECONDS = 0.016
PUBLISHING_FROM = 5.0


@dataclass(frozen=True, slots=True)
class Machine:
    """A broker's hardware as the paper gives it."""

    megahertz: float
    megabits: float
    mebibytes: int

    def profile(self, name: str) -> dict[str, Any]:
        """The HardwareProfile of this name. `memory` is what its process would need here, not the paper's."""
        rate = round(self.megabits * 1e6 / 8)
        base = BASE_MEGAHERTZ_SECONDS / self.megahertz
        each = SUBSCRIPTION_MEGAHERTZ_SECONDS / self.megahertz
        return {
            "apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": name},
            "spec": {
                "cpu": "1", "memory": "1280Mi",
                "bandwidth": {"inputBytesPerSecond": rate, "outputBytesPerSecond": rate},
                "emulation": {"base": f"{round(base * 1e9)}ns", "perSubscription": f"{round(each * 1e9)}ns"},
            },
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A cluster: its head's machine, its edges' by name, and its neighbours."""

    name: str
    head: Machine
    edges: Mapping[str, Machine]
    neighbors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """A policy block as in a custom resource; None: no balancing. `global_seconds`: of clusters, None: not."""

    block: Mapping[str, Any] | None = field(default_factory=lambda: {"type": "Padres"})
    global_seconds: float | None = None

    @property
    def name(self) -> str:
        return "none" if self.block is None else str(self.block["type"])


def documents(clusters: Iterable[ClusterPlan], policy: PolicyPlan) -> list[SourceDocument]:
    """The custom resources of a fleet."""
    defaults: dict[str, Any] = {} if policy.block is None else {"policy": dict(policy.block)}
    spec: dict[str, Any] = {"defaults": defaults}
    if policy.global_seconds is not None:
        spec["globalBalancing"] = {"enabled": True, "interval": f"{policy.global_seconds:g}s"}
    found: list[dict[str, Any]] = [
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "experiment"}, "spec": spec}
    ]
    for cluster in clusters:
        named = {f"{cluster.name}-head": cluster.head, **cluster.edges}
        found += [machine.profile(name) for name, machine in named.items()]
        found.append(
            {
                "apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": cluster.name},
                "spec": {
                    "head": {"profile": f"{cluster.name}-head"},
                    "edges": [{"name": name, "profile": name} for name in cluster.edges],
                    **({"neighbors": [{"name": name} for name in cluster.neighbors]} if cluster.neighbors else {}),
                },
            }
        )  # fmt: skip
    return [SourceDocument(each, "<experiment>") for each in found]


def resources(clusters: Iterable[ClusterPlan], policy: PolicyPlan) -> Resources:
    """The fleet, parsed and checked as files would be."""
    return parse(documents(clusters, policy))


def traffic(scenario: DemoScenario, quotes: Quotes, cluster: str, publishing_from: float = PUBLISHING_FROM) -> Traffic:
    """The demo's plan of this scenario: publishers at the head of the cluster, subscribers joining it."""
    plan = workload.plan_workload(scenario, quotes)
    publishers = [_publisher(one, head_name(cluster), publishing_from) for one in plan.publishers]
    subscribers = [
        TrafficSubscriber(one.name, cluster, (one.text,), one.joins_at, prefer=scenario.prefer)
        for one in plan.subscribers
    ]
    return Traffic(publishers, subscribers)


def _publisher(one: workload.PlannedPublisher, head: str, publishing_from: float) -> TrafficPublisher:
    per_second = one.rate_per_minute / 60
    steps: Sequence[RateStep] = [RateStep(0.0, per_second)]
    if one.faster_at != float("inf"):
        steps = [*steps, RateStep(one.faster_at, per_second * one.factor)]
    contents = tuple(quote.attributes() for quote in one.quotes)
    return TrafficPublisher(one.name, head, contents, tuple(steps), publishing_from + one.first_at)
