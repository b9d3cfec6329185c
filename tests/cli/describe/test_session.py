"""The description of a session: sessions of the mediator itself, over scripted heads, at every stage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.model import Faults, World

from plimsoll.cli.describe.session import BATCHES_SHOWN, delivery_audit_lines, session_explanation, session_lines
from plimsoll.core.session import Session
from plimsoll.mediator.session_objects import stored_status


def item(world: World, uid: str, **changes: Any) -> dict[str, Any]:
    """The object of a session as it would be stored now, with changes to its record."""
    session: Session = replace(world.mediator.sessions[uid], **changes)
    return {"metadata": {"name": session.name}, "status": stored_status(session, world.now)}


def told(world: World, uid: str, **changes: Any) -> list[str]:
    return list(session_lines(item(world, uid, **changes), datetime.fromtimestamp(world.now, UTC)))


def labelled(lines: list[str]) -> dict[str, str]:
    return {key: value.strip() for key, _, value in (one.partition(":") for one in lines) if key[:1].strip()}


def block(lines: list[str], title: str) -> list[list[str]]:
    """The rows below a title, in words."""
    start = next(at for at, one in enumerate(lines) if one.startswith(title)) + 1
    rows = []
    for one in lines[start:]:
        if not one.startswith("  "):
            break
        rows.append(one.split())
    return rows


def members(lines: list[str]) -> dict[str, list[str]]:
    """The rows of an explanation by subscriber, in words."""
    start = next(at for at, one in enumerate(lines) if one.startswith("SUBSCRIBER")) + 1
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return {row[0]: row[1:] for row in (one.split() for one in lines[start:end])}


@pytest.fixture
def world() -> World:
    world = World(seed=1, faults=Faults(speed=0.2))
    world.fill("a", 30)
    return world


def moving(world: World, **fields: Any) -> str:
    return world.ask("s", **{"source": "a", "target": "b", "select": {"count": 20}, "deadline": "3m", **fields})


def test_before_and_after_a_mediator_has_seen_it(world: World):
    bare = {"metadata": {"name": "s"}, "status": {}}
    assert list(session_lines(bare, datetime.now(UTC))) == ["Phase:       Requested (the mediator has not seen it yet)"]
    assert list(session_explanation(bare, [])) == ["s has no plan; it is Requested"]
    lines = told(world, moving(world))
    assert lines[0].startswith("Phase:       Requested (NoView: ")
    assert not {"Progress", "ETA", "Plan", "Batches", "Children"} & set(labelled(lines))


def test_on_its_way(world: World):
    uid = moving(world, limits={"maxInFlight": 5})
    world.until(lambda: world.mediator.sessions[uid].counts()["moved"] >= 8)
    lines = told(world, uid)
    found, session = labelled(lines), world.mediator.sessions[uid]
    done = session.counts()["moved"]
    assert found["Phase"].startswith(session.phase)
    assert found["Progress"] == f"{5 * done} % of 20: {done} moved"
    assert found["ETA"].endswith("per minute")
    assert found["Deadline"].startswith("in ")
    assert "Took" not in found
    assert session.plan is not None
    assert found["Plan"].startswith(f"{session.plan.hash}, by drain (")
    assert block(lines, "Plan:") == [["a", "->", "b", "20", "subscribers"]]
    spent = block(lines, "Time in each state:")
    assert [row[0] for row in spent] == ["Requested", "Sampling", "Preparing", "Cutting", "Draining"]
    assert all(float(row[1]) > 0 for row in spent), "it negotiated in no time, and that is not told"


def test_at_its_end(world: World):
    uid = moving(world, limits={"maxInFlight": 5})
    world.reports = {edge: {"output_utilization": 0.5, "input_utilization": 0.1} for edge in "ab"}
    world.until_over(uid)
    lines = told(world, uid)
    found, session = labelled(lines), world.session(uid)
    assert found["Progress"] == "100 % of 20: 20 moved"
    assert {"ETA", "Deadline"} & set(found) == set()
    assert session.ended_at is not None
    assert found["Took"] == f"{session.ended_at - session.requested_at:.1f} s from request to end"
    [titles, *edges, [*cut]] = block(lines, "Predicted and measured:")
    assert titles[:5] == ["EDGE", "LOAD", "PREDICTED", "MEASURED", "ERROR"]
    assert [(row[0], row[-3:]) for row in edges] == [("a", ["30", "10", "10"]), ("b", ["0", "20", "20"])]
    assert all(text.endswith("%") for row in edges for text in row[1:5])
    assert cut[:4] == ["from", "cut", "to", "end:"]
    batches = block(lines, "Batches:")
    assert found["Batches"] == str(len(session.batches)) == str(len(batches) - 1)
    assert batches[0][:4] == ["ID", "STATE", "BY", "MOVED"]
    assert [row[:4] for row in batches[1:]] == [[one.id, "done", "drain", "5/5"] for one in session.batches]


def test_only_the_last_of_many_batches(world: World):
    uid = moving(world, limits={"maxInFlight": 1})
    world.until_over(uid)
    lines = told(world, uid)
    assert labelled(lines)["Batches"] == f"20; the last {BATCHES_SHOWN}:"
    shown = [row[0] for row in block(lines, "Batches:")[1:]]
    assert shown == [one.id for one in world.session(uid).batches[-BATCHES_SHOWN:]]


def test_what_has_no_measure_yet_is_a_dash(world: World):
    uid = moving(world)
    world.until(lambda: bool(world.mediator.sessions[uid].batches))
    lines = told(world, uid)
    assert [row[3:5] for row in block(lines, "Predicted and measured:")[1:]] == [["-", "-"], ["-", "-"]]
    assert block(lines, "Batches:")[1][1:6] == ["-", "drain", "0/20", "-", "-"]


def test_attempts_that_failed_come_first(world: World):
    world.refuses = True
    uid = moving(world, retries=2)
    world.until(lambda: len(world.mediator.sessions[uid].history) == 2)
    lines = told(world, uid)
    assert labelled(lines)["Attempt"] == "3; before:"
    earlier = world.mediator.sessions[uid].history
    assert [row[:3] for row in block(lines, "Attempt:")] == [
        [str(one.number), one.phase, one.reason] for one in earlier
    ]  # fmt: skip


def test_who_is_not_in_the_plan_is_counted_and_explained(world: World):
    uid = moving(world, select={"names": ["a000", "a001", "nosuch"]})
    world.until_over(uid)
    assert block(told(world, uid), "Not in the plan:")[0][0] == "1"
    lines = list(session_explanation(item(world, uid), []))
    at = lines.index("NOT MOVED  WHY")
    assert lines[at + 1].startswith("nosuch     ")
    assert "NotServed" not in lines[at + 1], "in words"


def test_every_move_is_explained(world: World):
    world.faults = Faults(speed=0.2, leaves=0.3)
    uid = moving(world, limits={"maxInFlight": 5})
    world.until_over(uid)
    session = world.session(uid)
    assert session.plan is not None
    lines = list(session_explanation(item(world, uid), []))
    assert lines[0] == f"s: {session.phase}, {session.reason}: {session.message}"
    assert lines[1].startswith(f"plan {session.plan.hash}: 20 subscribers by drain, because ")
    moved = session.counts()["moved"]
    assert lines[2:4] == ["From:        a", "To:          b"]
    assert lines[4].startswith("Progress:    100 % of 20: ")
    assert lines[5] == f"Deliveries:  not known: no count has been reported of the {moved} moved subscribers"
    rows = members(lines)
    outcomes = session.outcomes()
    assert len(set(outcomes.values())) > 1
    assert {name: (row[0], row[1], row[2]) for name, row in rows.items()} == {
        name: ("a", "b", outcome) for name, outcome in outcomes.items()
    }
    text = {
        "moved": "is served by the target", "stayed": "is served by the source, as before",
        "away": "is not connected; its source keeps its place",
    }  # fmt: skip
    for name, outcome in outcomes.items():
        assert " ".join(rows[name][3:]).startswith(text.get(outcome, "came back by itself")), rows[name]


def test_what_deliveries_came_to_is_told_with_how_many_have_counted():
    sums = {"subscribers": 5, "lost": 1, "duplicated": 0, "reordered": 2, "suppressed": 0}
    text = "Deliveries:  1 lost, 0 duplicated, 2 reordered, as counted by 5 of the 7 moved subscribers"
    found = list(delivery_audit_lines({"progress": {"moved": 7}, "audit": sums}))
    assert found[0] == text
    assert found[1].startswith("Delivered:   False (DeliveryFaults: ")
    good = {**sums, "lost": 0, "reordered": 0}
    assert len(list(delivery_audit_lines({"progress": {"moved": 7}, "audit": good}))) == 1
    again = f"{text}; 3 repeated deliveries were suppressed"
    assert next(delivery_audit_lines({"progress": {"moved": 7}, "audit": {**sums, "suppressed": 3}})) == again
    assert list(delivery_audit_lines({"progress": {"moved": 0}})) == []


PUBLISHERS = {"publishers": 3, "asked": 4, "subscribers": 0}


@pytest.mark.parametrize(
    ("audit", "lines"),
    [
        ({"subscribers": 0}, ["not known: no count has been reported of the 3 moved publishers"]),
        (PUBLISHERS, ["not known: none of the 4 subscribers that were asked has reported a count"]),
        (
            {**PUBLISHERS, "asked": 0},
            ["not known: no subscriber takes what the 3 moved publishers have published lately"],
        ),
        (
            {**PUBLISHERS, "subscribers": 2, **dict.fromkeys(("lost", "duplicated", "reordered", "suppressed"), 0),
             "before": 7, "after": 9},
            ["0 lost, 0 duplicated, 0 reordered, as counted by 2 of 4 subscribers asked, about 3 moved publishers",
             "of 7 due before the move, and 9 behind it"],
        ),
    ],
)  # fmt: skip
def test_of_moved_publishers_their_subscribers_have_counted(audit: Any, lines: list[str]):
    found = list(delivery_audit_lines({"progress": {"moved": 3}, "audit": audit}, "publishers"))
    assert [line[13:] for line in found] == lines


def test_a_plan_that_nothing_came_of_yet(world: World):
    uid = moving(world, mode="DryRun")
    world.until_over(uid)
    lines = list(session_explanation(item(world, uid), []))
    rows = members(lines)
    assert len(rows) == 20
    assert {tuple(row) for row in rows.values()} == {("a", "b", "-", "has", "not", "been", "moved", "yet")}


def test_a_session_without_a_plan_says_why(world: World):
    uid = moving(world, target="nowhere")
    world.until_over(uid)
    session = world.session(uid)
    assert list(session_explanation(item(world, uid), [])) == [
        f"s has no plan; it is Rejected: {session.reason}: {session.message}",
        "From:        a",
        "To:          nowhere",
    ]


def test_a_drain_lists_its_children_and_their_outcomes(world: World):
    uid = world.ask("away", source="a", action="Drain")
    world.until_over(uid, seconds=900)
    lines, session = told(world, uid), world.session(uid)
    titles, *rows = block(lines, "Children:")
    assert titles == ["NAME", "SOURCE", "TARGET", "MOVED", "PHASE", "REASON"]
    assert [row[:5] for row in rows] == [
        [child.name, "a", child.target, f"{child.members}/{child.members}", "Succeeded"] for child in session.children
    ]
    children = [item(world, child.uid) for child in session.children]
    moved = [one.split()[3] for one in session_explanation(item(world, uid), children) if one.startswith("a0")]
    assert moved == ["moved"] * 30
    without = [one.split()[3] for one in session_explanation(item(world, uid), []) if one.startswith("a0")]
    assert without == ["-"] * 30, "its children have gone, and what became of each with them"
