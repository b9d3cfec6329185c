"""The condition of a standby, and what the status says of it, by the stored leadership."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.leadership import HeadLeadership, leadership_status
from plimsoll.mediator.standby_condition import standby_conditions, standby_summary


@pytest.mark.parametrize(
    ("stored", "status", "reason", "said"),
    [
        (HeadLeadership(), "False", "NoLeader", "neither process"),
        (HeadLeadership(3, 1), "False", "LeadsAlone", "process 1 leads alone, in term 3"),
        (HeadLeadership(3, 1, standby=9, sync=1), "True", "Following", "process 0 has all of its log"),
    ],
)
def test_the_condition_says_whether_the_head_may_be_lost(stored: HeadLeadership, status: str, reason: str, said: str):
    (found,) = standby_conditions({"leadership": leadership_status(stored)}, wants=True)
    assert (found.type, found.status, found.reason) == ("StandbyFollows", status, reason)
    assert said in found.message


def test_a_head_without_a_standby_has_none():
    assert standby_conditions({}, wants=False) == []


def test_the_status_says_where_it_is_and_how_far_behind():
    status = {"leadership": leadership_status(HeadLeadership(3, 1, standby=9, sync=1))}
    linked = {"standby_linked": 9, "standby_behind_bytes": 70}
    found = standby_summary(status, linked, pod="h-0", node="n")["standby"]
    assert found == {"process": 0, "inSync": True, "behindBytes": 70, "pod": "h-0", "node": "n"}
    assert standby_summary(status, {"standby_behind_bytes": 70})["standby"] == {"process": 0, "inSync": True}
