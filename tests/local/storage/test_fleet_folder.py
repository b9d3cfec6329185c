import os

import pytest

from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder, FleetLock, fleet_folders, plimsoll_home


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
