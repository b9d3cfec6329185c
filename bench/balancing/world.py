"""The experiment of PADRES 2006, 6.2, in virtual time: the machines of the product, the plan of the demo.

Brokers, clients and the mediator are the machines of the product, each in a host of the simulator; only sockets,
processes and the store are replaced. The result is computed as for a run of the demo, from load reports and sessions.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core import client as c
from plimsoll.core import session as s
from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.spec import Resources, SourceDocument
from plimsoll.core.spec import parse as parse_resources
from plimsoll.core.spec.broker_config import BrokerEndpoints, broker_configs, policy_of
from plimsoll.core.transport.link import LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.demo import workload
from plimsoll.demo.analysis import overhead
from plimsoll.demo.analysis.balancing_result import BalancingResult, assess_balancing, convergence_limits
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.session_outcomes import reported_sessions
from plimsoll.demo.quotes import Quotes
from plimsoll.mediator import session_objects
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork

CLIENTS = 2
READY_SECONDS = 2.0
POLL_SECONDS = 0.001
"""Frames that arrive within this time share a round, as they do in a process that sleeps between rounds."""

TICK_SECONDS = 0.05
VIEW_SECONDS = 0.5
REPORTS_MISSED = 3
EPOCH = 1


@dataclass
class Outcome:
    """The result of a run. `delays`: for each delivery its time in seconds, and its delay."""

    balance: BalancingResult
    series: LoadSeries
    delays: list[tuple[float, float]]
    published: int
    delivered: int
    repeated: int


@dataclass
class Stored:
    """A session object of the store: its manifest with status, and the request parsed from it."""

    item: dict[str, Any]
    request: s.SessionRequest


class Store:
    """Sessions by uid."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}

    def create(self, wanted: s.CreateSession) -> s.SessionRequest | None:
        """Store a new object; None if the name is taken."""
        if any(one.request.name == wanted.name for one in self.objects.values()):
            return None
        item = session_objects.child_object(wanted)
        item["metadata"] |= {"uid": f"uid-{wanted.name}", "generation": 1}
        request = session_objects.session_request(item)
        self.objects[request.uid] = Stored(item, request)
        return request


class SimulatedMediator(OverlayNode):
    """A shell for the mediator engine, with a store in memory."""

    def __init__(self, resources: Resources, configs: Mapping[str, BrokerConfig], store: Store, draw: random.Random,
                 on_report: Callable[[Mapping[str, Any], float], None]) -> None:  # fmt: skip
        super().__init__(
            Info("mediator", "client", EPOCH), LinkLimits(), lambda: draw.getrandbits(32), max_frame_bytes=10**7
        )
        self._configs, self._store, self._on_report = configs, store, on_report
        factor = resources.fleet.spec.time_scale_percent / 100
        self._policies = {
            cluster: policy for cluster in resources.clusters if (policy := policy_of(resources, cluster)) is not None
        }
        self._mediator = s.MediatorEngine(EPOCH, [], s.EngineSettings(time_factor=factor))
        self._reports: dict[str, tuple[float, dict[str, Any]]] = {}
        self._tick_at = self._view_at = 0.0
        self._heads = [config.name for config in configs.values() if config.role == "head"]
        for head in self._heads:
            self.dial_control(head, configs[head].control)

    def wake_at(self) -> float:
        return self._tick_at

    def on_tick(self) -> None:
        if self.now < self._tick_at:
            return
        self._tick_at = self.now + TICK_SECONDS
        if self.now >= self._view_at:
            self._view_at = self.now + VIEW_SECONDS
            for head in self._heads:
                self.say_control(head, msg.Identify(self.info.name, "mediator", EPOCH))
            self._handle(s.FleetObserved(self._view()))
        self._handle(s.Tick())

    def on_control(self, peer: Peer, record: Any) -> None:
        if isinstance(record, msg.LoadUpdate):
            report = dict(record.report)
            self._reports[str(report["broker"])] = (self.now, report)
            self._on_report(report, self.now)
        elif isinstance(
            record,
            msg.Outcome | msg.SubscriberPage | msg.ReservationReply | msg.Trigger | msg.ProfileReply | msg.CoverReply,
        ):
            self._handle(s.HeadMessage(str(peer), record))

    def _view(self) -> s.FleetView:
        heads, edges = {}, {}
        for name, config in self._configs.items():
            at, last = self._reports.get(name, (-1e9, {}))
            is_fresh = self.now - at <= REPORTS_MISSED * config.limits.report_seconds * config.time_factor
            report = last if is_fresh else {}
            if config.role == "head":
                heads[name] = s.HeadView(name, config.cluster, last.get("epoch", 0), is_fresh, report)
            else:
                edges[name] = s.EdgeView(
                    name, config.cluster, config.head_name, ready=is_fresh, subscribers=report.get("subscribers", 0),
                    report=report, output_bytes_per_second=config.hardware.output_bytes_per_second,
                    report_age_seconds=self.now - at,
                )  # fmt: skip
        return s.FleetView(heads, edges, self._policies)

    def _handle(self, event: s.Event) -> None:
        for effect in self._mediator.handle(event, self.now):
            if isinstance(effect, s.SaveSession) and effect.session.uid in self._store.objects:
                item = self._store.objects[effect.session.uid].item
                item["status"] = session_objects.stored_status(effect.session, self.now)
            elif isinstance(effect, s.SendMessage):
                self.say_control(effect.head, effect.message)
            elif isinstance(effect, s.CreateSession):
                if (request := self._store.create(effect)) is not None:
                    self._handle(s.SessionUpserted(request))
            elif isinstance(effect, s.DeleteSession):
                self._store.objects.pop(effect.uid, None)
                self._handle(s.SessionDeleted(effect.uid))


@dataclass
class Counts:
    """What the applications published and received."""

    delays: list[tuple[float, float]] = field(default_factory=list)
    published: int = 0
    joined: Counter[str] = field(default_factory=Counter)


class World:
    """One experiment: a scenario of the demo on a fleet given as resources."""

    def __init__(
        self, scenario: workload.DemoScenario, documents: list[SourceDocument], quotes: Quotes, policy: str
    ) -> None:
        self.scenario, self.policy = scenario, policy
        self.resources = parse_resources(documents)
        self.plan = workload.plan_workload(scenario, quotes)
        self.schedule = EventQueue()
        draw = random.Random(f"{scenario.seed} balancing")
        calm = ConnectionQuality(delay_seconds=0.0002, jitter_seconds=0.0002)
        self.network = SimulatedNetwork(self.schedule, random.Random(draw.random()), calm, calm)
        self.series, self.store, self.counts = LoadSeries(READY_SECONDS), Store(), Counts()
        self.configs = {config.name: config for config in _configs(self.resources)}
        self.clients: dict[str, c.Client] = {}
        self.hosts: dict[str, SimulatedHost] = {}
        for config in self.configs.values():
            self._start(config.name, lambda new_id, config=config: _broker(config, new_id), draw, config)
        head = next(config for config in self.configs.values() if config.role == "head")
        names = ["publishing", *(f"subscribing-{part}" for part in range(CLIENTS))]
        for name in names:
            node = self._start(name, lambda new_id, name=name: c.Client(name, 1, new_id, [c.Address(head.data)]), draw)
            assert isinstance(node, c.Client)
            self.clients[name] = node
            self.hosts[name].after_poll = lambda name=name: self._take(name)
        self._start(
            "mediator", lambda _: SimulatedMediator(self.resources, self.configs, self.store, draw, self._report), draw
        )
        self._lay_out()

    def _start(
        self, name: str, make: Callable[[Callable[[], int]], OverlayNode], draw: random.Random,
        config: BrokerConfig | None = None,
    ) -> OverlayNode:  # fmt: skip
        mine = random.Random(draw.getrandbits(64))
        host = self.hosts[name] = SimulatedHost(name, self.schedule, self.network, POLL_SECONDS)
        ends = () if config is None else (config.data, config.control)
        return host.start(lambda: make(lambda: mine.getrandbits(32)), *ends)

    # -- the plan

    def _lay_out(self) -> None:
        at = self.schedule.at
        for publisher in self.plan.publishers:
            self.clients["publishing"].publisher(publisher.name)
            at(READY_SECONDS + publisher.first_at, self._publish, publisher, 0, publisher.first_at)
        for place, subscriber in enumerate(self.plan.subscribers):
            at(READY_SECONDS + subscriber.joins_at, self._join, f"subscribing-{place % CLIENTS}", subscriber)

    def _publish(self, one: workload.PlannedPublisher, number: int, seconds: float) -> None:
        if seconds > self.scenario.seconds:
            return
        sent_us = int(self.schedule.now * 1e6)
        self.clients["publishing"].publishers[one.name].publish(one.quote(number).attributes(), sent_us=sent_us)
        self.counts.published += 1
        self.hosts["publishing"].wake()
        after = one.after(seconds)
        self.schedule.at(READY_SECONDS + after, self._publish, one, number + 1, after)

    def _join(self, name: str, one: workload.PlannedSubscriber) -> None:
        self.clients[name].subscriber(one.name, prefer=self.scenario.prefer).subscribe(one.text)
        self.counts.joined[name] += 1
        self.hosts[name].wake()

    # -- observations

    def _take(self, name: str) -> None:
        now, delays = self.schedule.now, self.counts.delays
        for _, events in self.clients[name].take_events():
            for event in events:
                if isinstance(event, c.Delivery):
                    delays.append((now - READY_SECONDS, now - event.sent_us / 1e6))
                elif isinstance(event, c.Failed | c.SubscriptionRefused):
                    raise RuntimeError(f"{name}: {event}")

    def _report(self, report: Mapping[str, Any], now: float) -> None:
        if self.series.take(report, now) and report.get("role") == "head":
            for name, client in self.clients.items():
                counts = overhead.sent_counts(client.counters)
                counts["Newcomer"] = self.counts.joined[name]
                if name != "publishing":
                    self.series.ledger.take(name, counts, now - READY_SECONDS)

    # -- the run

    def run(self) -> Outcome:
        """Run from the start of the first process to the end of the traffic."""
        self.schedule.run(READY_SECONDS + self.scenario.seconds)
        edges = [config.name for config in self.configs.values() if config.role == "edge"]
        found = reported_sessions([one.item for one in self.store.objects.values()], READY_SECONDS)
        balance = assess_balancing(
            self.policy, self.scenario, convergence_limits(self.resources), edges, self.series, found
        )
        repeated = sum(one.stream.duplicates for client in self.clients.values() for one in client.subscribers.values())
        delays = self.counts.delays
        return Outcome(balance, self.series, delays, self.counts.published, len(delays), repeated)


def _configs(resources: Resources) -> tuple[BrokerConfig, ...]:
    from plimsoll.core.spec.brokers import declared_brokers

    ends = {place.name: BrokerEndpoints(f"sim://{place.name}/data", f"sim://{place.name}/control")
            for place in declared_brokers(resources)}  # fmt: skip
    return broker_configs(resources, ends)


def _broker(config: BrokerConfig, new_id: Callable[[], int]) -> OverlayNode:
    return Head(config, EPOCH, new_id) if config.role == "head" else Edge(config, EPOCH, new_id)
