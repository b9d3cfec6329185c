"""Real sockets on the loopback: order, bounds, rubbish, and which peers are admitted."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from plimsoll.broker.network.socket_lane import BrokerCurveKeys, EndpointError, SocketLane
from plimsoll.broker.network.sockets import REDIAL_SECONDS, UNCONNECTED_SECONDS, BrokerSockets
from plimsoll.core.config import BrokerLimits
from plimsoll.core.protocol import wire
from plimsoll.core.transport.overlay_node import Dial, Hangup
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, SecretKeyFile

DEADLINE_SECONDS = 60
LIMITS = BrokerLimits(max_frame_bytes=4096, window_frames=8)
SEED = 20
KEPT: list[zmq.Socket] = []
"""A socket without a reference is closed; these stay open until their context ends."""


@pytest.fixture
def sockets() -> Iterator[BrokerSockets]:
    made = BrokerSockets(LIMITS)
    yield made
    made.close()


@pytest.fixture
def context() -> Iterator[zmq.Context]:
    made: zmq.Context = zmq.Context()
    yield made
    made.destroy(0)
    KEPT.clear()


def dealer(context: zmq.Context, endpoint: str, **options: object) -> zmq.Socket:
    made = context.socket(zmq.DEALER)
    for name, value in options.items():
        setattr(made, name, value)
    made.connect(endpoint)
    KEPT.append(made)
    return made


def pump(sockets: BrokerSockets, lane: SocketLane, until: Callable[[], bool], got: list | None = None) -> None:
    """Run rounds until a condition holds; a deadline makes it fail rather than hang."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not until():
        assert time.monotonic() < deadline, f"not reached: {dict(lane.counters)}, {got}"
        sockets.wait(0.05)
        sockets.serve_events()
        for peer, frames in sockets.receive(lane, 1000, 1 << 20):
            if got is not None:
                got.append((peer, frames))
        if lane.backlog:
            lane.retry()


def all_frames(got: list) -> list[bytes]:
    return [data for _, frames in got for data in frames]


def test_frames_arrive_by_peer_in_order_and_are_answered(sockets: BrokerSockets, context: zmq.Context):
    endpoint = sockets.data.bind("tcp://127.0.0.1:*")
    clients = [dealer(context, endpoint) for _ in range(3)]
    got: list = []
    for n in range(20):
        for i, client in enumerate(clients):
            client.send(b"%d/%d" % (i, n))
    pump(sockets, sockets.data, lambda: len(all_frames(got)) == 60, got)
    by_peer: dict = {}
    for peer, frames in got:
        by_peer.setdefault(peer, []).extend(frames)
    assert sorted(by_peer.values()) == [[b"%d/%d" % (i, n) for n in range(20)] for i in range(3)]
    sockets.data.send([(peer, frames[0]) for peer, frames in by_peer.items()])
    for i, client in enumerate(clients):
        assert client.poll(DEADLINE_SECONDS * 1000)
        assert client.recv() == b"%d/0" % i


def test_a_round_is_bounded_in_frames_and_in_bytes(sockets: BrokerSockets, context: zmq.Context):
    client = dealer(context, sockets.data.bind("tcp://127.0.0.1:*"))
    for _ in range(10):
        client.send(b"x" * 1000)
    got: list = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(all_frames(got)) < 10:
        assert time.monotonic() < deadline
        sockets.wait(0.05)
        before = len(got)
        got += sockets.receive(sockets.data, 4, 2500)
        assert all(len(frames) <= 3 for _, frames in got[before:])


def test_the_deaf_wait_and_lose_nothing_while_others_are_served(sockets: BrokerSockets, context: zmq.Context):
    endpoint = sockets.data.bind("tcp://127.0.0.1:*")
    deaf, other = dealer(context, endpoint, rcvhwm=1, rcvbuf=4096), dealer(context, endpoint)
    deaf.send(b"deaf")
    other.send(b"other")
    got: list = []
    pump(sockets, sockets.data, lambda: len(got) == 2, got)
    names = {frames[0]: peer for peer, frames in got}
    count = 20_000
    sent = 0
    while not sockets.data.backlog:
        assert sent < count, "the peer's buffers took everything"
        assert sockets.data.send([(names[b"deaf"], b"%06d" % sent + b"x" * 4000)]) == []
        sent += 1
    sockets.data.send([(names[b"deaf"], b"%06d" % (sent + n)) for n in range(10)])
    sockets.data.send([(names[b"other"], b"hello")])
    assert other.poll(DEADLINE_SECONDS * 1000)
    assert list(sockets.data.backlog) == [names[b"deaf"]]
    assert sockets.data.counters["frames_delayed"] == 11
    heard: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    last = sent + 10
    while len(heard) < last:
        assert time.monotonic() < deadline
        sockets.wait(0)
        if last < sent + 60:
            # There is room now and then; new frames still queue behind the waiting ones.
            sockets.data.send([(names[b"deaf"], b"%06d" % last)])
            last += 1
        sockets.data.retry()
        if deaf.poll(10):
            heard.append(deaf.recv()[:6])
    assert heard == [b"%06d" % n for n in range(last)]
    assert sockets.data.backlog == {}


def test_a_line_that_outgrows_every_window_is_cut(sockets: BrokerSockets):
    sockets.apply([Dial("h", "tcp://127.0.0.1:9")])
    for n in range(4 * LIMITS.window_frames + 3):
        sockets.data.send([("h", b"\x94\x01\x00%d" % n)])
    assert sockets.data.counters["lines_cut"] == 1
    assert len(sockets.data.backlog["h"]) == 3


def test_a_peer_that_is_not_there_is_named(sockets: BrokerSockets):
    sockets.data.bind("tcp://127.0.0.1:*")
    assert sockets.data.send([(b"\0abcd", b"x"), ("unknown", b"x")]) == [b"\0abcd"]
    assert sockets.data.counters == {"peers_unreachable": 1, "frames_for_unknown_peers": 1}


def test_a_dialled_peer_that_comes_later_gets_one_hello_not_all_of_them(sockets: BrokerSockets, context: zmq.Context):
    server = context.socket(zmq.ROUTER)
    KEPT.append(server)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    sockets.apply([Dial("h", endpoint)])
    hello = wire.hello_frame(1, 0, False, wire.Info("e", "edge", 1))
    for _ in range(5):
        sockets.data.send([("h", b"\x94\x01\x01old"), ("h", hello)])
    sockets.data.send([("h", b"next")])
    server.bind(endpoint)
    pump(sockets, sockets.data, lambda: not sockets.data.backlog)
    heard = []
    for _ in range(2):
        assert server.poll(DEADLINE_SECONDS * 1000)
        peer, data = server.recv_multipart()
        heard.append(data)
    assert heard == [hello, b"next"]
    server.send_multipart([peer, b"welcome"])
    got: list = []
    pump(sockets, sockets.data, lambda: bool(got), got)
    assert got == [("h", [b"welcome"])]
    sockets.apply([Hangup("h")])
    assert sockets.data.dealers == {}
    sockets.wait(0)


def test_messages_of_many_parts_are_thrown_away_and_counted(sockets: BrokerSockets, context: zmq.Context):
    endpoint = sockets.data.bind("tcp://127.0.0.1:*")
    rude, polite = dealer(context, endpoint), dealer(context, endpoint)
    rude.send_multipart([b"a", b"\0\0\0\0\1", b"b"])
    rude.send_multipart([b"x" * 1000] * 5000)
    rude.send(b"now properly")
    polite.send(b"good day")
    got: list = []
    pump(sockets, sockets.data, lambda: len(all_frames(got)) == 2, got)
    assert sorted(all_frames(got)) == [b"good day", b"now properly"]
    assert sockets.data.counters["messages_of_many_parts"] == 2


def test_rubbish_harms_no_other_peer(sockets: BrokerSockets, context: zmq.Context):
    """Random bytes, half handshakes, a huge frame and an empty one, on both sockets."""
    rng = random.Random(SEED)
    endpoints = [lane.bind("tcp://127.0.0.1:*") for lane in (sockets.data, sockets.control)]
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
    huge = greeting + b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\6DEALER" + b"\x02" + struct.pack(">Q", 1 << 40)
    raw = []
    for endpoint in endpoints:
        port = int(endpoint.rpartition(":")[2])
        for said in (
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            rng.randbytes(300),
            greeting[:20],
            greeting + rng.randbytes(64),
            huge,
        ):
            connection = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
            connection.sendall(said)
            raw.append(connection)
    for lane, endpoint in ((sockets.data, endpoints[0]), (sockets.control, endpoints[1])):
        too_much = dealer(context, endpoint)
        too_much.send(b"x" * (LIMITS.max_frame_bytes + 70_000))
        good = dealer(context, endpoint)
        good.send(b"")
        good.send(b"good day")
        got: list = []
        # Bytes may happen to be a greeting of ZMTP 1.0, so that rubbish becomes a frame: the machine refuses it.
        pump(sockets, lane, lambda got=got: b"good day" in all_frames(got), got)
        spoke = {peer for peer, frames in got if b"good day" in frames}
        assert all_frames([(peer, frames) for peer, frames in got if peer in spoke]) == [b"", b"good day"]
        counted = lane.counters
        pump(sockets, lane, lambda seen=counted: seen["connections_handshake_failed"] >= 2)
        pump(sockets, lane, lambda seen=counted: seen["connections_disconnected"] >= 2)
    for connection in raw:
        connection.close()


def test_a_frame_above_limit_and_margin_ends_its_connection_unread(sockets: BrokerSockets, context: zmq.Context):
    endpoint = sockets.data.bind("tcp://127.0.0.1:*")
    dealer(context, endpoint).send(b"x" * (LIMITS.max_frame_bytes + 70_000))
    got: list = []
    pump(sockets, sockets.data, lambda: sockets.data.counters["connections_disconnected"] >= 1, got)
    assert got == []


def test_an_endpoint_that_cannot_be_bound_is_named(sockets: BrokerSockets):
    taken = sockets.data.bind("tcp://127.0.0.1:*")
    with pytest.raises(EndpointError, match=f"endpoint in use: {taken} .control.; stop what listens there"):
        sockets.control.bind(taken)
    with pytest.raises(EndpointError, match=r"cannot listen on tcp://192\.0\.2\.1:1 \(data\)"):
        sockets.data.bind("tcp://192.0.2.1:1")


def test_short_waits_are_neither_skipped_nor_rounded_up_to_nothing(sockets: BrokerSockets):
    """On the clock itself, which is what it is about; a machine that is slow only makes it longer."""
    started = time.monotonic()
    for _ in range(20):
        sockets.wait(0.0005)
    assert time.monotonic() - started >= 20 * 0.0005


# -- admission -----------------------------------------------------------------------------------------------------


class Keys:
    """An authorised-keys file and the sockets of a broker that reads it."""

    def __init__(self, folder: Path) -> None:
        self.pairs = {name: zmq.curve_keypair() for name in ("ann", "bob", "m", "eve")}
        self.path = folder / "authorized-keys"
        self.roles = {"ann": "client", "bob": "client", "m": "mediator"}
        self.write()
        self.authority = AuthorizedKeys.read(str(self.path))
        self.curve = BrokerCurveKeys(zmq.curve_keypair()[1].decode())
        self.sockets = BrokerSockets(LIMITS, self.curve, self.authority)
        self.endpoint = self.sockets.data.bind("tcp://127.0.0.1:*")
        self.control = self.sockets.control.bind("tcp://127.0.0.1:*")

    def write(self) -> None:
        lines = [f"{self.pairs[name][0].decode()} {role} {name}" for name, role in self.roles.items()]
        self.path.write_text("\n".join(lines))

    def public(self, name: str) -> str:
        return self.pairs[name][0].decode()

    def connect(self, context: zmq.Context, name: str, endpoint: str, **more: object) -> zmq.Socket:
        public, secret = self.pairs[name]
        return dealer(
            context,
            endpoint,
            curve_serverkey=self.curve.public,
            curve_publickey=public,
            curve_secretkey=secret,
            **more,
        )


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Keys]:
    made = Keys(tmp_path)
    yield made
    made.sockets.close()


def test_known_keys_are_let_in_under_their_names_and_others_are_not(keys: Keys, context: zmq.Context):
    keys.connect(context, "ann", keys.endpoint).send(b"ann")
    keys.connect(context, "eve", keys.endpoint).send(b"eve")
    keys.connect(context, "m", keys.endpoint).send(b"a mediator has no business here")
    dealer(context, keys.endpoint).send(b"in the clear")
    got: list = []
    lane = keys.sockets.data
    pump(keys.sockets, lane, lambda: bool(got) and keys.authority.refused >= 2, got)
    pump(keys.sockets, lane, lambda: lane.counters["connections_handshake_failed"] >= 1, got)
    assert all_frames(got) == [b"ann"]
    assert list(lane.users.values()) == [keys.public("ann")]


def test_the_control_socket_has_its_own_roles(keys: Keys, context: zmq.Context):
    keys.connect(context, "ann", keys.control).send(b"a client has no business here")
    keys.connect(context, "m", keys.control).send(b"m")
    got: list = []
    pump(keys.sockets, keys.sockets.control, lambda: bool(got) and keys.authority.refused >= 1, got)
    assert all_frames(got) == [b"m"]


def test_a_key_that_is_taken_back_is_not_heard_any_more(keys: Keys, context: zmq.Context):
    clients = {name: keys.connect(context, name, keys.endpoint) for name in ("ann", "bob")}
    lane = keys.sockets.data
    got: list = []
    for name, client in clients.items():
        client.send(name.encode())
    pump(keys.sockets, lane, lambda: len(got) == 2, got)
    ann = next(peer for peer, key in lane.users.items() if key == keys.public("ann"))
    del keys.roles["ann"]
    keys.write()
    assert keys.authority.refresh()
    assert lane.unauthorized_connections(keys.authority.keys) == {ann}
    lane.restrict_to(keys.authority.keys)
    assert lane.unauthorized_connections(keys.authority.keys) == set()
    assert lane.send([(ann, b"nothing for you")]) == []
    got.clear()
    for client in clients.values():
        client.send(b"again")
    pump(keys.sockets, lane, lambda: lane.counters["frames_of_revoked_keys"] == 1 and bool(got), got)
    assert [lane.users[peer] for peer, _ in got] == [keys.public("bob")]
    assert not clients["ann"].poll(0)


def test_who_was_forgotten_and_speaks_again_is_heard_only_by_a_key_that_is_still_good(keys: Keys, context: zmq.Context):
    client, lane = keys.connect(context, "ann", keys.endpoint), keys.sockets.data
    client.send(b"before")
    got: list = []
    pump(keys.sockets, lane, lambda: bool(got), got)
    lane.users.clear()
    lane.restrict_to([keys.public("bob")])
    client.send(b"after")
    pump(keys.sockets, lane, lambda: lane.counters["frames_of_revoked_keys"] == 1, got)
    assert all_frames(got) == [b"before"]


@pytest.mark.parametrize("control", [False, True])
def test_a_peer_with_the_routing_id_of_an_earlier_connection_is_known_by_its_own_key(
    keys: Keys, context: zmq.Context, control: bool
):
    """libzmq lets a peer choose its routing id; one that is made up by the router is no secret."""
    keys.roles |= {"m2": "mediator"}
    keys.pairs["m2"] = zmq.curve_keypair()
    keys.write()
    assert keys.authority.refresh()
    lane, endpoint = (
        (keys.sockets.control, keys.control) if control else (keys.sockets.data, keys.endpoint)
    )  # fmt: skip
    first, second = ("m", "m2") if control else ("ann", "bob")
    frame = wire.control_frame() if control else wire.hello_frame(5, 0, False, wire.Info("x", "client", 1))
    for name in (first, second):
        got: list = []
        client = keys.connect(context, name, endpoint, routing_id=b"\x00same")
        client.send(frame)
        pump(keys.sockets, lane, lambda got=got: bool(got), got)
        assert lane.users == {b"\x00same": keys.public(name)}
        client.close(0)
        ended = lane.counters["connections_disconnected"]
        pump(keys.sockets, lane, lambda ended=ended: lane.counters["connections_disconnected"] > ended)


def test_when_the_handler_has_failed_no_new_peer_is_admitted_and_status_shows_it(keys: Keys, context: zmq.Context):
    sockets, lane = keys.sockets, keys.sockets.data
    got: list = []
    old = keys.connect(context, "ann", keys.endpoint)
    old.send(b"before")
    pump(sockets, lane, lambda: bool(got), got)
    assert sockets.ready
    zap = sockets._zap
    assert zap is not None
    zap.send_multipart = lambda parts: (_ for _ in ()).throw(zmq.ZMQError(zmq.EFSM))  # type: ignore[assignment]  # a stand-in, which raises
    keys.connect(context, "bob", keys.endpoint).send(b"after")
    pump(sockets, lane, lambda: not sockets.ready, got)
    assert "ZAP handler has failed" in sockets.zap_fault
    for each in (sockets.data, sockets.control):
        assert each.router.getsockopt(zmq.ZAP_ENFORCE_DOMAIN) == 1
    failed = lane.counters["connections_handshake_failed"]
    keys.connect(context, "bob", keys.endpoint).send(b"after")
    pump(sockets, lane, lambda: lane.counters["connections_handshake_failed"] > failed, got)
    old.send(b"still here")
    pump(sockets, lane, lambda: len(all_frames(got)) == 2, got)
    assert all_frames(got) == [b"before", b"still here"]


@pytest.mark.parametrize("control", [False, True])
def test_who_was_refused_is_let_in_once_its_key_is_known(keys: Keys, tmp_path: Path, control: bool):
    """libzmq does not connect again after a refusal."""
    lane = keys.sockets.control if control else keys.sockets.data
    public, secret = zmq.curve_keypair()
    own = AuthorizedKeys(tmp_path / "none")
    dialling = BrokerSockets(LIMITS, BrokerCurveKeys(secret.decode()), own)
    their_lane = dialling.control if control else dialling.data
    dial = Dial("h", keys.control if control else keys.endpoint, keys.curve.public.decode(), control=control)
    try:
        dialling.apply([dial])
        pump(keys.sockets, lane, lambda: keys.authority.refused == 1)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not dialling._redial_at:
            assert time.monotonic() < deadline
            dialling.wait(0.05)
            dialling.serve_events()
        dialling.redial(time.monotonic())
        assert dialling._redial_at, "not at once"
        keys.pairs["e"] = (public, secret)
        keys.roles["e"] = "edge"
        keys.write()
        keys.authority.refresh()
        dialling.redial(time.monotonic() + REDIAL_SECONDS)
        assert not dialling._redial_at
        got: list = []
        their_lane.send([("h", b"here I am")])

        def arrived() -> bool:
            dialling.wait(0.01)
            dialling.serve_events()
            their_lane.retry()
            return bool(got)

        pump(keys.sockets, lane, arrived, got)
        assert all_frames(got) == [b"here I am"]
        dialling.apply([Hangup("h", control=control)])
        assert [dialling._monitor_of, dialling._dialled, dialling._redial_at] == [{}, {}, {}]
    finally:
        dialling.close()


@pytest.mark.parametrize("control", [False, True])
def test_a_connection_that_cannot_be_made_is_dialled_again(keys: Keys, tmp_path: Path, control: bool):
    """A process that is not a broker answers at the address; the broker is there later."""
    lane = keys.sockets.control if control else keys.sockets.data
    public, secret = zmq.curve_keypair()
    keys.pairs["e"], keys.roles["e"] = (public, secret), "edge"
    keys.write()
    keys.authority.refresh()
    dialling = BrokerSockets(LIMITS, BrokerCurveKeys(secret.decode()), AuthorizedKeys(tmp_path / "none"))
    their_lane = dialling.control if control else dialling.data
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        host, port = stranger.getsockname()
        try:
            dialling.apply([Dial("h", f"tcp://{host}:{port}", keys.curve.public.decode(), control=control)])
            stranger.accept()[0].close()
            first, now = their_lane.dealers["h"], time.monotonic()
            dialling.redial(now + UNCONNECTED_SECONDS / 2)
            assert their_lane.dealers["h"] is first
            dialling.redial(now + UNCONNECTED_SECONDS)
            assert their_lane.dealers["h"] is not first
            dialling.apply(
                [Dial("h", keys.control if control else keys.endpoint, keys.curve.public.decode(), control=control)]
            )

            def shaken() -> bool:
                dialling.wait(0.01)
                dialling.serve_events()
                return not dialling._unconnected_since

            pump(keys.sockets, lane, shaken)
            second = their_lane.dealers["h"]
            dialling.redial(time.monotonic() + 2 * UNCONNECTED_SECONDS)
            assert their_lane.dealers["h"] is second, "it is connected"
        finally:
            dialling.close()


@pytest.mark.parametrize("control", [False, True])
def test_a_connection_that_is_there_at_once_is_not_dialled_again(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: bool
):
    """Before `connect` returns, the other side has shaken hands already."""
    lane = keys.sockets.control if control else keys.sockets.data
    public, secret = zmq.curve_keypair()
    keys.pairs["e"], keys.roles["e"] = (public, secret), "edge"
    keys.write()
    keys.authority.refresh()
    connect = zmq.Socket.connect

    def at_once(self: zmq.Socket[bytes], endpoint: str) -> None:
        connect(self, endpoint)
        pump(keys.sockets, lane, lambda: bool(int(self.getsockopt(zmq.EVENTS)) & zmq.POLLOUT))

    monkeypatch.setattr(zmq.Socket, "connect", at_once)
    dialling = BrokerSockets(LIMITS, BrokerCurveKeys(secret.decode()), AuthorizedKeys(tmp_path / "none"))
    try:
        address = keys.control if control else keys.endpoint
        dialling.apply([Dial("h", address, keys.curve.public.decode(), control=control)])

        def noticed() -> bool:
            dialling.wait(0.01)
            dialling.serve_events()
            return not dialling._unconnected_since

        pump(keys.sockets, lane, noticed)
        their_lane = dialling.control if control else dialling.data
        first = their_lane.dealers["h"]
        dialling.redial(time.monotonic() + 2 * UNCONNECTED_SECONDS)
        assert their_lane.dealers["h"] is first
    finally:
        dialling.close()


@pytest.mark.parametrize("control", [False, True])
def test_a_broker_takes_another_key_and_who_knows_it_comes_back_by_itself(keys: Keys, tmp_path: Path, control: bool):
    """Its peers have the next key among their authorised keys; they try one after the other."""
    lane = keys.sockets.control if control else keys.sockets.data
    (public, secret), (next_public, next_secret) = zmq.curve_keypair(), zmq.curve_keypair()
    keys.pairs["e"], keys.roles["e"] = (public, secret), "edge"
    keys.write()
    keys.authority.refresh()
    told = tmp_path / "told"
    told.write_text(f"{keys.curve.public.decode()} head h\n{next_public.decode()} head h\n")
    dialling = BrokerSockets(LIMITS, BrokerCurveKeys(secret.decode()), AuthorizedKeys.read(str(told)))
    their_lane = dialling.control if control else dialling.data
    dial = Dial("h", keys.control if control else keys.endpoint, keys.curve.public.decode(), control=control)
    got: list = []

    def say(what: bytes) -> None:
        their_lane.send([("h", what)])

        def arrived() -> bool:
            dialling.wait(0.01)
            dialling.serve_events()
            dialling.redial(time.monotonic())
            their_lane.send([("h", what)] if not their_lane.backlog and what not in all_frames(got) else [])
            their_lane.retry()
            return what in all_frames(got)

        pump(keys.sockets, lane, arrived, got)

    try:
        dialling.apply([dial])
        say(b"before")
        assert keys.sockets.public_key == keys.curve.public.decode()
        keys.sockets.rekey(BrokerCurveKeys(next_secret.decode()))
        assert keys.sockets.public_key == next_public.decode()
        say(b"after")
        (now,) = dialling._dialled.values()
        assert now.public_key == next_public.decode()
    finally:
        dialling.close()


def test_a_peer_that_is_dialled_again_is_tried_with_its_next_key(keys: Keys, tmp_path: Path):
    """A standby with another key leads at the same address."""
    (public, secret), (old, _) = zmq.curve_keypair(), zmq.curve_keypair()
    keys.pairs["e"], keys.roles["e"] = (public, secret), "edge"
    keys.write()
    keys.authority.refresh()
    told, current = tmp_path / "told", keys.curve.public.decode()
    told.write_text(f"{old.decode()} head h\n{current} head h\n")
    dialling = BrokerSockets(LIMITS, BrokerCurveKeys(secret.decode()), AuthorizedKeys.read(str(told)))
    dial = Dial("h", keys.endpoint, old.decode())
    got: list = []
    try:
        dialling.apply([dial])
        dialling.apply([dial])
        dialling.data.send([("h", b"here I am")])

        def arrived() -> bool:
            dialling.wait(0.01)
            dialling.serve_events()
            dialling.data.retry()
            return bool(got)

        pump(keys.sockets, keys.sockets.data, arrived, got)
        assert [each.public_key for each in dialling._dialled.values()] == [current]
        dialling.apply([dial])
        assert [each.public_key for each in dialling._dialled.values()] == [old.decode()], "in turn"
    finally:
        dialling.close()


def test_a_secret_key_is_read_again_and_what_cannot_be_read_changes_nothing(tmp_path: Path):
    path, (first, second) = tmp_path / "secret.key", (zmq.curve_keypair()[1].decode() for _ in range(2))
    path.write_text(first)
    own = SecretKeyFile.read(str(path))
    assert not own.refresh()
    path.write_text("half a ke")
    assert not own.refresh()
    assert (own.secret, "does not hold a Z85 secret key" in own.fault) == (first, True)
    path.write_text(second)
    assert own.refresh()
    assert (own.secret, own.fault) == (second, "")
