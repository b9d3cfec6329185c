"""Heads whose setting `standby` is switched on and off while they run: each begins with its log in memory alone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from plimsoll.core.config import BrokerConfig, HeadStandby, PeerBroker
from plimsoll.core.head.durability.commit import RoundCommit
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_copy import LogCopy
from plimsoll.core.head.standby.silence import tell_silence
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.world.standby_heads import StandbyPair

ENTRIES_SHARE = 4
SLICE_BYTES = 600
"""Small, so that publications come between the slices of a log."""


class SwitchedPair(StandbyPair):
    """As `StandbyPair` once its standby has been switched on. `takes`: how often that was done to a head that ran."""

    has_pair = False
    is_wanted = False
    takes = 0
    on_log: Callable[[], None] = staticmethod(lambda: None)
    """Called when the head has another log object."""
    _copy: LogCopy | None = None
    _head: Head | None = None
    _is_scheduled = False

    def configured(self, config: BrokerConfig) -> BrokerConfig:
        """The configuration of the next process that leads."""
        if not self.is_wanted:
            return config
        standby = HeadStandby(head=PeerBroker(name=config.name, data=config.data), control="")
        return msgspec.structs.replace(config, standby=standby)

    # -- a life of the head

    def begins_plain(self) -> bool:
        """Whether the next process has its log in memory alone."""
        return not self.is_wanted and not self.is_covered

    def recover(self) -> RecoveredLog | None:
        return None if self.begins_plain() else super().recover()

    def started(self, head: Head) -> None:
        self._head, self._copy = head, None
        self.has_pair = head.journal is not None
        if self.has_pair:
            super().started(head)
        else:
            self._life += 1
            self.commit = self.feed = None
        if not self._is_scheduled:
            self._is_scheduled = True
            self._switch_later()

    def crash(self) -> None:
        super().crash()
        self._head = self._copy = None

    # -- the setting

    def _switch_later(self) -> None:
        if self.pair.switch_seconds is not None:
            self.schedule.after(self.rng.uniform(*self.pair.switch_seconds), self._switch)

    def _switch(self) -> None:
        self._switch_later()
        if self._head is None or self.host.is_paused:
            return  # it is done when it runs
        self.is_wanted = not self.is_wanted
        if not self.is_wanted:
            self._let_go()
            tell_silence(self._head, has_standby=False)
        elif self.has_pair:
            tell_silence(self._head, has_standby=True)
            self._start_standby_later()
        else:
            self._take_on(self._head)

    def _let_go(self) -> None:
        """The standby is over in the store first, and then it ends; `_look` tells the head."""
        if self.feed is not None:
            self.leadership = self.leadership.without_standby(self.feed.status())
        self.standby_host.crash()

    def _take_on(self, head: Head) -> None:
        self.takes += 1
        self.has_pair = True
        self.leadership = self.leadership.begun(self.leadership.leader)
        self._store = self._new_store()
        self._store.recover()
        self._copy = LogCopy(head, self._store, self.pair.log_bytes // ENTRIES_SHARE)
        tell_silence(head, has_standby=True)
        self._begin_feed(head)
        self.host.wake()

    def _start_standby(self) -> None:
        if self.is_wanted:
            super()._start_standby()

    # -- rounds

    def logged(self, one: seen.LogEntryObserved) -> None:
        if self.commit is None:
            self._observed = one.position
            self.observe(one)
        else:
            super().logged(one)

    def end_round(self, send: Callable[[], None]) -> None:
        if not self.has_pair or (self._copy is not None and not self._is_copied(self._copy)):
            send()
        else:
            super().end_round(send)

    def _is_copied(self, copy: LogCopy) -> bool:
        """Copy a slice; with the last one the head is as one that has had a standby from its start."""
        head, before = self._head, None if self._head is None else self._head.log
        if head is None or self.feed is None:
            raise RuntimeError(f"{self.config.name} copies a log and does not run")
        is_whole = copy.step(SLICE_BYTES)
        if head.log is not before:
            self.on_log()
        if is_whole:
            self.commit, self._copy = RoundCommit(self._store, head), None
            self.feed.begin(self._store)
        elif copy.is_behind:
            self.schedule.after(0.001, self.host.wake)
        return is_whole
