"""Outcomes of sessions that are over: bounded, and what is forgotten stays refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.head.handover import outcomes as module
from plimsoll.core.head.handover.outcomes import OutcomeHistory, parse_session_id
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError


def outcome(session: str, members: int = 0) -> msg.Outcome:
    return msg.Outcome(session, 0, 5, "done", [(f"s{i}", "moved") for i in range(members)])


def test_a_session_is_named_by_mediator_epoch_and_number():
    assert parse_session_id("3.12") == (3, 12)


@pytest.mark.parametrize("name", ["", "3", "3.", ".3", "a.b", "3.-1", "3.1.2", "٣.1", "3.١", "3 .1"])
def test_another_name_is_refused_and_shown(name: str):
    with pytest.raises(WireError, match=r"EPOCH\.NUMBER"):
        parse_session_id(name)


def test_the_latest_outcomes_are_kept_and_older_ones_are_known_to_be_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED_SESSIONS", 10)
    archive = OutcomeHistory()
    for number in range(1, 101):
        archive.add(f"2.{number}", outcome(f"2.{number}"))
    assert len(archive) == 10
    assert archive.get("2.100") == outcome("2.100")
    assert archive.get("2.90") is None
    assert archive.has_forgotten("2.90")
    assert archive.has_forgotten("1.500"), "of an older mediator"
    assert not archive.has_forgotten("2.101")
    assert not archive.has_forgotten("3.1")


def test_members_are_bounded_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED_MEMBERS", 1000)
    archive = OutcomeHistory()
    for number in range(1, 21):
        archive.add(f"1.{number}", outcome(f"1.{number}", 256))
    assert len(archive) == 3
    archive.add("1.21", outcome("1.21", 5000))
    assert archive.get("1.21") is not None, "the newest is always kept"
    assert len(archive) == 1
    archive.add("1.22", outcome("1.22", 1))
    assert len(archive) == 1


def test_an_outcome_that_is_said_again_is_counted_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED_MEMBERS", 100)
    archive = OutcomeHistory()
    archive.add("1.1", outcome("1.1", 40))
    for _ in range(5):
        archive.add("1.2", outcome("1.2", 40))
    assert archive.get("1.1") is not None


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 60)), max_size=80))
def test_a_session_that_is_no_longer_known_is_known_to_be_forgotten(numbers: list[tuple[int, int]]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "REMEMBERED_SESSIONS", 7)
        archive = OutcomeHistory()
        for epoch, number in numbers:
            archive.add(f"{epoch}.{number}", outcome(f"{epoch}.{number}"))
        assert len(archive) <= 7
        for epoch, number in numbers:
            name = f"{epoch}.{number}"
            assert archive.get(name) is not None or archive.has_forgotten(name)
