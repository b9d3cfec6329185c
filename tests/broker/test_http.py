"""What the server takes, what it answers, and that nobody can keep it from answering others."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from plimsoll.broker import http
from plimsoll.broker.http import Answer, HttpServer, address_of

DEADLINE_SECONDS = 60
LARGE_BYTES = 32 * 1024 * 1024  # more than sockets buffer


def answers(path: str) -> Answer | None:
    match path:
        case "/livez":
            return Answer(HTTPStatus.OK, b"ok\n")
        case "/large":
            return Answer(HTTPStatus.OK, b"x" * LARGE_BYTES)
        case "/broken":
            raise KeyError("nothing there")
    return None


@pytest.fixture
def server() -> Iterator[HttpServer]:
    made = HttpServer("tcp://127.0.0.1:*", answers)
    made.start()
    yield made
    made.close()


def connect(server: HttpServer) -> socket.socket:
    return socket.create_connection(address_of(server.endpoint), timeout=DEADLINE_SECONDS)


def rest_of(connected: socket.socket) -> bytes:
    found = bytearray()
    try:
        while data := connected.recv(65536):
            found += data
    except ConnectionError:
        pass  # closed with something of ours unread
    return bytes(found)


def ask(server: HttpServer, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to these bytes."""
    with connect(server) as connected:
        connected.sendall(request)
        head, _, body = rest_of(connected).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split(" ")[1]), dict(line.lower().split(": ", 1) for line in lines), body


def get(server: HttpServer, path: str) -> tuple[int, dict[str, str], bytes]:
    return ask(server, f"GET {path} HTTP/1.1\r\nHost: me\r\n\r\n".encode())


def test_a_path_is_answered_and_the_connection_closed(server: HttpServer):
    status, headers, body = get(server, "/livez?verbose=1")
    assert (status, body) == (200, b"ok\n")
    assert (headers["content-length"], headers["connection"]) == ("3", "close")
    assert headers["content-type"] == "text/plain; charset=utf-8"


def test_head_is_answered_without_the_body(server: HttpServer):
    status, headers, body = ask(server, b"HEAD /livez HTTP/1.0\r\n\r\n")
    assert (status, headers["content-length"], body) == (200, "3", b"")


def test_a_request_may_come_byte_by_byte(server: HttpServer):
    with connect(server) as connected:
        for byte in b"GET /livez HTTP/1.1\r\n\r\n":
            connected.sendall(bytes([byte]))
        assert rest_of(connected).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_large_answer_arrives_whole(server: HttpServer):
    assert len(get(server, "/large")[2]) == LARGE_BYTES


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\n\r\n", 405),
        (b"GET livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000, 431),
    ],
)
def test_what_is_no_request_of_ours_is_refused(server: HttpServer, request_: bytes, status: int):
    assert ask(server, request_)[0] == status


def test_refusing_a_method_says_which_there_are(server: HttpServer):
    assert ask(server, b"DELETE /livez HTTP/1.1\r\n\r\n")[1]["allow"] == "get, head"


def test_a_fault_behind_one_path_is_answered_logged_and_leaves_the_others(
    server: HttpServer, caplog: pytest.LogCaptureFixture
):
    assert get(server, "/broken")[0] == 500
    assert "/broken cannot be answered" in caplog.text
    assert "nothing there" in caplog.text
    assert get(server, "/livez")[0] == 200


def test_many_idle_connections_do_not_keep_out_a_probe(server: HttpServer):
    idle = [connect(server) for _ in range(http.CONNECTIONS + 8)]
    try:
        for each in idle:
            each.sendall(b"GET /livez HTTP/1.1\r\n")
        assert get(server, "/livez")[0] == 200
        # The oldest have made room: their end is seen here.
        assert rest_of(idle[0]) == b""
    finally:
        for each in idle:
            each.close()


def test_a_connection_that_takes_too_long_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "SECONDS", 0.05)
    made = HttpServer("tcp://127.0.0.1:*", answers)
    made.start()
    try:
        with connect(made) as connected:
            connected.sendall(b"GET /livez")
            assert rest_of(connected) == b""
    finally:
        made.close()


def test_an_answer_that_is_not_taken_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "SECONDS", 0.05)
    made = HttpServer("tcp://127.0.0.1:*", answers)
    made.start()
    try:
        with connect(made) as connected:
            connected.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            deadline = time.monotonic() + DEADLINE_SECONDS
            for is_served in (True, False):
                while bool(made._connections) is not is_served:
                    assert time.monotonic() < deadline
            assert len(rest_of(connected)) < LARGE_BYTES
    finally:
        made.close()


def test_closing_ends_what_is_under_way():
    made = HttpServer("tcp://127.0.0.1:*", answers)
    made.start()
    with connect(made) as connected:
        connected.sendall(b"GET ")
        assert get(made, "/livez")[0] == 200
        made.close()
        assert rest_of(connected) == b""
        with pytest.raises(ConnectionError):
            socket.create_connection(address_of(made.endpoint), timeout=DEADLINE_SECONDS)


def test_closing_one_that_was_never_started_ends_it():
    made = HttpServer("tcp://127.0.0.1:*", answers)
    made.close()
    with pytest.raises(ConnectionError):
        socket.create_connection(address_of(made.endpoint), timeout=DEADLINE_SECONDS)


def test_a_port_in_use_is_said(server: HttpServer):
    with pytest.raises(OSError, match="in use"):
        HttpServer(server.endpoint, answers)


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("tcp://127.0.0.1:7402", ("127.0.0.1", 7402)),
        ("tcp://*:7402", ("0.0.0.0", 7402)),  # noqa: S104  # what is asked for
        ("tcp://[::1]:*", ("::1", 0)),
    ],
)
def test_an_endpoint_names_host_and_port(endpoint: str, address: tuple[str, int]):
    assert address_of(endpoint) == address


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:1", "tcp://host", "tcp://:1", "tcp://h:port", "tcp://h:70000", "tcp://h:"]
)
def test_what_is_no_endpoint_is_said(endpoint: str):
    with pytest.raises(ValueError, match="write tcp://HOST:PORT"):
        address_of(endpoint)


def test_whatever_comes_in_the_server_answers_the_next_one(server: HttpServer):
    seed = 20061
    chance = random.Random(seed)
    pieces = [
        b"GET ",
        b"/livez",
        b" HTTP/1.1",
        b"\r\n",
        b"\r\n\r\n",
        b"\0",
        b"\xff\xfe",
        b"Host: ",
        b" " * 50,
        b"x" * 5000,
    ]
    for _ in range(300):
        request = b"".join(chance.choices(pieces, k=chance.randrange(1, 12)))
        with connect(server) as connected:
            try:
                connected.sendall(request)
                connected.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before all of it was sent
            answer = rest_of(connected)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (seed, request)
    assert get(server, "/livez")[0] == 200, seed
