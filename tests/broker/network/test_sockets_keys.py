"""Real sockets with keys: which peers are admitted, and what is dialled again with another key."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from tests.broker.network.lanes import DEADLINE_SECONDS, LIMITS, all_frames, dealer, pump

from plimsoll.broker.network.socket_lane import BrokerCurveKeys
from plimsoll.broker.network.sockets import REDIAL_SECONDS, UNCONNECTED_SECONDS, BrokerSockets
from plimsoll.core.protocol import wire
from plimsoll.core.transport.overlay_node import Dial, Hangup
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, SecretKeyFile


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
