"""Connections to named hosts: no lookup on the thread of the sockets, another address when one stops answering."""

import select
import socket
from collections.abc import Iterator

import pytest
import zmq

from plimsoll.network.connector import LOOK_AGAIN_SECONDS, Connector


class Sockets:
    """Sockets of a test, closed at its end."""

    def __init__(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._made: list[zmq.Socket[bytes]] = []

    def socket(self, kind: int) -> zmq.Socket[bytes]:
        self._made.append(self._context.socket(kind))
        self._made[-1].linger = 0
        return self._made[-1]

    def close(self) -> None:
        for each in self._made:
            each.close()
        self._context.term()


class Names:
    """Addresses by host; a host without an entry has none."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = {}
        self.asked: list[str] = []

    def look_up(self, host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        if host not in self.of:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in self.of[host]]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names


@pytest.fixture
def context() -> Iterator[Sockets]:
    context = Sockets()
    yield context
    context.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connector(clock: Clock) -> Iterator[Connector]:
    connector = Connector(clock)
    yield connector
    connector.close()


def listener(context: Sockets, address: str = "127.0.0.1", port: str = "*") -> tuple[zmq.Socket[bytes], str]:
    bound = context.socket(zmq.ROUTER)
    bound.bind(f"tcp://{address}:{port}")
    return bound, bound.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2]


def dealer(context: Sockets) -> zmq.Socket[bytes]:
    made = context.socket(zmq.DEALER)
    made.immediate = True
    made.reconnect_ivl = 10
    return made


def settle(connector: Connector) -> None:
    """Wait for a lookup, and take its answer."""
    assert select.select([connector.fd], [], [], 30)[0], "no lookup has been answered"
    connector.tick()


def is_heard(one: zmq.Socket[bytes], bound: zmq.Socket[bytes]) -> bool:
    assert one.poll(10_000, zmq.POLLOUT), "no connection"
    one.send(b"here")
    return bool(bound.poll(10_000)) and bound.recv_multipart()[-1] == b"here"


def test_a_named_host_is_connected_once_its_address_is_known(context: Sockets, connector: Connector, names: Names):
    bound, port = listener(context)
    names.of["edge-0.apps.svc"] = ["127.0.0.1"]
    one = dealer(context)
    connector.connect(one, f"tcp://edge-0.apps.svc:{port}")
    settle(connector)
    assert is_heard(one, bound)
    assert connector.faults == {}


def test_an_address_is_connected_at_once_and_never_looked_up(context: Sockets, connector: Connector, names: Names):
    bound, port = listener(context)
    one = dealer(context)
    connector.connect(one, f"tcp://127.0.0.1:{port}")
    assert is_heard(one, bound)
    assert names.asked == []


@pytest.mark.parametrize("endpoint", ["tcp://edge-0:port", "tcp://edge-0", "edge-0:7000", "udp://edge-0:7000"])
def test_what_is_no_endpoint_is_refused(context: Sockets, connector: Connector, names: Names, endpoint: str):
    with pytest.raises(zmq.ZMQError):
        connector.connect(dealer(context), endpoint)
    assert names.asked == []


def test_a_host_without_an_address_is_a_fault_until_it_has_one(
    context: Sockets, connector: Connector, names: Names, clock: Clock, caplog: pytest.LogCaptureFixture
):
    bound, port = listener(context)
    one = dealer(context)
    connector.connect(one, f"tcp://edge-0:{port}")
    settle(connector)
    assert connector.faults == {"edge-0": "[Errno -2] Name or service not known"}
    connector.tick()
    clock.now += LOOK_AGAIN_SECONDS
    connector.tick()
    settle(connector)
    assert len([line for line in caplog.messages if "edge-0" in line]) == 1, "said once, and not at each lookup"
    names.of["edge-0"] = ["127.0.0.1"]
    clock.now += LOOK_AGAIN_SECONDS
    connector.tick()
    settle(connector)
    assert connector.faults == {}
    assert is_heard(one, bound)


def test_a_host_that_has_moved_is_found_at_its_new_address(
    context: Sockets, connector: Connector, names: Names, clock: Clock
):
    older, port = listener(context, "127.0.0.1")
    newer, _ = listener(context, "127.0.0.2", port)
    names.of["edge-0"] = ["127.0.0.1"]
    one = dealer(context)
    connector.connect(one, f"tcp://edge-0:{port}")
    settle(connector)
    assert is_heard(one, older)
    connector.tick()
    names.of["edge-0"] = ["127.0.0.2"]
    clock.now += LOOK_AGAIN_SECONDS
    connector.tick()
    assert names.asked == ["edge-0"], "a host with a connection is not looked up"
    older.close(linger=0)
    while int(one.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
        one.poll(10)
    clock.now += LOOK_AGAIN_SECONDS
    connector.tick()
    settle(connector)
    assert is_heard(one, newer)


def test_of_several_addresses_the_next_one_is_tried(context: Sockets, connector: Connector, names: Names, clock: Clock):
    bound, port = listener(context, "127.0.0.2")
    names.of["head"] = ["127.0.0.1", "127.0.0.2"]
    one = dealer(context)
    connector.connect(one, f"tcp://head:{port}")
    settle(connector)
    clock.now += LOOK_AGAIN_SECONDS
    connector.tick()
    settle(connector)
    assert is_heard(one, bound)


def test_a_socket_that_was_closed_is_not_connected(context: Sockets, connector: Connector, names: Names):
    names.of["edge-0"] = ["127.0.0.1"]
    one = dealer(context)
    connector.connect(one, "tcp://edge-0:7000")
    connector.forget(one)
    one.close(linger=0)
    assert select.select([connector.fd], [], [], 30)[0]
    connector.tick()
    assert connector.faults == {}


def test_the_fault_of_a_host_ends_with_its_last_socket(context: Sockets, connector: Connector, names: Names):
    both = dealer(context), dealer(context)
    for one in both:
        connector.connect(one, "tcp://edge-0:7000")
    settle(connector)
    connector.forget(both[0])
    assert connector.faults
    connector.forget(both[1])
    assert connector.faults == {}
