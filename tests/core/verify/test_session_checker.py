"""The checker of sessions: every fault that it is there for, and none where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.verify.session_checker import SessionChecker, SessionStateObserved


def seen(phase: str, at: float, **fields: Any) -> SessionStateObserved:
    given: dict[str, Any] = {
        "uid": "u", "parent": "", "attempt": 1, "deadline": 100.0, "ended": False, "brokers": ["a", "b"],
        "planned": 3, "counts": {}, **fields,
    }  # fmt: skip
    return SessionStateObserved(phase=phase, at=at, **given)


def end(phase: str, at: float, **counts: int) -> SessionStateObserved:
    return seen(phase, at, ended=True, counts=counts)


GOOD = [
    seen("Requested", 0.0), seen("Sampling", 1.0), seen("Preparing", 2.0), seen("Draining", 3.0),
    seen("Preparing", 4.0), seen("Stabilizing", 5.0), end("Succeeded", 8.0, moved=2, stayed=1),
]  # fmt: skip


def found(*journal: SessionStateObserved, now: float = 50.0) -> list[tuple[str, str]]:
    checker = SessionChecker()
    for one in journal:
        checker.add(one)
    return [(one.law, one.text) for one in checker.judge(now)]


def test_a_session_as_it_should_be():
    checker = SessionChecker()
    for one in GOOD:
        checker.add(one)
    assert not checker.judge(1e9)
    assert (checker.open, checker.ended) == (0, {"Succeeded": 1})
    assert checker.outcomes == {"moved": 2, "stayed": 1}


def test_a_session_that_does_not_end_is_found_once():
    checker = SessionChecker(slack_seconds=1.0)
    checker.add(seen("Requested", 0.0))
    checker.add(seen("Preparing", 5.0))
    assert not checker.judge(101.0)
    assert [(one.law, one.subject) for one in checker.judge(101.1)] == [("I5", "session u")]
    assert len(checker.judge(200.0)) == 1
    assert checker.open == 1


def test_an_end_that_comes_too_late():
    [(law, text)] = found(seen("Requested", 0.0), end("Rejected", 102.0), now=500.0)
    assert (law, text) == ("I5", "had a deadline at 100 and is in Rejected at 102")


@pytest.mark.parametrize(
    ("journal", "law", "text"),
    [
        ([seen("Preparing", 0.0, uid="x")], "", ""),
        ([seen("Requested", 0.0), seen("Stabilizing", 1.0), seen("Negotiating", 2.0)], "I8", "goes from Stabilizing"),
        ([seen("Requested", 0.0), seen("Draining", 1.0), end("Rejected", 2.0)], "I8", "goes from Draining to Rejected"),
        ([*GOOD, seen("Preparing", 9.0)], "I8", "goes on in Preparing after its end as Succeeded"),
        ([*GOOD, seen("Requested", 9.0, attempt=2)], "", ""),
        ([seen("Requested", 0.0, attempt=2), seen("Requested", 1.0)], "I8", "attempt 1 comes after attempt 2"),
        ([seen("Requested", 0.0), end("Planned", 1.0), seen("Negotiating", 2.0)], "", ""),
        ([seen("Requested", 0.0), end("Cutting", 1.0)], "I5", "ended in Cutting, which is no end"),
        ([seen("Requested", 0.0), end("Failed", 1.0, moved=2, stayed=2)], "I8", "planned 3 and reports 4"),
        ([seen("Requested", 0.0), end("RolledBack", 1.0, moved=1)], "I8", "is RolledBack, and 1 have left the source"),
        ([seen("Requested", 0.0), end("RolledBack", 1.0, stayed=3)], "", ""),
        ([seen("Requested", 0.0), end("Succeeded", 1.0, moved=2)], "I8", "succeeded, and 1 of 3 have no outcome"),
    ],
)
def test_faults(journal: list[SessionStateObserved], law: str, text: str):
    if not law:
        assert found(*journal) == []
    else:
        assert [(one, text in words) for one, words in found(*journal)] == [(law, True)]


def other(phase: str, at: float, **fields: Any) -> SessionStateObserved:
    return seen(phase, at, **{"uid": "o", "brokers": ["b", "c"], **fields})


@pytest.mark.parametrize(
    ("fields", "is_fault"),
    [
        ({}, True),
        ({"brokers": ["c", "d"]}, False),
        ({"parent": "u"}, False),
        ({"ended": True, "phase": "Succeeded", "counts": {"moved": 3}}, False),
        ({"phase": "Planned"}, False),
    ],
)
def test_one_session_per_broker(fields: dict[str, Any], is_fault: bool):
    phase = fields.pop("phase", "Preparing")
    texts = found(seen("Requested", 0.0), seen("Preparing", 1.0), other(phase, 2.0, **fields))
    assert texts == ([("I4", "shares b with session u")] if is_fault else [])


@pytest.mark.parametrize(
    ("sources", "parent", "is_fault"), [("b", "p", False), ("c", "p", True), ("b", "q", True), ("b", "", True)]
)
def test_children_of_one_parent_may_share_a_source(sources: str, parent: str, is_fault: bool):
    first = {"parent": "p" if parent else "", "sources": ["b"]}
    more = {"parent": parent, "sources": [sources]}
    journal = [seen("Requested", 0.0, **first), seen("Preparing", 1.0, **first), other("Preparing", 2.0, **more)]
    assert found(*journal) == ([("I4", "shares b with session u")] if is_fault else [])


def test_what_is_gone_is_forgotten():
    checker = SessionChecker()
    checker.add(seen("Preparing", 1.0))
    checker.forget("u")
    checker.add(other("Preparing", 2.0))
    assert not [one for one in checker.judge(99.0) if one.law == "I4"]
    assert checker.open == 1
