"""The loop: bytes and time into the machine, its effects onto the sockets.

One thread, no callbacks. A round is: wait; control sockets, all of it; data sockets, up to a budget, so that the next
look at the control sockets is never far; let time pass; send, control first. All that a round brings for one link
leaves as one frame, so a round that has taken all there was is followed by a rest: what comes meanwhile shares frames.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from plimsoll.broker.collector import Collector
from plimsoll.broker.gate import Gate
from plimsoll.broker.meter import Durations, Meter, Usage
from plimsoll.broker.process import Watch
from plimsoll.broker.security import Authority, OwnKey
from plimsoll.broker.sockets import Curve, Peer, Sockets
from plimsoll.core.config import Hardware
from plimsoll.core.grants import Grant
from plimsoll.core.node import Dial, Hangup

log = logging.getLogger(__name__)

ROUND_FRAMES: Final = 256
ROUND_BYTES: Final = 32 * 1024
"""Longer rounds do not coalesce better, but their buffers leave the cache: measured, 32 KiB in cost half of 256 KiB."""

REST_SECONDS: Final = 0.002
"""A rest is as long as its round was, and at most this. Frames are fewer and fuller for it, and a frame costs ten times
what a record in it costs; what comes after a pause finds nobody resting."""

CONTROL_FRAMES: Final = 1_000
CONTROL_BYTES: Final = 8 * 1024 * 1024
LONGEST_WAIT_SECONDS: Final = 0.5
HOUSE_SECONDS: Final = 1.0
ORPHAN_SECONDS: Final = 1.0
"""A broker whose supervisor has gone leaves within this time: nobody would hear how it went on."""


class Machine(Protocol):
    """What the loop needs of a head or an edge."""

    grant_of: Callable[[Any], Grant | None]

    def receive(self, peer: Any, frames: list[bytes], now: float) -> None: ...
    def receive_control(self, peer: Any, data: bytes, now: float) -> None: ...
    def gone(self, peer: Any, now: float) -> None: ...
    def tick(self, now: float) -> None: ...
    def next_tick(self) -> float: ...
    def take(self) -> list[tuple[Any, bytes]]: ...
    def take_control(self) -> list[tuple[Any, bytes]]: ...
    def take_dials(self) -> list[Dial | Hangup]: ...
    def served(self, frames: int, seconds: float) -> None: ...
    def status(self) -> dict[str, Any]: ...
    def regrant(self, now: float) -> None: ...
    def expel(self, peer: Any, text: str, now: float) -> None: ...
    def leave(self, now: float) -> None: ...
    def done(self) -> bool: ...


class Loop:
    """Runs one machine on its sockets until it has left."""

    def __init__(
        self,
        machine: Machine,
        sockets: Sockets,
        watch: Watch,
        hardware: Hardware,
        *,
        authority: Authority | None = None,
        own: OwnKey | None = None,
        leave_seconds: float = 30.0,
        round_frames: int = ROUND_FRAMES,
        round_bytes: int = ROUND_BYTES,
        on_usage: Callable[[Usage], None] = lambda usage: None,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self.machine, self.sockets, self.watch, self.authority = machine, sockets, watch, authority
        self.own = own
        self.gate = None if authority is None else Gate(authority)
        self.links_ended = 0
        if authority is not None:
            machine.grant_of = self._grant_of
        self.leave_seconds, self.on_usage, self._rest = leave_seconds, on_usage, rest
        self.meter = Meter(hardware, time.monotonic())
        self.collector = Collector(time.monotonic())
        self._round_frames, self._round_bytes = round_frames, round_bytes
        self.rounds = 0
        self.durations = Durations()
        self._stop_at: float | None = None
        self._next_house = 0.0
        self._descriptors = watch.descriptors
        for fd in self._descriptors:
            sockets.watch(fd)

    def run(self) -> None:
        """Serve until the machine has left, or the time for leaving is over."""
        self.collector.start()
        try:
            while not self._is_over(time.monotonic()):
                self.round()
            self._send()
        finally:
            self.collector.stop()

    def round(self) -> None:
        """Wait for something to do, and do it."""
        machine, sockets = self.machine, self.sockets
        due = machine.next_tick()
        now = time.monotonic()
        sockets.wait(min(due - now, LONGEST_WAIT_SECONDS))
        started = time.monotonic()
        if started > due > 0:
            self.meter.late(started - due)
        sockets.keep_house()
        sockets.redial(started)
        if any(map(sockets.is_readable, self._descriptors)):
            self._look(started)
        if started >= self._next_house:
            self._keep_house(started)
        self._retry(started)
        self._take_control(started)
        frames = self._take_data(started)
        machine.tick(time.monotonic())
        self._send()
        if frames:
            seconds = time.monotonic() - started
            machine.served(frames, seconds)
            self.durations.observe(seconds)
            if not sockets.data.has_more:
                self._rest(min(seconds, REST_SECONDS))
        self.rounds += 1

    @property
    def is_leaving(self) -> bool:
        """Whether somebody has asked this process to end, noticed yet or not. Any thread may ask."""
        return self._stop_at is not None or self.watch.signals > 0

    def refusals(self) -> dict[str, int]:
        """How often peers were refused, by what was not proven."""
        if self.authority is None or self.gate is None:
            return {}
        lanes = (self.sockets.data, self.sockets.control)
        return {
            "curve": self.authority.refused,
            "name": self.gate.counters["names_refused"],
            "role": self.gate.counters["commands_of_collectors_refused"],
            "revoked": sum(lane.counters["frames_of_revoked_keys"] for lane in lanes),
            "ended": self.links_ended,
        }

    # -- in ------------------------------------------------------------------------------------------------------------

    def _take_control(self, now: float) -> None:
        lane, gate = self.sockets.control, self.gate
        for peer, frames in self.sockets.receive(lane, CONTROL_FRAMES, CONTROL_BYTES):
            for data in frames:
                if gate is None or isinstance(peer, str) or gate.admit_control(peer, data, lane.users):
                    self.machine.receive_control(peer, data, now)

    def _take_data(self, now: float) -> int:
        lane, gate, count = self.sockets.data, self.gate, 0
        for peer, frames in self.sockets.receive(lane, self._round_frames, self._round_bytes):
            count += len(frames)
            if gate is not None and isinstance(peer, bytes):
                frames = gate.admit(peer, frames, lane.users)
            self.machine.receive(peer, frames, now)
        return count

    # -- out -----------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        machine, sockets, now = self.machine, self.sockets, time.monotonic()
        if dials := machine.take_dials():
            sockets.apply(dials)
        if control := machine.take_control():
            sockets.control.send(control)
        if data := machine.take():
            self._gone(sockets.data.send(data), now)
        if self.gate is not None and self.gate.answers:
            answers: list[tuple[Peer, bytes]] = list(self.gate.answers)
            self.gate.answers.clear()
            sockets.data.send(answers)

    def _retry(self, now: float) -> None:
        sockets = self.sockets
        if sockets.control.waiting:
            sockets.control.retry()
        if sockets.data.waiting:
            self._gone(sockets.data.retry(), now)

    def _gone(self, peers: list[Peer], now: float) -> None:
        for peer in peers:
            self.machine.gone(peer, now)

    # -- now and then --------------------------------------------------------------------------------------------------

    def _keep_house(self, now: float) -> None:
        self._next_house = now + HOUSE_SECONDS
        self.on_usage(self.meter.sample(now))
        self._look(now)
        lanes = (self.sockets.data, self.sockets.control)
        self.collector.check(now, sum(lane.counters["connections_disconnected"] for lane in lanes))
        if self.authority is not None:
            self._refresh_keys(self.authority, now)
        if self.own is not None:
            self._refresh_own(self.own)

    def _refresh_keys(self, authority: Authority, now: float) -> None:
        fault = authority.fault
        if authority.refresh():
            log.info("authorised keys read again: %d keys", len(authority.keys))
            self._expel(authority, now)
            self.machine.regrant(now)
        if authority.fault and authority.fault != fault:
            log.error("%s; the keys read before stay in force", authority.fault)

    def _refresh_own(self, own: OwnKey) -> None:
        """Another key of our own is in force at once; links are made anew, and go on where they were."""
        fault = own.fault
        if own.refresh():
            log.info("this broker has another key: connections are made anew")
            self.sockets.rekey(Curve(own.secret))
        if own.fault and own.fault != fault:
            log.error("%s; the key read before stays in force", own.fault)

    def _expel(self, authority: Authority, now: float) -> None:
        """End the connections of keys that have been removed. They are told so, and then neither heard nor told."""
        data, control = self.sockets.data, self.sockets.control
        gone = sorted(data.strangers(authority.keys))
        for peer in gone:
            self.machine.expel(peer, "the key of this connection is no longer authorised", now)
        self.links_ended += len(gone) + len(control.strangers(authority.keys))
        self._send()
        for lane in (data, control):
            lane.deny(authority.keys)

    def _grant_of(self, peer: bytes) -> Grant | None:
        """What the key by which this connection came is good for."""
        known = {} if self.authority is None else self.authority.keys
        identity = known.get(self.sockets.data.users.get(peer, ""))
        return None if identity is None else identity.grant

    # -- the end -------------------------------------------------------------------------------------------------------

    def _is_over(self, now: float) -> bool:
        if self._stop_at is not None and (now >= self._stop_at or self.watch.signals > 1):
            return True
        return self.machine.done()

    def _look(self, now: float) -> None:
        """See whether there is a reason to leave; a second signal ends the wait for the first."""
        self.watch.clear()
        if self._stop_at is None and (self.watch.signals or self.watch.parent_is_gone()):
            self._leave(now)

    def _leave(self, now: float) -> None:
        seconds = self.leave_seconds if self.watch.signals else ORPHAN_SECONDS
        why = "asked to end" if self.watch.signals else "the process that started this one has gone"
        log.info("%s: leaving, within %.0f seconds", why, seconds)
        self._stop_at = now + seconds
        self.machine.leave(now)
        self.machine.tick(now)
