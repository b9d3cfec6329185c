"""Files that appear whole or not at all, and faults of the disk in words. The system's errors are injected here."""

from __future__ import annotations

import errno
import os
import sqlite3

import pytest

from plimsoll.local.storage import state_files
from plimsoll.local.storage.state_files import StateWriteError, is_write_fault, remove, write_private


def failing(code):
    def write(*arguments):
        raise OSError(code, os.strerror(code))

    return write


def test_a_private_file_is_private_even_when_it_replaces_another(tmp_path):
    file = tmp_path / "x"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space is left on its disk; free space there"),
        (errno.EDQUOT, "the disk quota of this user is used up; free space there, or raise the quota"),
        (errno.EROFS, "its disk is mounted read-only; mount it writable"),
        (errno.EACCES, "this user may not write it; change its owner or its rights"),
        (errno.EIO, "the disk reports an error; free space there, and check the disk for errors"),
        (errno.EFBIG, "it would exceed the limit on the size of files; raise that limit (`ulimit -f`)"),
        (errno.ENAMETOOLONG, "File name too long; check that path"),
    ],
)
def test_a_file_that_cannot_be_written_stays_as_it_was_and_the_error_says_what_to_do(
    tmp_path, monkeypatch, code, words
):
    file = tmp_path / "x"
    write_private(file, "old")
    monkeypatch.setattr(os, "fsync", failing(code))
    with pytest.raises(StateWriteError) as caught:
        write_private(file, "new")
    assert str(caught.value) == f"cannot write {file}: {words}"
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_that_holds_the_text_already_needs_no_space(tmp_path, monkeypatch):
    file = tmp_path / "x"
    write_private(file, "same")
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    write_private(file, "same")
    file.chmod(0o644)
    with pytest.raises(StateWriteError):
        write_private(file, "same")


def test_a_file_is_removed_once(tmp_path):
    file = tmp_path / "x"
    file.touch()
    remove(file)
    remove(file)
    assert not file.exists()
    file.mkdir()
    with pytest.raises(StateWriteError, match=r"x: Is a directory|x: this user may not"):
        remove(file)


def test_faults_of_a_disk_are_told_from_others():
    assert is_write_fault(OSError(errno.ENOSPC, "full"))
    assert not is_write_fault(BrokenPipeError(errno.EPIPE, "gone"))


def test_errors_of_statements_are_no_faults_of_the_disk(tmp_path):
    database = sqlite3.connect(tmp_path / "x.db")
    with pytest.raises(sqlite3.OperationalError, match="no such table"), state_files.store_faults(tmp_path / "x.db"):
        database.execute("SELECT * FROM absent")
    database.close()


def test_an_error_of_a_full_disk_counts_as_no_space(tmp_path, monkeypatch):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    for is_full, words in ((True, "no space is left"), (False, "the disk reports an error")):
        monkeypatch.setattr(state_files, "_is_full", lambda path, answer=is_full: answer)
        with pytest.raises(StateWriteError, match=words), state_files.store_faults(tmp_path / "x.db"):
            raise error
