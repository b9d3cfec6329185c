"""An explanation of each kind of session: from where, to where, why, promise and measurement, and outcomes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.balanced import Balanced
from tests.core.session.joined import Joined
from tests.core.session.model import World
from tests.core.session.request.test_negotiation import balance, candidates
from tests.core.session.request.test_shuffle_plan import shuffled, world_of

from plimsoll.cli.describe.session import session_explanation
from plimsoll.core.session import Session
from plimsoll.mediator.session_objects import stored_status


def item(world: World, session: Session) -> dict[str, Any]:
    parent = world.mediator.sessions.get(session.parent)
    owners = [] if parent is None else [{"name": parent.name, "uid": parent.uid, "controller": True}]
    metadata = {"name": session.name, "uid": session.uid, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {}, "status": stored_status(session, world.now)}


def explained(world: World, session: Session) -> str:
    children = [item(world, one) for one in world.mediator.sessions.values() if one.parent == session.uid]
    return "\n".join(session_explanation(item(world, session), children))


def assert_told(text: str, *parts: str) -> None:
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} are not in\n{text}"


def rows(text: str, title: str) -> list[list[str]]:
    """The rows below a title and its columns."""
    lines = text.splitlines()
    found = []
    for line in lines[lines.index(title) + 2 :]:
        if not line.startswith("  "):
            break
        found.append(line.split())
    return found


def assert_measured(text: str, *edges: str) -> None:
    """Each edge has a load before, one that was promised, and one that was measured."""
    found = {row[0]: row[1:5] for row in rows(text, "Predicted and measured:")}
    for edge in edges:
        assert all(cell.endswith("%") for cell in found[edge]), text


@pytest.fixture
def world() -> World:
    world = World(seed=1)
    world.fill("a", 6)
    world.reports = {edge: {"output_utilization": 0.5, "input_utilization": 0.1} for edge in "abc"}
    return world


def quiet() -> Balanced:
    """Edges with a policy that ask for nothing by themselves."""
    world = Balanced(seed=1)
    world.fill("a", 24)
    world.fill("b", 6)
    for edge in world.edges.values():
        edge.sensing._look_at = float("inf")
    world.run(6.0)
    return world


def test_a_selection(world: World):
    uid = world.ask("s", source="a", target="b", select={"count": 4})
    world.until_over(uid)
    text = explained(world, world.session(uid))
    assert_told(
        text, "s: Succeeded, Moved: 4 moved", "4 subscribers by drain, because a needs", "From:        a",
        "To:          b", "Progress:    100 % of 4: 4 moved", "a000        a     b   moved    is served by the target",
    )  # fmt: skip
    assert_measured(text, "a", "b")


def test_a_drain_and_its_children(world: World):
    uid = world.ask("d", source="a", action="Drain")
    world.until_over(uid, seconds=900)
    parent = world.session(uid)
    text = explained(world, parent)
    assert_told(
        text, "d: Succeeded, Drained: 6 moved", "From:        a", "To:          b, c", "because a needs",
        "Progress:    100 % of 6: 6 moved", parent.children[0].name, "a005        a     c   moved",
    )  # fmt: skip
    assert_measured(text, "a", "b", "c")
    assert_told(
        explained(world, world.session(parent.children[0].uid)), "Succeeded, Moved: 3 moved", "From:        a",
        "To:          b", "because a needs", "Predicted and measured:", "Part of:     d, which measures the loads",
        "Progress:    100 % of 3: 3 moved", "a000        a     b   moved",
    )  # fmt: skip


def test_a_shuffle():
    world = world_of(6)
    session = shuffled(world)
    text = explained(world, session)
    assert_told(
        text, "shuffle: Succeeded, Moved: 4 moved", "From:        a", "To:          b, c", "Chosen by:   Shuffle",
        "the level is", "Ends with:   Balanced", "Progress:    100 % of 4: 4 moved", session.children[0].name,
        "  moved    is served by the target",
    )  # fmt: skip
    assert_measured(text, "a", "b", "c")


@pytest.mark.parametrize(
    ("metric", "title"),
    [("Input", "input utilisation"), ("Output", "output utilisation"), ("Match", "matching delay")],
)
def test_an_offload_by_policy(metric: str, title: str):
    world = quiet()
    session = balance(world, candidates=candidates("b", metric=metric))
    assert session.phase == "Succeeded", session.message
    moved = session.counts()["moved"]
    assert moved
    text = explained(world, session)
    assert_told(
        text, f"s: Succeeded, Moved: {moved} moved", "From:        a", "To:          b", "Asked edges:",
        f"Chosen by:   Padres, to balance {title}", "difference +", "Ends with:   ",
        f"Progress:    100 % of {moved}: {moved} moved", "a     b   moved    is served by the target",
    )  # fmt: skip
    assert_measured(text, "a", "b")
    assert "-" not in [cell for row in rows(text, "Loads:") for cell in row]


def test_a_session_between_clusters_and_a_child_of_it():
    world = Joined(seed=1)
    for edge in "abc":
        world.fill(edge, 16)
    world.run(120.0)
    [session] = [one for one in world.mediator.sessions.values() if one.between]
    moved = session.counts()["moved"]
    children = [one for one in world.mediator.sessions.values() if one.parent == session.uid]
    assert_told(
        explained(world, session), f"it is Succeeded: {session.reason}: {session.message}", "From:        east",
        "To:          west", f"Progress:    100 % of {moved}: {moved} moved", "Predictions: those of its children",
        *(one.name for one in children),
    )  # fmt: skip
    child = next(one for one in children if one.counts()["moved"])
    assert_told(
        explained(world, child), "because between clusters", f"From:        {child.sources[0]}",
        f"To:          {child.targets[0]}", "Chosen by:   Padres", "Predicted and measured:",
        f"Part of:     {session.name}, which", f"{child.counts()['moved']} moved",
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["DryRun", "Simulate"])
def test_a_dry_run_promises_and_moves_nothing(world: World, mode: str):
    uid = world.ask("s", source="a", target="b", select={"count": 4}, mode=mode)
    world.until_over(uid)
    text = explained(world, world.session(uid))
    assert_told(
        text, f"s: Planned, {mode}: it only plans, and it is over", "From:        a", "To:          b",
        "because a needs", "Progress:    0 % of 4: none yet", "-        has not been moved yet",
    )  # fmt: skip
    assert [row[2][-1:] + row[3] for row in rows(text, "Predicted and measured:")] == ["%-", "%-"]


def test_one_that_was_rejected(world: World):
    uid = world.ask("s", source="a", target="nowhere", select={"count": 4})
    world.until_over(uid)
    session = world.session(uid)
    assert_told(
        explained(world, session), f"s has no plan; it is Rejected: {session.reason}: {session.message}",
        "From:        a", "To:          nowhere",
    )  # fmt: skip


def test_one_whose_policy_found_nothing_says_who_was_asked_and_why():
    world = quiet()
    session = balance(world, source="c", candidates=candidates("b"))
    text = explained(world, session)
    assert_told(text, f"{session.phase}", session.reason, session.message, "From:        c", "Asked edges:", "b ")
