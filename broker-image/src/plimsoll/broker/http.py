"""A small HTTP/1.1 server in a thread of its own: GET and HEAD of a few paths, one request a connection.

It is there for probes and scrapes, which must be answered however many others ask and however slowly they do: one
thread, no thread per connection, and a bound on everything. A connection has `SECONDS` from its first byte to its last;
of `CONNECTIONS` at a time the oldest is closed for a new one. What a path answers is given by a function, called in the
server's thread. Nothing here knows ZeroMQ or what is measured.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

log = logging.getLogger(__name__)

CONNECTIONS: Final = 64
SECONDS: Final = 5.0
REQUEST_BYTES: Final = 8 * 1024
"""A request has no body here; a head above this is refused."""

PAUSE_SECONDS: Final = 0.5
_END: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path answers."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Answers = Callable[[str], Answer | None]
"""The answer of a path, without its query; None where there is nothing."""


def address_of(endpoint: str) -> tuple[str, int]:
    """Host and port of tcp://HOST:PORT; `*` as host is every address of the machine, as port whichever is free.

    Raises:
        ValueError: it is no such endpoint.

    """
    rest = endpoint.removeprefix("tcp://")
    host, colon, port = rest.rpartition(":")
    if rest == endpoint or not colon or not host or not (port == "*" or (port.isdecimal() and int(port) < 65536)):
        raise ValueError(f"{endpoint!r} is not an endpoint; write tcp://HOST:PORT")
    return ("0.0.0.0" if host == "*" else host.strip("[]"), 0 if port == "*" else int(port))  # noqa: S104  # as asked


class _Connection:
    """One connection: what has come, then what is still to go. It ends at `until`, come what may."""

    __slots__ = ("got", "out", "socket", "until")

    def __init__(self, connected: socket.socket, until: float) -> None:
        self.socket, self.until = connected, until
        self.got, self.out = b"", memoryview(b"")


class HttpServer:
    """Listens from the moment it is made, answers from `start` to `close`.

    Raises:
        OSError: the endpoint cannot be bound.

    """

    def __init__(self, endpoint: str, answers: Answers) -> None:
        host, port = address_of(endpoint)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._answers = answers
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self._listener.setblocking(False)
        self._reader, self._writer = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reader, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: dict[socket.socket, _Connection] = {}  # oldest first
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        bound = self._listener.getsockname()
        self.endpoint = f"tcp://[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"tcp://{bound[0]}:{bound[1]}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread, and whatever is under way."""
        self._writer.send(b"x")
        if self._thread.ident is not None:
            self._thread.join()
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._selector.close()
        for each in (self._listener, self._reader, self._writer):
            each.close()

    # -- the thread

    def _serve(self) -> None:
        while True:
            oldest = next(iter(self._connections.values()), None)
            for key, _ in self._selector.select(None if oldest is None else max(0.0, oldest.until - time.monotonic())):
                if key.fileobj is self._reader:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif (connection := self._connections.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                    self._go_on(connection)
            now = time.monotonic()
            for connection in [each for each in self._connections.values() if each.until <= now]:
                self._drop(connection)

    def _accept(self) -> None:
        try:
            connected, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return  # it has gone again
        except OSError as error:
            log.error("http: cannot accept a connection: %s; raise the limit of open files", error)
            time.sleep(PAUSE_SECONDS)
            return
        if len(self._connections) >= CONNECTIONS:
            self._drop(next(iter(self._connections.values())))
        connected.setblocking(False)
        self._connections[connected] = _Connection(connected, time.monotonic() + SECONDS)
        self._selector.register(connected, selectors.EVENT_READ)

    def _go_on(self, connection: _Connection) -> None:
        try:
            if connection.out:
                self._send(connection)
            else:
                self._receive(connection)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)  # the other side has gone

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(4096)
        if not data:
            self._drop(connection)
            return
        connection.got += data
        if _END in connection.got or len(connection.got) > REQUEST_BYTES:
            connection.out = memoryview(self._respond(connection.got))
            self._selector.modify(connection.socket, selectors.EVENT_WRITE)
            self._send(connection)

    def _send(self, connection: _Connection) -> None:
        connection.out = connection.out[connection.socket.send(connection.out) :]
        if not connection.out:
            connection.socket.shutdown(socket.SHUT_WR)
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        del self._connections[connection.socket]
        self._selector.unregister(connection.socket)
        connection.socket.close()

    # -- requests

    def _respond(self, request: bytes) -> bytes:
        head, end, _ = request.partition(_END)
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if not end:
            return _response(Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, b"the request is too large\n"), "GET")
        if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
            return _response(Answer(HTTPStatus.BAD_REQUEST, b"this is not a request of HTTP/1.1\n"), "GET")
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return _response(Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD are answered\n"), "GET")
        return _response(self._answer(target.partition("?")[0]), method)

    def _answer(self, path: str) -> Answer:
        try:
            found = self._answers(path)
        except Exception:
            # The thread goes on: a path that fails must not take the probes with it.
            log.exception("http: %s cannot be answered", path)
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"a fault of the program; its log has it\n")
        return found or Answer(HTTPStatus.NOT_FOUND, b"there is /livez, /readyz and /metrics\n")


def _response(answer: Answer, method: str) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\nContent-Type: {answer.content_type}\r\n{allow}"
        f"Content-Length: {len(answer.body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if method == "HEAD" else answer.body)
