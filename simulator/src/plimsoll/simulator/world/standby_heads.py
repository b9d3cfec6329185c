"""Heads with a standby: a second host that follows the log, a store that says which of the two is to lead.

The one that leads always has the head's name and endpoints, as behind an address that follows it. When it is killed and
comes back, it is its standby that comes, if that is in sync, and what has died is its new standby.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.core.config import BrokerConfig, PeerBroker
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.durability.segments import LogFiles
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.leadership import HeadLeadership
from plimsoll.core.head.standby.log_feed import LogFeed, LogPlace
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.overlay_node import link_limits
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.disk import SimulatedDisk
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.world.durable_heads import DurableHeads, HeadDisk

LOOK_SECONDS = 0.1
SILENT_SECONDS = 2.0
MEDIATOR = "leadership"


@dataclass(frozen=True, slots=True)
class StandbyHeads:
    """`start_seconds`: the range of the time that a standby takes to start. `log_bytes`: of each log.

    `spares_alone`: heads are killed only while their standby is in sync, so that nothing is ever lost.
    `switch_seconds`: the range of the time between two changes of the setting, which is off at first; None: always on.
    `has_disks`: each process keeps its log on a disk of its own, and a round waits for both.
    """

    start_seconds: tuple[float, float] = (0.05, 0.4)
    log_bytes: int = 4_000_000
    segment_bytes: int = 64_000
    spares_alone: bool = True
    switch_seconds: tuple[float, float] | None = None
    has_disks: bool = False


class StandbyPair(HeadDisk):
    """The two processes of one head through all their lives. `host` is that of the one that leads."""

    def __init__(
        self,
        config: BrokerConfig,
        kept: StandbyHeads,
        host: SimulatedHost,
        schedule: EventQueue,
        network: SimulatedNetwork,
        rng: random.Random,
        observe: Callable[[seen.LogEntryObserved], None],
    ) -> None:
        super().__init__(config, DurableHeads(log_bytes=kept.log_bytes), schedule, rng, observe)
        self.pair, self.host = kept, host
        self.standby_host = SimulatedHost(f"{config.name}.standby", schedule, network)
        self.leadership = HeadLeadership()
        self.feed: LogFeed | None = None
        self.promotions = 0
        self._incarnations = 0
        self._store = self._new_store()
        self._output: deque[tuple[LogPlace, int, Callable[[], None]]] = deque()
        self._unsafe: deque[tuple[LogPlace, int, seen.LogEntryObserved]] = deque()
        self._silent_since: float | None = None

    def _new_store(self) -> LogStore:
        files = SimulatedDisk(self.rng, self.kept.disk) if self.pair.has_disks else MemoryFiles()
        return self._store_of(files)

    def _store_of(self, files: LogFiles) -> LogStore:
        return LogStore(files, self.config.name, self.pair.log_bytes, self.pair.segment_bytes)

    @property
    def follower(self) -> LogFollower | None:
        """The standby, if it runs."""
        node = self.standby_host.node
        return node if isinstance(node, LogFollower) else None

    @property
    def keeps_all(self) -> bool:
        return self.is_covered

    @property
    def is_covered(self) -> bool:
        """Whether the standby may take the place of the head now."""
        follower = self.follower
        return follower is not None and self.leadership.standby == follower.info.incarnation and follower.sync > 0

    # -- a life of the head

    def recover(self) -> RecoveredLog | None:
        follower, is_promoted = self.follower, self.is_covered
        if follower is not None and is_promoted:
            self.leadership = self.leadership.promoted()
            self.promotions += 1
            follower.receive_control(MEDIATOR, _mediator_says(msg.Promote(self.leadership.term)), self.schedule.now)
            if follower.promoted != self.leadership.term:
                raise AssertionError(f"the standby of {self.config.name} is in sync and refuses to lead")
            self._store = follower.store
            self.standby_host.crash()
        else:
            self.leadership = self.leadership.begun(self.leadership.leader)
            self._store = self._store_of(self._store.files) if self.pair.has_disks else self._new_store()
        found = self._store.recover()
        if found.damage:
            raise AssertionError(f"the log of the standby of {self.config.name} is damaged: {found.damage}")
        recovered = recovered_log(self._store, found, is_synced=True, is_replica=is_promoted)
        if is_promoted:
            self._observe_survivors(self._store, recovered)
        self._waiting.clear()
        self._observed = self._store.position
        return recovered

    def started(self, head: Head) -> None:
        self._life += 1
        self._safe = self._round
        self._output.clear()
        self._unsafe.clear()
        self.commit = RoundCommit(self._store, head)
        self.commit.begin(self.schedule.now)
        self._begin_feed(head).begin(self._store)

    def _begin_feed(self, head: Head) -> LogFeed:
        """Let a standby come to this head."""
        self.feed = feed = LogFeed(
            head.name, head.epoch, self.leadership.term, link_limits(self.config), head.new_id,
            self.config.limits.max_frame_bytes,
        )  # fmt: skip
        self.host.beside = feed
        life = self._life
        if self.follower is None:
            self._start_standby_later()
        self.schedule.after(LOOK_SECONDS, lambda: self._look(life))
        return feed

    def crash(self) -> None:
        self._life += 1
        self._output.clear()
        self._waiting = deque([*(one for *_, one in self._unsafe), *self._waiting])
        self._unsafe.clear()
        self.commit = None
        self.feed = None
        if isinstance(self._store.files, SimulatedDisk):
            self._store.files.stop()

    def crash_standby(self) -> None:
        """SIGKILL of the standby; another one starts."""
        self.standby_host.crash()
        self._start_standby_later()

    def _start_standby_later(self) -> None:
        self.schedule.after(self.rng.uniform(*self.pair.start_seconds), self._start_standby)

    def _start_standby(self) -> None:
        if self.follower is not None:
            return
        self._incarnations += 1
        incarnation = int(self.schedule.now * 1000) * 1000 + self._incarnations
        ids = random.Random(self.rng.getrandbits(64))
        peer = PeerBroker(name=self.config.name, data=self.config.data)
        limits = link_limits(self.config)
        self.standby_host.start(
            lambda: LogFollower(
                peer, incarnation, self._new_store(), limits, lambda: ids.getrandbits(32),
                self.config.limits.max_frame_bytes,
            )
        )  # fmt: skip

    # -- the mediator's look

    def _look(self, life: int) -> None:
        """Store what has changed, and command what follows from it."""
        feed, follower, now = self.feed, self.follower, self.schedule.now
        if life != self._life or feed is None:
            return
        self.schedule.after(LOOK_SECONDS, lambda: self._look(life))
        head = feed.status()
        if follower is not None:
            self.leadership = self.leadership.noted(follower.status())
        waits_for = self.leadership.standby or feed.in_sync
        is_gone = waits_for and (follower is None or follower.info.incarnation != waits_for)
        if not head["standby_silent"]:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        is_silent = self._silent_since is not None and now - self._silent_since > SILENT_SECONDS
        if is_gone or is_silent:
            self.leadership, self._silent_since = self.leadership.without_standby(head), None
        if self.leadership.waits_in_vain(feed.status()):
            says = _mediator_says(msg.GoOnAlone(self.leadership.term, self.leadership.ended))
            feed.receive_control(MEDIATOR, says, now)
            self.host.wake()

    # -- rounds

    def logged(self, one: seen.LogEntryObserved) -> None:
        self._waiting.append(one)

    def end_round(self, send: Callable[[], None]) -> None:
        feed = self.feed
        if self.commit is None or feed is None:
            raise RuntimeError(f"{self.config.name} has no log")
        now = self.schedule.now
        if self.commit.write(now) and isinstance(self._store.files, SimulatedDisk):
            self._sync_later(self._store.files)
        place = feed.end
        while self._waiting:
            self._unsafe.append((place, self._round, self._waiting.popleft()))
        self._output.append((place, self._round, send))
        feed.poll(now)
        self._release(feed)

    def _sync_later(self, disk: SimulatedDisk) -> None:
        self._round += 1
        life, number, writes, place = self._life, self._round, disk.writes, self._store.place

        def synced() -> None:
            if life == self._life and number > self._safe and self.feed is not None:
                disk.sync(writes)
                self._store.safe(place)
                self._safe = number
                self._release(self.feed)

        self.schedule.after(self.rng.uniform(*self.kept.disk.sync_seconds), synced)

    def _release(self, feed: LogFeed) -> None:
        """Send what the standby has, and the disk, if there is one."""

        def is_safe(place: LogPlace, number: int) -> bool:
            return feed.is_safe(place) and (number <= self._safe or not self.pair.has_disks)

        while self._unsafe and is_safe(*self._unsafe[0][:2]):
            *_, one = self._unsafe.popleft()
            self._observed = max(self._observed, one.position)
            self.observe(one)
        while self._output and is_safe(*self._output[0][:2]):
            self._output.popleft()[2]()


def _mediator_says(record: msg.GoOnAlone | msg.Promote) -> bytes:
    return wire.control_frame(msg.Identify(MEDIATOR, "mediator", 1), record)
