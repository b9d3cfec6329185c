"""Statuses that are not kept up to date are shown as old: no supervisor, a frozen one, or one whose disk is full."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest

from plimsoll.local import status_age
from plimsoll.local.status_age import OLD_SECONDS, staleness_note, with_current_status
from plimsoll.local.storage.fleet_folder import FleetFolder, FleetLock

FLEET = {
    "kind": "BrokerFleet",
    "metadata": {"name": "quotes"},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "AllReady", "message": "all"}]},
}
SESSION = {**FLEET, "kind": "LoadBalancingSession"}


@pytest.fixture
def folder(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    return folder


@pytest.fixture
def wrote_before(folder, monkeypatch):
    """Lets it be so many seconds since the supervisor wrote, on a clock that stands still."""

    def stand_still(seconds):
        now = folder.written_at() + seconds + 0.5
        monkeypatch.setattr(status_age, "time", SimpleNamespace(time=lambda: now))

    return stand_still


def test_what_was_just_written_is_shown_as_it_is(folder, wrote_before):
    with FleetLock(folder):
        wrote_before(0)
        assert staleness_note(folder) == ""
        wrote_before(OLD_SECONDS - 1)
        assert staleness_note(folder) == ""
        assert with_current_status(folder, [FLEET, SESSION]) == [FLEET, SESSION]


def test_a_supervisor_that_does_not_write_leaves_old_objects_and_a_note_says_what_to_do(folder, wrote_before):
    with FleetLock(folder):
        wrote_before(40)
        note = staleness_note(folder)
        assert note.startswith(
            "the supervisor of fleet quotes has written nothing for 40 s, so its status is that old: "
        )
        assert f"kill -CONT {os.getpid()}" in note
        fleet, session = with_current_status(folder, [FLEET, SESSION])
    assert fleet["status"] == {
        "conditions": [
            {
                "type": "Ready", "status": "Unknown", "reason": "NotWritten",
                "message": "the supervisor has written nothing for 40 s",
            },
        ],
        "writtenSecondsAgo": 40,
    }  # fmt: skip
    assert session == SESSION  # the mediator writes these


def test_without_a_supervisor_the_age_is_shown_too(folder, wrote_before):
    assert staleness_note(folder) == ""  # it never ran
    with FleetLock(folder):
        pass
    wrote_before(3)
    assert staleness_note(folder) == (
        "fleet quotes does not run; its status is 3 s old: start it with `plimsoll up -f FILE`"
    )
    fleet, session = with_current_status(folder, [FLEET, SESSION])
    assert fleet["status"]["conditions"][0]["reason"] == "NotSupervised"
    assert fleet["status"]["writtenSecondsAgo"] == 3
    assert session["status"]["conditions"][0]["reason"] == "NotSupervised"


@pytest.mark.sweep
def test_a_real_supervisor_that_is_frozen_continued_and_killed(fleet):
    fleet.up()

    def shown():
        [item] = with_current_status(fleet.folder, [fleet.object("BrokerFleet", "quotes")])
        return item["status"]

    fleet.wait_for(lambda: staleness_note(fleet.folder) == "")
    fleet.process.send_signal(signal.SIGSTOP)
    try:
        fleet.wait_for(lambda: "has written nothing for" in staleness_note(fleet.folder))
        assert shown()["writtenSecondsAgo"] >= OLD_SECONDS
        assert {each["reason"] for each in shown()["conditions"]} == {"NotWritten"}
    finally:
        fleet.process.send_signal(signal.SIGCONT)
    fleet.wait_for(lambda: staleness_note(fleet.folder) == "" and "writtenSecondsAgo" not in shown())
    fleet.process.send_signal(signal.SIGKILL)
    fleet.process.wait()
    assert "does not run" in staleness_note(fleet.folder)
    assert {each["reason"] for each in shown()["conditions"]} == {"NotSupervised"}
