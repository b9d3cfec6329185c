"""The brokers of a simulated fleet: names, configurations, hosts, and the observers that write the journal.

A head is observed through its log, its owner entries and the messages that it sends to edges; the machines are those of
the product, without hooks for tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core import verify
from plimsoll.core.config import (
    BrokerConfig,
    BrokerHardware,
    BrokerLimits,
    DeclaredGroup,
    HeadStandby,
    LinkSecurity,
    PeerBroker,
)
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.presence import SourcePresence
from plimsoll.simulator.engine.calls import call_after
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.world.durable_heads import DurableHeads, HeadDisk
from plimsoll.simulator.world.standby_heads import StandbyHeads, StandbyPair
from plimsoll.simulator.world.switched_standbys import SwitchedPair

JUST_RESUMED_SECONDS = 0.05
"""A process that goes on deals with what has waited for it within this time."""


@dataclass(frozen=True, slots=True)
class FleetShape:
    """Clusters, and how their heads are linked: as a `chain`, a `star` around the first head, or a `random` tree."""

    clusters: int = 1
    edges: int = 2
    tree: str = "chain"

    def heads(self) -> list[str]:
        return [f"h{i}" for i in range(self.clusters)]

    def links(self, rng: random.Random) -> list[tuple[str, str]]:
        return [(f"h{self._parent(i, rng)}", f"h{i}") for i in range(1, self.clusters)]

    def _parent(self, i: int, rng: random.Random) -> int:
        if self.tree == "random":
            return rng.randrange(i)
        return i - 1 if self.tree == "chain" else 0

    def edges_of(self, head: str) -> list[str]:
        return [f"{head}e{i}" for i in range(self.edges)]


class ObservationJournal:
    """All observations of a run, in order, with times of the virtual clock."""

    def __init__(self, schedule: EventQueue) -> None:
        self.schedule = schedule
        self.all: list[verify.Observation] = []
        self.trace: Callable[[str], None] | None = None

    def add(self, one: verify.Observation) -> None:
        self.all.append(one)
        if self.trace is not None:
            self.trace(f"= {one}")

    @property
    def now(self) -> float:
        return self.schedule.now


def observe_log(
    head: Head, journal: ObservationJournal, on_logged: Callable[[seen.LogEntryObserved], None] | None = None
) -> None:
    """Record each publication that goes into the log that the head has now."""
    add_entry = journal.add if on_logged is None else on_logged

    def appended(position: int, record: bytes, *_: object) -> None:
        pub = msg.to_edge.decode(record)
        if isinstance(pub, msg.PubOpen):
            identity, origin = (pub.publisher, pub.incarnation, pub.seq), (pub.head, pub.epoch, pub.offset)
            add_entry(seen.LogEntryObserved(head.info.name, head.epoch, position, identity, origin, journal.now))

    call_after(head.log, "append_publication", appended)


def observe_head(
    head: Head, journal: ObservationJournal, on_logged: Callable[[seen.LogEntryObserved], None] | None = None
) -> None:
    """Record each publication that the head logs, and each owner that it sets, in the journal.

    Other parts of the head refer to the log and the owner table, so their methods are wrapped rather than replaced by
    recording objects. `on_logged`: gets the entries of the log in place of the journal.
    """
    observe_log(head, journal, on_logged)
    owners, cause = head.owners, ["cut"]

    def observe_owner(subscriber: str, epoch: OwnerEpoch, edge: str, why: str) -> None:
        journal.add(seen.OwnerObserved(subscriber, epoch, edge, journal.now, why))

    def owned(subscriber: str, why: str) -> None:
        entry = owners.entries[subscriber]
        if entry.edge:  # else an edge has reported an older epoch of one that is away, whose place the head keeps
            observe_owner(subscriber, entry.epoch, entry.edge, why)

    def sent_to_edge(_: None, __: str, source: str, record: object) -> None:
        """A cut between clusters is decided here, at the head of the source; it makes the target the owner.

        That is over if the head ends before the source has the cut: so an edge has the epoch only from its DONE on.
        """
        if isinstance(record, msg.Cut) and record.across:
            target = head.coordinator.sessions[record.session].plan.target
            for member in record.members:
                observe_owner(member.subscriber, (member.epoch[0], member.epoch[1] + 1), target, "across")

    def done(_: None, outbox: Outbox, record: msg.Done) -> None:
        for subscriber in record.members:
            entry = owners.entries.get(subscriber)
            if entry is not None and entry.key == outbox.key:
                owned(subscriber, "done")

    call_after(owners, "swap", lambda _, subscriber, *__: owned(subscriber, cause[0]))
    call_after(owners, "adopt", lambda _, subscriber, *__: owned(subscriber, "report"))
    call_after(head.handover_links, "send_to_edge", sent_to_edge)
    handlers, resume = head.handlers.of_brokers, msg.ResumeUp
    on_done = handlers[msg.Done]
    handlers[msg.Done] = lambda outbox, record: done(on_done(outbox, record), outbox, record)
    handlers[resume] = _cause_during(handlers[resume], cause, "resume")
    guest = _cause_during(head.remote_members.on_cut_request, cause, "guest")  # what the journal calls a remote member
    head.remote_members.on_cut_request = guest  # type: ignore[method-assign]  # of this one object


def _cause_during(method: Callable[..., Any], cause: list[str], why: str) -> Callable[..., Any]:
    """The method, with `why` as the cause of owner changes while it runs."""

    def watched(*arguments: Any) -> Any:
        before, cause[0] = cause[0], why
        try:
            return method(*arguments)
        finally:
            cause[0] = before

    return watched


@dataclass(slots=True)
class SimulatedBroker:
    """One broker process, through all its starts. `node`: its last machine, kept after a crash for checks."""

    config: BrokerConfig
    host: SimulatedHost
    epoch: int = 0
    starts: int = 0
    node: OverlayNode | None = field(default=None)
    disk: HeadDisk | None = None

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def is_head(self) -> bool:
        return self.config.role == "head"

    @property
    def is_up(self) -> bool:
        return self.host.node is not None


class SimulatedFleet:
    """All brokers of a run."""

    def __init__(
        self,
        shape: FleetShape,
        limits: BrokerLimits,
        hardware: dict[str, BrokerHardware],
        schedule: EventQueue,
        network: SimulatedNetwork,
        journal: ObservationJournal,
        rng: random.Random,
        policy: dict[str, Any] | None = None,
        durable: DurableHeads | StandbyHeads | None = None,
        groups: tuple[DeclaredGroup, ...] = (),
    ) -> None:
        self.policy, self.durable, self.groups = policy, durable, groups
        self.shape, self.schedule, self.network, self.journal, self.rng = shape, schedule, network, journal, rng
        self.links = shape.links(rng)
        self.brokers: dict[str, SimulatedBroker] = {}
        self.presence = SourcePresence(self._running, lambda: schedule.now, journal.add, said_by=self._said_by)
        for head in shape.heads():
            for config in self._cluster(head, limits, hardware):
                broker = SimulatedBroker(config, SimulatedHost(config.name, schedule, network))
                self.brokers[config.name] = broker
                if durable is not None and broker.is_head:
                    disk_rng = random.Random(f"{config.name}/{rng.getrandbits(32)}")
                    if isinstance(durable, DurableHeads):
                        broker.disk = HeadDisk(config, durable, schedule, disk_rng, journal.add)
                    else:
                        kind = StandbyPair if durable.switch_seconds is None else SwitchedPair
                        broker.disk = kind(config, durable, broker.host, schedule, network, disk_rng, journal.add)
        journal.add(seen.HeadTreeObserved(self.links))

    def _cluster(self, head: str, limits: BrokerLimits, hardware: dict[str, BrokerHardware]) -> list[BrokerConfig]:
        neighbors = [b if a == head else a for a, b in self.links if head in (a, b)]
        edges = self.shape.edges_of(head)

        def config(name: str, **more: Any) -> BrokerConfig:
            return BrokerConfig(
                name=name, cluster=head, data=data_endpoint(name), control=control_endpoint(name), limits=limits,
                hardware=hardware.get(name, BrokerHardware()), security=LinkSecurity(plain=True),
                policy=self.policy, **more,
            )  # fmt: skip

        has_standby = isinstance(self.durable, StandbyHeads) and self.durable.switch_seconds is None
        standby = HeadStandby(head=peer_config(head), control=control_endpoint(head)) if has_standby else None
        return [
            config(
                head,
                role="head",
                edges=tuple(edges),
                neighbors=tuple(map(peer_config, neighbors)),
                groups=self.groups,
                standby=standby,
            ),
            *(config(edge, role="edge", head=peer_config(head)) for edge in edges),
        ]

    def heads(self) -> list[SimulatedBroker]:
        return [broker for broker in self.brokers.values() if broker.is_head]

    def edges(self) -> list[SimulatedBroker]:
        return [broker for broker in self.brokers.values() if not broker.is_head]

    def start(self, name: str) -> None:
        """Start a process with a new epoch, higher than those of its earlier starts."""
        broker = self.brokers[name]
        broker.starts += 1
        broker.epoch = int(self.schedule.now * 1000) * 10 + broker.starts
        new_id = id_maker(self.rng)
        config, epoch = broker.config, broker.epoch
        make: Callable[[], OverlayNode] = (
            (lambda: self._head(config, epoch, new_id, broker.disk))
            if broker.is_head
            else (lambda: self._edge(config, epoch, new_id))
        )
        broker.node = broker.host.start(make, config.data, config.control)
        if broker.disk is not None:
            broker.host.end_round = broker.disk.end_round

    def _head(self, config: BrokerConfig, epoch: int, new_id: Callable[[], int], disk: HeadDisk | None) -> Head:
        recovered = None if disk is None else disk.recover()
        head = Head(config if disk is None else disk.configured(config), epoch, new_id, recovered)
        if isinstance(disk, SwitchedPair):
            disk.on_log = lambda: observe_log(head, self.journal, disk.logged)
        observe_head(head, self.journal, None if disk is None else disk.logged)
        if disk is not None:
            disk.started(head)
        self.presence.watch_head(head)
        return head

    def _edge(self, config: BrokerConfig, epoch: int, new_id: Callable[[], int]) -> Edge:
        edge = Edge(config, epoch, new_id)
        self.presence.watch_edge(edge)
        return edge

    def _said_by(self, name: str) -> float:
        """Words that this broker deals with now were sent at this time or later: they wait while it is paused."""
        host, now = self.brokers[name].host, self.schedule.now
        return host.paused_at if now - host.resumed_at < JUST_RESUMED_SECONDS else now

    def _running(self, name: str) -> OverlayNode | None:
        return self.brokers[name].host.node if name in self.brokers else None

    def crash_standby(self, name: str) -> bool:
        """Kill the standby of a head; another one starts. False if it has none that runs."""
        pair = self.brokers[name].disk
        if not isinstance(pair, StandbyPair) or pair.follower is None or not self.brokers[name].is_up:
            return False
        pair.crash_standby()
        return True

    def covered_heads(self) -> list[str]:
        """Heads that may be killed without a loss, where all have a standby; else all heads."""
        return [
            broker.name for broker in self.heads()
            if not isinstance(broker.disk, StandbyPair) or broker.disk.is_covered or not broker.disk.pair.spares_alone
        ]  # fmt: skip

    def crash(self, name: str, *, with_node: bool = False) -> None:
        """Kill a broker; with its node, so that no connection is closed."""
        broker = self.brokers[name]
        if isinstance(broker.host.node, Edge):
            self.presence.crashed(broker.host.node)
        broker.host.crash(with_node=with_node)
        keeps_all = broker.disk is not None and broker.disk.keeps_all
        if broker.disk is not None:
            broker.disk.crash()
        if broker.is_head and not keeps_all:
            self.journal.add(seen.HeadEndObserved(name, broker.epoch, self.schedule.now))


def data_endpoint(name: str) -> str:
    return f"sim://{name}/data"


def control_endpoint(name: str) -> str:
    return f"sim://{name}/control"


def peer_config(name: str) -> PeerBroker:
    return PeerBroker(name=name, data=data_endpoint(name), control=control_endpoint(name))


def id_maker(rng: random.Random) -> Callable[[], int]:
    """Ids for one machine, from its own generator, so that one machine does not shift the ids of another."""
    own = random.Random(rng.getrandbits(64))
    return lambda: own.getrandbits(32)
