"""A small HTTP/1.1 server in a thread of its own, for probes, scrapes and the collector's readers: one request each.

It keeps answering proper requests under any number of other, slow ones: one thread, no thread per connection, and a
bound on everything. A connection has some seconds from its first byte to its last; at the limit of connections the
oldest is closed for a new one. The handler is called in the server's thread, so it must be quick.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from plimsoll.core.printable import is_told_again

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
CONNECTION_SECONDS: Final = 5.0
HEAD_BYTES: Final = 8 * 1024
"""The request line and all headers."""

BODIES_AT_ONCE: Final = 4
"""Memory for bodies is bounded by this many of the largest."""

ACCEPT_PAUSE_SECONDS: Final = 0.5
_RECEIVE_BYTES: Final = 64 * 1024
_END: Final = b"\r\n\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `target`: path and query as sent. `headers`: by lower-case name."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer. `headers`: in addition to those of every answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


HttpHandler = Callable[[HttpRequest], HttpResponse]


class _RefusedError(Exception):
    """The request cannot be handled; `args[0]` is the answer."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(HttpResponse(status, text.encode() + b"\n"))


def address_of(endpoint: str) -> tuple[str, int]:
    """Host and port of tcp://HOST:PORT. A host of `*` is every address of the machine, a port of `*` any free one.

    Raises:
        ValueError: the endpoint has another form.

    """
    rest = endpoint.removeprefix("tcp://")
    host, colon, port = rest.rpartition(":")
    if rest == endpoint or not colon or not host or not (port == "*" or (port.isdecimal() and int(port) < 65536)):
        raise ValueError(f"{endpoint!r} is not an endpoint; write tcp://HOST:PORT")
    return ("0.0.0.0" if host == "*" else host.strip("[]"), 0 if port == "*" else int(port))  # noqa: S104  # as asked


class _HttpConnection:
    """One connection: the bytes received, then those still to send. It ends at `until` in any case."""

    __slots__ = ("got", "head", "is_draining", "out", "socket", "until", "wanted")

    def __init__(self, connected: socket.socket, until: float) -> None:
        self.socket, self.until = connected, until
        self.got, self.out = bytearray(), memoryview(b"")
        self.head: HttpRequest | None = None
        self.wanted = 0
        """Bytes of the body, once the head is known."""
        self.is_draining = False
        """Answered before the request had come whole: closing now would reset the connection under the answer."""


class HttpServer:
    """Listens from the moment it is made, answers from `start` to `close`.

    `methods`: those of the handler; HEAD is answered as GET without a body. `body_bytes`: the largest body of a POST, 0
    for none. `seconds`: the longest time of a connection.

    Raises:
        OSError: the address cannot be bound.

    """

    def __init__(
        self,
        address: tuple[str, int],
        handler: HttpHandler,
        *,
        methods: tuple[str, ...] = ("GET",),
        body_bytes: int = 0,
        seconds: float | None = None,
    ) -> None:
        host, port = address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._handler, self._methods, self._body_bytes = handler, methods, body_bytes
        self._seconds = CONNECTION_SECONDS if seconds is None else seconds
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self._listener.setblocking(False)
        self._reader, self._writer = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reader, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: dict[socket.socket, _HttpConnection] = {}  # oldest first
        self._failed: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        bound = self._listener.getsockname()
        self.port = int(bound[1])
        self.endpoint = f"tcp://[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"tcp://{bound[0]}:{bound[1]}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread, and every connection."""
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
                elif (connection := self._connections.get(key.fileobj)) is not None:  # type: ignore[call-overload]  # sockets alone are registered
                    self._advance(connection)
            now = time.monotonic()
            for connection in [each for each in self._connections.values() if each.until <= now]:
                self._drop(connection)

    def _times_to_say(self, what: str) -> int:
        """How often this has failed, if it is to be said again; else 0: others make it happen as often as they like."""
        self._failed[what] += 1
        return self._failed[what] if is_told_again(self._failed[what]) else 0

    def _accept(self) -> None:
        try:
            connected, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return  # the other side has gone again
        except OSError as error:
            if times := self._times_to_say("accepting"):
                text = "http: cannot accept a connection (%d times so far): %s; raise the limit of open files"
                log.error(text, times, error)
            time.sleep(ACCEPT_PAUSE_SECONDS)  # the listener stays readable, so without a pause this loop would spin
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            self._drop(next(iter(self._connections.values())))
        connected.setblocking(False)
        self._connections[connected] = _HttpConnection(connected, time.monotonic() + self._seconds)
        self._selector.register(connected, selectors.EVENT_READ)

    def _advance(self, connection: _HttpConnection) -> None:
        try:
            if connection.out:
                self._send(connection)
            else:
                self._receive(connection)
        except BlockingIOError:
            pass  # the selector says when it goes on
        except (ConnectionError, TimeoutError):
            self._drop(connection)  # the other side has gone
        except OSError as error:
            # ENOTCONN: it has gone as well, `shutdown` says so by this.
            if error.errno != errno.ENOTCONN and (times := self._times_to_say("connections")):
                log.warning("http: a connection is closed after a fault (%d times so far): %s", times, error)
            self._drop(connection)

    def _receive(self, connection: _HttpConnection) -> None:
        data = connection.socket.recv(_RECEIVE_BYTES)
        if not data:
            self._drop(connection)
            return
        if connection.is_draining:
            return
        connection.got += data
        answer = self._answer(connection)
        if answer is not None:
            connection.is_draining = connection.head is None or len(connection.got) < connection.wanted
            connection.out = memoryview(answer)
            connection.got, connection.wanted = bytearray(), 0
            self._selector.modify(connection.socket, selectors.EVENT_WRITE)
            self._send(connection)

    def _send(self, connection: _HttpConnection) -> None:
        connection.out = connection.out[connection.socket.send(connection.out) :]
        if connection.out:
            return
        connection.socket.shutdown(socket.SHUT_WR)
        if connection.is_draining:
            self._selector.modify(connection.socket, selectors.EVENT_READ)
        else:
            self._drop(connection)

    def _drop(self, connection: _HttpConnection) -> None:
        del self._connections[connection.socket]
        self._selector.unregister(connection.socket)
        connection.socket.close()

    # -- requests

    def _answer(self, connection: _HttpConnection) -> bytes | None:
        """The encoded answer once the request is complete; None before."""
        method = "GET"
        try:
            if connection.head is None:
                if (end := connection.got.find(_END, 0, HEAD_BYTES + len(_END))) < 0:
                    if len(connection.got) > HEAD_BYTES:
                        raise _RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request head is too large")
                    return None
                self._read_head(connection, end)
            assert connection.head is not None  # noqa: S101  # _read_head has set it or raised
            method = connection.head.method
            if len(connection.got) < connection.wanted:
                return None
            body = bytes(connection.got[: connection.wanted])
            request = HttpRequest(method, connection.head.target, connection.head.headers, body)
            return encode_response(self._handle(request), method, self._methods)
        except _RefusedError as refused:
            return encode_response(refused.args[0], method, self._methods)

    def _read_head(self, connection: _HttpConnection, end: int) -> None:
        request = parse_head(bytes(connection.got[:end]))
        if request.method not in (*self._methods, "HEAD"):
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"only {_allowed(self._methods)} are answered")
        length = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not (length.isascii() and length.isdigit()):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "give the length of the body as Content-Length")
        wanted = int(length) if len(length) < 12 else self._body_bytes + 1
        if wanted > (self._body_bytes if request.method == "POST" else 0):
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {self._body_bytes} bytes")
        if sum(each.wanted for each in self._connections.values()) + wanted > BODIES_AT_ONCE * self._body_bytes:
            raise _RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many bodies at once; try again")
        if "100-continue" in request.headers.get("expect", "").lower():
            connection.socket.send(_CONTINUE)  # 25 bytes fit into a fresh socket's buffer
        connection.head, connection.wanted = request, wanted
        del connection.got[: end + len(_END)]

    def _handle(self, request: HttpRequest) -> HttpResponse:
        try:
            return self._handler(request)
        except Exception:
            # The thread goes on: a failing path must not take the probes down.
            if times := self._times_to_say("requests"):
                log.exception("http: %s %s failed (%d times so far)", request.method, request.path[:200], times)
            return HttpResponse(HTTPStatus.INTERNAL_SERVER_ERROR, b"a fault of the program; its log has it\n")


def parse_head(head: bytes) -> HttpRequest:
    """The request line and headers, without the empty line behind them."""
    first, _, rest = head.partition(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1")
    headers: dict[str, str] = {}
    for line in rest.decode("latin-1").split("\r\n") if rest else ():
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "a header line is not NAME: VALUE")
        headers[name.lower()] = value.strip()
    return HttpRequest(words[0], words[1], headers)


def _allowed(methods: tuple[str, ...]) -> str:
    return ", ".join((*methods, "HEAD"))


def encode_response(answer: HttpResponse, method: str = "GET", methods: tuple[str, ...] = ("GET",)) -> bytes:
    """The bytes of an answer; HEAD gets the head alone."""
    headers = {"Content-Type": answer.content_type, **answer.headers}
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _allowed(methods)
    headers |= {"Content-Length": str(len(answer.body)), "Cache-Control": "no-store", "Connection": "close"}
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + _END + (b"" if method == "HEAD" else answer.body)
