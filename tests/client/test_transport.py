"""The sockets of a client against bare ZeroMQ sockets."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from zmq.auth.thread import ThreadAuthenticator

from plimsoll.client.security import Curve, Keyring
from plimsoll.client.transport import (
    ALTERNATE_KEY_SECONDS,
    BACKLOG_FRAMES,
    REDIAL_SECONDS,
    SILENT_SECONDS,
    DealerTransport,
)
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.overlay_node import Dial, Hangup

HELLO = wire.hello_frame(1, 0, False, Info("me", "client", 1))


@pytest.fixture
def router() -> Iterator[zmq.Socket[bytes]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.linger = 0
    socket.rcvtimeo = 10_000
    socket.bind("tcp://127.0.0.1:*")
    yield socket
    context.destroy(linger=0)


@pytest.fixture
def transport() -> Iterator[DealerTransport]:
    transport = DealerTransport(Keyring("plain", {}), 100_000)
    yield transport
    transport.close()


def endpoint(router: zmq.Socket[bytes]) -> str:
    return router.getsockopt_string(zmq.LAST_ENDPOINT)


def drained(transport: DealerTransport, eventually: Callable[..., None]) -> list[Any]:
    found: list[Any] = []

    def some() -> bool:
        transport.wait(0.05)
        found.extend(transport.drain()[0])
        return bool(found)

    eventually(some)
    return found


def sent(transport: DealerTransport, eventually: Callable[..., None]) -> None:
    def all_sent() -> bool:
        transport.wait(0.05)
        transport.retry()
        return not transport.waiting

    eventually(all_sent)


def test_frames_go_and_come_as_single_parts(router: Any, transport: DealerTransport, eventually: Any):
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", b"abc"), ("a", b"def")])
    sent(transport, eventually)
    peer, first = router.recv_multipart()
    assert (first, router.recv_multipart()[1]) == (b"abc", b"def")
    router.send_multipart([peer, b"answer"])
    assert drained(transport, eventually) == [("a", [b"answer"])]


def test_what_has_several_parts_is_thrown_away(router: Any, transport: DealerTransport, eventually: Any):
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", b"abc")])
    sent(transport, eventually)
    peer, _ = router.recv_multipart()
    router.send_multipart([peer, b"one", b"two", b"three"])
    router.send_multipart([peer, b"good"])
    assert drained(transport, eventually) == [("a", [b"good"])]
    assert transport.counters["messages_of_many_parts"] == 1


def test_nothing_is_in_line_for_who_is_not_there_but_the_last_hello(transport: DealerTransport):
    transport.apply([Dial("a", "tcp://127.0.0.1:1")])
    transport.send([("a", HELLO), ("a", b"\x93\x01\x00data"), ("a", HELLO)])
    assert list(transport.waiting["a"]) == [HELLO]
    transport.send([("a", b"\x93\x01\x00data")] * (BACKLOG_FRAMES + 5))
    assert len(transport.waiting["a"]) <= BACKLOG_FRAMES
    assert transport.counters["lines_cut"] == 1
    transport.hang_up("a")
    assert transport.waiting == {}


def test_nothing_overtakes_what_waits(router: Any, transport: DealerTransport, eventually: Any):
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", b"one"), ("a", b"two")])
    waiting = list(transport.waiting.get("a", []))  # empty if the connection was there at once
    assert waiting == [b"one", b"two"][2 - len(waiting) :]
    eventually(transport.is_ready)
    transport.send([("a", b"three")])
    sent(transport, eventually)
    assert [router.recv_multipart()[1] for _ in range(3)] == [b"one", b"two", b"three"]


def test_it_is_ready_when_something_can_be_read_and_not_before(
    router: Any, transport: DealerTransport, eventually: Any
):
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", b"abc")])
    sent(transport, eventually)
    peer, _ = router.recv_multipart()
    assert not transport.is_ready()
    router.send_multipart([peer, b"answer"])
    eventually(transport.is_ready)
    transport.drain()
    assert not transport.is_ready()


def test_frames_for_unknown_peers_are_counted(transport: DealerTransport):
    transport.send([("unknown", b"abc")])
    assert transport.counters["frames_for_unknown_peers"] == 1


def test_what_was_said_before_hanging_up_still_goes(router: Any, transport: DealerTransport, eventually: Any):
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", b"first")])
    sent(transport, eventually)
    assert transport.apply([Hangup("a")]) == ["a"]
    transport.send([("a", b"bye")])
    transport.hang_up("a")
    assert [router.recv_multipart()[1] for _ in range(2)] == [b"first", b"bye"]


def test_an_endpoint_that_cannot_be_used_is_counted_and_named(
    transport: DealerTransport, caplog: pytest.LogCaptureFixture
):
    transport.apply([Dial("a", "nonsense")])
    assert transport.counters["endpoints_refused"] == 1
    assert "cannot dial nonsense: Invalid argument" in caplog.text
    transport.hang_up("a")


def test_a_host_whose_lookup_hangs_holds_up_no_other(
    router: Any, transport: DealerTransport, eventually: Any, monkeypatch: pytest.MonkeyPatch
):
    answered = threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        assert answered.wait(300)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    transport.apply([Dial("edge-0#1", "tcp://edge-0.apps.svc:7000"), Dial("edge-1#2", endpoint(router))])
    transport.send([("edge-0#1", HELLO), ("edge-1#2", HELLO)])

    def is_sent() -> bool:
        transport.wait(0.05)
        transport.retry()
        return list(transport.waiting) == ["edge-0#1"]

    eventually(is_sent)
    assert router.recv_multipart()[1] == HELLO
    answered.set()

    def is_said() -> bool:
        transport.wait(0.05)
        transport.retry()
        return transport.faults == {"edge-0.apps.svc": "[Errno -3] Temporary failure in name resolution"}

    eventually(is_said)


def test_with_keys_nothing_is_said_in_plain():
    transport = DealerTransport(Keyring(Curve(secret=zmq.curve_keypair()[1].decode()), {}), 100_000)
    try:
        transport.apply([Dial("a", "tcp://127.0.0.1:1", "")])
        assert transport.counters["peers_without_key"] == 1
    finally:
        transport.close()


def test_without_room_it_is_tried_again_and_others_do_not_suffer(
    router: Any,
    transport: DealerTransport,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    transport.apply([Dial("a", endpoint(router))])
    monkeypatch.setattr("plimsoll.client.transport.DIAL_RETRY_SECONDS", 0.0)
    most = transport._most_sockets
    transport._most_sockets = 2
    transport.apply([Dial("b", endpoint(router)), Dial("c", endpoint(router))])
    transport.hang_up("c")
    transport.retry()
    assert transport.trouble.startswith("this connection has 1 of at most 2 ZeroMQ sockets")
    assert "it is tried again" in caplog.text
    assert set(transport.dealers) == {"a"}
    transport.send([("a", b"abc")])
    sent(transport, eventually)
    assert router.recv_multipart()[1] == b"abc"
    transport._most_sockets = most
    transport.retry()
    assert (set(transport.dealers), transport.trouble) == ({"a", "b"}, "")


def test_who_has_no_connection_is_told_and_who_has_one_again_is_not(transport: DealerTransport, eventually: Any):
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.linger = 0
    router.bind("tcp://127.0.0.1:*")
    at = endpoint(router)
    transport.apply([Dial("a", at), Dial("b", "tcp://127.0.0.1:1")])
    eventually(lambda: transport.unconnected() == {"b"})
    transport.send([("a", b"abc")])
    eventually(lambda: router.poll(0))
    router.close()
    eventually(lambda: transport.unconnected() == {"a", "b"})
    try:
        again = context.socket(zmq.ROUTER)
        again.linger = 0
        eventually(lambda: bound(again, at))
        eventually(lambda: transport.unconnected() == {"b"})
    finally:
        context.destroy(linger=0)


def bound(socket: Any, at: str) -> bool:
    """The address is free again a moment after its socket was closed."""
    try:
        socket.bind(at)
    except zmq.ZMQError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def test_descriptors_are_told_of(router: Any, transport: DealerTransport):
    opened: list[int] = []
    closed: list[int] = []
    transport.on_socket, transport.on_close = opened.append, closed.append
    transport.apply([Dial("a", endpoint(router))])
    transport.hang_up("a")
    assert len(opened) == 1
    assert opened == closed


class Doorkeeper:
    """Admits no peer until the test says so."""

    def __init__(self) -> None:
        self.lets_in, self.refused = False, 0

    def callback(self, domain: str, key: bytes) -> bool:
        self.refused += not self.lets_in
        return self.lets_in


def test_a_refused_client_dials_again_and_sends_its_waiting_frames(router: Any, eventually: Any):
    """libzmq does not connect again after a refusal."""
    door, (server, secret) = Doorkeeper(), zmq.curve_keypair()
    guard = ThreadAuthenticator(router.context)
    guard.start()
    guard.configure_curve_callback("doors", door)
    guarded = router.context.socket(zmq.ROUTER)
    guarded.linger, guarded.rcvtimeo = 0, 10_000
    guarded.curve_server, guarded.curve_secretkey, guarded.zap_domain = True, secret, b"doors"
    guarded.bind("tcp://127.0.0.1:*")
    transport = DealerTransport(Keyring(Curve(secret=zmq.curve_keypair()[1].decode()), {}), 100_000)
    try:
        transport.apply([Dial("a", endpoint(guarded), server.decode())])
        transport.send([("a", HELLO)])
        eventually(lambda: door.refused == 1)
        door.lets_in = True
        transport.redial(transport.unconnected(), 100.0)
        transport.redial(transport.unconnected(), 100.0 + REDIAL_SECONDS)
        assert transport.counters["dials_again"] == 0, "not at once"
        transport.redial(transport.unconnected(), 100.1 + REDIAL_SECONDS)
        assert transport.counters["dials_again"] == 1
        sent(transport, eventually)
        assert guarded.recv_multipart()[1] == HELLO
        assert transport.unconnected() == set()
        transport.redial(set(), 200.0)
        transport.redial(set(), 300.0)
        assert transport.counters["dials_again"] == 1
        transport.hang_up("a")
        assert not transport._dialled
    finally:
        transport.close()
        guarded.close()
        guard.stop()


@pytest.mark.parametrize("is_home", [True, False])
def test_a_head_that_has_another_key_by_now_is_reached_again_soon(
    router: Any, eventually: Any, tmp_path: Path, is_home: bool
):
    """Its file had the next key before; the head changes over, and its peers try one key after the other.

    The other way round it is a head that a publisher was moved to: its file is beside that of the client's home.
    """
    (old, old_secret), (new, new_secret) = zmq.curve_keypair(), zmq.curve_keypair()

    def head(secret: bytes, at: str = "tcp://127.0.0.1:*") -> Any:
        found = router.context.socket(zmq.ROUTER)
        found.linger, found.rcvtimeo = 0, 10_000
        found.curve_server, found.curve_secretkey = True, secret
        eventually(lambda: bound(found, at))
        return found

    before = head(old_secret)
    where, file = endpoint(before), tmp_path / "east.key"
    file.write_text(old.decode())
    home = file if is_home else tmp_path / "home.key"
    home.write_text(old.decode() if is_home else zmq.curve_keypair()[0].decode())
    security = Curve(secret=zmq.curve_keypair()[1].decode(), server=home)
    transport = DealerTransport(Keyring(security, {where if is_home else "tcp://127.0.0.1:1": ""}), 100_000)
    try:
        transport.apply([Dial("h", where, old.decode())])
        transport.send([("h", HELLO)])
        sent(transport, eventually)
        assert before.recv_multipart()[1] == HELLO
        file.write_text(f"{old.decode()}\n{new.decode()}\n")
        before.close()
        after = head(new_secret, where)
        eventually(lambda: transport.unconnected() == {"h"})
        transport.redial({"h"}, 100.0)
        transport.redial({"h"}, 100.1 + ALTERNATE_KEY_SECONDS)
        assert transport.counters["dials_again"] == 1
        transport.send([("h", HELLO)])
        sent(transport, eventually)
        assert after.recv_multipart()[1] == HELLO
        after.close()
    finally:
        transport.close()


def test_a_silent_broker_is_dialled_again_late_or_soon_after_the_own_key_was_replaced(router: Any, tmp_path: Path):
    server, own = zmq.curve_keypair()[0].decode(), tmp_path / "own.key"
    own.write_text(zmq.curve_keypair()[1].decode())
    transport = DealerTransport(Keyring(Curve(secret=own), {}), 100_000)
    try:
        transport.apply([Dial("a", endpoint(router), server)])
        for now, again in ((100.0, 0), (100.0 + SILENT_SECONDS, 0), (100.1 + SILENT_SECONDS, 1)):
            transport.redial(set(), now, ["a", "gone"])
            assert transport.counters["dials_again"] == again
        own.write_text(zmq.curve_keypair()[1].decode())
        transport.redial(set(), 100.2 + SILENT_SECONDS, ["a"])
        assert transport.counters["dials_again"] == 1
        transport.redial(set(), 101.2 + SILENT_SECONDS, ["a"])
        assert transport.counters["dials_again"] == 2
    finally:
        transport.close()


def test_a_peer_that_is_dialled_again_has_one_connection_and_what_waits_for_it(
    router: Any, transport: DealerTransport, eventually: Any
):
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", b"abc")])
    sent(transport, eventually)
    first, _ = router.recv_multipart()
    transport.apply([Dial("a", endpoint(router))])
    transport.send([("a", HELLO)])
    sent(transport, eventually)
    second, said = router.recv_multipart()
    assert (said, len(transport.dealers)) == (HELLO, 1)
    assert first != second
    router.send_multipart([second, b"answer"])
    assert drained(transport, eventually) == [("a", [b"answer"])]
