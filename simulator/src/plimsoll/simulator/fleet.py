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
from plimsoll.core.outlet import Outlet
from plimsoll.core.owners import Owner, Since
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
    """Write each publication that the head logs, and each owner that it makes, into the journal."""
    append, swap, adopt = head.log.append, head.owners.swap, head.owners.adopt
    on_resume, cause = head.membership.on_resume, ["cut"]

    def watched_append(entry: Entry) -> int:
        position = append(entry)
        pub = None if entry.is_gap else r.to_edge.decode(entry.record)
        if isinstance(pub, r.PubOpen):
            identity, origin = (pub.publisher, pub.incarnation, pub.seq), (pub.head, pub.epoch, pub.offset)
            journal.see(seen.Logged(head.info.name, head.epoch, position, identity, origin, journal.now))
        return position

    def owned(subscriber: str, cause: str) -> None:
        entry = head.owners.entries[subscriber]
        journal.see(seen.Owned(subscriber, entry.epoch, entry.key.partition("#")[0], journal.now, cause))

    def watched_swap(subscriber: str, key: str, epoch: OwnerEpoch, now_at: Since) -> Owner | None:
        old = swap(subscriber, key, epoch, now_at)
        owned(subscriber, cause[0])
        return old

    def watched_adopt(subscriber: str, key: str, epoch: OwnerEpoch, since: Since) -> Owner | None:
        loser = adopt(subscriber, key, epoch, since)
        owned(subscriber, "report")
        return loser

    def watched_resume(outlet: Outlet, resume: r.ResumeUp) -> None:
        cause[0] = "resume"
        on_resume(outlet, resume)
        cause[0] = "cut"

    setattr(head.log, "append", watched_append)  # noqa: B010 - others hold the same log: it is watched, not replaced
    setattr(head.owners, "swap", watched_swap)  # noqa: B010
    setattr(head.owners, "adopt", watched_adopt)  # noqa: B010
    setattr(head.membership, "on_resume", watched_resume)  # noqa: B010


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
        journal: Journal, draw: random.Random,
    ) -> None:  # fmt: skip
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
                hardware=hardware.get(name, Hardware()), security=Security(plain=True), **more,
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
