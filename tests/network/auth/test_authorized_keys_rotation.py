"""Keys are replaced while links are up: a new one is added, its owner changes over, the old one is removed.

A real head behind real sockets, and scripted peers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from plimsoll.broker.event_loop import BrokerLoop
from plimsoll.broker.main import new_id
from plimsoll.broker.network.socket_lane import BrokerCurveKeys
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.core.config import BrokerConfig, BrokerHardware, BrokerLimits, LinkSecurity
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages, wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link
from plimsoll.network.auth.authorized_keys import AuthorizedKeys

DEADLINE_SECONDS = 300
LINK = 77
KEEPS = BrokerLimits(lease_seconds=0.001)


class Silent:
    """No signals are sent."""

    signals = 0
    descriptors: tuple[int, ...] = ()

    def clear(self) -> None: ...

    def parent_is_gone(self) -> bool:
        return False


class Said:
    """One connection of one key pair to one of the head's sockets."""

    def __init__(self, socket: zmq.Socket, name: str, role: Any) -> None:
        self.socket, self.name, self.role = socket, name, role

    def hello(self, *, known: bool = False, link: int = LINK) -> None:
        self.socket.send(wire.hello_frame(link, 0, known, Info(self.name, self.role, 1)))

    def ping(self, number: int = 1) -> None:
        if self.role == "mediator":
            known = messages.Identify(self.name, "mediator", 1)
            self.socket.send(wire.control_frame(known, messages.StatusQuery(number)))
        else:
            self.socket.send(wire.ping_frame(LINK, 1))

    def reports(self, kind: type[Any]) -> list[Any]:
        """Control records of a kind that have come meanwhile."""
        frames = [frame for frame in self.heard() if isinstance(frame, wire.Control)]
        told = [messages.decode(messages.control, raw) for frame in frames for raw in frame.records]
        return [each for each in told if isinstance(each, kind)]

    def heard(self) -> list[wire.Frame]:
        found = []
        while self.socket.poll(0):
            found.append(wire.decode_frame(self.socket.recv()))
        return found


class World:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "authorized-keys"
        self.pairs = {name: zmq.curve_keypair() for name in ("old", "new", "by")}
        self.rows: dict[str, str] = {"by": "client by"}
        self.write()
        curve = BrokerCurveKeys(zmq.curve_keypair()[1].decode())
        self.server_key = curve.public
        authority = AuthorizedKeys.read(str(self.file))
        self.sockets = BrokerSockets(BrokerLimits(), curve, authority)
        self.data = self.sockets.data.bind("tcp://127.0.0.1:*")
        self.control = self.sockets.control.bind("tcp://127.0.0.1:*")
        config = BrokerConfig(
            name="h", role="head", cluster="c", edges=("e",), data=self.data, control=self.control, limits=KEEPS,
            security=LinkSecurity(authorized_keys_file=str(self.file)),
        )  # fmt: skip
        self.head = Head(config, 1, new_id)
        self.loop = BrokerLoop(
            self.head,
            self.sockets,
            Silent(),  # type: ignore[arg-type]  # a stand-in
            BrokerHardware(),
            authority=authority,
            rest=lambda seconds: None,
        )
        self.context: zmq.Context = zmq.Context()
        self.kept: list[zmq.Socket] = []
        self.lost: list[str] = []
        self._on_lost = self.head.on_lost
        self.head.on_lost = self.note_lost

    def note_lost(self, link: Link) -> None:
        self.lost.append(link.name)
        self._on_lost(link)

    def write(self) -> None:
        self.file.write_text("".join(f"{self.pairs[key][0].decode()} {row}\n" for key, row in self.rows.items()))

    def authorise(self, **rows: str) -> None:
        """Write the file again, and let the broker read it."""
        self.rows = {"by": "client by", **rows}
        self.write()
        self.loop._next_house = 0.0
        self.loop.round()

    def connect(self, key: str, name: str, role: str) -> Said:
        socket = self.context.socket(zmq.DEALER)
        socket.linger = 0
        socket.curve_serverkey = self.server_key
        socket.curve_publickey, socket.curve_secretkey = self.pairs[key]
        socket.connect(self.control if role == "mediator" else self.data)
        self.kept.append(socket)
        return Said(socket, name, role)

    def until(self, said: Said, kind: type[Any], retry: Callable[[], None] = lambda: None) -> Any:
        """The next frame of a kind that this connection receives."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            for frame in said.heard():
                if isinstance(frame, kind):
                    return frame
            assert time.monotonic() < deadline, f"{said.name} receives no {kind.__name__}"
            self.loop.round()
            retry()

    def is_heard(self, said: Said) -> bool:
        said.ping()
        return self.until(said, wire.Control if said.role == "mediator" else wire.Beat) is not None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.context.destroy(0)
    made.sockets.close()


def opened(world: World, said: Said, *, known: bool = False) -> Said:
    if said.role != "mediator":
        said.hello(known=known)
        assert not world.until(said, wire.HelloOk).lost
    assert world.is_heard(said)
    return said


@pytest.mark.parametrize(("name", "role"), [("ann", "client"), ("e", "edge"), ("m", "mediator")])
def test_a_key_is_replaced_and_no_link_is_lost(world: World, name: str, role: str):
    row = f"{role} {name}"
    world.authorise(old=row)
    by = opened(world, world.connect("by", "by", "client"))
    old = opened(world, world.connect("old", name, role))
    links = set(map(id, world.head.handshakes.accepted_links()))
    world.authorise(old=row, new=row)
    assert world.is_heard(old)
    new = opened(world, world.connect("new", name, role), known=True)
    world.authorise(new=row)
    assert world.is_heard(new)
    assert world.is_heard(by)
    assert world.lost == []
    assert set(map(id, world.head.handshakes.accepted_links())) == links
    # The old connection is still there, and is ignored.
    assert world.loop.refusals()["ended"] == 1
    old.ping(number=99)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while world.loop.refusals()["revoked"] == 0:
        assert time.monotonic() < deadline
        world.loop.round()
    assert not [reply for reply in old.reports(messages.StatusReply) if reply.id == 99]


@pytest.mark.parametrize(("name", "role"), [("ann", "client"), ("e", "edge")])
def test_a_link_of_a_removed_key_ends_and_is_told_why_and_others_go_on(world: World, name: str, role: str):
    world.authorise(old=f"{role} {name}")
    by = opened(world, world.connect("by", "by", "client"))
    old = opened(world, world.connect("old", name, role))
    world.authorise()
    refused = world.until(old, wire.Refuse)
    assert (refused.link, refused.code) == (LINK, "refused")
    assert "no longer authorised" in refused.text
    assert world.lost == [name]
    assert world.loop.refusals()["ended"] == 1
    assert world.is_heard(by)
    assert [link.name for link in world.head.handshakes.accepted_links()] == ["by"]
    # A name that is valid with another key does not help this one.
    world.authorise(new=f"{role} {name}")
    old.hello(known=True)
    opened(world, world.connect("new", name, role), known=False)
    assert not [frame for frame in old.heard() if isinstance(frame, wire.HelloOk)]


def test_a_mediator_whose_key_has_been_removed_is_told_nothing_more(world: World):
    world.authorise(old="mediator m")
    old = opened(world, world.connect("old", "m", "mediator"))
    assert len(world.head.reporter.mediators) == 1
    world.authorise()
    reports = world.head.reporter.seq
    deadline = time.monotonic() + DEADLINE_SECONDS
    while world.head.reporter.seq < reports + 2:
        assert time.monotonic() < deadline
        world.loop.round()
    assert [load for load in old.reports(messages.LoadUpdate) if load.report["seq"] > reports] == []


def test_a_role_that_is_taken_back_ends_publishing_alone(world: World):
    world.authorise(old="client ann")
    ann = opened(world, world.connect("old", "ann", "client"))
    by = opened(world, world.connect("by", "by", "client"))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while world.head.is_starting:  # it waits for its edge no longer than the lease
        assert time.monotonic() < deadline
        world.loop.round()
    for seq, said in enumerate((ann, by), 1):
        opening = wire.encode(messages.Open(1, f"p{seq}", 1))
        said.socket.send(wire.data_frame(LINK, 0, 1, 0, 100, [opening], 1))
        world.until(said, wire.Data)
    world.authorise(old="client ann subscribe")
    (raw,) = world.until(ann, wire.Data).records
    refused = messages.decode(messages.to_client, raw)
    assert (refused.handle, refused.seq, refused.code) == (1, 0, "role")
    assert refused.text == "ann may not publish; its roles lack publish"
    assert world.is_heard(by)
    assert world.is_heard(ann)
    assert len(world.head.publishers._by_handle) == 1
