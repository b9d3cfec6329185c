"""One lane of a broker: a bound ROUTER with the DEALERs that it has dialled for the same purpose, data or control.

Rules of the place:
- One frame is one message part. Multipart messages are dropped and counted.
- A frame that cannot be sent yet waits, and later frames for the same peer queue behind it. Only a HELLO discards that
  queue, since it starts the link over.
- The links' windows bound the bytes inside ZeroMQ; the high-water marks are set so high that the windows apply first.
"""

from __future__ import annotations

import errno
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

import zmq
from zmq.backend import Socket as _RawSocket

from plimsoll.core.config import BrokerLimits
from plimsoll.core.protocol import wire
from plimsoll.network import Connector
from plimsoll.network.auth.authorized_keys import CONTROL_DOMAIN

Peer = str | bytes

_NOBLOCK: Final = int(zmq.NOBLOCK)
_FIRST_PART: Final = int(zmq.SNDMORE | zmq.NOBLOCK)
# The C layer's method: the public one checks options that are not used here, which takes a third of the time of a send.
_send: Final = _RawSocket.send

OVERSIZE_MARGIN_BYTES: Final = 64 * 1024
"""A frame above the limit is refused with an answer; above limit and margin libzmq drops the connection."""

KNOWN_USERS: Final = 65_536
"""Number of connections whose names are remembered; the name of an older one is looked up again at its next frame."""

RECEIVE_FRAMES: Final = 256
RECEIVE_FRAMES_PER_PEER: Final = 32
"""Unread frames of one that has dialled in, which libzmq keeps beside all limits: 34 MiB, if each has the largest size.
A broker that this side dials sends a stream, and may be further ahead."""

LINGER_MS: Final = 500
HANDSHAKE_MS: Final = 5_000
HEARTBEAT_MS: Final = 5_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000
CONNECT_MS: Final = 1_000
"""A connection that takes longer is tried again. Behind a virtual address an attempt keeps the destination that it
began with, and the head may have left that."""
RECONNECT_MS: Final = 100
RECONNECT_MAX_MS: Final = 2_000
REBIND_SECONDS: Final = 2.0
BACKLOG: Final = 4_096

_HELLO_KIND: Final = bytes([wire.HELLO])


class EndpointError(OSError):
    """An endpoint that cannot be bound; names it and the remedy."""


class BrokerCurveKeys:
    """This broker's key pair. Both are Z85."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode("ascii")
        self.public = zmq.curve_public(self.secret)


class SocketLane:
    """One lane: the bound ROUTER, the dialled DEALERs, waiting frames, and the key of each accepted connection.

    `has_more`: the last read stopped at a limit, so more may be waiting.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        domain: str,
        limits: BrokerLimits,
        curve: BrokerCurveKeys | None,
        connector: Connector,
    ) -> None:
        self._context, self._domain, self._limits, self._curve = context, domain, limits, curve
        self._connector = connector
        self._is_control = domain == CONTROL_DOMAIN
        self.counters: Counter[str] = Counter()
        self.dealers: dict[str, zmq.Socket[bytes]] = {}
        self.backlog: dict[Peer, deque[bytes]] = {}
        self.users: dict[bytes, str] = {}
        self.has_more = False
        self._bound: list[str] = []
        self.denied: set[bytes] = set()
        self._allowed: frozenset[str] | None = None  # None: every key that was admitted
        self.router = self._socket(zmq.ROUTER)
        self.router.router_mandatory = True
        self.router.backlog = BACKLOG
        if curve is not None:
            self.router.curve_server = True
            self.router.curve_secretkey = curve.secret
            self.router.setsockopt(zmq.ZAP_DOMAIN, domain.encode())
            self.router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        limits = self._limits
        socket = self._context.socket(kind)
        socket.linger = LINGER_MS
        socket.sndhwm = 2 * limits.window_frames
        most = RECEIVE_FRAMES_PER_PEER if kind == zmq.ROUTER else RECEIVE_FRAMES
        socket.rcvhwm = min(most, 2 * limits.window_frames)
        socket.maxmsgsize = limits.max_frame_bytes + OVERSIZE_MARGIN_BYTES
        socket.handshake_ivl, socket.connect_timeout = HANDSHAKE_MS, CONNECT_MS
        socket.heartbeat_ivl = HEARTBEAT_MS
        socket.heartbeat_timeout = HEARTBEAT_TIMEOUT_MS
        socket.reconnect_ivl = RECONNECT_MS
        socket.reconnect_ivl_max = RECONNECT_MAX_MS
        return socket

    def bind(self, endpoint: str) -> str:
        """Listen; returns the endpoint with its port, which `*` leaves to the system.

        Raises:
            EndpointError: naming the endpoint and the remedy.

        """
        try:
            self.router.bind(endpoint)
        except zmq.ZMQError as error:
            raise EndpointError(error.errno, _bind_error_text(endpoint, self._domain, error)) from error
        bound: bytes = self.router.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]  # this option is bytes
        self._bound.append(bound.rstrip(b"\0").decode())
        return self._bound[-1]

    def rekey(self, curve: BrokerCurveKeys) -> None:
        """Answer and dial with another key pair from now on; accepted peers have to reconnect.

        libzmq keeps the key of a listener for good, and the connections that it has accepted end with it.

        Raises:
            EndpointError: another process took the endpoint in between.

        """
        self._curve = curve
        for endpoint in self._bound:
            self.router.unbind(endpoint)
        self.router.curve_secretkey = curve.secret
        endpoints, self._bound = self._bound, []
        for endpoint in endpoints:
            self.bind_when_free(endpoint)

    @property
    def public_key(self) -> str:
        return "" if self._curve is None else self._curve.public.decode()

    def bind_when_free(self, endpoint: str) -> str:
        """As `bind`, where another listener has just ended: libzmq closes them on another thread, a moment later."""
        until = time.monotonic() + REBIND_SECONDS
        while True:
            try:
                return self.bind(endpoint)
            except EndpointError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                    raise
                time.sleep(0.002)

    # -- connections that this side makes ------------------------------------------------------------------------------

    def dial(
        self, peer: str, endpoint: str, public_key: str, before: Callable[[zmq.Socket[bytes]], None]
    ) -> zmq.Socket[bytes]:
        """Connect under this name, after `before(socket)`; an earlier connection of the name is closed."""
        self.hang_up(peer)
        socket = self._socket(zmq.DEALER)
        # libzmq must queue nothing for a missing connection: frames wait here, where a HELLO can discard them.
        socket.immediate = True
        if self._curve is not None:
            socket.curve_serverkey = public_key.encode("ascii")
            socket.curve_secretkey, socket.curve_publickey = self._curve.secret, self._curve.public
        before(socket)
        self._connector.connect(socket, endpoint)
        self.dealers[peer] = socket
        return socket

    def hang_up(self, peer: str) -> zmq.Socket[bytes] | None:
        """Close the connection of this name; frames under way linger for a moment."""
        self.backlog.pop(peer, None)
        socket = self.dealers.pop(peer, None)
        if socket is not None:
            self._connector.forget(socket)
            socket.close()
        return socket

    # -- receiving -----------------------------------------------------------------------------------------------------

    def drain(self, frames: int, size: int) -> dict[Peer, list[bytes]]:
        """Frames from the bound socket, by peer and in order: at most `frames`, and about `size` bytes."""
        receive, users, denied = self.router.recv, self.users, self.denied
        found: dict[Peer, list[bytes]] = {}
        secured = self._curve is not None
        try:
            while frames > 0 and size > 0:
                frames -= 1
                peer = receive(_NOBLOCK)
                part = receive(0, False)
                if part.more:
                    self._discard_message(peer)
                    continue
                data = part.bytes
                # A HELLO begins on a new connection, which may have the routing id of an earlier one, and another key.
                if secured and (peer not in users or data[2:3] == _HELLO_KIND or self._is_control):
                    self._remember_user(peer, part)
                if denied and peer in denied:
                    self.counters["frames_of_revoked_keys"] += 1
                    continue
                size -= len(data)
                if peer in found:
                    found[peer].append(data)
                else:
                    found[peer] = [data]
            self.has_more = True
        except zmq.Again:
            pass  # all that has come is read
        return found

    def drain_dealer(self, peer: str, frames: int, size: int) -> list[bytes]:
        """The same for one dialled connection."""
        receive = self.dealers[peer].recv
        found: list[bytes] = []
        try:
            while frames > 0 and size > 0:
                frames -= 1
                part = receive(_NOBLOCK, False)
                if part.more:
                    self._discard_message(peer)
                    continue
                found.append(part.bytes)
                size -= len(found[-1])
            self.has_more = True
        except zmq.Again:
            pass  # all that has come is read
        return found

    def _discard_message(self, peer: Peer) -> None:
        """Drop the rest of a multipart message."""
        receive = (self.router if isinstance(peer, bytes) else self.dealers[peer]).recv
        self.counters["messages_of_many_parts"] += 1
        while receive(0, False).more:
            pass

    def _remember_user(self, peer: bytes, part: zmq.Frame) -> None:
        key = str(part.get("User-Id"))
        if peer not in self.users and len(self.users) >= KNOWN_USERS:
            oldest = next(iter(self.users))
            del self.users[oldest]
            self.denied.discard(oldest)
        self.users[peer] = key
        if self._allowed is not None and key not in self._allowed:
            self.denied.add(peer)
        else:
            self.denied.discard(peer)

    def unauthorized_connections(self, keys: Iterable[str]) -> set[bytes]:
        """Connections with a key that is not one of these, and not ignored yet."""
        allowed = frozenset(keys)
        return {peer for peer, key in self.users.items() if key not in allowed} - self.denied

    def restrict_to(self, keys: Iterable[str]) -> None:
        """Ignore connections with any other key than these from now on."""
        self._allowed = frozenset(keys)
        self.denied = {peer for peer, key in self.users.items() if key not in self._allowed}

    # -- sending -------------------------------------------------------------------------------------------------------

    def send(self, frames: Iterable[tuple[Peer, bytes]]) -> list[Peer]:
        """Send or queue frames, in order per peer; returns the peers that are no longer connected."""
        router, waiting, send, denied = self.router, self.backlog, _send, self.denied
        unreachable: list[Peer] = []
        for peer, data in frames:
            if waiting and peer in waiting:
                self._enqueue(peer, data)
                continue
            if denied and peer in denied:
                continue
            try:
                if type(peer) is bytes:
                    send(router, peer, _FIRST_PART)
                    send(router, data, _NOBLOCK)
                else:
                    send(self.dealers[peer], data, _NOBLOCK)  # type: ignore[index]  # it is a name: routing ids are above
            except zmq.Again:
                self._enqueue(peer, data)
            except zmq.ZMQError as error:
                if error.errno != errno.EHOSTUNREACH:
                    raise
                unreachable.append(peer)
            except KeyError:
                self.counters["frames_for_unknown_peers"] += 1
        for peer in unreachable:
            self._drop_peer(peer)
        return unreachable

    def _enqueue(self, peer: Peer, data: bytes) -> None:
        line = self.backlog.setdefault(peer, deque())
        if data[2:3] == _HELLO_KIND:
            line.clear()
        elif len(line) >= 4 * self._limits.window_frames:
            # The link's window is much smaller: a peer that gets here ignores it, and has to start over.
            self.counters["lines_cut"] += 1
            line.clear()
        line.append(data)
        self.counters["frames_delayed"] += 1

    def retry(self) -> list[Peer]:
        """Retry the waiting frames; returns the peers that are no longer connected.

        A peer that still has no room costs one attempt, however much waits for it: it may never read.
        """
        lines, self.backlog = self.backlog, {}
        delayed = self.counters["frames_delayed"]
        unreachable: list[Peer] = []
        for peer, line in lines.items():
            while line and peer not in self.backlog:
                unreachable += self.send([(peer, line.popleft())])
                if peer in unreachable[-1:]:
                    line.clear()
            if line:
                line.appendleft(self.backlog[peer].pop())
                self.backlog[peer] = line
        self.counters["frames_delayed"] = delayed
        return unreachable

    def _drop_peer(self, peer: Peer) -> None:
        self.counters["peers_unreachable"] += 1
        self.backlog.pop(peer, None)
        if isinstance(peer, bytes):
            self.users.pop(peer, None)
            self.denied.discard(peer)

    def close(self) -> None:
        for peer in list(self.dealers):
            self.hang_up(peer)
        self.router.close()


def _bind_error_text(endpoint: str, domain: str, error: zmq.ZMQError) -> str:
    purpose = domain.rpartition(".")[2]
    if error.errno == errno.EADDRINUSE:
        return (
            f"endpoint in use: {endpoint} ({purpose}); stop what listens there, or give this broker another "
            f"{purpose} endpoint"
        )
    return (
        f"cannot listen on {endpoint} ({purpose}): {error.strerror}; give an address of this machine, tcp://HOST:PORT"
    )
