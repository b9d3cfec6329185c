"""The algorithm of the text: classes, pairs one after another, and rest."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.core.policies.consumer_groups.small import applied, consumer, drawn

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad, owners
from plimsoll.core.policies.consumer_groups.pairing import Pairing
from plimsoll.core.verify.slice_plan_checker import slice_plan_faults


def test_an_overloaded_consumer_gives_to_an_underloaded_one_until_they_are_alike() -> None:
    consumers = [consumer("a", *[0.1] * 9), consumer("b", 0.1, first=9), consumer("c", 0.6, first=10)]
    plan = Pairing().balance(consumers)
    assert len(plan.sessions) == 1
    assert [(move.giver, move.taker) for move in plan.moves] == [("a", "b")] * 4


def test_a_giver_with_two_takers_has_two_sessions() -> None:
    consumers = [
        ConsumerLoad("a", tuple(SliceLoad(n) for n in range(10)), cpu=1.0),
        ConsumerLoad("d", tuple(SliceLoad(n) for n in range(10, 20)), cpu=1.0),
        ConsumerLoad("b", cpu=0.0), ConsumerLoad("c", cpu=0.1),
    ]  # fmt: skip
    plan = Pairing().balance(consumers)
    assert [(session[0].giver, session[0].taker) for session in plan.sessions] == [("d", "b"), ("a", "c")]


def test_nothing_moves_where_nothing_is_wrong() -> None:
    assert "overloaded" in Pairing().balance([consumer("a", 0.4, 0.3), consumer("b", 0.1, first=2)]).reason
    assert "underloaded" in Pairing().balance([consumer("a", 0.5, 0.4), consumer("b", 0.6, first=2)]).reason


def test_one_slice_that_is_all_of_the_load_does_not_move() -> None:
    assert Pairing().balance([consumer("a", 0.9, 0.0), consumer("b", first=2)]).moves != ()
    assert Pairing().balance([consumer("a", 0.9), consumer("b", first=2)]).moves == ()


def test_without_a_new_measurement_nothing_is_decided() -> None:
    consumers = [consumer("a", 0.5, 0.4, has_measured=False), consumer("b", first=2)]
    assert "not reported" in Pairing().balance(consumers).reason


def test_constant_load_comes_to_rest_in_thousands_of_small_groups() -> None:
    for seed in range(3000):
        consumers = drawn(seed)
        count = len(owners(consumers))
        plan = Pairing().balance(consumers)
        assert slice_plan_faults(plan.sessions, owners(consumers), {c.name for c in consumers}, count) == [], seed
        shuffled = [*consumers]
        random.Random(seed).shuffle(shuffled)
        assert Pairing().balance(shuffled) == plan, seed
        # As the text has it: all slices of a consumer weigh alike, so let them.
        even = [replace(c, slices=_even(c)) for c in consumers]
        looks = 0
        while (plan := Pairing().balance(even)).moves:
            even = applied(even, plan)
            looks += 1
            assert looks < 10, seed


def _even(c: ConsumerLoad) -> tuple[SliceLoad, ...]:
    return tuple(SliceLoad(each.number, min(1.0, c.cost) / len(c.slices), 1.0) for each in c.slices)
