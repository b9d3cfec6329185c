"""Waiting for a session: a line for each change, and a code that says how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli import asked

from plimsoll.cli import local_backend, session_wait
from plimsoll.cli.exit_codes import FAILED, OK, CommandError
from plimsoll.cli.local_backend import LocalBackend
from plimsoll.cli.session_wait import progress_line, succeeded, wait_for_session
from plimsoll.local import store_edits
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

MOVE = {"scope": "Local", "source": {"name": "e-0"}, "target": {"name": "e-1"}, "select": {"count": 5}}
NO_MOVES = {"moved": 0, "stayed": 0, "away": 0, "gone": 0, "returned": 0, "detached": 0, "unknown": 0}


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    assert home.exists()
    for folder in asked.fleet():
        store_edits.create_session(folder, "one", MOVE)
        yield folder


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def scripted(*steps: Callable[[], None]) -> None:
        clock = asked.Clock(*steps)
        monkeypatch.setattr(session_wait, "time", clock)
        monkeypatch.setattr(local_backend, "time", clock)

    return scripted


def step(folder: FleetFolder, **status: Any) -> Callable[[], None]:
    return lambda: asked.becomes(folder, "one", **status)


def test_a_line_whenever_it_has_come_further(folder, script, capsys):
    moving = {**NO_MOVES, "planned": 5, "moved": 2}
    script(
        step(folder, phase="Negotiating"),
        step(folder, phase="Negotiating"),
        step(folder, phase="Draining", progress=moving),
        step(folder, **asked.ended("Succeeded", True, progress={**NO_MOVES, "planned": 5, "moved": 5})),
    )
    assert wait_for_session(LocalBackend(folder), "one") == OK
    out, err = capsys.readouterr()
    assert (out.splitlines(), err) == (
        [
            "   0.0 s  Requested    the mediator has not seen it yet",
            "   0.1 s  Negotiating",
            "   0.3 s  Draining     2/5 moved",
            "   0.4 s  Succeeded    5/5 moved",
        ],
        "",
    )


def test_an_end_that_was_not_asked_for_is_a_failure(folder, script, capsys):
    script(step(folder, **asked.ended("RolledBack", False)))
    assert wait_for_session(LocalBackend(folder), "one") == FAILED
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "   0.1 s  RolledBack   RolledBack: so it is"
    assert err == "plimsoll: one did not succeed; see `plimsoll describe lbs one`\n"


def test_a_program_reads_the_object_and_people_the_rest(folder, script, capsys):
    script(step(folder, **asked.ended("Failed", False)))
    assert wait_for_session(LocalBackend(folder), "one", "json") == FAILED
    out, err = capsys.readouterr()
    assert json.loads(out)["status"]["phase"] == "Failed"
    assert [line.split()[2] for line in err.splitlines()] == ["Requested", "Failed"]


def test_a_plan_that_waited_for_approval_is_not_its_end(folder, script, capsys):
    asked.becomes(folder, "one", **asked.ended("Planned", True, planHash="0123456789abcdef"))
    script()
    assert wait_for_session(LocalBackend(folder), "one") == OK, "without an approval it is: a dry run has its plan"
    store_edits.approve_session(folder, "one")
    script(step(folder, **asked.ended("Failed", False)))
    assert wait_for_session(LocalBackend(folder), "one", approved=True) == FAILED
    assert "so it is" in capsys.readouterr().out


def test_waiting_ends_with_a_message_when_the_fleet_stops(home, script):
    assert home.exists()
    fleet = asked.fleet()
    folder = next(fleet)
    store_edits.create_session(folder, "one", MOVE)
    script(lambda: next(fleet, None))  # releases the lock
    with pytest.raises(CommandError, match=r"^fleet default was stopped; one resumes when the fleet starts") as end:
        wait_for_session(LocalBackend(folder), "one")
    assert end.value.code == FAILED


def test_who_waits_is_told_when_the_session_goes(folder, script):
    def delete() -> None:
        with ObjectStore(folder.store) as store:
            store.delete("LoadBalancingSession", "one")

    script(delete)
    with pytest.raises(CommandError, match=r"^session one was deleted") as end:
        wait_for_session(LocalBackend(folder), "one")
    assert end.value.code == FAILED


def test_success_is_a_condition():
    assert succeeded({"status": asked.ended("Planned", True)})
    assert not succeeded({"status": asked.ended("Succeeded", False)})
    assert not succeeded({"status": {"conditions": [{"type": "Planned", "status": "True"}]}})
    assert not succeeded({})


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, "Requested    the mediator has not seen it yet"),
        ({"phase": "Sampling", "progress": {**NO_MOVES, "planned": 0}}, "Sampling   "),
        (
            {
                "phase": "Draining",
                "progress": {**NO_MOVES, "planned": 9, "moved": 4, "stayed": 1, "etaSeconds": 130.0},
            },
            "Draining     4/9 moved  1 stayed  2m10s left",
        ),
        ({"phase": "Rejected", "reason": "Busy", "message": "e-1 is"}, "Rejected     Busy: e-1 is"),
        (
            {
                "phase": "Succeeded",
                "progress": {**NO_MOVES, "planned": 1, "moved": 1},
                "reason": "All",
                "message": "done",
            },
            "Succeeded    1/1 moved",
        ),
        (
            {
                "phase": "Failed",
                "progress": {**NO_MOVES, "planned": 1, "stayed": 1},
                "reason": "Late",
                "message": "it is",
            },
            "Failed       0/1 moved  1 stayed  Late: it is",
        ),
        (
            {
                "phase": "Succeeded",
                "progress": {"moved": 1, "stayed": 0, "planned": 3, "away": 2},
                "reason": "DeliveryFaults",
                "message": "1 moved; 3 lost",
            },
            "Succeeded    1/3 moved  2 away  DeliveryFaults: 1 moved; 3 lost",
        ),
        (
            {"phase": "Succeeded", "reason": "Empty", "message": "none is there"},
            "Succeeded    Empty: none is there",
        ),
    ],
)
def test_how_far_it_has_come(status: dict[str, Any], text: str):
    assert progress_line({"status": status}) == text
