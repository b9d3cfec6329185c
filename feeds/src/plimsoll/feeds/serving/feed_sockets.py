"""The sockets of a recorder that serves its dataset: a bound ROUTER, and the answers to ZAP. No other module has any.

What one connection may cost: a request of 8 KiB at most, requests unread, and answers that it does not take; more of
them are lost, to itself alone. Readers repeat what has no answer.
"""

from __future__ import annotations

import errno
import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import zmq

from plimsoll.core.protocol import wire
from plimsoll.feeds.serving.turns import WaitingRequest
from plimsoll.network.auth.authorized_keys import FEED_DOMAIN, AuthorizedKeys, SecretKeyFile

log = logging.getLogger(__name__)

REQUEST_BYTES: Final = 8 * 1024
ANSWERS_UNREAD: Final = 8
"""Of one connection, each of 64 KiB at most; a reader has four requests of each table under way."""
REQUESTS_UNREAD: Final = 16
SEND_BUFFER_BYTES: Final = 256 * 1024
HANDSHAKE_MS: Final = 5_000
HEARTBEAT_MS: Final = 5_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000
REBIND_SECONDS: Final = 5.0


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
        router.sndbuf = SEND_BUFFER_BYTES
        router.maxmsgsize = REQUEST_BYTES
        router.handshake_ivl = HANDSHAKE_MS
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        if self._key is not None:
            router.curve_server = True
            router.curve_secretkey = self._key.secret.encode("ascii")
            router.setsockopt(zmq.ZAP_DOMAIN, FEED_DOMAIN.encode())
            router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        self._poller.register(router, zmq.POLLIN)
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
                    error.errno, f"serve: cannot listen at {endpoint}: {error}: {remedy}"
                ) from error
            bound: bytes = self._router.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]  # this option is bytes
            return bound.rstrip(b"\0").decode()

    # -- waiting, receiving, sending

    def wait(self, seconds: float) -> None:
        """Wait until something can be read or `seconds` are over; answers ZAP."""
        ready = dict(self._poller.poll(max(0, int(seconds * 1000))))
        if self._zap is not None and self._zap in ready:
            self._answer_zap(self._zap)

    def receive(self, most: int) -> Iterator[WaitingRequest]:
        """Requests that have come, up to a limit."""
        for _ in range(most):
            try:
                peer = self._router.recv(zmq.NOBLOCK)
            except zmq.Again:
                return  # all that has come is read
            part = self._router.recv(0, copy=False)
            if part.more:
                self.counters["messages_of_many_parts"] += 1
                while self._router.recv(0, copy=False).more:
                    pass
                continue
            key = str(part.get("User-Id")) if self._key is not None else ""
            yield WaitingRequest(peer, key, part.bytes)

    def send(self, peer: bytes, data: bytes) -> bool:
        """Answer a connection; false if it takes no more or is gone: the answer is lost."""
        is_sent = self._try_send(peer, data) == 0
        self.counters["answers_lost"] += not is_sent
        return is_sent

    def is_gone(self, peer: bytes) -> bool:
        """Whether a connection has ended; one that has not is sent an empty frame."""
        return self._try_send(peer, wire.control_frame()) == errno.EHOSTUNREACH

    def _try_send(self, peer: bytes, data: bytes) -> int:
        """0, or why it cannot be sent: EAGAIN, EHOSTUNREACH."""
        try:
            self._router.send_multipart((peer, data), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (errno.EAGAIN, errno.EHOSTUNREACH):
                raise
            return error.errno
        return 0

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
                zap.send_multipart(self._readers.answer_zap(zap.recv_multipart(zmq.NOBLOCK)))
        except zmq.Again:
            pass  # all requests are answered

    def _close_router(self) -> None:
        self._poller.unregister(self._router)
        self._router.close()

    def close(self) -> None:
        self._close_router()
        if self._zap is not None:
            self._zap.close()
        self._context.term()
