"""Heads that keep their log on a simulated disk: recovery, and rounds whose output waits for its sync.

The journal of a run gets an entry of such a log once it is safe: what a crash takes before that was told to none.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.durability.records import Logged
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.disk import DiskQuality, SimulatedDisk
from plimsoll.simulator.engine.event_queue import EventQueue


@dataclass(frozen=True, slots=True)
class DurableHeads:
    """`always`: rounds wait for their sync; else it comes every `interval_seconds`. `log_bytes`: of each log."""

    always: bool = True
    interval_seconds: float = 0.1
    log_bytes: int = 4_000_000
    segment_bytes: int = 64_000
    disk: DiskQuality = field(default_factory=DiskQuality)


class HeadDisk:
    """The disk of one head through all its lives, and the commit of the present one."""

    def __init__(
        self,
        config: BrokerConfig,
        kept: DurableHeads,
        schedule: EventQueue,
        rng: random.Random,
        observe: Callable[[seen.LogEntryObserved], None],
    ) -> None:
        self.config, self.kept, self.schedule, self.rng, self.observe = config, kept, schedule, rng, observe
        self.disk = SimulatedDisk(rng, kept.disk)
        self.recoveries: list[str] = []
        self.commit: RoundCommit | None = None
        self._observed = 0
        self._waiting: deque[seen.LogEntryObserved] = deque()
        self._store: LogStore
        self._life = self._round = self._safe = self._waits_for = 0
        self._held: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def keeps_all(self) -> bool:
        """Whether a crash now loses nothing that the head has told others."""
        return self.kept.always

    # -- a life

    def configured(self, config: BrokerConfig) -> BrokerConfig:
        """The configuration of the next process."""
        return config

    def recover(self) -> RecoveredLog | None:
        """Read the log, as a head that starts does; None if it has its log in memory alone."""
        store = LogStore(self.disk, self.config.name, self.kept.log_bytes, self.kept.segment_bytes)
        found = store.recover()
        if found.damage:
            raise AssertionError(f"the log of {self.config.name} is damaged: {found.damage}")
        self.recoveries.append(f"{found.segments} segments, {found.bytes} bytes, {found.torn_bytes} torn")
        self._store = store
        recovered = recovered_log(store, found, is_synced=self.kept.always)
        if self.kept.always:
            self._observe_survivors(store, recovered)
        return recovered

    def _observe_survivors(self, store: LogStore, recovered: RecoveredLog) -> None:
        """Entries that were safe on the disk before the machine knew it."""
        position = self._observed + 1
        epoch = recovered.state.epochs[-1].epoch if recovered.state.epochs else 0
        while found := store.records(position, 64_000):
            for where, logged in found:
                self._survived(where, logged, epoch)
            position = found[-1][0] + 1
        self._waiting.clear()
        self._observed = store.position

    def _survived(self, position: int, logged: Logged, epoch: int) -> None:
        message = msg.to_edge.decode(logged.record)
        if isinstance(message, msg.PubOpen):
            identity = (message.publisher, message.incarnation, message.seq)
            origin = (message.head, message.epoch, message.offset)
            known = [one.at for one in self._waiting if one.position == position and one.publication == identity]
            at = known[0] if known else self.schedule.now
            self.observe(seen.LogEntryObserved(self.config.name, epoch, position, identity, origin, at))

    def started(self, head: Head) -> None:
        self._life += 1
        self._held.clear()
        self._safe = self._waits_for = self._round
        self.commit = RoundCommit(self._store, head)
        self.commit.begin(self.schedule.now)

    def logged(self, one: seen.LogEntryObserved) -> None:
        """The machine has logged an entry; the journal of the run gets it when others may have."""
        if self.kept.always:
            self._waiting.append(one)
        else:
            self.observe(one)

    def crash(self) -> None:
        self._life += 1
        self._held.clear()
        self.commit = None
        self.disk.stop()

    # -- rounds

    def end_round(self, send: Callable[[], None]) -> None:
        """Write what the round has logged, and send what it has to say once it may be sent."""
        if self.commit is None:
            raise RuntimeError(f"{self.config.name} has no log")
        now = self.schedule.now
        if self.commit.write(now):
            self._round += 1
            if self.kept.always or self.commit.is_binding:
                self._waits_for = self._round
            life, number, writes = self._life, self._round, self.disk.writes
            is_waited_for = self._waits_for == self._round
            delay = self.rng.uniform(*self.kept.disk.sync_seconds) if is_waited_for else self.kept.interval_seconds
            last, place = self.commit.store.position, self.commit.store.place
            self.schedule.after(delay, lambda: self._synced(life, number, writes, last, place))
        if self._held or self._waits_for > self._safe:
            self._held.append((self._waits_for, send))
        else:
            send()

    def _synced(self, life: int, number: int, writes: int, last: int, place: tuple[int, int]) -> None:
        """A sync has ended. It was asked for before later ones, so it may end behind them: then it says nothing new."""
        if life != self._life or number <= self._safe:
            return
        self.disk.sync(writes)
        self._store.safe(place)
        self._safe = number
        while self._waiting and self._waiting[0].position <= last:
            self.observe(self._waiting.popleft())
        self._observed = max(self._observed, last)
        while self._held and self._held[0][0] <= self._safe:
            self._held.popleft()[1]()
