"""Requests and answers of the server, and that no connection can keep it from answering others."""

from __future__ import annotations

import errno
import os
import random
import socket
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from plimsoll.telemetry import http_server
from plimsoll.telemetry.http_server import HttpRequest, HttpResponse, HttpServer, address_of

DEADLINE_SECONDS = 300
LARGE_BYTES = 32 * 1024 * 1024  # more than sockets buffer


def answers(request: HttpRequest) -> HttpResponse:
    match request.path:
        case "/livez":
            return HttpResponse(HTTPStatus.OK, b"ok\n")
        case "/large":
            return HttpResponse(HTTPStatus.OK, b"x" * LARGE_BYTES)
        case "/broken":
            raise KeyError("nothing there")
        case "/echo":
            said = f"{request.method} {request.target} {request.headers.get('x-word')} {len(request.body)}"
            return HttpResponse(HTTPStatus.OK, said.encode(), headers={"X-First": request.body[:3].decode()})
    return HttpResponse(HTTPStatus.NOT_FOUND, b"nothing\n")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    made = HttpServer(("127.0.0.1", 0), answers)
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
        pass  # closed with some of our bytes unread
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
    assert "GET /broken failed" in caplog.text
    assert "nothing there" in caplog.text
    assert get(server, "/livez")[0] == 200


@pytest.fixture
def taking() -> Iterator[HttpServer]:
    """A server that takes bodies of at most 100,000 bytes."""
    made = HttpServer(("127.0.0.1", 0), answers, methods=("GET", "POST"), body_bytes=100_000)
    made.start()
    yield made
    made.close()


def post(server: HttpServer, body: bytes, *headers: bytes) -> tuple[int, dict[str, str], bytes]:
    lines = (b"POST /echo?x=1 HTTP/1.1", b"Content-Length: %d" % len(body), *headers)
    return ask(server, b"\r\n".join(lines) + b"\r\n\r\n" + body)


def test_a_body_comes_whole_with_its_headers(taking: HttpServer):
    status, headers, body = post(taking, b"abc" * 30_000, b"X-Word:  hello ")
    assert (status, headers["x-first"], body) == (200, "abc", b"POST /echo?x=1 hello 90000")
    assert post(taking, b"")[2] == b"POST /echo?x=1 None 0"


def test_who_asks_first_is_told_to_go_on(taking: HttpServer):
    with connect(taking) as connected:
        connected.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert connected.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connected.sendall(b"abc")
        assert rest_of(connected).endswith(b"POST /echo None 3")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Content-Length: 100001", 413),
        (b"Content-Length: " + b"9" * 40, 413),
        (b"Content-Length: -1", 411),
        (b"Content-Length: \xb2", 411),
        (b"Transfer-Encoding: chunked", 411),
        (b"Content-Length : 3", 400),
        (b"nonsense", 400),
    ],
)
def test_a_body_without_bounds_is_refused_before_it_is_read(taking: HttpServer, headers: bytes, status: int):
    assert ask(taking, b"POST /echo HTTP/1.1\r\n" + headers + b"\r\n\r\nabc")[0] == status


def test_a_refusal_reaches_a_sender_that_goes_on_sending(taking: HttpServer):
    with connect(taking) as connected:
        connected.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 1_000_000)
        assert connected.recv(12) == b"HTTP/1.1 413"


def test_bodies_share_a_bound_of_memory(taking: HttpServer):
    """Each may be as large as is allowed, but only some of them at once."""
    waiting = [connect(taking) for _ in range(http_server.BODIES_AT_ONCE)]
    try:
        for each in waiting:
            each.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")
        deadline = time.monotonic() + DEADLINE_SECONDS
        while sum(each.wanted for each in taking._connections.copy().values()) < 400_000:
            assert time.monotonic() < deadline
        assert post(taking, b"abc")[0] == 503
        waiting.pop().close()
        while sum(each.wanted for each in taking._connections.copy().values()) >= 400_000:
            assert time.monotonic() < deadline
        assert post(taking, b"abc")[0] == 200
    finally:
        for each in waiting:
            each.close()


def test_many_idle_connections_do_not_keep_out_a_probe(server: HttpServer):
    idle = [connect(server) for _ in range(http_server.MAX_CONNECTIONS + 8)]
    try:
        for each in idle:
            each.sendall(b"GET /livez HTTP/1.1\r\n")
        assert get(server, "/livez")[0] == 200
        # The oldest have made room: their end is seen here.
        assert rest_of(idle[0]) == b""
    finally:
        for each in idle:
            each.close()


@pytest.mark.parametrize(
    ("number", "logged"), [(errno.ECONNRESET, False), (errno.ETIMEDOUT, False), (errno.EHOSTUNREACH, True)]
)
def test_a_fault_ends_its_connection_alone_and_is_logged_unless_the_other_side_has_gone(
    server: HttpServer,
    number: int,
    logged: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    receive, faults = HttpServer._receive, [OSError(number, os.strerror(number))]

    def faulty(made: HttpServer, connection: Any) -> None:
        if faults:
            raise faults.pop()
        receive(made, connection)

    monkeypatch.setattr(HttpServer, "_receive", faulty)
    with connect(server) as connected:
        connected.sendall(b"GET /livez")
        assert rest_of(connected) == b""
    assert (os.strerror(number) in caplog.text) is logged
    assert get(server, "/livez")[0] == 200


def test_a_connection_that_takes_too_long_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_server, "CONNECTION_SECONDS", 0.05)
    made = HttpServer(("127.0.0.1", 0), answers)
    made.start()
    try:
        with connect(made) as connected:
            connected.sendall(b"GET /livez")
            assert rest_of(connected) == b""
    finally:
        made.close()


def test_an_answer_that_is_not_taken_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_server, "CONNECTION_SECONDS", 0.05)
    made = HttpServer(("127.0.0.1", 0), answers)
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
    made = HttpServer(("127.0.0.1", 0), answers)
    made.start()
    with connect(made) as connected:
        connected.sendall(b"GET ")
        assert get(made, "/livez")[0] == 200
        made.close()
        assert rest_of(connected) == b""
        with pytest.raises(ConnectionError):
            socket.create_connection(address_of(made.endpoint), timeout=DEADLINE_SECONDS)


def test_closing_one_that_was_never_started_ends_it():
    made = HttpServer(("127.0.0.1", 0), answers)
    made.close()
    with pytest.raises(ConnectionError):
        socket.create_connection(address_of(made.endpoint), timeout=DEADLINE_SECONDS)


def test_a_port_in_use_is_said(server: HttpServer):
    with pytest.raises(OSError, match="in use"):
        HttpServer(("127.0.0.1", server.port), answers)


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


def test_after_any_input_the_server_answers_the_next_request(server: HttpServer):
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
            except OSError as error:  # refused before all of it was sent
                assert error.errno in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN), (seed, request)
            answer = rest_of(connected)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (seed, request)
    assert get(server, "/livez")[0] == 200, seed


def test_what_others_can_repeat_is_said_ever_more_rarely(server: HttpServer, caplog: pytest.LogCaptureFixture):
    for _ in range(12):
        get(server, "/broken")
    assert [record.args[-1] for record in caplog.records] == [1, 10]  # type: ignore[index]  # its arguments are a tuple
