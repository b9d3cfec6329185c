"""A run begins without anything of an earlier one, or not at all."""

from pathlib import Path

import pytest

from plimsoll.demo.leftovers import empty_report_folder, remove_folder
from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder, FleetLock


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
        empty_report_folder(tmp_path / "report", state, ())


def test_a_run_replaces_what_a_run_has_written_and_leaves_the_rest(tmp_path: Path):
    report = tmp_path / "report"
    state = FleetFolder(report / "fleet" / "demo")
    state.make()
    (report / "journals").mkdir()
    for name in ("journals/one", "global.json", "thesis.txt", "fleet/other"):
        (report / name).write_text("x")
    empty_report_folder(report, state, ("global.json", "global.html"))
    found = sorted(str(path.relative_to(report)) for path in report.rglob("*"))
    assert found == ["fleet", "fleet/other", "journals", "logs", "thesis.txt"]


def test_a_run_that_goes_on_is_left_alone(tmp_path: Path):
    state = FleetFolder(tmp_path / "fleet" / "demo")
    state.make()
    (tmp_path / "global.json").write_text("x")
    with FleetLock(state), pytest.raises(FleetBusyError, match="runs a demo that reports to"):
        empty_report_folder(tmp_path, state, ("global.json",))
    assert (tmp_path / "global.json").read_text() == "x"
