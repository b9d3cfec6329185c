"""What a node says on its links as time passes: heartbeats, probes of round trips, HELLO again; silent links end."""

from __future__ import annotations

from plimsoll.core.protocol import wire
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.handshakes import Handshakes
from plimsoll.core.transport.hooks import NodeHooks
from plimsoll.core.transport.link import NEVER, Link
from plimsoll.core.transport.round_trips import PROBES_PER_HEARTBEAT


class Heartbeats:
    """The heartbeats of one node. `next_beat_at` and `next_probe_at`: when `beat` and `probe` are due."""

    def __init__(self, hooks: NodeHooks, handshakes: Handshakes, every_seconds: float) -> None:
        self._hooks, self._handshakes, self._every_seconds = hooks, handshakes, every_seconds
        self.next_beat_at = 0.0
        self.next_probe_at = NEVER

    def next_at(self) -> float:
        """When something is due next."""
        return min(self.next_beat_at, self.next_probe_at, self._handshakes.silent.next_at)

    def beat(self) -> None:
        """Send heartbeats, repeat unanswered HELLOs, resynchronise stalled links and end silent ones."""
        handshakes, now = self._handshakes, self._hooks.now
        self.next_beat_at = now + self._every_seconds
        time_us = int(now * 1e6)
        for link in handshakes.all_links():
            # A dialled link that was never open is not lost by silence: it goes on saying HELLO.
            if link.dead(now) and (link.was_open or not link.initiator):
                handshakes.on_dead(link)
            elif link.initiator and not link.open:
                handshakes.send(link, link_handshake.say_hello(link, now))
            elif link.open:
                self._ping(link, time_us)
                if link.stalled(now):
                    handshakes.resync(link)

    def measure_ways(self, *, closely: bool) -> None:
        """Whether links to brokers are pinged more often than by heartbeats, so that round trips are known closely."""
        if closely != (self.next_probe_at < NEVER):
            self.next_probe_at = self._hooks.now if closely else NEVER

    def probe(self) -> None:
        """Ping every open link to a broker."""
        now = self._hooks.now
        self.next_probe_at = now + self._every_seconds / PROBES_PER_HEARTBEAT
        time_us = int(now * 1e6)
        for link in self._handshakes.all_links():
            if link.open and link.remote is not None and link.remote.role != "client":
                self._ping(link, time_us)

    def silent_heads(self) -> list[str]:
        """Peers to be dialled again now, since another process may lead there; HELLO is on its way to each."""
        handshakes, now = self._handshakes, self._hooks.now
        found = handshakes.silent.due(handshakes.dialled.values(), now)
        for link in found:
            self._hooks.counters["heads_dialled_again"] += 1
            handshakes.send(link, link_handshake.say_hello(link, now))
        return [str(link.peer) for link in found]

    def _ping(self, link: Link, time_us: int) -> None:
        link.round_trip.pinged(time_us)
        self._handshakes.send(link, wire.ping_frame(link.id, time_us))
