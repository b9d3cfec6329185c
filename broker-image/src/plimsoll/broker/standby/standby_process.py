"""A process that is a head's standby until it is promoted, and what a head with a standby is made of."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from plimsoll.broker.event_loop import BrokerLoop, BrokerMachine
from plimsoll.broker.monitoring.process_probes import ProcessProbes
from plimsoll.broker.monitoring.usage_meter import ProcessUsage
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.broker.process_watch import ProcessWatch
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.standby.standby_setting import StandbySetting
from plimsoll.broker.storage.log_disk import LogDisk, LogDiskError
from plimsoll.broker.storage.memory_log import MemoryLog
from plimsoll.core.config import BrokerConfig, BrokerHardware, HeadStandby
from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.core.head.standby.waiting import WaitingProcess
from plimsoll.core.transport.overlay_node import link_limits
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, SecretKeyFile

log = logging.getLogger(__name__)

ENTRIES_SHARE = 4
"""Of the memory of a log without a disk, a fourth keeps entries at hand; the rest are segments."""


def _no_rest(seconds: float) -> None:
    """Of a standby: its head waits for its word, and has put a round into each frame already."""


def standby_of(config: BrokerConfig) -> HeadStandby:
    """What a configuration says of the standby.

    Raises:
        ValueError: it has none.

    """
    if config.standby is None:
        raise ValueError(f"{config.name}: config.standby is missing")
    return config.standby


def replicated_log(config: BrokerConfig) -> ReplicatedLog:
    """The log of one of the two processes of a head, on its disk or in memory.

    Raises:
        LogFolderError: its folder cannot be used.

    """
    if config.disk_log is not None:
        return ReplicatedLog(LogDisk(config.disk_log, config.name), may_lag=config.disk_log.may_lag)
    return ReplicatedLog(MemoryLog(config.name, segment_bytes(config)), may_lag=True)


def segment_bytes(config: BrokerConfig) -> int:
    """How much of the memory of a log without a disk its segments have."""
    return config.limits.log_bytes - config.limits.log_bytes // ENTRIES_SHARE


def entries_at_hand(config: BrokerConfig) -> BrokerConfig:
    """The same configuration for the machine: without a disk its entries share the memory with the segments."""
    if config.disk_log is not None:
        return config
    limits = msgspec.structs.replace(config.limits, log_bytes=max(config.limits.log_bytes // ENTRIES_SHARE, 1))
    return msgspec.structs.replace(config, limits=limits)


def make_feed(config: BrokerConfig, epoch: int, new_id: Callable[[], int], incarnation: int = 0) -> LogFeed:
    """What sends the log of this head to its standby. `incarnation`: of this process."""
    term, most = standby_of(config).term, config.limits.max_frame_bytes
    return LogFeed(config.name, epoch, term, link_limits(config), new_id, most, incarnation)


def changed(config: BrokerConfig, **said: int | bool) -> BrokerConfig:
    """The configuration of a process that knows more of what it is: its term, or that it follows."""
    return msgspec.structs.replace(config, standby=msgspec.structs.replace(standby_of(config), **said))


@dataclass(frozen=True)
class ProcessShell:
    """What a process of a head is run with, whichever of the two it is. `incarnation`: by which a mediator knows it."""

    sockets: BrokerSockets
    watch: ProcessWatch
    incarnation: int
    new_id: Callable[[], int]
    authority: AuthorizedKeys | None
    leave_seconds: float
    probes: ProcessProbes
    own: SecretKeyFile | None

    def run(
        self, machine: BrokerMachine, hardware: BrokerHardware, unready: Callable[[], str],
        tick: Callable[[], None] = lambda: None, *, rests: bool = True,
    ) -> None:  # fmt: skip
        """Serve until the machine is done. `unready`: why it is not ready. `tick`: called about once a second."""
        loop = BrokerLoop(
            machine, self.sockets, self.watch, hardware, authority=self.authority, own=self.own,
            leave_seconds=self.leave_seconds, rest=time.sleep if rests else _no_rest,
        )  # fmt: skip

        def on_usage(usage: ProcessUsage) -> None:
            tick()
            self.probes.note(unready())

        loop.on_usage = on_usage
        loop.run()


def await_role(config: BrokerConfig, shell: ProcessShell, setting: StandbySetting) -> BrokerConfig | None:
    """Wait until a mediator says which of the two this process is; None: it has been asked to end.

    If its file names no standby any more, this process leads alone: the other one has ended before.
    """
    waiting = WaitingProcess(
        config.name, shell.incarnation, link_limits(config), shell.new_id, config.limits.max_frame_bytes
    )

    def look() -> None:
        setting.refresh()
        waiting.is_alone = setting.standby is None

    log.info("%s: waiting to be told whether this process leads", config.name)
    shell.run(waiting, config.hardware, lambda: "waiting to be told whether this process leads", look)
    if waiting.is_alone and not waiting.follows and not waiting.term:
        log.info("%s: leads without a standby", config.name)
        return changed(config, term=0, follows=False)
    if waiting.term:
        log.info("%s: leads in term %d", config.name, waiting.term)
        return changed(config, term=waiting.term, follows=False)
    return changed(config, follows=True) if waiting.follows else None


def become_head(
    config: BrokerConfig, kept: ReplicatedLog, shell: ProcessShell, setting: StandbySetting
) -> BrokerConfig | None:
    """Wait and follow, as far as this process has to, until it leads; None: it has been asked to end before.

    Raises:
        LogDiskError: what is sent cannot be kept here.
        StaleStandbyError: this process has to start over.

    """
    if standby_of(config).waits:
        told = await_role(config, shell, setting)
        if told is None:
            return None
        config = told
    if not standby_of(config).follows:
        return config
    term = follow(config, kept, shell)
    return changed(config, term=term) if term else None


def follow(config: BrokerConfig, kept: ReplicatedLog, shell: ProcessShell) -> int:
    """Follow the head until this process is to lead; returns the term, or 0 if it has been asked to end.

    Raises:
        LogDiskError: what is sent cannot be kept here.
        StaleStandbyError: this process has to start over.

    """
    store = kept.log.store
    for name in store.files.names():
        store.files.remove(name)  # a head sends all of its log to one that comes new
    follower = LogFollower(
        standby_of(config).head, shell.incarnation, store, link_limits(config), shell.new_id,
        config.limits.max_frame_bytes,
    )  # fmt: skip
    kept.log.begin_syncs()
    log.info("standby of %s: following %s", config.name, standby_of(config).head.data)
    try:
        shell.run(
            follower, config.hardware,
            lambda: "" if follower.sync else "the standby has not caught up with its head",
            lambda: kept.log.sync_at_times(time.monotonic()),
            rests=False,
        )  # fmt: skip
    except OSError as error:
        raise LogDiskError(f"the log of {config.name} cannot be followed here: {error}") from error
    if follower.promoted:
        log.info("%s: promoted in term %d, at %s", config.name, follower.promoted, follower.place)
    return follower.promoted
