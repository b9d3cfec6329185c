"""Fleets in memory: real heads and edges, scripted clients, and frames that are carried between them in virtual time.

The dialling side knows its peer by a string, the accepting side by bytes, as with sockets. A node may be frozen (it
takes nothing), crashed, or started again with a later epoch; a connection may be cut and made again.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from plimsoll.core.config import BrokerConfig, BrokerHardware, BrokerLimits, PeerBroker
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import Dial, OverlayNode

LIMITS: dict[str, Any] = {
    "heartbeat_seconds": 0.5,
    "dead_seconds": 2.0,
    "lease_seconds": 5.0,
    "progress_seconds": 0.1,
    "confirm_seconds": 1.0,
    "block_seconds": 3.0,
}
STOCK = "[class,=,'STOCK']"
T = TypeVar("T")


@dataclass
class Connection:
    """One connection: `name` is what the dialling side calls it, `id` what the accepting side does."""

    dialler: str
    name: str
    acceptor: str
    id: bytes
    control: bool = False
    cut: bool = False
    up: deque[bytes] = field(default_factory=deque)
    down: deque[bytes] = field(default_factory=deque)


class Client(OverlayNode):
    """A scripted client, which records every record that it receives, by link."""

    def __init__(self, name: str, new_id: Callable[[], int], limits: LinkLimits, incarnation: int = 1) -> None:
        super().__init__(Info(name, "client", incarnation), limits, new_id, max_frame_bytes=2**20)
        self.heard: dict[str, list[Any]] = defaultdict(list)
        self.lost: list[str] = []
        self.refusals: list[tuple[str, str]] = []
        self.takes = True

    def tell(self, broker: str, *records: Any) -> None:
        for record in records:
            self.say(self.dialled[broker], record)

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            self.heard[str(link.peer)].append(msg.to_client.decode(raw))
        if self.takes:
            self.took(link)

    def on_room(self, link: Link) -> None:
        if link.buffer:
            self.dirty[link] = None

    def on_lost(self, link: Link) -> None:
        self.lost.append(str(link.peer))

    def on_refused(self, link: Link, code: str, text: str) -> None:
        self.refusals.append((code, text))

    def of(self, broker: str, kind: type[T]) -> list[T]:
        """All records of one kind that a broker has sent."""
        return [record for record in self.heard[broker] if isinstance(record, kind)]

    def items(self, broker: str, attachment: int) -> list[msg.PubOpen | msg.Gap]:
        return [d.item for d in self.of(broker, msg.Deliver) if d.attachment == attachment]

    def numbers(self, broker: str, attachment: int) -> list[int]:
        """The publications of one attachment, by the publisher's number."""
        return [item.seq for item in self.items(broker, attachment) if isinstance(item, msg.PubOpen)]

    def gaps(self, broker: str, attachment: int) -> list[msg.Gap]:
        return [item for item in self.items(broker, attachment) if isinstance(item, msg.Gap)]


class Fleet:
    """Brokers and clients by name, and the connections between them."""

    def __init__(self, seed: int = 1, limits: dict[str, Any] | None = None) -> None:
        self.draw = random.Random(seed)
        self.limits = BrokerLimits(**{**LIMITS, **(limits or {})})
        self.now = 100.0
        self.epoch = 10
        self.configs: dict[str, BrokerConfig] = {}
        self.nodes: dict[str, OverlayNode] = {}
        self.frozen: set[str] = set()
        self.connections: list[Connection] = []
        self.disks: dict[str, MemoryFiles] = {}
        """Of heads that keep their log; all that a round has logged is safe before anything of it is sent."""
        self.commits: dict[str, RoundCommit] = {}
        self.reports: dict[str, list[Any]] = defaultdict(list)
        self.identity = "app"
        """Whose key all of them have; empty in a fleet without keys."""

    # -- making

    def cluster(
        self,
        head: str,
        edges: list[str],
        neighbors: tuple[str, ...] = (),
        hardware: dict[str, BrokerHardware] | None = None,
    ) -> None:
        hardware = hardware or {}
        common: dict[str, Any] = {"cluster": head, "limits": self.limits}
        peer = PeerBroker(name=head, data=f"mem://{head}", control=f"ctl://{head}")
        peers = tuple(PeerBroker(name=n, data=f"mem://{n}", control=f"ctl://{n}") for n in neighbors)
        self.configs[head] = BrokerConfig(
            name=head, role="head", data=peer.data, control=peer.control, edges=tuple(edges), neighbors=peers,
            hardware=hardware.get(head, BrokerHardware()), **common,
        )  # fmt: skip
        for edge in edges:
            self.configs[edge] = BrokerConfig(
                name=edge, role="edge", data=f"mem://{edge}", control=f"ctl://{edge}", head=peer,
                hardware=hardware.get(edge, BrokerHardware()), **common,
            )  # fmt: skip

    def start(self, *names: str) -> None:
        """Start brokers, all if none is named; a broker that was there before has a later epoch."""
        for name in names or list(self.configs):
            self.epoch += 1
            config, new_id = self.configs[name], self.ids()
            if name in self.disks:
                self.nodes[name] = self._recovered(name, config, new_id)
            else:
                self.nodes[name] = (Head if config.role == "head" else Edge)(config, self.epoch, new_id)
            self.nodes[name].now = self.now
            self.nodes[name].identity_of = lambda peer: self.identity

    def _recovered(self, name: str, config: BrokerConfig, new_id: Callable[[], int]) -> Head:
        """A head with the log that its disk has."""
        store = LogStore(self.disks[name], name, 4_000_000, 16_000)
        head = Head(config, self.epoch, new_id, recovered_log(store, store.recover(), is_synced=True))
        self.commits[name] = RoundCommit(store, head)
        self.commits[name].begin(self.now)
        return head

    def ids(self) -> Callable[[], int]:
        draw = random.Random(self.draw.getrandbits(64))
        return lambda: draw.getrandbits(32)

    def client(self, name: str, *brokers: str, **limits: Any) -> Client:
        """A client with a link to each of these brokers."""
        of_link = {"heartbeat_seconds": 0.5, "dead_seconds": 2.0, **limits}
        client = Client(name, self.ids(), LinkLimits(**of_link))
        client.now = self.now
        self.nodes[name] = client
        for broker in brokers:
            client.dial(broker, f"mem://{broker}")
        self.run(0.1)
        return client

    def head(self, name: str = "h") -> Head:
        node = self.nodes[name]
        assert isinstance(node, Head)
        return node

    def edge(self, name: str) -> Edge:
        node = self.nodes[name]
        assert isinstance(node, Edge)
        return node

    # -- faults

    def crash(self, name: str) -> None:
        del self.nodes[name]
        self.commits.pop(name, None)
        self.connections = [c for c in self.connections if name != c.dialler]
        for connection in self.connections:
            if connection.acceptor == name:
                connection.up.clear()
                connection.down.clear()

    def freeze(self, name: str) -> None:
        self.frozen.add(name)

    def thaw(self, name: str) -> None:
        self.frozen.discard(name)

    def cut(self, a: str, b: str) -> None:
        """Nothing passes between the two, and frames under way are lost."""
        for connection in self._between(a, b):
            connection.cut = True
            connection.up.clear()
            connection.down.clear()

    def mend(self, a: str, b: str) -> None:
        for connection in self._between(a, b):
            connection.cut = False

    def _between(self, a: str, b: str) -> list[Connection]:
        return [c for c in self.connections if {c.dialler, c.acceptor} == {a, b}]

    # -- time

    def run(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.now < end:
            self.settle()
            ticks = [node.next_poll_at() for name, node in self.nodes.items() if name not in self.frozen]
            self.now = min(end, max(min(ticks, default=end), self.now + 0.002))
        self.settle()

    def settle(self) -> None:
        """Rounds at this instant, until nothing moves."""
        for _ in range(1000):
            if not self.round():
                return
        raise AssertionError("the fleet does not come to rest")

    def round(self) -> bool:
        moved = False
        for name, node in list(self.nodes.items()):
            if name in self.frozen:
                continue
            for peer, frame, is_control in self._arrivals(name):
                moved = True
                if is_control:
                    node.receive_control(peer, frame, self.now)
                else:
                    node.receive(peer, [frame], self.now)
            node.poll(self.now)
            moved = self._carry(name, node) or moved
        return moved

    def _arrivals(self, name: str) -> list[tuple[str | bytes, bytes, bool]]:
        arrived: list[tuple[str | bytes, bytes, bool]] = []
        for connection in sorted(self.connections, key=lambda c: not c.control):
            if connection.acceptor == name:
                arrived += [(connection.id, frame, connection.control) for frame in connection.up]
                connection.up.clear()
            if connection.dialler == name:
                arrived += [(connection.name, frame, connection.control) for frame in connection.down]
                connection.down.clear()
        return arrived

    def _carry(self, name: str, node: OverlayNode) -> bool:
        """Whether there was anything to carry."""
        for what in node.dials_to_make():
            same = [c for c in self.connections if (c.dialler, c.name, c.control) == (name, what.peer, what.control)]
            if isinstance(what, Dial) and not same:
                acceptor = what.endpoint.partition("://")[2]
                number = len(self.connections).to_bytes(5, "big") + self.draw.randbytes(4)
                self.connections.append(Connection(name, what.peer, acceptor, number, what.control))
            elif not isinstance(what, Dial):
                self.connections = [c for c in self.connections if c not in same]
        if name in self.commits:
            self.commits[name].write(self.now)
        control, data = node.control_to_send(), node.data_to_send()
        for peer, frame in control:
            self._send(name, node, peer, frame, True)
        for peer, frame in data:
            self._send(name, node, peer, frame, False)
        return bool(control or data)

    def _send(self, name: str, node: OverlayNode, peer: Any, frame: bytes, control: bool) -> None:
        for connection in self.connections:
            if connection.control != control:
                continue
            if connection.dialler == name and connection.name == peer:
                if not connection.cut and connection.acceptor in self.nodes:
                    connection.up.append(frame)
                return
            if connection.acceptor == name and connection.id == peer:
                if not connection.cut and connection.dialler in self.nodes:
                    connection.down.append(frame)
                return
        node.gone(peer, self.now)

    # -- what tests do most

    def mediator(self, *brokers: str) -> Mediator:
        mediator = Mediator("mediator", self.ids())
        mediator.now = self.now
        self.nodes["mediator"] = mediator
        for broker in brokers:
            mediator.dial_control(broker, f"ctl://{broker}")
            mediator.say_control(broker, msg.Identify("mediator", "mediator", 1))
        return mediator


class Mediator(OverlayNode):
    """Control sockets only: records what brokers send."""

    def __init__(self, name: str, new_id: Callable[[], int]) -> None:
        super().__init__(Info(name, "client", 1), LinkLimits(), new_id, max_frame_bytes=2**20)
        self.heard: dict[str, list[Any]] = defaultdict(list)

    def on_control(self, peer: Any, record: Any) -> None:
        self.heard[str(peer)].append(record)


class Publishing:
    """One publisher of a client: numbers its publications."""

    def __init__(self, client: Client, head: str, name: str = "p", handle: int = 1, incarnation: int = 1) -> None:
        self.client, self.head, self.handle, self.seq = client, head, handle, 0
        self.name, self.incarnation = name, incarnation
        client.tell(head, msg.Open(handle, name, incarnation))

    def publish(self, count: int = 1, confirm: bool = False, payload: bytes = b"", **attributes: Any) -> None:
        for _ in range(count):
            self.seq += 1
            self.client.tell(self.head, publication(self.handle, self.seq, confirm, payload, **attributes))

    @property
    def accepted(self) -> int:
        return max((a.through for a in self.client.of(self.head, msg.Accepted) if a.handle == self.handle), default=0)


def publication(handle: int, seq: int, confirm: bool = False, payload: bytes = b"", **attributes: Any) -> msg.Publish:
    body = wire.encode(msg.Body({"class": "STOCK", "n": seq, **attributes}, payload))
    return msg.Publish(handle, seq, int(confirm), 0, msgspec.Raw(body))


def resume(
    attachment: int, subscriber: str, *texts: str, n: int = 1, token: wire.Token | None = None, **policy: Any
) -> msg.Resume:
    items = [msg.SubscriptionItem(i, text) for i, text in enumerate(texts or (STOCK,), 1)]
    return msg.Resume(attachment, subscriber, (1, n), 1, items, msg.Policy(**policy), token, [])


def one_cluster(
    edges: int = 2, seed: int = 1, hardware: dict[str, BrokerHardware] | None = None, **limits: Any
) -> Fleet:
    """A head `h` and its edges `e1`, `e2`..., up and ready."""
    fleet = Fleet(seed, limits)
    fleet.cluster("h", [f"e{i}" for i in range(1, edges + 1)], hardware=hardware)
    fleet.start()
    fleet.run(1.0)
    return fleet


def tree(
    links: list[tuple[str, str]], seed: int = 1, hardware: dict[str, BrokerHardware] | None = None, **limits: Any
) -> Fleet:
    """A head per name in the links, each with one edge: head `a` has edge `a1`."""
    fleet = Fleet(seed, limits)
    for name in sorted({name for link in links for name in link}):
        neighbors = sorted(b if a == name else a for a, b in links if name in (a, b))
        fleet.cluster(name, [f"{name}1"], tuple(neighbors), hardware)
    fleet.start()
    fleet.run(2.0)
    return fleet
