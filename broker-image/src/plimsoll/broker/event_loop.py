"""The loop: bytes and time into the machine, its effects onto the sockets.

One thread, no callbacks. A round waits, reads the control sockets until they are empty, reads the data sockets up to a
budget, so that control is served again soon, lets time pass, and sends, control first. All records of a round for one
link leave as one frame, so a round that has emptied the sockets is followed by a rest: later records share frames.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from plimsoll.broker.auth.peer_check import PeerCheck
from plimsoll.broker.garbage_collection import GarbageCollectionSchedule
from plimsoll.broker.monitoring.usage_meter import ProcessUsage, RoundDurations, UsageMeter
from plimsoll.broker.network.socket_lane import BrokerCurveKeys, Peer
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.broker.process_watch import ProcessWatch
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.storage.log_disk import LogDisk, RoundOutput
from plimsoll.core.config import BrokerHardware
from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.permissions import ClientPermissions, NameGrants
from plimsoll.core.transport.overlay_node import Dial, Hangup
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, SecretKeyFile

log = logging.getLogger(__name__)

ROUND_FRAMES: Final = 256
ROUND_BYTES: Final = 32 * 1024
"""Longer rounds coalesce no better, and their buffers no longer fit the cache: measured, with 32 KiB of input a round a
byte cost half of what it cost with 256 KiB."""

REST_SECONDS: Final = 0.002
"""A rest is as long as the round before it, at most this. It makes frames fewer and fuller: a frame costs ten times as
much as a record in it. A record that comes after a pause is served at once, since no rest is going on."""

CONTROL_FRAMES: Final = 1_000
CONTROL_BYTES: Final = 8 * 1024 * 1024
LONGEST_WAIT_SECONDS: Final = 0.5
MAINTENANCE_SECONDS: Final = 1.0
ORPHAN_SECONDS: Final = 1.0
"""A broker whose supervisor has ended leaves within this time: no other process reads its reports."""


class BrokerMachine(Protocol):
    """What the loop needs of a head or an edge. To a machine a peer is any key; here it is what sockets name it by."""

    grant_of: Callable[[Any], ClientPermissions | None]
    identity_of: Callable[[Any], str]
    keys_of: Callable[[str], list[str]]
    name_grants: NameGrants

    def receive(self, peer: Any, frames: list[bytes], now: float) -> None: ...
    def receive_control(self, peer: Any, data: bytes, now: float) -> None: ...
    def gone(self, peer: Any, now: float) -> None: ...
    def poll(self, now: float) -> None: ...
    def next_poll_at(self) -> float: ...
    def data_to_send(self) -> list[tuple[Any, bytes]]: ...
    def control_to_send(self) -> list[tuple[Any, bytes]]: ...
    def dials_to_make(self) -> list[Dial | Hangup]: ...
    def served(self, frames: int, seconds: float) -> None: ...
    def status(self) -> dict[str, Any]: ...
    def regrant(self, now: float) -> None: ...
    def expel(self, peer: Any, text: str, now: float) -> None: ...
    def leave(self, now: float) -> None: ...
    def done(self) -> bool: ...


class BrokerLoop:
    """Runs one machine on its sockets until it has left."""

    def __init__(
        self,
        machine: BrokerMachine,
        sockets: BrokerSockets,
        watch: ProcessWatch,
        hardware: BrokerHardware,
        *,
        authority: AuthorizedKeys | None = None,
        own: SecretKeyFile | None = None,
        leave_seconds: float = 30.0,
        round_frames: int = ROUND_FRAMES,
        round_bytes: int = ROUND_BYTES,
        on_usage: Callable[[ProcessUsage], None] = lambda usage: None,
        rest: Callable[[float], None] = time.sleep,
        disk: LogDisk | ReplicatedLog | None = None,
    ) -> None:
        self.machine, self.sockets, self.process_watch, self.authorized_keys = machine, sockets, watch, authority
        self.secret_key, self.disk = own, disk
        self.peer_check = None if authority is None else PeerCheck(authority)
        self.links_ended = 0
        if authority is not None:
            machine.grant_of, machine.identity_of = self._grant_of, self._identity_of
            machine.keys_of, machine.name_grants = authority.keys_of, authority.name_grants
        self.leave_seconds, self.on_usage, self._rest = leave_seconds, on_usage, rest
        self.meter = UsageMeter(hardware, time.monotonic())
        self.collector = GarbageCollectionSchedule(time.monotonic())
        self._round_frames, self._round_bytes = round_frames, round_bytes
        self.rounds = 0
        self.durations = RoundDurations()
        self._stop_at: float | None = None
        self._next_house = 0.0
        self._descriptors = watch.descriptors
        for fd in self._descriptors:
            sockets.watch(fd)
        if disk is not None and disk.descriptor >= 0:
            sockets.watch(disk.descriptor)
        self._feed: LogFeed | None = disk.feed if isinstance(disk, ReplicatedLog) else None

    def keep(self, kept: ReplicatedLog) -> None:
        """Have what leaves wait for a standby from now on, as well as for the disk that it has waited for so far.

        That disk is watched already, and a log in memory has no descriptor.
        """
        self.disk, self._feed = kept, kept.feed

    def run(self) -> None:
        """Serve until the machine has left, or the time for leaving is over."""
        self.collector.start()
        try:
            while not self._has_finished(time.monotonic()):
                self.round()
            self._send()
            if self.disk is not None:
                for output in self.disk.flush():
                    self._put_out(output)
            if self._feed is not None:
                self._feed.leave()
                self._send_feed(self._feed)
        finally:
            self.collector.stop()

    def round(self) -> None:
        """Wait for something to do, and do it."""
        machine, sockets = self.machine, self.sockets
        due = machine.next_poll_at()
        if self._feed is not None:
            is_behind = isinstance(self.disk, ReplicatedLog) and self.disk.is_behind
            due = 0.0 if is_behind else min(due, self._feed.next_poll_at())
        now = time.monotonic()
        sockets.wait(min(due - now, LONGEST_WAIT_SECONDS))
        started = time.monotonic()
        if started > due > 0:
            self.meter.note_lag(started - due)
        if self.disk is not None:
            if sockets.is_readable(self.disk.descriptor):
                self.disk.clear()
            self._release(self.disk)
        sockets.serve_events()
        sockets.redial(started)
        if any(map(sockets.is_readable, self._descriptors)):
            self._check_signals(started)
        if started >= self._next_house:
            self._maintain(started)
        self._retry(started)
        self._take_control(started)
        frames = self._take_data(started)
        machine.poll(time.monotonic())
        self._send()
        if frames:
            seconds = time.monotonic() - started
            machine.served(frames, seconds)
            self.durations.observe(seconds)
            if not sockets.data.has_more:
                self._take_rest(min(seconds, REST_SECONDS))
        self.rounds += 1

    def _take_rest(self, seconds: float) -> None:
        """Rest, and send meanwhile what a sync has made safe; not while it waits for the word of a standby."""
        if self._awaits_standby:
            return
        began = time.monotonic()
        if self.disk is not None and self.disk.await_safe(seconds):
            self._release(self.disk)
            seconds -= time.monotonic() - began
        if seconds > 0:
            self._rest(seconds)

    @property
    def is_leaving(self) -> bool:
        """Whether this process has been asked to end, whether or not the loop has noticed. Thread-safe."""
        return self._stop_at is not None or self.process_watch.signals > 0

    def refusals(self) -> dict[str, int]:
        """Counts of refused peers, by what they failed to prove."""
        if self.authorized_keys is None or self.peer_check is None:
            return {}
        lanes = (self.sockets.data, self.sockets.control)
        return {
            "curve": self.authorized_keys.refused,
            "name": self.peer_check.counters["names_refused"],
            "role": self.peer_check.counters["commands_of_collectors_refused"],
            "revoked": sum(lane.counters["frames_of_revoked_keys"] for lane in lanes),
            "ended": self.links_ended,
        }

    # -- in ------------------------------------------------------------------------------------------------------------

    def _take_control(self, now: float) -> None:
        lane, gate = self.sockets.control, self.peer_check
        for peer, frames in self.sockets.receive(lane, CONTROL_FRAMES, CONTROL_BYTES):
            for data in frames:
                if gate is None or isinstance(peer, str) or gate.admit_control(peer, data, lane.users):
                    self.machine.receive_control(peer, data, now)
                    if self._feed is not None:
                        self._feed.receive_control(peer, data, now)

    def _take_data(self, now: float) -> int:
        lane, gate, feed, count = self.sockets.data, self.peer_check, self._feed, 0
        found = self.sockets.receive(lane, self._round_frames, self._round_bytes)
        if feed is not None:  # the standby first: what it has stored may leave at once
            found = iter(sorted(found, key=lambda each: each[0] not in feed.links))
        for peer, frames in found:
            count += len(frames)
            if gate is not None and isinstance(peer, bytes):
                frames = gate.admit(peer, frames, lane.users)
            if feed is not None and frames and feed.claims(peer, frames):
                feed.receive(peer, frames, now)
                if self.disk is not None:
                    self._release(self.disk)
            else:
                self.machine.receive(peer, frames, now)
        return count

    # -- out -----------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        machine, sockets = self.machine, self.sockets
        output = RoundOutput(machine.dials_to_make(), machine.control_to_send(), machine.data_to_send())
        if self.disk is None:
            self._put_out(output)
        else:
            self.disk.end_round(output, time.monotonic())
            if self._feed is not None:
                self._send_feed(self._feed)
            self._release(self.disk)
        if self.peer_check is not None and self.peer_check.answers:
            answers: list[tuple[Peer, bytes]] = list(self.peer_check.answers)
            self.peer_check.answers.clear()
            sockets.data.send(answers)

    def _send_feed(self, feed: LogFeed) -> None:
        """Send the standby its log, and mediators who leads, at once: all other output waits for their answers."""
        parts: list[tuple[Any, bytes]] = list(feed.data_to_send())
        self._report_disconnected(self.sockets.data.send(parts), time.monotonic())
        said: list[tuple[Any, bytes]] = list(feed.control_to_send())
        if said:
            self.sockets.control.send(said)

    def _release(self, disk: LogDisk | ReplicatedLog) -> None:
        """Send what waited for a disk or a standby that has it now."""
        for output in disk.released():
            self._put_out(output)

    def _put_out(self, output: RoundOutput) -> None:
        sockets = self.sockets
        if output.dials:
            sockets.apply(output.dials)
        if output.control:
            sockets.control.send(output.control)
        if output.data:
            self._report_disconnected(sockets.data.send(output.data), time.monotonic())

    def _retry(self, now: float) -> None:
        sockets = self.sockets
        if sockets.control.backlog:
            sockets.control.retry()
        if sockets.data.backlog:
            self._report_disconnected(sockets.data.retry(), now)

    def _report_disconnected(self, peers: list[Peer], now: float) -> None:
        for peer in peers:
            if self._feed is not None and peer in self._feed.links:
                self._feed.gone(peer, now)
            else:
                self.machine.gone(peer, now)

    # -- now and then --------------------------------------------------------------------------------------------------

    def _maintain(self, now: float) -> None:
        self._next_house = now + MAINTENANCE_SECONDS
        self.on_usage(self.meter.sample(now))
        self._check_signals(now)
        lanes = (self.sockets.data, self.sockets.control)
        self.collector.collect_if_due(now, sum(lane.counters["connections_disconnected"] for lane in lanes))
        if self.authorized_keys is not None:
            self._refresh_keys(self.authorized_keys, now)
        if self.secret_key is not None:
            self._refresh_secret_key(self.secret_key)

    def _refresh_keys(self, authority: AuthorizedKeys, now: float) -> None:
        fault = authority.fault
        if authority.refresh():
            log.info("reloaded authorized keys: %d keys", len(authority.keys))
            self._end_revoked(authority, now)
            self.machine.name_grants = authority.name_grants
            self.machine.regrant(now)
        if authority.fault and authority.fault != fault:
            log.error("%s; keeping the keys loaded before", authority.fault)

    def _refresh_secret_key(self, own: SecretKeyFile) -> None:
        """Use a changed key of our own at once; connections are made again, and their links resume."""
        fault = own.fault
        if own.refresh():
            log.info("reloaded this broker's key, reconnecting")
            self.sockets.rekey(BrokerCurveKeys(own.secret))
        if own.fault and own.fault != fault:
            log.error("%s; keeping the key loaded before", own.fault)

    def _end_revoked(self, authority: AuthorizedKeys, now: float) -> None:
        """End the connections of removed keys: each gets a refusal, then nothing more is read from or sent to it."""
        data, control = self.sockets.data, self.sockets.control
        gone = sorted(data.unauthorized_connections(authority.keys))
        for peer in gone:
            self.machine.expel(peer, "the key of this connection is no longer authorised", now)
        self.links_ended += len(gone) + len(control.unauthorized_connections(authority.keys))
        self._send()
        for lane in (data, control):
            lane.restrict_to(authority.keys)

    def _grant_of(self, peer: bytes) -> ClientPermissions | None:
        """The permissions of the key that this connection authenticated with."""
        known = {} if self.authorized_keys is None else self.authorized_keys.keys
        identity = known.get(self.sockets.data.users.get(peer, ""))
        return None if identity is None else identity.grant

    def _identity_of(self, peer: bytes) -> str:
        """Whose key this connection authenticated with."""
        authority = self.authorized_keys
        return "" if authority is None else authority.identity_of(self.sockets.data.users.get(peer, ""))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _has_finished(self, now: float) -> bool:
        if self._stop_at is not None and (now >= self._stop_at or self.process_watch.signals > 1):
            return True
        return self.machine.done() and not self._awaits_standby

    @property
    def _awaits_standby(self) -> bool:
        """Whether what a head has still to say as it leaves waits for a standby that may have it in a moment."""
        kept = self.disk
        return isinstance(kept, ReplicatedLog) and kept.is_waiting and kept.feed is not None and kept.feed.in_sync > 0

    def _check_signals(self, now: float) -> None:
        """Leave if there is a reason to; a second signal ends the wait at once."""
        self.process_watch.clear()
        if self._stop_at is None and (self.process_watch.signals or self.process_watch.parent_is_gone()):
            self._begin_shutdown(now)

    def _begin_shutdown(self, now: float) -> None:
        seconds = self.leave_seconds if self.process_watch.signals else ORPHAN_SECONDS
        why = "asked to end" if self.process_watch.signals else "the process that started this one has gone"
        log.info("%s: shutting down within %.0f s", why, seconds)
        self._stop_at = now + seconds
        self.machine.leave(now)
        self.machine.poll(now)
