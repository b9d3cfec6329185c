"""The sockets of a recorder that serves its dataset: a bound ROUTER, and the answers to ZAP. No other module has any.

What one connection may cost: a request of 8 KiB at most, requests unread, and answers that it does not take; more of
them are lost, to itself alone. Readers repeat what has no answer. Which connections there are is told by events, from
which `connection_watch` sees to it that there are not too many.
"""

from __future__ import annotations

import errno
import logging
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

import zmq
from zmq.utils.monitor import parse_monitor_message

from plimsoll.feeds.serving.connection_watch import ConnectionEvent
from plimsoll.feeds.serving.turns import WaitingRequest
from plimsoll.network.auth.authorized_keys import FEED_DOMAIN, AuthorizedKeys, SecretKeyFile

log = logging.getLogger(__name__)

REQUEST_BYTES: Final = 8 * 1024
ANSWERS_UNREAD: Final = 8
"""Of one connection, each of 64 KiB at most; a reader has four requests of each table under way."""
REQUESTS_UNREAD: Final = 16
SEND_BUFFER_BYTES: Final = 256 * 1024
RECEIVE_BUFFER_BYTES: Final = 64 * 1024
HANDSHAKE_MS: Final = 5_000
HEARTBEAT_MS: Final = 5_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000
REBIND_SECONDS: Final = 5.0
_OPENED: Final = int(zmq.EVENT_ACCEPTED)
_ENDED: Final = int(zmq.EVENT_DISCONNECTED)


class FeedEndpointError(OSError):
    """The endpoint cannot be bound; names it and the remedy."""


class FeedSockets:
    """Not thread-safe: one thread uses them at a time. `key` and `readers`: both, or neither for plain TCP.

    Raises:
        FeedEndpointError: the endpoint cannot be bound.

    """

    def __init__(self, endpoint: str, key: SecretKeyFile | None, readers: AuthorizedKeys | None) -> None:
        if (key is None) != (readers is None):
            raise ValueError("a key and a file of readers belong together: both, or neither for plain TCP")
        self._key, self._readers = key, readers
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = zmq.Poller()
        self.counters: Counter[str] = Counter()
        self._checks = 0  # of keys
        self._events: list[ConnectionEvent] = []
        self._zap = self._bound_zap() if readers is not None else None
        self._router = self._made_router()
        try:
            self.endpoint = self._bind(endpoint, 0.0)
        except FeedEndpointError:
            self.close()
            raise

    def _bound_zap(self) -> zmq.Socket[bytes]:
        # Before anything is bound: without a ZAP handler libzmq refuses peers.
        zap = self._context.socket(zmq.REP)
        zap.linger = 0
        zap.bind("inproc://zeromq.zap.01")
        self._poller.register(zap, zmq.POLLIN)
        return zap

    def _made_router(self) -> zmq.Socket[bytes]:
        router = self._context.socket(zmq.ROUTER)
        router.linger = 0
        router.router_mandatory = True
        router.sndhwm, router.rcvhwm = ANSWERS_UNREAD, REQUESTS_UNREAD
        router.sndbuf, router.rcvbuf = SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES
        router.maxmsgsize = REQUEST_BYTES
        router.handshake_ivl = HANDSHAKE_MS
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        if self._key is not None:
            router.curve_server = True
            router.curve_secretkey = self._key.secret.encode("ascii")
            router.setsockopt(zmq.ZAP_DOMAIN, FEED_DOMAIN.encode())
            router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        self._poller.register(router, zmq.POLLIN)
        self._monitor = router.get_monitor_socket(_OPENED | _ENDED)
        self._monitor.linger = 0
        self._poller.register(self._monitor, zmq.POLLIN)
        return router

    def _bind(self, endpoint: str, patience_seconds: float) -> str:
        """Listen; libzmq closes an earlier listener on another thread, a moment later."""
        until = time.monotonic() + patience_seconds
        while True:
            try:
                self._router.bind(endpoint)
            except zmq.ZMQError as error:
                if error.errno == errno.EADDRINUSE and time.monotonic() < until:
                    time.sleep(0.01)
                    continue
                remedy = "choose another address" if error.errno == errno.EADDRINUSE else "write tcp://ADDRESS:PORT"
                raise FeedEndpointError(
                    error.errno, f"serve: cannot listen at {endpoint}: {error.strerror}: {remedy}"
                ) from error
            bound: bytes = self._router.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]  # this option is bytes
            return bound.rstrip(b"\0").decode()

    # -- waiting, receiving, sending

    def wait(self, seconds: float) -> None:
        """Wait until something can be read or `seconds` are over; answers ZAP."""
        ready = dict(self._poller.poll(max(0, int(seconds * 1000))))
        if self._zap is not None and self._zap in ready:
            self._answer_zap(self._zap)

    def receive(self, most: int) -> list[WaitingRequest]:
        """Requests that have come, up to a limit."""
        return [each for each in islice(self._received(), most) if each is not None]

    def _received(self) -> Iterator[WaitingRequest | None]:
        """None for what is no request."""
        while True:
            try:
                peer = self._router.recv(zmq.NOBLOCK)
            except zmq.Again:
                return  # all that has come is read
            part = self._router.recv(0, copy=False)
            if part.more:
                self.counters["messages_of_many_parts"] += 1
                while self._router.recv(0, copy=False).more:
                    pass
                yield None
                continue
            key, _, check = str(part.get("User-Id")).partition(" ") if self._key is not None else ("", "", "0")
            yield WaitingRequest(peer, key, part.bytes, int(part.get(zmq.SRCFD)), int(check))

    def take_events(self) -> list[ConnectionEvent]:
        """Connections that were accepted or are gone, in this order; of all that has been received before."""
        self._read_events()
        found, self._events = self._events, []
        return found

    def _read_events(self) -> None:
        try:
            while True:
                told = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
                kind: Literal["opened", "ended"] = "opened" if told["event"] == _OPENED else "ended"
                self._events.append(ConnectionEvent(kind, int(told["value"]), self._checks + 1))
        except zmq.Again:
            pass  # all events are read

    def send(self, peer: bytes, data: bytes) -> bool:
        """Answer a connection; false if it takes no more or is gone: the answer is lost."""
        try:
            self._router.send_multipart((peer, data), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (errno.EAGAIN, errno.EHOSTUNREACH):
                raise
            self.counters["answers_lost"] += 1
            return False
        return True

    # -- keys

    def refresh(self) -> bool:
        """Read the files of keys again; true if all have to connect again, since the secret key is another one."""
        if self._readers is not None:
            known = self._readers.fault
            self._readers.refresh()
            if self._readers.fault != known and self._readers.fault:
                log.error("%s; what was read before stays in force", self._readers.fault)
        if self._key is None or not self._key.refresh():
            return False
        self._close_router()
        self._router = self._made_router()
        self._bind(self.endpoint, REBIND_SECONDS)
        return True

    def _answer_zap(self, zap: zmq.Socket[bytes]) -> None:
        if self._readers is None:
            raise AssertionError("there is a ZAP handler where there are readers")
        try:
            while True:
                request = zap.recv_multipart(zmq.NOBLOCK)
                self._read_events()  # that of the connection which this is about is told before its key is checked
                self._checks += 1
                *reply, key, metadata = self._readers.answer_zap(request)
                zap.send_multipart([*reply, key + b" %d" % self._checks, metadata])
        except zmq.Again:
            pass  # all requests are answered

    def _close_router(self) -> None:
        for socket in (self._monitor, self._router):
            self._poller.unregister(socket)
        self._router.disable_monitor()
        self._monitor.close()
        self._router.close()
        self._events.clear()

    def close(self) -> None:
        self._close_router()
        if self._zap is not None:
            self._zap.close()
        self._context.term()
