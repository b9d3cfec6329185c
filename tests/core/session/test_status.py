"""What users see of a session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace
from tests.core.session.model import Faults, World

from plimsoll.core.session import moves, observed_session, status
from plimsoll.core.session.state import ChildSession, Session
from plimsoll.core.session.status import progress, with_conditions


def conditions(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in found["conditions"]}


def leaves(value: Any) -> Iterator[Any]:
    """Everything in a status that is no mapping and no list."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    else:
        yield value


def test_from_request_to_end():
    world = World(seed=1, faults=Faults(speed=0.2))
    world.fill("a", 30)
    uid = world.ask("s", source="a", target="b", select={"count": 20}, limits={"maxInFlight": 5}, deadline="3m")
    first = status(world.session(uid), world.now)
    assert (first["phase"], conditions(first)["Succeeded"]) == ("Requested", ("Unknown", "NoView"))
    world.until(lambda: world.mediator.sessions[uid].counts()["moved"] >= 8)
    session = with_conditions(world.mediator.sessions[uid], world.now)
    middle = status(session, world.now)
    assert conditions(middle)["Planned"] == ("True", "Planned")
    assert conditions(middle)["Approved"] == ("True", "Approved")
    assert conditions(middle)["Succeeded"][0] == "Unknown"
    done = sum(session.counts().values())
    assert middle["progress"]["percent"] == 100 * done // 20
    assert middle["progress"]["etaSeconds"] > 0
    assert middle["batch"]["handover"] == "drain"
    world.until_over(uid)
    last = status(world.session(uid), world.now)
    assert conditions(last)["Succeeded"][0] == "True"
    assert last["progress"]["percent"] == 100
    assert "etaSeconds" not in last["progress"]
    assert last["measured"]["drainMillisecondsMax"] >= last["measured"]["drainMillisecondsMean"] > 0
    over = world.session(uid)
    spent = sum(one["milliseconds"] for one in last["timeInPhases"])
    assert abs(spent - 1000 * (over.phase_at - over.requested_at)) < 10
    assert last["startedAt"] == "1970-01-12T13:46:40Z"
    for one in (first, middle, last):
        assert json.loads(json.dumps(one)) == one
        assert not [number for number in leaves(one) if isinstance(number, float)], "no floating-point numbers"


def test_every_condition_names_the_generation_that_it_speaks_of():
    world = World(seed=1)
    world.fill("a", 4)
    uid = world.ask("s", source="a", target="b", select={"count": 4}, approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].phase == "Planned")
    plan = world.session(uid).plan
    assert plan is not None
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    found = status(world.session(uid), world.now)
    assert found["observedGeneration"] == 2
    assert {one["observedGeneration"] for one in found["conditions"]} == {2}


def test_reasons_are_one_word():
    world = World(seed=5, faults=Faults(loss=0.1, leaves=0.1, head_restarts=0.01))
    world.fill("a", 20)
    world.until_over(world.ask("s", source="a", action="Drain", retries=1))
    for _, session in world.saves:
        for one in session.conditions:
            assert one["reason"].isalpha(), one
            assert one["reason"][0].isupper(), one


def test_eta_follows_the_rate():
    session = Session(
        uid="u", name="n", requested_at=0.0, queued_at=0.0, phase_at=0.0, deadline_at=100.0, phase="Draining",
        moving_at=10.0, kind="drain",
    )  # fmt: skip
    children = [ChildSession(name="c", source="a", target="b", members=40, phase="Draining", counts={"moved": 10})]
    found = progress(replace(session, children=children), 15.0)
    assert (found["planned"], found["movesPerMinute"], found["etaSeconds"]) == (40, 120, 15)
    assert "etaSeconds" not in progress(session, 15.0), "nothing has moved yet"


def test_moves_list_every_named_subscriber():
    world = World(seed=2, faults=Faults(leaves=0.3))
    world.fill("a", 8)
    uid = world.ask("s", source="a", target="b", select={"names": [f"a00{n}" for n in range(8)] + ["zz"]})
    world.until_over(uid)
    session = world.session(uid)
    found = moves(session)
    assert [one["subscriber"] for one in found] == [f"a00{n}" for n in range(8)] + ["zz"]
    outcomes = {one["subscriber"]: one["outcome"] for one in found}
    assert outcomes == {**session.outcomes(), "zz": "rejected"}
    assert found[-1]["reason"] == "NotServed"
    assert moves(Session(uid="u", name="n", requested_at=0.0, queued_at=0.0, phase_at=0.0, deadline_at=1.0)) == []


def test_a_parent_lists_its_children():
    world = World(seed=2)
    world.fill("a", 8)
    uid = world.ask("s", source="a", action="Drain")
    world.until_over(uid)
    found = status(world.session(uid), world.now)
    assert [(one["target"], one["planned"], one["moved"]) for one in found["children"]] == [("b", 4, 4), ("c", 4, 4)]
    assert (found["source"], found["target"], found["progress"]["moved"]) == ("a", "b, c", 8)


def test_the_status_is_bounded_however_many_move():
    world = World(seed=2)
    world.fill("a", 900)
    world.page = 1000
    uid = world.ask("s", source="a", target="b", select={"count": 900})
    world.until_over(uid)
    assert len(json.dumps(status(world.session(uid), world.now))) < 4000


def test_what_its_checker_sees():
    world = World(seed=2)
    world.fill("a", 8)
    uid = world.ask("s", source="a", target="b", select={"count": 8})
    world.until_over(uid)
    one = observed_session(world.session(uid), 5.0)
    assert (one.phase, one.ended, one.brokers, one.planned, dict(one.counts)) == (
        "Succeeded", True, ["a", "b"], 8, {"moved": 8},
    )  # fmt: skip
