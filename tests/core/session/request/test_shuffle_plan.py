"""Shuffles of a cluster, against edges that detect load: which edges are asked, the plan, its course and its end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.balanced import STEP, Balanced, Faults
from tests.core.session.joined import Joined
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.policies.shuffle import policy
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EdgeView, FleetView, Session, moves, status
from plimsoll.core.session.request import shuffle_plan

QUIET: dict[str, Any] = {"scope": "Local", "source": "east", "action": "Shuffle"}


def world_of(*counts: int, **more: Any) -> Balanced:
    """These numbers of subscribers at a, b and c, whose policy never triggers: only a shuffle moves them."""
    world = Balanced(seed=more.pop("seed", 3), **more)
    for edge, count in zip("abc", counts, strict=False):
        world.fill(edge, count)
    for sensing in (edge.sensing for edge in world.edges.values()):
        sensing._look_at = float("inf")
    return world


def shuffled(world: Balanced, **fields: Any) -> Session:
    uid = world.ask("shuffle", **{**QUIET, **fields})
    world.until_over(uid, seconds=300)
    return world.session(uid)


def test_one_full_edge_is_spread_over_the_cluster():
    """30 subscribers at a: 20/s x 30 ms = 0.6 of input, 0.6 of output. Ten at each: 0.2."""
    world = world_of(30)
    session = shuffled(world)
    assert (session.phase, session.reason) == ("Succeeded", "Moved"), session.message
    assert max(world.counts()) - min(world.counts()) <= 1
    assert session.counts()["moved"] == session.planned <= 20
    assert session.plan is not None
    [a, *others] = session.plan.forecasts
    assert (a.edge, a.utilization_before, a.subscribers_before) == ("a", 0.6, 30)
    assert a.utilization_after == pytest.approx(0.2, abs=0.021)
    for one in (a, *others):
        assert one.measured is not None
        assert one.after is not None
        assert one.measured.input == pytest.approx(one.after.input, abs=0.02)
    assert "the highest load goes from 60.0% to" in session.plan.stop


def test_each_pair_of_edges_is_a_session_with_the_plans_members():
    world = world_of(30)
    session = shuffled(world)
    assert session.plan is not None
    assert {(child.source, child.target) for child in session.children} == {("a", "b"), ("a", "c")}
    for child, pair in zip(session.children, session.plan.pairs, strict=True):
        one = world.named(child.name)
        assert one.plan is not None
        assert one.plan.pairs[0].members == pair.members
        assert one.parent == session.uid


def test_all_edges_are_asked_for_all_others_at_once_and_are_busy_meanwhile():
    world = world_of(30, 3)
    uid = world.ask("shuffle", **QUIET)
    world.until(lambda: world.mediator.sessions[uid].phase == "Sampling")
    world.until(lambda: world.mediator.sessions[uid].phase != "Sampling")
    asked = {
        said.message.edge: said.message.targets for said in world.sent if isinstance(said.message, msg.ProfileQuery)
    }
    assert asked == {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
    world.until(lambda: world.states() == ("BUSY", "BUSY", "BUSY"))
    world.until(lambda: world.mediator.sessions[uid].phase == "Stabilizing")
    world.until(lambda: world.states() == ("STABILIZING", "STABILIZING", "STABILIZING"))
    world.until_over(uid)


def test_a_dry_run_shows_every_edge_before_and_after_and_is_carried_out_when_approved():
    world = world_of(30)
    session = shuffled(world, mode="DryRun")
    assert (session.phase, session.reason, world.counts()) == ("Planned", "DryRun", (30, 0, 0))
    told = status(session, world.now)
    assert [each["name"] for each in told["predicted"]["edges"]] == ["a", "b", "c"]
    assert all({"before", "after"} <= each.keys() for each in told["predicted"]["edges"])
    assert told["plan"]["policy"] == "Shuffle"
    explained = [each for each in moves(session) if each["outcome"] != "rejected"]
    assert len(explained) == session.planned
    assert all(each["target"] in each["why"] for each in explained), "the reason of each is that of its own pair"
    world.change(session.uid, mode="Execute", approval={"policy": "Manual", "planHash": told["planHash"]})
    world.until_over(session.uid)
    assert world.session(session.uid).reason == "Moved"
    assert max(world.counts()) <= 11


def test_another_plan_than_the_one_that_was_approved_is_not_carried_out():
    world = world_of(30)
    uid = world.ask("shuffle", **QUIET, approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].reason == "AwaitingApproval")
    plan = world.session(uid).plan
    assert plan is not None
    gone = plan.pairs[0].members[0]
    for names in world.serves.values():
        names.discard(gone)
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    world.until(lambda: world.mediator.sessions[uid].reason == "PlanStale")
    assert world.counts() == (29, 0, 0)
    assert any(gone in told.message for told in world.told if told.reason == "PlanStale")


def test_exclusions_and_limits_hold():
    world = world_of(30)
    session = shuffled(
        world, exclusions={"subscribers": ["a000", "a001"], "brokers": ["c"]}, limits={"maxMoves": 5, "maxInFlight": 2}
    )
    assert world.counts() == (25, 5, 0)
    assert {"a000", "a001"} <= world.serves["a"]
    assert session.sources == ["a", "b"]
    assert session.plan is not None
    assert session.plan.rejected == {"Excluded": ["a000", "a001"]}
    assert session.plan.stop.startswith("Limit: 5 may move")


def test_a_cordoned_edge_takes_no_subscriber_and_may_give():
    world = world_of(30, 2, 0)
    world.cordoned = {"b"}
    world.run(1.5)
    shuffled(world)
    assert world.counts()[1] <= 2
    assert world.counts()[2] > 10


def test_what_is_balanced_already_is_left():
    world = world_of(10, 10, 10)
    session = shuffled(world)
    assert (session.phase, session.reason) == ("Succeeded", "NothingToMove")
    assert "Balanced" in session.message


@pytest.mark.parametrize(
    ("fields", "phase", "reason"),
    [
        ({"source": "a"}, "Rejected", "NotFound"),
        ({"source": "west"}, "Rejected", "NoPolicy"),
        ({"exclusions": {"brokers": ["b", "c"]}}, "Rejected", "NoTarget"),
    ],
)
def test_what_cannot_be_shuffled_is_refused(fields: dict[str, Any], phase: str, reason: str):
    session = shuffled(world_of(30), **fields)
    assert (session.phase, session.reason) == (phase, reason)


def test_without_a_cluster_nothing_is_shuffled_and_too_many_edges_are_refused():
    """Definitions refuse the first already, where they are in force."""
    context = context_of()
    refused = shuffle_plan.refusal(
        context, request("s", source=None, action="Shuffle", target={"name": "east"}, scope="Global")
    )
    assert refused is not None
    assert refused.reason == "NotFound"
    many = {f"e{number}": EdgeView(f"e{number}", "east", "east-head") for number in range(51)}
    context.fleet = FleetView(context.fleet.heads, many, context.fleet.policies)
    why = shuffle_plan.refusal(context, request("s", source="east", action="Shuffle"))
    assert why is not None
    assert (why.reason, "51 edges" in why.message) == ("TooMany", True)
    fewer = request("s", source="east", action="Shuffle", exclusions={"brokers": ["e7"]})
    assert shuffle_plan.refusal(context, fewer) is None


def test_an_edge_that_is_down_is_waited_for_and_then_named():
    world = world_of(30)
    world.down = {"c"}
    world.run(1.5)
    session = shuffled(world)
    assert (session.phase, session.reason) == ("Rejected", "SourceNotReady")
    assert "c is not up" in session.message


def test_a_mediator_that_just_began_gives_edges_their_time_again():
    asked = request("s", source="east", action="Shuffle")
    own = session("s", phase="Negotiating", phase_at=90.0, deadline_at=1000.0, kind="shuffle")
    wait = context_of().timings.negotiate
    for now, phase in ((110.0 + wait - 0.1, "Negotiating"), (110.0 + wait, "Rejected")):
        context = context_of(own, now=now)
        context.fleet = fleet(a={"ready": False}, b={}, c={})
        context.started_at = 110.0
        assert shuffle_plan.step_negotiating(context, asked, own).phase == phase


def test_stopped_it_begins_nothing_more():
    world = world_of(30)
    uid = world.ask("shuffle", **QUIET, limits={"maxInFlight": 1})
    world.until(lambda: world.mediator.sessions[uid].counts()["moved"] > 1)
    world.change(uid, stop=True)
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Failed", "Stopped")
    assert sum(world.counts()) == 30


def test_its_deadline_ends_it():
    world = world_of(30)
    session = shuffled(world, deadline="6s", limits={"maxMovesPerMinute": 60})
    assert session.ended_at is not None
    assert session.started_at is not None
    assert session.ended_at - session.started_at <= 6.0 + 2 * STEP
    assert 0 < session.counts()["moved"] < session.planned
    assert session.reason == "Partial"
    assert {world.named(child.name).reason for child in session.children} <= {"DeadlineExceeded", "Partial"}


@pytest.mark.parametrize("seed", range(6))
def test_under_all_faults_it_ends_and_every_subscriber_is_served_once(seed: int):
    faults = Faults(
        loss=0.2, repeat=0.2, delay=1.0, mediator_dies=0.01, head_restarts=0.003, leaves=0.05, heal_at=1_000_060.0
    )
    world = world_of(30, 4, seed=seed, faults=faults)
    for edge in world.edges.values():
        edge.restart()  # it looks again, and wants to be balanced beside
    uid = world.ask("shuffle", **QUIET, retries=3, deadline="60s")
    world.until_over(uid, seconds=600)
    assert sum(world.counts()) == 34, seed
    assert world.session(uid).phase in ("Succeeded", "Failed", "RolledBack", "Rejected"), seed


def test_a_mediator_that_dies_before_any_effect_goes_on():
    ends = set()
    for dies_at in range(1, 60, 3):
        world = world_of(16, seed=1, dies_at=dies_at)
        session = shuffled(world)
        ends.add((session.phase, session.reason))
        assert sum(world.counts()) == 16, dies_at
    assert ends <= {("Succeeded", "Moved"), ("Succeeded", "Partial")}


def test_two_clusters_are_shuffled_together():
    """30 at a; five edges of two clusters: six at each would be even, and two may differ by the trigger."""
    world = Joined(seed=3, seconds=None)
    world.fill("a", 30)
    for sensing in (edge.sensing for edge in world.edges.values()):
        sensing._look_at = float("inf")
    world.run(1.0)
    session = shuffled(world, scope="Global", target="west")
    assert (session.phase, session.reason) == ("Succeeded", "Moved"), session.message
    counts = {edge: len(names) for edge, names in world.serves.items()}
    assert sum(counts.values()) == 30
    assert max(counts.values()) <= 14, "as far as the trigger between clusters, 0.15, asks"
    across = [child for child in session.children if child.target in "wv"]
    assert across
    specs = {one.request.name: one.request.spec.scope for one in world.store.values() if one.request.parent}
    assert {specs[child.name] for child in across} == {"Global"}


def test_children_of_a_later_wave_begin_when_those_before_have_ended(monkeypatch: pytest.MonkeyPatch):
    def one_by_one(moves: Any, *_: Any) -> Any:
        return tuple((move,) for move in moves)

    monkeypatch.setattr(policy, "scheduled_waves", one_by_one)
    world = world_of(30)
    uid = world.ask("shuffle", **QUIET)
    begun: list[str] = []
    while not world.mediator.sessions[uid].is_over:
        world.step()
        open_ = [one for one in world.mediator.sessions.values() if one.parent and not one.is_over]
        assert len(open_) <= 1
        begun += [one.name for one in open_ if one.name not in begun]
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Succeeded", "Moved")
    assert [child.wave for child in session.children] == [0, 1]
    assert begun == [child.name for child in session.children]
