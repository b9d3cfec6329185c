"""A head that runs, and does what its configuration file says of a standby, and of what has to have a publication."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from plimsoll.broker.event_loop import BrokerLoop
from plimsoll.broker.network.socket_lane import EndpointError
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.standby.standby_process import entries_at_hand, make_feed, segment_bytes
from plimsoll.broker.standby.standby_setting import StandbySetting
from plimsoll.broker.storage.log_disk import LogDisk
from plimsoll.broker.storage.memory_log import MemoryLog
from plimsoll.core.config import BrokerConfig, HeadStandby
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.silence import tell_silence

log = logging.getLogger(__name__)


class RunningHead:
    """`look` once in a while. A standby that is removed is ended by others; the head only learns of it."""

    def __init__(
        self, config: BrokerConfig, head: Head, loop: BrokerLoop, sockets: BrokerSockets, setting: StandbySetting,
        new_id: Callable[[], int],
    ) -> None:  # fmt: skip
        self.config, self.head, self.loop, self.sockets = config, head, loop, sockets
        self.setting, self._new_id = setting, new_id
        self._done = config.standby
        if isinstance(loop.disk, ReplicatedLog) and loop.disk.feed is not None:
            loop.disk.feed.wants = setting.names_standby
        self._confirm()

    def look(self) -> None:
        """Do as the file says now."""
        self.setting.refresh()
        wanted = self.setting.standby
        if wanted != self._done and (wanted is None or self._take_on(wanted)):
            if (wanted is None) != (self._done is None):
                tell_silence(self.head, has_standby=wanted is not None)
            self._done = wanted
        self._confirm()

    def _confirm(self) -> None:
        """What has to have a publication; a process may have followed for long since it was started with another."""
        self.setting.refresh()
        kept = self.loop.disk
        if isinstance(kept, ReplicatedLog) and kept.confirm(may_lag=self.setting.may_lag):
            log.info("%s: confirm is %s from now on", self.config.name, "Either" if kept.may_lag else "Both")

    def _take_on(self, standby: HeadStandby) -> bool:
        """Let a standby come; False if that has to be tried again."""
        kept = self.loop.disk
        if isinstance(kept, ReplicatedLog):
            if kept.feed is not None and not kept.feed.term:
                kept.feed.term = standby.term
            return True
        try:
            self.sockets.control.bind(standby.control)
        except EndpointError as error:
            log.error("%s takes on no standby yet: %s", self.config.name, error.strerror)
            return False
        config = msgspec.structs.replace(self.config, standby=standby)
        taken = kept_for_standby(config, kept, self.head, self._new_id)
        if taken.feed is not None:
            taken.feed.wants = self.setting.names_standby
        self.loop.keep(taken)
        log.info("%s takes on a standby: followed at %s", self.config.name, self.config.data)
        return True


def kept_for_standby(
    config: BrokerConfig, disk: LogDisk | None, head: Head, new_id: Callable[[], int]
) -> ReplicatedLog:
    """The log of a head that runs, kept for a standby as well from now on. `disk`: where it has been kept so far.

    A head in memory goes on with its entries at hand, and the rest in segments, as one that has had a standby from
    its start.
    """
    if disk is not None:
        kept = ReplicatedLog(disk, may_lag=disk.config.may_lag)
    else:
        memory = MemoryLog(config.name, segment_bytes(config))
        memory.take_over(head, entries_at_hand(config).limits.log_bytes)
        kept = ReplicatedLog(memory, may_lag=True)
    kept.begin_feed(make_feed(config, head.epoch, new_id, head.epoch))
    return kept
