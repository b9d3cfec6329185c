"""The condition of a log on a disk: none without one, and the gravest thing first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.mediator.log_condition import DISK_EXITS, LogEvents, log_conditions
from plimsoll.mediator.resource_status import ObservedBroker


def head(**report: Any) -> ObservedBroker:
    return ObservedBroker("h", "head", "east", "p", "", "", "", report_age=1.0, report=report)


def test_a_log_in_memory_has_none():
    assert log_conditions(head(log_bytes=5)) == []


@pytest.mark.parametrize(
    ("report", "status", "reason", "said"),
    [
        ({}, "True", "LogWritten", "h keeps its log"),
        ({"log_sync_waiting_seconds": 0.4}, "True", "LogWritten", ""),
        ({"log_sync_waiting_seconds": 7.4}, "False", "LogSlow", "for 7 s"),
        ({"log_damages": 1, "log_read_faults": 2}, "False", "LogDamaged", "3 parts of the log of h"),
        (
            {"log_fault": "no room: disk quota", "log_damages": 1},
            "False",
            "LogFull",
            "no room: disk quota; publications",
        ),
    ],
)
def test_the_condition_says_what_the_disk_does(report: dict[str, Any], status: str, reason: str, said: str):
    (found,) = log_conditions(head(log_sync="Always", **report))
    assert (found.type, found.status, found.reason) == ("LogSafe", status, reason)
    assert said in found.message


@pytest.mark.parametrize("end", DISK_EXITS)
def test_a_head_that_has_ended_for_its_disk_says_so_until_it_runs(end: str):
    ended = replace(head(), report={}, last_end=end)
    (found,) = log_conditions(ended)
    assert (found.status, found.reason) == ("False", "LogFailed")
    assert log_conditions(replace(ended, last_end="exited with 44")) == []
    (found,) = log_conditions(replace(ended, report={"log_sync": "Always"}))
    assert found.reason == "LogWritten"


def told(*looks: ObservedBroker) -> list[tuple[str, str]]:
    events = LogEvents()
    return [(event.type, event.reason) for look in looks for event in events.since_last_look([look])]


def test_each_change_of_the_condition_is_one_event():
    good, full = head(log_sync="Always"), head(log_sync="Always", log_fault="full")
    slow = [head(log_sync="Always", log_sync_waiting_seconds=seconds) for seconds in (3.0, 4.0)]
    assert told(head(), head()) == [], "a log in memory has none"
    assert told(good, good) == [], "a log that is found to be good says nothing"
    assert told(good, *slow, full, full, good) == [
        ("Warning", "LogSlow"), ("Warning", "LogFull"), ("Normal", "LogWritten"),
    ]  # fmt: skip


def test_more_damage_is_another_event():
    one, two = (head(log_sync="Always", log_damages=1, log_read_faults=more) for more in (0, 1))
    assert told(one, one, two, two) == [("Warning", "LogDamaged"), ("Warning", "LogDamaged")]


def test_a_head_that_ends_for_its_disk_and_comes_back_is_two_events():
    ended = replace(head(), report={}, last_end=DISK_EXITS[0])
    assert told(ended, ended, head(log_sync="Always")) == [("Warning", "LogFailed"), ("Normal", "LogWritten")]
