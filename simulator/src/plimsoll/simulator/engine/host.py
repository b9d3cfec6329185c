"""A process: one machine of the core, its sockets, and the rounds in which a shell would serve it.

A round takes control frames first, then data frames grouped by peer, in order; then it polls the machine and sends
what the machine has to send, control frames first. Frames that arrive close together share a round, as they share a
poll in a real shell. A paused host (SIGSTOP) keeps its sockets but runs no rounds; a crashed host has neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from plimsoll.core.transport.link import NEVER
from plimsoll.core.transport.overlay_node import Dial, Hangup, OverlayNode
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import SimulatedNetwork

LEAST_WAIT_SECONDS = 0.0001
"""The shortest time between two rounds, since a poll takes time, too; so virtual time always advances."""

Peer = Hashable


class RoundCallback(Protocol):
    """Called in each round after the machine's poll, before frames are sent: an application reads its events then."""

    def __call__(self) -> None: ...


class BesideNode(Protocol):
    """A node beside the machine, which shares its data socket: what it sends waits for nothing."""

    def claims(self, peer: Peer, frames: list[bytes]) -> bool: ...
    def receive(self, peer: Peer, frames: list[bytes], now: float) -> None: ...
    def next_poll_at(self) -> float: ...
    def data_to_send(self) -> list[tuple[Peer, bytes]]: ...
    def gone(self, peer: Peer, now: float) -> None: ...


class HostOutput(NamedTuple):
    """What a machine has to say at the end of a round."""

    dials: list[Dial | Hangup]
    control: list[tuple[Peer, bytes]]
    data: list[tuple[Peer, bytes]]


EndRound = Callable[[Callable[[], None]], None]
"""Called with what sends the output of a round: now, or once what it depends on is safe."""


class SimulatedHost:
    """One process. `poll_seconds`: the time from the arrival of a frame to the round that serves it."""

    def __init__(
        self, name: str, schedule: EventQueue, network: SimulatedNetwork, poll_seconds: float = 0.0002
    ) -> None:
        self.name, self.schedule, self.network, self.poll_seconds = name, schedule, network, poll_seconds
        self.node: OverlayNode | None = None
        self.rounds = 0
        self.is_paused = False
        self.paused_at = self.resumed_at = float("-inf")
        self.after_poll: RoundCallback | None = None
        self.end_round: EndRound | None = None
        self.beside: BesideNode | None = None
        self._data: deque[tuple[Peer, bytes]] = deque()
        self._control: deque[tuple[Peer, bytes]] = deque()
        self._due = self._armed = self._later = NEVER

    # -- life

    def start(self, make: Callable[[], OverlayNode], *endpoints: str) -> OverlayNode:
        """Start the process with a new machine, listening at these endpoints."""
        self.node = make()
        self.is_paused = False
        self.network.listen(self, *endpoints)
        self.wake()
        return self.node

    def crash(self, *, with_node: bool = False) -> None:
        """SIGKILL. `with_node`: the machine is lost as well, so connections stay and are silent."""
        self.node = None
        self.after_poll = self.end_round = self.beside = None
        self._data.clear()
        self._control.clear()
        self._due = NEVER
        if with_node:
            self.network.lose(self)
        else:
            self.network.close_all(self)

    def pause(self) -> None:
        """SIGSTOP."""
        self.is_paused, self.paused_at = True, self.schedule.now
        self._due = NEVER

    def resume(self) -> None:
        """SIGCONT."""
        self.is_paused, self.resumed_at = False, self.schedule.now
        self.wake()

    # -- rounds

    def on_frame(self, peer: Peer, frame: bytes, control: bool) -> None:
        if self.node is None:
            return
        (self._control if control else self._data).append((peer, frame))
        self.wake(self.poll_seconds)

    def wake(self, seconds: float = 0.0) -> None:
        """Run a round in `seconds`, or earlier if one is due."""
        at = self.schedule.now + seconds
        if at < self._due and self.node is not None and not self.is_paused:
            self._due = at
            self._arm()

    def _arm(self) -> None:
        """Schedule a timer for the next round, unless one that is no later is pending: it re-arms when it fires."""
        if self._due < self._armed:
            self._later, self._armed = self._armed, self._due
            self.schedule.at(self._due, self._on_timer)

    def _on_timer(self) -> None:
        now = self.schedule.now
        if now != self._armed:
            return  # an earlier timer has replaced this one
        self._armed, self._later = self._later, NEVER
        if self._due > now:
            self._arm()
        else:
            self._due = NEVER
            self._round()

    def _round(self) -> None:
        node, now = self.node, self.schedule.now
        if node is None:
            return
        self.rounds += 1
        while self._control:
            peer, frame = self._control.popleft()
            node.receive_control(peer, frame, now)
        if self._data:
            self._receive(node, now)
        node.poll(now)
        if self.after_poll is not None:
            self.after_poll()
        output = HostOutput(node.dials_to_make(), node.control_to_send(), node.data_to_send())
        if self.end_round is None:
            self._send(node, output)
        else:
            self.end_round(lambda: self._send(node, output))
        wanted_at = node.next_poll_at()
        if (beside := self.beside) is not None:
            for peer, frame in beside.data_to_send():
                if not self.network.send(self, peer, frame, False):
                    beside.gone(peer, now)
            wanted_at = min(wanted_at, beside.next_poll_at())
        self.wake(max(wanted_at - now, LEAST_WAIT_SECONDS))

    def _receive(self, node: OverlayNode, now: float) -> None:
        grouped: dict[Peer, list[bytes]] = {}
        for peer, frame in self._data:
            grouped.setdefault(peer, []).append(frame)
        self._data.clear()
        for peer, frames in grouped.items():
            if self.beside is not None and self.beside.claims(peer, frames):
                self.beside.receive(peer, frames, now)
            else:
                node.receive(peer, frames, now)

    def _send(self, node: OverlayNode, output: HostOutput) -> None:
        """Dial and hang up first, then send control frames, then data frames."""
        data = output.data
        for what in output.dials:
            if isinstance(what, Dial):
                self.network.dial(self, what.peer, what.endpoint, what.control)
            else:
                if not what.control:
                    data = self._flush_before_hangup(what.peer, data)
                self.network.hang_up(self, what.peer, what.control)
        for peer, frame in output.control:
            self.network.send(self, peer, frame, True)
        for peer, frame in data:
            if not self.network.send(self, peer, frame, False):
                node.gone(peer, self.schedule.now)

    def _flush_before_hangup(self, peer: Peer, data: list[tuple[Peer, bytes]]) -> list[tuple[Peer, bytes]]:
        """Send what is queued for a peer before its connection is closed; returns the frames for other peers."""
        for to, frame in data:
            if to == peer:
                self.network.send(self, to, frame, False)
        return [each for each in data if each[0] != peer]
