"""Publishers that leave an overloaded head: who goes, where to, and that it ends; by hand, and in random trees."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.core.policies.delay_sensitive.head_world import HeadWorld, WorldPublisher

from plimsoll.core.policies.delay_sensitive.head_relief import HeadRelief
from plimsoll.core.policies.delay_sensitive.limits import DeadlineLimits
from plimsoll.core.policies.model.load import NO_THRESHOLD, NO_THRESHOLDS, BrokerLoad, OverloadThreshold
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import StepsEnd, take_steps
from plimsoll.core.verify.publisher_plan_checker import PublisherPlanContext, publisher_plan_faults

OURS, TEXT = HeadRelief(), HeadRelief(rules="Text")
STAR = (("a", "b"), ("a", "c"))
AT_A, AT_B, AT_C, NOWHERE, EVERYWHERE = 1, 2, 3, 4, 5
TAKERS = {AT_A: {"a": 1}, AT_B: {"b": 1}, AT_C: {"c": 1}, EVERYWHERE: {"a": 1, "b": 1, "c": 1}}


def world_of(down: float, up: float, **topics: int) -> HeadWorld:
    """Publishers at a, each with 10,000 bytes per second; the bandwidths are those of a."""
    publishers = {name: WorldPublisher("a", topic) for name, topic in topics.items()}
    return HeadWorld(STAR, publishers, TAKERS, {"a": (down, up), "b": (1e6, 1e6), "c": (1e6, 1e6)})


def planned(
    world: HeadWorld,
    policy: HeadRelief = OURS,
    *,
    source: str = "a",
    takes: str | None = None,
    fixed: dict[str, str] | None = None,
    allowed: dict[int, float] | None = None,
    most: int | None = None,
) -> tuple[list[PlanMove], StepsEnd]:
    fleet = replace(world.fleet(source, takes, is_letter=policy.is_letter), fixed=fixed or {})
    _, steps, end = take_steps(fleet, policy.steps(fleet, allowed or {}), most)
    moves = [move for step in steps for move in step.moves]
    topics = {name: {row.topic: row.input_bytes for row in rows} for name, rows in fleet.publishers.items()}
    context = PublisherPlanContext(source, topics, fleet.takes, set(fleet.fixed), most)
    assert not publisher_plan_faults(moves, context)
    return moves, end


def ways(moves: list[PlanMove]) -> list[tuple[tuple[str, ...], str]]:
    return [(move.subscribers, move.target) for move in moves]


def test_a_head_that_is_not_overloaded_keeps_its_publishers():
    moves, end = planned(world_of(1e6, 1e6, p=AT_B))
    assert not moves
    assert (end.ended, end.stopped) == ("NotOverloaded", "a is not overloaded any more")


def test_the_downlink_is_relieved_of_publishers_without_subscribers_first():
    moves, end = planned(world_of(40_000, 1e6, remote=AT_B, none=NOWHERE, both=EVERYWHERE, local=AT_A))
    assert ways(moves) == [(("none",), "c")]
    assert (end.ended, end.stopped) == ("Relieved", "a is no longer overloaded")
    assert moves[0].reason.endswith("relieves a: downlink at 1.000, above 0.95")


def test_the_uplink_is_relieved_of_those_with_remote_subscribers_first():
    moves, end = planned(world_of(1e6, 50_000, remote=AT_B, none=NOWHERE, both=EVERYWHERE, local=AT_A))
    assert ways(moves) == [(("remote",), "b")]
    assert end.ended == "Relieved"


def test_those_that_bring_no_relief_stay_and_say_why():
    moves, end = planned(world_of(1e6, 20_000, local=AT_A, other=AT_A))
    assert not moves
    assert (end.ended, end.stopped) == ("NoBetter", "a stays overloaded: uplink at 1.000, above 0.95")
    assert {(one.kind, one.key, one.reason) for one in end.rejected} == {
        ("NoRelief", name, "stays at a: without it the uplink would be no less") for name in ("local", "other")
    }


def test_by_the_letter_they_go_all_the_same():
    moves, end = planned(world_of(1e6, 20_000, local=AT_A, other=AT_A), TEXT)
    assert ways(moves) == [(("local", "other"), "b")]
    assert end.ended == "Relieved"


def test_publishers_of_a_topic_go_together():
    moves, _ = planned(world_of(1e6, 60_000, p=AT_B, q=AT_B, r=AT_C, s=AT_C, t=AT_C, u=AT_A))
    assert ways(moves) == [(("p", "q"), "b")]


def test_they_go_singly_only_where_no_head_takes_all_of_a_topic():
    world = world_of(1e6, 40_000, p=AT_B, q=AT_B, r=AT_B, s=AT_B)
    tight = replace(world, bandwidths={**world.bandwidths, "b": (1e6, 1e6), "c": (35_000, 1e6)})
    assert ways(planned(tight)[0]) == [(("p", "q", "r", "s"), "b")]
    assert ways(planned(tight, TEXT, takes="c")[0]) == [(("p",), "c")]


def test_those_that_may_wait_longer_go_first():
    world = world_of(1e6, 40_000, p=AT_B, q=AT_C, r=AT_A, s=AT_A)
    assert ways(planned(world, allowed={AT_B: 0.5, AT_C: 2.0})[0])[0][0] == ("q",)
    assert ways(planned(world, allowed={AT_B: 0.5, AT_C: 0.1})[0])[0][0] == ("p",)
    assert ways(planned(world, allowed={AT_B: 0.5})[0])[0][0] == ("q",), "without a deadline they wait longest"


def test_the_head_with_least_of_what_is_overloaded_comes_first():
    world = world_of(20_000, 1e6, p=NOWHERE, q=NOWHERE)
    busy = {**world.publishers, "x": WorldPublisher("b", NOWHERE)}
    assert planned(replace(world, publishers=busy))[0][0].target == "c"


def test_several_heads_may_take_some():
    world = world_of(1e6, 60_000, p=AT_B, q=AT_C, r=AT_B, s=AT_C, t=AT_A, u=AT_A)
    narrow = {**world.bandwidths, "a": (1e6, 42_000), "b": (28_000, 1e6), "c": (28_000, 1e6)}
    moves, end = planned(replace(world, bandwidths=narrow))
    assert {target for _, target in ways(moves)} == {"b", "c"}
    assert end.ended == "Relieved"


def test_a_head_that_is_not_low_takes_none():
    world = world_of(10_000, 1e6, p=NOWHERE)
    full = {**world.bandwidths, "b": (1.0, 1e6), "c": (1.0, 1e6)}
    other = {**world.publishers, "x": WorldPublisher("b", NOWHERE), "y": WorldPublisher("c", NOWHERE)}
    moves, end = planned(replace(world, bandwidths=full, publishers=other))
    assert not moves
    assert end.rejected[0].kind == "NoCandidate"
    assert end.rejected[0].reason == "stays at a: no other head is LOW"


def test_a_target_stays_below_its_lower_threshold():
    world = world_of(10_000, 1e6, p=NOWHERE)
    tight = replace(world, bandwidths={"a": (10_000, 1e6), "b": (10_900, 1e6), "c": (10_900, 1e6)})
    moves, end = planned(tight)
    assert not moves, "it would be the next to shed"
    assert end.rejected[0].reason == "stays at a: with it c would have downlink at 0.917"
    assert ways(planned(tight, TEXT)[0]) == [(("p",), "b")]


def test_nor_does_a_head_on_the_way_get_too_much():
    links = (("a", "b"), ("b", "c"))
    publishers = {"p": WorldPublisher("a", EVERYWHERE), "q": WorldPublisher("a", AT_A)}
    wide = {"a": (1e6, 30_000.0), "b": (1e6, 20_500.0), "c": (1e6, 1e6)}
    moves, end = planned(HeadWorld(links, publishers, TAKERS, wide), takes="c")
    assert not moves
    assert next(one.reason for one in end.rejected) == "stays at a: with it b would have uplink at 1.463"


def test_those_that_may_not_move_stay_with_their_topic():
    moves, end = planned(world_of(1e6, 30_000, p=AT_B, q=AT_B, r=AT_C), fixed={"q": "is excluded by the session"})
    assert ways(moves) == [(("r",), "b")] or ways(moves) == [(("r",), "c")]
    assert {one.kind for one in end.rejected if one.key in "pq"} == {"Staying"}


def test_no_more_go_than_may():
    moves, end = planned(world_of(1e6, 30_000, p=AT_B, q=AT_C, r=AT_C), most=0)
    assert not moves
    assert end.ended == "Limit"


def test_a_metric_may_lack_a_threshold():
    lacking = HeadRelief(DeadlineLimits(NO_THRESHOLDS, NO_THRESHOLDS, OverloadThreshold(0.5, NO_THRESHOLD)))
    assert not lacking.wanted(BrokerLoad(name="a", downlink_utilization=3.0, output_utilization=3.0))
    assert OURS.wanted(BrokerLoad(name="a", downlink_utilization=0.96)) == "downlink at 0.960, above 0.95"


def test_without_a_lower_threshold_a_head_takes_as_long_as_it_is_not_overloaded():
    higher = OverloadThreshold(NO_THRESHOLD, 0.95)
    policy = HeadRelief(DeadlineLimits(higher, NO_THRESHOLDS, higher))
    world = world_of(10_000, 1e6, p=NOWHERE)
    tight = replace(world, bandwidths={"a": (10_000, 1e6), "b": (10_400, 1e6), "c": (10_900, 1e6)})
    assert ways(planned(tight, policy)[0]) == [(("p",), "c")]


# ---------------------------------------------------------------- laws


def random_world(draw: random.Random) -> HeadWorld:
    names = [f"h{number}" for number in range(draw.randint(2, 6))]
    links = tuple((names[draw.randrange(number)], names[number]) for number in range(1, len(names)))
    takers = {topic: {name: draw.randint(1, 3) for name in names if draw.random() < 0.3} for topic in range(8)}
    publishers = {
        f"p{number}": WorldPublisher(draw.choice(names[:2]), draw.randrange(8), draw.choice([1.0, 5.0, 20.0]))
        for number in range(draw.randint(1, 20))
    }
    wide = {name: (draw.uniform(2e4, 2e5), draw.uniform(2e4, 4e5)) for name in names}
    return HeadWorld(links, publishers, takers, wide)


@pytest.mark.parametrize("seed", range(150))
def test_under_constant_load_it_ends_and_none_returns(seed: int):
    """Heads are relieved one after another until no plan moves any: it ends, no publisher comes back to a head that it
    has left, and no head that was not overloaded becomes so."""
    draw = random.Random(seed)
    world = random_world(draw)
    left = {name: {one.at} for name, one in world.publishers.items()}
    for _ in range(60):
        calm = {name for name, load in world.loads().items() if not OURS.overloaded(load)}
        plans = [(source, planned(world, source=source)[0]) for source in world.heads if source not in calm]
        moving = [moves for _, moves in plans if moves]
        if not moving:
            return
        for move in moving[0]:
            world = world.moved(move.subscribers, move.target)
            for name in move.subscribers:
                assert move.target not in left[name], f"{name} returns to {move.target}"
                left[name].add(move.target)
        over = {name for name, load in world.loads().items() if OURS.overloaded(load)}
        assert not over & calm
    raise AssertionError("publishers move for ever")


@pytest.mark.parametrize("seed", range(150))
def test_every_publisher_goes_or_has_a_reason(seed: int):
    draw = random.Random(seed)
    world = random_world(draw)
    for policy in (OURS, TEXT):
        for source in world.heads[:2]:
            moves, end = planned(world, policy, source=source)
            gone = [name for move in moves for name in move.subscribers]
            stay = [one.key for one in end.rejected]
            assert sorted([*gone, *stay]) == sorted(world.rows(source))
            assert all(one.reason for one in end.rejected)
