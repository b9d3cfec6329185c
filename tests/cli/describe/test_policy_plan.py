"""The description of a session that a policy has planned: the edges asked, what moves and stays, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.balanced import Balanced
from tests.core.session.triggers.test_head_overload import OVERLOADED, OverloadWorld

from plimsoll.cli.describe import policy_plan
from plimsoll.cli.describe.session import session_explanation, session_lines
from plimsoll.core.session import Session
from plimsoll.core.session.session_plan import Offer, StayGroup
from plimsoll.mediator.session_objects import stored_status


@pytest.fixture(scope="module")
def world() -> Balanced:
    world = Balanced(seed=1)
    world.fill("a", 24)
    world.until(lambda: any(one.is_over for one in world.mediator.sessions.values()))
    return world


@pytest.fixture
def session(world: Balanced) -> Session:
    return next(one for one in world.mediator.sessions.values() if one.is_over)


def item(world: Balanced, session: Session) -> dict[str, Any]:
    spec = {"trigger": {"broker": "a", "reason": "input differs"}}
    return {"metadata": {"name": session.name}, "spec": spec, "status": stored_status(session, world.now)}


def test_describe_says_who_wanted_it_who_was_asked_and_what_was_promised(world: Balanced, session: Session):
    lines = list(session_lines(item(world, session), datetime.fromtimestamp(world.now, UTC)))
    text = "\n".join(lines)
    assert "Trigger:     a: input differs" in text
    assert "Chosen by:   Padres, to balance input utilisation" in text
    asked = lines.index("Asked edges:")
    assert lines[asked + 1].split() == ["EDGE", "TO", "BALANCE", "DIFFERENCE", "ANSWER"]
    assert lines[asked + 2].split()[0] == session.offers[0].edge
    assert "OK" in lines[asked + 2]
    assert "not asked" in text
    loads = lines.index("Loads:")
    rows = [line.split() for line in lines[loads + 2 : loads + 8]]
    assert [row[0] for row in rows] == [*[session.sources[0]] * 3, *[session.targets[0]] * 3]
    assert "-" not in rows[0], "it was measured"
    assert rows[2][3:] == ["24.000", "ms", "12.000", "ms", "0.000", "ms", "12.000", "ms", "0.000", "ms"]
    assert rows[2][-1] == "ms"


def test_explain_says_why_each_moves_and_why_it_is_no_more(world: Balanced, session: Session):
    lines = list(session_explanation(item(world, session), []))
    text = "\n".join(lines)
    assert session.plan is not None
    moves = lines.index("Moves:")
    assert lines[moves + 2].split()[:2] == [str(session.plan.moves[0].count), session.plan.moves[0].what]
    assert session.plan.moves[0].reason in lines[moves + 2]
    assert f"Ends with:   {session.plan.stop}" in lines
    assert text.count("is served by the target") == session.plan.members


def test_what_stays_has_its_reason(world: Balanced, session: Session):
    assert session.plan is not None
    stays = [StayGroup(kind="WouldOverload", reason="one more would be too much", count=3, what="{x}")]
    plan = replace(session.plan, pairs=[], moves=[], stays=stays)
    lines = list(session_explanation(item(world, replace(session, plan=plan)), []))
    stays_at = lines.index("Stays:")
    assert lines[stays_at + 2].split(maxsplit=2) == ["3", "{x}", "WouldOverload: one more would be too much"]
    assert not any(line.startswith("SUBSCRIBER ") for line in lines)


def test_refusals_are_told_where_there_is_no_plan(world: Balanced, session: Session):
    offers = [
        Offer(edge="b", metric="match", difference=0.25, asked_at=1.0, answer="STABILIZING"),
        Offer(edge="c", metric="match", difference=0.2, answer="BUSY", message="waits for x (c)"),
        Offer(edge="d", metric="match", difference=0.1, asked_at=1.0),
    ]
    lines = list(session_explanation(item(world, replace(session, plan=None, offers=offers)), []))
    assert [line.split()[-1] for line in lines if line.startswith("  b ")] == ["STABILIZING"]
    assert any(line.endswith("BUSY: waits for x (c)") for line in lines)
    assert any(line.endswith("not answered yet") for line in lines)


def test_sessions_of_people_have_nothing_of_this(world: Balanced, session: Session):
    bare = replace(session, offers=[], plan=None)
    assert not list(policy_plan.offer_lines(bare))
    assert not list(policy_plan.policy_choice_lines(bare))
    assert not list(policy_plan.load_lines(bare))
    assert not list(policy_plan.trigger_lines({"spec": {}}))


def test_of_publishers_the_loads_are_those_of_heads():
    world = OverloadWorld(OVERLOADED)
    world.run(4.0)
    session = world.only()
    shown = "\n".join([*policy_plan.policy_choice_lines(session), *policy_plan.load_lines(session)])
    assert shown.splitlines() == [
        "Chosen by:   DelaySensitive, to balance downlink and uplink of heads",
        "Moves:",
        "  PUBLISHERS  OF                                 WHY",
        "  1           topic 00000001 (Pr, 1 publishers)  topic 00000001 (Pr, 1 publishers) relieves a: uplink at"
        " 1.000, above 0.95",
        "Stays:",
        "  PUBLISHERS  OF  WHY",
        "  1           p2  NotNeeded: stays at a: a is no longer overloaded",
        "  1           p3  NotNeeded: stays at a: a is no longer overloaded",
        "Ends with:   Relieved: a is no longer overloaded",
        "Loads:",
        "  HEAD  LOAD      BEFORE  PREDICTED  +/-  MEASURED  ERROR",
        "  a     downlink  0.0000  0.0000     -    0.0000    0.0000",
        "  a     uplink    1.0000  0.5000     -    0.5000    0.0000",
        "  b     downlink  0.0000  0.0000     -    0.0000    0.0000",
        "  b     uplink    0.1000  0.1000     -    0.1000    0.0000",
    ]
