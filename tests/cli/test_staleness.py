"""A status that is out of date is announced once, and on standard error."""

from __future__ import annotations

import json
import os
import re
import time
from types import SimpleNamespace
from typing import cast

import pytest
from tests.cli import asked

from plimsoll.cli.backend import FleetReader
from plimsoll.cli.staleness import StalenessNotes
from plimsoll.local import status_age


class Place:
    title = "fleet quotes"
    note = ""

    def staleness_note(self) -> str:
        return self.note


@pytest.fixture
def folder(home):
    assert home.exists()
    yield from asked.fleet()


def written(folder, at):
    os.utime(folder.lock, (at, at))


@pytest.fixture
def wrote_before(folder, monkeypatch):
    """Lets it be so many seconds since the supervisor wrote, on a clock that stands still."""

    def stand_still(seconds):
        now = folder.written_at() + seconds + 0.5
        monkeypatch.setattr(status_age, "time", SimpleNamespace(time=lambda: now))

    return stand_still


def test_a_line_at_each_change(capsys):
    place = Place()
    notes = StalenessNotes(cast(FleetReader, place))
    for place.note in ("", "old", "older", "", "", "old"):
        notes.print_changes()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["note: old", "note: the status of fleet quotes is written again", "note: old"]


@pytest.mark.parametrize(
    "command", [("get", "all"), ("get", "bf", "-o", "json"), ("describe", "bc", "east"), ("events",)]
)
def test_commands_that_show_say_it(run, wrote_before, command):
    wrote_before(0)
    assert run(*command)[2] == ""
    wrote_before(30)
    code, out, err = run(*command)
    assert code == 0
    [line] = err.splitlines()
    assert line.startswith("note: the supervisor of fleet default has written nothing for 30 s, so its status is that")
    assert "written nothing" not in out


def test_json_has_the_age_as_a_field(run, folder, wrote_before):
    with asked.ObjectStore(folder.store) as store:
        store.set_status("BrokerCluster", "east", lambda item: {"endpoint": "x"})
    wrote_before(30)
    _, out, _ = run("get", "bc", "east", "-o", "json")
    assert json.loads(out)["status"]["writtenSecondsAgo"] == 30


def test_watching_says_it_when_it_begins(program, folder):
    process = program("watch")
    assert process.stdout.readline()
    written(folder, time.time() - 30)
    assert re.search(r"has written nothing for \d+ s", process.stderr.readline())
    written(folder, time.time() + 3600)  # however slowly it looks, it is not old again by then
    assert process.stderr.readline() == "note: the status of fleet default is written again\n"
