"""The threads that sync: one sync for all rounds before it, some at once, and no more after a failure."""

from __future__ import annotations

import errno
import queue
import select
import threading
from collections.abc import Iterator

import pytest

from plimsoll.broker.storage.log_syncer import LogSyncer

SECONDS = 300.0


class Disk:
    """Syncs that wait until the test lets them go on."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = False
        self.threads: list[int] = []

    def sync(self, thread: int) -> None:
        self.threads.append(thread)
        self.began.release()
        assert self.go_on.acquire(timeout=SECONDS)
        if self.fails:
            raise OSError(errno.EIO, "broken")


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def syncer(disk: Disk) -> Iterator[LogSyncer]:
    found = LogSyncer(disk, at_once=1)
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


def test_a_failure_wakes_a_loop_that_has_waited_for_the_sync(syncer: LogSyncer, disk: Disk):
    disk.fails = True
    syncer.ask(1)
    assert disk.began.acquire(timeout=SECONDS)
    waiting = threading.Thread(target=syncer.wait_asked, args=(1, SECONDS))
    waiting.start()
    while not syncer._waiters:
        assert waiting.is_alive()
    disk.go_on.release()
    waiting.join(SECONDS)
    assert select.select([syncer.descriptor], [], [], SECONDS)[0], "it has to end, and not after its next rest"


def test_a_wait_is_bounded(syncer: LogSyncer):
    assert not syncer.wait(1, 0.01)


class ThreadDisk:
    """Syncs of which each waits by itself until the test lets it go on, or fail."""

    def __init__(self, threads: int) -> None:
        self.began: queue.Queue[int] = queue.Queue()
        self.go_on = [threading.Semaphore(0) for _ in range(threads)]
        self.failing: set[int] = set()
        self.order: list[int] = []

    def sync(self, thread: int) -> None:
        self.order.append(thread)
        self.began.put(thread)
        assert self.go_on[thread].acquire(timeout=SECONDS)
        if thread in self.failing:
            raise OSError(errno.EIO, f"thread {thread}")


@pytest.fixture
def threads() -> Iterator[tuple[LogSyncer, ThreadDisk]]:
    disk = ThreadDisk(2)
    syncer = LogSyncer(disk, at_once=2)
    syncer.start()
    yield syncer, disk
    for each in disk.go_on:
        each.release(10)
    syncer.close()


def begin(syncer: LogSyncer, disk: ThreadDisk, number: int) -> int:
    """Ask for the sync of a round; returns the thread that has begun with it."""
    syncer.ask(number)
    return disk.began.get(timeout=SECONDS)


def test_a_round_does_not_wait_for_the_rest_of_a_sync_that_is_going_on(threads: tuple[LogSyncer, ThreadDisk]):
    syncer, disk = threads
    first, second = begin(syncer, disk, 1), begin(syncer, disk, 2)
    assert first != second
    disk.go_on[second].release()
    assert syncer.wait_asked(2, SECONDS), "the later sync covers both rounds"
    assert syncer.done == 2
    disk.go_on[first].release()
    assert begin(syncer, disk, 3) in (first, second)
    assert syncer.done == 2, "a sync that began earlier takes nothing back"


def test_with_all_threads_busy_the_next_sync_covers_all_rounds_that_wait(threads: tuple[LogSyncer, ThreadDisk]):
    syncer, disk = threads
    first = begin(syncer, disk, 1)
    begin(syncer, disk, 2)
    syncer.ask(3)
    syncer.ask(4)
    assert len(disk.order) == 2
    disk.go_on[first].release()
    assert disk.began.get(timeout=SECONDS) == first
    assert syncer.done == 1
    disk.go_on[first].release()
    assert syncer.wait_asked(4, SECONDS)
    assert (syncer.done, syncer.syncs) == (4, 2)


def test_nothing_is_safe_once_one_of_two_has_failed(threads: tuple[LogSyncer, ThreadDisk]):
    syncer, disk = threads
    first, second = begin(syncer, disk, 1), begin(syncer, disk, 2)
    disk.failing.add(first)
    disk.go_on[first].release()
    assert not syncer.wait_asked(2, SECONDS)
    disk.go_on[second].release()
    assert select.select([syncer.descriptor], [], [], SECONDS)[0]
    assert syncer.failed is not None
    assert f"thread {first}" in str(syncer.failed)


def test_a_wait_for_a_round_that_was_asked_for_asks_for_nothing(threads: tuple[LogSyncer, ThreadDisk]):
    syncer, disk = threads
    assert not syncer.wait_asked(1, 0.001)
    assert disk.order == []
