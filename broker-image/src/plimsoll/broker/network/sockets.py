"""The sockets of a broker: both lanes, the wait for any of them, and connections that have to be made again.

Rules of the place:
- libzmq reconnects when a connection is lost, but never when it was refused. The peer may get this broker's key later,
  so refused connections are dialled again here.
- Unless the configuration says `plain`, each socket is CURVE, and a missing or failed ZAP handler refuses every peer:
  with an empty or unenforced domain libzmq asks no handler and admits all (libzmq curve_server.cpp).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import zmq
from zmq.utils.monitor import parse_monitor_message

from plimsoll.broker.network.fine_timer import FineTimer
from plimsoll.broker.network.socket_lane import BrokerCurveKeys, Peer, SocketLane
from plimsoll.core.config import BrokerLimits
from plimsoll.core.printable import is_told_again
from plimsoll.core.transport.overlay_node import Dial, Hangup
from plimsoll.network import Connector
from plimsoll.network.auth.authorized_keys import CONTROL_DOMAIN, DATA_DOMAIN, AuthorizedKeys

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.005
REDIAL_SECONDS: Final = 1.0
ALTERNATE_KEY_SECONDS: Final = 0.1
"""A peer that may have another key is dialled with that one this long after the first key has failed."""
UNCONNECTED_SECONDS: Final = 10.0
"""A connection that could not be made for this long is dialled again on a new socket: libzmq gives some up for good, as
when another process has answered at the address for a moment."""

LIMIT_SECONDS: Final = 30.0
"""For so long after a connection could not be accepted load reports say that this broker is at a limit."""

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
"""A peer with another key than the one it was dialled with hangs up without a reply."""
_DIALLED: Final = int(_REFUSALS | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)


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
        self._connector = Connector()
        self._poller.register(self._connector.fd, zmq.POLLIN)
        self.control = SocketLane(self.context, CONTROL_DOMAIN, limits, curve, self._connector)
        self.data = SocketLane(self.context, DATA_DOMAIN, limits, curve, self._connector)
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
        self._at_limit_until = float("-inf")

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

    def is_at_limit(self, now: float) -> bool:
        """Whether a connection could not be accepted of late, which is for want of descriptors or memory."""
        return now < self._at_limit_until

    # -- waiting -------------------------------------------------------------------------------------------------------

    def watch(self, fd: int) -> None:
        """Let `wait` end when this file descriptor is readable."""
        self._poller.register(fd, zmq.POLLIN)

    def wait(self, seconds: float) -> None:
        """Wait until something can be read, a stalled connection takes frames again, or `seconds` are over."""
        self._watch_writable()
        if self.control.backlog or self.data.backlog:
            seconds = min(seconds, RETRY_SECONDS)
        seconds = max(seconds, 0.0)  # what is due may be so since ever, `-inf`, which is no integer
        milliseconds = int(seconds * 1000)
        if 0 < seconds < 0.002:
            milliseconds += 1
            if self._timer is not None:
                self._timer.arm(seconds)
        self._ready = dict(self._poller.poll(milliseconds))
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
                before = lane.counters["connections_accept_failed"]
                _count_events(monitor, lane)
                if lane.counters["connections_accept_failed"] > before:
                    self._at_limit_until = time.monotonic() + LIMIT_SECONDS
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
        """Redial peers that refused this broker, after a pause; try each of their keys in turn.

        Also connects to named peers whose addresses are known by now.
        """
        self._connector.tick()
        for monitor in [monitor for monitor, at in self._redial_at.items() if at <= now]:
            dial = self._dialled[monitor]
            if dial not in self._warned:
                self._warned.add(dial)
                log.warning(
                    "%s at %s refuses this broker's key, or has another key than configured; trying again",
                    dial.peer,
                    dial.endpoint,
                )
            self._connect(self._with_next_key(dial))
        for monitor in [
            monitor for monitor, since in self._unconnected_since.items() if since + UNCONNECTED_SECONDS <= now
        ]:
            self._connect(self._dialled[monitor])

    def _with_next_key(self, dial: Dial) -> Dial:
        """The same with the next one of the keys that the peer may answer with."""
        keys = self._keys_of(dial)
        following = keys[(keys.index(dial.public_key) + 1) % len(keys)]
        return Dial(dial.peer, dial.endpoint, following, control=dial.control)

    def _keys_of(self, dial: Dial) -> list[str]:
        """The keys that a peer may answer with: the one that it was dialled with, and its authorised ones."""
        known = self._authority.keys_of(dial.peer) if self._authority is not None else []
        return known if dial.public_key in known else [dial.public_key, *known]

    def rekey(self, curve: BrokerCurveKeys) -> None:
        """Use another key pair from now on, both as a listener and as a dialler."""
        for lane in (self.control, self.data):
            lane.rekey(curve)
        for dial in list(self._dialled.values()):
            self._connect(dial)

    def _answer_zap(self, zap: zmq.Socket[bytes]) -> None:
        assert self._authority is not None  # noqa: S101  # there is no such socket without an authority
        try:
            while True:
                zap.send_multipart(self._authority.answer_zap(zap.recv_multipart(zmq.NOBLOCK)))
        except zmq.Again:
            pass  # all requests are answered
        except zmq.ZMQError as error:
            # No peer is admitted any more; existing connections go on.
            self.zap_fault = f"the ZAP handler has failed: {error}"
            self._poller.unregister(zap)
            zap.close()
            self._zap = None
            log.critical("%s; no new connection is accepted", self.zap_fault)

    # -- connections ---------------------------------------------------------------------------------------------------

    def apply(self, dials: Iterable[Dial | Hangup]) -> None:
        """Make and close connections as the machine asks.

        A peer that is dialled again at the same address may be another process by now, which has the next key.
        """
        for each in dials:
            lane = self.control if each.control else self.data
            before = lane.dealers.get(each.peer)
            if isinstance(each, Dial):
                last = None if before is None else self._dial_of(before)
                if last is not None and last.endpoint == each.endpoint:
                    self._connect(self._with_next_key(last))
                else:
                    self._connect(each)
                continue
            if before is not None:
                self._unwatch(before)
            lane.hang_up(each.peer)

    def _dial_of(self, socket: zmq.Socket[bytes]) -> Dial | None:
        """How this connection was dialled; None on plain links."""
        monitor = self._monitor_of.get(socket)
        return None if monitor is None else self._dialled[monitor]

    def _connect(self, dial: Dial) -> None:
        """Make a connection, in place of an earlier one to the same peer."""
        lane = self.control if dial.control else self.data
        if dial.peer in lane.dealers:
            self._unwatch(lane.dealers[dial.peer])
        socket = lane.dial(dial.peer, dial.endpoint, dial.public_key, partial(self._monitor_dial, dial))
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
        """Close everything; frames under way linger for a moment."""
        for monitor, lane in self._monitors.items():
            lane.router.disable_monitor()
            monitor.close()
        for socket, monitor in self._monitor_of.items():
            socket.disable_monitor()
            monitor.close(0)
        self.control.close()
        self.data.close()
        self._connector.close()
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
            if name == "accept_failed" and is_told_again(times := lane.counters["connections_accept_failed"]):
                log.error(
                    "cannot accept a connection (%d times so far): %s; raise the limit of open files"
                    " (ulimit -n, LimitNOFILE)",
                    times, zmq.strerror(event["value"]),
                )  # fmt: skip
    except zmq.Again:
        pass  # all events are counted
