"""A log of which memory has the end and the disk all: reading does not show where one begins."""

from __future__ import annotations

import pytest
from tests.core.head.durability.conftest import EMPTY, MemoryFiles, own, pub

from plimsoll.core.head.durability.durable_log import DurableLog
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.log import LogEntry


@pytest.fixture
def store(files: MemoryFiles) -> LogStore:
    store = LogStore(files, "h", 1 << 20, 4096)
    store.recover()
    store.begin(EMPTY)
    return store


def log_of(store: LogStore, count: int, limit: int = 3000) -> DurableLog:
    """A log of `count` publications, all written."""
    log = DurableLog(limit, store, first=store.first, last=store.position, gone={})
    for position in range(1, count + 1):
        log.append_publication(pub(position, position), ("h", 1), position)
        if store.is_full:
            store.begin(EMPTY)
        store.write([own(position, position)])
        log.wrote(store.position)
    return log


def test_what_memory_has_no_room_for_is_read_from_the_disk(store: LogStore):
    log = log_of(store, 100)
    assert log.first == 1
    assert 80 < log.memory_first <= 100
    assert log.bytes <= 3000
    assert [(at, entry.last[0][1]) for at, entry in log.after(0)] == [(at, at) for at in range(1, 101)]
    assert [at for at, _ in log.after(95)] == [96, 97, 98, 99, 100]
    for position in (1, 50, 51, log.memory_first - 1, log.memory_first, 100):
        entry = log.get(position)
        assert entry is not None
        assert entry.record == pub(position, position)
    assert log.get(101) is None


def test_nothing_leaves_memory_that_is_not_written(store: LogStore):
    log = DurableLog(1000, store, first=1, last=0, gone={})
    for position in range(1, 50):
        log.append_publication(pub(position, position), ("h", 1), position)
    assert log.memory_first == 1
    assert [at for at, _ in log.after(0)] == list(range(1, 50))


def test_a_round_that_logs_more_than_memory_takes_leaves_it_when_it_is_written(store: LogStore):
    log = DurableLog(1000, store, first=1, last=0, gone={})
    for position in range(1, 50):
        log.append_publication(pub(position, position), ("h", 1), position)
    store.write([own(position, position) for position in range(1, 50)])
    assert log.bytes > 1000
    log.wrote(store.position)
    assert log.bytes <= 1000, "it does not wait for the next publication, which may be long in coming"
    assert [at for at, _ in log.after(0)] == list(range(1, 50))


def test_what_the_disk_does_not_keep_is_a_gap_with_its_offsets(store: LogStore):
    log = log_of(store, 100)
    log.removed(40, {("h", 1): 39})
    assert log.first == 40
    assert log.get(39) is None
    assert [at for at, _ in log.after(0)] == list(range(40, 101))
    assert log.lost(1, 39) == {("h", 1): 39}
    assert log.lost(1, 20) == {}, "it is not known what of an origin lies there"
    log.removed(30, {})
    assert log.first == 40


def test_what_cannot_be_read_ends_a_reading_and_is_given_up(store: LogStore, files: MemoryFiles):
    log = log_of(store, 100)
    damaged, after = store.segments[1], min(store.segments[2].first, log.memory_first)
    files.files[damaged.name][damaged.end // 2] ^= 1
    found = [at for at, _ in log.after(0)]
    assert found == list(range(1, found[-1] + 1))
    assert found[-1] < after - 1
    assert log.first == after, "a reader that goes on from where this ended gets a gap"
    assert log.unreadable > 0
    assert [at for at, _ in log.after(found[-1])] == list(range(after, 101))
    assert log.get(found[-1]) is None


def test_gaps_are_entries_too(store: LogStore):
    log = DurableLog(10_000, store, first=1, last=0, gone={})
    assert log.append(LogEntry(b"gap", (), True)) == 1
    entry = log.get(1)
    assert entry is not None
    assert entry.is_gap
