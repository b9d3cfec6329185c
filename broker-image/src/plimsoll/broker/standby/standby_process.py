"""A process that is a head's standby until it is promoted, and what a head with a standby is made of."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec

from plimsoll.broker.auth.authorized_keys import AuthorizedKeys
from plimsoll.broker.event_loop import BrokerLoop
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.broker.process_watch import ProcessWatch
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.storage.log_disk import LogDisk, LogDiskError
from plimsoll.broker.storage.memory_log import MemoryLog
from plimsoll.core.config import BrokerConfig, HeadStandby
from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.core.transport.overlay_node import link_limits

log = logging.getLogger(__name__)

ENTRIES_SHARE = 4
"""Of the memory of a log without a disk, a fourth keeps entries at hand; the rest are segments."""


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
    size = config.limits.log_bytes - config.limits.log_bytes // ENTRIES_SHARE
    return ReplicatedLog(MemoryLog(config.name, size), may_lag=True)


def entries_at_hand(config: BrokerConfig) -> BrokerConfig:
    """The same configuration for the machine: without a disk its entries share the memory with the segments."""
    if config.disk_log is not None:
        return config
    limits = msgspec.structs.replace(config.limits, log_bytes=max(config.limits.log_bytes // ENTRIES_SHARE, 1))
    return msgspec.structs.replace(config, limits=limits)


def make_feed(config: BrokerConfig, epoch: int, new_id: Callable[[], int]) -> LogFeed:
    """What sends the log of this head to its standby."""
    term = standby_of(config).term
    return LogFeed(config.name, epoch, term, link_limits(config), new_id, config.limits.max_frame_bytes)


def promoted(config: BrokerConfig, term: int) -> BrokerConfig:
    """The configuration of a standby that leads now."""
    return msgspec.structs.replace(config, standby=msgspec.structs.replace(standby_of(config), term=term))


def follow(
    config: BrokerConfig,
    kept: ReplicatedLog,
    sockets: BrokerSockets,
    watch: ProcessWatch,
    incarnation: int,
    new_id: Callable[[], int],
    *,
    authority: AuthorizedKeys | None,
    leave_seconds: float,
) -> int:
    """Follow the head until this process is to lead; returns the term, or 0 if it has been asked to end.

    Raises:
        LogDiskError: what is sent cannot be kept here.
        StaleStandbyError: this process has to start over.

    """
    store = kept.log.store
    for name in store.files.names():
        store.files.remove(name)  # a head sends all of its log to one that comes new
    follower = LogFollower(
        standby_of(config).head, incarnation, store, link_limits(config), new_id, config.limits.max_frame_bytes
    )
    loop = BrokerLoop(follower, sockets, watch, config.hardware, authority=authority, leave_seconds=leave_seconds)
    kept.log.begin_syncs()
    loop.on_usage = lambda usage: kept.log.sync_at_times(time.monotonic())
    log.info("standby of %s: following %s", config.name, standby_of(config).head.data)
    try:
        loop.run()
    except OSError as error:
        raise LogDiskError(f"the log of {config.name} cannot be followed here: {error}") from error
    if follower.promoted:
        log.info("%s: promoted in term %d, at %s", config.name, follower.promoted, follower.place)
    return follower.promoted
