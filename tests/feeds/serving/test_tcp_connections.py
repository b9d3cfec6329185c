"""Connections by their descriptors: what is told of them, and that no other one is ever ended."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.feeds.serving.tcp_connections import peer_of, received_bytes, reset


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: the accepted one, and that of the peer."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        accepted, _ = server.accept()
        with accepted:
            yield accepted, peer


def test_the_peer_and_what_it_has_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    accepted, peer = pair
    found = peer_of(accepted.fileno())
    assert found is not None
    assert found == peer.getsockname()
    peer.sendall(bytes(3000))
    accepted.recv(10)
    while len(accepted.recv(4096, socket.MSG_PEEK)) < 2990:
        pass
    expected = 3000 if sys.platform == "linux" else None
    assert received_bytes(accepted.fileno(), found) == expected


def test_a_connection_is_ended_and_its_descriptor_stays(pair: tuple[socket.socket, socket.socket]) -> None:
    accepted, peer = pair
    peer.sendall(b"more than is ever read")
    assert reset(accepted.fileno(), peer.getsockname())
    with pytest.raises(ConnectionResetError):
        peer.recv(10)
    os.fstat(accepted.fileno())


def test_a_descriptor_that_is_something_else_by_now_is_left_alone(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    accepted, peer = pair
    other = ("127.0.0.1", 1)
    assert not reset(accepted.fileno(), other)
    assert received_bytes(accepted.fileno(), other) is None
    peer.sendall(b"still here")
    assert accepted.recv(100) == b"still here"
    with (tmp_path / "file").open("wb") as file, socket.socket() as unconnected:
        for number in (file.fileno(), unconnected.fileno()):
            assert (peer_of(number), reset(number, other)) == (None, False)
    closed = os.dup(accepted.fileno())
    os.close(closed)
    assert (peer_of(closed), reset(closed, other), received_bytes(closed, other)) == (None, False, None)


def test_looking_at_a_descriptor_leaves_none_open(tmp_path: Path, pair: tuple[socket.socket, socket.socket]) -> None:
    def lowest_free() -> int:
        free = os.dup(0)
        os.close(free)
        return free

    with (tmp_path / "file").open("w") as file:
        before = lowest_free()
        for number in (file.fileno(), pair[0].fileno(), before):  # no socket, a connection, nothing
            peer_of(number)
        assert lowest_free() == before
