"""What is stored of a session, and read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.session.model import Faults, World

from plimsoll.core.session import Session, decode, encode
from plimsoll.core.session.state import SessionKind
from plimsoll.core.session.stored_session import shift_back


def whole_session() -> Session:
    world = World(seed=1, faults=Faults(leaves=0.1), refuses=True)
    world.fill("a", 30)
    uid = world.ask("s", source="a", target="b", select={"count": 20}, limits={"maxInFlight": 6}, retries=1)
    world.until(lambda: world.mediator.sessions[uid].attempt == 2)
    world.refuses = False
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    return world.mediator.sessions[uid]


def test_it_is_plain_json_and_comes_back():
    session = whole_session()
    text = json.dumps(encode(session))
    assert decode(json.loads(text)) == session
    assert '"queuedAt"' in text
    assert "queued_at" not in text


def test_what_equals_its_default_is_left_out():
    session = Session(uid="u", name="n", requested_at=1.0, queued_at=1.0, phase_at=1.0, deadline_at=2.0)
    assert encode(session) == {
        "uid": "u", "name": "n", "requestedAt": 1.0, "queuedAt": 1.0, "phaseAt": 1.0, "deadlineAt": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "found"),
    [(None, "got `null`"), ({}, "missing required field"), ({"uid": 7}, "`$.uid`"), ("x", "got `str`")],
)
def test_what_is_no_record_is_refused_with_its_place(wrong: object, found: str):
    with pytest.raises(ValueError, match="this is not a stored session") as caught:
        decode(wrong)
    assert found in str(caught.value)


def test_fields_of_a_later_version_are_passed_over():
    plain = encode(whole_session())
    assert decode({**plain, "later": 1}) == decode(plain)


def test_all_times_move_together():
    session = whole_session()
    back = shift_back(session, 100.0)
    assert back.deadline_at - back.phase_at == pytest.approx(session.deadline_at - session.phase_at)
    assert back.phase_at == session.phase_at - 100.0
    assert back.batches[0].begun_at == session.batches[0].begun_at - 100.0
    assert back.retry_at is None
    assert shift_back(back, -100.0) == session


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ({}, "move"),
        ({"byPolicy": True, "triggered": True}, "balance"),
        ({"isParent": True}, "spread"),
        ({"isParent": True, "isDrain": True}, "drain"),
        ({"isParent": True, "isShuffle": True}, "shuffle"),
        ({"isParent": True, "between": ["east", "west"]}, "clusters"),
    ],
)
def test_a_session_stored_before_there_were_kinds_goes_on_as_its_kind(flags: dict[str, Any], kind: SessionKind):
    old = {"uid": "u", "name": "n", "requestedAt": 1.0, "queuedAt": 2.0, "phaseAt": 3.0, "deadlineAt": 4.0, **flags}
    session = decode(old)
    assert session.kind == kind
    assert decode(encode(session)) == session
