"""The input offload algorithm on fleets made by hand. PADRES 2006, 5.1."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.padres import Padres

WIDE = BalancingParameters(local_trigger=ImbalanceTrigger(9.0, 9.0))


def plan(world: World, parameters: BalancingParameters = BalancingParameters(), **more: Any) -> OffloadPlan:  # noqa: B008  # a frozen value
    action = BrokerAction("t", "input", 1.0)
    return Padres(parameters).plan(world.load("s"), world.load("t"), world.profile("s", "t"), action, **more)


def counts(found: OffloadPlan) -> list[tuple[str, int]]:
    return [(move.key, len(move.subscribers)) for move in found.moves]


def test_what_leaves_the_two_closest_goes_first():
    """5.1: of the covering set, the row that brings the two closest; then those it covered, until balanced.

    s has 21 subscriptions at 0.01 s and takes in 4/s: I = 4 x 0.21 = 0.84; t is empty.
    `all` is the covering set. Both of its subscribers: s takes in 2/s for 19, 0.38; t 4/s for 2, 0.08; difference 0.30.
    Then k of `a`: 0.30 - 0.06 k, 0.06 at 4; all 5 would spare 1/s and overshoot to -0.14. Of `b` 4 would leave -0.09.
    So 4 of `a`. Then one of `b`: s 2 x 0.14 = 0.28, t 4 x 0.07 = 0.28. Balanced.
    """
    served = {"all": named("x", 2), "a": named("a", 5), "b": named("b", 4), "none": named("n", 10)}
    world = World(4, {"all": 0b1111, "a": 1, "b": 2, "none": 0}, {"s": Broker(served=served), "t": Broker()})
    found = plan(world)
    assert counts(found) == [("all", 2), ("a", 4), ("b", 1)]
    assert found.ended == "Balanced"
    assert found.predicted_source.input_utilization == pytest.approx(0.28)
    assert found.predicted_target.input_utilization == pytest.approx(0.28)
    assert found.moves[0].reason == (
        "input difference +0.8400 -> +0.3000; 2 of 2 at 400 B/s each; source is spared 2.00/s, "
        "target takes in 4.00/s more"
    )
    assert {each.key: each.kind for each in found.rejected} == {"a": "Enough", "b": "Enough", "none": "NoTraffic"}


def test_what_is_covered_stays():
    """5.1: only the covering set can take input with it. s has `ab` and 3 of `a`: 2/s x 4 x 0.02 = 0.16.

    Moving `ab` leaves s 1/s x 3 x 0.02 = 0.06 and brings t 2/s x 0.02 = 0.04: 0.02. One of `a` then: 0.04 and 0.08,
    further apart. (Triggers so wide that delays do not matter.)
    """
    served = {"ab": named("x", 1), "a": named("a", 3)}
    world = World(2, {"ab": 3, "a": 1}, {"s": Broker(cost=0.02, served=served), "t": Broker(cost=0.02)})
    found = plan(world, WIDE)
    assert counts(found) == [("ab", 1)]
    assert found.ended == "NoBetter"
    kept = World(2, {"ab": 3, "a": 1}, {"s": Broker(cost=0.02, served=served), "t": Broker(bandwidth=150.0)})
    found = plan(kept, WIDE)
    assert counts(found) == []
    assert {each.key: each.kind for each in found.rejected} == {"a": "Covered", "ab": "WouldOverload"}
    assert "takes no input with it: ab at the source matches all" in found.rejected[0].reason


def test_what_cannot_go_does_not_keep_what_it_covers_beyond_the_trigger():
    """As above, with a difference of 0.16 beyond a trigger of 0.1: `ab` would overload t's bandwidth of 150 B/s.

    One of `a` goes: s keeps 2/s x 3 x 0.02 = 0.12, t takes 1/s x 0.02: 0.10. That is within the trigger.
    """
    served = {"ab": named("x", 1), "a": named("a", 3)}
    brokers = {"s": Broker(cost=0.02, served=served), "t": Broker(cost=0.02, bandwidth=150.0)}
    found = plan(World(2, {"ab": 3, "a": 1}, brokers))
    assert counts(found) == [("a", 1)]


def test_it_ends_when_every_choice_would_bring_them_further_apart():
    """5.1: s has one subscriber, 4/s x 0.05 = 0.2. It would bring t as much: the difference would be as large."""
    world = World(4, {"all": 15}, {"s": Broker(cost=0.05, served={"all": named("x", 1)}), "t": Broker(cost=0.05)})
    found = plan(world)
    assert counts(found) == []
    assert found.ended == "NoBetter"
    assert found.rejected[0].reason == "would not lessen the input difference: 0.2000 -> 0.2000"
    assert found.predicted_source == found.source


def test_the_target_is_not_overloaded():
    """5.1, first restraint: t has 1000 B/s, of which 0.9 may be used: 9 of 30 subscribers at 100 B/s go.

    By our rules eight: an output that is brought along stays where a relieved broker would be, at 0.85 or less.
    """
    brokers = {"s": Broker(served={"a": named("a", 30)}), "t": Broker(bandwidth=1000.0)}
    assert counts(plan(World(1, {"a": 1}, brokers))) == [("a", 8)]
    found = plan(World(1, {"a": 1}, brokers), BalancingParameters(rules="Paper"))
    assert counts(found) == [("a", 9)]
    assert found.predicted_target.output_utilization == pytest.approx(0.9)


def test_no_more_go_than_balance_the_two():
    """5.1, second restraint: 1/s x 0.01 x (10 - k) against 1/s x 0.01 x k is balanced at 5."""
    found = plan(World(1, {"a": 1}, {"s": Broker(served={"a": named("a", 10)}), "t": Broker()}))
    assert counts(found) == [("a", 5)]
    assert found.moves[0].subscribers == named("a", 5)
    assert (found.ended, found.rejected[0].subscribers) == ("Balanced", 5)


@pytest.mark.parametrize(("cost", "moves"), [(0.001, []), (0.002, [("a", 1)])])
def test_within_the_threshold_nothing_moves(cost: float, moves: list[tuple[str, int]]):
    """5.1: 10 against 6 subscribers differ by 4 x cost. 0.004 is balanced; 0.008 is not, and one makes it 0.004."""
    served = {"s": {"a": named("a", 10)}, "t": {"a": named("b", 6)}}
    found = plan(World(1, {"a": 1}, {name: Broker(cost=cost, served=rows) for name, rows in served.items()}))
    assert (counts(found), found.ended) == (moves, "Balanced")


def test_who_has_a_reason_to_stay_stays_and_a_limit_holds():
    world = World(1, {"a": 1, "b": 1}, {"s": Broker(served={"a": named("a", 10), "b": ("b",)}), "t": Broker()})
    staying = dict.fromkeys(("a000", "a001", "b"), "was moved lately")
    found = plan(world, staying=staying)
    assert found.members == ("a002", "a003", "a004", "a005", "a006")
    assert {each.key: each.kind for each in found.rejected} == {"a": "Enough", "b": "Staying"}
    limited = plan(world, most=2)
    assert (len(limited.members), limited.ended) == (2, "Limit")


def test_delays_may_not_be_brought_apart_for_the_sake_of_input():
    """Not the paper's: s has an input of 4/s x 8 x 0.02 = 0.64; t none, but for 4 `none` a delay of 4 x 0.05 = 0.2 s.

    That is 0.04 s, or 0.4 N_f, more than s has. `a` would bring inputs to 3 x 0.14 = 0.42 and 1 x 0.25, 0.17 apart
    instead of 0.64, and delays to 0.14 and 0.25 s, 1.1 N_f. Beyond triggers, squared: 0.29 + 0.09 before, 0.005 + 1.0.
    `b` would bring t 3 x 0.25 = 0.75 of input.
    """
    brokers = {
        "s": Broker(cost=0.02, served={"a": named("a", 1), "b": named("b", 7)}),
        "t": Broker(cost=0.05, served={"none": named("n", 4)}),
    }
    found = plan(World(4, {"a": 1, "b": 14, "none": 0}, brokers))
    assert counts(found) == []
    assert {each.key: each.kind for each in found.rejected} == {"a": "Unstable", "b": "NoBetter"}
    assert "input +0.6400 -> +0.1700, match -0.4000 -> -1.1000" in found.rejected[0].reason
