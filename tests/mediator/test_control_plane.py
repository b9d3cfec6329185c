"""The control-plane client against a ROUTER in place of a broker: CURVE, restarts, rubbish."""

import socket
import time

import pytest
import zmq

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages, wire
from plimsoll.mediator.control_plane import (
    ClusterEdges,
    ControlPlane,
    HeadMessageReceived,
    ListingReceived,
    LoadReportReceived,
    MalformedReply,
    MediatorKeyPair,
    StatusReceived,
    UndialledBrokerError,
)


class Router:
    """One broker's control socket."""

    def __init__(self, endpoint="tcp://127.0.0.1:*", secret=None):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        if secret:
            self.socket.setsockopt(zmq.CURVE_SERVER, 1)
            self.socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        self.socket.bind(endpoint)
        self.endpoint = self.socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def hear(self):
        assert self.socket.poll(5000)
        peer, data = self.socket.recv_multipart()
        frame = wire.decode_frame(data)
        assert isinstance(frame, wire.Control)
        return peer, [messages.decode(messages.control, raw) for raw in frame.records]

    def say(self, peer, *said):
        self.socket.send_multipart([peer, wire.control_frame(*said)])

    def close(self):
        self.context.destroy(0)


@pytest.fixture
def plane():
    plane = ControlPlane("m", None, 7)
    yield plane
    plane.close()


@pytest.fixture
def router():
    router = Router()
    yield router
    router.close()


def said(plane, ask, seconds=60.0):
    """The next message, with repeated queries as the supervisor sends them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ask()
        for heard in plane.poll(0.05):
            return heard
    raise AssertionError("nothing was said")


def heard_by(router, ask):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        ask()
        if router.socket.poll(50):
            return router.hear()
    raise AssertionError("nothing was heard")


def test_heads_learn_who_asks_and_which_edges_are_theirs(plane, router):
    plane.dial(PeerBroker(name="h", control=router.endpoint), "head")
    _, told = heard_by(router, lambda: plane.ask("h", ClusterEdges(("a", "b"), ("b",))))
    assert told[:2] == [messages.Identify("m", "mediator", 7), messages.ClusterMembers(["a", "b"], ["b"])]
    assert isinstance(told[2], messages.StatusQuery)


def test_edges_are_asked_for_their_status_only(plane, router):
    plane.dial(PeerBroker(name="e", control=router.endpoint), "edge")
    peer, told = heard_by(router, lambda: plane.ask("e"))
    assert [type(record) for record in told] == [messages.StatusQuery]
    router.say(peer, messages.StatusReply(told[0].id, {"ready": True}))
    assert said(plane, lambda: None) == StatusReceived("e", {"ready": True})


def test_reports_name_their_broker(plane, router):
    plane.dial(PeerBroker(name="h", control=router.endpoint), "head")
    peer, _ = heard_by(router, lambda: plane.ask("h"))
    router.say(peer, messages.LoadUpdate({"broker": "e-1", "seq": 1}))
    assert said(plane, lambda: None) == LoadReportReceived("e-1", {"broker": "e-1", "seq": 1})


def test_a_head_is_commanded_and_says_how_it_stands(plane, router):
    plane.dial(PeerBroker(name="h", data="", control=router.endpoint), "head")
    command, query = messages.Command(7, 1, "7.1", "ask"), messages.ListSubscribers(5, "e")
    plane.send("unknown", command)
    peer, _ = heard_by(router, lambda: plane.ask("h"))
    plane.send("h", command)
    plane.send("h", query)
    assert [next_order(router), next_order(router)] == [[command], [query]]
    outcome = messages.Outcome("7.1", 7, 1, "cut", [("x", "cut")])
    served = messages.SubscriberPage(5, "e", 1, ["x"], False)
    router.say(peer, outcome, served)
    heard: list[object] = []
    while len(heard) < 2:
        heard += plane.poll(5.0)
    assert heard == [HeadMessageReceived("h", outcome), HeadMessageReceived("h", served)]


def test_an_edge_is_asked_for_a_page_by_one_that_says_who_it_is(plane, router):
    plane.dial(PeerBroker(name="e", control=router.endpoint), "edge")
    request = messages.ListSubscriptions(5, "s")
    plane.ask_for_page("unknown", request)
    peer, _ = heard_by(router, lambda: plane.ask("e"))
    plane.ask_for_page("e", request)
    [who, asked] = next_order(router)
    assert (type(who), who.role, asked) == (messages.Identify, "mediator", request)
    page = messages.SubscriptionPage(5, 1, [messages.SubscriptionListItem("s", ["[a,=,1]"])])
    router.say(peer, page)
    assert said(plane, lambda: None) == ListingReceived("e", page)


def next_order(router):
    """The next message that does not ask for a status."""
    while True:
        _, records = router.hear()
        if not any(isinstance(record, messages.StatusQuery) for record in records):
            return records


def test_rubbish_is_counted_and_the_line_stays(plane, router):
    plane.dial(PeerBroker(name="h", control=router.endpoint), "head")
    peer, _ = heard_by(router, lambda: plane.ask("h"))
    for rubbish in (b"", b"\xff\xff\xff", wire.who_frame(), wire.control_frame(messages.Open(1, "p", 1))):
        router.socket.send_multipart([peer, rubbish])
    router.say(peer, messages.StatusReply(1, {}))
    heard: list[object] = []
    while StatusReceived("h", {}) not in heard:
        heard += plane.poll(5.0)
    told = [(each.broker, each.field, each.times) for each in heard if isinstance(each, MalformedReply)]
    assert told == [("h", "frame", times) for times in (1, 2, 3, 4)]
    assert len(heard) == 5


def test_what_cannot_be_is_named_and_counted_and_not_gone_by(plane, router):
    plane.dial(PeerBroker(name="h", control=router.endpoint), "head")
    peer, _ = heard_by(router, lambda: plane.ask("h"))
    for _ in range(3):
        router.say(
            peer, messages.StatusReply(1, {"epoch": "seven"}), messages.StatusReply(1, {"epoch": 7, "edges": "a"}),
            messages.LoadUpdate({"broker": "e", "subscribers": "many"}), messages.LoadUpdate({"seq": 1}),
            messages.ReservationReply(1, 1, "e", 1, "s", "OK", {"input_rate": -1.0}),
        )  # fmt: skip
    router.say(peer, messages.StatusReply(1, {"epoch": 7}))
    heard: list[object] = []
    while StatusReceived("h", {"epoch": 7}) not in heard:
        heard += plane.poll(5.0)
    assert [(each.broker, each.field) for each in heard if isinstance(each, MalformedReply) and each.times == 3] == [
        ("h", "epoch"), ("h", "edges"), ("e", "subscribers"), ("h", "broker"), ("h", "input_rate"),
    ]  # fmt: skip
    assert len(heard) == 16
    assert isinstance(heard[0], MalformedReply)
    words = "epoch is 'seven', not a whole number from 0"
    assert heard[0].message == f"h sent an invalid message, which is ignored: {words}"


def test_a_broker_that_comes_back_is_reached_again(plane, router):
    plane.dial(PeerBroker(name="e", control=router.endpoint), "edge")
    heard_by(router, lambda: plane.ask("e"))
    router.close()
    plane.ask("e")
    again = Router(router.endpoint)
    peer, told = heard_by(again, lambda: plane.ask("e"))
    again.say(peer, messages.StatusReply(told[0].id, {}))
    assert said(plane, lambda: None) == StatusReceived("e", {})
    again.close()


def test_nothing_is_queued_for_a_broker_that_is_away(plane, router):
    endpoint = router.endpoint
    router.close()
    plane.dial(PeerBroker(name="e", control=endpoint), "edge")
    for _ in range(50):
        plane.ask("e")
    back = Router(endpoint)
    _, told = heard_by(back, lambda: plane.ask("e"))
    assert told[0].id > 50
    back.close()


def test_curve():
    server_public, server_secret = zmq.curve_keypair()
    public, secret = zmq.curve_keypair()
    router = Router(secret=server_secret)
    plane = ControlPlane("m", MediatorKeyPair(public.decode(), secret.decode()), 1)
    plane.dial(PeerBroker(name="h", control=router.endpoint, public_key=server_public.decode()), "head")
    heard_by(router, lambda: plane.ask("h"))
    plane.close()
    router.close()


def sockets_of(plane, monkeypatch):
    """The sockets that are made from now on."""
    made, make = [], plane._context.socket

    def remembered(kind):
        made.append(make(kind))
        return made[-1]

    monkeypatch.setattr(plane._context, "socket", remembered)
    return made


@pytest.mark.parametrize(("key", "address"), [("", "tcp://127.0.0.1:9"), ("short", "tcp://127.0.0.1:9")])
def test_no_socket_is_left_of_a_broker_that_cannot_be_dialled(key, address, monkeypatch):
    public, secret = zmq.curve_keypair()
    plane = ControlPlane("m", MediatorKeyPair(public.decode(), secret.decode()), 1)
    made = sockets_of(plane, monkeypatch)
    with pytest.raises(UndialledBrokerError):
        plane.dial(PeerBroker(name="h", control=address, public_key=key), "head")
    assert [each.closed for each in made] == [True]
    assert plane.dialled == set()
    plane.close()


def test_no_socket_is_left_of_an_address_that_is_none(plane, monkeypatch):
    made = sockets_of(plane, monkeypatch)
    with pytest.raises(UndialledBrokerError):
        plane.dial(PeerBroker(name="h", control="nonsense"), "head")
    assert [each.closed for each in made] == [True]


def test_lines_that_were_hung_up_say_nothing(plane, router):
    plane.dial(PeerBroker(name="e", control=router.endpoint), "edge")
    plane.hang_up("e")
    plane.hang_up("e")
    plane.ask("e")
    assert list(plane.poll(0.0)) == []


def test_a_connection_answered_by_another_process_is_dialled_again(plane, router, monkeypatch):
    """Libzmq does not try again after an answer that is not ZeroMQ's."""
    monkeypatch.setattr("plimsoll.mediator.control_plane.REDIAL_SECONDS", 0.5)
    stranger = socket.create_server(("127.0.0.1", 0))
    endpoint = f"tcp://127.0.0.1:{stranger.getsockname()[1]}"
    plane.dial(PeerBroker(name="e", control=endpoint), "edge")
    connection, _ = stranger.accept()
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.close()
    stranger.close()
    router.socket.bind(endpoint)
    router.endpoint = endpoint

    def ask():
        plane.ask("e")
        if router.socket.poll(0):
            router.say(router.hear()[0], messages.StatusReply(1, {"ready": True}))

    assert said(plane, ask) == StatusReceived("e", {"ready": True})
