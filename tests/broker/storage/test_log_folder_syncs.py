"""Syncs of a log's files that overlap: what one of them says is safe is safe, in whichever order they begin and end.

Every sequence of some writes to two files and the beginnings and ends of two syncs is tried, without threads: a sync
takes its files at its beginning and gives them back at its end, and makes safe what had been written in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.broker.storage.log_folder import SYNCS_AT_ONCE, LogFolder

FILES = ("a.log", "b.log")
THREADS = (0, 1)
STEPS = 7


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[LogFolder]:
    found = LogFolder(tmp_path / "log")
    yield found
    found.close()


class World:
    """`written`: the writes of each file by number, `safe`: those that the disk has for good."""

    def __init__(self, folder: LogFolder) -> None:
        self.folder = folder
        self.writes = 0
        self.written: list[tuple[int, str]] = []
        self.safe: set[int] = set()
        self.going: dict[int, tuple[int, Any]] = {}

    def steps(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = [("write", name) for name in FILES]
        return found + [("end" if thread in self.going else "begin", thread) for thread in THREADS]

    def write(self, name: str) -> None:
        self.writes += 1
        self.written.append((self.writes, name))
        self.folder.write(name, 0, b"x")

    def begin(self, thread: int) -> None:
        self.going[thread] = self.writes, self.folder._take()

    def end(self, thread: int) -> None:
        number, taken = self.going.pop(thread)
        names = {name for name, _, _ in taken}
        self.safe |= {each for each, name in self.written if each <= number and name in names}
        self.folder._give_back(taken, is_safe=True)
        missing = set(range(1, number + 1)) - self.safe
        assert not missing, f"writes {missing} are said to be safe"


def replay(folder: LogFolder, path: list[tuple[str, Any]]) -> World:
    for file in folder._open.values():
        file.writes = file.syncs = 0
    folder._dirty.clear()
    world = World(folder)
    for step, argument in path:
        getattr(world, step)(argument)
    return world


def explore(folder: LogFolder, path: list[tuple[str, Any]]) -> int:
    """Try everything behind this path; returns how many sequences there are."""
    world = replay(folder, path)
    if len(path) == STEPS:
        return 1
    return sum(explore(folder, [*path, step]) for step in world.steps())


@pytest.fixture
def scripted(folder: LogFolder, monkeypatch: pytest.MonkeyPatch) -> LogFolder:
    for name in FILES:
        folder.create(name, 10)
        folder.write(name, 0, b"x")
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: len(data))
    return folder


def test_what_a_sync_says_is_safe_is_safe_in_every_order(scripted: LogFolder):
    assert explore(scripted, []) == 4**STEPS


def test_the_search_finds_a_sync_that_leaves_to_another_one_what_that_has_not_ended(
    scripted: LogFolder, monkeypatch: pytest.MonkeyPatch
):
    take = scripted._take

    def take_all() -> Any:
        taken = take()
        scripted._dirty.clear()
        return taken

    monkeypatch.setattr(scripted, "_take", take_all)
    with pytest.raises(AssertionError, match="are said to be safe"):
        explore(scripted, [])


def test_the_search_finds_a_sync_that_takes_a_later_write_for_safe(
    scripted: LogFolder, monkeypatch: pytest.MonkeyPatch
):
    give_back = scripted._give_back

    def forget(taken: list[Any], *, is_safe: bool) -> None:
        give_back([(name, file, file.writes) for name, file, _ in taken], is_safe=is_safe)

    monkeypatch.setattr(scripted, "_give_back", forget)
    with pytest.raises(AssertionError, match="are said to be safe"):
        explore(scripted, [])


def test_each_lane_syncs_by_a_descriptor_of_its_own(folder: LogFolder, monkeypatch: pytest.MonkeyPatch):
    synced: list[int] = []
    folder.create("a.log", 10)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    for thread in range(SYNCS_AT_ONCE):
        folder.write("a.log", 0, b"x")
        folder.sync(thread)
    assert len(set(synced)) == SYNCS_AT_ONCE
    folder.sync()
    assert len(synced) == SYNCS_AT_ONCE, "nothing has been written since"


def test_a_file_that_failed_to_sync_is_synced_again(folder: LogFolder, monkeypatch: pytest.MonkeyPatch):
    folder.create("a.log", 10)
    folder.write("a.log", 0, b"x")

    def fail(fd: int) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(OSError, match="input/output"):
            folder.sync()
    assert list(folder._dirty) == ["a.log"]


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_file_that_is_removed_while_it_is_synced_is_closed_by_the_last_sync(folder: LogFolder):
    folder.create("a.log", 10)
    folder.write("a.log", 0, b"x")
    file = folder._open["a.log"]
    first, second = folder._take(), folder._take()
    folder.remove("a.log")
    folder._give_back(first, is_safe=True)
    assert all(map(is_open, (file.fd, *file.by_thread)))
    folder._give_back(second, is_safe=True)
    assert not any(map(is_open, (file.fd, *file.by_thread)))
    assert folder.names() == []


def test_only_files_that_are_written_stay_open(folder: LogFolder):
    for number in range(5):
        folder.create(f"{number}.log", 10)
        folder.write(f"{number}.log", 0, b"x")
        folder.settle(f"{number}.log")
    assert list(folder._open) == ["4.log"]
    folder.truncate("0.log", 1)
    assert folder.read("0.log", 0, 10) == b"x"


def test_a_file_for_which_there_are_no_descriptors_is_not_left(folder: LogFolder, monkeypatch: pytest.MonkeyPatch):
    opened: list[int] = []
    real = os.open

    def few(path: Any, flags: int, mode: int = 0o777) -> int:
        if len(opened) == 2:
            raise OSError(24, "too many open files")
        opened.append(real(path, flags, mode))
        return opened[-1]

    monkeypatch.setattr(os, "open", few)
    with pytest.raises(OSError, match="too many open files"):
        folder.create("a.log", 10)
    assert folder.names() == []
    assert not any(map(is_open, opened))
