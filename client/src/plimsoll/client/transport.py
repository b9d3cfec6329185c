"""The sockets of a client: one DEALER for each broker. No other module sends or receives.

One frame is one message part. A frame that cannot be sent yet waits, and later frames for the same broker queue behind
it; a HELLO discards that queue, since it starts the link over. libzmq must queue nothing for a missing connection: it
would keep the frames, and send them to any process that answers there later.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

import zmq
from zmq.backend import Socket as _RawSocket

from plimsoll.client.errors import ResourceLimitError
from plimsoll.client.security import Keyring
from plimsoll.client.system_limits import check_socket_room, make_context
from plimsoll.core.protocol import wire
from plimsoll.core.transport.overlay_node import Dial, Hangup
from plimsoll.network import Connector

log = logging.getLogger(__name__)

_NOBLOCK: Final = int(zmq.NOBLOCK)
# The C layer's method: the public one checks options that are not used here, which takes a third of the time of a send.
_send: Final = _RawSocket.send
_HELLO: Final = wire.HELLO

FRAMES_PER_ROUND: Final = 256
BACKLOG_FRAMES: Final = 8192
LINGER_MS: Final = 500
DIAL_RETRY_SECONDS: Final = 1.0
REDIAL_SECONDS: Final = 10.0
"""A broker without a connection for this long is dialled again: libzmq never retries a connection that was refused, and
a broker may read a key after its client has started."""
ALTERNATE_KEY_SECONDS: Final = 1.0
"""The same for a broker that may answer with another key by now, or if the own key has been replaced."""
SILENT_SECONDS: Final = 30.0
"""The same for a broker with a connection that answers nothing on it: it reads nothing from a key that was revoked."""
HANDSHAKE_MS: Final = 5_000
HEARTBEAT_MS: Final = 5_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000
CONNECT_MS: Final = 1_000
"""A connection that takes longer is tried again. Behind a virtual address an attempt keeps the destination that it
began with, and the head may have left that."""
RECONNECT_MS: Final = 50
RECONNECT_MAX_MS: Final = 2_000
HIGH_WATER_MARK: Final = 4_096
OVERSIZE_MARGIN_BYTES: Final = 64 * 1024


class DealerTransport:
    """Not thread-safe; one thread uses it at a time."""

    def __init__(self, keyring: Keyring, max_frame_bytes: int) -> None:
        self._keyring, self._max_frame_bytes = keyring, max_frame_bytes
        self._context = make_context()
        self._most_sockets = int(self._context.get(zmq.MAX_SOCKETS))
        self.dealers: dict[str, zmq.Socket[bytes]] = {}
        self.waiting: dict[str, deque[bytes]] = {}
        self.counters: Counter[str] = Counter()
        self.trouble = ""
        self._undialled: dict[str, Dial] = {}
        self._try_again_at = 0.0
        self._dialled: dict[str, Dial] = {}
        self._keys: dict[str, str] = {}  # by peer: the key that it was dialled with
        self._own_keys: dict[str, bytes] = {}  # by peer: the own public key at that time
        self._unconnected_since: dict[str, float] = {}
        self._connector = Connector()
        self._poller = zmq.Poller()
        self._poller.register(self._connector.fd, zmq.POLLIN)
        self._watched: dict[str, int] = {}
        self.on_socket: Callable[[int], None] = lambda fd: None
        self.on_close: Callable[[int], None] = lambda fd: None

    # -- connections

    def apply(self, dials: Iterable[Dial | Hangup]) -> list[str]:
        """Make connections now; returns the peers to hang up on once their last frames have been sent."""
        closing = []
        for each in dials:
            if isinstance(each, Dial):
                self._try(each)
            else:
                closing.append(each.peer)
        return closing

    def _try(self, dial: Dial) -> None:
        """Dial; if the system has no room, retry later, so that existing connections do not suffer."""
        try:
            self._dial(dial)
        except ResourceLimitError as error:
            if self.trouble != str(error):
                log.error("%s: %s; it is tried again", dial.endpoint, error)
            self.trouble = str(error)
            self.counters["dials_without_room"] += 1
            self._undialled[dial.peer] = dial
            self._try_again_at = time.monotonic() + DIAL_RETRY_SECONDS

    def _dial(self, dial: Dial) -> None:
        check_socket_room(len(self.dealers), self._most_sockets)
        try:
            socket = self._context.socket(zmq.DEALER)
        except zmq.ZMQError as error:
            raise ResourceLimitError(
                f"no socket for {dial.endpoint} beside {len(self.dealers)} others: {error}"
            ) from error
        self._close(dial.peer)
        socket.linger = LINGER_MS
        socket.immediate = True
        socket.sndhwm = socket.rcvhwm = HIGH_WATER_MARK
        socket.maxmsgsize = self._max_frame_bytes + OVERSIZE_MARGIN_BYTES
        socket.handshake_ivl, socket.connect_timeout = HANDSHAKE_MS, CONNECT_MS
        socket.heartbeat_ivl, socket.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        socket.reconnect_ivl, socket.reconnect_ivl_max = RECONNECT_MS, RECONNECT_MAX_MS
        self.dealers[dial.peer], self._dialled[dial.peer] = socket, dial
        self._poller.register(socket, zmq.POLLIN)
        self._watched[dial.peer] = zmq.POLLIN
        self.on_socket(int(socket.fileno()))
        own, server = self._keyring.own(), self._next_key(dial)
        self._keys[dial.peer], self._own_keys[dial.peer] = server, own.public if own is not None else b""
        if own is not None:
            if not server:
                # The edge is plain and this process is not: rather no connection than an unencrypted one.
                self.counters["peers_without_key"] += 1
                return
            socket.curve_serverkey = server.encode("ascii")
            socket.curve_publickey, socket.curve_secretkey = own.public, own.secret
        try:
            self._connector.connect(socket, dial.endpoint)
        except zmq.ZMQError as error:
            # A head may name an endpoint that cannot be used; its link never opens, and the head is asked for another.
            log.warning("cannot dial %s: %s", dial.endpoint, error)
            self.counters["endpoints_refused"] += 1

    def _next_key(self, dial: Dial) -> str:
        """The key to dial with: the next one of those that the head may answer with."""
        keys = self._keyring.servers(dial.endpoint, dial.public_key) or [dial.public_key]
        last = self._keys.get(dial.peer)
        return keys[(keys.index(last) + 1) % len(keys)] if last in keys else keys[0]

    def hang_up(self, peer: str) -> None:
        """Close a connection; frames under way linger for a moment."""
        self._keys.pop(peer, None)
        self._own_keys.pop(peer, None)
        self.waiting.pop(peer, None)
        self._undialled.pop(peer, None)
        self._unconnected_since.pop(peer, None)
        self._close(peer)

    def _close(self, peer: str) -> None:
        socket = self.dealers.pop(peer, None)
        if socket is not None:
            del self._dialled[peer]
            self._poller.unregister(socket)
            del self._watched[peer]
            self.on_close(int(socket.fileno()))
            self._connector.forget(socket)
            socket.close()

    def close(self) -> None:
        for peer in list(self.dealers):
            self.hang_up(peer)
        self._poller.unregister(self._connector.fd)
        self._connector.close()
        self._context.destroy(linger=LINGER_MS)

    # -- frames

    def drain(self) -> tuple[list[tuple[str, list[bytes]]], bool]:
        """Received frames, by peer and in order, and whether there may be more."""
        found: list[tuple[str, list[bytes]]] = []
        more = False
        for peer, socket in self.dealers.items():
            frames = self._drain(socket)
            if frames:
                found.append((peer, frames))
                more = more or len(frames) >= FRAMES_PER_ROUND
        return found, more

    def _drain(self, socket: zmq.Socket[bytes]) -> list[bytes]:
        receive = socket.recv
        frames: list[bytes] = []
        try:
            while len(frames) < FRAMES_PER_ROUND:
                part = receive(_NOBLOCK, False)
                if part.more:
                    self._throw_away(socket)
                else:
                    frames.append(part.bytes)
        except zmq.Again:
            pass  # all that has come is read
        return frames

    def _throw_away(self, socket: zmq.Socket[bytes]) -> None:
        """Drop the rest of a multipart message."""
        self.counters["messages_of_many_parts"] += 1
        while socket.recv(0, False).more:
            pass

    def send(self, frames: Iterable[tuple[object, bytes]]) -> None:
        """Send or queue frames, in order per peer."""
        waiting, dealers = self.waiting, self.dealers
        for peer, data in frames:
            socket = dealers.get(peer)  # type: ignore[call-overload]  # peers of this shell are names
            if socket is None:
                self.counters["frames_for_unknown_peers"] += 1
                continue
            if peer in waiting:
                self._wait(str(peer), data)
                continue
            try:
                _send(socket, data, _NOBLOCK)
            except zmq.Again:
                self._wait(str(peer), data)

    def _wait(self, peer: str, data: bytes) -> None:
        line = self.waiting.setdefault(peer, deque())
        if data[2] == _HELLO:
            line.clear()
        elif len(line) >= BACKLOG_FRAMES:
            # The link's window is much smaller; frames dropped here are sent again after the next HELLO.
            self.counters["lines_cut"] += 1
            line.clear()
        line.append(data)

    @property
    def lookup_fd(self) -> int:
        """Readable when a named host has an address: `retry` is due."""
        return self._connector.fd

    @property
    def faults(self) -> dict[str, str]:
        """Why named hosts have no address, by host."""
        return self._connector.faults

    def retry(self) -> None:
        """Make connections that can be made by now, and retry the waiting frames."""
        self._connector.tick()
        if self._undialled and time.monotonic() >= self._try_again_at:
            undialled, self._undialled, self.trouble = self._undialled, {}, ""
            for dial in undialled.values():
                self._try(dial)
        if self.waiting:
            lines, self.waiting = self.waiting, {}
            self.send([(peer, data) for peer, line in lines.items() for data in line])

    def unconnected(self) -> set[str]:
        """Peers that nothing can be sent to: without a connection, or with one whose other side takes nothing.

        libzmq detaches a broken connection from the socket at once (`immediate`) and reconnects underneath. A link's
        frames under way never fill the high-water mark.
        """
        return {peer for peer, socket in self.dealers.items() if not int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT}

    def redial(self, unconnected: set[str], now: float, silent: Iterable[str] = ()) -> None:
        """Dial peers again that have been unconnected for long, or `silent`: connected, and without an open link.

        Frames that wait for them go on waiting. Each dial reads the keys again.
        """
        away = unconnected | (set(silent) & self._dialled.keys())
        since = self._unconnected_since = {peer: self._unconnected_since.get(peer, now) for peer in away}
        for peer in [peer for peer, at in since.items() if peer in self._dialled]:
            if now - since[peer] > self._patience(peer, is_connected=peer not in unconnected):
                since[peer] = now
                dial = self._dialled[peer]
                self._close(peer)
                self._try(dial)
                self.counters["dials_again"] += 1

    def _patience(self, peer: str, *, is_connected: bool) -> float:
        """How long to wait before a peer is dialled again: not long if there may be another key."""
        own = self._keyring.own()
        if own is not None and own.public != self._own_keys.get(peer):
            return ALTERNATE_KEY_SECONDS
        if is_connected:
            return SILENT_SECONDS
        dial = self._dialled[peer]
        others = set(self._keyring.servers(dial.endpoint, dial.public_key)) - {self._keys.get(peer)}
        return ALTERNATE_KEY_SECONDS if others else REDIAL_SECONDS

    # -- waiting

    def is_ready(self) -> bool:
        """Whether something can be read, or a waiting frame can be sent.

        The file descriptor of a ZeroMQ socket is edge-triggered: check here before waiting for it.
        """
        for peer, socket in self.dealers.items():
            events = int(socket.getsockopt(zmq.EVENTS))
            if events & zmq.POLLIN or (events & zmq.POLLOUT and peer in self.waiting):
                return True
        return False

    def watch(self, fd: int) -> None:
        """Let `wait` end when this file descriptor is readable."""
        self._poller.register(fd, zmq.POLLIN)

    def wait(self, seconds: float) -> None:
        """Wait until something can be read, a stalled connection takes frames again, or `seconds` are over."""
        for peer, mask in self._watched.items():
            wanted = zmq.POLLIN | zmq.POLLOUT if peer in self.waiting else zmq.POLLIN
            if wanted != mask:
                self._poller.modify(self.dealers[peer], wanted)
                self._watched[peer] = wanted
        self._poller.poll(max(0, int(seconds * 1000 + 0.999)))
