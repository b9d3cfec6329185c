"""Files of a log on a real disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.broker.storage.log_folder import LogFolder, LogFolderError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[LogFolder]:
    found = LogFolder(tmp_path / "deep" / "log")
    yield found
    found.close()


def test_what_is_written_is_read(folder: LogFolder):
    folder.create("a.log", 1000)
    folder.write("a.log", 3, b"hello")
    folder.sync()
    assert folder.names() == ["a.log"]
    assert folder.read("a.log", 0, 8) == b"\0\0\0hello"
    assert len(folder.read("a.log", 990, 1 << 62)) == 10
    assert folder.read("a.log", 2000, 10) == b""
    folder.truncate("a.log", 4)
    assert folder.read("a.log", 0, 100) == b"\0\0\0h"
    folder.remove("a.log")
    assert folder.names() == []
    folder.sync()


def test_a_file_has_its_room_when_it_is_made(folder: LogFolder):
    folder.create("a.log", 1 << 20)
    assert (folder.path / "a.log").stat().st_blocks * 512 >= 1 << 20


def test_without_room_no_file_is_left(folder: LogFolder, monkeypatch: pytest.MonkeyPatch):
    def refuse(fd: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        folder.create("a.log", 1000)
    assert folder.names() == []


def test_files_of_an_earlier_process_are_written_too(folder: LogFolder):
    folder.create("a.log", 100)
    path = folder.path
    folder.close()
    again = LogFolder(path)
    again.write("a.log", 0, b"x")
    again.sync()
    assert again.read("a.log", 0, 1) == b"x"
    folder._folder, folder._lock = os.dup(again._folder), os.dup(again._lock)  # the fixture closes them


def test_a_folder_has_one_process(folder: LogFolder):
    with pytest.raises(LogFolderError, match="another head has this log open"):
        LogFolder(folder.path)


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LogFolderError, match=r"make it, or name another one") as caught:
        LogFolder(tmp_path / "file" / "log")
    assert str(tmp_path / "file") in str(caught.value)
