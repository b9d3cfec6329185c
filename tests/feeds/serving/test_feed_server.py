"""Serving over sockets with keys: who may read, what a grant that shrinks does, and peers that mean harm."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from pathlib import Path

import pytest
import zmq
from tests.feeds.serving.served import framed, listing, served, wait_until

from plimsoll.client.feed_connection import FeedConnection
from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.commit_log import read_state
from plimsoll.feeds.config import ServingConfig
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.reading.table_reader import FeedReadError
from plimsoll.feeds.serving.feed_server import FeedServer
from plimsoll.network.auth.authorized_keys import KeyFileError


def test_a_copy_has_the_rows_of_the_feed_and_what_has_come_since(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(300)
        assert here.fetch("ann", tmp_path / "copy") == (300, [])
        here.record(200, hour=1)
        assert here.fetch("ann", tmp_path / "copy") == (500, [])
        assert here.fetch("ann", tmp_path / "copy") == (500, [])
        assert here.server.served.size_bytes >= sum(each.size_bytes for each in here.dataset.state.files.values())
        assert here.server.served.requests["answered"] > 4
        assert len(read_state(tmp_path / "copy").table("rows")) == 2


def test_who_may_not_read_is_told_so_and_has_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "s", eve="read feeds=others") as here:
        here.record(10)
        answer = here.ask("eve", listing())
        assert answer == msg.FeedRefused(1, "role", "eve may not read the feed stocks; it may read others")
        with pytest.raises(FeedReadError, match="eve may not read the feed stocks"):
            here.fetch("eve", tmp_path / "copy")
        wait_until(lambda: here.server.served.requests["role"] >= 2, "both refusals are counted")
        assert here.server.served.size_bytes == 0
        assert here.fetch("ann", tmp_path / "other") == (10, [])


def test_a_grant_that_shrinks_ends_reads_of_connections_that_are_there(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(10)
        for shrunk, said in (("none", "its roles lack read"), ("", "this key is no longer authorised")):
            here.grant(ann="read")
            connection = here.connect("ann")
            answered(connection, msg.FeedFilesPage)
            here.grant(ann=shrunk)
            refused = answered(connection, msg.FeedRefused)
            assert isinstance(refused, msg.FeedRefused)
            assert said in refused.text
            connection.close()


def answered(connection: FeedConnection, kind: type[msg.FeedAnswer]) -> msg.FeedAnswer:
    """The first answer of this kind to a list that is asked for again and again."""
    found: list[msg.FeedAnswer] = []

    def is_answered() -> bool:
        connection.ask([listing()])
        found.extend(connection.answers(0.1))
        return bool(found) and isinstance(found[-1], kind)

    wait_until(is_answered, kind.__name__)
    return found[-1]


def test_another_feed_is_another_recorders(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(1)
        for name in ("fires", "../stocks", "stocks/../../etc"):
            answer = here.ask("ann", listing(feed=name))
            assert isinstance(answer, msg.FeedRefused)
            assert (answer.code, answer.id) == ("feed", 1)
        wait_until(lambda: here.server.served.requests["feed"] >= 3, "the refusals are counted")


def test_keys_that_cannot_be_used_are_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "readers").write_text("")
    (tmp_path / "key").write_text("no key")
    config = ServingConfig("tcp://127.0.0.1:*", key=str(tmp_path / "key"), readers=str(tmp_path / "readers"))
    with pytest.raises(KeyFileError, match=r"serving\.key: .* does not hold a Z85 secret key"):
        FeedServer("stocks", tmp_path, config)
    missing = ServingConfig("tcp://127.0.0.1:*", key=str(tmp_path / "key"), readers=str(tmp_path / "none"))
    with pytest.raises(KeyFileError, match=r"serving\.readers: cannot read"):
        FeedServer("stocks", tmp_path, missing)


def test_a_new_key_of_the_recorder_is_taken_while_it_runs(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(10)
        assert here.fetch("ann", tmp_path / "copy") == (10, [])
        public, secret = (each.decode() for each in zmq.curve_keypair())
        (here.folder / "recorder.key").write_text(secret + "\n")
        here.public, before = public, here.server.endpoint
        assert isinstance(here.ask("ann", listing()), msg.FeedFilesPage)
        assert here.server.endpoint == before


def test_a_file_that_cannot_be_read_is_a_located_fault(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(10)
        (file,) = here.dataset.state.table("rows")
        path = here.dataset.root / file.path
        assert isinstance(path, Path)
        path.unlink()
        path.mkdir()
        with pytest.raises(FeedReadError, match="the recorder cannot read its file with rows 1 to 10: Is a directory"):
            here.fetch("ann", tmp_path / "copy")
        wait_until(lambda: here.server.served.requests["fault"] >= 1, "the refusal is counted")


@pytest.mark.slow
def test_hostile_peers_hurt_themselves_alone(tmp_path: Path) -> None:
    """Peers with a key and without flood the server, and read nothing; a reader gets its rows all the while."""
    with served(tmp_path / "s") as here:
        here.record(60_000)
        (file,) = here.dataset.state.table("rows")
        name = here.dataset.state.last.dataset  # type: ignore[union-attr]  # there is a commit
        large = msg.ReadFeedFile(7, "stocks", name, "rows", 1, file.last_row, 0, msg.PART_BYTES_AT_MOST)
        strangers = [here.peer("nobody") for _ in range(5)]
        peers = [here.peer("eve") for _ in range(10)]
        shapes = [
            b"", b"\x00" * 100, b"\x94\x01\x08" + b"\xc1" * 50, framed(listing())[:-3], b"x" * 7000,
            framed(listing(number=2**63 - 1)), framed(large),
        ]  # fmt: skip
        deadline = time.monotonic() + 300.0

        def flood() -> bool:
            for peer in (*peers, *strangers):
                for data in shapes:
                    _send(peer, [data])
                _send(peer, [framed(large), b"more"])
            return False

        for copy in ("a", "b", "c"):
            for _ in range(100):
                flood()
            assert here.fetch("ann", tmp_path / copy, stopped=flood) == (60_000, [])
            peers.pop(0).close()
            peers.append(here.peer("eve"))
        assert time.monotonic() < deadline, "floods do not hold up a reader"
        sockets, turns = here.server._sockets, here.server._turns
        outcomes = here.server.served.requests
        assert outcomes["malformed"] > 0
        assert outcomes["dropped"] > 0
        assert sockets.counters["messages_of_many_parts"] > 0
        assert sum(len(waiting) for waiting in turns._of.values()) <= 2 * 64


def test_an_identity_with_too_many_connections_loses_its_own(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(10)
        peers = [here.peer("eve") for _ in range(40)]

        def ask() -> bool:
            for peer in peers:
                _send(peer, [framed(listing())])
            return here.server.served.ended_connections["identity"] >= 32

        wait_until(ask, "those beyond eight are ended")
        assert here.fetch("ann", tmp_path / "copy") == (10, [])
        assert len(here.server._watch._open._asking) <= 8 + 1
        assert here.server.served.connections <= 8 + 1 + 16, "and some that connect again"
        for peer in peers:
            peer.close()
        wait_until(lambda: here.server.served.connections == 0, "all are gone")


def test_a_peer_that_only_connects_is_one_of_few(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(10)
        host, port = here.server.endpoint.removeprefix("tcp://").split(":")
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(contextlib.closing(socket.create_connection((host, int(port)))))
            wait_until(lambda: here.server.served.ended_connections["silent"] >= 84, "the oldest are ended")
            assert here.server.served.connections <= 16
            assert here.fetch("ann", tmp_path / "copy") == (10, [])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how much a connection has received")
def test_a_message_of_many_parts_that_does_not_end_ends_its_connection(tmp_path: Path) -> None:
    """Without keys, so that a plain socket can send it."""
    root = FeedDataset(tmp_path / "dataset", "[class,=,'STOCK']")
    server = FeedServer("stocks", root.root, ServingConfig("tcp://127.0.0.1:*"))
    server.show(root.state)
    host, port = server.endpoint.removeprefix("tcp://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=120.0) as peer:
            peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
            peer.sendall(b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER")
            greeting = b""
            while b"READY" not in greeting:
                greeting += peer.recv(100)
            part, sent = b"\x03" + (8000).to_bytes(8, "big") + bytes(8000), 0
            with contextlib.suppress(OSError):  # it is ended
                while sent < 2**30:
                    peer.sendall(part)
                    sent += len(part)
            assert 2**20 < sent < 2**30
        wait_until(lambda: server.served.ended_connections["unfinished"] == 1, "it is counted")
    finally:
        server.close()
        root.close()


def test_a_request_that_is_too_large_ends_its_connection_alone(tmp_path: Path) -> None:
    with served(tmp_path / "s") as here:
        here.record(10)
        peer = here.peer("eve")
        monitor = peer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        _send(peer, [framed(listing())])
        assert peer.poll(10_000), "it is served"
        _send(peer, [b"x" * 9000])
        assert monitor.poll(10_000), "its connection ends"
        peer.disable_monitor()
        monitor.close(0)
        assert here.fetch("ann", tmp_path / "copy") == (10, [])


def _send(peer: zmq.Socket[bytes], parts: list[bytes]) -> None:
    with contextlib.suppress(zmq.Again):  # it is not connected, or the server takes no more of it
        peer.send_multipart(parts, zmq.NOBLOCK)
