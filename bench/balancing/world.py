"""The experiment of PADRES 2006, 6.2, in virtual time: the machines of the product, the plan of the demo.

Brokers, clients and the mediator are those that run live, each in a host of the simulator; only sockets, processes and
the store are not there. What it shows is judged as the demo's runs are, by load reports and sessions alone.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core import client as c
from plimsoll.core import records as r
from plimsoll.core import session as s
from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge import Edge
from plimsoll.core.head import Head
from plimsoll.core.link import LinkLimits, Peer
from plimsoll.core.node import Node
from plimsoll.core.spec import Document, Resources
from plimsoll.core.spec import parse as parse_resources
from plimsoll.core.spec.planning import Address, plan, policy_of
from plimsoll.core.wire import Info
from plimsoll.local.demo import overhead, workload
from plimsoll.local.demo.balance import Balance, judge, limits_of
from plimsoll.local.demo.quotes import Quotes
from plimsoll.local.demo.series import Series
from plimsoll.local.demo.sessions import rows
from plimsoll.mediator import sessions
from plimsoll.simulator.host import Host
from plimsoll.simulator.network import Network, Weather
from plimsoll.simulator.schedule import Schedule

CLIENTS = 2
READY_SECONDS = 2.0
POLL_SECONDS = 0.001
"""Frames that come within this time share a round, as they do where a process is not always awake."""

TICK_SECONDS = 0.05
VIEW_SECONDS = 0.5
REPORTS_MISSED = 3
EPOCH = 1


@dataclass
class Outcome:
    """What a run came to. `delays`: seconds at which something was delivered, and how late it was, per delivery."""

    balance: Balance
    series: Series
    delays: list[tuple[float, float]]
    published: int
    delivered: int
    repeated: int


@dataclass
class Stored:
    """An object of the store: what it asks for, and its status."""

    item: dict[str, Any]
    request: s.Request


class Store:
    """Sessions by uid."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}

    def create(self, wanted: s.Create) -> s.Request | None:
        """Make an object; None if there is one of this name."""
        if any(one.request.name == wanted.name for one in self.objects.values()):
            return None
        item = sessions.child(wanted)
        item["metadata"] |= {"uid": f"uid-{wanted.name}", "generation": 1}
        request = sessions.request(item)
        self.objects[request.uid] = Stored(item, request)
        return request


class Mediating(Node):
    """The mediator in its shell, over a store in memory."""

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
        self._mediator = s.Mediator(EPOCH, [], s.Settings(time_factor=factor))
        self._heard: dict[str, tuple[float, dict[str, Any]]] = {}
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
                self.say_control(head, r.Identify(self.info.name, "mediator", EPOCH))
            self._handle(s.Viewed(self._view()))
        self._handle(s.Ticked())

    def on_control(self, peer: Peer, record: Any) -> None:
        if isinstance(record, r.Load):
            report = dict(record.report)
            self._heard[str(report["broker"])] = (self.now, report)
            self._on_report(report, self.now)
        elif isinstance(record, r.Outcome | r.Served | r.Stated | r.Trigger | r.ProfileReply | r.CoverTold):
            self._handle(s.Heard(str(peer), record))

    def _view(self) -> s.View:
        heads, edges = {}, {}
        for name, config in self._configs.items():
            at, last = self._heard.get(name, (-1e9, {}))
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
        return s.View(heads, edges, self._policies)

    def _handle(self, event: s.Event) -> None:
        for effect in self._mediator.handle(event, self.now):
            if isinstance(effect, s.Save) and effect.session.uid in self._store.objects:
                item = self._store.objects[effect.session.uid].item
                item["status"] = sessions.stored(effect.session, self.now)
            elif isinstance(effect, s.Send):
                self.say_control(effect.head, effect.record)
            elif isinstance(effect, s.Create):
                if (request := self._store.create(effect)) is not None:
                    self._handle(s.Asked(request))
            elif isinstance(effect, s.Forget):
                self._store.objects.pop(effect.uid, None)
                self._handle(s.Deleted(effect.uid))


@dataclass
class Counts:
    """What applications saw."""

    delays: list[tuple[float, float]] = field(default_factory=list)
    published: int = 0
    joined: Counter[str] = field(default_factory=Counter)


class World:
    """One experiment: a scenario of the demo, on a fleet that is given as resources."""

    def __init__(self, scenario: workload.Scenario, documents: list[Document], quotes: Quotes, policy: str) -> None:
        self.scenario, self.policy = scenario, policy
        self.resources = parse_resources(documents)
        self.plan = workload.plan(scenario, quotes)
        self.schedule = Schedule()
        draw = random.Random(f"{scenario.seed} balancing")
        calm = Weather(delay_seconds=0.0002, jitter_seconds=0.0002)
        self.network = Network(self.schedule, random.Random(draw.random()), calm, calm)
        self.series, self.store, self.counts = Series(READY_SECONDS), Store(), Counts()
        self.configs = {config.name: config for config in _configs(self.resources)}
        self.clients: dict[str, c.Client] = {}
        self.hosts: dict[str, Host] = {}
        for config in self.configs.values():
            self._start(config.name, lambda new_id, config=config: _broker(config, new_id), draw, config)
        head = next(config for config in self.configs.values() if config.role == "head")
        names = ["publishing", *(f"subscribing-{part}" for part in range(CLIENTS))]
        for name in names:
            node = self._start(name, lambda new_id, name=name: c.Client(name, 1, new_id, [c.Address(head.data)]), draw)
            assert isinstance(node, c.Client)
            self.clients[name] = node
            self.hosts[name].keeper = lambda name=name: self._take(name)
        self._start("mediator", lambda _: Mediating(self.resources, self.configs, self.store, draw, self._report), draw)
        self._lay_out()

    def _start(
        self, name: str, make: Callable[[Callable[[], int]], Node], draw: random.Random,
        config: BrokerConfig | None = None,
    ) -> Node:  # fmt: skip
        mine = random.Random(draw.getrandbits(64))
        host = self.hosts[name] = Host(name, self.schedule, self.network, POLL_SECONDS)
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

    def _publish(self, one: workload.Publisher, number: int, seconds: float) -> None:
        if seconds > self.scenario.seconds:
            return
        sent_us = int(self.schedule.now * 1e6)
        self.clients["publishing"].publishers[one.name].publish(one.quote(number).attributes(), sent_us=sent_us)
        self.counts.published += 1
        self.hosts["publishing"].wake()
        after = one.after(seconds)
        self.schedule.at(READY_SECONDS + after, self._publish, one, number + 1, after)

    def _join(self, name: str, one: workload.Subscriber) -> None:
        self.clients[name].subscriber(one.name, prefer=self.scenario.prefer).subscribe(one.text)
        self.counts.joined[name] += 1
        self.hosts[name].wake()

    # -- what is seen

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
                counts = overhead.said(client.counters)
                counts["Newcomer"] = self.counts.joined[name]
                if name != "publishing":
                    self.series.ledger.take(name, counts, now - READY_SECONDS)

    # -- the course of events

    def run(self) -> Outcome:
        """From the first process to the end of the traffic."""
        self.schedule.run(READY_SECONDS + self.scenario.seconds)
        edges = [config.name for config in self.configs.values() if config.role == "edge"]
        found = rows([one.item for one in self.store.objects.values()], READY_SECONDS)
        balance = judge(self.policy, self.scenario, limits_of(self.resources), edges, self.series, found)
        repeated = sum(one.duplicates for client in self.clients.values() for one in client.subscribers.values())
        delays = self.counts.delays
        return Outcome(balance, self.series, delays, self.counts.published, len(delays), repeated)


def _configs(resources: Resources) -> tuple[BrokerConfig, ...]:
    from plimsoll.core.spec.brokers import places

    ends = {place.name: Address(f"sim://{place.name}/data", f"sim://{place.name}/control")
            for place in places(resources)}  # fmt: skip
    return plan(resources, ends)


def _broker(config: BrokerConfig, new_id: Callable[[], int]) -> Node:
    return Head(config, EPOCH, new_id) if config.role == "head" else Edge(config, EPOCH, new_id)
