"""Rounds of a head with a disk: what is written, when a segment begins, and what happens without room for one."""

from __future__ import annotations

import errno
import itertools

import pytest
from tests.core.head.durability.conftest import MemoryFiles, pub

from plimsoll.core.config import BrokerConfig, BrokerLimits, LinkSecurity
from plimsoll.core.head.durability.commit import RETRY_SECONDS, RoundCommit, recovered_log
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="sim://d", control="sim://c", security=LinkSecurity(plain=True),
    limits=BrokerLimits(log_bytes=5_000),
)  # fmt: skip


def start(
    files: MemoryFiles, epoch: int, boot: str = "", *, is_synced: bool = True, size: int = 100_000
) -> tuple[Head, RoundCommit]:
    store = LogStore(files, "h", size, 4096)
    found = recovered_log(store, store.recover(), is_synced=is_synced, boot=boot)
    head = Head(CONFIG, epoch, itertools.count(1).__next__, found)
    commit = RoundCommit(store, head)
    commit.begin(0.0)
    commit.write(0.0)
    return head, commit


def log(head: Head, count: int) -> None:
    """Log publications as the distributor does."""
    for _ in range(count):
        head.distributor.offset += 1
        record = pub(head.log.last + 1, head.distributor.offset, epoch=head.epoch)
        head.log.append_publication(record, ("h", head.epoch), head.distributor.offset)
        assert head.journal is not None
        head.journal.logged(record)


def test_a_head_goes_on_with_what_rounds_have_written(files: MemoryFiles):
    head, commit = start(files, 5)
    for _ in range(40):
        log(head, 3)
        assert commit.write(0.0)
    assert not commit.write(0.0), "an empty round writes nothing"
    assert len(commit.store.segments) > 2
    log(head, 7)  # not written
    head, commit = start(files, 8)
    assert (head.log.first, head.log.last) == (1, 120)
    assert head.continuation.memory == 5
    assert [at for at, _ in head.log.after(0)] == list(range(1, 121))
    log(head, 1)
    assert head.log.last == 121, "positions go on"


def test_the_oldest_segments_go_with_their_offsets(files: MemoryFiles):
    head, commit = start(files, 5, size=40_000)
    for _ in range(400):
        log(head, 2)
        commit.write(0.0)
    assert head.log.first > 100
    assert head.log.gone == {("h", 5): head.log.first - 1}
    assert [at for at, _ in head.log.after(0)] == list(range(head.log.first, 801))


def test_without_room_publications_are_refused_until_there_is_some(files: MemoryFiles):
    head, commit = start(files, 5)
    assert head.journal is not None
    files.is_full = True
    now = 1.0
    for _ in range(30):
        log(head, 3)
        commit.write(now)
    assert "no room" in head.journal.refusing
    assert commit.refused == head.journal.refusing
    files.is_full = False
    commit.write(now + RETRY_SECONDS / 2)
    assert head.journal.refusing, "it tries again after a while"
    commit.write(now + RETRY_SECONDS)
    assert (head.journal.refusing, commit.refused) == ("", "")
    assert [at for at, _ in head.log.after(0)] == list(range(1, 91)), "nothing that was accepted is lost"


def test_a_log_without_room_for_its_first_segment_does_not_begin(files: MemoryFiles):
    files.is_full = True
    with pytest.raises(OSError, match="has no room for its log"):
        start(files, 5)


@pytest.mark.parametrize(
    ("before", "boots", "is_whole"),
    [(True, ("a", "b"), True), (False, ("a", "a"), True), (False, ("a", "b"), False), (False, ("", ""), False)],
)
def test_what_was_not_synced_outlasts_the_process_alone(
    files: MemoryFiles, before: bool, boots: tuple[str, str], is_whole: bool
):
    head, commit = start(files, 5, boots[0], is_synced=before)
    log(head, 2)
    commit.write(0.0)
    head, _ = start(files, 6, boots[1])
    assert head.continuation.memory == (5 if is_whole else 6)
    assert head.log.last == (2 if is_whole else 3), "else a gap stands behind what is known"


def test_a_head_in_memory_has_nothing_to_write(files: MemoryFiles):
    with pytest.raises(TypeError, match="in memory"):
        RoundCommit(LogStore(files, "h", 1000), Head(CONFIG, 1, lambda: 1))


def test_a_segment_is_safe_before_there_is_a_newer_one(files: MemoryFiles):
    head, commit = start(files, 5)
    while len(commit.store.segments) < 3:
        log(head, 3)
        commit.write(0.0)
    settled = dict(files.settled)
    for segment in commit.store.segments[:-1]:
        safe = settled[segment.name].rstrip(b"\0")
        assert len(safe) > 4000, "all but the seal"
        assert bytes(files.files[segment.name]).startswith(safe)


def test_a_segment_that_cannot_be_made_safe_ends_the_head(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch):
    head, commit = start(files, 5)

    def fail(name: str) -> None:
        raise OSError(errno.EIO, f"{name}: input/output error")

    monkeypatch.setattr(files, "settle", fail)
    log(head, 100)
    with pytest.raises(OSError, match="input/output"):
        commit.write(0.0)
    assert not commit.refused, "a disk that has failed is not one that is full"
