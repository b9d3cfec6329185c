"""Segments in memory: they are what a folder's are, and end with the process."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.memory_files import MemoryFiles


def test_what_is_written_is_read_and_nothing_lies_behind_it():
    files = MemoryFiles()
    files.create("a", 1 << 30)
    files.write("a", 0, b"head")
    files.write("a", 4, b"tail")
    assert (files.names(), files.read("a", 2, 100), files.read("a", 8, 10)) == (["a"], b"adtail", b"")
    files.settle("a")
    files.truncate("a", 4)
    assert files.read("a", 0, 100) == b"head"
    files.remove("a")
    assert files.names() == []


def test_what_a_folder_refuses_is_refused():
    files = MemoryFiles()
    files.create("a", 0)
    with pytest.raises(FileExistsError):
        files.create("a", 0)
    with pytest.raises(OSError, match="byte 9 lies 9 bytes behind the end"):
        files.write("a", 9, b"x")
    for gone in (lambda: files.read("b", 0, 1), lambda: files.remove("b"), lambda: files.write("b", 0, b"")):
        with pytest.raises(FileNotFoundError):
            gone()
