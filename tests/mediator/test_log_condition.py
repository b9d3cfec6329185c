"""The condition of a log on a disk: none without one, and the gravest thing first."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.mediator.log_condition import log_conditions
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
