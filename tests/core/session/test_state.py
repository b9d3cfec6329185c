"""What is stored of a session."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.model import Faults, World

from plimsoll.core.session import Session, Timings, decode, encode
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan
from plimsoll.core.session.state import ChildSession, PastAttempt, SessionKind, shift_back


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


def batch(number: int, ended_at: float | None, **members: str) -> Batch:
    return Batch(
        id=f"7.{number}", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=5.0, since=6.0, members=members, ended_at=ended_at,
    )  # fmt: skip


def test_the_last_batch_of_a_member_counts():
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=["x", "y", "z"])
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0,
        plan=SessionPlan(hash="", pairs=[pair], made_at=0.0),
        batches=[batch(1, 7.0, x="again", y="moved"), batch(2, 9.0, x="moved"), batch(3, None, z="cut")],
    )  # fmt: skip
    assert session.outcomes() == {"x": "moved", "y": "moved"}
    assert session.counts()["moved"] == 2
    assert session.batch is session.batches[2]
    assert session.batch.epoch == 7
    assert list(session.moved_since(8.0)) == ["x"]


def test_all_times_move_together():
    session = whole_session()
    back = shift_back(session, 100.0)
    assert back.deadline_at - back.phase_at == pytest.approx(session.deadline_at - session.phase_at)
    assert back.phase_at == session.phase_at - 100.0
    assert back.batches[0].begun_at == session.batches[0].begun_at - 100.0
    assert back.retry_at is None
    assert shift_back(back, -100.0) == session


def test_timings_scale_together():
    scaled = Timings().scaled(2.0)
    assert (scaled.repeat, scaled.drain, scaled.view) == (1.0, 60.0, 30.0)


def kept(number: int, ended_at: float, *moved: str) -> PastAttempt:
    return PastAttempt(
        number=number, phase="Failed", reason="r", message="m", started_at=0.0, ended_at=ended_at, planned=2,
        moved=list(moved),
    )  # fmt: skip


def test_who_moved_since_a_time_in_all_attempts():
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0,
        batches=[batch(1, 20.0, x="moved", y="stayed"), batch(2, None, z="moved")],
        history=[kept(1, 5.0, "u"), kept(2, 8.0, "v", "w")],
    )  # fmt: skip
    for at, names in ((4.9, "xuvw"), (5.0, "xvw"), (8.0, "x"), (19.9, "x"), (20.0, "")):
        assert list(session.moved_since(at)) == list(names), at


def test_of_an_earlier_round_only_the_moved_count():
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0, round=1,
        children=[
            ChildSession(name="c", source="a", target="b", members=5, counts={"moved": 3, "stayed": 2}),
            ChildSession(name="d", source="a", target="b", members=2, round=1, counts={"moved": 1, "returned": 1}),
            ChildSession(name="e", source="a", target="b", members=4),
        ],
    )  # fmt: skip
    assert {state: number for state, number in session.counts().items() if number} == {"moved": 4, "returned": 1}
    assert session.planned == 5


def test_the_brokers_that_a_session_keeps_busy():
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0, sources=["a"],
        targets=["b", "c"],
    )  # fmt: skip
    assert session.brokers == {"a", "b", "c"}
    assert replace(session, kind="drain").brokers == {"a"}
    assert session.batch is None
    assert session.planned == 0


def test_a_pair_of_two_clusters_goes_across():
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=[])
    assert pair.is_across is False
    assert replace(pair, target_head="k").is_across is True


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
