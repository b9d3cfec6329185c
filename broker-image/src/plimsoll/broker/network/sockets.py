"""The sockets of a broker: the only place that knows ZeroMQ.

A *lane* is a bound ROUTER with the DEALERs that this broker has dialled for the same purpose; there are two, data and
control. Rules of the place:
- One frame is one message part. Multipart messages are dropped and counted.
- A frame that cannot be sent yet waits, and later frames for the same peer queue behind it. Only a HELLO discards that
  queue, since it starts the link over.
- The links' windows bound the bytes inside ZeroMQ; the high-water marks are set so high that the windows apply first.
- libzmq reconnects when a connection is lost, but never when it was refused. The peer may get this broker's key later,
  so refused connections are dialled again here.
- Unless the configuration says `plain`, each socket is CURVE, and a missing or failed ZAP handler refuses every peer:
  with an empty or unenforced domain libzmq asks no handler and admits all (libzmq curve_server.cpp).
"""

from __future__ import annotations

import errno
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import zmq
from zmq.backend import Socket as _RawSocket
from zmq.utils.monitor import parse_monitor_message

from plimsoll.broker.auth.authorized_keys import CONTROL_DOMAIN, DATA_DOMAIN, AuthorizedKeys
from plimsoll.broker.network.fine_timer import FineTimer
from plimsoll.core.config import BrokerLimits
from plimsoll.core.protocol import wire
from plimsoll.core.transport.overlay_node import Dial, Hangup

Peer = str | bytes

log = logging.getLogger(__name__)

_NOBLOCK: Final = int(zmq.NOBLOCK)
_FIRST_PART: Final = int(zmq.SNDMORE | zmq.NOBLOCK)
# The C layer's method: the public one checks options that are not used here, which takes a third of the time of a send.
_send: Final = _RawSocket.send

OVERSIZE_MARGIN_BYTES: Final = 64 * 1024
"""A frame above the limit is refused with an answer; above limit and margin libzmq drops the connection."""

KNOWN_USERS: Final = 65_536
"""So many connections are remembered with their names; an older one is asked for again when it speaks."""

RECEIVE_FRAMES_PER_PEER: Final = 256
RETRY_SECONDS: Final = 0.005
LINGER_MS: Final = 500
HANDSHAKE_MS: Final = 5_000
HEARTBEAT_MS: Final = 5_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000
RECONNECT_MS: Final = 100
RECONNECT_MAX_MS: Final = 2_000
REDIAL_SECONDS: Final = 1.0
ALTERNATE_KEY_SECONDS: Final = 0.1
"""A peer that may answer under another key, too, is dialled under that one so soon after it did not under the first."""
UNCONNECTED_SECONDS: Final = 10.0
"""A connection that has not been made for so long is made anew: libzmq gives some up for good, as where somebody else
has answered at the address for a moment."""
REBIND_SECONDS: Final = 2.0
BACKLOG: Final = 4_096

_HELLO_KIND: Final = bytes([wire.HELLO])
_EVENTS: Final = {
    zmq.EVENT_ACCEPTED: "accepted",
    zmq.EVENT_ACCEPT_FAILED: "accept_failed",
    zmq.EVENT_DISCONNECTED: "disconnected",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "handshake_failed",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "handshake_failed",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "handshake_refused",
}
_EVENT_MASK: Final = sum(int(event) for event in _EVENTS)
_REFUSALS: Final = int(
    zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
"""Who has another key than the one that it is dialled under hangs up without a word."""
_DIALLED: Final = int(_REFUSALS | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)


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
        self, context: zmq.Context[zmq.Socket[bytes]], domain: str, limits: BrokerLimits, curve: BrokerCurveKeys | None
    ) -> None:
        self._context, self._domain, self._limits, self._curve = context, domain, limits, curve
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
        socket.rcvhwm = min(RECEIVE_FRAMES_PER_PEER, 2 * limits.window_frames)
        socket.maxmsgsize = limits.max_frame_bytes + OVERSIZE_MARGIN_BYTES
        socket.handshake_ivl = HANDSHAKE_MS
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
        bound: bytes = self.router.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]
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
            self._bind_again(endpoint)

    @property
    def public_key(self) -> str:
        return "" if self._curve is None else self._curve.public.decode()

    def _bind_again(self, endpoint: str) -> None:
        """libzmq closes a listener on another thread, so its endpoint stays in use for a moment."""
        until = time.monotonic() + REBIND_SECONDS
        while True:
            try:
                self.bind(endpoint)
                return
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
        socket.connect(endpoint)
        self.dealers[peer] = socket
        return socket

    def hang_up(self, peer: str) -> zmq.Socket[bytes] | None:
        """Close the connection of this name; frames under way linger for a moment."""
        self.backlog.pop(peer, None)
        socket = self.dealers.pop(peer, None)
        if socket is not None:
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
            pass
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
            pass
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
                    send(self.dealers[peer], data, _NOBLOCK)  # type: ignore[index]
            except zmq.Again:
                self._enqueue(peer, data)
            except zmq.ZMQError as error:
                if error.errno != errno.EHOSTUNREACH:
                    raise
                unreachable.append(peer)
            except KeyError:
                self.counters["frames_for_nobody"] += 1
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
        """Retry the waiting frames; returns the peers that are no longer connected."""
        lines, self.backlog = self.backlog, {}
        delayed = self.counters["frames_delayed"]
        unreachable = self.send([(peer, data) for peer, line in lines.items() for data in line])
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


class BrokerSockets:
    """All sockets of one broker and the wait for any of them."""

    def __init__(
        self, limits: BrokerLimits, curve: BrokerCurveKeys | None = None, authority: AuthorizedKeys | None = None
    ) -> None:
        if (curve is None) != (authority is None):
            raise ValueError("a key pair and an authority belong together: both, or neither for plain TCP")
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, self.context.get(zmq.SOCKET_LIMIT))
        self._poller = zmq.Poller()
        self._authority = authority
        self._zap: zmq.Socket[bytes] | None = None
        self.zap_fault = ""
        if authority is not None:
            # Before anything is bound: without a ZAP handler libzmq refuses peers.
            self._zap = self.context.socket(zmq.REP)
            self._zap.linger = 0
            self._zap.bind("inproc://zeromq.zap.01")
            self._poller.register(self._zap, zmq.POLLIN)
        self.control = SocketLane(self.context, CONTROL_DOMAIN, limits, curve)
        self.data = SocketLane(self.context, DATA_DOMAIN, limits, curve)
        self._monitors = {self._monitor(lane): lane for lane in (self.control, self.data)}
        for socket in (*self._monitors, self.control.router, self.data.router):
            self._poller.register(socket, zmq.POLLIN)
        self._writable: set[zmq.Socket[bytes]] = set()
        self._timer = FineTimer.open()
        if self._timer is not None:
            self._poller.register(self._timer.fd, zmq.POLLIN)
        self._ready: dict[object, int] = {}
        self._dialled: dict[zmq.Socket[bytes], Dial] = {}  # by monitor
        self._monitor_of: dict[zmq.Socket[bytes], zmq.Socket[bytes]] = {}
        self._redial_at: dict[zmq.Socket[bytes], float] = {}  # by monitor: when to dial again
        self._unconnected_since: dict[zmq.Socket[bytes], float] = {}  # by monitor: disconnected since
        self._warned: set[Dial] = set()

    def _monitor(self, lane: SocketLane) -> zmq.Socket[bytes]:
        monitor = lane.router.get_monitor_socket(_EVENT_MASK)
        monitor.linger = 0
        return monitor

    @property
    def public_key(self) -> str:
        """This broker's public key; empty on plain links."""
        return self.data.public_key

    @property
    def ready(self) -> bool:
        """Whether peers with an authorised key are admitted now."""
        return not self.zap_fault

    # -- waiting -------------------------------------------------------------------------------------------------------

    def watch(self, fd: int) -> None:
        """Let `wait` end when this file descriptor is readable."""
        self._poller.register(fd, zmq.POLLIN)

    def wait(self, seconds: float) -> None:
        """Wait until something can be read, a stalled connection takes frames again, or `seconds` are over."""
        self._watch_writable()
        if self.control.backlog or self.data.backlog:
            seconds = min(seconds, RETRY_SECONDS)
        milliseconds = int(seconds * 1000)
        if 0 < seconds < 0.002:
            milliseconds += 1
            if self._timer is not None:
                self._timer.arm(seconds)
        self._ready = dict(self._poller.poll(max(0, milliseconds)))
        if self._timer is not None and self._timer.fd in self._ready:
            self._timer.clear()

    def _watch_writable(self) -> None:
        """Also watch dialled connections with waiting frames for room."""
        if not (self.control.backlog or self.data.backlog or self._writable):
            return
        stalled = {
            lane.dealers[peer]
            for lane in (self.control, self.data)
            for peer in lane.backlog
            if isinstance(peer, str) and peer in lane.dealers
        }
        for socket in stalled - self._writable:
            self._poller.modify(socket, zmq.POLLIN | zmq.POLLOUT)
        for socket in self._writable - stalled:
            if not socket.closed:
                self._poller.modify(socket, zmq.POLLIN)
        self._writable = stalled

    def is_readable(self, fd: int) -> bool:
        return fd in self._ready

    # -- receiving -----------------------------------------------------------------------------------------------------

    def receive(self, lane: SocketLane, frames: int, size: int) -> Iterator[tuple[Peer, list[bytes]]]:
        """Frames that the last `wait` found on this lane, by peer: at most `frames`, about `size` bytes per socket."""
        lane.has_more = False
        if lane.router in self._ready:
            yield from lane.drain(frames, size).items()
        if lane.dealers:
            for peer, socket in list(lane.dealers.items()):
                if self._ready.get(socket, 0) & zmq.POLLIN:
                    yield peer, lane.drain_dealer(peer, frames, size)

    def serve_events(self) -> None:
        """Answer ZAP requests and count connection events."""
        if self._zap is not None and self._zap in self._ready:
            self._answer_zap(self._zap)
        for monitor, lane in self._monitors.items():
            if monitor in self._ready:
                _count_events(monitor, lane)
        for monitor in self._dialled:
            if monitor in self._ready:
                self._note_connection(
                    monitor, parse_monitor_message(monitor.recv_multipart())["event"], time.monotonic()
                )

    def _note_connection(self, monitor: zmq.Socket[bytes], event: int, now: float) -> None:
        """Handle the events of a dialled connection."""
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._unconnected_since.pop(monitor, None)
        elif event == zmq.EVENT_DISCONNECTED:
            self._unconnected_since.setdefault(monitor, now)
        else:
            others = len(self._keys_of(self._dialled[monitor])) > 1
            self._redial_at.setdefault(monitor, now + (ALTERNATE_KEY_SECONDS if others else REDIAL_SECONDS))

    def redial(self, now: float) -> None:
        """Redial peers that refused this broker, after a pause; try each of their keys in turn."""
        for monitor in [monitor for monitor, at in self._redial_at.items() if at <= now]:
            dial = self._dialled[monitor]
            if dial not in self._warned:
                self._warned.add(dial)
                log.warning(
                    "%s at %s refuses this broker's key, or has another key than configured; trying again",
                    dial.peer,
                    dial.endpoint,
                )
            keys = self._keys_of(dial)
            following = keys[(keys.index(dial.public_key) + 1) % len(keys)]
            self.apply([Dial(dial.peer, dial.endpoint, following, control=dial.control)])
        for monitor in [
            monitor for monitor, since in self._unconnected_since.items() if since + UNCONNECTED_SECONDS <= now
        ]:
            self.apply([self._dialled[monitor]])

    def _keys_of(self, dial: Dial) -> list[str]:
        """The keys that a peer may answer with: the one that it was dialled with, and its authorised ones."""
        known = self._authority.keys_of(dial.peer) if self._authority is not None else []
        return known if dial.public_key in known else [dial.public_key, *known]

    def rekey(self, curve: BrokerCurveKeys) -> None:
        """Use another key pair from now on, both as a listener and as a dialler."""
        for lane in (self.control, self.data):
            lane.rekey(curve)
        self.apply(list(self._dialled.values()))

    def _answer_zap(self, zap: zmq.Socket[bytes]) -> None:
        assert self._authority is not None  # noqa: S101  # there is no such socket without an authority
        try:
            while True:
                zap.send_multipart(self._authority.answer_zap(zap.recv_multipart(zmq.NOBLOCK)))
        except zmq.Again:
            pass
        except zmq.ZMQError as error:
            # No peer is admitted any more; existing connections go on.
            self.zap_fault = f"the ZAP handler has failed: {error}"
            self._poller.unregister(zap)
            zap.close()
            self._zap = None
            log.critical("%s; no new connection is accepted", self.zap_fault)

    # -- connections ---------------------------------------------------------------------------------------------------

    def apply(self, dials: Iterable[Dial | Hangup]) -> None:
        """Make and close connections as the machine asks."""
        for each in dials:
            lane = self.control if each.control else self.data
            if each.peer in lane.dealers:
                self._unwatch(lane.dealers[each.peer])
            if isinstance(each, Hangup):
                lane.hang_up(each.peer)
                continue
            socket = lane.dial(each.peer, each.endpoint, each.public_key, partial(self._monitor_dial, each))
            self._poller.register(socket, zmq.POLLIN)

    def _monitor_dial(self, dial: Dial, socket: zmq.Socket[bytes]) -> None:
        """Attach a monitor before the socket connects: earlier events would be missed."""
        if self._authority is not None:
            monitor = self._monitor_of[socket] = socket.get_monitor_socket(_DIALLED)
            self._dialled[monitor], self._unconnected_since[monitor] = dial, time.monotonic()
            self._poller.register(monitor, zmq.POLLIN)

    def _unwatch(self, socket: zmq.Socket[bytes]) -> None:
        self._poller.unregister(socket)
        self._ready.pop(socket, None)
        self._writable.discard(socket)
        if (monitor := self._monitor_of.pop(socket, None)) is not None:
            self._poller.unregister(monitor)
            for known in (self._ready, self._dialled, self._redial_at, self._unconnected_since):
                known.pop(monitor, None)
            socket.disable_monitor()
            monitor.close(0)

    def close(self) -> None:
        """Close everything; frames under way linger for `LINGER_MS`."""
        for monitor, lane in self._monitors.items():
            lane.router.disable_monitor()
            monitor.close()
        for socket, monitor in self._monitor_of.items():
            socket.disable_monitor()
            monitor.close(0)
        self.control.close()
        self.data.close()
        if self._zap is not None:
            self._zap.close()
        if self._timer is not None:
            self._timer.close()
        self.context.term()


def _count_events(monitor: zmq.Socket[bytes], lane: SocketLane) -> None:
    try:
        while True:
            event = parse_monitor_message(monitor.recv_multipart(zmq.NOBLOCK))
            name = _EVENTS.get(zmq.Event(event["event"]))
            if name is not None:
                lane.counters[f"connections_{name}"] += 1
            if name == "accept_failed":
                log.error(
                    "cannot accept a connection: %s; raise the limit of open files (ulimit -n, LimitNOFILE)",
                    zmq.strerror(event["value"]),
                )
    except zmq.Again:
        pass


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
