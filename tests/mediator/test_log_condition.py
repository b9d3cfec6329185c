"""The condition of a log: what is lost with one in memory, and of one on a disk the gravest thing first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator.log_condition import DISK_EXITS, LogEvents, log_conditions
from plimsoll.mediator.resource_status import ObservedBroker


def head(**report: Any) -> ObservedBroker:
    return ObservedBroker("h", "head", "east", "p", "", "", "", report_age=1.0, report=report)


def conditions(seen: ObservedBroker, *, has_standby: bool = False) -> list[Condition]:
    return log_conditions(seen, has_standby=has_standby)


def test_a_log_in_memory_says_what_is_lost_when_the_head_restarts():
    (found,) = conditions(head(log_bytes=5))
    assert (found.type, found.status, found.reason) == ("LogSafe", "False", "LogInMemory")
    assert found.message == (
        "h keeps its log in memory only: publications that are accepted and not yet delivered are lost, as gaps, when"
        " it ends or restarts"
    )
    assert conditions(head(log_bytes=500)) == [found], "nothing is written again while the log grows"


def test_a_log_in_memory_with_a_standby_is_lost_if_both_end():
    (found,) = conditions(head(log_bytes=5), has_standby=True)
    assert (found.status, found.reason) == ("False", "LogInMemory")
    assert found.message.startswith("h and its standby keep the log in memory only: ")
    assert found.message.endswith(", as gaps, if both end, or one while it is alone")


def test_a_head_that_has_reported_nothing_has_none():
    assert conditions(head()) == []


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
        (
            {"log_fault": "no room", "log_damages": 1},
            "False",
            "LogFull",
            "until there is room; 1 parts of the log of h were damaged",
        ),
        (
            {"log_sync_waiting_seconds": 7.4, "log_damages": 1},
            "False",
            "LogSlow",
            "waits for it; 1 parts of the log of h were damaged",
        ),
    ],
)
def test_the_condition_says_what_the_disk_does(report: dict[str, Any], status: str, reason: str, said: str):
    (found,) = conditions(head(log_sync="Always", log_bytes=5, **report))
    assert (found.type, found.status, found.reason) == ("LogSafe", status, reason)
    assert said in found.message


@pytest.mark.parametrize("end", DISK_EXITS)
def test_a_head_that_has_ended_for_its_disk_says_so_until_it_runs(end: str):
    ended = replace(head(), report={}, last_end=end)
    (found,) = conditions(ended)
    assert (found.status, found.reason) == ("False", "LogFailed")
    assert conditions(replace(ended, last_end="exited with 44")) == []
    (found,) = conditions(replace(ended, report={"log_sync": "Always"}))
    assert found.reason == "LogWritten"


def told(*looks: ObservedBroker) -> list[tuple[str, str]]:
    events = LogEvents()
    return [(event.type, event.reason) for look in looks for event in events.since_last_look([look])]


def test_each_change_of_the_condition_is_one_event():
    good, full = head(log_sync="Always"), head(log_sync="Always", log_fault="full")
    slow = [head(log_sync="Always", log_sync_waiting_seconds=seconds) for seconds in (3.0, 4.0)]
    memory = head(log_bytes=5)
    assert told(head(), memory, memory) == [], "that a log is in memory is no event"
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
