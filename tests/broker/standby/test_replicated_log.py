"""Rounds of a head with a standby: what they have to say is held until the standby has it, in memory and on a disk."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest

from plimsoll.broker.standby import standby_process
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.storage.log_disk import LogDisk, RoundOutput
from plimsoll.core.config import BrokerConfig, DiskLog, HeadStandby, LinkSecurity, PeerBroker
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_feed import LogFeed

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="tcp://127.0.0.1:0", control="tcp://127.0.0.1:0",
    security=LinkSecurity(plain=True),
    standby=HeadStandby(term=3, head=PeerBroker(name="h", data="tcp://127.0.0.1:1"), control="tcp://127.0.0.1:0"),
)  # fmt: skip
WORD = RoundOutput([], [], [("peer", b"accepted")])
NOTHING = RoundOutput([], [], [])


def begun(config: BrokerConfig) -> tuple[ReplicatedLog, Head, LogFeed]:
    kept = standby_process.replicated_log(config)
    head = Head(standby_process.entries_at_hand(config), 100, itertools.count(1).__next__, kept.recover())
    kept.attach(head, 0.0)
    feed = standby_process.make_feed(config, 100, itertools.count(1).__next__)
    kept.begin_feed(feed)
    kept.end_round(NOTHING, 0.0)
    return kept, head, feed


@pytest.fixture
def memory():
    kept, head, feed = begun(CONFIG)
    yield kept, head, feed
    kept.close()


def test_a_head_alone_says_what_it_has_to_say_at_once(memory):
    kept, head, feed = memory
    assert feed.term == 3
    head.distributor.log_uncertainty("")
    kept.end_round(WORD, 1.0)
    assert kept.released() == [WORD]
    assert not kept.is_waiting


def test_with_a_standby_in_sync_it_is_held_in_order_until_that_has_it(memory, monkeypatch: pytest.MonkeyPatch):
    kept, head, feed = memory
    safe = feed.end
    monkeypatch.setattr(feed, "is_safe", lambda place: place <= safe)
    first, second = WORD, RoundOutput([], [], [("peer", b"heartbeat")])
    head.distributor.log_uncertainty("")
    kept.end_round(first, 1.0)
    kept.end_round(second, 1.1)
    assert kept.released() == []
    assert (kept.is_waiting, kept.status()["standby_rounds_held"]) == (True, 2)
    assert kept.flush() == [], "what the standby does not have is never said"
    safe = feed.end
    assert kept.released() == [first, second]


def test_its_memory_is_shared_by_entries_and_segments(memory):
    kept, head, _ = memory
    whole = CONFIG.limits.log_bytes
    assert head.log.limit_bytes + kept.log.store.size == whole
    assert kept.descriptor < 0, "nothing is waited for"


def on_disk(path: Path, *, may_lag: bool) -> BrokerConfig:
    return msgspec.structs.replace(
        CONFIG, disk_log=DiskLog(directory=str(path), size_bytes=1 << 20, sync="Always", may_lag=may_lag)
    )


@pytest.mark.parametrize("may_lag", [False, True])
def test_a_disk_is_waited_for_as_well_or_while_the_head_is_alone(tmp_path: Path, may_lag: bool):
    kept, _, feed = begun(on_disk(tmp_path, may_lag=may_lag))
    try:
        assert isinstance(kept.log, LogDisk)
        assert kept.log.is_always
        feed.in_sync = 7
        kept.end_round(NOTHING, 1.0)
        assert kept.log.is_relaxed is may_lag
        feed.in_sync = 0
        kept.end_round(NOTHING, 1.1)
        assert not kept.log.is_relaxed
    finally:
        kept.close()


def is_synced(path: Path) -> bool:
    """What the log on this disk says: whether all waits for syncs."""
    log = LogDisk(DiskLog(directory=str(path), size_bytes=1 << 20), "h")
    try:
        return log.recover().state.epochs[-1].is_synced
    finally:
        log.close()


@pytest.mark.parametrize("ends_as", [False, True])
def test_confirm_is_changed_while_the_head_runs_and_the_log_says_so_before_it_counts(tmp_path: Path, ends_as: bool):
    kept, head, feed = begun(on_disk(tmp_path, may_lag=not ends_as))
    disk, journal = kept.log, head.journal
    try:
        assert isinstance(disk, LogDisk)
        assert journal is not None
        assert disk.syncer.wait(1, 300.0)
        feed.in_sync = 7
        kept.end_round(NOTHING, 1.0)
        assert (disk.is_relaxed, disk.rounds_held) == (not ends_as, 0)
        kept.confirm(may_lag=ends_as)
        kept.confirm(may_lag=ends_as)
        assert len(journal.pending) == 1
        kept.end_round(WORD, 1.1)
        assert (disk.is_relaxed, disk.rounds_held) == (ends_as, 1), "it waits for a sync of what the log says"
        assert kept.status()["log_confirm"] == ("Either" if ends_as else "Both")
        assert disk.syncer.wait(2, 300.0)
        assert journal.epochs.epochs[-1].is_synced is not ends_as, "as the next segment will have it"
        assert len(journal.epochs.epochs) == 1
    finally:
        kept.close()
    assert is_synced(tmp_path) is not ends_as


def test_a_log_in_memory_has_no_disk_to_wait_for(memory):
    kept, head, _ = memory
    kept.confirm(may_lag=False)
    assert head.journal is not None
    assert (head.journal.pending, kept.may_lag, "log_confirm" in kept.status()) == ([], True, False)
