"""A head of the queueing model: a server that sends each publication to the links that need it.

The coordinator of hand-overs, owners, routing table, placement, load exchange and the answers to mediators are the
product's own parts; the way of a publication and the links are modelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.cluster_policy import ClusterPolicies
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.join_requests import edge_for
from plimsoll.core.head.load_exchange import LoadExchange
from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.head.placement import EdgeCandidate, Placement, policy_of
from plimsoll.core.head.publisher_paths import seconds_here
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.head.topic_rates import summed
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.simulator.queueing.broker import EPOCH, ControlWorld, QueueingBroker
from plimsoll.simulator.queueing.output_queue import OutputQueue
from plimsoll.simulator.queueing.overlay_paths import OverlayPaths
from plimsoll.simulator.queueing.publications import Publication

REVOKE_SECONDS = 1.0
TICK_SECONDS = 0.25


class HeadWorld(ControlWorld, Protocol):
    """What a head needs of its world."""

    @property
    def now(self) -> float: ...
    def at(self, at: float, action: Any, /, *args: object) -> None: ...
    def to_edge_stream(self, head: str, edge: str, content: Publication | msg.ToEdge, size_bytes: float, /) -> None:
        """Send in the stream of an edge, behind what was sent before."""

    def relay(self, head: str, neighbor: str, pub: Publication, /) -> None: ...
    @property
    def paths(self) -> OverlayPaths: ...
    @property
    def heads(self) -> Mapping[str, QueueingHead]: ...
    @property
    def link_seconds(self) -> float: ...
    @property
    def publisher_seconds(self) -> float: ...
    def log_missed(self, pub: Publication, /) -> None:
        """A publication has entered the log: subscribers that are between two edges will ask for it."""


@dataclass(slots=True)
class EdgeKey:
    """An edge in the routing table: a key is its name, since no link is ever lost here."""

    key: str


@dataclass(slots=True)
class ModelFence:
    """The highest mediator epoch."""

    epoch: int = 0

    def raise_to(self, epoch: int) -> None:
        self.epoch = max(self.epoch, epoch)


class NoHeldPlaces:
    """No head dies here, so that the source lets go of a member at its cut."""

    are_needed = False

    def swapped(self, subscriber: str, old: OwnerEntry | None) -> None:
        """Another edge is the owner."""


class QueueingHead(QueueingBroker):
    """`routed`: the subscribers that each edge has in its cover, as masks."""

    def __init__(self, world: HeadWorld, config: BrokerConfig) -> None:
        super().__init__(world, config)
        self.world = world
        self.output = OutputQueue(config)
        self.neighbors = [peer.name for peer in config.neighbors]
        self.routes = RoutingTable(self.neighbors, compiled=False)
        self.edges: Mapping[str, EdgeKey] = {name: EdgeKey(name) for name in config.edges}
        self.routed: dict[str, int] = dict.fromkeys(config.edges, 0)
        self.mediator_fence = ModelFence()
        self.is_starting = False
        policy, report_seconds = policy_of(config.policy), config.limits.report_seconds * config.time_factor
        self.log, self.owners = Log(1), OwnershipTable()
        self.placement, self.bundles = Placement(placer_of_spec(policy)), Bundles(policy)
        self.topics = TopicOwners(policy)
        self._accepted: Counter[int] = Counter()
        """Publications of each topic since the last report, as `PublisherTopics` counts them in a head."""

        self.policies = ClusterPolicies(config.policy, report_seconds)
        self.remote_members: frozenset[str] = frozenset()
        self.held_places = NoHeldPlaces()
        for edge in config.edges:
            self.placement.add(edge, edge, "")
        self.commands = MediatorCommands(self, self._served_by)
        self.coordinator = Coordinator(self, self, self.commands.broadcast, REVOKE_SECONDS * config.time_factor)
        self.load_exchange = LoadExchange(self, report_seconds)
        self._server: ServiceQueue[None] = ServiceQueue(config.hardware)
        self._free_at = self._arrived_at = 0.0
        self._tick_at = float("inf")

    @property
    def now(self) -> float:
        return self.world.now

    @now.setter
    def now(self, _: float) -> None:
        raise AttributeError("time is the world's")

    # -- publications

    def take(self, pub: Publication, came_from: str = "") -> None:
        """A publication of a client, or of a neighbour, has arrived."""
        now, hardware, meter = self.world.now, self.config.hardware, self.meter
        self._arrived_at = max(self._arrived_at, now)
        if hardware.input_bytes_per_second is not None:
            self._arrived_at += pub.content.size_bytes / hardware.input_bytes_per_second
        begins = max(self._free_at, self._arrived_at)
        cost = 0.0 if self._server.transparent else self._server.cost(self._covered())
        self._free_at = begins + cost
        meter.arrivals += 1
        meter.served += 1
        meter.service_seconds += cost
        meter.input_wait_seconds += begins - now
        meter.input_waits += 1
        if not came_from and pub.content.topic and self.topics.correlation is not None:
            self._accepted[topic_hash(pub.content.topic)] += 1
        self.world.at(self._free_at, self._send, pub, came_from)

    def _covered(self) -> int:
        return self.routes.total_size((*self.edges, *self.neighbors))

    def _send(self, pub: Publication, came_from: str) -> None:
        self.world.log_missed(pub)
        for edge, mask in self.routed.items():
            if pub.mask & mask:
                self.meter.deliveries += 1
                self.world.to_edge_stream(self.name, edge, pub, pub.content.size_bytes)
        for neighbor in self.neighbors:
            if neighbor != came_from and pub.mask & self.world.paths.behind(self.name, neighbor):
                self.meter.deliveries += 1
                self.world.relay(self.name, neighbor, pub)

    # -- covers and owners

    def apply_cover(self, key: str, cover: msg.Cover) -> None:
        """Apply a covering update of an edge or a neighbour, and pass on what neighbours must know."""
        for name, delta in self.routes.apply(key, cover).items():
            update = self.routes.update(name, delta)
            self.world.say(self.name, name, update)

    def place(self, join: msg.Join) -> EdgeCandidate | None:
        """The edge for a subscriber, or for a unit of one, as the product's head answers JOIN."""
        return edge_for(join, self.placement, self.bundles, self.topics)

    def join(self, subscriber: str, edge: str) -> None:
        """Make an edge the owner of a newcomer."""
        self.owners.swap(subscriber, edge, (1, 1), (EPOCH, self.log.last))

    def _served_by(self, edge: str) -> list[str]:
        return sorted(x for x, owner in self.owners.entries.items() if owner.edge == edge)

    # -- ways to the edges of a hand-over

    def send_to_edge(self, head: str, edge: str, message: msg.ToEdge) -> None:
        self.count_sent((message,))
        self.world.to_edge_stream(head, edge, message, 0.0)
        self.plan_tick()

    def revoke(self, edge: str, message: msg.Revoke) -> None:
        self.say_control(edge, message)

    def has_edge(self, edge: str) -> bool:
        return edge in self.edges

    def reaches(self, head: str) -> bool:
        return self.world.paths.reaches(self.name, head)

    def edge_of(self, owner: OwnerEntry) -> str:
        return owner.edge

    # -- control

    def on_control(self, sender: str, record: msg.ControlRecord) -> None:
        """Take a control record of an edge or a mediator."""
        self.counters[f"heard_{type(record).__name__}"] += 1
        message = self.reporter.on_control(sender, record, self.now)
        if message is None:
            return
        if isinstance(message, msg.LoadUpdate):
            self.placement.update_load(message.report)
        if self.load_exchange.on_control(sender, message):
            return
        if isinstance(message, msg.Command):
            self.commands.on_command(sender, message)
            self.plan_tick()
        elif isinstance(message, msg.BundleTable):
            self.policies.receive_bundles(self, message)
        elif isinstance(message, msg.ListSubscribers):
            self.commands.on_list_subscribers(sender, message)

    def report(self) -> None:
        """Make the load report of the interval that ends now, send it, and send edges each other's loads."""
        for name, delta in self.routes.tidy().items():
            self.world.say(self.name, name, self.routes.update(name, delta))
        self.sealed.records, self.sealed.bytes = self.meter.deliveries, round(self.output.departed_bytes(self.now))
        extra = {
            "subscribers": len(self.owners.entries),
            "subscriptions": self._covered(),
            "covers": {name: self.routes.size(name) for name in (*self.edges, *self.neighbors)},
            "log_bytes": 0,
            "log_limit_bytes": self.config.limits.log_bytes,
            "log_bytes_per_second": 0.0,
            **self.load_exchange.cluster(),
            **self.bundles.report(),
            **self.topics.report(),
            "broker_round_trip_seconds": dict.fromkeys(self.neighbors, 2 * self.world.link_seconds),
            "counters": {**self.meter.total, **self.counters},
        }
        seconds = self.config.limits.report_seconds * self.config.time_factor
        self.topics.rates.look(PublisherTopicLoad("", t, count / seconds) for t, count in self._accepted.items())
        self._accepted.clear()
        self.reporter.tell(self.reporter.make(self.now, "OK", extra))
        self.load_exchange.tell_loads()
        if self.topics.is_used:
            others = (head for head in self.world.heads.values() if head.topics.attribute == self.topics.attribute)
            self.topics.rates.elsewhere = summed(head.topics.rates.own for head in others if head is not self)
            self._tell_paths()

    @property
    def seconds_here(self) -> float:
        """What a publication takes in this head, by its last report."""
        return seconds_here(self.reporter.last, self.config.hardware.output_bytes_per_second)

    def _tell_paths(self) -> None:
        """Tell the edges how far publishers are: those of each head that this one reaches."""
        origins = [
            msg.OriginPath(
                path[-1], self.world.publisher_seconds, (len(path) - 1) * self.world.link_seconds,
                sum(self.world.heads[name].seconds_here for name in path),
            )
            for _, path in sorted(self.world.paths.paths_from(self.name).items())
        ]  # fmt: skip
        for edge in self.edges:
            self.world.say(self.name, edge, msg.PublisherPaths(self.topics.attribute, origins))

    # -- time

    def plan_tick(self) -> None:
        """Let the coordinator act when it wants to, and now and then while a hand-over is under way."""
        if not self.coordinator.sessions:
            return
        at = max(self.now, min(self.coordinator.wake_at(), self.now + TICK_SECONDS * self.config.time_factor))
        if at < self._tick_at or self._tick_at < self.now:
            self._tick_at = at
            self.world.at(at, self._ticked, at)

    def _ticked(self, at: float) -> None:
        if at == self._tick_at:
            self._tick_at = float("inf")
            self.coordinator.tick()
            self.coordinator.expire()
            self.plan_tick()
