"""The condition of limits: none before one was reached, who is at one, and that it is over."""

from __future__ import annotations

from typing import Any

from plimsoll.mediator.limit_condition import limit_conditions
from plimsoll.mediator.resource_status import ObservedBroker


def broker(name: str, **report: Any) -> ObservedBroker:
    return ObservedBroker(name, "edge", "east", "p", "", "", "", report_age=1.0, report=report)


def test_a_cluster_that_was_never_at_a_limit_has_no_condition():
    assert limit_conditions({}, [broker("h"), broker("e", open_files_limit=0)]) == []


def test_it_names_who_is_at_the_limit_and_later_says_that_it_is_over():
    (found,) = limit_conditions({}, [broker("h", open_files_limit=200), broker("e")])
    assert (found.type, found.status, found.reason) == ("WithinLimits", "False", "OpenFilesReached")
    assert "h (200 open files)" in found.message
    before = {"conditions": [{"type": "WithinLimits", "status": "False"}]}
    (after,) = limit_conditions(before, [broker("h"), broker("e")])
    assert (after.status, after.reason) == ("True", "LimitsKept")


def test_of_many_some_are_named():
    (found,) = limit_conditions({}, [broker(f"e{number}", open_files_limit=64) for number in range(9)])
    assert found.message.endswith("e2 (64 open files) and 6 more")


def test_what_is_no_limit_counts_as_none():
    assert limit_conditions({}, [broker("h", open_files_limit="many"), broker("e", open_files_limit=True)]) == []
