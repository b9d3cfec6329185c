"""Load reports of a fleet with balancing between clusters, recorded in virtual time.

The fleet is that of the demo between clusters (PADRES 2006, 6.3) at the paper's own pace, with fewer subscribers on
weaker hardware; brokers, clients and mediator are the machines of the product. All subscribers join at one edge, and
later half of the publishers double their rate. Every report that a head forwards is recorded with its time.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.balancing import world

from plimsoll.core import client as c
from plimsoll.core import session as s
from plimsoll.core.spec import Resources, SourceDocument
from plimsoll.core.spec import parse as parse_resources
from plimsoll.core.spec.quantities import Duration
from plimsoll.demo import quotes, workload
from plimsoll.demo.options import resource_folder
from plimsoll.local import manifests
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork

FULL, PACE = 2000, 10
"""Subscribers of the demo, and its rates as a multiple of the paper's."""
REPORT_SECONDS = 5.0
LOOK_SECONDS = 30.0
CLIENTS = 2
READY_SECONDS = 2.0


@dataclass
class Recording:
    """`reports`: each report and when the mediator received it. `near`: the clusters that each cluster is linked to."""

    resources: Resources
    near: Mapping[str, frozenset[str]]
    reports: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    sessions: int = 0
    seconds: float = 0.0

    @property
    def clusters(self) -> dict[str, list[str]]:
        """The brokers of each cluster."""
        found: dict[str, set[str]] = {}
        for _, report in self.reports:
            found.setdefault(report["cluster"], set()).add(report["broker"])
        return {cluster: sorted(names) for cluster, names in sorted(found.items())}


def documents(subscribers: int) -> list[SourceDocument]:
    """The fleet of the demo between clusters, at the paper's pace, with hardware for this number of subscribers."""
    found = []
    for document in manifests.load([str(resource_folder("global"))]):
        content: Any = copy.deepcopy(document.content)
        spec = content["spec"]
        if content["kind"] == "BrokerFleet":
            spec["timeScalePercent"] = 100
            spec["telemetry"] = {"reportInterval": f"{REPORT_SECONDS:g}s"}
            spec["globalBalancing"] = {"enabled": True, "interval": f"{LOOK_SECONDS:g}s"}
            spec["defaults"]["policy"] = {"type": "Padres"}  # with the paper's own durations
        elif content["kind"] == "HardwareProfile" and content["metadata"]["name"] == "edge":
            _slow(spec, FULL / subscribers)
        found.append(SourceDocument(content, document.file, document.line_of))
    return found


def _slow(spec: dict[str, Any], times: float) -> None:
    """Give the hardware the paper's speed, and let a subscriber cost as much as several."""
    each = Duration.parse(spec["emulation"]["perSubscription"]).seconds * PACE * times
    base = Duration.parse(spec["emulation"]["base"]).seconds * PACE
    spec["emulation"] = {"base": f"{round(base * 1e9)}ns", "perSubscription": f"{round(each * 1e9)}ns"}
    spec["bandwidth"]["outputBytesPerSecond"] = str(round(3_750_000 / PACE / times))


class ClusterMediator(world.SimulatedMediator):
    """A mediator that balances clusters with their neighbours, by the loads that heads report."""

    near: Mapping[str, frozenset[str]] = {}

    def _view(self) -> s.FleetView:
        return dataclasses.replace(super()._view(), neighbors=self.near, overview=s.ClusterComparison(LOOK_SECONDS))


class RecordedFleet:
    """The fleet of one run, with its clients and its mediator."""

    def __init__(self, scenario: workload.DemoScenario) -> None:
        self.scenario = scenario
        self.plan = workload.plan_workload(scenario, quotes.load())
        parsed = parse_resources(documents(scenario.subscribers))
        self.recording = Recording(parsed, neighbors(parsed), seconds=scenario.seconds)
        self.schedule, self.store = EventQueue(), world.Store()
        draw = random.Random(f"{scenario.seed} recording")
        calm = ConnectionQuality(delay_seconds=0.0002, jitter_seconds=0.0002)
        self.network = SimulatedNetwork(self.schedule, random.Random(draw.random()), calm, calm)
        self.clients: dict[str, c.Client] = {}
        self.hosts: dict[str, SimulatedHost] = {}
        configs = {config.name: config for config in world._configs(parsed)}
        for config in configs.values():
            self._start(
                config.name, lambda i, config=config: world._broker(config, i), draw, config.data, config.control
            )
        first = next(config for config in configs.values() if config.role == "head")
        for name in ("publishing", *(f"subscribing-{part}" for part in range(CLIENTS))):
            node = self._start(name, lambda i, name=name: c.Client(name, 1, i, [c.Address(first.data)]), draw)
            assert isinstance(node, c.Client)
            self.clients[name] = node
            self.hosts[name].after_poll = lambda node=node: _drop_events(node)

        def mediator(_: Any) -> ClusterMediator:
            made = ClusterMediator(parsed, configs, self.store, draw, self._record)
            made.near = self.recording.near
            return made

        self._start("mediator", mediator, draw)
        self._lay_out()

    def _start(self, name: str, make: Any, draw: random.Random, *ends: str) -> Any:
        mine = random.Random(draw.getrandbits(64))
        host = self.hosts[name] = SimulatedHost(name, self.schedule, self.network, world.POLL_SECONDS)
        return host.start(lambda: make(lambda: mine.getrandbits(32)), *ends)

    def _record(self, report: Mapping[str, Any], now: float) -> None:
        self.recording.reports.append((now, copy.deepcopy(dict(report))))

    def _lay_out(self) -> None:
        for publisher in self.plan.publishers:
            self.clients["publishing"].publisher(publisher.name)
            self.schedule.at(READY_SECONDS + publisher.first_at, self._publish, publisher, 0, publisher.first_at)
        for place, subscriber in enumerate(self.plan.subscribers):
            at = READY_SECONDS + subscriber.joins_at
            self.schedule.at(at, self._join, f"subscribing-{place % CLIENTS}", subscriber)

    def _publish(self, one: workload.PlannedPublisher, number: int, seconds: float) -> None:
        if seconds <= self.scenario.seconds:
            self.clients["publishing"].publishers[one.name].publish(
                one.quote(number).attributes(), sent_us=int(self.schedule.now * 1e6)
            )
            self.hosts["publishing"].wake()
            after = one.after(seconds)
            self.schedule.at(READY_SECONDS + after, self._publish, one, number + 1, after)

    def _join(self, name: str, one: workload.PlannedSubscriber) -> None:
        self.clients[name].subscriber(one.name, prefer=self.scenario.prefer).subscribe(one.text)
        self.hosts[name].wake()


def _drop_events(client: c.Client) -> None:
    client.take_events()


def neighbors(parsed: Resources) -> dict[str, frozenset[str]]:
    """The clusters that each cluster is linked to, in either direction."""
    found: dict[str, set[str]] = {name: set() for name in parsed.clusters}
    for name, cluster in parsed.clusters.items():
        for other in cluster.spec.neighbors:
            found[name].add(other.name)
            found[other.name].add(name)
    return {name: frozenset(others) for name, others in found.items()}


def record(seconds: float, subscribers: int, publishers: int, seed: int) -> Recording:
    """Run a fleet for `seconds` of virtual time."""
    scenario = workload.DemoScenario(
        seconds=seconds, publishers=publishers, subscribers=subscribers, seed=seed, rate_factor=1.0, zero_traffic=0.2,
        join_from=0.02, join_to=0.3, prefer="b11", step_at=0.6,
    )  # fmt: skip
    fleet = RecordedFleet(scenario)
    fleet.schedule.run(READY_SECONDS + seconds)
    fleet.recording.sessions = len(fleet.store.objects)
    return fleet.recording
