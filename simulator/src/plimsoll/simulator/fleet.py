"""The brokers of a simulated fleet: names, configurations, hosts, and the eyes that write the journal.

Only what a broker does is watched, by looking over its log and its table of owners; nothing is asked of it that a
process would not be asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core import records as r
from plimsoll.core import verify
from plimsoll.core.config import BrokerConfig, Hardware, Limits, Peer, Security
from plimsoll.core.edge import Edge
from plimsoll.core.head import Head
from plimsoll.core.log import Entry
from plimsoll.core.node import Node
from plimsoll.core.verify import observations as seen
from plimsoll.core.wire import OwnerEpoch
from plimsoll.simulator.host import Host
from plimsoll.simulator.network import Network
from plimsoll.simulator.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Shape:
    """Clusters and how their heads are joined: `chain`, `star` (the first is the middle) or `random` tree."""

    clusters: int = 1
    edges: int = 2
    tree: str = "chain"

    def heads(self) -> list[str]:
        return [f"h{i}" for i in range(self.clusters)]

    def links(self, draw: random.Random) -> list[tuple[str, str]]:
        return [(f"h{self._parent(i, draw)}", f"h{i}") for i in range(1, self.clusters)]

    def _parent(self, i: int, draw: random.Random) -> int:
        if self.tree == "random":
            return draw.randrange(i)
        return i - 1 if self.tree == "chain" else 0

    def edges_of(self, head: str) -> list[str]:
        return [f"{head}e{i}" for i in range(self.edges)]


class Journal:
    """What is observed, in order, on the schedule's clock."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.all: list[verify.Observation] = []
        self.trace: Callable[[str], None] | None = None

    def see(self, one: verify.Observation) -> None:
        self.all.append(one)
        if self.trace is not None:
            self.trace(f"= {one}")

    @property
    def now(self) -> float:
        return self.schedule.now


def watch(head: Head, journal: Journal) -> None:
    """Write each publication that the head logs, and each owner that it makes, into the journal.

    Others hold the same parts: they are watched where they are, not replaced.
    """
    owners, cause = head.owners, ["cut"]

    def see(subscriber: str, epoch: OwnerEpoch, edge: str, why: str) -> None:
        journal.see(seen.Owned(subscriber, epoch, edge, journal.now, why))

    def owned(subscriber: str, why: str) -> None:
        entry = owners.entries[subscriber]
        see(subscriber, entry.epoch, entry.key.partition("#")[0], why)

    def appended(position: int, entry: Entry) -> None:
        pub = None if entry.is_gap else r.to_edge.decode(entry.record)
        if isinstance(pub, r.PubOpen):
            identity, origin = (pub.publisher, pub.incarnation, pub.seq), (pub.head, pub.epoch, pub.offset)
            journal.see(seen.Logged(head.info.name, head.epoch, position, identity, origin, journal.now))

    def told(_: None, __: str, source: str, record: object) -> None:
        """The decision on a cut across clusters is what makes the guest the owner."""
        if isinstance(record, r.Cut) and record.across:
            target = head.office.coordinator.sessions[record.session].plan.target
            for member in record.members:
                see(member.subscriber, (member.epoch[0], member.epoch[1] + 1), target, "cut")

    _after(head.log, "append", appended)
    _after(owners, "swap", lambda _, subscriber, *__: owned(subscriber, cause[0]))
    _after(owners, "adopt", lambda _, subscriber, *__: owned(subscriber, "report"))
    _after(head.office, "to_edge", told)
    _during(head.membership, "on_resume", cause, "resume")
    _during(head.office.guests, "cut_request", cause, "guest")


def _after(part: object, name: str, then: Callable[..., None]) -> None:
    """Call `then` with the result and the arguments after each call of a method of this one object."""
    method = getattr(part, name)

    def watched(*arguments: Any) -> Any:
        result = method(*arguments)
        then(result, *arguments)
        return result

    setattr(part, name, watched)


def _during(part: object, name: str, cause: list[str], why: str) -> None:
    """Let `why` be the cause of what happens within a method of this one object."""
    method = getattr(part, name)

    def watched(*arguments: Any) -> Any:
        before, cause[0] = cause[0], why
        try:
            return method(*arguments)
        finally:
            cause[0] = before

    setattr(part, name, watched)


@dataclass(slots=True)
class Broker:
    """One broker process and what it is started from."""

    config: BrokerConfig
    host: Host
    epoch: int = 0
    starts: int = 0
    node: Node | None = field(default=None)

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def is_head(self) -> bool:
        return self.config.role == "head"

    @property
    def is_up(self) -> bool:
        return self.host.node is not None


class Fleet:
    """All brokers of a run."""

    def __init__(
        self, shape: Shape, limits: Limits, hardware: dict[str, Hardware], schedule: Schedule, network: Network,
        journal: Journal, draw: random.Random, policy: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.policy = policy
        self.shape, self.schedule, self.network, self.journal, self.draw = shape, schedule, network, journal, draw
        self.links = shape.links(draw)
        self.brokers: dict[str, Broker] = {}
        for head in shape.heads():
            for config in self._cluster(head, limits, hardware):
                self.brokers[config.name] = Broker(config, Host(config.name, schedule, network))
        journal.see(seen.Fleet(self.links))

    def _cluster(self, head: str, limits: Limits, hardware: dict[str, Hardware]) -> list[BrokerConfig]:
        neighbors = [b if a == head else a for a, b in self.links if head in (a, b)]
        edges = self.shape.edges_of(head)

        def config(name: str, **more: Any) -> BrokerConfig:
            return BrokerConfig(
                name=name, cluster=head, data=data(name), control=control(name), limits=limits,
                hardware=hardware.get(name, Hardware()), security=Security(plain=True),
                policy=self.policy, **more,
            )  # fmt: skip

        return [
            config(head, role="head", edges=tuple(edges), neighbors=tuple(map(peer, neighbors))),
            *(config(edge, role="edge", head=peer(head)) for edge in edges),
        ]

    def heads(self) -> list[Broker]:
        return [broker for broker in self.brokers.values() if broker.is_head]

    def edges(self) -> list[Broker]:
        return [broker for broker in self.brokers.values() if not broker.is_head]

    def start(self, name: str) -> None:
        """Start a process with an epoch of its own, later than all before it."""
        broker = self.brokers[name]
        broker.starts += 1
        broker.epoch = int(self.schedule.now * 1000) * 10 + broker.starts
        new_id = id_maker(self.draw)
        config, epoch = broker.config, broker.epoch
        make: Callable[[], Node] = (
            (lambda: self._head(config, epoch, new_id)) if broker.is_head else (lambda: Edge(config, epoch, new_id))
        )
        broker.node = broker.host.start(make, config.data, config.control)

    def _head(self, config: BrokerConfig, epoch: int, new_id: Callable[[], int]) -> Head:
        head = Head(config, epoch, new_id)
        watch(head, self.journal)
        return head

    def crash(self, name: str) -> None:
        broker = self.brokers[name]
        broker.host.crash()
        if broker.is_head:
            self.journal.see(seen.HeadEnded(name, broker.epoch, self.schedule.now))


def data(name: str) -> str:
    return f"sim://{name}/data"


def control(name: str) -> str:
    return f"sim://{name}/control"


def peer(name: str) -> Peer:
    return Peer(name=name, data=data(name), control=control(name))


def id_maker(draw: random.Random) -> Callable[[], int]:
    """A source of ids of its own: what one machine draws does not shift what another draws."""
    mine = random.Random(draw.getrandbits(64))
    return lambda: mine.getrandbits(32)
