"""A disk that stops with its machine: what was synced stays, the rest is lost or torn."""

from __future__ import annotations

import random

import pytest

from plimsoll.simulator.engine.disk import PAGE_BYTES, DiskQuality, SimulatedDisk


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


def test_of_the_rest_each_page_stays_as_it_was_at_some_moment():
    found, torn = set(), 0
    for seed in range(80):
        disk = disk_of(seed)
        for i, letter in enumerate(b"abc"):
            disk.write("a.log", 10 + i * PAGE_BYTES // 2, bytes([letter]) * (PAGE_BYTES // 2))
        disk.stop()
        first, second = disk.read("a.log", 0, PAGE_BYTES), disk.read("a.log", PAGE_BYTES, PAGE_BYTES)
        found.add((bytes(sorted(set(first) - {0})), bytes(sorted(set(second) - {0}))))
        torn += disk.torn > 0
    # The second write lies in both pages, the third in the second one alone.
    assert found == {(a, b) for a in (b"", b"a", b"ab") for b in (b"", b"b", b"bc")}
    assert torn, "no write was torn"


def test_the_end_of_a_file_is_safe_with_its_sync():
    def sizes(*, settles: bool) -> set[int]:
        found = set()
        for seed in range(20):
            disk = disk_of(seed)
            disk.truncate("a.log", 10)
            if settles:
                disk.settle("a.log")
            disk.stop()
            found.add(disk.size("a.log"))
        return found

    assert sizes(settles=False) == {10, 100}
    assert sizes(settles=True) == {10}


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
    disk.write("b.log", 0, b"123456")
    disk.erase("b.log", 2, 2)
    disk.stop()
    assert disk.names() == ["b.log"]
    assert disk.read("b.log", 0, 6) == b"12" + bytes(2) + b"56"
    disk.is_full = True
    with pytest.raises(OSError, match="no space"):
        disk.create("c.log", 1)
