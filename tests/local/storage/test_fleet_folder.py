import errno
import os

import pytest

from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder, FleetLock, fleet_folders, plimsoll_home
from plimsoll.local.storage.state_files import StateWriteError


def test_the_home_is_the_users_unless_another_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("PLIMSOLL_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert plimsoll_home() == tmp_path / ".plimsoll"
    monkeypatch.setenv("PLIMSOLL_HOME", "~/elsewhere")
    assert plimsoll_home() == tmp_path / "elsewhere"
    assert fleet_folders() == []


def test_fleets_are_folders_with_a_store(home):
    for name in ("b", "a", "empty"):
        FleetFolder.of(name).make()
    for name in ("b", "a"):
        FleetFolder.of(name).store.touch()
    assert [folder.fleet for folder in fleet_folders()] == ["a", "b"]
    assert FleetFolder.of("a").keys.stat().st_mode & 0o777 == 0o700


def test_one_process_holds_the_lock_and_is_named(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    assert folder.running_pid() is None
    with FleetLock(folder):
        assert folder.running_pid() == os.getpid()
        with pytest.raises(FleetBusyError, match=f"quotes is already running \\(process {os.getpid()}\\)"):
            FleetLock(folder).__enter__()
        assert folder.running_pid() == os.getpid()
    assert folder.running_pid() is None
    with FleetLock(folder):
        pass


def test_a_lock_that_cannot_be_written_is_not_taken(home, monkeypatch):
    folder = FleetFolder.of("quotes")
    folder.make()

    def full(*arguments):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StateWriteError, match="quotes/lock: no space is left"):
        FleetLock(folder).__enter__()
    monkeypatch.undo()
    assert folder.running_pid() is None


def test_when_the_supervisor_last_wrote_is_the_time_of_the_lock_file(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    assert folder.written_at() is None
    with FleetLock(folder):
        os.utime(folder.lock, (1000.0, 1000.0))
        assert folder.written_at() == 1000.0
        folder.mark_written()
        written = folder.written_at()
    assert written is not None
    assert written > 1000.0
    folder.lock.unlink()
    with pytest.raises(StateWriteError, match="lock"):
        folder.mark_written()
