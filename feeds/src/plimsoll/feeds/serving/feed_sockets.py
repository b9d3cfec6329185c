"""The sockets of a recorder that serves its dataset: a bound ROUTER, and the answers to ZAP. No other module has any.

What one connection may cost: a request of 8 KiB at most, requests unread, and answers that it does not take; more of
them are lost, to itself alone. Readers repeat what has no answer. Where there are too many connections, all are ended,
and the key that made most of them is refused for a minute: honest readers connect again, and go on.
"""

from __future__ import annotations

import errno
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import zmq
from zmq.utils.monitor import parse_monitor_message

from plimsoll.feeds.serving.turns import WaitingRequest
from plimsoll.network.auth.authorized_keys import FEED_DOMAIN, AuthorizedKeys, SecretKeyFile, z85

log = logging.getLogger(__name__)

REQUEST_BYTES: Final = 8 * 1024
ANSWERS_UNREAD: Final = 8
"""Of one connection, each of 64 KiB at most; a reader has four requests under way."""
REQUESTS_UNREAD: Final = 16
SEND_BUFFER_BYTES: Final = 256 * 1024
CONNECTIONS_AT_MOST: Final = 256
REFUSED_SECONDS: Final = 60.0
HANDSHAKE_MS: Final = 5_000
HEARTBEAT_MS: Final = 5_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000
REBIND_SECONDS: Final = 5.0
_GONE: Final = (errno.EAGAIN, errno.EHOSTUNREACH)
_EVENTS: Final = int(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)


class FeedEndpointError(OSError):
    """The endpoint cannot be bound; names it and the remedy."""


class FeedSockets:
    """Not thread-safe: one thread uses them at a time. `key` and `readers`: both, or neither for plain TCP.

    Raises:
        FeedEndpointError: the endpoint cannot be bound.

    """

    def __init__(
        self,
        endpoint: str,
        key: SecretKeyFile | None,
        readers: AuthorizedKeys | None,
        *,
        connections: int = CONNECTIONS_AT_MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if (key is None) != (readers is None):
            raise ValueError("a key and a file of readers belong together: both, or neither for plain TCP")
        self._key, self._readers, self._most, self._clock = key, readers, connections, clock
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = zmq.Poller()
        self._open: set[int] = set()  # file descriptors of connections
        self._made: Counter[str] = Counter()  # connections by key, since the last time that all were ended
        self._refused_until: dict[str, float] = {}
        self.counters: Counter[str] = Counter()
        self._zap = self._bound_zap() if readers is not None else None
        self._router, self._monitor = self._listen()
        self.endpoint = self._bind(endpoint, 0.0)

    def _bound_zap(self) -> zmq.Socket[bytes]:
        # Before anything is bound: without a ZAP handler libzmq refuses peers.
        zap = self._context.socket(zmq.REP)
        zap.linger = 0
        zap.bind("inproc://zeromq.zap.01")
        self._poller.register(zap, zmq.POLLIN)
        return zap

    def _listen(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        router = self._context.socket(zmq.ROUTER)
        router.linger = 0
        router.router_mandatory = True
        router.sndhwm, router.rcvhwm = ANSWERS_UNREAD, REQUESTS_UNREAD
        router.sndbuf = SEND_BUFFER_BYTES
        router.maxmsgsize = REQUEST_BYTES
        router.handshake_ivl = HANDSHAKE_MS
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        if self._key is not None:
            router.curve_server = True
            router.curve_secretkey = self._key.secret.encode("ascii")
            router.setsockopt(zmq.ZAP_DOMAIN, FEED_DOMAIN.encode())
            router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        monitor = router.get_monitor_socket(_EVENTS)
        monitor.linger = 0
        for socket in (router, monitor):
            self._poller.register(socket, zmq.POLLIN)
        return router, monitor

    def _bind(self, endpoint: str, patience_seconds: float) -> str:
        """Listen; libzmq closes an earlier listener on another thread, a moment later."""
        until = self._clock() + patience_seconds
        while True:
            try:
                self._router.bind(endpoint)
            except zmq.ZMQError as error:
                if error.errno == errno.EADDRINUSE and self._clock() < until:
                    time.sleep(0.01)
                    continue
                remedy = "choose another address" if error.errno == errno.EADDRINUSE else "write tcp://ADDRESS:PORT"
                raise FeedEndpointError(
                    error.errno, f"serve: cannot listen at {endpoint}: {error}: {remedy}"
                ) from error
            bound: bytes = self._router.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]  # this option is bytes
            return bound.rstrip(b"\0").decode()

    # -- waiting, receiving, sending

    def wait(self, seconds: float) -> None:
        """Wait until something can be read or `seconds` are over; answers ZAP, and counts connections."""
        ready = dict(self._poller.poll(max(0, int(seconds * 1000))))
        if self._zap is not None and self._zap in ready:
            self._answer_zap(self._zap)
        if self._monitor in ready:
            self._count_connections()
        if len(self._open) > self._most:
            self._end_all()

    def receive(self, most: int) -> Iterator[WaitingRequest]:
        """Requests that have come, at most so many."""
        for _ in range(most):
            try:
                peer = self._router.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            part = self._router.recv(0, copy=False)
            if part.more:
                self.counters["messages_of_many_parts"] += 1
                while self._router.recv(0, copy=False).more:
                    pass
                continue
            key = str(part.get("User-Id")) if self._key is not None else ""
            yield WaitingRequest(peer, key, part.bytes)

    def send(self, peer: bytes, data: bytes) -> None:
        """Answer a connection; the answer is lost if it takes none, or is gone."""
        try:
            self._router.send_multipart((peer, data), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in _GONE:
                raise
            self.counters["answers_lost"] += 1

    # -- keys

    def refresh(self) -> None:
        """Read the files of keys again; with another secret key all have to connect again."""
        if self._readers is not None:
            known = self._readers.fault
            self._readers.refresh()
            if self._readers.fault != known and self._readers.fault:
                log.error("%s; what was read before stays in force", self._readers.fault)
        if self._key is not None and self._key.refresh():
            self._reopen()

    def _answer_zap(self, zap: zmq.Socket[bytes]) -> None:
        if self._readers is None:
            raise AssertionError("there is a ZAP handler where there are readers")
        try:
            while True:
                request = zap.recv_multipart(zmq.NOBLOCK)
                key = z85(request[6]) if len(request) > 6 and len(request[6]) == 32 else ""
                if self._refused_until.get(key, 0.0) > self._clock():
                    self.counters["connections_refused"] += 1
                    zap.send_multipart([*request[:2], b"400", b"too many connections of this key", b"", b""])
                    continue
                reply = self._readers.answer_zap(request)
                if reply[2] == b"200":
                    self._made[key] += 1
                else:
                    self.counters["connections_refused"] += 1
                zap.send_multipart(reply)
        except zmq.Again:
            pass  # all requests are answered

    def _count_connections(self) -> None:
        try:
            while True:
                event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
                if event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                    self._open.add(event["value"])
                else:
                    self._open.discard(event["value"])
        except zmq.Again:
            pass  # all events are counted

    def _end_all(self) -> None:
        """End all connections, and refuse the key that made most of them for a while."""
        key, made = max(self._made.items(), key=lambda each: (each[1], each[0]), default=("", 0))
        whose = self._readers.identity_of(key) if self._readers is not None else "a reader"
        log.warning("%d connections are too many, and all are ended; %s has made %d of them", self._most, whose, made)
        now = self._clock()
        self._refused_until = {each: until for each, until in self._refused_until.items() if until > now}
        if key:
            self._refused_until[key] = now + REFUSED_SECONDS
        self.counters["times_all_ended"] += 1
        self._reopen()

    def _reopen(self) -> None:
        self._close_router()
        self._open.clear()
        self._made.clear()
        self._router, self._monitor = self._listen()
        self._bind(self.endpoint, REBIND_SECONDS)

    def _close_router(self) -> None:
        for socket in (self._router, self._monitor):
            self._poller.unregister(socket)
        self._router.disable_monitor()
        self._monitor.close()
        self._router.close()

    def close(self) -> None:
        self._close_router()
        if self._zap is not None:
            self._zap.close()
        self._context.term()
