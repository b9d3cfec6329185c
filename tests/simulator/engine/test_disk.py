"""A disk that stops with its machine: what was synced stays, the rest is lost or torn."""

from __future__ import annotations

import random

import pytest

from plimsoll.simulator.engine.disk import DiskQuality, SimulatedDisk


def disk_of(seed: int = 1, size: int = 0) -> SimulatedDisk:
    disk = SimulatedDisk(random.Random(seed), DiskQuality(bytes=size))
    disk.create("a.log", 100)
    return disk


def test_what_is_synced_stays():
    disk = disk_of()
    disk.write("a.log", 0, b"one")
    disk.sync(disk.writes)
    disk.stop()
    assert disk.read("a.log", 0, 4) == b"one\0"
    assert (disk.lost, disk.torn) == (0, 0)


def test_of_the_rest_a_beginning_stays_and_the_next_may_be_torn():
    ends = set()
    for seed in range(60):
        disk = disk_of(seed)
        for i in range(3):
            disk.write("a.log", 10 * i, b"x" * 10)
        disk.stop()
        found = disk.read("a.log", 0, 100).rstrip(b"\0")
        assert set(found) <= {ord("x")}, "no hole is before what stays"
        ends.add(len(found))
    assert {0, 10, 20, 30} <= ends
    assert any(end % 10 for end in ends), "no write was torn"


def test_a_sync_covers_the_writes_before_it():
    disk = disk_of()
    disk.write("a.log", 0, b"1")
    through = disk.writes
    disk.write("a.log", 1, b"2")
    disk.sync(through)
    disk.rng = random.Random(0)
    disk.stop()
    assert disk.read("a.log", 0, 1) == b"1"


def test_a_newer_file_may_be_written_back_before_an_older_one_unless_that_is_settled():
    def ends(*, settles: bool) -> set[tuple[bytes, bytes]]:
        found = set()
        for seed in range(40):
            disk = disk_of(seed)
            disk.write("a.log", 0, b"old")
            if settles:
                disk.settle("a.log")
            disk.create("b.log", 100)
            disk.write("b.log", 0, b"new")
            disk.stop()
            found.add((disk.read("a.log", 0, 3), disk.read("b.log", 0, 3)))
        return found

    assert (bytes(3), b"new") in ends(settles=False)
    assert {old for old, _ in ends(settles=True)} == {b"old"}


def test_files_are_made_and_removed_at_once():
    disk = disk_of(size=150)
    with pytest.raises(OSError, match="no space"):
        disk.create("b.log", 100)
    disk.write("a.log", 0, b"1")
    disk.remove("a.log")
    disk.create("b.log", 100)
    disk.stop()
    assert disk.names() == ["b.log"]
    disk.truncate("b.log", 3)
    assert disk.read("b.log", 0, 10) == bytes(3)
    disk.is_full = True
    with pytest.raises(OSError, match="no space"):
        disk.create("c.log", 1)
