"""A run of the queueing model: brokers of the given resources, traffic, and a mediator, on one event heap.

The same resources, traffic and seed give the same run, to the last report.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.policies.model.topic_requirements import TopicRequirements, topic_requirements
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec import Resources
from plimsoll.core.spec.broker_config import BrokerEndpoints, broker_configs, policy_of
from plimsoll.core.spec.brokers import declared_brokers, head_name
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.queueing import mediator
from plimsoll.simulator.queueing.applications import Counts, QueueingApplications
from plimsoll.simulator.queueing.delays import DelaysOverTime
from plimsoll.simulator.queueing.edge import QueueingEdge
from plimsoll.simulator.queueing.handover import Handovers
from plimsoll.simulator.queueing.head import QueueingHead
from plimsoll.simulator.queueing.overlay_paths import OverlayPaths
from plimsoll.simulator.queueing.pauses import Pauses
from plimsoll.simulator.queueing.publications import Content, ContentTable, Publication
from plimsoll.simulator.queueing.subscriber_units import divided, topic_attributes
from plimsoll.simulator.queueing.traffic import Traffic

ReportSink = Callable[[Mapping[str, Any], float], object]


@dataclass(frozen=True, slots=True)
class LinkDelays:
    """How long a message is under way, in seconds: between brokers, and between a broker and a client.

    `control`: of what brokers and mediators say on control sockets, if that takes another way than publications.
    `from_publishers`: between publishers and their heads, if they are not as far away as subscribers from edges.
    """

    between_brokers: float = 0.0002
    to_clients: float = 0.0002
    control: float | None = None
    from_publishers: float | None = None


def _ignore(_: Mapping[str, Any], __: float) -> None:
    """No sink for load reports."""


class QueueingFleet:
    """`on_report` is called with every load report that reaches the mediator, and the time.

    `spread_reports`: brokers make their load reports at different times, drawn from the seed; else all at once.
    `clients`: the processes that subscribers share, each with one link to every edge; None: the heads of frames are not
    counted. `fair_output`: edges share their output fairly, instead of first come, first served as the product does,
    among subscribers or, with `fair_by_topic`, among topics. `required`: within which time topics are to be delivered,
    if it is not what the policy of the first cluster says.
    """

    def __init__(
        self,
        resources: Resources,
        traffic: Traffic,
        *,
        seed: int = 0,
        links: LinkDelays = LinkDelays(),  # a frozen value
        on_report: ReportSink = _ignore,
        delay_interval_seconds: float = 1.0,
        spread_reports: bool = True,
        clients: int | None = None,
        fair_output: bool = False,
        fair_by_topic: bool = False,
        required: TopicRequirements | None = None,
        mediator_pauses: mediator.MediatorPauses = mediator.MediatorPauses(),  # noqa: B008  # a frozen value
    ) -> None:
        policies = _policies(resources)
        self.resources, self.links = resources, links
        self.traffic = traffic = divided(traffic, topic_attributes(policies))
        self.schedule, self.clients = EventQueue(), clients
        self.counts, self.pauses = Counts(), Pauses()
        self.delays = DelaysOverTime(delay_interval_seconds)
        self.contents = ContentTable(traffic.subscribers, required or _required(policies))
        self._subscribers = {each.name: each for each in traffic.subscribers}
        self.configs = {config.name: config for config in _configs(resources)}
        self.heads = {name: QueueingHead(self, c) for name, c in self.configs.items() if c.role == "head"}
        self.edges = {
            name: QueueingEdge(self, c, is_fair=fair_output or fair_by_topic, is_by_topic=fair_by_topic)
            for name, c in self.configs.items() if c.role == "edge"
        }  # fmt: skip
        self.handovers = Handovers(self)
        self.applications = QueueingApplications(self)
        neighbors = {name: head.neighbors for name, head in self.heads.items()}
        self.paths = OverlayPaths(neighbors, lambda name: self.heads[name].routed.values())
        spec = resources.fleet.spec
        self.mediator = mediator.QueueingMediator(
            self,
            self.configs,
            policies,
            spec.time_scale_percent / 100,
            on_report,
            _global_seconds(resources),
            mediator_pauses,
        )
        self._lay_out(random.Random(f"{seed} reports") if spread_reports else None)

    # -- time

    @property
    def now(self) -> float:
        return self.schedule.now

    def at(self, at: float, action: Any, /, *args: object) -> None:
        self.schedule.at(at, action, *args)

    def run(self, until: float) -> None:
        """Run to this time, in seconds."""
        self.schedule.run(until)
        for edge in self.edges.values():
            edge.advance(until)
            edge.output.advance(until)

    def _lay_out(self, draw: random.Random | None) -> None:
        for name, edge in self.edges.items():
            self.say(name, edge.config.head_name, msg.Identify(name, "edge", edge.epoch))
        brokers: list[QueueingHead | QueueingEdge] = [*self.heads.values(), *self.edges.values()]
        for broker in brokers:
            seconds = broker.config.limits.report_seconds * broker.config.time_factor
            self.at(draw.uniform(0.0, seconds) if draw is not None else 0.0, self._report, broker, seconds)
        self.at(0.0, self.mediator.tick)
        self.applications.plan(self.traffic)

    def _report(self, broker: QueueingHead | QueueingEdge, seconds: float) -> None:
        broker.report()
        self.at(self.now + seconds, self._report, broker, seconds)

    # -- applications

    def edge_for(self, subscriber: str, /) -> QueueingEdge:
        own = self._subscribers[subscriber]
        head = self.heads[head_name(own.cluster)]
        placed = head.place(msg.Join(subscriber, prefer=own.prefer, head=head.name, location=own.location))
        if placed is None:
            raise ValueError(f"cluster {own.cluster} has no edge for {subscriber}")
        return self.edges[placed.name]

    def delivered(self, at: float, delay_seconds: float, count: int, content: Content, /) -> None:
        self.counts.delivered += count
        if content.required_seconds != float("inf"):
            self.counts.of_topics[content.topic] += count
            if delay_seconds + self.links.to_clients > content.required_seconds:
                self.counts.late[content.topic] += count
        self.delays.add(at + self.links.to_clients, delay_seconds + self.links.to_clients, count)

    def frames_for(self, count: int, /) -> float:
        """The mean number of links that this many deliveries go to: subscribers are spread over clients by chance."""
        if self.clients is None:
            return 0.0
        return self.clients * (1.0 - (1.0 - 1.0 / self.clients) ** count)

    # -- subscribers

    def bit(self, subscriber: str, /) -> int:
        return self.contents.bits[subscriber]

    def mask(self, subscribers: Sequence[str], /) -> int:
        found = 0
        for subscriber in subscribers:
            found |= self.contents.bits[subscriber]
        return found

    def texts(self, subscriber: str, /) -> tuple[str, ...]:
        return self._subscribers[subscriber].subscriptions

    def owners(self) -> dict[str, str]:
        """The edge of each subscriber."""
        return {x: owner.edge for head in self.heads.values() for x, owner in sorted(head.owners.entries.items())}

    # -- links

    @property
    def link_seconds(self) -> float:
        return self.links.between_brokers

    @property
    def client_seconds(self) -> float:
        return self.links.to_clients

    @property
    def publisher_seconds(self) -> float:
        own = self.links.from_publishers
        return self.links.to_clients if own is None else own

    def to_edge_stream(self, head: str, edge: str, content: Publication | msg.ToEdge, size_bytes: float, /) -> None:
        there = self.edges[edge]
        if not isinstance(content, Publication):
            sender = self.heads[there.config.head_name]
            far = self.paths.hops(head, sender.name) * self.link_seconds
            there.submit(content, 0.0, max(self.now, sender.output.free_at) + far + self.link_seconds)
            return
        _, last = self.heads[head].output.send(size_bytes, self.now)
        there.submit(content, size_bytes, last + self.link_seconds)

    def relay(self, head: str, neighbor: str, pub: Publication, /) -> None:
        _, last = self.heads[head].output.send(pub.content.size_bytes, self.now)
        self.at(last + self.link_seconds, self.heads[neighbor].take, pub, head)

    def say(self, sender: str, receiver: str, /, *said: Any) -> None:
        control = self.links.control
        later = self.link_seconds if control is None else control
        self.at(self.now + later, self._hear, sender, receiver, said)

    def _hear(self, sender: str, receiver: str, said: Iterable[Any]) -> None:
        for record in said:
            if isinstance(record, msg.Cover):
                self.heads[receiver].apply_cover(sender, record)
            elif receiver == mediator.NAME:
                self.mediator.on_control(sender, record)
            elif isinstance(record, msg.Revoke):
                self.handovers.replays.on_revoke(self.edges[receiver], record)
            elif receiver in self.edges:
                self.edges[receiver].on_control(sender, record)
            else:
                self.heads[receiver].on_control(sender, record)

    def handle_message(self, edge: QueueingEdge, message: msg.ToEdge, /) -> None:
        self.handovers.handle(edge, message)

    def released(self, edge: QueueingEdge, units: Sequence[str], /) -> None:
        self.handovers.replays.look_up(edge, units)

    def log_missed(self, pub: Publication, /) -> None:
        self.handovers.replays.log_missed(pub)

    def prepared(self, head: str, session: str, /) -> None:
        self.handovers.begin(self.heads[head], session)


def _configs(resources: Resources) -> Iterable[BrokerConfig]:
    ends = {place.name: BrokerEndpoints(place.name, place.name) for place in declared_brokers(resources)}
    return broker_configs(resources, ends)


def _policies(resources: Resources) -> dict[str, PolicySpec]:
    known = {cluster: policy_of(resources, cluster) for cluster in resources.clusters}
    return {cluster: policy for cluster, policy in known.items() if policy is not None}


def _required(policies: Mapping[str, PolicySpec]) -> TopicRequirements | None:
    """What the first policy requires that defends deadlines."""
    found = (topic_requirements(policies[cluster]) for cluster in sorted(policies))
    return next((each for each in found if each is not None), None)


def _global_seconds(resources: Resources) -> float | None:
    balancing = resources.fleet.spec.global_balancing
    return balancing.interval.seconds if balancing.enabled else None
