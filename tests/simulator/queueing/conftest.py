"""A small world: one cluster of two edges, ten subscribers of two topics, two publishers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.simulator.queueing.fleet import QueueingFleet
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

API = "plimsoll.dev/v1alpha1"
TOPICS = ("a", "b")


def profile(name: str, base: str = "1ms", each: str = "1ms", bandwidth: str = "1M") -> dict[str, Any]:
    return {
        "apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": name},
        "spec": {
            "cpu": "1", "memory": "512Mi",
            "bandwidth": {"inputBytesPerSecond": "1M", "outputBytesPerSecond": bandwidth},
            "emulation": {"base": base, "perSubscription": each},
        },
    }  # fmt: skip


def fleet_of(policy: dict[str, Any] | None, clusters: int = 1, **hardware: Any) -> Resources:
    defaults = {} if policy is None else {"policy": policy}
    found: list[dict[str, Any]] = [
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "f"}, "spec": {"defaults": defaults}},
        profile("head", "10us", "0us"), profile("edge", **hardware),
    ]  # fmt: skip
    for n in range(1, clusters + 1):
        neighbors = {"neighbors": [{"name": f"c{n - 1}"}]} if n > 1 else {}
        edges = [{"name": f"e{n}{x}", "profile": "edge"} for x in (1, 2)]
        found.append(
            {
                "apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": f"c{n}"},
                "spec": {"head": {"profile": "head"}, "edges": edges, **neighbors},
            }
        )  # fmt: skip
    return parse([SourceDocument(each, "<test>") for each in found])


def traffic_of(
    subscribers: int = 10, rate: float = 20.0, *, prefer: str = "e11", rates: tuple[RateStep, ...] = ()
) -> Traffic:
    publishers = [
        TrafficPublisher(
            f"p-{topic}", "c1-head", ({"topic": topic, "n": 1},), rates or (RateStep(0.0, rate),), 5.0 + i / 100
        )
        for i, topic in enumerate(TOPICS)
    ]  # fmt: skip
    joined = [
        TrafficSubscriber(f"s{n:02}", "c1", (f"[topic,=,'{TOPICS[n % 2]}']",), 0.1 * n, prefer=prefer)
        for n in range(subscribers)
    ]
    return Traffic(publishers, joined)


@pytest.fixture
def world() -> Callable[..., QueueingFleet]:
    def make(policy: dict[str, Any] | None = None, traffic: Traffic | None = None, **fleet: Any) -> QueueingFleet:
        options = {name: fleet.pop(name) for name in ("seed", "links", "on_report", "fair_output") if name in fleet}
        return QueueingFleet(fleet_of(policy, **fleet), traffic or traffic_of(), **options)

    return make
