"""A real disk that is full, slow or damaged, and a log that is copied and put back: docs/durability.md."""

from __future__ import annotations

import errno
import itertools
import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.core.head.durability.conftest import pub

from plimsoll.broker.storage.log_disk import LogDisk, RoundOutput
from plimsoll.broker.storage.log_folder import DAMAGED, LogFolder
from plimsoll.core.config import BrokerConfig, BrokerLimits, DiskLog, LinkSecurity
from plimsoll.core.head.durability.commit import RETRY_SECONDS
from plimsoll.core.head.durability.damage_note import DAMAGE_NOTE
from plimsoll.core.head.durability.segments import read_promise
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="tcp://127.0.0.1:0", control="tcp://127.0.0.1:0",
    security=LinkSecurity(plain=True), limits=BrokerLimits(log_bytes=2_000),
)  # fmt: skip
NOTHING = RoundOutput([], [], [])
SEGMENT_BYTES = 4_096
LOG_BYTES = 8 * SEGMENT_BYTES
SECONDS = 300.0


class Life:
    """A head on the log in this folder, from its start to its end."""

    def __init__(self, path: Path, epoch: int, known: tuple[int, int] = (0, 0), name: str = "h") -> None:
        config = DiskLog(
            directory=str(path), size_bytes=LOG_BYTES, known_epoch=known[0], known_position=known[1]
        )  # fmt: skip
        self.name, self.disk = name, LogDisk(config, name)
        config_of_head = msgspec.structs.replace(CONFIG, name=name)
        self.head = Head(config_of_head, epoch, itertools.count(1).__next__, self.disk.recover())
        self.disk.attach(self.head, 0.0)
        self.round(0)

    def round(self, publications: int, now: float = 0.0) -> None:
        """Log some, as the distributor does, and end the round."""
        for _ in range(publications):
            distributor = self.head.distributor
            distributor.offset += 1
            record = pub(self.head.log.last + 1, distributor.offset, head=self.name, epoch=self.head.epoch)
            self.head.log.append_publication(record, (self.name, self.head.epoch), distributor.offset)
            assert self.head.journal is not None
            self.head.journal.logged(record)
        self.disk.end_round(NOTHING, now)

    def end(self) -> None:
        self.disk.flush()
        self.disk.close()


@contextmanager
def life(path: Path, epoch: int, known: tuple[int, int] = (0, 0), name: str = "h") -> Iterator[Life]:
    one = Life(path, epoch, known, name)
    try:
        yield one
    finally:
        one.end()


@contextmanager
def no_new_segment() -> Iterator[None]:
    """No file may become as large as a segment is made; what is there can be filled, as on a disk without room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SEGMENT_BYTES + 900, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def positions(head: Head) -> list[int]:
    """What a reader is given of the log, from its beginning."""
    return [position for position, _ in head.log.after(0)]


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def test_a_full_disk_refuses_publications_and_goes_on_when_there_is_room(tmp_path: Path):
    with life(tmp_path / "log", 1) as one:
        with no_new_segment():
            while not one.disk.store.is_full:
                one.round(5)
            assert "no room" in str(one.disk.status()["log_fault"])
            assert one.head.journal is not None
            assert one.head.journal.refusing
            one.round(0, RETRY_SECONDS / 2)
        one.round(0, 2 * RETRY_SECONDS)
        assert (one.disk.status()["log_fault"], one.head.journal.refusing) == ("", "")
        one.round(5, 2 * RETRY_SECONDS)
        assert len(one.disk.store.segments) == 2
        last = one.head.log.last
    with life(tmp_path / "log", 2) as again:
        assert positions(again.head) == list(range(1, last + 1))


def test_a_slow_disk_says_for_how_long_it_has_been_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with life(tmp_path / "log", 1) as one:
        one.disk.flush()
        may_end, sync, began = threading.Event(), one.disk.folder.sync, threading.Event()

        def slow(thread: int = 0) -> None:
            began.set()
            assert may_end.wait(SECONDS)
            sync(thread)

        monkeypatch.setattr(one.disk.folder, "sync", slow)
        one.round(1)
        assert began.wait(SECONDS)
        first = one.disk.status()["log_sync_waiting_seconds"]
        assert 0.0 < first < one.disk.status()["log_sync_waiting_seconds"]
        may_end.set()
        one.disk.flush()
        assert one.disk.status()["log_sync_waiting_seconds"] == 0.0


def test_damage_in_the_middle_is_found_behind_the_start_and_what_is_behind_it_is_read(tmp_path: Path):
    with life(tmp_path / "log", 1) as one:
        for _ in range(40):
            one.round(5)
        assert len(one.disk.store.segments) > 3
        second, third = one.disk.store.segments[1:3]
    flip(tmp_path / "log" / second.name, second.end // 2)
    with life(tmp_path / "log", 2) as again:
        again.disk.checker._thread.join(SECONDS)
        assert again.disk.checker.remaining_bytes == 0
        again.round(0)
        status = again.disk.status()
        assert (status["log_damages"], status["log_read_faults"], status["log_unchecked_bytes"]) == (0, 1, 0)
        assert positions(again.head) == list(range(third.first, 201))
        assert again.head.log.lost(1, third.first - 1) == {("h", 1): third.first - 1}
        assert not (tmp_path / "log" / second.name).exists()
    with life(tmp_path / "log", 3, known=(2, 200)) as later:
        assert positions(later.head) == list(range(third.first, 201)), "damage is found once"
        assert later.disk.damages == 1, "the status with that position may be older than the damage"
        later.round(1)
    with life(tmp_path / "log", 4, known=(3, 201)) as told:
        assert told.disk.damages == 0


def test_damage_that_cannot_be_noted_is_said_and_noted_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    path, create = tmp_path / "log", LogFolder.create
    with life(path, 1) as one:
        one.round(40)
        one.round(1)
    (path / one.disk.store.segments[-1].name).unlink()

    def full(folder: LogFolder, name: str, size: int) -> None:
        if name == DAMAGE_NOTE:
            raise OSError(errno.ENOSPC, "No space left on device")
        create(folder, name, size)

    with monkeypatch.context() as patched:
        patched.setattr(LogFolder, "create", full)
        again = Life(path, 2)
    assert f"cannot be noted in {DAMAGE_NOTE}: No space left on device" in caplog.text
    assert (again.disk.damages, (path / DAMAGE_NOTE).exists()) == (1, False)
    again.round(1, 2.0)
    again.end()
    with life(path, 3) as later:
        assert later.disk.damages == 1


def test_damage_that_is_met_while_it_is_read_ends_in_what_is_behind_it(tmp_path: Path):
    with life(tmp_path / "log", 1) as one:
        for _ in range(40):
            one.round(5)
        second, third = one.disk.store.segments[1:3]
        flip(tmp_path / "log" / second.name, second.end // 2)
        given = positions(one.head)
        assert given == list(range(1, given[-1] + 1)), "up to the damage, each in its place"
        assert given[-1] < third.first
        assert positions(one.head) == list(range(third.first, 201)), "a reader that goes on gets a gap up to here"
        assert one.disk.status()["log_read_faults"] == 1


def test_a_copy_that_is_put_back_is_as_good_as_what_it_has(tmp_path: Path):
    log, copy = tmp_path / "log", tmp_path / "copy"
    with life(log, 1) as one:
        one.round(40)
    shutil.copytree(log, copy)  # the head is stopped, its folder copied
    with life(log, 2) as one:
        one.round(20)
        assert one.head.log.last == 60
    shutil.rmtree(log)
    shutil.copytree(copy, log)
    with life(log, 3) as restored:
        assert positions(restored.head) == list(range(1, 41))
        known = msg.EdgeReport("", "", msg.Cover(1, [], []), [], head_epoch=1, position=40)
        later = msg.EdgeReport("", "", msg.Cover(1, [], []), [], head_epoch=2, position=60)
        assert restored.head.continuation.for_edge(known) == 40
        assert restored.head.continuation.for_edge(later) is None, "an edge that has had more gets a gap"


@pytest.mark.parametrize(
    ("epoch", "position", "is_less"),
    [(0, 0, False), (1, 40, False), (1, 41, True), (2, 1, True), (2, 60, True), (3, 61, True)],
)
def test_an_older_copy_is_less_than_what_is_known_outside_of_the_folder(
    tmp_path: Path, epoch: int, position: int, is_less: bool
):
    log, copy = tmp_path / "log", tmp_path / "copy"
    with life(log, 1) as one:
        one.round(40)
    shutil.copytree(log, copy)
    with life(log, 2) as one:
        one.round(20)
    shutil.rmtree(log)
    shutil.copytree(copy, log)
    with life(log, 5, known=(epoch, position)) as restored:
        assert restored.head.journal is not None
        assert (restored.disk.status()["log_damages"] == 1, restored.head.journal.is_unsure) == (is_less, is_less)
        last = restored.head.log.last
    with life(log, 6, known=(epoch, position)) as later:
        assert (later.disk.damages == 1) == is_less, "it is not known that anyone has read it"
        assert later.head.journal is not None
        assert not later.head.journal.is_unsure, "the start before has logged the gap"
    with life(log, 7, known=(5, last)) as told:
        assert told.disk.damages == 0


def test_the_log_of_another_head_is_a_loss_though_it_began_later(tmp_path: Path):
    with life(tmp_path / "log", 1) as one:
        one.round(40)
    with life(tmp_path / "other", 2, name="i") as other:
        other.round(60)
    (tmp_path / "log").rename(tmp_path / "aside")
    (tmp_path / "other").rename(tmp_path / "log")
    with life(tmp_path / "log", 3, known=(1, 40)) as one:
        assert one.head.journal is not None
        assert (one.disk.damages, one.head.journal.is_unsure) == (1, True), "the log is that of i"
        one.round(1)
    with life(tmp_path / "log", 4, known=(3, 60)) as again:
        assert again.disk.damages == 0, "the start before has said it"


def test_a_log_is_safe_as_far_as_a_sync_has_ended(tmp_path: Path):
    with life(tmp_path / "log", 1) as one:
        one.round(5)
        assert one.disk.syncer.wait(one.disk._round, SECONDS)
        one.round(0)
        assert one.disk.status()["log_safe_last"] == 5
        one.disk.syncer.close()
        one.round(5)
        assert (one.disk.status()["log_disk_last"], one.disk.status()["log_safe_last"]) == (10, 5)


def test_a_clean_stop_promises_all_and_a_log_that_lost_its_end_says_so(tmp_path: Path):
    path = tmp_path / "log"
    with life(path, 1) as one:
        for _ in range(40):
            one.round(5)
        segment = one.disk.store.segments[-1]
    with life(path, 2) as again:
        assert (again.disk.damages, len(positions(again.head))) == (0, 200)
    (path / segment.name).unlink()
    with life(path, 3) as later:
        assert later.head.journal is not None
        assert (later.disk.status()["log_damages"], later.head.journal.is_unsure) == (1, True)
        assert later.head.log.last < 200


def test_a_second_of_rounds_is_promised_without_a_clean_stop(tmp_path: Path):
    with life(tmp_path / "log", 1) as one:
        one.round(5, 1.0)
        assert one.disk.syncer.wait(one.disk._round, SECONDS)
        one.round(0, 2.0)
        one.round(0, 3.0)
        found = read_promise(one.disk.folder)
        assert found is not None
        assert found.position == 5
        assert found.end <= one.disk.store.place[1]


def test_damaged_segments_are_kept_beside_the_log_while_it_has_room(tmp_path: Path):
    path = tmp_path / "log"
    with life(path, 1) as one:
        for _ in range(40):
            one.round(5)
        first, second = one.disk.store.segments[:2]
        whole = (path / first.name).read_bytes()
    (path / second.name).unlink()
    with life(path, 2) as again:
        assert again.disk.damages == 1
        (kept,) = (path / DAMAGED).iterdir()
        assert kept.read_bytes() == whole
        for _ in range(60):
            again.round(5)
        assert not list((path / DAMAGED).iterdir()), "the log needs the room"
