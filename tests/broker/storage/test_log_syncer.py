"""The thread that syncs: one sync for all rounds before it, and no more after a failure."""

from __future__ import annotations

import errno
import select
import threading
from collections.abc import Iterator

import pytest

from plimsoll.broker.storage.log_syncer import LogSyncer

SECONDS = 20.0


class Disk:
    """Syncs that wait until the test lets them go on."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = False

    def sync(self) -> None:
        self.began.release()
        assert self.go_on.acquire(timeout=SECONDS)
        if self.fails:
            raise OSError(errno.EIO, "broken")


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def syncer(disk: Disk) -> Iterator[LogSyncer]:
    found = LogSyncer(disk)
    found.start()
    yield found
    disk.go_on.release(10)
    found.close()


def test_one_sync_covers_all_rounds_that_were_written_before_it_began(syncer: LogSyncer, disk: Disk):
    syncer.ask(1)
    assert disk.began.acquire(timeout=SECONDS)
    for number in (2, 3, 4):
        syncer.ask(number)
    assert syncer.done == 0
    disk.go_on.release()
    assert disk.began.acquire(timeout=SECONDS)
    assert syncer.done == 1, "what was written during a sync needs another one"
    disk.go_on.release()
    assert syncer.wait(4, SECONDS)
    assert (syncer.done, syncer.syncs) == (4, 2)
    assert syncer.longest_seconds <= syncer.sync_seconds


def test_its_descriptor_wakes_a_loop(syncer: LogSyncer, disk: Disk):
    syncer.ask(1)
    disk.go_on.release()
    assert select.select([syncer.descriptor], [], [], SECONDS)[0]
    syncer.clear()
    assert not select.select([syncer.descriptor], [], [], 0)[0]


def test_nothing_is_safe_after_a_failure(syncer: LogSyncer, disk: Disk):
    disk.fails = True
    disk.go_on.release()
    assert not syncer.wait(1, SECONDS)
    assert syncer.failed is not None
    assert syncer.done == 0


def test_a_wait_is_bounded(syncer: LogSyncer):
    assert not syncer.wait(1, 0.01)
