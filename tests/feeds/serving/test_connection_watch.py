"""The watch over connections of this process: ended ones are ended, counted, and said in the log, which has bounds."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from plimsoll.feeds.serving.connection_watch import ConnectionEvent, ConnectionWatch
from plimsoll.feeds.serving.open_connections import ConnectionBounds


@dataclass
class Place:
    """A server, and the connections that it has accepted, with their peers."""

    stack: ExitStack
    server: socket.socket
    watch: ConnectionWatch
    peers: dict[int, socket.socket] = field(default_factory=dict)

    def open(self, first_check: int = 0) -> int:
        peer = self.stack.enter_context(socket.create_connection(self.server.getsockname()))
        accepted, _ = self.server.accept()
        number = self.stack.enter_context(accepted).fileno()
        self.peers[number] = peer
        self.watch.take(ConnectionEvent("opened", number, first_check), 0.0)
        return number

    def is_ended(self, number: int) -> bool:
        peer = self.peers[number]
        peer.settimeout(0.05)
        try:
            return peer.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True


@pytest.fixture
def here() -> Iterator[Place]:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield Place(stack, server, ConnectionWatch("stocks", ConnectionBounds(of_identity=2, unfinished_bytes=1000)))


def test_one_too_many_of_an_identity_is_ended_counted_and_logged(here: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    numbers = [here.open() for _ in range(5)]
    admitted = [here.watch.admits(number, 0, "eve\n", 1.0) for number in numbers]
    assert admitted == [True, True, False, False, False]
    assert [here.is_ended(number) for number in numbers] == [False, False, True, True, True]
    assert here.watch.admits(here.open(), 0, "ann", 1.0)
    assert (here.watch.count, here.watch.endings) == (3, {"identity": 3})
    assert [each.message for each in caplog.records] == [
        "feed stocks: ended a connection of eve\\n from 127.0.0.1: its identity has 2 already; give each application an"
        " identity of its own"
    ]
    here.watch.admits(here.open(), 0, "eve\n", 62.0)
    assert len(caplog.records) == 2
    assert caplog.records[1].message.endswith("of its own; 2 more since the last such line")
    here.watch.take(ConnectionEvent("ended", numbers[0]), 63.0)
    assert here.watch.admits(here.open(), 0, "eve\n", 63.0)


def test_a_request_of_an_earlier_connection_with_the_same_number_is_not_counted(here: Place) -> None:
    number = here.open(first_check=7)
    assert not here.watch.admits(number, 6, "eve", 0.0)
    assert here.watch.admits(number, 7, "ann", 0.0)
    assert not here.watch.admits(number + 1000, 8, "ann", 0.0)


def test_without_keys_an_address_is_an_identity(here: Place) -> None:
    assert [here.watch.admits(here.open(), 0, "", 0.0) for _ in range(3)] == [True, True, False]


def test_silent_and_unfinished_ones_are_ended(here: Place) -> None:
    silent, asking = here.open(), here.open()
    assert here.watch.admits(asking, 0, "eve", 1.0)
    here.watch.check(1.0)
    here.peers[asking].sendall(bytes(1001))
    for step in range(100):
        here.watch.check(2.0 + step / 4)
        if here.is_ended(asking):
            break
    assert here.watch.endings == {"unfinished": 1}
    here.watch.check(31.0)
    assert here.is_ended(silent)
    assert (here.watch.endings["silent"], here.watch.count) == (1, 0)


def test_a_connection_that_is_gone_before_it_is_noted_is_none(here: Place) -> None:
    with socket.socket() as unconnected:
        here.watch.take(ConnectionEvent("opened", unconnected.fileno()), 0.0)
        assert not here.watch.admits(unconnected.fileno(), 0, "eve", 0.0)
    here.open()
    here.watch.clear()
    assert here.watch.count == 0
