"""Records in two parts: nothing is lost between them, and the part in the status is small."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.session.model import Faults, World

from plimsoll.core.session import Session, encode
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.session_plan import MoveGroup, PlannedPair, SessionPlan, StayGroup
from plimsoll.core.session.state import PastAttempt
from plimsoll.mediator import plan_storage, session_objects


def through(session: Session) -> Session:
    """A session after both of its parts were stored as JSON."""
    record, text = plan_storage.split_session(session)
    return plan_storage.join_session(json.loads(json.dumps(record)), text)


def session(**fields: Any) -> Session:
    return Session(uid="u", name="s", requested_at=1.0, queued_at=1.0, phase_at=2.0, deadline_at=99.0, **fields)


def plan(*members: str, **fields: Any) -> SessionPlan:
    pairs = [PlannedPair(source="a", target="b", source_head="h", target_head="h", members=list(members))]
    return SessionPlan(**{"hash": "p", "pairs": pairs, "made_at": 3.0, **fields})


def batch(members: dict[str, str]) -> Batch:
    return Batch(
        id="1.1", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False, prepare_seconds=1.0,
        drain_seconds=1.0, begun_at=4.0, members=members,
    )  # fmt: skip


def test_every_session_that_a_world_stores_comes_back():
    world = World(seed=7, faults=Faults(loss=0.1, leaves=0.1, head_restarts=0.02))
    world.fill("a", 40)
    world.fill("b", 20)
    world.until_over(world.ask("one", source="a", target="b", select={"count": 20}, limits={"maxInFlight": 3}))
    world.until_over(world.ask("two", source="a", action="Drain", retries=2))
    assert world.saves
    for _, stored in world.saves:
        assert through(stored) == stored


@given(
    st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=12).flatmap(
        lambda names: st.tuples(
            st.just(names),
            st.lists(st.dictionaries(st.sampled_from(names), st.sampled_from(["", "moved", "again"])), max_size=3)
            if names
            else st.just([]),
        )
    )
)
def test_members_of_batches_come_back_in_their_order(drawn):
    names, batches = drawn
    told = session(plan=plan(*names), batches=[batch(members) for members in batches])
    again = through(told)
    assert again == told
    assert [list(one.members) for one in again.batches] == [list(one.members) for one in told.batches]


def test_reasons_rejections_and_earlier_attempts_come_back():
    attempt = PastAttempt(
        number=1, phase="Failed", reason="R", message="m", started_at=1.0, ended_at=2.0, planned=3, moved=["x"]
    )
    told = session(
        plan=plan(
            "x", "y", rejected={"Excluded": ["z"]}, moves=[MoveGroup(count=2, reason="hot", what="[a,>,1]")],
            stays=[StayGroup(kind="TooBig", reason="would overload b", count=1)],
        ),
        history=[attempt, replace(attempt, number=2, moved=[])],
    )  # fmt: skip
    assert through(told) == told
    record, text = plan_storage.split_session(told)
    for word in ("hot", "Excluded", "would overload b", '"x"', '"z"'):
        assert word in text
        assert word not in json.dumps(record)


def test_without_names_there_is_no_text():
    told = session(phase="Sampling")
    assert plan_storage.split_session(told) == (encode(told), "")
    assert through(told) == told


def test_the_record_stays_small_however_many_move():
    names = [f"gateway-17/subscriber-{number:06}" for number in range(20_000)]
    batches = [batch(dict.fromkeys(names[start : start + 256], "moved")) for start in range(0, 20_000, 256)]
    record, text = plan_storage.split_session(session(plan=plan(*names), batches=batches))
    assert len(json.dumps(record)) < 32_000
    assert len(text) > 600_000


def test_a_member_outside_the_plan_is_kept_all_the_same():
    told = session(plan=plan("x"), batches=[batch({"x": "moved", "stranger": "stayed"})])
    assert through(told) == told


def test_parts_of_two_plans_are_refused():
    record, _ = plan_storage.split_session(session(plan=plan("x")))
    _, text = plan_storage.split_session(session(plan=plan("x", hash="other")))
    with pytest.raises(plan_storage.IncompletePlanError, match="names plan other, the record plan p"):
        plan_storage.join_session(record, text)


@pytest.mark.parametrize("text", ["{", '{"hash": "p"}', '{"hash": "p", "pairs": []}', "[]"])
def test_what_is_no_text_of_a_plan_is_refused(text):
    record, _ = plan_storage.split_session(session(plan=plan("x")))
    with pytest.raises(ValueError):
        plan_storage.join_session(record, text)


# ---------------------------------------------------------------- objects


def stored(told: Session, last: str = "", *, as_text: bool = False) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The item of a session as it is stored on Kubernetes, and its ConfigMaps; `as_text`: by an earlier operator."""
    record, text = plan_storage.split_session(told)
    status = {
        "record": msgspec.json.encode(record).decode() if as_text else record,
        "planKey": plan_storage.plan_key(text),
        "planObjects": plan_storage.plan_object_names(told.name, text),
    }
    return {"metadata": {"name": told.name}, "status": status}, plan_storage.plan_objects(told, "n", text, last)


def test_the_record_is_as_an_api_server_gives_it_back():
    """So that a record that was read can be compared with the one that was written."""
    record, _ = plan_storage.split_session(session(plan=plan("x", "y")))
    assert record == msgspec.json.decode(msgspec.json.encode(record))


def test_records_of_earlier_operators_are_read():
    told = session(plan=plan("x", "y"))
    item, maps = stored(told, as_text=True)
    assert isinstance(item["status"]["record"], str)
    assert session_objects.stored_session(plan_storage.with_full_record(item, maps)) == told


def test_a_small_plan_has_one_object_owned_by_its_session():
    told = session(plan=plan("x", "y"))
    item, maps = stored(told)
    assert [one["metadata"]["name"] for one in maps] == ["s-plan"]
    assert maps[0]["metadata"]["ownerReferences"][0] | {"apiVersion": ""} == {
        "apiVersion": "", "kind": "LoadBalancingSession", "name": "s", "uid": "u", "controller": True,
    }  # fmt: skip
    assert session_objects.stored_session(plan_storage.with_full_record(item, maps)) == told


def test_a_large_plan_is_split_between_characters_and_joined_again():
    told = session(plan=plan(*(f"é{'ü' * 40}{number}" for number in range(12_000))))
    item, maps = stored(told)
    assert [one["metadata"]["name"] for one in maps] == ["s-plan", "s-plan-2", "s-plan-3"]
    assert all(len(json.dumps(one, ensure_ascii=False).encode()) < 900 * 1024 for one in maps)
    assert session_objects.stored_session(plan_storage.with_full_record(item, reversed(maps))) == told


def test_until_the_status_speaks_of_a_new_plan_the_last_one_can_be_read():
    old, new = session(plan=plan("x")), session(plan=plan("y", hash="q"))
    old_item, old_maps = stored(old)
    new_item, maps = stored(new, old_maps[0]["data"][old_item["status"]["planKey"]])
    assert session_objects.stored_session(plan_storage.with_full_record(old_item, maps)) == old
    assert session_objects.stored_session(plan_storage.with_full_record(new_item, maps)) == new


def test_the_last_plan_may_be_the_larger_one():
    old, new = session(plan=plan(*(f"{'x' * 90}{number}" for number in range(6000)))), session(plan=plan("y", hash="q"))
    old_item, old_maps = stored(old)
    text = "".join(one["data"][old_item["status"]["planKey"]] for one in old_maps)
    new_item, maps = stored(new, text)
    assert len(maps) == len(old_maps) == 2
    assert session_objects.stored_session(plan_storage.with_full_record(old_item, maps)) == old
    assert session_objects.stored_session(plan_storage.with_full_record(new_item, maps)) == new


def test_what_is_missing_or_altered_is_said():
    item, maps = stored(session(plan=plan("x")))
    with pytest.raises(plan_storage.IncompletePlanError, match="is not in s-plan"):
        plan_storage.with_full_record(item, [])
    key = item["status"]["planKey"]
    altered = {**maps[0], "data": {key: maps[0]["data"][key].replace('"x"', '"y"')}}
    with pytest.raises(plan_storage.IncompletePlanError, match="was changed: its hash"):
        plan_storage.with_full_record(item, [altered])


def test_a_session_that_no_mediator_has_seen_stays_as_it_is():
    assert plan_storage.with_full_record({"metadata": {"name": "s"}}, []) == {"metadata": {"name": "s"}}
