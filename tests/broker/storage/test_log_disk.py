"""Rounds of a head on a real disk: held until they are safe, found again, and an end where the disk fails."""

from __future__ import annotations

import errno
import itertools
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.broker.storage import log_disk
from plimsoll.broker.storage.log_disk import LogDisk, LogDiskError, RoundOutput
from plimsoll.core.config import BrokerConfig, DiskLog, LinkSecurity
from plimsoll.core.head.machine import Head

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="tcp://127.0.0.1:0", control="tcp://127.0.0.1:0",
    security=LinkSecurity(plain=True),
)  # fmt: skip
WORD = RoundOutput([], [], [("peer", b"accepted")])
SECONDS = 300.0


class Fleet:
    """Heads that use one folder one after the other."""

    def __init__(self, path: Path) -> None:
        self.path, self.epoch = path, 0
        self.disks: list[LogDisk] = []

    def start(self, sync: str = "Always", known: tuple[int, int] = (0, 0)) -> tuple[LogDisk, Head]:
        self.epoch += 1
        config = DiskLog(
            directory=str(self.path), size_bytes=1 << 20, sync=sync, known_epoch=known[0], known_position=known[1]  # type: ignore[arg-type]  # one of the two
        )  # fmt: skip
        disk = LogDisk(config, "h")
        self.disks.append(disk)
        head = Head(CONFIG, self.epoch, itertools.count(1).__next__, disk.recover())
        disk.attach(head, 0.0)
        disk.end_round(RoundOutput([], [], []), 0.0)
        assert disk.syncer.wait(1, SECONDS)
        return disk, head

    def stop(self) -> None:
        while self.disks:
            self.disks.pop().close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path / "log")
    yield found
    found.stop()


def log(head: Head) -> None:
    head.distributor.log_uncertainty("")


def test_output_waits_for_the_sync_of_its_round_and_keeps_its_order(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    disk, head = fleet.start()
    may_end = threading.Semaphore(0)
    sync = disk.folder.sync

    def slow(thread: int = 0) -> None:
        assert may_end.acquire(timeout=SECONDS)
        sync(thread)

    monkeypatch.setattr(disk.folder, "sync", slow)
    log(head)
    disk.end_round(WORD, 0.0)
    later = RoundOutput([], [], [("peer", b"later")])
    disk.end_round(later, 0.0)  # it has logged nothing, and stays behind the other
    assert disk.released() == []
    assert disk.status()["log_rounds_held"] == 2
    may_end.release()
    assert disk.flush() == [WORD, later]
    assert disk.status()["log_disk_last"] == 1


def test_with_interval_output_waits_for_gaps_only(fleet: Fleet):
    disk, head = fleet.start("Interval")
    disk.end_round(WORD, 0.0)
    assert disk.released() == [WORD]
    log(head)
    disk.end_round(WORD, 0.0)
    assert disk.flush() == [WORD]


def test_a_head_that_starts_again_goes_on(fleet: Fleet):
    disk, head = fleet.start()
    for _ in range(5):
        log(head)
    disk.end_round(WORD, 0.0)
    disk.flush()
    fleet.stop()
    disk, head = fleet.start()
    assert (head.log.last, head.continuation.memory) == (5, 1)
    assert "positions 1 to 5" in disk.found


def test_a_log_whose_files_are_all_gone_is_damage(fleet: Fleet):
    disk, head = fleet.start()
    assert disk.damages == 0, "there was no log before"
    log(head)
    disk.end_round(WORD, 0.0)
    disk.flush()
    fleet.stop()
    shutil.rmtree(fleet.path)
    disk, head = fleet.start()
    assert (disk.status()["log_damages"], head.log.last, head.continuation.memory) == (1, 0, 2)
    fleet.stop()
    disk, head = fleet.start()
    assert (disk.damages, head.continuation.memory) == (1, 2), "the new one is whole, and nobody is known to know"
    fleet.stop()
    disk, head = fleet.start(known=(2, 1))
    assert (disk.damages, head.continuation.memory) == (0, 2), "a status has come from the start that found it"


def test_what_was_answered_just_before_a_kill_is_missed_by_the_next_start(fleet: Fleet):
    """Nothing but the answer has been sent: no later batch, no sync of the note, and no second has passed."""
    disk, head = fleet.start()
    log(head)
    disk.end_round(WORD, 0.0)
    assert disk.await_safe(SECONDS)
    assert disk.released() == [WORD]
    (name,) = (each.name for each in disk.store.segments)
    end = disk.store.segments[-1].end
    fleet.stop()
    file = fleet.path / name
    data = file.read_bytes()
    file.write_bytes(data[: end - 40] + bytes(len(data) - end + 40))
    disk, head = fleet.start()
    assert (disk.damages, head.continuation.memory) == (1, 2)


@pytest.mark.parametrize(("boot", "memory"), [("", 1), ("other", 2)])
def test_what_was_not_synced_is_lost_with_the_system_alone(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, memory: int
):
    fleet.start("Interval")
    fleet.stop()
    if boot:
        (tmp_path / "boot").write_text(boot)
        monkeypatch.setattr(log_disk, "BOOT_ID", tmp_path / "boot")
    _, head = fleet.start("Interval")
    assert head.continuation.memory == memory


def test_a_failed_sync_is_the_end(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    disk, head = fleet.start()

    def fail(thread: int = 0) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(disk.folder, "sync", fail)
    log(head)
    disk.end_round(WORD, 0.0)
    disk.syncer.wait(2, SECONDS)
    with pytest.raises(LogDiskError, match=r"cannot be synced: .*input/output"):
        disk.released()


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_failed_write_is_the_end_and_nothing_of_its_round_is_sent(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, code: int
):
    disk, head = fleet.start()

    def fail(name: str, start: int, data: bytes) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(disk.folder, "write", fail)
    log(head)
    with pytest.raises(LogDiskError, match="cannot be written"):
        disk.end_round(WORD, 0.0)
    assert disk.released() == []


def test_a_log_that_is_none_says_so(fleet: Fleet):
    fleet.path.mkdir()
    (fleet.path / "x.log").write_text("?")
    with pytest.raises(LogDiskError, match="not a segment"):
        fleet.start()
