"""What a publisher that moves changes at each head, beside a world that follows every publication."""

from __future__ import annotations

import random

import pytest
from tests.core.policies.delay_sensitive.head_world import HeadWorld, WorldPublisher

from plimsoll.core.policies.delay_sensitive.head_fleet import HeadFleet, path
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step

CHAIN = (("a", "b"), ("b", "c"), ("b", "d"))
WIDE = dict.fromkeys("abcd", (1e6, 1e6))
LOCAL, NEAR, FAR, BOTH, NONE = 1, 2, 3, 4, 5
TAKERS = {LOCAL: {"a": 2}, NEAR: {"b": 1}, FAR: {"c": 1}, BOTH: {"a": 1, "c": 1}}


def world_of(topic: int, at: str = "a") -> HeadWorld:
    return HeadWorld(CHAIN, {"p": WorldPublisher(at, topic)}, TAKERS, WIDE)


def moved(fleet: HeadFleet, target: str) -> HeadFleet:
    return fleet.after(Step((PlanMove("", ("p",), fleet.source, target, ""),)))


def differences(world: HeadWorld, target: str) -> dict[str, tuple[float, float]]:
    """By head, how far the prediction is above what is carried after the move: of the downlink, and of the uplink."""
    told, real = moved(world.fleet("a"), target).heads, world.moved(["p"], target).loads()
    return {
        head: (
            round(told[head].input_bytes_per_second - real[head].input_bytes_per_second),
            round(told[head].output_bytes_per_second - real[head].output_bytes_per_second),
        )
        for head in world.heads
    }


@pytest.mark.parametrize("topic", [LOCAL, NEAR, BOTH, NONE])
def test_to_a_neighbor_the_prediction_is_exact(topic: int):
    assert set(differences(world_of(topic), "b").values()) == {(0, 0)}


def test_subscribers_at_the_source_get_everything_back_over_the_way():
    fleet = world_of(LOCAL).fleet("a")
    after = moved(fleet, "c")
    assert after.heads["a"] == fleet.heads["a"], "what its edges take comes in all the same"
    assert [after.heads[name].output_bytes_per_second for name in "bc"] == [10_000.0, 10_000.0]


def test_a_publisher_without_subscribers_takes_its_downlink_with_it():
    after = moved(world_of(NONE).fleet("a"), "b")
    assert [after.heads[name].input_bytes_per_second for name in "abc"] == [0.0, 10_000.0, 0.0]


def test_a_head_behind_the_first_is_counted_as_if_nothing_had_come_to_it():
    assert differences(world_of(FAR), "c") == {"a": (0, 0), "b": (10_000, 10_000), "c": (10_000, 10_000), "d": (0, 0)}


def test_a_link_that_may_not_take_it_is_not_relieved():
    """Two of three neighbours take it: the report does not say which."""
    links = (("a", "b"), ("a", "c"), ("a", "d"))
    world = HeadWorld(links, {"p": WorldPublisher("a", 9)}, {9: {"b": 1, "c": 1}}, WIDE)
    after = moved(world.fleet("a"), "b").heads["a"]
    assert after.output_bytes_per_second == world.loads()["a"].output_bytes_per_second
    every = HeadWorld(links, {"p": WorldPublisher("a", 9)}, {9: {"b": 1, "c": 1, "d": 1}}, WIDE)
    assert moved(every.fleet("a"), "b").heads["a"].output_bytes_per_second == 20_000.0


def test_by_the_letter_a_publisher_takes_all_that_it_brings():
    fleet = world_of(LOCAL).fleet("a", is_letter=True)
    after = moved(fleet, "c").heads
    assert (after["a"].input_bytes_per_second, after["a"].output_bytes_per_second) == (0.0, 0.0)
    assert (after["c"].input_bytes_per_second, after["c"].output_bytes_per_second) == (10_000.0, 20_000.0)


@pytest.mark.parametrize("seed", range(60))
def test_no_prediction_is_better_than_what_comes(seed: int):
    """The source is never relieved by less than predicted, and no other head gets more."""
    draw = random.Random(seed)
    names = [f"h{number}" for number in range(draw.randint(2, 6))]
    links = tuple((names[draw.randrange(number)], names[number]) for number in range(1, len(names)))
    takers = {1: {name: draw.randint(1, 3) for name in names if draw.random() < 0.4}}
    world = HeadWorld(links, {"p": WorldPublisher(names[0], 1)}, takers, dict.fromkeys(names, (1e6, 1e6)))
    for target in names[1:]:
        told, real = moved(world.fleet(names[0]), target).heads, world.moved(["p"], target).loads()
        for head in names:
            assert told[head].input_bytes_per_second >= real[head].input_bytes_per_second - 1e-6
            assert told[head].output_bytes_per_second >= real[head].output_bytes_per_second - 1e-6


def test_the_path_between_two_heads():
    neighbors = world_of(LOCAL).neighbors()
    assert path(neighbors, "a", "d") == ("a", "b", "d")
    assert path(neighbors, "a", "elsewhere") == ()
