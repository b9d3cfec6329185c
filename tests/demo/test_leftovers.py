"""A run begins without anything of an earlier one, or not at all."""

from pathlib import Path

import pytest

from plimsoll.demo.command import _empty_report_folder
from plimsoll.demo.leftovers import remove_folder
from plimsoll.local.storage.fleet_folder import FleetFolder


def test_a_folder_goes_with_its_content(tmp_path: Path):
    (tmp_path / "report" / "journals").mkdir(parents=True)
    (tmp_path / "report" / "journals" / "one").write_text("x")
    remove_folder(tmp_path / "report")
    remove_folder(tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_deleted_is_an_error(tmp_path: Path):
    (tmp_path / "report").write_text("a file of the user")
    with pytest.raises(NotADirectoryError):
        remove_folder(tmp_path / "report")
    assert (tmp_path / "report").read_text() == "a file of the user"


def test_a_run_does_not_begin_with_the_state_of_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    state = FleetFolder(tmp_path / "state")
    state.make()
    state.store.write_text("objects of an earlier run")

    def refused(path: Path) -> None:
        raise PermissionError(f"not empty: {path}")

    monkeypatch.setattr("shutil.rmtree", refused)
    with pytest.raises(PermissionError, match="not empty"):
        _empty_report_folder(tmp_path / "report", state)
