"""Real sockets on the loopback: order, bounds and rubbish."""

from __future__ import annotations

import errno
import random
import socket
import struct
import time

import pytest
import zmq
from tests.broker.network.lanes import DEADLINE_SECONDS, KEPT, LIMITS, all_frames, dealer, pump
from tests.ports import free_ports

from plimsoll.broker.network.socket_lane import EndpointError
from plimsoll.broker.network.sockets import LIMIT_SECONDS, BrokerSockets, _count_events
from plimsoll.core.protocol import wire
from plimsoll.core.transport.overlay_node import Dial, Hangup

SEED = 20


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
    endpoint = f"tcp://127.0.0.1:{free_ports(1)[0]}"
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


def test_what_was_due_since_ever_is_not_waited_for(sockets: BrokerSockets):
    sockets.wait(float("-inf"))


def test_short_waits_are_neither_skipped_nor_rounded_up_to_nothing(sockets: BrokerSockets):
    """On the clock itself, which is what it is about; a machine that is slow only makes it longer."""
    started = time.monotonic()
    for _ in range(20):
        sockets.wait(0.0005)
    assert time.monotonic() - started >= 20 * 0.0005


def test_connections_that_cannot_be_accepted_are_counted_and_told_ever_more_rarely(
    sockets: BrokerSockets, context: zmq.Context, caplog: pytest.LogCaptureFixture
):
    said = struct.pack("=HI", zmq.EVENT_ACCEPT_FAILED, errno.EMFILE)
    with context.socket(zmq.PAIR) as monitor, context.socket(zmq.PAIR) as libzmq:
        monitor.bind("inproc://accepting")
        libzmq.connect("inproc://accepting")
        for _ in range(500):
            libzmq.send_multipart([said, b"tcp://127.0.0.1:1"])
            _count_events(monitor, sockets.data)
    assert sockets.data.counters["connections_accept_failed"] == 500
    assert [record.args[0] for record in caplog.records] == [1, 10, 100]  # type: ignore[index]  # its arguments are a tuple


def test_a_broker_that_cannot_accept_a_connection_is_at_a_limit_for_a_while(
    sockets: BrokerSockets, context: zmq.Context, monkeypatch: pytest.MonkeyPatch
):
    assert not sockets.is_at_limit(time.monotonic())
    with context.socket(zmq.PAIR) as monitor, context.socket(zmq.PAIR) as libzmq:
        monitor.bind("inproc://at-limit")
        libzmq.connect("inproc://at-limit")
        monkeypatch.setattr(sockets, "_monitors", {monitor: sockets.data})
        monkeypatch.setattr(sockets, "_ready", {monitor: zmq.POLLIN})
        libzmq.send_multipart([struct.pack("=HI", zmq.EVENT_ACCEPTED, 7), b"tcp://127.0.0.1:1"])
        sockets.serve_events()
        assert not sockets.is_at_limit(time.monotonic())
        libzmq.send_multipart([struct.pack("=HI", zmq.EVENT_ACCEPT_FAILED, errno.EMFILE), b"tcp://127.0.0.1:1"])
        sockets.serve_events()
        monkeypatch.undo()
    assert sockets.is_at_limit(time.monotonic())
    assert not sockets.is_at_limit(time.monotonic() + LIMIT_SECONDS)
