"""An in-memory wire between machines, in virtual time, and a scripted broker, which sends what a test makes it send."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.core.client import Acknowledged, Address, Client, ClientLimits, Delivery
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire as frames
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import Dial, OverlayNode

HEAD, EDGE, OTHER = "tcp://head", "tcp://edge", "tcp://other"


class Wire:
    """Carries frames: a dialling side knows its peer by a string, an accepting side by bytes."""

    def __init__(self) -> None:
        self.now = 100.0
        self.nodes: list[OverlayNode] = []
        self.at: dict[str, OverlayNode] = {}
        self.calls: dict[tuple[int, object, bool], tuple[str, bytes]] = {}
        self.answers: dict[tuple[bytes, bool], tuple[OverlayNode, object]] = {}
        self.frames: deque[tuple[OverlayNode, object, bytes, bool]] = deque()
        self.cut: set[str] = set()
        self.last = 0

    def add(self, node: OverlayNode, *endpoints: str) -> Any:
        self.nodes.append(node)
        for endpoint in endpoints:
            self.at[endpoint] = node
        return node

    def remove(self, node: OverlayNode) -> None:
        """The process has ended; another one may take over its address."""
        self.nodes.remove(node)
        self.at = {endpoint: at for endpoint, at in self.at.items() if at is not node}
        self.frames = deque(each for each in self.frames if each[0] is not node)
        self.drop(*{endpoint for endpoint, _ in self.calls.values()} - set(self.at))

    def drop(self, *endpoints: str) -> None:
        """Connections break and are made again: frames under way are lost, and routing ids change."""
        for key, (endpoint, peer) in list(self.calls.items()):
            if endpoint in endpoints:
                self.frames = deque(
                    each for each in self.frames if each[1] != peer and (id(each[0]), each[1], each[3]) != key
                )
                self.answers.pop((peer, key[2]), None)
                self.calls[key] = (endpoint, self._peer())

    def _peer(self) -> bytes:
        self.last += 1
        return self.last.to_bytes(5, "big")

    def _send(self, node: OverlayNode, peer: object, data: bytes, control: bool) -> None:
        if isinstance(peer, bytes):
            if (found := self.answers.get((peer, control))) is not None:
                self.frames.append((found[0], found[1], data, control))
            return
        call = self.calls.get((id(node), peer, control))
        if call is None or call[0] in self.cut or (to := self.at.get(call[0])) is None:
            return
        self.answers[call[1], control] = (node, peer)
        self.frames.append((to, call[1], data, control))

    def round(self) -> bool:
        """Every node has one turn; whether any frame has moved."""
        for node in self.nodes:
            node.poll(self.now)
            hangups = []
            for each in node.dials_to_make():
                if isinstance(each, Dial):
                    self.calls[id(node), each.peer, each.control] = (each.endpoint, self._peer())
                else:
                    hangups.append(each)
            for control, taken in ((True, node.control_to_send()), (False, node.data_to_send())):
                for peer, data in taken:
                    self._send(node, peer, data, control)
            for each in hangups:
                self.calls.pop((id(node), each.peer, each.control), None)
        moved = bool(self.frames)
        while self.frames:
            to, peer, data, control = self.frames.popleft()
            if control:
                to.receive_control(peer, data, self.now)
            else:
                to.receive(peer, [data], self.now)
        return moved

    def run(self, seconds: float = 0.0, until: Callable[[], object] | None = None) -> None:
        """Let this much time pass, or at most until a condition holds; without both, run until nothing moves."""
        end = self.now + seconds
        while True:
            for _ in range(200):
                moved = self.round()
                if until is not None and until():
                    return
                if not moved:
                    break
            wake = min((node.next_poll_at() for node in self.nodes), default=end)
            if self.now >= end:
                break
            self.now = min(end, max(wake, self.now + 0.001))
        assert until is None, f"not so within {seconds} s"


class Script(OverlayNode):
    """A scripted broker: records what it receives, sends what a test sets. Answers JOIN with `edge` if it has one."""

    def __init__(self, name: str, role: Any, incarnation: int = 1, edge: tuple[str, str] | None = None) -> None:
        draw = random.Random(name)
        info = Info(name, role, incarnation)
        super().__init__(info, LinkLimits(), lambda: draw.getrandbits(32), max_frame_bytes=1 << 20)
        self.heard: list[Any] = []
        self.edge = edge
        self.answers_open = True
        self.last_seq: dict[tuple[str, int], int] = {}

    @property
    def link(self) -> Link:
        return self.handshakes.accepted_links()[-1]

    def on_data(self, link: Link, frame: frames.Data, size: int) -> None:
        self.took(link)
        for raw in frame.records:
            record: Any = msg.decode(msg.from_client, raw)
            self.heard.append(record)
            if isinstance(record, msg.Join) and self.edge is not None:
                self.say(link, msg.Placed(record.subscriber, self.edge[0], self.edge[1], ""))
            elif isinstance(record, msg.Open) and self.answers_open:
                last = self.last_seq.get((record.publisher, record.incarnation), 0)
                self.say(link, msg.Opened(record.handle, self.info.name, self.info.incarnation, last, last + 100))

    def tell(self, *said: Any) -> None:
        for each in said:
            self.say(self.link, each)

    def all(self, kind: type[Any]) -> list[Any]:
        return [each for each in self.heard if isinstance(each, kind)]

    def last_of(self, kind: type[Any]) -> Any:
        return self.all(kind)[-1]


class App:
    """An application that records its events."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.told: list[tuple[str, Any]] = []

    def take(self) -> None:
        for owner, events in self.client.take_events():
            self.told += [(owner.name, event) for event in events]

    def of(self, kind: type[Any], name: str | None = None) -> list[Any]:
        self.take()
        return [event for who, event in self.told if isinstance(event, kind) and name in (None, who)]

    def seqs(self, name: str | None = None) -> list[int]:
        return [each.seq for each in self.of(Delivery, name)]


def make_client(name: str = "app", seed: int = 7, heads: tuple[str, ...] = (HEAD,), **limits: Any) -> Client:
    draw = random.Random(f"{name} {seed}")
    return Client(
        name, 1_000 + seed, lambda: draw.getrandbits(32), [Address(each) for each in heads], ClientLimits(**limits)
    )


def pub(
    position: int, *, offset: int | None = None, head: str = "h", epoch: int = 5, payload: bytes = b""
) -> msg.PubOpen:
    offset = position if offset is None else offset
    return msg.PubOpen(position, head, epoch, offset, "p", 1, offset, 0, 0, msg.Body({"n": position}, payload))


class Stage:
    """A client between a scripted head and scripted edges."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.head: Script = self.wire.add(Script("h", "head", 5, ("e", EDGE)), HEAD)
        self.edge: Script = self.wire.add(Script("e", "edge", 1), EDGE)
        self.client: Client = self.wire.add(make_client())
        self.app = App(self.client)

    def run(self, seconds: float = 0.0) -> None:
        self.wire.run(seconds)
        self.app.take()

    def attach(self, name: str = "s", position: int = 10, **options: Any) -> Any:
        """A subscriber with one subscription, attached and acknowledged."""
        subscriber = self.client.subscriber(name, **options)
        subscriber.subscribe("[n,>,0]")
        self.run()
        self.answer(position)
        return subscriber

    def answer(self, position: int, edge: Script | None = None, **fields: Any) -> msg.Resume:
        """The edge grants the last RESUME that it received."""
        edge = edge or self.edge
        resume: msg.Resume = edge.last_of(msg.Resume)
        what = {"gap": None, "lapsed": False, "head": "h", "epoch": 5, **fields}
        edge.tell(msg.Resumed(resume.attachment, what["head"], what["epoch"], position, what["gap"], what["lapsed"]))
        edge.tell(msg.Suback(resume.attachment, resume.version, []))
        self.run()
        return resume


class Move:
    """A subscriber at `e`, and the messages of the brokers that move it to `o`."""

    session = "4.7"
    cut = ("h", 5, 20)

    def __init__(self, stage: Stage, **options: Any) -> None:
        self.stage = stage
        self.source = stage.edge
        self.target: Script = stage.wire.add(Script("o", "edge", 1), OTHER)
        self.subscriber = stage.attach(position=10, **options)
        self.id = self.subscriber.current.id

    def run(self, seconds: float = 0.0) -> None:
        self.stage.run(seconds)

    def begin(self, session: str = session, **fields: Any) -> None:
        what = {"epoch": self.subscriber.epoch, "edge": "o", "endpoint": OTHER, **fields}
        self.source.tell(
            msg.MoveTo(session, [msg.MoveToItem(self.id, what["epoch"])], what["edge"], what["endpoint"], "")
        )
        self.run()

    @property
    def next(self) -> int:
        """The number of the second attachment."""
        return int(self.target.last_of(msg.Attach).members[0].attachment)

    def held(self, version: int | None = None) -> None:
        version = self.subscriber.subscription_list.version if version is None else version
        self.target.tell(msg.Held([msg.HeldItem(self.next, version)]))
        self.run()

    def suback(self, version: int | None = None, *, edge: Any = None, unreached: tuple[str, ...] = ()) -> None:
        """`edge` acknowledges; the source if it is left out."""
        at = self.next if edge is self.target else self.id
        version = self.subscriber.subscription_list.version if version is None else version
        (edge or self.source).tell(msg.Suback(at, version, list(unreached)))
        self.run()

    def end(self, token: Any = cut, session: str = session) -> None:
        self.source.tell(msg.End(session, token, [self.id]))
        self.run()

    def stay(self, session: str = session) -> None:
        self.source.tell(msg.Stay(self.id, session))
        self.run()

    def change(self) -> int:
        """Another subscription, sent to every edge that has the list."""
        new = int(self.subscriber.subscribe(f"[n,=,{self.subscriber.subscription_list.version}]"))
        self.run()
        return new

    def acknowledged(self) -> list[tuple[int, ...]]:
        return [each.ids for each in self.stage.app.of(Acknowledged)]

    def lose_target(self) -> None:
        self.stage.wire.remove(self.target)
        self.run(10.0)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def move(stage: Stage) -> Move:
    return Move(stage)


@pytest.fixture(scope="session")
def kit() -> Any:
    """The names above, for test modules, which cannot import this file."""

    class Kit:
        wire, script, app, client, pub, stage = Wire, Script, App, staticmethod(make_client), staticmethod(pub), Stage
        delivery, move = Delivery, Move
        head, edge, other = HEAD, EDGE, OTHER

    return Kit
