"""A head that runs and takes on a standby: by its file, once its port is free, in memory and on a disk."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.broker.standby.test_replicated_log import CONFIG, NOTHING, WORD, on_disk
from tests.broker.standby.test_standby_setting import PLAIN

from plimsoll.broker.network.socket_lane import EndpointError
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.standby.running_head import RunningHead
from plimsoll.broker.standby.standby_setting import StandbySetting
from plimsoll.broker.storage.log_disk import LogDisk
from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol.wire import Info

STANDBY = Info("h", "head", 900)


class Loop:
    """What a running head needs of its loop and of its sockets."""

    def __init__(self, disk: LogDisk | None) -> None:
        self.disk: LogDisk | ReplicatedLog | None = disk
        self.bound: list[str] = []
        self.is_free = True
        self.control = SimpleNamespace(bind=self._bind)

    def keep(self, kept: ReplicatedLog) -> None:
        self.disk = kept

    def _bind(self, endpoint: str) -> None:
        if not self.is_free:
            raise EndpointError(98, f"cannot listen on {endpoint}: it is in use")
        self.bound.append(endpoint)


class Rig:
    def __init__(self, path: Path, disk: LogDisk | None = None) -> None:
        self.file = path / "config.json"
        self.write(PLAIN)
        recovered = None if disk is None else disk.recover()
        self.head = Head(PLAIN, 100, itertools.count(1).__next__, recovered)
        if disk is not None:
            disk.attach(self.head, 0.0)
        self.head.startup.lease_passed()
        self.loop = Loop(disk)
        found: Any = self.loop
        self.running = RunningHead(
            PLAIN, self.head, found, found, StandbySetting(self.file, PLAIN), itertools.count(1).__next__
        )

    def write(self, config: BrokerConfig) -> None:
        self.file.write_bytes(configuration.encode(config))

    @property
    def kept(self) -> ReplicatedLog:
        assert isinstance(self.loop.disk, ReplicatedLog)
        return self.loop.disk


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_as_long_as_the_file_names_none_nothing_changes(rig: Rig):
    rig.running.look()
    assert (rig.loop.disk, rig.loop.bound, rig.head.journal, rig.head.info.silence_ms) == (None, [], None, 0)


def test_a_log_in_memory_is_in_segments_before_a_standby_gets_any_of_it(rig: Rig):
    for _ in range(20):
        rig.head.distributor.log_uncertainty("")
    rig.write(CONFIG)
    rig.running.look()
    feed = rig.kept.feed
    assert feed is not None
    assert (rig.loop.bound, feed.term, feed.incarnation, feed.store) == (["tcp://127.0.0.1:0"], 3, 100, None)
    assert rig.head.info.silence_ms > 0, "peers learn when another process may lead"
    rig.kept.end_round(WORD, 1.0)
    assert rig.kept.released() == [WORD], "it is alone"
    assert (feed.store is not None, rig.head.journal is not None, rig.kept.log.store.position) == (True, True, 20)
    whole = CONFIG.limits.log_bytes
    assert rig.head.log.limit_bytes + rig.kept.log.store.size == whole, "it takes no more memory than before"
    assert feed.admits(STANDBY) == ""
    rig.running.look()
    assert rig.loop.bound == ["tcp://127.0.0.1:0"]


def test_a_port_that_is_not_free_is_tried_again(rig: Rig):
    rig.loop.is_free = False
    rig.write(CONFIG)
    rig.running.look()
    assert rig.loop.disk is None
    rig.loop.is_free = True
    rig.running.look()
    assert rig.kept.feed is not None


def test_a_term_that_the_file_has_later_counts_and_no_other_after_it(rig: Rig):
    assert CONFIG.standby is not None
    for term, expected in ((0, 0), (4, 4), (5, 4)):
        rig.write(msgspec.structs.replace(CONFIG, standby=msgspec.structs.replace(CONFIG.standby, term=term)))
        rig.running.look()
        assert rig.kept.feed is not None
        assert rig.kept.feed.term == expected


def test_a_file_that_names_none_any_more_admits_none(rig: Rig):
    rig.write(CONFIG)
    rig.running.look()
    rig.write(PLAIN)
    assert rig.kept.feed is not None
    assert "names no standby" in rig.kept.feed.admits(STANDBY)
    rig.running.look()
    assert rig.head.info.silence_ms == rig.head.handshakes.info.silence_ms == 0, "no other process may lead any more"
    rig.write(CONFIG)
    assert rig.kept.feed.admits(STANDBY) == ""
    rig.running.look()
    assert rig.head.info.silence_ms == rig.head.handshakes.info.silence_ms > 0


def test_a_log_on_a_disk_goes_on_and_what_it_holds_comes_out_in_order(tmp_path: Path):
    config = on_disk(tmp_path / "log", may_lag=False).disk_log
    assert config is not None
    disk = LogDisk(config, "h")
    try:
        rig = Rig(tmp_path, disk)
        rig.head.distributor.log_uncertainty("")
        disk.end_round(WORD, 0.0)
        rig.write(CONFIG)
        rig.running.look()
        assert (rig.kept.log, rig.kept.feed is not None and rig.kept.feed.store) == (disk, disk.store)
        rig.kept.end_round(NOTHING, 0.1)
        assert rig.kept.flush() == [WORD]
    finally:
        disk.close()


def test_confirm_is_as_the_file_says_now_and_as_it_said_when_a_process_began_to_lead(tmp_path: Path):
    both, either = (on_disk(tmp_path / "log", may_lag=may_lag) for may_lag in (False, True))
    assert both.disk_log is not None
    disk = LogDisk(both.disk_log, "h")
    try:
        rig = Rig(tmp_path, disk)
        for config, expected in ((either, True), (both, False)):
            rig.write(config)
            rig.running.look()
            assert rig.kept.may_lag is expected
        rig.write(either)
        found: Any = rig.loop
        RunningHead(both, rig.head, found, found, StandbySetting(rig.file, both), itertools.count(1).__next__)
        assert rig.kept.may_lag, "it may have followed for long since it was started"
    finally:
        disk.close()
